// SPDX-License-Identifier: GPL-2.0
/*
 * Whether a consumer's scatterlist can be handed on as it is: each entry a page about which there is nothing to be
 * said. Many are judged in few steps each; what isn't as simple is left to runs.c, which says what there is to be said
 * of it.
 */
#include <linux/unaligned.h>
#include <linux/unroll.h>

#include "place.h"
#include "quick.h"

/* So many are judged in one go, and so many of them without a look at how many there are. */
#define ROW	256
#define STEP	16

/* What is to be seen of many entries and of their pages: or-ed together, but for the types, of which it is what all have. */
struct row {
	unsigned int bytes;
	u64 said;
	unsigned int types;
};

/*
 * What a page has to say: its flags, and whether it is part of a larger one. What is asked of both lies in eight bytes
 * that follow each other.
 */
#if defined(CONFIG_64BIT) && defined(__LITTLE_ENDIAN) && defined(CONFIG_HAVE_EFFICIENT_UNALIGNED_ACCESS)
#define SAID	((u64)KFI_SAID >> 8 | BIT_ULL(56))

static __always_inline u64 said_of(const struct page *page)
{
	BUILD_BUG_ON(offsetof(struct page, flags.f) || offsetof(struct page, compound_info) != 8 ||
		     KFI_SAID & 0xff);
	return get_unaligned((const u64 *)((const u8 *)page + 1));
}
#else
#define SAID	((u64)KFI_SAID | BIT_ULL(63))

static __always_inline u64 said_of(const struct page *page)
{
	return (page->flags.f & KFI_SAID) | (u64)page->compound_info << 63;
}
#endif

/* Which of the frames an entry has; one that there isn't if it is none of theirs, or begins inside of a page. */
static __always_inline u64 index_of(const struct quick *quick, struct scatterlist *sg)
{
	return ror64(sg_dma_address(sg) - quick->addr, PAGE_SHIFT);
}

/* How far the page of an entry is behind the first one, in bytes of the memory map; too far if it is none of theirs. */
static __always_inline u64 offset_of(const struct quick *quick, struct scatterlist *sg)
{
	u64 index;

	if (is_power_of_2(sizeof(struct page)))
		return ror64(sg_dma_address(sg) - quick->addr, PAGE_SHIFT - ilog2(sizeof(struct page)));
	index = index_of(quick, sg);
	return index < quick->frames ? index * sizeof(struct page) : U64_MAX;
}

/*
 * Adds an entry, if its page is no further than @last, and the list goes on behind it where it is. Of pages that may be
 * @mapped the type is asked one by one: it stands where others have how often they are.
 */
static __always_inline bool row_add(struct row *row, const struct quick *quick, u64 last,
				    struct scatterlist *sg, bool mapped)
{
	u64 offset = offset_of(quick, sg);
	const struct page *page;

	if (offset > last || sg->page_link & (SG_CHAIN | SG_END))
		return false;
	/* Each by its offset: an address would take a step of its own. */
	page = (struct page *)(quick->page + offset);
	if (mapped && page_has_type(page))
		return false;
	row->bytes |= sg_dma_len(sg);
	if (!mapped)
		/* A mapping comes and goes meanwhile, */
		row->types &= data_race(page->page_type);
	OPTIMIZER_HIDE_VAR(offset);
	page = (struct page *)(quick->page + offset);
	/* and so do flags that aren't asked for; but the others stay as they are as long as the page has an owner. */
	row->said |= data_race(said_of(page));
	return true;
}

/* Are they pages, of no type, part of no larger one, and without a flag that says something? */
static __always_inline bool row_is_plain(const struct row *row)
{
	return !MANY_ZERO_PAGES && row->bytes == PAGE_SIZE && !(row->said & SAID) &&
	       row->types == UINT_MAX;
}

/*
 * Goes through @most entries, all in one part of the list, as far as that can be done so; not to the last of the list.
 * Returns how many that were, and whether nothing is to be said of them. If not @mapped, nothing is known of those that
 * are.
 */
static __always_inline u64 row_of(const struct quick *quick, struct scatterlist *sg, u64 most,
				  bool mapped, bool *plain)
{
	struct scatterlist *at = sg, *end = sg + most;
	struct row row = { .types = UINT_MAX };
	const struct quick q = *quick;
	u64 last;
	int i;

	*plain = false;
	if (!q.frames)
		return 0;
	last = (q.frames - 1) * sizeof(struct page);
	for (; at + STEP <= end; at += STEP) {
		unrolled_count(STEP)
		for (i = 0; i < STEP; i++)
			/* Which one it is, those who take them one by one find out. */
			if (!row_add(&row, &q, last, &at[i], mapped))
				goto one_by_one;
	}
one_by_one:
	while (at < end && row_add(&row, &q, last, at, mapped))
		at++;
	*plain = at > sg && row_is_plain(&row);
	return at - sg;
}

/* Not inline, either of them: each takes all registers that there are. */
static noinline u64 row_of_any(const struct quick *quick, struct scatterlist *sg, u64 most, bool *plain)
{
	return row_of(quick, sg, most, true, plain);
}

static noinline u64 row_of_unmapped(const struct quick *quick, struct scatterlist *sg, u64 most, bool *plain)
{
	return row_of(quick, sg, most, false, plain);
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

/* The pages of a process are mapped; what the kernel has for itself mostly isn't. */
static __always_inline bool is_mapped(const struct quick *quick, struct scatterlist *sg)
{
	const struct page *page = (struct page *)quick->page + index_of(quick, sg);

	/* For what this is good it may be another a moment later. */
	return data_race(page->page_type) != UINT_MAX;
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
 *
 * There may still be entries that are empty, or that begin inside of a page. Those are seen by the one who maps the
 * list, in pages as large as the machine's: then it has fewer bytes, or the RDMA core ends before such an entry.
 */
bool kfi_helper_plain_list(struct scatterlist *sg, u64 left, bool writes,
			   struct kfi_helper_around *around)
{
	struct quick quick = { .behind = NOWHERE };
	/* The first by itself: where that is most of the others are, and as it is mapped they are. */
	u64 n, singly = 1, row = ROW;
	bool mapped = true, plain;

	quick_see(&quick, &around->seen, true);
	for (;;) {
		if (singly || left == 1) {
			if (!is_plain(around, &quick, sg, writes))
				return false;
			n = 1;
			singly -= singly > 0;
			mapped = is_mapped(&quick, sg);
		} else {
			n = min(left, row);
			n = mapped ? row_of_any(&quick, sg, n, &plain) : row_of_unmapped(&quick, sg, n, &plain);
			if (!plain) {
				/* What is known of so many takes few steps; not what isn't, again and again. */
				row = n ? STEP : row;
				singly = clamp(n, 1, STEP);
				continue;
			}
		}
		quick.behind = sg_dma_address(&sg[n - 1]) + PAGE_SIZE;
		if (!go_on(&sg, n, &left))
			return !left && sg_is_last(sg);
		if (sg_dma_address(sg) == quick.behind)
			return false;
	}
}
