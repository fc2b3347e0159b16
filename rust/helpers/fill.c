// SPDX-License-Identifier: GPL-2.0
/*
 * From a list of whole pages to the entries of a scatterlist, in one loop that judges and fills. What
 * isn't as simple is left to runs.c, which says what there is to be said of it.
 */
#include <linux/uio.h>

#include "quick.h"

/* All of these return whether it is worth while to go on. */
static bool fill_bvecs(struct kfi_helper_walk *walk, struct quick *quick)
{
	u64 pfn;

	quick_bvecs(walk, quick, true);
	return quick_most(walk) && kfi_helper_bvec_pfn(&walk->bvecs[walk->index], &pfn) &&
	       quick_look(&walk->around.seen, pfn, walk->writes);
}

static bool fill_entries(struct kfi_helper_walk *walk, struct quick *quick)
{
	u64 pfn;

	quick_entries(walk, quick, true);
	return quick_most(walk) && kfi_linear_pfn(&walk->around, sg_dma_address(walk->sgl), &pfn) &&
	       quick_look(&walk->around.seen, pfn, walk->writes);
}

static bool fill_kvec(struct kfi_helper_walk *walk, struct quick *quick)
{
	const struct kvec *kvec = &walk->kvecs[walk->index];
	unsigned long at = (unsigned long)kvec->iov_base + walk->done;
	u64 pages = min(kvec->iov_len - walk->done, walk->limit) >> PAGE_SHIFT;
	u64 pfns[FRAMES] UNFILLED, found, taken = 0;
	bool row, more;

	if (!pages || offset_in_page(at) || !is_vmalloc_addr((void *)at) ||
	    (!walk->done && kfi_helper_on_stack(kvec->iov_base, kvec->iov_len)))
		return false;
	found = kfi_frames_at(walk, at, pages, pfns, &row);
	if (!found || row)
		return false;
	do {
		taken += quick_frames(quick, pfns + taken, found - taken, true);
		more = taken < found && quick_look(&walk->around.seen, pfns[taken], walk->writes);
		quick_see(quick, &walk->around.seen, true);
	} while (more);
	walk->done += taken << PAGE_SHIFT;
	walk->limit -= taken << PAGE_SHIFT;
	if (taken < found)
		return false;
	if (walk->done == kvec->iov_len) {
		walk->index++;
		walk->done = 0;
	}
	return walk->index < walk->count;
}

/**
 * kfi_helper_fill() - Go on through a list of segments, as long as they are whole pages.
 * @walk: The list, and how far it was walked through, which has not stopped; goes on.
 * @sg: Where entries go, as they would be mapped for a device that takes kernel addresses.
 * @max: How many there may be.
 *
 * There are no more bytes than @walk->limit, which goes down. Memory that follows on what is before it
 * is one entry, unless that was filled earlier. May sleep.
 *
 * Returns how many entries were filled; kfi_helper_walk() goes on there.
 */
u32 kfi_helper_fill(struct kfi_helper_walk *walk, struct scatterlist *sg, u32 max)
{
	struct quick quick = { .sg = sg, .sg_end = sg + max, .behind = NOWHERE };
	bool more = walk->index < walk->count && !(walk->done && !walk->kvecs);

	while (more) {
		quick_see(&quick, &walk->around.seen, true);
		more = walk->kvecs ? fill_kvec(walk, &quick) :
		       walk->bvecs ? fill_bvecs(walk, &quick) : fill_entries(walk, &quick);
	}
	return quick.sg - sg;
}
