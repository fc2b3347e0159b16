/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whole pages are taken in few steps each, as long as what holds for the surroundings of a page holds
 * for the next one too, and nothing is to be said of it. All else goes the long way (runs.c).
 *
 * What is taken becomes runs, or entries of a scatterlist: @entries, which is constant.
 */
#ifndef KFI_QUICK_H
#define KFI_QUICK_H

#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>

#include "runs.h"

/* No page begins at an odd address. */
#define NOWHERE	1

/* An entry isn't made longer than that and a page. */
#define MAX_ENTRY	SZ_1G

struct quick {
	/* What is known to be unremarkable by its place: so many page frames from @first on. */
	u64 first;
	u64 frames;
	/* Where the last run or entry ends. */
	u64 behind;
	/* Where the next one goes, and where there is no room any more. */
	struct kfi_helper_run *run, *run_end;
	struct scatterlist *sg, *sg_end;
	/* The first entry that was added here. */
	struct scatterlist *sg_first;
};

static __always_inline void quick_see(struct quick *quick, const struct kfi_helper_seen *seen)
{
	quick->first = seen->first;
	quick->frames = seen->end - seen->first;
}

static __always_inline bool quick_add_run(struct quick *quick, u64 phys)
{
	if (phys == quick->behind) {
		quick->run[-1].len += PAGE_SIZE;
		return true;
	}
	if (quick->run == quick->run_end)
		return false;
	*quick->run++ = (struct kfi_helper_run){ .phys = phys, .len = PAGE_SIZE };
	return true;
}

/* As it would be mapped for a device that takes kernel addresses. */
static __always_inline bool quick_add_entry(struct quick *quick, u64 addr)
{
	struct scatterlist entry = {};

	if (addr == quick->behind) {
		if (quick->sg == quick->sg_first || sg_dma_len(&quick->sg[-1]) > MAX_ENTRY)
			return false;
		sg_dma_len(&quick->sg[-1]) += PAGE_SIZE;
		return true;
	}
	if (quick->sg == quick->sg_end)
		return false;
	sg_dma_address(&entry) = addr;
	sg_dma_len(&entry) = PAGE_SIZE;
	*quick->sg++ = entry;
	return true;
}

/* Takes a page that is at @addr, if there is nothing to be said of it but by its place. */
static __always_inline bool quick_take(struct quick *quick, u64 pfn, struct page *page, u64 addr,
				       bool entries)
{
	if (!kfi_is_plain(page, pfn))
		return false;
	/* Where a part of the memory map begins there is more to be asked. */
	if (unlikely(addr == quick->behind) && !(pfn % KFI_MAP_PAGES))
		return false;
	if (!(entries ? quick_add_entry(quick, addr) : quick_add_run(quick, addr)))
		return false;
	quick->behind = addr + PAGE_SIZE;
	return true;
}

/* By what a page is added: its physical address, or that of the linear map. */
static __always_inline u64 quick_addr(u64 pfn, bool entries)
{
	return entries ? (uintptr_t)phys_to_virt(PFN_PHYS(pfn)) : PFN_PHYS(pfn);
}

static __always_inline bool quick_page(struct quick *quick, u64 pfn, struct page *page, bool entries)
{
	return pfn - quick->first < quick->frames &&
	       quick_take(quick, pfn, page, quick_addr(pfn, entries), entries);
}

/* Takes what can be taken so of @pages page frames. Returns how many that were. */
static __always_inline u64 quick_frames(struct quick *quick, const u64 *pfns, u64 pages, bool entries)
{
	u64 i;

	for (i = 0; i < pages; i++)
		if (!quick_page(quick, pfns[i], pfn_to_page(pfns[i]), entries))
			break;
	return i;
}

/* How many segments of a page each there may be. */
static __always_inline u64 quick_most(const struct kfi_helper_walk *walk)
{
	return min(walk->count - walk->index, walk->limit >> PAGE_SHIFT);
}

static __always_inline void quick_took(struct kfi_helper_walk *walk, u64 segments)
{
	walk->index += segments;
	walk->limit -= segments << PAGE_SHIFT;
}

/* Takes bio_vecs that can be taken so. */
static __always_inline void quick_bvecs(struct kfi_helper_walk *walk, struct quick *quick,
					bool entries)
{
	const struct bio_vec *first = walk->bvecs + walk->index;
	const struct bio_vec *end = first + quick_most(walk), *bvec;

	for (bvec = first; bvec < end; bvec++) {
		u64 pfn = page_to_pfn(bvec->bv_page);

		if (bvec->bv_offset || bvec->bv_len != PAGE_SIZE ||
		    pfn_to_page(pfn) != bvec->bv_page ||
		    !quick_page(quick, pfn, bvec->bv_page, entries))
			break;
	}
	quick_took(walk, bvec - first);
}

/* The entry behind one that isn't the last. */
static __always_inline struct scatterlist *quick_next(struct scatterlist *sg)
{
	sg++;
	if (unlikely(sg_is_chain(sg)))
		sg = sg_chain_ptr(sg);
	return sg;
}

/* Takes entries of a scatterlist that can be taken so. */
static __always_inline void quick_entries(struct kfi_helper_walk *walk, struct quick *quick,
					  bool entries)
{
	/* Page frames whose place is known, and whose addresses are. */
	u64 first = max(quick->first, walk->linear_pfn);
	u64 end = min(quick->first + quick->frames,
		      walk->linear_pfn + (walk->linear_len >> PAGE_SHIFT));
	u64 start = walk->linear + PFN_PHYS(first - walk->linear_pfn);
	u64 bytes = end > first ? PFN_PHYS(end - first) : 0;
	u64 left = walk->count - walk->index, most = quick_most(walk), i = 0;
	struct scatterlist *sg = walk->sgl;

	while (i < most) {
		u64 addr = sg_dma_address(sg);
		u64 pfn = first + ((addr - start) >> PAGE_SHIFT);

		if (sg_dma_len(sg) != PAGE_SIZE || addr - start >= bytes || offset_in_page(addr) ||
		    !quick_take(quick, pfn, pfn_to_page(pfn),
				entries ? addr : PFN_PHYS(pfn), entries))
			break;
		if (++i < left)
			sg = quick_next(sg);
	}
	walk->sgl = sg;
	quick_took(walk, i);
}

#endif /* KFI_QUICK_H */
