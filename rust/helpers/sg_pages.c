// SPDX-License-Identifier: GPL-2.0
/* Where the entries of a list meet, for the `rdma` crate. */
#include <linux/scatterlist.h>

#include "rdma_helpers.h"

/*
 * Where a mapped list starts, how long it is, and all addresses, or-ed, at which one of its entries ends or another
 * begins. As soon as one of them is inside of all pages larger than @base, neither is looked at any more. Any context.
 */
void rdma_helper_sg_joints(struct scatterlist *sg, u32 count, u32 base, u64 *start, u64 *bytes,
			   u64 *joints)
{
	u64 inner = 0, sum = 0;
	u32 i;

	*start = sg_dma_address(sg);
	for (i = 0; i < count; i++) {
		u64 addr = sg_dma_address(sg);

		if (i)
			inner |= addr;
		sum += sg_dma_len(sg);
		if (i + 1 < count) {
			inner |= addr + sg_dma_len(sg);
			sg = sg_next(sg);
		}
		/* As it is nearly at once where memory isn't contiguous. */
		if (inner & (2 * (u64)base - 1))
			break;
	}
	*bytes = sum;
	*joints = inner;
}
