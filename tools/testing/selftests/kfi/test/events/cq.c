// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: what there is to them without endpoints, that is opening, closing, and reading
 * nothing. Waiting is in cq_wait.c.
 */
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <rdma/ib_verbs.h>

#include "cq.h"
#include "suites.h"

/* Nothing ever completes here. */
static void handler(struct kfid_cq *cq, void *context)
{
	(*(int *)context)++;
}

/* Opening it with these attributes gives a queue, in which there is nothing. */
static void accepted(struct kfi_test *t, struct kfi_cq_attr *attr)
{
	struct kfi_cq_tagged_entry entry;
	struct kfi_cq_attr before = *attr;
	struct kfid_cq *cq;
	int calls = 0;

	if (!EXPECT_EQ(t, kfi_cq_open(t->env->domain, attr, &cq, handler, &calls), 0))
		return;
	EXPECT(t, !memcmp(attr, &before, sizeof(before)), "the attributes were changed");
	EXPECT_EQ(t, cq->fid.fclass, KFI_CLASS_CQ);
	EXPECT(t, cq->fid.context == &calls, "another context");
	EXPECT(t, cq->comp_handler == handler, "another handler");
	EXPECT(t, cq->ops->size >= sizeof(struct kfi_ops_cq), "size %zu", cq->ops->size);
	EXPECT_EQ(t, kfi_cq_read(cq, &entry, 1), -KFI_EAGAIN);
	cq_close(t, cq);
	EXPECT_EQ(t, calls, 0);
}

static void open_case(struct kfi_test *t)
{
	static const size_t sizes[] = { 0, 1, 3, 4096, CQ_MOST };
	struct kfi_cq_attr attr = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		attr.size = sizes[i];
		accepted(t, &attr);
	}
	attr.size = 4;
	for (i = KFI_CQ_FORMAT_UNSPEC; i <= KFI_CQ_FORMAT_TAGGED; i++) {
		attr.format = i;
		accepted(t, &attr);
	}
	attr.wait_obj = KFI_WAIT_UNSPEC;
	accepted(t, &attr);
	attr.wait_cond = KFI_CQ_COND_THRESHOLD;
	accepted(t, &attr);
	attr.wait_obj = KFI_WAIT_QUEUE;
	accepted(t, &attr);
	attr.flags = KFI_AFFINITY;
	accepted(t, &attr);
	attr.signaling_vector = INT_MAX;
	accepted(t, &attr);

	/* A field without its flag is ignored. */
	attr.flags = 0;
	attr.signaling_vector = -1;
	attr.wait_set = (void *)0x5a5a;
	attr.wait_obj = KFI_WAIT_NONE;
	attr.wait_cond = -1;
	accepted(t, &attr);
}

static void refused(struct kfi_test *t, struct kfid_domain *domain, struct kfi_cq_attr *attr,
		    int want)
{
	struct kfid_cq *cq = (void *)0x5a5a;

	EXPECT_EQ(t, kfi_cq_open(domain, attr, &cq, NULL, NULL), want);
	EXPECT(t, !cq, "there is a queue");
}

static void attr_case(struct kfi_test *t)
{
	struct kfid_domain *domain = t->env->domain;
	struct kfid_domain fake = *domain;
	struct kfi_cq_attr attr = {};
	struct kfi_cq_entry entry;
	struct kfid_cq *cq;

	EXPECT_EQ(t, kfi_cq_open(domain, &attr, NULL, NULL, NULL), -KFI_EINVAL);
	refused(t, NULL, &attr, -KFI_EINVAL);
	/* An object that is no domain has no queues, though its table says otherwise. */
	fake.fid.ops = t->env->fabric->fid.ops;
	refused(t, &fake, &attr, -KFI_EINVAL);
	attr.size = SIZE_MAX;
	refused(t, domain, &attr, -KFI_EINVAL);
	attr.size = CQ_MOST + 1;
	refused(t, domain, &attr, -KFI_EINVAL);
	attr.size = 4;
	attr.flags = KFI_AFFINITY | 1;
	refused(t, domain, &attr, -KFI_EBADFLAGS);
	attr.flags = KFI_WRITE;
	refused(t, domain, &attr, -KFI_EBADFLAGS);
	attr.flags = KFI_AFFINITY;
	attr.signaling_vector = -1;
	refused(t, domain, &attr, -KFI_EINVAL);
	attr.flags = 0;
	attr.format = KFI_CQ_FORMAT_TAGGED + 1;
	refused(t, domain, &attr, -KFI_EINVAL);
	attr.format = -1;
	refused(t, domain, &attr, -KFI_EINVAL);
	attr.format = KFI_CQ_FORMAT_DATA;
	attr.wait_obj = KFI_WAIT_SET;
	refused(t, domain, &attr, -KFI_ENOSYS);
	attr.wait_obj = KFI_WAIT_QUEUE + 1;
	refused(t, domain, &attr, -KFI_EINVAL);
	attr.wait_obj = KFI_WAIT_UNSPEC;
	attr.wait_cond = KFI_CQ_COND_THRESHOLD + 1;
	refused(t, domain, &attr, -KFI_EINVAL);
	attr.wait_cond = -1;
	refused(t, domain, &attr, -KFI_EINVAL);
	/* No attributes are attributes of zeroes. */
	if (EXPECT_EQ(t, kfi_cq_open(domain, NULL, &cq, NULL, NULL), 0)) {
		EXPECT_EQ(t, kfi_cq_read(cq, &entry, 1), -KFI_EAGAIN);
		EXPECT_EQ(t, kfi_cq_sread(cq, &entry, 1, NULL, 0), -KFI_ENOSYS);
		cq_close(t, cq);
	}
}

/* The domain can't be closed before its queue. */
static void child_case(struct kfi_test *t)
{
	struct kfi_cq_attr attr = { .size = 1 };
	struct kfid_domain *domain;
	struct kfid_cq *cq[2];

	if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &domain, NULL), 0))
		return;
	if (EXPECT_EQ(t, kfi_cq_open(domain, &attr, &cq[0], NULL, NULL), 0)) {
		if (EXPECT_EQ(t, kfi_cq_open(domain, &attr, &cq[1], NULL, NULL), 0)) {
			EXPECT_EQ(t, kfi_close(&domain->fid), -KFI_EBUSY);
			cq_close(t, cq[1]);
		}
		EXPECT_EQ(t, kfi_close(&domain->fid), -KFI_EBUSY);
		cq_close(t, cq[0]);
	}
	EXPECT_EQ(t, kfi_close(&domain->fid), 0);
}

/* Nothing is read, and nothing is written. */
static void read_case(struct kfi_test *t)
{
	struct kfid_cq *cq = cq_open(t, KFI_WAIT_NONE, KFI_CQ_COND_NONE);
	struct kfi_cq_tagged_entry entry[2];
	struct kfi_cq_err_entry err;
	kfi_addr_t from[2];

	if (!cq)
		return;
	memset(entry, 0x5a, sizeof(entry));
	memset(&err, 0x5a, sizeof(err));
	memset(from, 0x5a, sizeof(from));
	EXPECT_EQ(t, kfi_cq_read(cq, entry, 2), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_cq_read(cq, entry, SIZE_MAX), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_cq_readfrom(cq, entry, 2, from), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_cq_readfrom(cq, entry, 2, NULL), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_cq_readerr(cq, &err, 0), -KFI_EAGAIN);

	EXPECT_EQ(t, kfi_cq_read(cq, NULL, 1), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_cq_read(cq, entry, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_cq_readfrom(cq, NULL, 1, from), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_cq_readfrom(cq, entry, 0, from), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_cq_readerr(cq, NULL, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_cq_readerr(cq, &err, KFI_PEEK), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_cq_readerr(cq, NULL, 1), -KFI_EBADFLAGS);
	EXPECT(t, !memchr_inv(entry, 0x5a, sizeof(entry)), "an entry was written");
	EXPECT(t, !memchr_inv(&err, 0x5a, sizeof(err)), "a failure was written");
	EXPECT(t, !memchr_inv(from, 0x5a, sizeof(from)), "an address was written");

	/* It was opened for no waiting. */
	EXPECT_EQ(t, kfi_cq_sread(cq, entry, 2, NULL, 0), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_cq_sread(cq, entry, 2, NULL, -1), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_cq_sreadfrom(cq, entry, 2, from, NULL, -1), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_cq_signal(cq), -KFI_ENOSYS);
	cq_close(t, cq);
}

/* Calls that a queue doesn't have, and objects that are no queue. */
static void nothing_case(struct kfi_test *t)
{
	struct kfid_cq *cq = cq_open(t, KFI_WAIT_UNSPEC, KFI_CQ_COND_NONE);
	struct kfid_cq *none[] = { NULL, ERR_PTR(-ENODEV) };
	struct kfi_cq_tagged_entry entry;
	struct kfi_cq_err_entry err;
	kfi_addr_t from;
	void *wait;
	void *ops;
	int i;

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		EXPECT_EQ(t, kfi_cq_read(none[i], &entry, 1), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_cq_readfrom(none[i], &entry, 1, &from), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_cq_readerr(none[i], &err, 0), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_cq_sread(none[i], &entry, 1, NULL, -1), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_cq_sreadfrom(none[i], &entry, 1, &from, NULL, -1), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_cq_signal(none[i]), -KFI_EINVAL);
		EXPECT(t, !*kfi_cq_strerror(none[i], KFI_EIO, NULL, NULL, 0), "a text");
	}
	if (!cq)
		return;
	EXPECT_EQ(t, kfi_control(&cq->fid, KFI_GETWAIT, &wait), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_control(&cq->fid, KFI_ENABLE, NULL), -KFI_ENOSYS);
	EXPECT_EQ(t, cq->fid.ops->bind(&cq->fid, &cq->fid, 0), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_open_ops(&cq->fid, KFI_DMA_OPS_1, 0, &ops, NULL), -KFI_ENOSYS);
	cq_close(t, cq);
}

static void strerror_case(struct kfi_test *t)
{
	struct kfid_cq *cq = cq_open(t, KFI_WAIT_NONE, KFI_CQ_COND_NONE);
	const char *text, *whole = kfi_strerror(KFI_ENOCQ);
	char buf[12] = "unchanged";
	int status;

	if (!cq)
		return;
	EXPECT(t, !strcmp(kfi_cq_strerror(cq, KFI_ENOCQ, NULL, NULL, 0), whole), "another text");
	EXPECT(t, !strcmp(kfi_cq_strerror(cq, -KFI_ENOCQ, NULL, NULL, 0), whole), "another text");
	text = kfi_cq_strerror(cq, KFI_ENOCQ, NULL, buf, 0);
	EXPECT(t, text && !strcmp(buf, "unchanged"), "written where there is no room");
	text = kfi_cq_strerror(cq, KFI_ENOCQ, NULL, buf, sizeof(buf));
	EXPECT(t, !strcmp(text, whole), "another text");
	EXPECT(t, strlen(buf) == sizeof(buf) - 1 && !strncmp(buf, whole, sizeof(buf) - 1),
	       "'%.12s'", buf);
	EXPECT(t, !*kfi_cq_strerror(cq, 99999, NULL, NULL, 0), "a text for an unknown");
	EXPECT(t, !*kfi_cq_strerror(cq, 0, NULL, NULL, 0), "a text for 0");
	EXPECT(t, !*kfi_cq_strerror(cq, INT_MIN, NULL, NULL, 0), "a text for INT_MIN");
	/* The statuses of the device. */
	for (status = IB_WC_LOC_LEN_ERR; status <= IB_WC_GENERAL_ERR; status++) {
		text = kfi_cq_strerror(cq, status, NULL, NULL, 0);
		EXPECT(t, !strcmp(text, ib_wc_status_msg(status)), "'%s' for %d", text, status);
	}
	cq_close(t, cq);
}

/* Queues are read in interrupts, too. */
struct in_irq {
	struct irq_work work;
	struct kfid_cq *cq;
	bool hardirq;
	ssize_t read, readerr;
	int signal;
};

static void use_in_irq(struct irq_work *work)
{
	struct in_irq *irq = container_of(work, struct in_irq, work);
	struct kfi_cq_tagged_entry entry;
	struct kfi_cq_err_entry err;

	irq->hardirq = in_hardirq();
	irq->read = kfi_cq_read(irq->cq, &entry, 1);
	irq->readerr = kfi_cq_readerr(irq->cq, &err, 0);
	irq->signal = kfi_cq_signal(irq->cq);
}

static void contexts_case(struct kfi_test *t)
{
	struct in_irq irq = { .cq = cq_open(t, KFI_WAIT_UNSPEC, KFI_CQ_COND_NONE) };
	unsigned int i, n = scaled(1000), hardirqs = 0;
	struct kfi_cq_tagged_entry entry;
	struct kfi_cq_err_entry err;
	unsigned long flags;
	spinlock_t lock;

	if (!irq.cq)
		return;
	spin_lock_init(&lock);
	init_irq_work(&irq.work, use_in_irq);
	for (i = 0; i < n; i++) {
		irq_work_queue(&irq.work);
		EXPECT_EQ(t, kfi_cq_read(irq.cq, &entry, 1), -KFI_EAGAIN);
		EXPECT_EQ(t, kfi_cq_sread(irq.cq, &entry, 1, NULL, 0), -KFI_EAGAIN);
		irq_work_sync(&irq.work);
		hardirqs += irq.hardirq;
		EXPECT_EQ(t, irq.read, -KFI_EAGAIN);
		EXPECT_EQ(t, irq.readerr, -KFI_EAGAIN);
		EXPECT_EQ(t, irq.signal, 0);
	}
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		EXPECT_EQ(t, hardirqs, n);

	cq_called_back(t, irq.cq);

	/* They leave interrupts as they were. */
	spin_lock_irqsave(&lock, flags);
	EXPECT_EQ(t, kfi_cq_read(irq.cq, &entry, 1), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_cq_readerr(irq.cq, &err, 0), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_cq_signal(irq.cq), 0);
	EXPECT(t, irqs_disabled(), "interrupts are on");
	spin_unlock_irqrestore(&lock, flags);
	EXPECT(t, !irqs_disabled(), "interrupts are off");
	cq_close(t, irq.cq);
}

static const struct kfi_case cases[] = {
	{ "open", open_case },
	{ "attr", attr_case },
	{ "child", child_case },
	{ "read", read_case },
	{ "nothing", nothing_case },
	{ "strerror", strerror_case },
	{ "contexts", contexts_case },
	{ "timeout", cq_timeout_case },
	{ "signal", cq_signal_case },
	{ "kept_signal", cq_kept_signal_case },
	{ "interrupt", cq_interrupt_case },
	{ "busy", cq_busy_case },
};

const struct kfi_suite suite_cq = {
	.name = "cq",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
