/* SPDX-License-Identifier: GPL-2.0 */
/* Mapped scatterlists of pages without neighbours. */
#ifndef KFI_TEST_SCATTERED_LIST_H
#define KFI_TEST_SCATTERED_LIST_H

#include "errors.h"

#define PAGES	53

/* The block that has them, two pages that follow each other, and a larger page. */
#define BLOCK_ORDER	7
#define PAIR_AT		112
#define LARGE_AT	120
#define LARGE_ORDER	3

/*
 * A list, with room for one entry more in each of its parts; and its pages, every other one of a block, mapped one
 * behind the other, with one more at either end.
 */
struct scattered {
	struct reg_req req;
	struct scatterlist sg[PAGES + 1];
	struct scatterlist rest[PAGES + 1];
	struct scatterlist *last;
	struct page *pages[PAGES];
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

/* The first @count pages. Those from @cut on are in a part of their own; none if that is 0. */
void scattered_fill(struct scattered *s, unsigned int count, unsigned int cut);

/* Makes an entry one of a page. */
void scattered_set(struct scatterlist *sg, struct page *page);

/* Registers the list, and looks at each byte of it from the other side if it is @whole. */
int scattered_reg(struct kfi_test *t, struct scattered *s, bool whole);

/* The same by both ways, which comes to the same. */
int scattered_by_both(struct kfi_test *t, struct scattered *s, bool whole);

#endif /* KFI_TEST_SCATTERED_LIST_H */
