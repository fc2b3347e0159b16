/* SPDX-License-Identifier: GPL-2.0 */
/* Connecting, where anything may fail. */
#ifndef KFI_TEST_EP_ATTEMPT_H
#define KFI_TEST_EP_ATTEMPT_H

#include "ep.h"

/* The outcome: a connection, a call that was refused, or an event that reports a failure. */
enum ep_outcome { EP_UP, EP_REFUSED, EP_FAILED, EP_OUTCOMES };

/*
 * Connects the two sides of @p, and sends a message. Both are open and the listener listens, but
 * they have no endpoints yet. Each step may fail, but must report that within a bounded time. Any
 * other fault is reported.
 */
enum ep_outcome ep_attempt(struct kfi_test *t, struct ep_pair *p);

/* Closes the endpoints that @p has. */
void ep_attempt_close(struct kfi_test *t, struct ep_pair *p);

#endif /* KFI_TEST_EP_ATTEMPT_H */
