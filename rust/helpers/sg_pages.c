// SPDX-License-Identifier: GPL-2.0
/* The pages that a region can be made of, for the `rdma` crate. */
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "rdma_helpers.h"

/* Larger pages have not been tried with any driver. Smaller regions would win nothing. */
#define MAX_PAGE_SIZE	SZ_2M
#define MIN_PAGES	8

/*
 * The largest page size of @sizes, larger than @base, that a region made of a mapped list can have:
 * between entries both sides are at its boundaries. Of small pages it would have to have @base; what
 * the large ones have beyond that, at both ends, is no more than an eighth. Any context.
 *
 * Returns 0 if there is none; otherwise @pages is how many there are.
 */
u32 rdma_helper_page_size(struct scatterlist *sg, u32 count, u64 sizes, u32 base, u32 *pages)
{
	u64 start = sg_dma_address(sg);
	u64 inner = MAX_PAGE_SIZE;
	u64 bytes = 0, small, size;
	u32 i;

	for (i = 0; i < count; i++) {
		u64 addr = sg_dma_address(sg);

		if (i)
			inner |= addr;
		bytes += sg_dma_len(sg);
		if (i + 1 < count) {
			inner |= addr + sg_dma_len(sg);
			sg = sg_next(sg);
		}
		/* As it is nearly at once where memory isn't contiguous. */
		if (inner & (2 * (u64)base - 1))
			return 0;
	}
	small = ALIGN((start & (base - 1)) + bytes, base);
	if (small < MIN_PAGES * (u64)base)
		return 0;
	/* No page is larger than all of them together. */
	size = min(inner & -inner, rounddown_pow_of_two(small + small / 8));
	for (; size > base; size >>= 1) {
		u64 all = ALIGN((start & (size - 1)) + bytes, size);

		if (!(sizes & size) || all - small > small / 8)
			continue;
		*pages = all / size;
		return size;
	}
	return 0;
}
