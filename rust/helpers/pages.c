// SPDX-License-Identifier: GPL-2.0
/*
 * What is remarkable about a page: all that speaks against letting a peer, or a device, reach it.
 * The verdict on that is the core's (judge.rs).
 *
 * What holds for more than a page (the memory map, the mapping in the linear map) is looked up once
 * for all of them. What can't be told at all is listed in kfi_mr(3).
 */
#include <linux/folio_batch.h>
#include <linux/memory_hotplug.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/page-flags.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "kfabric_helpers.h"

/* The memory map comes and goes by so many pages. */
#ifdef CONFIG_SPARSEMEM
#define MAP_PAGES	PAGES_PER_SUBSECTION
#else
#define MAP_PAGES	1UL
#endif

/*
 * How the linear map has a page, and for how many aligned pages that holds. The processor's copies
 * go that way; what the kernel took out of it, or made read-only there (code and constants), nobody
 * else is to reach either.
 */
#ifdef CONFIG_X86_64
static u32 linear_facts(unsigned long pfn, unsigned long *pages)
{
	unsigned int level;
	unsigned long flags;
	pte_t *pte, entry;

	/* Whoever frees page tables waits until each processor has let interrupts in. */
	local_irq_save(flags);
	pte = lookup_address((unsigned long)__va(PFN_PHYS(pfn)), &level);
	entry = pte ? READ_ONCE(*pte) : __pte(0);
	local_irq_restore(flags);

	*pages = page_level_size(level) >> PAGE_SHIFT;
	if (!(pte_flags(entry) & _PAGE_PRESENT))
		return KFI_FACT_UNMAPPED;
	return pte_flags(entry) & _PAGE_RW ? 0 : KFI_FACT_READ_ONLY;
}
#else
static u32 linear_facts(unsigned long pfn, unsigned long *pages)
{
	*pages = MAP_PAGES;
	return 0;
}
#endif

/* A page with a memory map that is not online: memory of a device, or nobody's. */
static u32 offline_facts(unsigned long pfn)
{
	struct dev_pagemap *pgmap = get_dev_pagemap(pfn);
	u32 facts = 0;

	if (!pgmap)
		return KFI_FACT_OFFLINE;
	if (pgmap->type == MEMORY_DEVICE_PRIVATE || pgmap->type == MEMORY_DEVICE_COHERENT)
		facts = KFI_FACT_DEVICE_PRIVATE;
	else if (pgmap->type == MEMORY_DEVICE_PCI_P2PDMA)
		facts = KFI_FACT_PEER_TO_PEER;
	put_dev_pagemap(pgmap);
	return facts;
}

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
/* folios_put_refs() leaves the count of the huge zero page alone, and of no other. */
static bool keeps_references(struct folio *folio)
{
	static DEFINE_SPINLOCK(lock);
	unsigned int refs = 1 << 20;
	struct folio_batch batch;
	unsigned long flags;
	int before, kept;

	if (!folio_try_get(folio))
		return false;
	folio_batch_init(&batch);
	folio_batch_add(&batch, folio);
	/* One at a time. What others add to the count, or take from it meanwhile, is little. */
	spin_lock_irqsave(&lock, flags);
	before = folio_ref_count(folio);
	folio_ref_add(folio, refs);
	folios_put_refs(&batch, &refs);
	kept = folio_ref_count(folio) - before;
	if (kept > (int)refs / 2)
		folio_ref_sub(folio, refs);
	spin_unlock_irqrestore(&lock, flags);
	folio_put(folio);
	return kept > (int)refs / 2;
}

/*
 * Which page that is isn't exported. What can be seen of it is the size, and that it is nobody's:
 * what looks like it is put to the test.
 */
static bool is_huge_zero(struct page *page)
{
	struct folio *folio = page_folio(page);

	if (!folio_test_large(folio) || folio_order(folio) != HPAGE_PMD_ORDER ||
	    folio_test_large_rmappable(folio) || folio_test_lru(folio) || folio->mapping ||
	    page_has_type(&folio->page) || folio_is_zone_device(folio))
		return false;
	return keeps_references(folio);
}
#else
static bool is_huge_zero(struct page *page)
{
	return false;
}
#endif

/*
 * What holds for the surroundings of a page too; @seen is where nothing was found last. A huge zero
 * page is no smaller than the surroundings are.
 */
static u32 place_facts(unsigned long pfn, bool writes, struct kfi_helper_seen *seen)
{
	unsigned long pages;
	u32 facts = 0;

	if (pfn >= seen->first && pfn < seen->end)
		return 0;
	if (!pfn_valid(pfn))
		return KFI_FACT_NO_PAGE;
	if (!pfn_to_online_page(pfn))
		facts = offline_facts(pfn);
	/* There is nothing behind these, and no telling what is in their memory map. */
	if (facts & (KFI_FACT_OFFLINE | KFI_FACT_DEVICE_PRIVATE))
		return facts;
	facts |= linear_facts(pfn, &pages);
	/* Who only reads gets what they want from it. */
	if (writes && is_huge_zero(pfn_to_page(pfn)))
		facts |= KFI_FACT_ZERO;
	if (!facts) {
		pages = min(pages, MAP_PAGES);
		seen->first = ALIGN_DOWN(pfn, pages);
		seen->end = seen->first + pages;
	}
	return facts;
}

/* Free, a page table, or given away to a hypervisor: a page that no owner could register. */
static bool is_nobodys(const struct page *page)
{
	return page_has_type(page) &&
	       (PageBuddy(page) || PageTable(page) || PageOffline(page) || PageGuard(page) ||
		PageUnaccepted(page));
}

static u32 page_facts(struct page *page)
{
	u32 facts = 0;

	/* Which is reserved, too, on some architectures. */
	if (is_zero_page(page))
		return KFI_FACT_ZERO;
	/* As the kernel image is, and most of what was there before there were page allocators. */
	if (PageReserved(page) && !is_zone_device_page(page))
		facts |= KFI_FACT_RESERVED;
	if (is_page_hwpoison(page))
		facts |= KFI_FACT_POISONED;
	if (is_nobodys(page))
		facts |= KFI_FACT_NOBODYS;
	return facts;
}

/**
 * kfi_helper_plain_pages() - Look at @count pages from @pfn on, until something is remarkable.
 * @pfn: The first page frame; any number.
 * @count: How many pages, at least 1.
 * @writes: Whether the pages are to be written to.
 * @seen: What the caller remembers for this function from one call to the next; zeroed at first.
 *	For the same @writes only.
 * @facts: What is remarkable about the page where it stopped: bits of enum kfi_helper_fact.
 *
 * Any context for one page; for more: may sleep.
 *
 * Returns how many pages there were before that; @count if there is nothing remarkable.
 */
u64 kfi_helper_plain_pages(u64 pfn, u64 count, bool writes, struct kfi_helper_seen *seen,
			   u32 *facts)
{
	u64 i;

	for (i = 0; i < count; i++) {
		if (i && i % MAP_PAGES == 0)
			cond_resched();
		*facts = place_facts(pfn + i, writes, seen);
		if (!(*facts & (KFI_FACT_NO_PAGE | KFI_FACT_OFFLINE | KFI_FACT_DEVICE_PRIVATE)))
			*facts |= page_facts(pfn_to_page(pfn + i));
		if (*facts)
			return i;
	}
	return count;
}
