// SPDX-License-Identifier: GPL-2.0
/*
 * Regions that are left to be closed, from where nobody can wait: each is told once, when no peer can
 * reach it any more; and the domain's close waits for who was told.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include <kfi_batch_ext.h>

#include "request.h"
#include "suites.h"

#define MANY	50
#define LEN	(PAGE_SIZE + 100)

/* A region, and what was told of it. */
struct one {
	struct kfi_closing closing;
	struct kfid_mr *mr;
	u64 key;
	u64 iova;
	atomic_t told;
	int err;
	struct all *all;
};

struct all {
	struct kfi_batch_ops *ops;
	struct kfi_env env;
	struct kfi_env *shared;
	atomic_t left;
	struct completion done;
	unsigned int slow;
	atomic_t returned;
	struct one one[MANY];
};

static u8 *mem_of(struct kfi_test *t, unsigned int i)
{
	return arena_at(t->env, MEM_KMALLOC, 40) + (i % 16) * 64;
}

static void told(struct kfi_closing *closing, int err)
{
	struct one *one = container_of(closing, struct one, closing);
	struct all *all = one->all;

	one->err = err;
	atomic_inc(&one->told);
	if (atomic_dec_and_test(&all->left))
		complete(&all->done);
	if (all->slow)
		msleep(all->slow);
	atomic_inc(&all->returned);
}

static struct all *all_open(struct kfi_test *t)
{
	struct all *a = kzalloc_obj(*a);
	void *ops = NULL;
	unsigned int i;

	if (!EXPECT(t, a, "no memory"))
		return NULL;
	a->shared = t->env;
	a->env = *t->env;
	init_completion(&a->done);
	if (!EXPECT_EQ(t, kfi_domain(a->env.fabric, a->env.info, &a->env.domain, NULL), 0)) {
		kfree(a);
		return NULL;
	}
	t->env = &a->env;
	EXPECT_EQ(t, kfi_open_ops(&a->env.domain->fid, KFI_BATCH_OPS_1, 0, &ops, NULL), 0);
	a->ops = ops;
	EXPECT(t, a->ops && a->ops->size >= sizeof(*a->ops), "a table that is too short");
	for (i = 0; i < MANY; i++) {
		struct one *one = &a->one[i];

		one->all = a;
		one->closing.done = told;
		if (!EXPECT_EQ(t, kfi_mr_reg(a->env.domain, mem_of(t, i), LEN, KFI_REMOTE_WRITE,
					     0, 0, 0, &one->mr, NULL), 0))
			break;
		one->key = kfi_mr_key(one->mr);
		one->iova = one->mr->iova;
	}
	return a;
}

static void all_end(struct kfi_test *t, struct all *a)
{
	EXPECT_EQ(t, kfi_close(&a->env.domain->fid), 0);
	t->env = a->shared;
	kfree(a);
}

/* Under a spinlock with interrupts off, all of them. */
static void later_case(struct kfi_test *t)
{
	struct all *a = all_open(t);
	unsigned long flags;
	unsigned int i;
	spinlock_t lock;

	if (!a)
		return;
	spin_lock_init(&lock);
	atomic_set(&a->left, MANY);
	spin_lock_irqsave(&lock, flags);
	for (i = 0; i < MANY && !t->failures; i++)
		a->ops->close_later(a->one[i].mr, &a->one[i].closing);
	spin_unlock_irqrestore(&lock, flags);
	if (!t->failures)
		wait_for_completion(&a->done);
	for (i = 0; i < MANY; i++) {
		struct one *one = &a->one[i];

		EXPECT_EQ(t, one->err, 0);
		EXPECT_EQ(t, atomic_read(&one->told), 1);
		if (i % 9 == 0)
			check_refused(t, one->iova, one->key, mem_of(t, i), LEN);
	}
	all_end(t, a);
}

/* The domain can't be closed before all are; and its close waits for who was told last. */
static void slow_case(struct kfi_test *t)
{
	struct all *a = all_open(t);
	unsigned int i;

	if (!a)
		return;
	a->slow = 200;
	for (i = 1; i < MANY; i++)
		EXPECT_EQ(t, kfi_close(&a->one[i].mr->fid), 0);
	EXPECT_EQ(t, kfi_close(&a->env.domain->fid), -KFI_EBUSY);
	atomic_set(&a->left, 1);
	a->ops->close_later(a->one[0].mr, &a->one[0].closing);
	wait_for_completion(&a->done);
	EXPECT_EQ(t, kfi_close(&a->env.domain->fid), 0);
	EXPECT_EQ(t, atomic_read(&a->returned), 1);
	t->env = a->shared;
	kfree(a);
}

/* The caller is told at once of an object that is no region. */
static void no_region_case(struct kfi_test *t)
{
	struct all *a = all_open(t);
	unsigned int i;

	if (!a)
		return;
	for (i = 1; i < MANY; i++)
		EXPECT_EQ(t, kfi_close(&a->one[i].mr->fid), 0);
	atomic_set(&a->left, 2);
	a->ops->close_later(NULL, &a->one[1].closing);
	EXPECT_EQ(t, a->one[1].err, -KFI_EINVAL);
	a->ops->close_later((struct kfid_mr *)a->env.domain, &a->one[1].closing);
	EXPECT_EQ(t, a->one[1].err, -KFI_EINVAL);
	EXPECT_EQ(t, atomic_read(&a->one[1].told), 2);
	EXPECT_EQ(t, kfi_close(&a->one[0].mr->fid), 0);
	all_end(t, a);
}

/* More domains than any bound on threads would like, each with a region whose owner doesn't return. */
#define APART	40

struct apart {
	struct kfi_closing closing;
	struct kfid_domain *domain;
	struct kfid_mr *mr;
	struct completion *go;
	struct completion told;
};

static void stays(struct kfi_closing *closing, int err)
{
	struct apart *apart = container_of(closing, struct apart, closing);
	struct completion *go = apart->go;

	complete(&apart->told);
	if (go)
		wait_for_completion(go);
}

/* Owners that don't return hold up nobody of another domain. */
static void apart_case(struct kfi_test *t)
{
	struct apart *all = kcalloc(APART, sizeof(*all), GFP_KERNEL);
	struct completion go;
	unsigned int i, left = 0;
	void *ops;

	init_completion(&go);
	if (!EXPECT(t, all, "no memory"))
		return;
	for (i = 0; i < APART && !t->failures; i++) {
		struct apart *a = &all[i];

		a->closing.done = stays;
		/* The last one returns. */
		a->go = i < APART - 1 ? &go : NULL;
		init_completion(&a->told);
		EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &a->domain, NULL), 0);
		if (a->domain)
			EXPECT_EQ(t, kfi_mr_reg(a->domain, mem_of(t, i), LEN, KFI_REMOTE_WRITE, 0,
						0, 0, &a->mr, NULL), 0);
	}
	for (i = 0; i < APART && !t->failures; i++) {
		struct apart *a = &all[i];

		if (!EXPECT_EQ(t, kfi_open_ops(&a->domain->fid, KFI_BATCH_OPS_1, 0, &ops, NULL), 0))
			break;
		((struct kfi_batch_ops *)ops)->close_later(a->mr, &a->closing);
		a->mr = NULL;
		left++;
	}
	/* Waits for what comes; if it doesn't, they all return. */
	for (i = 0; i < left && !t->failures; i++)
		EXPECT(t, wait_for_completion_timeout(&all[i].told, 60 * HZ),
		       "owner %u waits for the others", i);
	complete_all(&go);
	for (i = 0; i < APART; i++) {
		if (all[i].mr)
			EXPECT_EQ(t, kfi_close(&all[i].mr->fid), 0);
		if (all[i].domain)
			EXPECT_EQ(t, kfi_close(&all[i].domain->fid), 0);
	}
	kfree(all);
}

static const struct kfi_case cases[] = {
	{ "later", later_case },
	{ "slow", slow_case },
	{ "no_region", no_region_case },
	{ "apart", apart_case },
};

const struct kfi_suite suite_later = {
	.name = "later",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
