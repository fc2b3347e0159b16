/* SPDX-License-Identifier: GPL-2.0 */
/* Regions that are filled with memory in any context (kfi_reuse_ops): what the files of their cases share. */
#ifndef KFI_TEST_EP_REUSE_H
#define KFI_TEST_EP_REUSE_H

#include <linux/bvec.h>

#include <kfi_reuse_ext.h>

#include "ep.h"

/* The memory of a full region, in pages that are scattered over memory. It begins inside of the first one. */
#define REUSE_PAGES	5
#define REUSE_OFFSET	512
#define REUSE_LEN	(REUSE_PAGES * PAGE_SIZE - REUSE_OFFSET)

/* The message of the second side about its region. */
struct reuse_told {
	u64 addr;
	u64 key;
};

/**
 * struct reuse - a connection, and a region of the second side's
 * @p: The connection.
 * @ops: The calls.
 * @mr: The region; NULL if it is closed.
 * @pages: The second side's memory.
 * @bv: The same.
 * @here: The first side's memory.
 * @out: The message, as it is sent.
 * @in: The same, as it arrives.
 * @got: Room for the message that invalidates the key.
 */
struct reuse {
	struct ep_pair *p;
	struct kfi_reuse_ops *ops;
	struct kfid_mr *mr;
	struct page *pages[REUSE_PAGES];
	struct bio_vec bv[REUSE_PAGES];
	u8 *here;
	struct reuse_told out;
	struct reuse_told in;
	u64 got;
};

/* NULL is a failure that has been reported; or the case is skipped: the provider has no reusable regions. */
struct reuse *reuse_open(struct kfi_test *t, const struct ep_wants *wants);
void reuse_close(struct kfi_test *t, struct reuse *r);

/* Calls with a lock held and interrupts off. */
int reuse_fill_locked(struct reuse *r, unsigned int count, u64 access, u64 flags);
int reuse_empty_locked(struct reuse *r);

/* Sends the place and the key of the region; and has them arrive. */
ssize_t reuse_send(struct reuse *r);
bool reuse_arrives(struct kfi_test *t, struct reuse *r);

/* The peer invalidates the key, which the second side hears of. */
bool reuse_invalidated(struct kfi_test *t, struct reuse *r);

/* The memory of the region is the first side's pattern, or becomes it. */
bool reuse_is(struct reuse *r, unsigned int shift);
void reuse_set(struct reuse *r, unsigned int shift);

/* Empties the region, at once if that is possible. Whether it was. */
bool reuse_empty(struct kfi_test *t, struct reuse *r);

#endif /* KFI_TEST_EP_REUSE_H */
