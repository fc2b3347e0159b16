/* SPDX-License-Identifier: GPL-2.0 */
/* What of looking at pages is done so often that it mustn't cost a call. */
#ifndef KFABRIC_PAGES_H
#define KFABRIC_PAGES_H

#include <linux/mm.h>
#include <linux/page-flags.h>

#include "kfabric_helpers.h"

/*
 * The page frame of what may be a page, by where its description is. Whether there is one has yet to be found out;
 * false if there can't be one, as it begins between two of them.
 */
static __always_inline bool kfi_page_pfn(const struct page *page, u64 *pfn)
{
	unsigned long first = page_to_pfn(page);

	/* The compiler takes for granted that pages are where they can be. */
	OPTIMIZER_HIDE_VAR(first);
	*pfn = first;
	return pfn_to_page(first) == page;
}

/* Is it known that nothing is remarkable about the place of a page? */
static inline bool kfi_is_seen(const struct kfi_helper_seen *seen, u64 pfn)
{
	return pfn >= seen->first && pfn < seen->end;
}

/* A page that has one of these flags is remarkable. */
#ifdef CONFIG_MEMORY_FAILURE
#define KFI_SAID	(BIT(PG_reserved) | BIT(PG_hwpoison))
#else
#define KFI_SAID	BIT(PG_reserved)
#endif

/*
 * Free, a page table, or given away to a hypervisor: a page that no owner could register. Most pages have
 * no type; those of kmalloc() have.
 */
static __always_inline bool kfi_is_nobodys(const struct page *page)
{
	return page_has_type(page) &&
	       (PageBuddy(page) || PageTable(page) || PageOffline(page) || PageGuard(page) ||
		PageUnaccepted(page));
}

/*
 * Is there nothing to be said of a page by itself, which has the frame @pfn? So it is for nearly all
 * pages. Of a tail page, it is the head that knows what it is part of.
 */
static __always_inline bool kfi_is_plain(struct page *page, u64 pfn)
{
	return likely(!(READ_ONCE(page->flags.f) & KFI_SAID) && !kfi_is_nobodys(page) &&
		      !is_zero_pfn(pfn) &&
		      (!PageTail(page) || !PageHWPoison(compound_head(page))));
}

/* As kfi_helper_plain_pages(), which most pages that have no neighbours don't need. */
static __always_inline u64 kfi_plain_pages(u64 pfn, u64 pages, bool writes,
					   struct kfi_helper_seen *seen, u32 *facts)
{
	if (pages == 1 && kfi_is_seen(seen, pfn) && kfi_is_plain(pfn_to_page(pfn), pfn))
		return 1;
	return kfi_helper_plain_pages(pfn, pages, writes, seen, facts);
}

#endif /* KFABRIC_PAGES_H */
