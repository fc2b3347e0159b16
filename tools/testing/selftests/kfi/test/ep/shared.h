/* SPDX-License-Identifier: GPL-2.0 */
/* Receives that endpoints share: what the files of these cases have in common. */
#ifndef KFI_TEST_SHARED_H
#define KFI_TEST_SHARED_H

#include "ep.h"

#define LEN		64
#define SLOTS		16
#define MOST		8

static inline void *ctx(unsigned long n)
{
	return (void *)(0x5a0e0000 + n);
}

/**
 * struct sharing - connections to one domain, which share their receives there
 * @p: The listener, and the domains.
 * @srx: The context, in the domain of the second side; it reports to that side's @rx.
 * @other: Another one, or NULL. If there is one, two threads bind each endpoint that joins at once, one to
 *	each; @srx is the one that it was bound to then.
 * @active: The first ends.
 * @passive: The second ends, which share.
 * @buf: Where the receives are, LEN bytes each.
 */
struct sharing {
	struct ep_pair *p;
	struct kfid_ep *srx;
	struct kfid_ep *other;
	struct kfid_ep *active[MOST];
	struct kfid_ep *passive[MOST];
	u8 *buf;
};

/* An endpoint of the second side that is to share its receives, with nothing bound for these. */
struct kfid_ep *sharing_ep(struct kfi_test *t, struct ep_pair *p, struct kfi_info *info);

bool sharing_post(struct kfi_test *t, struct sharing *s, int i);

/* Another connection to the listener, whose second end shares. */
bool sharing_join(struct kfi_test *t, struct sharing *s, int i);
void sharing_leave(struct kfi_test *t, struct sharing *s, int i);

/* A context with a completion queue, and receives; no connection. */
bool sharing_begin(struct kfi_test *t, struct sharing *s, const struct ep_wants *wants,
		   int receives);
void sharing_end(struct kfi_test *t, struct sharing *s);

#endif /* KFI_TEST_SHARED_H */
