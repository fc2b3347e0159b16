/* SPDX-License-Identifier: GPL-2.0 */
/* What finding runs of memory is made of. */
#ifndef KFI_RUNS_H
#define KFI_RUNS_H

#include <linux/mm.h>

#include "kfabric_helpers.h"
#include "pages.h"
#include "unfilled.h"

/* So many page frames of vmalloc areas are looked up at once: as few as the stack doesn't feel. */
#define FRAMES	64

/* Runs that are being put together: no two of them follow each other. */
struct out {
	struct kfi_helper_run *runs;
	u32 count;
	u32 max;
};

/* How many pages are touched by @len bytes that start at @addr? */
static inline u64 pages_of(u64 addr, u64 len)
{
	return (offset_in_page(addr) + len + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

/* How many pages of @pages from @pfn on are in one part of the memory map? */
static inline u64 pages_here(u64 pfn, u64 pages)
{
	return min_t(u64, pages, KFI_MAP_PAGES - pfn % KFI_MAP_PAGES);
}

/* Does the memory at @phys follow the last run? */
static inline bool follows(const struct out *out, u64 phys)
{
	const struct kfi_helper_run *last;

	if (!out->count)
		return false;
	last = &out->runs[out->count - 1];
	return last->phys + last->len == phys &&
	       (phys % (KFI_MAP_PAGES << PAGE_SHIFT) ||
		zone_device_pages_have_same_pgmap(pfn_to_page(PHYS_PFN(phys - 1)),
						  pfn_to_page(PHYS_PFN(phys))));
}

/*
 * Takes @pages page frames from @pfn on, which are in one part of the memory map; they are at
 * @value, and the next @left bytes of the segment begin there. Returns false to stop there.
 */
static __always_inline bool take(struct kfi_helper_walk *walk, struct out *out, u64 pfn, u64 pages,
				 u64 value, u64 left)
{
	u64 offset = offset_in_page(value);
	u64 phys = PFN_PHYS(pfn) + offset;
	bool joins = follows(out, phys);
	u64 plain, bytes;

	if (!joins && out->count == out->max)
		return false;
	plain = kfi_plain_pages(pfn, pages, walk->writes, &walk->around.seen, &walk->facts);
	bytes = plain ? min((plain << PAGE_SHIFT) - offset, left) : 0;
	if (joins)
		out->runs[out->count - 1].len += bytes;
	else if (bytes)
		out->runs[out->count++] = (struct kfi_helper_run){ .phys = phys, .len = bytes };
	walk->done += bytes;
	walk->limit -= bytes;
	if (likely(plain == pages))
		return true;
	walk->stop = KFI_STOP_FACTS;
	walk->value = value + bytes;
	walk->page.phys = phys + bytes;
	walk->page.len = min(PAGE_SIZE - offset_in_page(walk->page.phys), left - bytes);
	return false;
}

/*
 * The page frames behind at most @pages pages from @addr on: of vmalloc areas, or of the linear map,
 * which has them in rows. Returns how many there are; if they are in a @row, only the first one is
 * told.
 */
u64 kfi_frames_at(struct kfi_helper_walk *walk, unsigned long addr, u64 pages, u64 *pfns, bool *row);

/* The page frame behind an address of the linear map; false for any other, as of the kernel image. */
bool kfi_linear_pfn(struct kfi_helper_around *around, u64 addr, u64 *pfn);

#endif /* KFI_RUNS_H */
