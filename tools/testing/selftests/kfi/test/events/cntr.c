// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of a domain: their attributes and numbers, and the contexts that they can be used in.
 * Waiting is in cntr_wait.c.
 */
#include <linux/hrtimer.h>
#include <linux/irqflags.h>

#include "cntr.h"
#include "suites.h"

static bool check(struct kfi_test *t, struct kfid_cntr *cntr, u64 value, u64 errors)
{
	u64 is = kfi_cntr_read(cntr), failed = kfi_cntr_readerr(cntr);

	return EXPECT(t, is == value && failed == errors, "%llu and %llu, expected %llu and %llu",
		      is, failed, value, errors);
}

static void open_case(struct kfi_test *t)
{
	static const enum kfi_wait_obj objs[] = { KFI_WAIT_NONE, KFI_WAIT_UNSPEC, KFI_WAIT_QUEUE };
	struct kfi_cntr_attr attr = {};
	struct kfid_cntr *cntr[2];
	int i, context;

	for (i = 0; i < ARRAY_SIZE(objs); i++) {
		attr.wait_obj = objs[i];
		if (!EXPECT_EQ(t, kfi_cntr_open(t->env->domain, &attr, &cntr[0], &context), 0))
			continue;
		EXPECT_EQ(t, cntr[0]->fid.fclass, KFI_CLASS_CNTR);
		EXPECT(t, cntr[0]->fid.context == &context, "the context is another one");
		check(t, cntr[0], 0, 0);
		cntr_close(t, cntr[0]);
	}

	/* Two know nothing of each other. */
	cntr[0] = cntr_open(t, KFI_WAIT_NONE);
	cntr[1] = cntr_open(t, KFI_WAIT_NONE);
	if (cntr[0] && cntr[1]) {
		EXPECT_EQ(t, kfi_cntr_add(cntr[0], 7), 0);
		check(t, cntr[0], 7, 0);
		check(t, cntr[1], 0, 0);
	}
	for (i = 0; i < ARRAY_SIZE(cntr); i++)
		if (cntr[i])
			cntr_close(t, cntr[i]);
}

static void refused(struct kfi_test *t, struct kfid_domain *domain, struct kfi_cntr_attr *attr,
		    int want)
{
	struct kfid_cntr *cntr = (void *)0x5a5a;

	EXPECT_EQ(t, kfi_cntr_open(domain, attr, &cntr, NULL), want);
	EXPECT(t, !cntr, "there is a counter");
}

static void attr_case(struct kfi_test *t)
{
	struct kfid_domain *domain = t->env->domain;
	struct kfi_cntr_attr attr = {};
	struct kfid_cntr *cntr;

	EXPECT_EQ(t, kfi_cntr_open(domain, &attr, NULL, NULL), -KFI_EINVAL);
	refused(t, NULL, &attr, -KFI_EINVAL);
	attr.events = KFI_CNTR_EVENTS_COMP + 1;
	refused(t, domain, &attr, -KFI_EINVAL);
	attr.events = -1;
	refused(t, domain, &attr, -KFI_EINVAL);
	attr.events = KFI_CNTR_EVENTS_COMP;
	attr.flags = 1;
	refused(t, domain, &attr, -KFI_EBADFLAGS);
	attr.flags = KFI_WRITE;
	refused(t, domain, &attr, -KFI_EBADFLAGS);
	attr.flags = 0;
	attr.wait_obj = KFI_WAIT_SET;
	refused(t, domain, &attr, -KFI_ENOSYS);
	attr.wait_obj = KFI_WAIT_QUEUE + 1;
	refused(t, domain, &attr, -KFI_EINVAL);
	attr.wait_obj = -1;
	refused(t, domain, &attr, -KFI_EINVAL);
	/* No attributes are attributes of zeroes. */
	if (EXPECT_EQ(t, kfi_cntr_open(domain, NULL, &cntr, NULL), 0)) {
		EXPECT_EQ(t, kfi_cntr_wait(cntr, 0, 0), -KFI_ENOSYS);
		cntr_close(t, cntr);
	}
}

/* An object that is no domain has no counters, though its table says otherwise. */
static void foreign_case(struct kfi_test *t)
{
	struct kfid_domain fake = *t->env->domain;
	struct kfi_cntr_attr attr = {};

	fake.fid.ops = t->env->fabric->fid.ops;
	refused(t, &fake, &attr, -KFI_EINVAL);
}

/* The domain can't be closed before its counter. */
static void child_case(struct kfi_test *t)
{
	struct kfi_cntr_attr attr = {};
	struct kfid_domain *domain;
	struct kfid_cntr *cntr;

	if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &domain, NULL), 0))
		return;
	if (EXPECT_EQ(t, kfi_cntr_open(domain, &attr, &cntr, NULL), 0)) {
		if (!EXPECT_EQ(t, kfi_close(&domain->fid), -KFI_EBUSY))
			return;
		EXPECT_EQ(t, kfi_cntr_add(cntr, 1), 0);
		check(t, cntr, 1, 0);
		cntr_close(t, cntr);
	}
	EXPECT_EQ(t, kfi_close(&domain->fid), 0);
}

static void numbers_case(struct kfi_test *t)
{
	struct kfid_cntr *cntr = cntr_open(t, KFI_WAIT_NONE);

	if (!cntr)
		return;
	EXPECT_EQ(t, kfi_cntr_add(cntr, 5), 0);
	EXPECT_EQ(t, kfi_cntr_add(cntr, 0), 0);
	EXPECT_EQ(t, kfi_cntr_add(cntr, 6), 0);
	check(t, cntr, 11, 0);
	EXPECT_EQ(t, kfi_cntr_adderr(cntr, 3), 0);
	check(t, cntr, 11, 3);
	EXPECT_EQ(t, kfi_cntr_set(cntr, 2), 0);
	check(t, cntr, 2, 3);
	EXPECT_EQ(t, kfi_cntr_seterr(cntr, 9), 0);
	check(t, cntr, 2, 9);
	EXPECT_EQ(t, kfi_cntr_adderr(cntr, U64_MAX), 0);
	check(t, cntr, 2, 8);
	EXPECT_EQ(t, kfi_cntr_set(cntr, U64_MAX - 1), 0);
	EXPECT_EQ(t, kfi_cntr_add(cntr, 1), 0);
	check(t, cntr, U64_MAX, 8);
	EXPECT_EQ(t, kfi_cntr_add(cntr, 3), 0);
	check(t, cntr, 2, 8);
	cntr_close(t, cntr);
}

/* Calls that a counter doesn't have, and objects that are no counter. */
static void nothing_case(struct kfi_test *t)
{
	struct kfid_cntr *none[] = { NULL, ERR_PTR(-ENODEV) };
	struct kfid_cntr *cntr = cntr_open(t, KFI_WAIT_NONE);
	void *wait;
	void *ops;
	int i;

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		EXPECT_EQ(t, kfi_cntr_read(none[i]), 0);
		EXPECT_EQ(t, kfi_cntr_readerr(none[i]), 0);
		EXPECT_EQ(t, kfi_cntr_add(none[i], 1), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_cntr_adderr(none[i], 1), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_cntr_set(none[i], 1), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_cntr_seterr(none[i], 1), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_cntr_wait(none[i], 1, 0), -KFI_EINVAL);
	}
	if (!cntr)
		return;
	EXPECT_EQ(t, kfi_control(&cntr->fid, KFI_GETWAIT, &wait), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_control(&cntr->fid, KFI_ENABLE, NULL), -KFI_ENOSYS);
	EXPECT_EQ(t, cntr->fid.ops->bind(&cntr->fid, &cntr->fid, 0), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_open_ops(&cntr->fid, KFI_DMA_OPS_1, 0, &ops, NULL), -KFI_ENOSYS);
	check(t, cntr, 0, 0);
	cntr_close(t, cntr);
}

/*
 * A counter that is used by an interrupt handler, by a softirq and by a thread at once. (Where
 * interrupt handlers are threads, the first is a softirq, too.)
 */
struct pest {
	struct hrtimer timer;
	struct kfid_cntr *cntr;
	unsigned int left;
	unsigned int seen;
	unsigned int hard;
	struct completion done;
};

#define PESTERED	500

static enum hrtimer_restart pester(struct hrtimer *timer)
{
	struct pest *pest = container_of(timer, struct pest, timer);

	kfi_cntr_add(pest->cntr, 1);
	kfi_cntr_adderr(pest->cntr, 2);
	pest->hard += !!in_hardirq();
	if (kfi_cntr_read(pest->cntr) && kfi_cntr_readerr(pest->cntr))
		pest->seen++;
	if (!--pest->left) {
		complete(&pest->done);
		return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(timer, us_to_ktime(100));
	return HRTIMER_RESTART;
}

static void start(struct pest *pest, struct kfid_cntr *cntr, enum hrtimer_mode mode)
{
	pest->cntr = cntr;
	pest->left = scaled(PESTERED);
	init_completion(&pest->done);
	hrtimer_setup(&pest->timer, pester, CLOCK_MONOTONIC, mode);
	hrtimer_start(&pest->timer, us_to_ktime(100), mode);
}

static void contexts_case(struct kfi_test *t)
{
	struct kfid_cntr *cntr = cntr_open(t, KFI_WAIT_UNSPEC);
	struct pest *pest = kzalloc_objs(*pest, 2);
	u64 n = scaled(PESTERED), more = 0;
	unsigned long flags;

	if (EXPECT(t, pest, "no memory") && cntr) {
		start(&pest[0], cntr, HRTIMER_MODE_REL);
		start(&pest[1], cntr, HRTIMER_MODE_REL_SOFT);
		while (!completion_done(&pest[0].done) || !completion_done(&pest[1].done)) {
			kfi_cntr_add(cntr, 1);
			local_irq_save(flags);
			kfi_cntr_add(cntr, 1);
			/* Interrupts stay off. */
			if (!irqs_disabled())
				more += 1000000;
			local_irq_restore(flags);
			more += 2;
			if (!(more % 1000))
				cond_resched();
		}
		hrtimer_cancel(&pest[0].timer);
		hrtimer_cancel(&pest[1].timer);
		check(t, cntr, 2 * n + more, 4 * n);
		EXPECT_EQ(t, pest[0].seen + pest[1].seen, 2 * n);
		EXPECT_EQ(t, pest[0].hard, IS_ENABLED(CONFIG_PREEMPT_RT) ? 0 : n);
		EXPECT_EQ(t, pest[1].hard, 0);
		EXPECT(t, !irqs_disabled(), "interrupts are off");
	}
	if (cntr)
		cntr_close(t, cntr);
	kfree(pest);
}

static const struct kfi_case cases[] = {
	{ "open", open_case },
	{ "attr", attr_case },
	{ "foreign", foreign_case },
	{ "child", child_case },
	{ "numbers", numbers_case },
	{ "nothing", nothing_case },
	{ "contexts", contexts_case },
	{ "threshold", cntr_threshold_case },
	{ "timeout", cntr_timeout_case },
	{ "woken", cntr_woken_case },
	{ "failure", cntr_failure_case },
	{ "signal", cntr_signal_case },
	{ "busy", cntr_busy_case },
	{ "many", cntr_many_case },
};

const struct kfi_suite suite_cntr = {
	.name = "cntr",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
