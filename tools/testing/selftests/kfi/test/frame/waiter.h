/* SPDX-License-Identifier: GPL-2.0 */
/* A thread that makes one call which sleeps. */
#ifndef KFI_TEST_WAITER_H
#define KFI_TEST_WAITER_H

#include <linux/completion.h>
#include <linux/sched.h>

#include "ktap.h"

/**
 * struct waiter - a thread that waits once
 * @call: Its call. SIGUSR1 gets through to it.
 * @rescue: Ends a call that should have ended by itself, so that the module can go.
 * @ret: The return value of the call.
 * @task: The thread.
 * @done: The call has returned.
 */
struct waiter {
	ssize_t (*call)(struct waiter *w);
	void (*rescue)(struct waiter *w);
	ssize_t ret;
	struct task_struct *task;
	struct completion done;
};

/* Returns once the thread sleeps in its call, or has come out of it. */
bool waiter_start(struct kfi_test *t, struct waiter *w);

/* Does it sleep on? Given some time to prove otherwise. */
bool waiter_sleeps_on(struct waiter *w);

/* It comes back, with @want. */
bool waiter_end(struct kfi_test *t, struct waiter *w, ssize_t want);

#endif /* KFI_TEST_WAITER_H */
