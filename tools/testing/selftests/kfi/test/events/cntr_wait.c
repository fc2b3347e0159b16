// SPDX-License-Identifier: GPL-2.0
/* Waiting for a counter: what ends it, and what doesn't. */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>

#include "cntr.h"
#include "waiter.h"

#define LONG_MS		60000

/**
 * struct cntr_waiter - a thread that waits once
 * @w: The thread.
 * @cntr: For what.
 * @threshold: For which value.
 * @timeout: How long.
 */
struct cntr_waiter {
	struct waiter w;
	struct kfid_cntr *cntr;
	u64 threshold;
	int timeout;
};

struct kfid_cntr *cntr_open(struct kfi_test *t, enum kfi_wait_obj wait_obj)
{
	struct kfi_cntr_attr attr = {
		.events = KFI_CNTR_EVENTS_COMP,
		.wait_obj = wait_obj,
	};
	struct kfid_cntr *cntr;

	if (!EXPECT_EQ(t, kfi_cntr_open(t->env->domain, &attr, &cntr, NULL), 0))
		return NULL;
	return cntr;
}

void cntr_close(struct kfi_test *t, struct kfid_cntr *cntr)
{
	EXPECT_EQ(t, kfi_close(&cntr->fid), 0);
}

static ssize_t wait_call(struct waiter *w)
{
	struct cntr_waiter *c = container_of(w, struct cntr_waiter, w);

	return kfi_cntr_wait(c->cntr, c->threshold, c->timeout);
}

static void wait_rescue(struct waiter *w)
{
	struct cntr_waiter *c = container_of(w, struct cntr_waiter, w);

	kfi_cntr_set(c->cntr, c->threshold);
}

static bool wait_start(struct kfi_test *t, struct cntr_waiter *c, struct kfid_cntr *cntr,
		       u64 threshold, int timeout)
{
	c->w.call = wait_call;
	c->w.rescue = wait_rescue;
	c->cntr = cntr;
	c->threshold = threshold;
	c->timeout = timeout;
	return waiter_start(t, &c->w);
}

static bool still_waits(struct cntr_waiter *c)
{
	return waiter_sleeps_on(&c->w);
}

static bool wait_end(struct kfi_test *t, struct cntr_waiter *c, int want)
{
	return waiter_end(t, &c->w, want);
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
	struct cntr_waiter w;
	int i;

	if (!cntr)
		return;
	if (wait_start(t, &w, cntr, 1000, -1)) {
		switches = READ_ONCE(w.w.task->nvcsw);
		for (i = 0; i < 999; i++)
			kfi_cntr_add(cntr, 1);
		kfi_cntr_adderr(cntr, 0);
		EXPECT(t, still_waits(&w), "%llu were enough", kfi_cntr_read(cntr));
		EXPECT_EQ(t, READ_ONCE(w.w.task->nvcsw), switches);
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
	struct cntr_waiter w;

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
		EXPECT_EQ(t, set_cpus_allowed_ptr(w.w.task, cpumask_of(smp_processor_id())), 0);
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
	struct cntr_waiter w;
	int i;

	for (i = 0; cntr && i < ARRAY_SIZE(timeouts); i++) {
		if (!wait_start(t, &w, cntr, 1, timeouts[i]))
			continue;
		/* Woken without a reason, it waits on. */
		wake_up_process(w.w.task);
		EXPECT(t, still_waits(&w), "any wake-up ends it");
		send_sig(SIGUSR1, w.w.task, 1);
		wait_end(t, &w, -KFI_EINTR);
	}
	if (cntr)
		cntr_close(t, cntr);
}

/* A counter that is waited for can't be closed; a failure ends the wait. */
void cntr_busy_case(struct kfi_test *t)
{
	struct kfid_cntr *cntr = cntr_open(t, KFI_WAIT_UNSPEC);
	struct cntr_waiter w[2];

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
	struct cntr_waiter *w = kzalloc_objs(*w, WAITERS);
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
