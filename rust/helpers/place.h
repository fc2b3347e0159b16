/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where memory is, where that is told in few steps: nearly all of it is in use, and in the linear map with its
 * surroundings as one large page that may be written to. What isn't as simple is asked of the kernel (pages.c).
 */
#ifndef KFABRIC_PLACE_H
#define KFABRIC_PLACE_H

#include <linux/bvec.h>
#include <linux/huge_mm.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/page-flags.h>

#include "kfabric_helpers.h"
#include "lookup.h"
#include "pages.h"

/*
 * May it be of the huge zero page? Which page that is isn't exported; what can be seen of it is the size, and that
 * it is nobody's.
 */
static __always_inline bool kfi_may_be_huge_zero(struct page *page)
{
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	struct folio *folio = page_folio(page);

	return folio_test_large(folio) && folio_order(folio) == HPAGE_PMD_ORDER &&
	       !page_has_type(&folio->page) && !folio_test_large_rmappable(folio) &&
	       !folio_test_lru(folio) && !folio->mapping && !folio_is_zone_device(folio);
#else
	return false;
#endif
}

#if defined(CONFIG_X86_64) && defined(CONFIG_SPARSEMEM_VMEMMAP)

/*
 * The page frame behind an address that is below the end of the linear map, if there is one; false for any other.
 * Neither the image nor vmalloc areas are there.
 */
static __always_inline bool kfi_quick_pfn(const void *addr, u64 *pfn)
{
	unsigned long offset = (unsigned long)addr - PAGE_OFFSET;

	*pfn = PHYS_PFN(offset);
	return offset < (unsigned long)high_memory - PAGE_OFFSET;
}

/* The same where a bio_vec starts, if that is in the page that it names. */
static __always_inline bool kfi_quick_bvec_pfn(const struct bio_vec *bvec, u64 *pfn)
{
	return kfi_page_pfn(bvec->bv_page, pfn) && bvec->bv_offset < PAGE_SIZE &&
	       *pfn < PHYS_PFN((unsigned long)high_memory - PAGE_OFFSET);
}

/* Is there a page, whose memory is in use? False, too, where only get_dev_pagemap() can tell. */
static __always_inline bool kfi_is_online(unsigned long pfn)
{
	struct mem_section *section = __pfn_to_section(pfn);

	return online_section(section) && !online_device_section(section) &&
	       pfn_section_valid(section, pfn);
}

/*
 * How many pages, aligned, of which one is this, which there is, has the linear map in one page of its own, which may
 * be written to? None if not. Interrupts are off.
 */
static __always_inline u64 kfi_linear_pages(unsigned long pfn)
{
	unsigned int level;
	pte_t *pte = kfi_quick_lookup((unsigned long)__va(PFN_PHYS(pfn)), &level);

	if (!pte || !kfi_is_writable(pte))
		return 0;
	return level == PG_LEVEL_4K ? 1 : PTRS_PER_PTE;
}

/*
 * Is nothing remarkable about the place of a page? Then where else that is so goes to @seen: all of its part of the
 * memory map, if the linear map has that in a large page; if not, only an @alone page is looked at here. If this is
 * false, it isn't known yet. Any context.
 */
static __always_inline bool kfi_is_plain_place(u64 pfn, bool writes, bool alone,
					       struct kfi_helper_seen *seen)
{
	unsigned long flags;
	u64 pages = 0;

	BUILD_BUG_ON(KFI_MAP_PAGES > PTRS_PER_PTE);
	/* Whoever frees page tables waits until each processor has let interrupts in. */
	local_irq_save(flags);
	if (kfi_is_online(pfn))
		pages = kfi_linear_pages(pfn);
	local_irq_restore(flags);
	if (pages <= !alone || (writes && kfi_may_be_huge_zero(pfn_to_page(pfn))))
		return false;
	pages = min(pages, KFI_MAP_PAGES);
	seen->first = ALIGN_DOWN(pfn, pages);
	seen->end = seen->first + pages;
	return true;
}

#else

static __always_inline bool kfi_quick_pfn(const void *addr, u64 *pfn)
{
	return false;
}

static __always_inline bool kfi_quick_bvec_pfn(const struct bio_vec *bvec, u64 *pfn)
{
	return false;
}

static __always_inline bool kfi_is_plain_place(u64 pfn, bool writes, bool alone,
					       struct kfi_helper_seen *seen)
{
	return false;
}

#endif

#endif /* KFABRIC_PLACE_H */
