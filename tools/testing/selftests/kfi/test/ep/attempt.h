/* SPDX-License-Identifier: GPL-2.0 */
/* Connecting, where anything may fail. */
#ifndef KFI_TEST_EP_ATTEMPT_H
#define KFI_TEST_EP_ATTEMPT_H

#include "ep.h"

/* What has come of it: a connection, a call that was refused, or an event that says that it failed. */
enum ep_outcome { EP_UP, EP_REFUSED, EP_FAILED, EP_OUTCOMES };

/*
 * Connects the two sides of @p, which are open and whose listener listens, but which have no endpoints
 * yet, and sends a message. Each step may fail, but has to say so, within a bounded time. What else is
 * wrong is reported.
 */
enum ep_outcome ep_attempt(struct kfi_test *t, struct ep_pair *p);

/* Closes the endpoints that @p has. */
void ep_attempt_close(struct kfi_test *t, struct ep_pair *p);

#endif /* KFI_TEST_EP_ATTEMPT_H */
