// SPDX-License-Identifier: GPL-2.0
/* Helpers of the `rdma` crate: all that one region of one run of memory takes. */
#include <linux/io.h>

#include "inline.h"
#include "rdma_helpers.h"

KFI_HELPER u32 rdma_helper_max_seg_size(struct ib_device *dev)
{
	return ib_dma_max_seg_size(dev);
}

/* Where memory that has pages is in the linear map. */
KFI_HELPER u64 rdma_helper_linear(u64 phys)
{
	return (uintptr_t)phys_to_virt(phys);
}

/* A list of one entry, as it would be mapped for a device that takes kernel addresses. */
KFI_HELPER void rdma_helper_sg_single(struct scatterlist *sg, u64 address, u32 len)
{
	struct scatterlist entry = { .page_link = SG_END };

	sg_dma_address(&entry) = address;
	sg_dma_len(&entry) = len;
	*sg = entry;
}

KFI_HELPER void rdma_helper_next_key(struct ib_mr *mr)
{
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
}

/* Posts the most frequent request. Any context. */
KFI_HELPER int rdma_helper_post_reg(struct ib_qp *qp, struct ib_mr *mr, u32 access, struct ib_cqe *cqe)
{
	struct ib_reg_wr reg = {
		.wr = {
			.wr_cqe = cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};

	return ib_post_send(qp, &reg.wr, NULL);
}

/* Posts the other frequent request, if regions are reused. Any context. */
KFI_HELPER int rdma_helper_post_inv(struct ib_qp *qp, u32 key, struct ib_cqe *cqe)
{
	struct ib_send_wr inv = {
		.wr_cqe = cqe,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = key,
	};

	return ib_post_send(qp, &inv, NULL);
}
