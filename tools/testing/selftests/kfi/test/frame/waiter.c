// SPDX-License-Identifier: GPL-2.0
/* A thread that makes one call which sleeps. */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>

#include "waiter.h"

static int waiter_main(void *arg)
{
	struct waiter *w = arg;

	allow_signal(SIGUSR1);
	w->ret = w->call(w);
	complete(&w->done);
	while (!kthread_should_stop())
		usleep_range(1000, 2000);
	return 0;
}

/* Not only about to: before it is off its processor, it may not be counted as a switch (nvcsw). */
static bool asleep(const struct waiter *w)
{
	return READ_ONCE(w->task->__state) & TASK_INTERRUPTIBLE &&
	       !READ_ONCE(w->task->on_rq) && !READ_ONCE(w->task->on_cpu);
}

bool waiter_start(struct kfi_test *t, struct waiter *w)
{
	int i;

	init_completion(&w->done);
	w->task = kthread_run(waiter_main, w, "kfi_waiter");
	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(w->task), 0))
		return false;
	for (i = 0; i < 5000 && !asleep(w) && !completion_done(&w->done); i++)
		usleep_range(1000, 2000);
	return true;
}

bool waiter_sleeps_on(struct waiter *w)
{
	return !wait_for_completion_timeout(&w->done, msecs_to_jiffies(30));
}

bool waiter_end(struct kfi_test *t, struct waiter *w, ssize_t want)
{
	bool ok = EXPECT(t, wait_for_completion_timeout(&w->done, 60 * HZ), "it waits on");

	if (!ok) {
		w->rescue(w);
		wait_for_completion(&w->done);
	}
	kthread_stop(w->task);
	return EXPECT_EQ(t, w->ret, want) && ok;
}
