/* SPDX-License-Identifier: GPL-2.0 */
/* Transfers of each kind, for tests in which something fails whatever is transferred. */
#ifndef KFI_TEST_EP_KINDS_H
#define KFI_TEST_EP_KINDS_H

#include "ep.h"

/* How many there are; the first is a receive of the second side, the others are of the first one. */
#define EP_KINDS	11
#define EP_KIND_SEND	1
#define EP_KIND_PIECES	5

/* How long the memory is that they need, and the region in it, which is in its second half. */
#define EP_KINDS_LEN	256

/* The region of the second side. */
int ep_kinds_region(struct ep_pair *p, u8 *mem, struct kfid_mr **mr);

/* One transfer of a kind; its context is its number, counted from 1. */
ssize_t ep_kind_post(struct ep_pair *p, u8 *mem, struct kfid_mr *mr, unsigned int kind);

/* Whether a receive must have been posted before it, and whether it completes if it ends well. */
bool ep_kind_needs_receive(unsigned int kind);
bool ep_kind_completes(unsigned int kind);

/* Waits until one that was accepted has ended well, and takes its completions. */
void ep_kind_ends(struct kfi_test *t, struct ep_pair *p, u8 *mem, struct kfid_mr *mr,
		  unsigned int kind);

#endif /* KFI_TEST_EP_KINDS_H */
