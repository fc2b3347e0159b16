// SPDX-License-Identifier: GPL-2.0
/*
 * Many regions in one go: each is what it would be alone, is refused for what it would be refused
 * alone, and none is left where none was to be.
 */
#include <linux/slab.h>

#include <kfi_batch_ext.h>

#include "failing.h"
#include "job.h"
#include "kfi_inject.h"
#include "request.h"
#include "suites.h"
#include "wr_timeout.h"

/* More than wait together, so that there are two groups. */
#define MANY	100
/* As many as go to the driver in one list. */
#define PARTS	16
/* Of each, in the arena: not aligned, and of one or two pages. */
#define STEP	(3 * PAGE_SIZE / 4)
#define LEN(i)	(PAGE_SIZE / 2 + 7 * (i))

/* A batch; too large for the stack. */
struct batch {
	struct kfi_batch_ops *ops;
	struct kfi_mr_attr attr[MANY];
	struct kvec kv[MANY];
	struct bio_vec bv[MANY];
	struct kfid_mr *mr[MANY];
	int err[MANY];
	u64 key[MANY];
	u64 iova[MANY];
	struct kfi_env env;
	struct kfi_env *shared;
};

static u8 *mem_of(struct kfi_test *t, unsigned int i)
{
	return arena_at(t->env, MEM_KMALLOC, 40) + (i % 16) * STEP;
}

static void batch_free(struct batch *b)
{
	kfree(b);
}

/* A domain of the test's own takes the place of the suite's, until own_end(). */
static bool own_domain(struct kfi_test *t, struct batch *b)
{
	b->shared = t->env;
	b->env = *t->env;
	if (!EXPECT_EQ(t, kfi_domain(b->env.fabric, b->env.info, &b->env.domain, NULL), 0))
		return false;
	t->env = &b->env;
	return true;
}

static void own_end(struct kfi_test *t, struct batch *b)
{
	EXPECT_EQ(t, kfi_close(&b->env.domain->fid), 0);
	t->env = b->shared;
}

static struct batch *batch_alloc(struct kfi_test *t)
{
	struct batch *b = kzalloc_obj(*b);
	void *ops = NULL;
	unsigned int i;

	if (!EXPECT(t, b, "out of memory"))
		return NULL;
	if (!EXPECT_EQ(t, kfi_open_ops(&t->env->domain->fid, KFI_BATCH_OPS_1, 0, &ops, NULL), 0)) {
		kfree(b);
		return NULL;
	}
	b->ops = ops;
	for (i = 0; i < MANY; i++) {
		u8 *mem = mem_of(t, i);
		struct kfi_mr_attr *attr = &b->attr[i];

		b->mr[i] = (void *)0x5a5a;
		b->err[i] = 0x5a5a;
		b->kv[i].iov_base = mem;
		b->kv[i].iov_len = LEN(i);
		bvec_set_page(&b->bv[i], virt_to_page(mem), LEN(i), offset_in_page(mem));
		attr->iov_count = 1;
		attr->access = KFI_REMOTE;
		attr->context = &b->attr[i];
		if (i % 2) {
			attr->type = KFI_BVEC;
			attr->mr_biov = &b->bv[i];
		} else {
			attr->type = KFI_KVEC;
			attr->mr_iov = &b->kv[i];
		}
	}
	return b;
}

static int reg_many(struct kfi_test *t, struct batch *b, unsigned int count, u64 flags)
{
	return b->ops->regattr_many(&t->env->domain->fid, b->attr, count, 0, flags, b->mr, b->err);
}

/* Region @i is there, and the peer reaches its memory and no more. */
static void check_there(struct kfi_test *t, struct batch *b, unsigned int i)
{
	if (!EXPECT_EQ(t, b->err[i], 0) || !EXPECT(t, b->mr[i], "no region %u", i))
		return;
	EXPECT(t, b->mr[i]->fid.context == &b->attr[i], "region %u has another's context", i);
	check_region(t, b->mr[i], mem_of(t, i), LEN(i));
	b->key[i] = b->mr[i]->key;
	b->iova[i] = b->mr[i]->iova;
}

static void expect_none(struct kfi_test *t, struct batch *b, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		EXPECT(t, !b->mr[i], "there is a region %u", i);
}

/* Closes those that are there, and looks at some keys. */
static void close_all(struct kfi_test *t, struct batch *b, unsigned int count)
{
	unsigned int i;

	EXPECT_EQ(t, b->ops->close_many(b->mr, count, b->err), 0);
	for (i = 0; i < count; i++) {
		EXPECT_EQ(t, b->err[i], 0);
		if (b->mr[i] && b->key[i] && i % 9 == 0)
			check_refused(t, b->iova[i], b->key[i], mem_of(t, i), LEN(i));
	}
}

static void args_case(struct kfi_test *t)
{
	struct kfid *fid = &t->env->domain->fid;
	struct batch *b = batch_alloc(t);

	if (!b)
		return;
	EXPECT(t, b->ops->size >= sizeof(*b->ops), "size %zu", b->ops->size);
	EXPECT_EQ(t, b->ops->regattr_many(NULL, b->attr, 2, 0, 0, b->mr, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, b->ops->regattr_many(&t->env->fabric->fid, b->attr, 2, 0, 0, b->mr, NULL),
		  -KFI_EINVAL);
	EXPECT_EQ(t, b->ops->regattr_many(fid, NULL, 2, 0, 0, b->mr, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, b->ops->regattr_many(fid, b->attr, 2, 0, 0, NULL, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, reg_many(t, b, 2, 2), -KFI_EBADFLAGS);
	expect_none(t, b, 2);
	EXPECT_EQ(t, b->ops->regattr_many(fid, b->attr, 2, KFI_RMA_EVENT, 0, b->mr, b->err),
		  -KFI_EBADFLAGS);
	EXPECT_EQ(t, b->err[0], -KFI_EBADFLAGS);
	EXPECT_EQ(t, b->err[1], -KFI_EBADFLAGS);
	expect_none(t, b, 2);
	EXPECT_EQ(t, reg_many(t, b, 0, 0), 0);
	EXPECT_EQ(t, b->ops->close_many(NULL, 1, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, b->ops->close_many(b->mr, 2, NULL), 0);
	EXPECT_EQ(t, b->ops->close_many(b->mr, 0, NULL), 0);
	b->mr[1] = (struct kfid_mr *)t->env->domain;
	EXPECT_EQ(t, b->ops->close_many(b->mr, 2, b->err), -KFI_EINVAL);
	EXPECT_EQ(t, b->err[0], 0);
	EXPECT_EQ(t, b->err[1], -KFI_EINVAL);
	batch_free(b);
}

/* As many as make two groups; and once more without asking for errors. */
static void all_case(struct kfi_test *t)
{
	struct batch *b = batch_alloc(t);
	unsigned int i, j;

	if (!b)
		return;
	if (EXPECT_EQ(t, reg_many(t, b, MANY, KFI_BATCH_ALL_OR_NONE), 0)) {
		for (i = 0; i < MANY; i++) {
			check_there(t, b, i);
			for (j = 0; j < i; j++)
				EXPECT(t, b->key[i] != b->key[j], "a key was given twice");
		}
		close_all(t, b, MANY);
	}
	if (EXPECT_EQ(t, b->ops->regattr_many(&t->env->domain->fid, b->attr, MANY, 0, 0, b->mr,
					      NULL), 0))
		EXPECT_EQ(t, b->ops->close_many(b->mr, MANY, NULL), 0);
	batch_free(b);
}

/* Makes some of them bad, each in a way of its own; the errno that it is refused with. */
static int spoil(struct batch *b, unsigned int i)
{
	switch (i % 21) {
	case 2:
		b->attr[i].mr_iov = NULL;
		return -KFI_EINVAL;
	case 6:
		b->attr[i].iov_count = 0;
		return -KFI_EINVAL;
	case 9:
		b->attr[i].access = BIT_ULL(0);
		return -KFI_EINVAL;
	case 12:
		b->kv[i].iov_base = (void *)PAGE_SIZE;
		b->attr[i].type = KFI_KVEC;
		b->attr[i].mr_iov = &b->kv[i];
		return -KFI_EFAULT;
	case 19:
		b->attr[i].type = 17;
		return -KFI_EINVAL;
	default:
		return 0;
	}
}

/* Bad ones among them are refused, and the others are there. */
static void some_bad_case(struct kfi_test *t)
{
	struct batch *b = batch_alloc(t);
	int wanted[MANY], first = 0;
	unsigned int i;

	if (!b)
		return;
	for (i = 0; i < MANY; i++) {
		wanted[i] = spoil(b, i);
		first = first ?: wanted[i];
	}
	EXPECT_EQ(t, reg_many(t, b, MANY, 0), first);
	for (i = 0; i < MANY; i++) {
		if (!wanted[i]) {
			check_there(t, b, i);
			continue;
		}
		EXPECT_EQ(t, b->err[i], wanted[i]);
		EXPECT(t, !b->mr[i], "a bad one is registered");
	}
	close_all(t, b, MANY);
	batch_free(b);
}

/* One bad one, in each group and at each end of one: nothing is left of the others. */
static void none_case(struct kfi_test *t)
{
	static const unsigned int bad[] = { 0, 5, 63, 64, MANY - 1 };
	struct batch *b = batch_alloc(t);
	unsigned int i, j;
	void *list;

	if (!b)
		return;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		list = (void *)b->attr[bad[i]].mr_iov;
		b->attr[bad[i]].mr_iov = NULL;
		EXPECT_EQ(t, reg_many(t, b, MANY, KFI_BATCH_ALL_OR_NONE), -KFI_EINVAL);
		expect_none(t, b, MANY);
		for (j = 0; j < MANY; j++)
			EXPECT_EQ(t, b->err[j], j == bad[i] ? -KFI_EINVAL : -KFI_ECANCELED);
		b->attr[bad[i]].mr_iov = list;
	}
	batch_free(b);
}

/*
 * The device fails: where it can't make a region that one is refused; where a request of many can't
 * be posted the others are registered all the same.
 */
static void device_case(struct kfi_test *t)
{
	struct batch *b = batch_alloc(t);
	unsigned int i, skip, there;

	if (!b)
		return;
	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		goto out;
	for (skip = 0; skip < 3; skip++) {
		/* No other region of the device is tried for the same memory. */
		kfi_inject_fail(KFI_INJECT_MAP_MR_SG, -ENOMEM, 5 * skip, 1);
		EXPECT_EQ(t, reg_many(t, b, MANY, 0), -KFI_ENOMEM);
		kfi_inject_fail(KFI_INJECT_MAP_MR_SG, 0, 0, 0);
		for (there = 0, i = 0; i < MANY; i++) {
			there += !!b->mr[i];
			if (b->mr[i])
				check_there(t, b, i);
			else
				EXPECT_EQ(t, b->err[i], -KFI_ENOMEM);
		}
		EXPECT_EQ(t, there, MANY - 1);
		close_all(t, b, MANY);

		kfi_inject_fail(KFI_INJECT_POST_REG, -EINVAL, skip, 1);
		EXPECT_EQ(t, reg_many(t, b, 20, 0), 0);
		kfi_inject_fail(KFI_INJECT_POST_REG, 0, 0, 0);
		for (i = 0; i < 20; i++)
			check_there(t, b, i);
		close_all(t, b, 20);
	}
	/* None can be posted: each is refused, and nothing is left. */
	kfi_inject_fail(KFI_INJECT_POST_REG, -EINVAL, 0, UINT_MAX);
	EXPECT_EQ(t, reg_many(t, b, 20, 0), -KFI_EIO);
	kfi_inject_fail(KFI_INJECT_POST_REG, 0, 0, 0);
	expect_none(t, b, 20);
	for (i = 0; i < 20; i++)
		EXPECT_EQ(t, b->err[i], -KFI_EIO);
	kfi_inject_stop(t->env->dev);
out:
	batch_free(b);
}

/* How often a queue pair was changed or destroyed. */
static unsigned int changes(void)
{
	return kfi_inject_calls(KFI_INJECT_MODIFY_QP) + kfi_inject_calls(KFI_INJECT_DESTROY_QP);
}

/*
 * The driver accepts @taken of the registrations that are posted together. Each region is registered by itself then. Only
 * the one whose registration the driver refuses again fails, and the registration queue goes on. A device without
 * LOCAL_INV gets another queue.
 */
static void part_registered(struct kfi_test *t, struct batch *b, unsigned int taken)
{
	unsigned int i, invs = kfi_inject_calls(KFI_INJECT_POST_INV), before = changes();
	unsigned int destroyed = kfi_inject_calls(KFI_INJECT_DESTROY_QP);

	kfi_inject_fail(KFI_INJECT_POST_NEXT, -EINVAL, taken - 1, 1);
	/* Behind the call that posts them together there is one for each. */
	kfi_inject_fail(KFI_INJECT_POST_REG, -EINVAL, 1 + taken, 1);
	EXPECT_EQ(t, reg_many(t, b, PARTS, 0), -KFI_EIO);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV) - invs, has_feature(F_LOCAL_INV));
	/* Without an invalidation behind the others, nothing tells of them. */
	if (has_feature(F_LOCAL_INV))
		EXPECT_EQ(t, changes(), before);
	else
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_DESTROY_QP) - destroyed, 1);
	kfi_inject_fail(KFI_INJECT_POST_NEXT, 0, 0, 0);
	kfi_inject_fail(KFI_INJECT_POST_REG, 0, 0, 0);
	for (i = 0; i < PARTS; i++) {
		if (i != taken) {
			check_there(t, b, i);
			continue;
		}
		EXPECT_EQ(t, b->err[i], -KFI_EIO);
		EXPECT(t, !b->mr[i], "the region %u is there", i);
	}
	close_all(t, b, PARTS);
}

/* The driver accepts @taken of the invalidations that are posted together: all regions are closed. */
static void part_closed(struct kfi_test *t, struct batch *b, unsigned int taken)
{
	unsigned int i, before;

	if (!EXPECT_EQ(t, reg_many(t, b, PARTS, 0), 0))
		return;
	for (i = 0; i < PARTS; i++)
		check_there(t, b, i);
	before = changes();
	kfi_inject_fail(KFI_INJECT_POST_NEXT, -EINVAL, taken - 1, 1);
	EXPECT_EQ(t, b->ops->close_many(b->mr, PARTS, b->err), 0);
	kfi_inject_fail(KFI_INJECT_POST_NEXT, 0, 0, 0);
	EXPECT_EQ(t, changes(), before);
	for (i = 0; i < PARTS; i++)
		EXPECT_EQ(t, b->err[i], 0);
	check_refused(t, b->iova[taken - 1], b->key[taken - 1], mem_of(t, taken - 1), LEN(taken - 1));
	check_refused(t, b->iova[taken], b->key[taken], mem_of(t, taken), LEN(taken));
}

/* If the driver refuses what would tell of the others, too, the registration queue is replaced. */
static void part_untold(struct kfi_test *t, struct batch *b)
{
	unsigned int i, destroyed = kfi_inject_calls(KFI_INJECT_DESTROY_QP);

	kfi_inject_fail(KFI_INJECT_POST_NEXT, -EINVAL, 3, 1);
	kfi_inject_fail(KFI_INJECT_POST_INV, -EINVAL, 0, 1);
	EXPECT_EQ(t, reg_many(t, b, PARTS, 0), 0);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_DESTROY_QP) - destroyed, 1);
	kfi_inject_fail(KFI_INJECT_POST_NEXT, 0, 0, 0);
	kfi_inject_fail(KFI_INJECT_POST_INV, 0, 0, 0);
	for (i = 0; i < PARTS; i++)
		check_there(t, b, i);
	close_all(t, b, PARTS);
}

/* A registration of another thread. */
struct other {
	struct kfi_env *env;
	struct kfid_mr *mr;
};

static int register_other(void *data)
{
	struct other *o = data;

	return kfi_mr_reg(o->env->domain, arena_at(o->env, MEM_PAGES, 0), PAGE_SIZE, KFI_REMOTE, 0, 0, 0,
			  &o->mr, NULL);
}

/*
 * As above, while the registration of another thread is under way, and does not complete before the queue goes: its own
 * time is not over, so it is registered again.
 */
static void part_others(struct kfi_test *t, struct batch *b)
{
	unsigned int posted = kfi_inject_calls(KFI_INJECT_POST_REG);
	struct other other = { .env = t->env };
	struct job job = {};

	kfi_inject_lose(KFI_INJECT_POST_REG, 0, 1);
	job_start(t, &job, register_other, &other);
	EXPECT(t, kfi_inject_wait_returned(KFI_INJECT_POST_REG, posted + 1), "nothing was posted");
	part_untold(t, b);
	if (EXPECT_EQ(t, job_end(t, &job), 0))
		EXPECT_EQ(t, kfi_close(&other.mr->fid), 0);
}

static void part_case(struct kfi_test *t)
{
	struct batch *b = batch_alloc(t);
	unsigned int taken;

	if (!b)
		return;
	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		goto out;
	for (taken = 1; taken < PARTS && !t->failures; taken += 7) {
		part_registered(t, b, taken);
		if (has_feature(F_REFRESH))
			part_closed(t, b, taken);
	}
	part_untold(t, b);
	part_others(t, b);
	kfi_inject_stop(t->env->dev);
out:
	batch_free(b);
}

/* The device does not answer in time: that is found out once, and not again by each region. */
static void late_case(struct kfi_test *t)
{
	struct batch *b = batch_alloc(t);
	unsigned int i;
	bool open;
	int was;

	if (!b)
		return;
	was = set_wr_timeout(2);
	open = EXPECT(t, was > 0, "the parameter wr_timeout gives %d", was) && own_domain(t, b);
	if (was > 0)
		EXPECT_EQ(t, set_wr_timeout(was), 2);
	if (!open)
		goto out;
	if (EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0)) {
		kfi_inject_lose(KFI_INJECT_POST_REG, 0, 1);
		EXPECT_EQ(t, reg_many(t, b, PARTS, 0), -KFI_EIO);
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_REG), 1);
		for (i = 0; i < PARTS; i++)
			EXPECT_EQ(t, b->err[i], -KFI_EIO);
		/* The queue has been replaced. */
		EXPECT_EQ(t, reg_many(t, b, PARTS, 0), 0);
		close_all(t, b, PARTS);
		kfi_inject_stop(t->env->dev);
	}
	own_end(t, b);
out:
	batch_free(b);
}

/*
 * Requests that are posted together give all their places in the queue back: after many others, a batch takes as
 * few posts as the first one.
 */
static void places_case(struct kfi_test *t)
{
	struct batch *b = batch_alloc(t);
	unsigned int i, regs, invs, first_regs = 0, first_invs = 0;

	if (!b)
		return;
	if (!own_domain(t, b))
		goto out;
	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		goto out_domain;
	for (i = 0; i < 8 && !t->failures; i++) {
		regs = kfi_inject_calls(KFI_INJECT_POST_REG);
		invs = kfi_inject_calls(KFI_INJECT_POST_INV);
		EXPECT_EQ(t, reg_many(t, b, MANY, 0), 0);
		EXPECT_EQ(t, b->ops->close_many(b->mr, MANY, NULL), 0);
		regs = kfi_inject_calls(KFI_INJECT_POST_REG) - regs;
		invs = kfi_inject_calls(KFI_INJECT_POST_INV) - invs;
		if (!i) {
			first_regs = regs;
			first_invs = invs;
			EXPECT(t, regs && regs <= MANY / 8, "%u registrations posted", regs);
			EXPECT(t, invs <= MANY / 8 && !invs == !has_feature(F_REFRESH),
			       "%u invalidations posted", invs);
		}
		EXPECT(t, regs == first_regs, "%u: %u registrations posted, %u at first", i, regs,
		       first_regs);
		EXPECT(t, invs == first_invs, "%u: %u invalidations posted, %u at first", i, invs,
		       first_invs);
	}
	kfi_inject_stop(t->env->dev);
out_domain:
	own_end(t, b);
out:
	batch_free(b);
}

/* The device doesn't let go of one: that one says so, and where they are invalidated together all. */
static void stuck_case(struct kfi_test *t)
{
	struct batch *b = batch_alloc(t);
	unsigned int i, stuck = 0;

	if (!b)
		return;
	/* It can't be closed any more, so it isn't the suite's. */
	if (has_feature(F_REFRESH)) {
		ktap_skip(t, "regions are invalidated together: see the suite stuck");
		goto out;
	}
	if (!own_domain(t, b))
		goto out;
	/* The memory of the leaked region stays mapped. */
	t->leaves_open = true;
	if (EXPECT_EQ(t, reg_many(t, b, 10, 0), 0) &&
	    EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0)) {
		kfi_inject_fail(KFI_INJECT_DEREG_MR, -EBUSY, 4, 1);
		EXPECT_EQ(t, b->ops->close_many(b->mr, 10, b->err), -KFI_EIO);
		kfi_inject_fail(KFI_INJECT_DEREG_MR, 0, 0, 0);
		for (i = 0; i < 10; i++) {
			stuck += b->err[i] != 0;
			EXPECT_EQ(t, b->err[i], i == 4 ? -KFI_EIO : 0);
		}
		EXPECT_EQ(t, stuck, 1);
	}
	/* The memory that the device keeps is leaked, with a warning, and the domain goes. */
	own_end(t, b);
	kfi_inject_stop(t->env->dev);
	kfi_inject_mend();
out:
	batch_free(b);
}

/*
 * Elements that are no regions, and regions that are there twice, near by and far away: these are refused,
 * and the others are closed.
 */
static void twice_case(struct kfi_test *t)
{
	struct batch *b = batch_alloc(t);
	unsigned int i, n = MANY - 5;

	if (!b)
		return;
	if (EXPECT_EQ(t, reg_many(t, b, n, 0), 0)) {
		b->mr[n] = b->mr[n - 1];
		b->mr[n + 1] = b->mr[2];
		b->mr[n + 2] = ERR_PTR(-EIO);
		b->mr[n + 3] = (void *)t->env->domain;
		b->mr[n + 4] = b->mr[2];
		EXPECT_EQ(t, b->ops->close_many(b->mr, MANY, b->err), -KFI_EINVAL);
		for (i = 0; i < MANY; i++)
			EXPECT(t, b->err[i] == (i < n ? 0 : -KFI_EINVAL), "element %u: %d", i,
			       b->err[i]);
	}
	batch_free(b);
}

/* Of two domains, mixed. */
static void domains_case(struct kfi_test *t)
{
	struct kfi_env *env = t->env;
	struct batch *b = batch_alloc(t);
	struct kfid_domain *other;
	unsigned int i;

	if (!b)
		return;
	if (!EXPECT_EQ(t, kfi_domain(env->fabric, env->info, &other, NULL), 0))
		goto out;
	for (i = 0; i < 30; i++)
		EXPECT_EQ(t, kfi_mr_regattr(i % 3 ? env->domain : other, &b->attr[i], 0,
					    &b->mr[i]), 0);
	EXPECT_EQ(t, b->ops->close_many(b->mr, 30, NULL), 0);
	/* They are all gone: it can be closed. */
	EXPECT_EQ(t, kfi_close(&other->fid), 0);
out:
	batch_free(b);
}

/* Where an event queue is bound to the domain it tells of each. */
static void events_case(struct kfi_test *t)
{
	struct kfi_eq_attr attr = { .size = 2 * MANY, .wait_obj = KFI_WAIT_QUEUE };
	struct batch *b = batch_alloc(t);
	struct kfi_eq_entry entry;
	unsigned int i, seen = 0;
	struct kfid_eq *eq;
	u32 event;

	if (!b)
		return;
	if (!own_domain(t, b))
		goto out;
	if (!EXPECT_EQ(t, kfi_eq_open(t->env->fabric, &attr, &eq, NULL, NULL), 0)) {
		own_end(t, b);
		goto out;
	}
	if (EXPECT_EQ(t, kfi_domain_bind(t->env->domain, &eq->fid, KFI_REG_MR), 0) &&
	    EXPECT_EQ(t, reg_many(t, b, MANY, KFI_BATCH_ALL_OR_NONE), 0)) {
		for (i = 0; i < MANY; i++) {
			if (!EXPECT_EQ(t, kfi_eq_sread(eq, &event, &entry, sizeof(entry), 60000, 0),
				       sizeof(entry)))
				break;
			EXPECT_EQ(t, event, KFI_MR_COMPLETE);
			seen += entry.context >= (void *)&b->attr[0] &&
				entry.context <= (void *)&b->attr[MANY - 1];
		}
		EXPECT_EQ(t, seen, MANY);
		EXPECT_EQ(t, b->ops->close_many(b->mr, MANY, NULL), 0);
		/* A bad one: none is registered, and there is no event. */
		b->attr[70].access = BIT_ULL(0);
		EXPECT_EQ(t, reg_many(t, b, MANY, KFI_BATCH_ALL_OR_NONE), -KFI_EINVAL);
		expect_none(t, b, MANY);
		EXPECT_EQ(t, kfi_eq_read(eq, &event, &entry, sizeof(entry), 0), -KFI_EAGAIN);
	}
	own_end(t, b);
	EXPECT_EQ(t, kfi_close(&eq->fid), 0);
out:
	batch_free(b);
}

#ifdef CONFIG_FAULT_INJECTION
/*
 * For every allocation that fails: each region is there, or refused, and with one all if that was
 * asked for. If their requests are @refused, so that each goes by itself, none gets another's
 * memory.
 */
static void one_allocation_fails(struct kfi_test *t, struct batch *b, bool refused)
{
	unsigned int nth, refusals = 0, there, i;
	bool failed = true;
	int ret;

	for (nth = 1; failed && nth < MAX_NTH && !t->failures; nth++) {
		bool all = nth % 2;

		kfi_inject_fail(KFI_INJECT_POST_REG, -EINVAL, 0, refused);
		arm(nth);
		ret = reg_many(t, b, 4, all ? KFI_BATCH_ALL_OR_NONE : 0);
		failed = disarm();
		kfi_inject_fail(KFI_INJECT_POST_REG, 0, 0, 0);
		for (i = 0, there = 0; i < 4; i++) {
			there += !!b->mr[i];
			if (b->mr[i])
				check_there(t, b, i);
		}
		EXPECT(t, ret ? there < 4 : there == 4, "error %d, and %u are there", ret, there);
		EXPECT(t, !ret || ret == -KFI_ENOMEM || ret == -KFI_EIO, "error %d", ret);
		if (ret) {
			refusals++;
			/* The one for which it was, or what all of them need. */
			EXPECT(t, !there || (!all && there == 3), "%u are there", there);
		}
		close_all(t, b, 4);
	}
	EXPECT(t, nth < MAX_NTH, "more than %d allocations", MAX_NTH);
	EXPECT(t, refusals, "no allocation has failed: fault injection is not switched on");
	ktap_note("batch%s: %u refusals of %u", refused ? ", one by one" : "", refusals, nth - 1);
}

/* For the suite faults. */
void batch_faults_case(struct kfi_test *t)
{
	struct batch *b = batch_alloc(t);

	if (!b)
		return;
	if (EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0)) {
		one_allocation_fails(t, b, false);
		one_allocation_fails(t, b, true);
		kfi_inject_stop(t->env->dev);
	}
	batch_free(b);
}
#else
void batch_faults_case(struct kfi_test *t)
{
	ktap_skip(t, "the kernel has no fault injection");
}
#endif

static const struct kfi_case cases[] = {
	{ "args", args_case },
	{ "all", all_case },
	{ "some_bad", some_bad_case },
	{ "none", none_case },
	{ "device", device_case },
	{ "part", part_case },
	{ "late", late_case },
	{ "places", places_case },
	{ "stuck", stuck_case },
	{ "twice", twice_case },
	{ "domains", domains_case },
	{ "events", events_case },
};

const struct kfi_suite suite_batch = {
	.name = "batch",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
};
