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
	/* What is known to be unremarkable by its place: so many page frames, the first one, and its page. */
	u64 first;
	u64 frames;
	unsigned long page;
	/* By what that is added: its physical address, or that of the linear map. */
	u64 addr;
	/* Where the last run or entry ends. */
	u64 behind;
	/* Where the next one goes, and where there is no room any more. */
	struct kfi_helper_run *run, *run_end;
	struct scatterlist *sg, *sg_end;
};

/* Zero pages are pages of their own kind, and found by their frames. */
#ifdef __HAVE_COLOR_ZERO_PAGE
#define MANY_ZERO_PAGES	true
#else
#define MANY_ZERO_PAGES	false
#endif

static __always_inline void quick_see(struct quick *quick, const struct kfi_helper_seen *seen,
				      bool entries)
{
	u64 first = seen->first, frames = seen->end - first;

	/* The zero page, and what is behind it, goes the long way. */
	if (!MANY_ZERO_PAGES)
		frames = min(frames, page_to_pfn(ZERO_PAGE(0)) - first);
	quick->first = first;
	quick->frames = frames;
	quick->page = frames ? (unsigned long)pfn_to_page(first) : 0;
	quick->addr = entries ? (uintptr_t)phys_to_virt(PFN_PHYS(first)) : PFN_PHYS(first);
}

/* Finds out whether a place where nothing is known is unremarkable, and the page too. */
static inline bool quick_look(struct kfi_helper_seen *seen, u64 pfn, bool writes)
{
	u32 facts;

	return !kfi_is_seen(seen, pfn) &&
	       kfi_helper_plain_pages(pfn, 1, writes, seen, &facts) == 1 && kfi_is_seen(seen, pfn);
}

/* Which of the frames a page has; one that there isn't if it is none of theirs, or no page at all. */
static __always_inline u64 quick_index(const struct quick *quick, const struct page *page)
{
	u64 bytes = (unsigned long)page - quick->page;

	if (is_power_of_2(sizeof(*page)))
		return ror64(bytes, ilog2(sizeof(*page)));
	return bytes % sizeof(*page) ? U64_MAX : bytes / sizeof(*page);
}

/* As kfi_is_plain(), of one that is no zero page by its place. */
static __always_inline bool quick_is_plain(const struct quick *quick, struct page *page, u64 index)
{
	return likely(!(READ_ONCE(page->flags.f) & KFI_SAID) && !page_has_type(page) &&
		      (!PageTail(page) || !PageHWPoison(compound_head(page))) &&
		      !(MANY_ZERO_PAGES && is_zero_pfn(quick->first + index)));
}

/* Adds a page to the run or entry that ends where it begins. */
static __always_inline bool quick_join(struct quick *quick, u64 index, bool entries)
{
	/* Where a part of the memory map begins there is more to be asked. */
	if (!((quick->first + index) % KFI_MAP_PAGES))
		return false;
	if (!entries)
		quick->run[-1].len += PAGE_SIZE;
	else if (sg_dma_len(&quick->sg[-1]) <= MAX_ENTRY)
		sg_dma_len(&quick->sg[-1]) += PAGE_SIZE;
	else
		return false;
	return true;
}

/*
 * So many pages of @most can be taken, after @taken, without a look whether there is room. Those that join others take
 * none: then it is worth asking again.
 */
static __always_inline u64 quick_end(const struct quick *quick, u64 taken, u64 most, bool entries)
{
	u64 room = entries ? quick->sg_end - quick->sg : quick->run_end - quick->run;

	return min(most, taken + room);
}

/* Adds a page that begins elsewhere, as it would be mapped for a device that takes such addresses. There is room. */
static __always_inline void quick_add(struct quick *quick, u64 addr, bool entries)
{
	struct scatterlist entry = {};

	if (entries) {
		sg_dma_address(&entry) = addr;
		sg_dma_len(&entry) = PAGE_SIZE;
		*quick->sg++ = entry;
	} else {
		*quick->run++ = (struct kfi_helper_run){ .phys = addr, .len = PAGE_SIZE };
	}
}

/*
 * Takes a page, for which there is room, if it is one of the frames, of which it is this one, and there is nothing to be
 * said of it.
 */
static __always_inline bool quick_take(struct quick *quick, u64 index, struct page *page, bool entries)
{
	u64 addr = quick->addr + (index << PAGE_SHIFT);

	if (index >= quick->frames || !quick_is_plain(quick, page, index))
		return false;
	if (likely(addr != quick->behind))
		quick_add(quick, addr, entries);
	else if (!quick_join(quick, index, entries))
		return false;
	quick->behind = addr + PAGE_SIZE;
	return true;
}

/* Takes what can be taken so of @pages page frames. Returns how many that were. */
static __always_inline u64 quick_frames(struct quick *quick, const u64 *pfns, u64 pages, bool entries)
{
	struct quick q = *quick;
	u64 i, end = 0;

	for (i = 0; i < end || i < (end = quick_end(&q, i, pages, entries)); i++) {
		u64 index = pfns[i] - q.first;

		if (!quick_take(&q, index, (struct page *)q.page + index, entries))
			break;
	}
	*quick = q;
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
	const struct bio_vec *first = walk->bvecs + walk->index, *bvec, *end = first;
	u64 most = quick_most(walk);
	struct quick q = *quick;

	for (bvec = first; bvec < end ||
			   bvec < (end = first + quick_end(&q, bvec - first, most, entries)); bvec++)
		if (((u64)bvec->bv_offset << 32 | bvec->bv_len) != PAGE_SIZE ||
		    !quick_take(&q, quick_index(&q, bvec->bv_page), bvec->bv_page, entries))
			break;
	*quick = q;
	quick_took(walk, bvec - first);
}

/*
 * Takes entries of a scatterlist that can be taken so. Of one that ends before its time, the last one isn't.
 */
static __always_inline void quick_entries(struct kfi_helper_walk *walk, struct quick *quick,
					  bool entries)
{
	u64 start = (uintptr_t)phys_to_virt(PFN_PHYS(quick->first));
	u64 left = walk->count - walk->index, most = quick_most(walk), i = 0, end = 0;
	struct scatterlist *sg = walk->sgl;
	struct quick q = *quick;

	while (i < end || i < (end = quick_end(&q, i, most, entries))) {
		u64 index = ror64(sg_dma_address(sg) - start, PAGE_SHIFT);

		if (unlikely(sg->page_link & (SG_CHAIN | SG_END))) {
			if (sg_is_chain(sg)) {
				sg = sg_chain_ptr(sg);
				continue;
			}
			if (i + 1 < left)
				break;
		}
		if (sg_dma_len(sg) != PAGE_SIZE ||
		    !quick_take(&q, index, (struct page *)q.page + index, entries))
			break;
		/* Not beyond the last that counts, which may be where the caller's memory ends. */
		if (++i < left)
			sg++;
	}
	if (i < left && sg_is_chain(sg))
		sg = sg_chain_ptr(sg);
	*quick = q;
	walk->sgl = sg;
	quick_took(walk, i);
}

#endif /* KFI_QUICK_H */
