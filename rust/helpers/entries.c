// SPDX-License-Identifier: GPL-2.0
/*
 * Whether a consumer's scatterlist can be handed on as it is: each entry a page about which there is nothing to be
 * said. Many are judged in few steps each; what isn't as simple is left to runs.c, which says what there is to be said
 * of it.
 */
#include <linux/unroll.h>

#include "place.h"
#include "quick.h"

/* So many are judged in one go. */
#define ROW	16

/* Which of the frames an entry has; one that there isn't if it is none of theirs, or begins inside of a page. */
static __always_inline u64 index_of(const struct quick *quick, struct scatterlist *sg)
{
	return ror64(sg_dma_address(sg) - quick->addr, PAGE_SHIFT);
}

/*
 * Are so many entries, all in one part of the list, pages of frames that are known, mapped nowhere, of no type, part of
 * no larger one, and without a flag that says something? If not, nothing is known of them.
 */
static __always_inline bool is_plain_row(const struct quick *quick, struct scatterlist *sg)
{
	unsigned long flags = 0, compound = 0;
	unsigned int types = UINT_MAX;
	int i;

	unrolled_count(ROW)
	for (i = 0; i < ROW; i++) {
		u64 index = index_of(quick, &sg[i]);
		const struct page *page;

		/* Behind one that leads elsewhere, and behind the last, there may be nothing more. */
		if (sg[i].page_link & (i + 1 < ROW ? SG_CHAIN | SG_END : SG_CHAIN) ||
		    index >= quick->frames || sg_dma_len(&sg[i]) != PAGE_SIZE)
			return false;
		page = (struct page *)quick->page + index;
		/* A mapping comes and goes meanwhile, */
		types &= data_race(page->page_type);
		/* and so do flags that aren't asked for; */
		flags |= data_race(page->flags.f);
		/* but what this says stays as it is as long as the page has an owner. */
		compound |= data_race(page->compound_info);
		/* One after the other: to put them together in another order takes registers that aren't there. */
		OPTIMIZER_HIDE_VAR(types);
		OPTIMIZER_HIDE_VAR(flags);
		OPTIMIZER_HIDE_VAR(compound);
	}
	return !MANY_ZERO_PAGES && !(flags & KFI_SAID) && !(compound & 1) && types == UINT_MAX;
}

/* Finds out whether the place of an address, about which nothing is known, is unremarkable. May sleep. */
static bool is_plain_there(struct kfi_helper_around *around, u64 addr, bool writes)
{
	u64 pfn;

	return (kfi_quick_pfn((void *)(uintptr_t)addr, &pfn) &&
		kfi_is_plain_place(pfn, writes, false, &around->seen)) ||
	       (kfi_linear_pfn(around, addr, &pfn) && quick_look(&around->seen, pfn, writes));
}

/* Is an entry a page about which there is nothing to be said? May sleep. */
static bool is_plain(struct kfi_helper_around *around, struct quick *quick, struct scatterlist *sg,
		     bool writes)
{
	u64 index = index_of(quick, sg);

	if (index >= quick->frames) {
		if (!is_plain_there(around, sg_dma_address(sg), writes))
			return false;
		quick_see(quick, &around->seen, true);
		index = index_of(quick, sg);
	}
	return !sg_is_chain(sg) && sg_dma_len(sg) == PAGE_SIZE && index < quick->frames &&
	       quick_is_plain(quick, (struct page *)quick->page + index, index);
}

/*
 * Goes on behind @done entries, in one part of the list, if there are more @left then, and the list has more. If not, @sg
 * is the last of them.
 */
static __always_inline bool go_on(struct scatterlist **sg, u64 done, u64 *left)
{
	struct scatterlist *last = *sg + done - 1;

	*sg = last;
	*left -= done;
	if (!*left || sg_is_last(last))
		return false;
	*sg = sg_next(last);
	return true;
}

/**
 * kfi_helper_plain_list() - Can a scatterlist be handed on to a device that takes kernel addresses?
 * @sg: The list.
 * @left: How many entries count; not 0.
 * @writes: Whether the pages are to be written to.
 * @around: What is known of their surroundings; there may be more afterwards.
 *
 * Returns true if each entry is a whole page about which there is nothing to be said; if they are not neighbours, for
 * which a look now and then is enough, since such are better joined; and if the last one says that it is, without which
 * the RDMA core looks behind it. If it is false, it isn't known yet. May sleep.
 */
bool kfi_helper_plain_list(struct scatterlist *sg, u64 left, bool writes,
			   struct kfi_helper_around *around)
{
	struct quick quick = { .behind = NOWHERE };
	u64 n;

	quick_see(&quick, &around->seen, true);
	/* That is where most of them are. */
	if (!is_plain(around, &quick, sg, writes))
		return false;
	for (;;) {
		while (left >= ROW && is_plain_row(&quick, sg)) {
			if (sg_dma_address(sg) + PAGE_SIZE == sg_dma_address(&sg[1]))
				return false;
			if (!go_on(&sg, ROW, &left))
				return !left && sg_is_last(sg);
		}
		/* Where there is no row, none is looked for at each of them. */
		for (n = min(left, ROW); n; n--) {
			if (sg_dma_address(sg) == quick.behind || !is_plain(around, &quick, sg, writes))
				return false;
			quick.behind = sg_dma_address(sg) + PAGE_SIZE;
			if (!go_on(&sg, 1, &left))
				return !left && sg_is_last(sg);
		}
	}
}
