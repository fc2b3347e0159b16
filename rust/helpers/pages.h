/* SPDX-License-Identifier: GPL-2.0 */
/* What of looking at pages is done so often that it mustn't cost a call. */
#ifndef KFABRIC_PAGES_H
#define KFABRIC_PAGES_H

#include <linux/mm.h>
#include <linux/page-flags.h>

#include "kfabric_helpers.h"

/* Is it known that nothing is remarkable about the place of a page? */
static inline bool kfi_is_seen(const struct kfi_helper_seen *seen, u64 pfn)
{
	return pfn >= seen->first && pfn < seen->end;
}

/*
 * Is there nothing to be said of a page by itself? So it is for nearly all pages. Of a tail page, it
 * is the head that knows what it is part of.
 */
static __always_inline bool kfi_is_plain(struct page *page)
{
	return likely(!PageReserved(page) && !PageHWPoison(page) && !page_has_type(page) &&
		      !PageHWPoison(compound_head(page)) && !is_zero_page(page));
}

#endif /* KFABRIC_PAGES_H */
