/* SPDX-License-Identifier: GPL-2.0 */
/* Mapped scatterlists of pages of which no two are neighbours. */
#ifndef KFI_TEST_SCATTERED_LIST_H
#define KFI_TEST_SCATTERED_LIST_H

#include "errors.h"

/* Three times as many as are looked at without a look at how many there are, and some. */
#define PAGES	53
/* More than are judged in one go, after the first, which is judged by itself; and some. */
#define TOGETHER	256
#define LONG		(1 + TOGETHER + PAGES)

/* What they are taken from, which is in one part of the memory map; so are two that follow each other, and a larger one. */
#define BLOCK_ORDER	9
#define PAGES_END	384
#define PAIR_AT		420
#define LARGE_AT	448
#define LARGE_ORDER	3

/*
 * A list, with room for one entry more in each of its parts; and its pages, every other one of a block, and then those
 * between, mapped one behind the other, with one more at either end.
 */
struct scattered {
	struct reg_req req;
	struct scatterlist sg[LONG + 1];
	struct scatterlist rest[LONG + 1];
	struct scatterlist *last;
	struct page *pages[LONG];
	struct page *block;
	u8 *mem;
};

/**
 * scattered_open() - Makes room for a list, and finds its pages
 * @t: The test, whose variant is the call.
 *
 * Returns NULL after a failure that has been reported, or in a case that was skipped.
 */
struct scattered *scattered_open(struct kfi_test *t);

void scattered_close(struct kfi_test *t, struct scattered *s);

/* The first @count pages, of which those from @cut on are in a part of their own; none if that is 0. */
void scattered_fill(struct scattered *s, unsigned int count, unsigned int cut);

/* Makes an entry one of a page. */
void scattered_set(struct scatterlist *sg, struct page *page);

/* Registers the list, and looks at each byte of it from the other side if it is @whole. */
int scattered_reg(struct kfi_test *t, struct scattered *s, bool whole);

/* The same by both ways, which comes to the same. */
int scattered_by_both(struct kfi_test *t, struct scattered *s, bool whole);

#endif /* KFI_TEST_SCATTERED_LIST_H */
