// SPDX-License-Identifier: GPL-2.0
/* One call in a thread of its own: see job.h. */
#include <linux/delay.h>
#include <linux/kthread.h>

#include "job.h"

#define PATIENCE	(120 * HZ)

static int job_main(void *arg)
{
	struct job *j = arg;

	j->ret = j->run(j->data);
	/* The job is gone once it is known to be done, but this module isn't. */
	kthread_complete_and_exit(&j->done, 0);
}

/* Ends with job_end(), also when it could not be started. */
bool job_start(struct kfi_test *t, struct job *j, int (*run)(void *data), void *data)
{
	struct task_struct *task;

	*j = (struct job) { .run = run, .data = data, .ret = -ECHILD };
	init_completion(&j->done);
	task = kthread_run(job_main, j, "kfi_test_job");
	j->started = EXPECT_EQ(t, PTR_ERR_OR_ZERO(task), 0);
	return j->started;
}

/*
 * Waits until the call has returned, and returns its return value. A call that takes too long has
 * failed.
 */
int job_end(struct kfi_test *t, struct job *j)
{
	if (!j->started)
		return -ECHILD;
	if (!wait_for_completion_timeout(&j->done, PATIENCE)) {
		EXPECT(t, false, "the call doesn't return");
		/* The job is on the caller's stack. */
		while (!wait_for_completion_timeout(&j->done, PATIENCE))
			;
	}
	j->started = false;
	return j->ret;
}

/* Waits until one of two calls has returned, the other not being waited for. False: neither does. */
bool job_either_done(struct job *a, struct job *b)
{
	unsigned long end = jiffies + PATIENCE;

	while (!job_is_done(a) && !job_is_done(b)) {
		if (time_after(jiffies, end))
			return false;
		msleep(1);
	}
	return true;
}
