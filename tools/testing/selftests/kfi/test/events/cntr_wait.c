// SPDX-License-Identifier: GPL-2.0
/* Waiting for a counter: what ends it, and what doesn't. */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>

#include "cntr.h"

#define LONG_MS		60000

/**
 * struct waiter - a thread that waits once
 * @cntr: For what.
 * @threshold: For which value.
 * @timeout: How long.
 * @ret: What the wait returned.
 * @task: The thread.
 * @done: The wait has returned.
 */
struct waiter {
	struct kfid_cntr *cntr;
	u64 threshold;
	int timeout;
	int ret;
	struct task_struct *task;
	struct completion done;
};

static int waiter_main(void *arg)
{
	struct waiter *w = arg;

	allow_signal(SIGUSR1);
	w->ret = kfi_cntr_wait(w->cntr, w->threshold, w->timeout);
	complete(&w->done);
	while (!kthread_should_stop())
		usleep_range(1000, 2000);
	return 0;
}

static bool asleep(const struct waiter *w)
{
	return READ_ONCE(w->task->__state) & TASK_INTERRUPTIBLE;
}

/* Returns once the thread sleeps in kfi_cntr_wait(), or has come out of it. */
static bool wait_start(struct kfi_test *t, struct waiter *w, struct kfid_cntr *cntr, u64 threshold,
		       int timeout)
{
	int i;

	w->cntr = cntr;
	w->threshold = threshold;
	w->timeout = timeout;
	init_completion(&w->done);
	w->task = kthread_run(waiter_main, w, "kfi_waiter");
	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(w->task), 0))
		return false;
	for (i = 0; i < 5000 && !asleep(w) && !completion_done(&w->done); i++)
		usleep_range(1000, 2000);
	return true;
}

/* Does it sleep on? Given some time to prove otherwise. */
static bool still_waits(struct waiter *w)
{
	return !wait_for_completion_timeout(&w->done, msecs_to_jiffies(30));
}

static bool wait_end(struct kfi_test *t, struct waiter *w, int want)
{
	bool ok = EXPECT(t, wait_for_completion_timeout(&w->done, 60 * HZ), "it waits on");

	if (!ok) {
		/* The thread must come back before the module goes. */
		kfi_cntr_set(w->cntr, w->threshold);
		wait_for_completion(&w->done);
	}
	kthread_stop(w->task);
	return EXPECT_EQ(t, w->ret, want) && ok;
}

/* Values that are reached already; a counter that can't be waited for. */
void cntr_threshold_case(struct kfi_test *t)
{
	struct kfid_cntr *cntr = cntr_open(t, KFI_WAIT_UNSPEC);

	if (!cntr)
		return;
	EXPECT_EQ(t, kfi_cntr_wait(cntr, 0, 0), 0);
	EXPECT_EQ(t, kfi_cntr_wait(cntr, 1, 0), -KFI_ETIMEDOUT);
	kfi_cntr_add(cntr, 5);
	/* Failures of before don't count. */
	kfi_cntr_adderr(cntr, 5);
	EXPECT_EQ(t, kfi_cntr_wait(cntr, 4, 0), 0);
	EXPECT_EQ(t, kfi_cntr_wait(cntr, 5, -1), 0);
	EXPECT_EQ(t, kfi_cntr_wait(cntr, 6, 0), -KFI_ETIMEDOUT);
	EXPECT_EQ(t, kfi_cntr_wait(cntr, U64_MAX, 0), -KFI_ETIMEDOUT);
	kfi_cntr_set(cntr, U64_MAX);
	EXPECT_EQ(t, kfi_cntr_wait(cntr, U64_MAX, -1), 0);
	cntr_close(t, cntr);

	cntr = cntr_open(t, KFI_WAIT_NONE);
	if (!cntr)
		return;
	EXPECT_EQ(t, kfi_cntr_wait(cntr, 0, 0), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_cntr_wait(cntr, 1, -1), -KFI_ENOSYS);
	cntr_close(t, cntr);
}

void cntr_timeout_case(struct kfi_test *t)
{
	static const int timeouts[] = { 1, 20, 150 };
	struct kfid_cntr *cntr = cntr_open(t, KFI_WAIT_QUEUE);
	int i;

	for (i = 0; cntr && i < ARRAY_SIZE(timeouts); i++) {
		u64 start = get_jiffies_64();

		EXPECT_EQ(t, kfi_cntr_wait(cntr, 1, timeouts[i]), -KFI_ETIMEDOUT);
		expect_waited(t, start, timeouts[i]);
	}
	if (cntr)
		cntr_close(t, cntr);
}

/* Woken when it is reached, by adding and by setting, and not before. */
void cntr_woken_case(struct kfi_test *t)
{
	struct kfid_cntr *cntr = cntr_open(t, KFI_WAIT_UNSPEC);
	unsigned long switches;
	struct waiter w;
	int i;

	if (!cntr)
		return;
	if (wait_start(t, &w, cntr, 1000, -1)) {
		switches = READ_ONCE(w.task->nvcsw);
		for (i = 0; i < 999; i++)
			kfi_cntr_add(cntr, 1);
		kfi_cntr_adderr(cntr, 0);
		EXPECT(t, still_waits(&w), "%llu were enough", kfi_cntr_read(cntr));
		EXPECT_EQ(t, READ_ONCE(w.task->nvcsw), switches);
		kfi_cntr_add(cntr, 1);
		wait_end(t, &w, 0);
	}
	if (wait_start(t, &w, cntr, 5000, LONG_MS)) {
		kfi_cntr_set(cntr, 4999);
		EXPECT(t, still_waits(&w), "%llu were enough", kfi_cntr_read(cntr));
		kfi_cntr_set(cntr, 0);
		kfi_cntr_set(cntr, 7000);
		wait_end(t, &w, 0);
	}
	cntr_close(t, cntr);
}

/* A change of the number of failures ends it, even if it is back at once to what it was. */
void cntr_failure_case(struct kfi_test *t)
{
	struct kfid_cntr *cntr = cntr_open(t, KFI_WAIT_UNSPEC);
	struct waiter w;

	if (!cntr)
		return;
	kfi_cntr_seterr(cntr, 3);
	if (wait_start(t, &w, cntr, 10, -1)) {
		kfi_cntr_seterr(cntr, 3);
		kfi_cntr_add(cntr, 1);
		EXPECT(t, still_waits(&w), "nothing has changed");
		kfi_cntr_adderr(cntr, 1);
		wait_end(t, &w, -KFI_EAVAIL);
	}
	if (wait_start(t, &w, cntr, 10, LONG_MS)) {
		kfi_cntr_seterr(cntr, 0);
		kfi_cntr_seterr(cntr, 4);
		wait_end(t, &w, -KFI_EAVAIL);
	}
	/*
	 * Both, before the waiter can look: the value is reached. The waiter sleeps, and can't run on
	 * this processor meanwhile, nor on another.
	 */
	if (wait_start(t, &w, cntr, 10, LONG_MS)) {
		migrate_disable();
		EXPECT_EQ(t, set_cpus_allowed_ptr(w.task, cpumask_of(smp_processor_id())), 0);
		EXPECT(t, still_waits(&w), "moving it ends it");
		preempt_disable();
		kfi_cntr_adderr(cntr, 1);
		kfi_cntr_set(cntr, 10);
		preempt_enable();
		migrate_enable();
		wait_end(t, &w, 0);
	}
	EXPECT_EQ(t, kfi_cntr_wait(cntr, 10, 0), 0);
	cntr_close(t, cntr);
}

void cntr_signal_case(struct kfi_test *t)
{
	static const int timeouts[] = { -1, LONG_MS };
	struct kfid_cntr *cntr = cntr_open(t, KFI_WAIT_UNSPEC);
	struct waiter w;
	int i;

	for (i = 0; cntr && i < ARRAY_SIZE(timeouts); i++) {
		if (!wait_start(t, &w, cntr, 1, timeouts[i]))
			continue;
		/* Woken without a reason, it waits on. */
		wake_up_process(w.task);
		EXPECT(t, still_waits(&w), "any wake-up ends it");
		send_sig(SIGUSR1, w.task, 1);
		wait_end(t, &w, -KFI_EINTR);
	}
	if (cntr)
		cntr_close(t, cntr);
}

/* A counter that is waited for can't be closed; a failure ends the wait. */
void cntr_busy_case(struct kfi_test *t)
{
	struct kfid_cntr *cntr = cntr_open(t, KFI_WAIT_UNSPEC);
	struct waiter w[2];

	if (!cntr)
		return;
	if (wait_start(t, &w[0], cntr, 1, -1)) {
		if (!EXPECT_EQ(t, kfi_close(&cntr->fid), -KFI_EBUSY))
			return;
		if (wait_start(t, &w[1], cntr, 2, LONG_MS)) {
			kfi_cntr_add(cntr, 1);
			wait_end(t, &w[0], 0);
			if (!EXPECT_EQ(t, kfi_close(&cntr->fid), -KFI_EBUSY))
				return;
			kfi_cntr_adderr(cntr, 1);
			wait_end(t, &w[1], -KFI_EAVAIL);
		}
	}
	cntr_close(t, cntr);
}

#define ADDERS		4
#define WAITERS		8

struct adder {
	struct kfid_cntr *cntr;
	unsigned int n;
	struct task_struct *task;
	struct completion done;
};

static int adder_main(void *arg)
{
	struct adder *a = arg;
	unsigned int i;

	for (i = 0; i < a->n; i++) {
		kfi_cntr_add(a->cntr, 1);
		if (i % 64 == 0)
			cond_resched();
	}
	complete(&a->done);
	while (!kthread_should_stop())
		usleep_range(1000, 2000);
	return 0;
}

/* Many add at once, and many wait for different values: nothing gets lost, nobody sleeps on. */
void cntr_many_case(struct kfi_test *t)
{
	struct kfid_cntr *cntr = cntr_open(t, KFI_WAIT_UNSPEC);
	struct waiter *w = kzalloc_objs(*w, WAITERS);
	struct adder *a = kzalloc_objs(*a, ADDERS);
	unsigned int n = scaled(20000);
	int i, waiters = 0, adders = 0;
	u64 all = ADDERS * (u64)n;

	if (!EXPECT(t, w && a, "no memory") || !cntr)
		goto out;
	/* The one with the highest threshold first, so that each comes below the last. */
	while (waiters < WAITERS &&
	       wait_start(t, &w[waiters], cntr, all - waiters * (all / WAITERS), LONG_MS))
		waiters++;
	for (; adders < ADDERS; adders++) {
		a[adders].cntr = cntr;
		a[adders].n = n;
		init_completion(&a[adders].done);
		a[adders].task = kthread_run(adder_main, &a[adders], "kfi_adder");
		if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(a[adders].task), 0))
			break;
	}
	for (i = 0; i < adders; i++) {
		wait_for_completion(&a[i].done);
		kthread_stop(a[i].task);
	}
	EXPECT_EQ(t, kfi_cntr_read(cntr), all);
	for (i = 0; i < waiters; i++)
		wait_end(t, &w[i], 0);
out:
	if (cntr)
		cntr_close(t, cntr);
	kfree(a);
	kfree(w);
}
