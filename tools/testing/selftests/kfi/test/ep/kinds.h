/* SPDX-License-Identifier: GPL-2.0 */
/* Transfers of each kind, for tests in which something fails whatever is transferred. */
#ifndef KFI_TEST_EP_KINDS_H
#define KFI_TEST_EP_KINDS_H

#include "ep.h"

/* How many there are; the first is a receive of the second side, the others are of the first one. */
#define EP_KINDS	14
#define EP_KIND_SEND	1
#define EP_KIND_WRITE	2
#define EP_KIND_PIECES	5

/* The data of the kinds that have some for the peer's completion queue. */
#define EP_KINDS_DATA	0x89abcdef

/**
 * struct ep_kind - the completions of a kind of transfer
 * @flags: The flags of its own completion, or failure.
 * @peer_flags: The flags of the receive that it takes; 0 if it takes none.
 * @len: How many bytes it moves.
 * @data: The remote CQ data of the receive that it takes.
 * @silent: True if the transfer reports nothing if it ends well.
 */
struct ep_kind {
	u64 flags;
	u64 peer_flags;
	size_t len;
	u64 data;
	bool silent;
};

extern const struct ep_kind ep_kinds[EP_KINDS];

/* The context of a transfer of a kind. */
static inline void *ep_kind_context(unsigned int kind)
{
	return (void *)(kind + 1UL);
}

/* The context of its failure: a silent transfer has none. */
static inline void *ep_kind_failed_context(unsigned int kind)
{
	return ep_kinds[kind].silent ? NULL : ep_kind_context(kind);
}

/* How long the memory is that they need, and the region in it, which is in its second half. */
#define EP_KINDS_LEN	256

/* The region of the second side. */
int ep_kinds_region(struct ep_pair *p, u8 *mem, struct kfid_mr **mr);

/* Posts one transfer of a kind, to the address @p->addr. */
ssize_t ep_kind_post(struct ep_pair *p, u8 *mem, struct kfid_mr *mr, unsigned int kind);

/* Whether a receive must have been posted before it, and whether it completes if it ends well. */
static inline bool ep_kind_needs_receive(unsigned int kind)
{
	return ep_kinds[kind].peer_flags;
}

static inline bool ep_kind_completes(unsigned int kind)
{
	return !ep_kinds[kind].silent;
}

/* Waits until one that was accepted has ended well, and checks all that its completions say. */
void ep_kind_ends(struct kfi_test *t, struct ep_pair *p, u8 *mem, struct kfid_mr *mr,
		  unsigned int kind);

#endif /* KFI_TEST_EP_KINDS_H */
