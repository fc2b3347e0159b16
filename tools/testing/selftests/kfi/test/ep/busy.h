/* SPDX-License-Identifier: GPL-2.0 */
/* A connection over which somebody transfers whatever there is, until it is over. */
#ifndef KFI_TEST_EP_BUSY_H
#define KFI_TEST_EP_BUSY_H

#include "ep.h"
#include "job.h"

struct busy;

/* Connects, and lets a thread write, read and send, as much as there is room for. */
struct busy *busy_start(struct kfi_test *t);

/* Its connection; NULL if there is none. */
struct ep_pair *busy_pair(struct busy *b);

/*
 * When the connection is over: the thread was refused then, and not before,
 * but for want of memory; and all that was accepted has
 * ended, once. Closes what there is.
 */
void busy_end(struct kfi_test *t, struct busy *b);

#endif /* KFI_TEST_EP_BUSY_H */
