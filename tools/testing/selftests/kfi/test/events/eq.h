/* SPDX-License-Identifier: GPL-2.0 */
/* The suite of event queues: what its files share. */
#ifndef KFI_TEST_EQ_H
#define KFI_TEST_EQ_H

#include <kfi_eq.h>

#include "ktap.h"

/* The largest queue there is. */
#define EQ_MOST	65536

/* A queue for events of the test's own, or NULL, which is reported. */
struct kfid_eq *eq_open(struct kfi_test *t, size_t size, enum kfi_wait_obj wait_obj,
			kfi_event_handler handler, void *context);

/* Opening a queue gives @want, and no queue. */
void eq_refused(struct kfi_test *t, struct kfid_fabric *fabric, struct kfi_eq_attr *attr,
		int want);

/* A handler that does nothing. */
void eq_no_handler(struct kfid_eq *eq, void *context);

/* Puts in an event with @data; 0 or an errno. Takes one out: its data or an errno. Any context. */
int eq_put(struct kfid_eq *eq, u64 data);
ssize_t eq_get(struct kfid_eq *eq);

/* The same, but waits. */
ssize_t eq_wait(struct kfid_eq *eq, int timeout);

/* eq_wait.c */
void eq_timeout_case(struct kfi_test *t);
void eq_wakeup_case(struct kfi_test *t);
void eq_signal_case(struct kfi_test *t);
void eq_readers_case(struct kfi_test *t);

/* eq_handler.c */
void eq_handler_case(struct kfi_test *t);
void eq_handler_sleeps_case(struct kfi_test *t);
void eq_handler_closes_case(struct kfi_test *t);
void eq_close_case(struct kfi_test *t);
void eq_close_twice_case(struct kfi_test *t);

#endif /* KFI_TEST_EQ_H */
