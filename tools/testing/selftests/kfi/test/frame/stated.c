// SPDX-License-Identifier: GPL-2.0
/* Calls that may sleep, made by a task that is not TASK_RUNNING: see stated.h. */
#include <linux/kthread.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "stated.h"

/* No call here takes that long, on any machine. */
#define PATIENCE	(60 * HZ)

static const unsigned int states[] = { TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE };

const char *stated_name(unsigned int variant)
{
	return variant ? "uninterruptible" : "interruptible";
}

void stated_begin(struct stated *s, const char *call)
{
	WRITE_ONCE(s->call, call);
	set_current_state(s->state);
	/* Else a kernel with CONFIG_DEBUG_ATOMIC_SLEEP warns: it takes the state for the caller's mistake. */
	sched_annotate_sleep();
}

void stated_end(struct stated *s)
{
	unsigned int state = get_current_state();

	__set_current_state(TASK_RUNNING);
	EXPECT(s->t, state == TASK_RUNNING || state == s->state, "%s returns in the state %#x",
	       s->call, state);
	WRITE_ONCE(s->calls, s->calls + 1);
	WRITE_ONCE(s->call, NULL);
}

static int stated_main(void *arg)
{
	struct stated *s = arg;

	s->run(s);
	/* @s is gone once the thread is known to be done, but this module isn't. */
	kthread_complete_and_exit(&s->done, 0);
}

/* Waits until the thread is done. Wakes it when a call has not returned in time. */
static void watch(struct kfi_test *t, struct stated *s, struct task_struct *task)
{
	unsigned long patience = PATIENCE, since = jiffies;
	unsigned int calls = 0;
	bool hangs = false;

	while (!wait_for_completion_timeout(&s->done, HZ / 20)) {
		const char *call = READ_ONCE(s->call);
		unsigned int now = READ_ONCE(s->calls);

		if (now != calls) {
			calls = now;
			since = jiffies;
			hangs = false;
		}
		if (!call || time_before(jiffies, since + patience))
			continue;
		if (!hangs)
			EXPECT(t, false, "%s does not return", call);
		hangs = true;
		/* The case has failed: the others that hang need no more than to be woken. */
		patience = HZ / 2;
		wake_up_process(task);
	}
}

void stated_run(struct kfi_test *t, void (*run)(struct stated *s))
{
	struct stated *s = kzalloc_obj(*s);
	struct task_struct *task;

	if (!EXPECT(t, s, "no memory"))
		return;
	*s = (struct stated) { .t = t, .run = run, .state = states[t->variant] };
	init_completion(&s->done);
	task = kthread_create(stated_main, s, "kfi_stated");
	if (EXPECT_EQ(t, PTR_ERR_OR_ZERO(task), 0)) {
		get_task_struct(task);
		wake_up_process(task);
		watch(t, s, task);
		put_task_struct(task);
		EXPECT(t, s->calls, "no call was made");
	}
	kfree(s);
}
