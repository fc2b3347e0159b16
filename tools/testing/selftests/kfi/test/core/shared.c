// SPDX-License-Identifier: GPL-2.0
/*
 * A provider in C that opens one fabric again and again, and counts how often: what the core puts
 * in front of a fabric must be there once, and go with the last who has opened it.
 */
#include <linux/kthread.h>

#include <kfi_prov.h>

#include "env.h"
#include "shared.h"

#define OPENERS	4
#define ROUNDS	2000

static atomic_t opened, called, refuse;
static struct kfid_fabric shared;
/* Another provider's fabric to give out instead. */
static struct kfid_fabric *foreign;

static int shared_close(struct kfid *fid)
{
	/* Refuse as often as was asked for. */
	if (atomic_dec_if_positive(&refuse) >= 0)
		return -KFI_EBUSY;
	atomic_dec(&opened);
	return 0;
}

static int shared_ops_open(struct kfid *fid, const char *name, u64 flags, void **ops, void *context)
{
	atomic_inc(&called);
	return -KFI_EOPBADSTATE;
}

static struct kfi_ops shared_ops = {
	.size = sizeof(struct kfi_ops),
	.close = shared_close,
	.ops_open = shared_ops_open,
};

static int shared_fabric(struct kfi_fabric_attr *attr, struct kfid_fabric **fabric, void *context)
{
	atomic_inc(&opened);
	*fabric = foreign ?: &shared;
	return 0;
}

static int shared_getinfo(u32 version, const char *node, const char *service, u64 flags,
			  struct kfi_info *hints, struct kfi_info **info)
{
	*info = kfi_allocinfo();
	if (!*info)
		return -KFI_ENOMEM;
	(*info)->fabric_attr->name = kstrdup("shared", GFP_KERNEL);
	(*info)->fabric_attr->prov_name = kstrdup(SHARED_NAME, GFP_KERNEL);
	return 0;
}

static struct kfi_provider provider = {
	.version = 1,
	.kfi_version = KFI_VERSION(1, 0),
	.name = SHARED_NAME,
	.kgetinfo = shared_getinfo,
	.kfabric = shared_fabric,
};

bool shared_register(struct kfi_test *t)
{
	atomic_set(&opened, 0);
	atomic_set(&called, 0);
	atomic_set(&refuse, 0);
	foreign = NULL;
	shared.fid.fclass = KFI_CLASS_FABRIC;
	shared.fid.ops = &shared_ops;
	return EXPECT_EQ(t, kfi_provider_register(&provider), 0);
}

/* Nothing is left of those who had it open; otherwise deregistering would wait for ever. */
void shared_deregister(struct kfi_test *t)
{
	if (EXPECT_EQ(t, atomic_read(&opened), 0) &&
	    EXPECT(t, shared.fid.ops == &shared_ops, "the fabric hasn't got its table back"))
		EXPECT_EQ(t, kfi_provider_deregister(&provider), 0);
}

static int shared_open(struct kfid_fabric **fabric)
{
	struct kfi_fabric_attr attr = { .name = "shared", .prov_name = SHARED_NAME };

	return kfi_fabric(&attr, fabric, NULL);
}

/* A call on the fabric gets to the provider, once. */
static void expect_call(struct kfi_test *t, struct kfid_fabric *fabric)
{
	int before = atomic_read(&called);
	void *ops;

	EXPECT_EQ(t, kfi_open_ops(&fabric->fid, "any", 0, &ops, NULL), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, atomic_read(&called), before + 1);
}

void shared_twice_case(struct kfi_test *t)
{
	struct kfid_fabric *a, *b;
	int round;

	if (!shared_register(t))
		return;
	/* The second round finds the same fabric, as the first has left it. */
	for (round = 0; round < 2; round++) {
		if (!EXPECT_EQ(t, shared_open(&a), 0) || !EXPECT_EQ(t, shared_open(&b), 0))
			return;
		EXPECT(t, a == &shared && b == &shared, "another fabric");
		expect_call(t, a);
		atomic_set(&refuse, 1);
		EXPECT_EQ(t, kfi_close(&a->fid), -KFI_EBUSY);
		expect_call(t, a);
		EXPECT_EQ(t, kfi_close(&a->fid), 0);
		expect_call(t, b);
		atomic_set(&refuse, 1);
		EXPECT_EQ(t, kfi_close(&b->fid), -KFI_EBUSY);
		expect_call(t, b);
		EXPECT_EQ(t, kfi_close(&b->fid), 0);
		EXPECT_EQ(t, atomic_read(&opened), 0);
		EXPECT(t, shared.fid.ops == &shared_ops, "not as the provider had it");
	}
	shared_deregister(t);
}

void shared_foreign_case(struct kfi_test *t)
{
	struct kfid_fabric *fabric = (void *)1;
	void *ops;

	if (!shared_register(t))
		return;
	foreign = t->env->fabric;
	EXPECT_EQ(t, shared_open(&fabric), -KFI_EIO);
	EXPECT(t, !fabric, "*fabric is not NULL");
	EXPECT_EQ(t, kfi_open_ops(&foreign->fid, "any", 0, &ops, NULL), -KFI_ENOSYS);
	atomic_set(&opened, 0);
	shared_deregister(t);
}

static int opener(void *arg)
{
	struct kfi_test *t = arg;
	struct kfid_fabric *fabric;
	unsigned int i;
	void *ops;
	int ret;

	for (i = 0; i < scaled(ROUNDS) && !t->failures; i++) {
		if (!EXPECT_EQ(t, shared_open(&fabric), 0))
			break;
		EXPECT_EQ(t, kfi_open_ops(&fabric->fid, "any", 0, &ops, NULL), -KFI_EOPBADSTATE);
		/* Now and then a close fails, of this one's or another's. */
		if (i % 3 == 0)
			atomic_inc(&refuse);
		do {
			ret = kfi_close(&fabric->fid);
		} while (ret == -KFI_EBUSY);
		EXPECT_EQ(t, ret, 0);
		cond_resched();
	}
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

void shared_race_case(struct kfi_test *t)
{
	struct task_struct *task[OPENERS];
	struct kfi_test own[OPENERS];
	int i, n = 0;

	if (!shared_register(t))
		return;
	for (i = 0; i < OPENERS; i++) {
		own[i] = *t;
		task[n] = kthread_run(opener, &own[i], "kfi_opener/%d", i);
		if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(task[n]), 0))
			break;
		n++;
	}
	for (i = 0; i < n; i++) {
		kthread_stop(task[i]);
		t->failures += own[i].failures;
	}
	shared_deregister(t);
}
