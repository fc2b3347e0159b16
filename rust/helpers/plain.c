// SPDX-License-Identifier: GPL-2.0
/*
 * From a list of one segment to its memory, where that is one run of the linear map about which there is
 * nothing to be said. What isn't as simple is left to runs.c, which says what there is to be said of it.
 *
 * All of these return the physical address of the first byte, or KFI_NO_START. What they find of its
 * surroundings goes to @around. May sleep.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include "place.h"
#include "runs.h"

/* Are these pages in one part of the memory map, and is there nothing to be said of them? */
static noinline bool plain_pages(u64 pfn, u64 pages, bool writes, struct kfi_helper_seen *seen)
{
	u32 facts;

	return pages <= KFI_MAP_PAGES - pfn % KFI_MAP_PAGES &&
	       kfi_helper_plain_pages(pfn, pages, writes, seen, &facts) == pages;
}

/* The same of one page, as far as that is told in few steps. */
static __always_inline bool plain_page(u64 pfn, bool writes, struct kfi_helper_seen *seen)
{
	return (kfi_is_seen(seen, pfn) || kfi_is_plain_place(pfn, writes, true, seen)) &&
	       kfi_is_plain(pfn_to_page(pfn), pfn);
}

/* @len bytes, not none, from @offset on in the page @pfn. */
static u64 plain(u64 pfn, u64 offset, u64 len, bool writes, struct kfi_helper_around *around)
{
	u64 pages = pages_of(offset, len);

	if (!(pages == 1 && plain_page(pfn, writes, &around->seen)) &&
	    !plain_pages(pfn, pages, writes, &around->seen))
		return KFI_NO_START;
	return PFN_PHYS(pfn) + offset;
}

/* @len bytes, not none, from @addr on, which don't wrap. */
static u64 plain_addresses(void *addr, u64 len, bool writes, struct kfi_helper_around *around)
{
	u64 pfn;

	if (!kfi_quick_pfn(addr, &pfn) &&
	    (!addr || is_vmalloc_addr(addr) || !kfi_linear_pfn(around, (uintptr_t)addr, &pfn)))
		return KFI_NO_START;
	/* Stacks in vmalloc areas are in none of these places. */
	if (!IS_ENABLED(CONFIG_VMAP_STACK) && kfi_helper_on_stack(addr, len))
		return KFI_NO_START;
	return plain(pfn, offset_in_page(addr), len, writes, around);
}

u64 kfi_helper_plain_kvec(const struct kvec *kvec, bool writes, struct kfi_helper_around *around)
{
	return plain_addresses(kvec->iov_base, kvec->iov_len, writes, around);
}

u64 kfi_helper_plain_bvec(const struct bio_vec *bvec, bool writes, struct kfi_helper_around *around)
{
	u64 pfn;

	if (!kfi_quick_bvec_pfn(bvec, &pfn) && !kfi_helper_bvec_pfn(bvec, &pfn))
		return KFI_NO_START;
	return plain(pfn, offset_in_page(bvec->bv_offset), bvec->bv_len, writes, around);
}

/* Of an entry that is mapped for a device that takes kernel addresses; @len is its length. */
u64 kfi_helper_plain_entry(struct scatterlist *sg, bool writes, struct kfi_helper_around *around,
			   u64 *len)
{
	void *addr = (void *)(uintptr_t)sg_dma_address(sg);

	*len = sg_dma_len(sg);
	return plain_addresses(addr, *len, writes, around);
}
