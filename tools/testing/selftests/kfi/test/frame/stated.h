/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls that may sleep, made by a task that is not TASK_RUNNING.
 *
 * A thread makes the calls; the thread of the test watches it. A call that does not return fails the case, and is
 * then woken again and again until it returns.
 */
#ifndef KFI_TEST_STATED_H
#define KFI_TEST_STATED_H

#include <linux/completion.h>
#include <linux/sched.h>

#include "ktap.h"

/**
 * struct stated - a thread that makes calls in a task state
 * @t: The case.
 * @run: The function of the thread.
 * @state: The task state.
 * @call: The call that is under way, or NULL.
 * @calls: How many calls have returned.
 * @done: The thread is about to exit.
 */
struct stated {
	struct kfi_test *t;
	void (*run)(struct stated *s);
	unsigned int state;
	const char *call;
	unsigned int calls;
	struct completion done;
};

/* The states, by the variant of a case. */
#define STATED_VARIANTS	(BIT(0) | BIT(1))

const char *stated_name(unsigned int variant);

/* Runs @run in a thread. Its calls are made in the state of the case's variant. */
void stated_run(struct kfi_test *t, void (*run)(struct stated *s));

void stated_begin(struct stated *s, const char *call);
void stated_end(struct stated *s);

/* Evaluates a call in the state. */
#define STATED(s, call)								\
({										\
	typeof(call) __returned;						\
										\
	stated_begin(s, #call);							\
	__returned = (call);							\
	stated_end(s);								\
	__returned;								\
})

#endif /* KFI_TEST_STATED_H */
