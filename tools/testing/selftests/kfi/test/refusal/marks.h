/* SPDX-License-Identifier: GPL-2.0 */
/* The marks of a page that may not be registered. */
#ifndef KFI_TEST_MARKS_H
#define KFI_TEST_MARKS_H

#include <linux/mm.h>

#include "env.h"

/**
 * struct mark - how a page is spoiled
 * @kind: The kind of memory.
 * @set: Spoils a page.
 * @clear: Undoes that.
 */
struct mark {
	enum mem_kind kind;
	void (*set)(struct page *page);
	void (*clear)(struct page *page);
};

static inline void poison(struct page *page)
{
#ifdef CONFIG_MEMORY_FAILURE
	SetPageHWPoison(page);
#endif
}

static inline void unpoison(struct page *page)
{
#ifdef CONFIG_MEMORY_FAILURE
	ClearPageHWPoison(page);
#endif
}

static inline void make_table(struct page *page)
{
	__SetPageTable(page);
}

static inline void unmake_table(struct page *page)
{
	__ClearPageTable(page);
}

static inline void reserve(struct page *page)
{
	SetPageReserved(page);
}

static inline void unreserve(struct page *page)
{
	ClearPageReserved(page);
}

static inline bool can_mark(const struct mark *mark)
{
	return mark->set != poison || IS_ENABLED(CONFIG_MEMORY_FAILURE);
}

#endif /* KFI_TEST_MARKS_H */
