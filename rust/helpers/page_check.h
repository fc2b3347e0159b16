/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The check whether a page may be registered, from its struct page alone. kfi_mr(3) lists what it refuses.
 *
 * It is a debugging aid of fixed cost, not a security boundary: kernel callers are trusted. A place in the
 * memory map that has no struct page is not used: either the number of the page tells, or the read of the
 * flags faults, which is handled.
 *
 * Context: Any.
 */
#ifndef KFI_PAGE_CHECK_H
#define KFI_PAGE_CHECK_H

#include <linux/bitops.h>
#include <linux/memory_hotplug.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/page-flags.h>
#include <linux/uaccess.h>

#include "kfabric_helpers.h"

/* A page with one of these flags needs a closer look. */
#ifdef CONFIG_MEMORY_FAILURE
#define FLAGS	(BIT(PG_reserved) | BIT(PG_hwpoison))
#else
#define FLAGS	BIT(PG_reserved)
#endif

/* No page frame is so large. */
#define NO_FRAME	PHYS_PFN(BIT_ULL(63))

/*
 * Returns @offset >> @shift, or a number that is too large for a page frame if @offset is no multiple: the
 * rotation moves the rest to the top.
 */
static __always_inline u64 exact_frame(u64 offset, unsigned int shift)
{
	return ror64(offset, shift);
}

/*
 * Returns the page frame for the address of a possible struct page. The result is at least NO_FRAME if the address
 * cannot be one. If it is less, the page may still not exist.
 */
static __always_inline u64 page_frame(const struct page *page)
{
	u64 offset = (unsigned long)page - (unsigned long)pfn_to_page(0);

	if (is_power_of_2(sizeof(*page)))
		return exact_frame(offset, ilog2(sizeof(*page)));
	return offset % sizeof(*page) ? NO_FRAME : offset / sizeof(*page);
}

/*
 * The memory map has a place for each of the first linear_frames() page frames. Where it is not populated,
 * read_flags() handles the fault, and returns false. Other architectures leave each page to check_page().
 */
#if defined(CONFIG_X86_64) && defined(CONFIG_SPARSEMEM_VMEMMAP)
static __always_inline u64 linear_frames(void)
{
	return PHYS_PFN((unsigned long)high_memory - PAGE_OFFSET);
}

static __always_inline bool read_flags(const struct page *page, unsigned long *flags)
{
	__get_kernel_nofault(flags, &page->flags.f, unsigned long, missing);
	return true;
missing:
	return false;
}
#else
static __always_inline u64 linear_frames(void)
{
	return 0;
}

static __always_inline bool read_flags(const struct page *page, unsigned long *flags)
{
	return false;
}
#endif

/*
 * Checks whether a page without a reference is linked into a list, as the free pages of a CPU are. Also true for
 * a tail page whose owner uses page->lru.
 */
static inline bool is_listed(const struct page *page)
{
	struct list_head *next = READ_ONCE(page->pcp_list.next), *back;

	/*
	 * A page that has left its list has no address there. One that never was on a list has its own, or one
	 * that an owner of long ago has left, to which nothing leads back.
	 */
	return (unsigned long)next >= PAGE_OFFSET && next != &page->pcp_list &&
	       !copy_from_kernel_nofault(&back, &next->prev, sizeof(back)) && back == &page->pcp_list;
}

/*
 * Checks whether a page is free, offline, a page table, or given away to a hypervisor, by what it is part of.
 * Only the first page of a block of free pages is marked, and the others are like those of an allocation of
 * several pages. So if the page @follows one in the same memory that is in use, only marked pages count as free.
 */
static noinline __maybe_unused bool has_no_owner(const struct page *page, bool follows)
{
	const struct page *head = compound_head(page);

	/* Racy, since a page that nobody has may be taken meanwhile. */
	switch (data_race(head->page_type) >> 24) {
	case PGTY_buddy:
	case PGTY_offline:
	case PGTY_table:
	case PGTY_guard:
	case PGTY_unaccepted:
		return true;
	}
	/* Pages of kmalloc() have a type and may have no reference. */
	if (page_has_type(head) || page_ref_count(head) || PageHead(head))
		return false;
	return is_listed(head) || (!follows && (is_free_buddy_page(head) || !pfn_to_online_page(page_to_pfn(head))));
}

/* Checks in few steps whether somebody has a page. The tail pages of a folio have neither a type nor a reference. */
static __always_inline bool is_in_use(const struct page *page, bool follows)
{
	const struct page *head;
	unsigned long flags;

	if (likely(!page_has_type(page)) && likely(page_ref_count(page)))
		return true;
	/* Most messages of a few bytes are in the first page of a slab. */
	if (data_race(page->page_type) >> 24 == PGTY_slab)
		return true;
	head = compound_head(page);
	/* Of memory that is not online, the memory map may never have been written. */
	if ((u64)(page - head) >= MAX_FOLIO_NR_PAGES || !read_flags(head, &flags) || flags & FLAGS)
		return false;
	return (head != page && !page_has_type(head)) || !has_no_owner(page, follows);
}

/*
 * Checks in few steps whether there is a page, and nothing speaks against it. If false, check_page() decides.
 * The zero page, the rest of the kernel image and the pages of devices are reserved. Offline pages have a type,
 * or no reference, if their memory map was ever initialised. @page is that of @pfn.
 */
static __always_inline bool is_plain(const struct page *page, u64 pfn, u64 frames, bool follows)
{
	unsigned long flags;

	return likely(pfn < frames) && likely(read_flags(page, &flags)) && likely(!(flags & FLAGS)) &&
	       is_in_use(page, follows);
}

static __always_inline const struct page *phys_page(u64 phys)
{
	return pfn_to_page(PHYS_PFN(phys));
}

/* The use that is going to be made of the pages. */
struct use {
	bool writes;
	bool peer_to_peer;
};

/* Checks whether a page frame has memory that a device may reach. Returns enum kfi_helper_refused. */
static inline u32 check_frame(struct use use, u64 pfn)
{
	struct dev_pagemap *pgmap;
	u32 refused = KFI_REFUSED_NONE;

	if (!pfn_valid(pfn))
		return KFI_REFUSED_NO_PAGE;
	if (pfn_to_online_page(pfn))
		return KFI_REFUSED_NONE;
	pgmap = get_dev_pagemap(pfn);
	if (!pgmap)
		return KFI_REFUSED_OFFLINE;
	if (pgmap->type == MEMORY_DEVICE_PRIVATE || pgmap->type == MEMORY_DEVICE_COHERENT)
		refused = KFI_REFUSED_DEVICE_PRIVATE;
	else if (pgmap->type == MEMORY_DEVICE_PCI_P2PDMA && !use.peer_to_peer)
		refused = KFI_REFUSED_PEER_TO_PEER;
	put_dev_pagemap(pgmap);
	return refused;
}

/* Returns why a page must not be registered: enum kfi_helper_refused. Any context. */
static noinline __maybe_unused u32 check_page(struct use use, u64 pfn, bool follows)
{
	u32 refused = check_frame(use, pfn);
	const struct page *page, *head;

	if (refused)
		return refused;
	page = pfn_to_page(pfn);
	if (is_zero_pfn(pfn) && use.writes)
		return KFI_REFUSED_ZERO;
	head = compound_head(page);
	/* ZONE_DEVICE pages and KFENCE pages have PG_reserved set. */
	if (PageReserved(page) && !is_zero_pfn(pfn) && !is_zone_device_page(page) && !PageSlab(head) &&
	    !PageLargeKmalloc(head))
		return KFI_REFUSED_RESERVED;
	if (is_page_hwpoison(page))
		return KFI_REFUSED_POISONED;
	if (!PageReserved(page) && !is_zone_device_page(page) && has_no_owner(page, follows))
		return KFI_REFUSED_FREE;
	return KFI_REFUSED_NONE;
}

#endif /* KFI_PAGE_CHECK_H */
