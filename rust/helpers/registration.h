/* SPDX-License-Identifier: GPL-2.0 */
/* The request that registers a region. */
#ifndef KFABRIC_REGISTRATION_H
#define KFABRIC_REGISTRATION_H

#include <rdma/ib_verbs.h>

static inline struct ib_reg_wr registration(struct ib_mr *mr, u32 access, int flags,
					    struct ib_cqe *cqe)
{
	return (struct ib_reg_wr) {
		.wr = {
			.wr_cqe = cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED | flags,
		},
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};
}

#endif /* KFABRIC_REGISTRATION_H */
