/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An area of addresses whose pages are exchanged in place.
 *
 * The area is a vmap() of the test's own, and what is behind it is changed by writing its page
 * table entries: nothing else can get the addresses meanwhile, and no allocator has to be lucky.
 * No CPU ever uses the area, so no CPU can remember what was there: what the pages hold is looked
 * at, and written, by where else they are.
 */
#ifndef KFI_TEST_SWAP_H
#define KFI_TEST_SWAP_H

#include <linux/mm.h>

#include "ktap.h"

#define SWAP_PAGES	16

/**
 * struct swap_area - addresses with one or the other set of pages behind them
 * @pages: Both sets. The pages of set 0 are neighbours, so that a device may be given them as
 *	larger ones. The pages of set 1 are neighbours in reverse order, so that it can't.
 * @addr: The first address. Not to be used but for registering.
 */
struct swap_area {
	struct page *pages[2][SWAP_PAGES];
	u8 *addr;
};

struct swap_area *swap_open(struct kfi_test *t);
void swap_close(struct swap_area *a);
bool swap_put(struct kfi_test *t, struct swap_area *a, int set);
bool swap_take_away(struct kfi_test *t, struct swap_area *a);

void swap_fill(struct swap_area *a, int set, unsigned int shift);
bool swap_is(struct swap_area *a, int set, size_t offset, size_t len, unsigned int shift);

#endif /* KFI_TEST_SWAP_H */
