// SPDX-License-Identifier: GPL-2.0
/*
 * Event queues: opening, what goes in comes out, waiting, handlers, contexts. The events are the
 * test's own, by kfi_eq_write(); those of registrations have a suite of their own.
 */
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/ktime.h>

#include <kfi_eq.h>

#include "env.h"
#include "eq.h"
#include "suites.h"

static void attr_case(struct kfi_test *t)
{
	struct kfi_eq_attr attr = {};
	struct kfi_eq_entry entry;
	struct kfid_eq *eq;
	int context;
	u32 event;

	EXPECT_EQ(t, kfi_eq_open(t->env->fabric, &attr, NULL, NULL, NULL), -KFI_EINVAL);
	eq_refused(t, NULL, &attr, -KFI_EINVAL);
	attr.size = SIZE_MAX;
	eq_refused(t, t->env->fabric, &attr, -KFI_EINVAL);
	attr.size = EQ_MOST + 1;
	eq_refused(t, t->env->fabric, &attr, -KFI_EINVAL);
	attr.size = 4;
	attr.flags = KFI_WRITE | KFI_AFFINITY;
	eq_refused(t, t->env->fabric, &attr, -KFI_EBADFLAGS);
	attr.flags = 1;
	eq_refused(t, t->env->fabric, &attr, -KFI_EBADFLAGS);
	attr.flags = KFI_WRITE;
	attr.wait_obj = KFI_WAIT_SET;
	eq_refused(t, t->env->fabric, &attr, -KFI_ENOSYS);
	attr.wait_obj = KFI_WAIT_QUEUE + 1;
	eq_refused(t, t->env->fabric, &attr, -KFI_EINVAL);
	attr.wait_obj = -1;
	eq_refused(t, t->env->fabric, &attr, -KFI_EINVAL);

	/* No attributes are attributes of zeroes. */
	if (EXPECT_EQ(t, kfi_eq_open(t->env->fabric, NULL, &eq, NULL, NULL), 0)) {
		EXPECT_EQ(t, kfi_eq_write(eq, KFI_NOTIFY, &attr, 8, 0), -KFI_ENOSYS);
		EXPECT_EQ(t, kfi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0), -KFI_ENOSYS);
		EXPECT_EQ(t, kfi_close(&eq->fid), 0);
	}

	/* A field without its flag is ignored. */
	attr.wait_obj = KFI_WAIT_QUEUE;
	attr.wait_set = (void *)0x5a5a;
	attr.signaling_vector = -1;
	if (EXPECT_EQ(t, kfi_eq_open(t->env->fabric, &attr, &eq, eq_no_handler, &context), 0)) {
		EXPECT_EQ(t, eq->fid.fclass, KFI_CLASS_EQ);
		EXPECT(t, eq->fid.context == &context, "another context");
		EXPECT(t, eq->event_handler == eq_no_handler, "another handler");
		EXPECT(t, eq->ops->size >= sizeof(struct kfi_ops_eq), "size %zu", eq->ops->size);
		EXPECT_EQ(t, kfi_control(&eq->fid, KFI_ENABLE, NULL), -KFI_ENOSYS);
		EXPECT_EQ(t, kfi_close(&eq->fid), 0);
	}
}

/* A fabric's queues keep it open. */
static void busy_case(struct kfi_test *t)
{
	struct kfi_eq_attr attr = { .size = 1 };
	struct kfid_fabric *fabric;
	struct kfid_eq *eq[2];

	if (!EXPECT_EQ(t, kfi_fabric(t->env->info->fabric_attr, &fabric, NULL), 0))
		return;
	if (EXPECT_EQ(t, kfi_eq_open(fabric, &attr, &eq[0], NULL, NULL), 0)) {
		if (EXPECT_EQ(t, kfi_eq_open(fabric, &attr, &eq[1], NULL, NULL), 0)) {
			EXPECT_EQ(t, kfi_close(&fabric->fid), -KFI_EBUSY);
			EXPECT_EQ(t, kfi_close(&eq[1]->fid), 0);
		}
		EXPECT_EQ(t, kfi_close(&fabric->fid), -KFI_EBUSY);
		EXPECT_EQ(t, kfi_close(&eq[0]->fid), 0);
	}
	EXPECT_EQ(t, kfi_close(&fabric->fid), 0);
}

static void read_case(struct kfi_test *t)
{
	struct kfi_eq_entry entry = { .fid = (void *)1, .context = &entry, .data = 77 };
	struct kfid_eq *eq = eq_open(t, 4, KFI_WAIT_NONE, NULL, NULL);
	u8 longest[KFI_EQ_ENTRY_MAX], got[KFI_EQ_ENTRY_MAX + 1];
	struct kfi_eq_err_entry err;
	u32 event = 99;

	if (!eq)
		return;
	EXPECT_EQ(t, kfi_eq_read(eq, &event, got, sizeof(got), 0), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_eq_readerr(eq, &err, 0), -KFI_EAGAIN);
	EXPECT_EQ(t, event, 99);
	pattern(longest, sizeof(longest), 1);
	EXPECT_EQ(t, kfi_eq_write(eq, KFI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	EXPECT_EQ(t, kfi_eq_write(eq, KFI_PROV_SPECIFIC | 5, longest, sizeof(longest), 0),
		  sizeof(longest));
	EXPECT_EQ(t, kfi_eq_write(eq, KFI_JOIN_COMPLETE, longest, 1, 0), 1);

	/* None of these takes anything out. */
	EXPECT_EQ(t, kfi_eq_read(NULL, &event, got, sizeof(got), 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_read(eq, NULL, got, sizeof(got), 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_read(eq, &event, NULL, sizeof(got), 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_read(eq, &event, got, sizeof(got), KFI_MORE), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_eq_read(eq, &event, got, sizeof(got), KFI_PEEK | 1), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_eq_readerr(eq, NULL, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_readerr(NULL, &err, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_readerr(eq, &err, KFI_MORE), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_eq_readerr(eq, &err, KFI_PEEK), -KFI_EAGAIN);
	memset(got, 0x5a, sizeof(got));
	EXPECT_EQ(t, kfi_eq_read(eq, &event, got, sizeof(entry) - 1, 0), -KFI_ETOOSMALL);
	EXPECT_EQ(t, kfi_eq_read(eq, &event, got, 0, 0), -KFI_ETOOSMALL);
	EXPECT(t, event == 99 && !memchr_inv(got, 0x5a, sizeof(got)), "something was written");
	EXPECT_EQ(t, kfi_eq_read(eq, &event, got, sizeof(got), KFI_PEEK), sizeof(entry));
	EXPECT(t, event == KFI_NOTIFY && !memcmp(got, &entry, sizeof(entry)), "another event");

	event = 99;
	memset(got, 0x5a, sizeof(got));
	EXPECT_EQ(t, kfi_eq_read(eq, &event, got, sizeof(entry), 0), sizeof(entry));
	EXPECT(t, event == KFI_NOTIFY && !memcmp(got, &entry, sizeof(entry)), "another event");
	EXPECT(t, got[sizeof(entry)] == 0x5a, "more than one event was written");
	EXPECT_EQ(t, kfi_eq_read(eq, &event, got, sizeof(got), 0), sizeof(longest));
	EXPECT(t, event == (KFI_PROV_SPECIFIC | 5) && !memcmp(got, longest, sizeof(longest)),
	       "another event");
	EXPECT_EQ(t, kfi_eq_read(eq, &event, got, sizeof(got), 0), 1);
	EXPECT(t, event == KFI_JOIN_COMPLETE && got[0] == longest[0], "another event");
	EXPECT_EQ(t, kfi_eq_read(eq, &event, got, sizeof(got), KFI_PEEK), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_eq_read(eq, &event, got, sizeof(got), 0), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_close(&eq->fid), 0);
}

static void write_case(struct kfi_test *t)
{
	struct kfid_eq *eq = eq_open(t, 2, KFI_WAIT_NONE, NULL, NULL);
	struct kfi_eq_attr attr = { .size = 2 };
	u8 bytes[KFI_EQ_ENTRY_MAX + 1] = {};
	struct kfid_eq *other;
	u32 event;

	if (!eq)
		return;
	EXPECT_EQ(t, kfi_eq_write(NULL, KFI_NOTIFY, bytes, 8, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_write(eq, KFI_NOTIFY, NULL, 8, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_write(eq, KFI_NOTIFY, bytes, 0, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_write(eq, KFI_NOTIFY, bytes, sizeof(bytes), 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_write(eq, KFI_NOTIFY, bytes, SIZE_MAX, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_write(eq, KFI_JOIN_COMPLETE + 1, bytes, 8, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_write(eq, KFI_PROV_SPECIFIC - 1, bytes, 8, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_write(eq, KFI_NOTIFY, bytes, 8, KFI_PEEK), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_eq_read(eq, &event, bytes, sizeof(bytes), 0), -KFI_EAGAIN);

	if (EXPECT_EQ(t, kfi_eq_open(t->env->fabric, &attr, &other, NULL, NULL), 0)) {
		EXPECT_EQ(t, kfi_eq_write(other, KFI_NOTIFY, bytes, 8, 0), -KFI_ENOSYS);
		EXPECT_EQ(t, kfi_close(&other->fid), 0);
	}
	EXPECT_EQ(t, kfi_close(&eq->fid), 0);
}

/* A queue holds exactly as many as it was opened for; a write that finds no room loses nothing. */
static void full_case(struct kfi_test *t)
{
	static const size_t sizes[] = { 1, 3, 0, EQ_MOST };
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kfid_eq *eq = eq_open(t, sizes[i], KFI_WAIT_NONE, NULL, NULL);
		size_t size = sizes[i] ?: 256;
		u64 n, next = 0;

		if (!eq)
			continue;
		for (n = 0; n < size; n++)
			if (!EXPECT_EQ(t, eq_put(eq, n), 0))
				break;
		EXPECT_EQ(t, eq_put(eq, n), -KFI_EAGAIN);
		EXPECT_EQ(t, eq_put(eq, n), -KFI_EAGAIN);
		/* Once round, with room for one. */
		for (; n < 2 * size; n++) {
			EXPECT_EQ(t, eq_get(eq), next++);
			if (!EXPECT_EQ(t, eq_put(eq, n), 0))
				break;
		}
		EXPECT_EQ(t, eq_put(eq, n), -KFI_EAGAIN);
		while (next < n)
			if (!EXPECT_EQ(t, eq_get(eq), next++))
				break;
		EXPECT_EQ(t, eq_get(eq), -KFI_EAGAIN);
		/* Closed with something in it. */
		EXPECT_EQ(t, eq_put(eq, n), 0);
		EXPECT_EQ(t, kfi_close(&eq->fid), 0);
	}
}

static void strerror_case(struct kfi_test *t)
{
	struct kfid_eq *eq = eq_open(t, 1, KFI_WAIT_NONE, NULL, NULL);
	const char *text, *whole = kfi_strerror(KFI_ENODEV);
	char buf[12] = "unchanged";

	if (!eq)
		return;
	EXPECT(t, !strcmp(kfi_eq_strerror(eq, KFI_ENODEV, NULL, NULL, 0), whole), "another text");
	EXPECT(t, !strcmp(kfi_eq_strerror(eq, KFI_EOVERRUN, NULL, NULL, 5),
			  kfi_strerror(KFI_EOVERRUN)), "another text");
	text = kfi_eq_strerror(eq, KFI_ENODEV, NULL, buf, 0);
	EXPECT(t, text && !strcmp(buf, "unchanged"), "written where there is no room");
	text = kfi_eq_strerror(eq, KFI_ENODEV, NULL, buf, 1);
	EXPECT(t, !strcmp(text, whole) && !buf[0] && buf[1] == 'n', "'%.9s'", buf);
	text = kfi_eq_strerror(eq, KFI_ENODEV, NULL, buf, sizeof(buf));
	EXPECT(t, !strcmp(text, whole), "another text");
	EXPECT(t, strlen(buf) == sizeof(buf) - 1 && !strncmp(buf, whole, sizeof(buf) - 1),
	       "'%.12s'", buf);
	EXPECT(t, !*kfi_eq_strerror(eq, 0, NULL, NULL, 0), "a text for 0");
	EXPECT(t, !strcmp(kfi_eq_strerror(eq, -KFI_ENODEV, NULL, NULL, 0), whole), "another text");
	EXPECT(t, !*kfi_eq_strerror(eq, KFI_ERRNO_MAX, NULL, NULL, 0), "a text for an unknown");
	EXPECT(t, !*kfi_eq_strerror(eq, INT_MIN, NULL, NULL, 0), "a text for INT_MIN");
	text = kfi_eq_strerror(eq, 99999, NULL, buf, sizeof(buf));
	EXPECT(t, !*text && !buf[0], "a text for an unknown");
	EXPECT(t, !*kfi_eq_strerror(NULL, KFI_ENODEV, NULL, NULL, 0), "a text of no queue");
	EXPECT_EQ(t, kfi_close(&eq->fid), 0);
}

/* Events go in and out in interrupts, too. */
struct in_irq {
	struct irq_work work;
	struct kfid_eq *eq;
	u64 round;
	bool hardirq;
	int put;
	ssize_t got, peeked, err;
};

static void use_in_irq(struct irq_work *work)
{
	struct in_irq *irq = container_of(work, struct in_irq, work);
	struct kfi_eq_err_entry err;
	struct kfi_eq_entry entry;
	u32 event;

	irq->hardirq = in_hardirq();
	irq->put = eq_put(irq->eq, irq->round);
	irq->peeked = kfi_eq_read(irq->eq, &event, &entry, sizeof(entry), KFI_PEEK);
	irq->err = kfi_eq_readerr(irq->eq, &err, 0);
	irq->got = eq_get(irq->eq);
}

static void contexts_case(struct kfi_test *t)
{
	struct in_irq irq = { .eq = eq_open(t, 8, KFI_WAIT_UNSPEC, eq_no_handler, NULL) };
	unsigned int n = scaled(1000), hardirqs = 0;
	unsigned long flags;
	spinlock_t lock;

	if (!irq.eq)
		return;
	spin_lock_init(&lock);
	init_irq_work(&irq.work, use_in_irq);
	for (irq.round = 0; irq.round < n; irq.round++) {
		u64 mine = irq.round + n;

		/* Both go in, whichever comes first; one is read there, one here. */
		irq_work_queue(&irq.work);
		EXPECT_EQ(t, eq_put(irq.eq, mine), 0);
		irq_work_sync(&irq.work);
		hardirqs += irq.hardirq;
		EXPECT_EQ(t, irq.put, 0);
		EXPECT_EQ(t, irq.peeked, sizeof(struct kfi_eq_entry));
		EXPECT_EQ(t, irq.err, -KFI_EAGAIN);
		EXPECT(t, irq.got == irq.round || irq.got == mine, "round %llu: %zd", irq.round,
		       irq.got);
		EXPECT_EQ(t, eq_get(irq.eq), irq.round + mine - irq.got);
		EXPECT_EQ(t, eq_get(irq.eq), -KFI_EAGAIN);
	}
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		EXPECT_EQ(t, hardirqs, n);

	/* They leave interrupts as they were. */
	spin_lock_irqsave(&lock, flags);
	EXPECT_EQ(t, eq_put(irq.eq, 1), 0);
	EXPECT(t, irqs_disabled(), "interrupts are on");
	EXPECT_EQ(t, eq_get(irq.eq), 1);
	EXPECT(t, irqs_disabled(), "interrupts are on");
	spin_unlock_irqrestore(&lock, flags);
	EXPECT(t, !irqs_disabled(), "interrupts are off");
	EXPECT_EQ(t, kfi_close(&irq.eq->fid), 0);
}

static const struct kfi_case cases[] = {
	{ "attr", attr_case },
	{ "busy", busy_case },
	{ "read", read_case },
	{ "write", write_case },
	{ "full", full_case },
	{ "strerror", strerror_case },
	{ "contexts", contexts_case },
	{ "timeout", eq_timeout_case },
	{ "wakeup", eq_wakeup_case },
	{ "signal", eq_signal_case },
	{ "readers", eq_readers_case },
	{ "handler", eq_handler_case },
	{ "handler_may_sleep", eq_handler_sleeps_case },
	{ "handler_cannot_close", eq_handler_closes_case },
	{ "close_ends_handler", eq_close_case },
	{ "close_twice", eq_close_twice_case },
};

const struct kfi_suite suite_eq = {
	.name = "eq",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
