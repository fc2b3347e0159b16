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
#include <linux/unroll.h>

#include "kfabric_helpers.h"
#include "lookup.h"
#include "pages.h"
#include "place.h"

/*
 * How the linear map has a page, and [@seen->first, @seen->end) in which that holds for all; that is
 * looked for no further than @count pages on, or, @around it, a little for the next ones that are
 * asked for. The processor's copies go that way; what the kernel took out of it, or made read-only
 * there (code and constants), nobody else is to reach either.
 */
#ifdef CONFIG_X86_64
/* Where the linear map has small pages, a page is looked at with its neighbours: aligned, so many. */
#define AROUND	64

static u32 linear_facts(unsigned long pfn, u64 count, bool around, struct kfi_helper_seen *seen)
{
	unsigned long addr = (unsigned long)__va(PFN_PHYS(pfn));
	unsigned long index = pte_index(addr);
	unsigned long least = around ? AROUND - index % AROUND : 1;
	unsigned long most_before = around ? index % AROUND : 0;
	u64 before = 0, n = 1;
	unsigned int level;
	unsigned long flags;
	pteval_t has = 0;
	pte_t *pte;

	/* Whoever frees page tables waits until each processor has let interrupts in. */
	local_irq_save(flags);
	pte = kfi_lookup_address(addr, &level);
	if (pte)
		has = pte_flags(READ_ONCE(*pte));
	if ((has & _PAGE_PRESENT) && (has & _PAGE_RW) && level == PG_LEVEL_4K) {
		count = clamp_t(u64, count, least, PTRS_PER_PTE - index);
		while (n < count && kfi_is_writable(pte + n))
			n++;
		while (before < most_before && kfi_is_writable(pte - before - 1))
			before++;
	}
	local_irq_restore(flags);

	if (!(has & _PAGE_PRESENT))
		return KFI_FACT_UNMAPPED;
	if (!(has & _PAGE_RW))
		return KFI_FACT_READ_ONLY;
	seen->first = pfn - before;
	seen->end = pfn + n;
	if (level != PG_LEVEL_4K) {
		seen->first = ALIGN_DOWN(pfn, page_level_size(level) >> PAGE_SHIFT);
		seen->end = seen->first + (page_level_size(level) >> PAGE_SHIFT);
	}
	return 0;
}
#else
static u32 linear_facts(unsigned long pfn, u64 count, bool around, struct kfi_helper_seen *seen)
{
	seen->first = 0;
	seen->end = ULONG_MAX;
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

/* What looks like the huge zero page is put to the test. */
static bool is_huge_zero(struct page *page)
{
	return kfi_may_be_huge_zero(page) && keeps_references(page_folio(page));
}
#else
static bool is_huge_zero(struct page *page)
{
	return false;
}
#endif

/*
 * What holds for the surroundings of a page too; @seen is where nothing was found last, of which
 * @count pages are asked for now. A huge zero page is no smaller than the surroundings are.
 */
static u32 place_facts(unsigned long pfn, u64 count, bool writes, struct kfi_helper_seen *seen)
{
	struct kfi_helper_seen here = {};
	u64 first = ALIGN_DOWN(pfn, KFI_MAP_PAGES);
	u32 facts = 0;

	if (kfi_is_seen(seen, pfn) ||
	    kfi_is_plain_place(pfn, writes, count == 1 && !seen->end, seen))
		return 0;
	if (!pfn_valid(pfn))
		return KFI_FACT_NO_PAGE;
	if (!pfn_to_online_page(pfn))
		facts = offline_facts(pfn);
	/* There is nothing behind these, and no telling what is in their memory map. */
	if (facts & (KFI_FACT_OFFLINE | KFI_FACT_DEVICE_PRIVATE))
		return facts;
	/* Who asks a second time goes page by page, and asks again; a transfer mostly doesn't. */
	facts |= linear_facts(pfn, count, seen->end, &here);
	/* Who only reads gets what they want from it. */
	if (writes && is_huge_zero(pfn_to_page(pfn)))
		facts |= KFI_FACT_ZERO;
	if (!facts) {
		seen->first = max(here.first, first);
		seen->end = min(here.end, first + KFI_MAP_PAGES);
	}
	return facts;
}

/* So many tail pages are looked at together. */
#define TOGETHER	16

/* What there is to be said of a page by itself. */
static u32 page_facts(struct page *page)
{
	u32 facts = 0;

	if (kfi_is_plain(page, page_to_pfn(page)))
		return 0;
	/* Which is reserved, too, on some architectures. */
	if (is_zero_page(page))
		return KFI_FACT_ZERO;
	/*
	 * The kernel image is reserved, and most memory that was allocated before the page allocator was
	 * there.  So is the pool of KFENCE, whose objects are in pages of the slab allocator.
	 */
	if (PageReserved(page) && !PageSlab(page) && !is_zone_device_page(page))
		facts |= KFI_FACT_RESERVED;
	if (is_page_hwpoison(page))
		facts |= KFI_FACT_POISONED;
	if (kfi_is_nobodys(page))
		facts |= KFI_FACT_NOBODYS;
	return facts;
}

/* Do the flags of one of TOGETHER pages say something? */
static __always_inline bool any_says(const struct page *pages)
{
	unsigned long said = 0;
	int i;

	unrolled_count(TOGETHER)
	for (i = 0; i < TOGETHER; i++)
		/* Others may be changing flags that aren't asked for. */
		said |= data_race(pages[i].flags.f);
	return said & KFI_SAID;
}

/*
 * Where the tail pages end that follow on @page, about which there is nothing to be said, and which has
 * the frame @pfn; no further than @end, up to which the memory map has no gap. What their flags don't
 * say holds for all of their folio. If that goes away meanwhile this may be wrong about where it ends,
 * but stays below @end.
 */
static u64 plain_tails(struct page *page, u64 pfn, u64 end)
{
	struct page *head = compound_head(page);
	u64 first = pfn + 1;

	end = min(end, page_to_pfn(head) + BIT_ULL(min(compound_order(head), 30U)));
	for (pfn++, page++; pfn + TOGETHER <= end; pfn += TOGETHER, page += TOGETHER)
		if (any_says(page))
			break;
	/* The last ones, and before them some once more. */
	if (pfn < end && pfn + TOGETHER > end && first + TOGETHER <= end &&
	    !any_says(page + (end - pfn) - TOGETHER))
		return end;
	while (pfn < end && !(READ_ONCE(page->flags.f) & KFI_SAID)) {
		pfn++;
		page++;
	}
	return pfn;
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
 * Any context; sleeps where that may be.
 *
 * Returns how many pages there were before that; @count if there is nothing remarkable.
 */
u64 kfi_helper_plain_pages(u64 pfn, u64 count, bool writes, struct kfi_helper_seen *seen,
			   u32 *facts)
{
	u64 end = pfn + count;
	u64 at = pfn;

	while (at < end) {
		struct page *page;
		u64 here;

		/* Where that may be, which is in a registration, but not in a transfer. */
		if (at != pfn && preemptible())
			cond_resched();
		*facts = place_facts(at, end - at, writes, seen);
		if (*facts) {
			if (!(*facts & (KFI_FACT_NO_PAGE | KFI_FACT_OFFLINE |
					KFI_FACT_DEVICE_PRIVATE)))
				*facts |= page_facts(pfn_to_page(at));
			break;
		}
		/* All in one part of the memory map. */
		here = min(end, seen->end);
		while (at < here) {
			page = pfn_to_page(at);
			*facts = kfi_is_plain(page, at) ? 0 : page_facts(page);
			if (*facts)
				return at - pfn;
			at = at + 1 < here && PageCompound(page) ? plain_tails(page, at, here) :
								   at + 1;
		}
	}
	return at - pfn;
}
