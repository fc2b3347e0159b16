// SPDX-License-Identifier: GPL-2.0
/*
 * The expectations of the tests for each personality. Nothing here is taken from the model, so a
 * mistake in its own table is seen.
 */
#include <linux/sizes.h>

#include "nic_test.h"

static const struct expect expects[] = {
	{
		.name = "mlx5", .reliable = true, .local_inv = true, .inv_free = IB_WC_SUCCESS,
		.gaps = true, .own_drain = true, .last_wqe = true, .srq = true, .zero_recv = true,
		.max_inline = 128, .max_pages = SZ_64K, .pages_8k = true,
		.max_send_sge = 16, .max_recv_sge = 16, .max_read_sge = 16,
	}, {
		.name = "ib", .ib = true, .reliable = true, .local_inv = true,
		.inv_free = IB_WC_SUCCESS, .gaps = true, .own_drain = true, .last_wqe = true,
		.srq = true, .zero_recv = true, .max_inline = 128, .max_pages = SZ_64K,
		.pages_8k = true, .max_send_sge = 16, .max_recv_sge = 16, .max_read_sge = 16,
	}, {
		.name = "mlx4", .reliable = true, .local_inv = true,
		.inv_free = IB_WC_LOC_QP_OP_ERR, .all_memory_key = true, .own_drain = true,
		.last_wqe = true, .srq = true, .zero_recv = true,
		.inline_over = NIC_INLINE_REDUCED, .max_inline = 0, .max_pages = 511,
		.pages_8k = true, .max_send_sge = 16, .max_recv_sge = 16, .max_read_sge = 16,
	}, {
		.name = "bnxt_re", .reliable = true, .local_inv = true,
		.inv_free = IB_WC_LOC_QP_OP_ERR, .all_memory_key = true, .last_wqe = true,
		.srq = true, .zero_recv = true, .max_inline = 96, .max_pages = 512,
		.pages_8k = true, .max_send_sge = 6, .max_recv_sge = 6, .max_read_sge = 6,
	}, {
		.name = "irdma", .iwarp = true, .reliable = true, .local_inv = true,
		.inv_free = IB_WC_LOC_QP_OP_ERR, .all_memory_key = true, .zero_recv = true,
		.max_inline = 101, .max_pages = SZ_256K,
		.max_send_sge = 13, .max_recv_sge = 13, .max_read_sge = 13,
	}, {
		.name = "i40iw", .iwarp = true, .reliable = true, .local_inv = true,
		.inv_free = IB_WC_LOC_QP_OP_ERR, .all_memory_key = true, .zero_recv = true,
		.max_inline = 48, .max_pages = SZ_256K,
		.max_send_sge = 3, .max_recv_sge = 3, .max_read_sge = 1,
	}, {
		.name = "cxgb4", .iwarp = true, .reliable = true, .local_inv = true,
		.inv_free = IB_WC_LOC_QP_OP_ERR, .all_memory_key = true, .last_wqe = true,
		.srq = true, .zero_recv = true, .max_inline = 64, .max_pages = 128,
		.pages_8k = true, .max_send_sge = 4, .max_recv_sge = 4, .max_read_sge = 1,
	}, {
		.name = "hns", .reliable = true, .own_drain = true, .last_wqe = true, .srq = true,
		.inline_over = NIC_INLINE_REDUCED, .max_inline = 32, .max_pages = 512,
		.pages_8k = true, .max_send_sge = 16, .max_recv_sge = 16, .max_read_sge = 16,
	}, {
		.name = "erdma", .reliable = true, .local_inv = true,
		.inv_free = IB_WC_LOC_QP_OP_ERR, .all_memory_key = true, .max_inline = 96,
		.max_pages = 512, .pages_8k = true,
		.max_send_sge = 6, .max_recv_sge = 1, .max_read_sge = 1,
	}, {
		.name = "ionic", .reliable = true, .local_inv = true,
		.inv_free = IB_WC_LOC_QP_OP_ERR, .last_wqe = true, .srq = true, .max_inline = 64,
		.max_pages = 512, .pages_8k = true,
		.max_send_sge = 8, .max_recv_sge = 8, .max_read_sge = 8,
	}, {
		.name = "qedr", .reliable = true, .local_inv = true,
		.inv_free = IB_WC_LOC_QP_OP_ERR, .all_memory_key = true, .srq = true,
		.zero_recv = true, .max_inline = 128, .max_pages = SZ_8K, .pages_8k = true,
		.max_send_sge = 4, .max_recv_sge = 4, .max_read_sge = 4,
	}, {
		.name = "pvrdma", .reliable = true, .local_inv = true,
		.inv_free = IB_WC_LOC_QP_OP_ERR, .last_wqe = true, .srq = true, .zero_recv = true,
		.inline_over = NIC_INLINE_IGNORED, .max_inline = 0, .max_pages = 128,
		.pages_8k = true, .max_send_sge = 4, .max_recv_sge = 4, .max_read_sge = 4,
	}, {
		.name = "efa", .max_inline = 32, .zero_recv = true, .pages_8k = true,
		.max_send_sge = 2, .max_recv_sge = 2, .max_read_sge = 1,
	},
};

const struct expect *find_expect(const char *name)
{
	for (int i = 0; i < ARRAY_SIZE(expects); i++)
		if (!strcmp(expects[i].name, name))
			return &expects[i];
	return NULL;
}
