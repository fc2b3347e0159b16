// SPDX-License-Identifier: GPL-2.0
/*
 * A driver's interference with the registration queue: requests that it refuses, that it completes
 * late or never, queue pairs that it doesn't make, and an operation that it offers and doesn't
 * have.
 */
#include <linux/delay.h>

#include "kfi_inject.h"
#include "job.h"
#include "request.h"
#include "suites.h"
#include "wr_timeout.h"

#define LEN	(2 * PAGE_SIZE)

/* Seconds that a request may take where it is meant to take too long. */
#define SHORT	2

/* A registration in a domain of its own. */
struct call {
	struct kfi_env *env;
	struct kfid_domain *domain;
	struct kfid_mr *mr;
};

/* A domain whose requests may take @seconds, over a driver that does as it is told. */
static bool open_call(struct kfi_test *t, struct call *c, int seconds)
{
	int was = set_wr_timeout(seconds);
	int ret;

	*c = (struct call) { .env = t->env };
	if (!EXPECT(t, was > 0, "the parameter wr_timeout gives %d", was))
		return false;
	ret = kfi_domain(t->env->fabric, t->env->info, &c->domain, NULL);
	EXPECT_EQ(t, set_wr_timeout(was), seconds);
	if (!EXPECT_EQ(t, ret, 0))
		return false;
	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0)) {
		EXPECT_EQ(t, kfi_close(&c->domain->fid), 0);
		return false;
	}
	return true;
}

static void close_call(struct kfi_test *t, struct call *c)
{
	kfi_inject_stop(t->env->dev);
	EXPECT_EQ(t, kfi_close(&c->domain->fid), 0);
}

static int do_register(void *data)
{
	struct call *c = data;

	return kfi_mr_reg(c->domain, arena_at(c->env, MEM_PAGES, 0), LEN, KFI_REMOTE, 0, 0, 0,
			  &c->mr, NULL);
}

static int do_close(void *data)
{
	struct call *c = data;

	return kfi_close(&c->mr->fid);
}

static void expect_register(struct kfi_test *t, struct call *c)
{
	if (EXPECT_EQ(t, do_register(c), 0))
		EXPECT_EQ(t, do_close(c), 0);
}

/* Nobody has touched the queue pair since kfi_inject_start(), and there is no other. */
static void expect_undisturbed(struct kfi_test *t)
{
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_MODIFY_QP), 0);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_CREATE_QP), 0);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_DESTROY_QP), 0);
}

/* A post that fails at once is told and not repeated, and is nobody else's business. */
static void post_fails_case(struct kfi_test *t)
{
	static const struct {
		int err;
		int want;
	} rows[] = {
		{ -EINVAL, -KFI_EIO },
		{ -EIO, -KFI_EIO },
		{ -ENODEV, -KFI_EIO },
		{ -EAGAIN, -KFI_EIO },
		{ -EOPNOTSUPP, -KFI_EIO },
		{ -ENOMEM, -KFI_ENOMEM },
	};
	struct call c;
	int i;

	if (!open_call(t, &c, 60))
		return;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		kfi_inject_fail(KFI_INJECT_POST_REG, rows[i].err, 0, UINT_MAX);
		EXPECT_EQ(t, do_register(&c), rows[i].want);
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_REG), 2 * i + 1);
		kfi_inject_fail(KFI_INJECT_POST_REG, 0, 0, 0);
		expect_register(t, &c);
	}
	expect_undisturbed(t);
	close_call(t, &c);
}

/*
 * A request that never completes ends with an error, and with the queue. Until then it is under
 * way, so it shows that others' trouble is no trouble of its.
 */
static void lost_case(struct kfi_test *t)
{
	struct call lost, c;
	struct job job;

	/* Longer than what comes before the job is waited for. */
	if (!open_call(t, &lost, 10))
		return;
	c = lost;
	kfi_inject_lose(KFI_INJECT_POST_REG, 0, 1);
	job_start(t, &job, do_register, &lost);
	while (job.started && !kfi_inject_calls(KFI_INJECT_POST_REG) && !job_is_done(&job))
		schedule_timeout_uninterruptible(1);
	kfi_inject_fail(KFI_INJECT_POST_REG, -EINVAL, 0, 1);
	EXPECT_EQ(t, do_register(&c), -KFI_EIO);
	expect_register(t, &c);
	expect_undisturbed(t);
	EXPECT_EQ(t, job_end(t, &job), -KFI_EIO);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_DESTROY_QP), 1);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_CREATE_QP), 0);
	expect_register(t, &c);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_CREATE_QP), 1);
	close_call(t, &lost);
}

/* A close whose invalidation never completes deregisters the region. */
static void lost_close_case(struct kfi_test *t)
{
	struct call c;
	unsigned int before;

	if (!needs_feature(t, F_REFRESH) || !open_call(t, &c, SHORT))
		return;
	if (!EXPECT_EQ(t, do_register(&c), 0))
		goto out;
	kfi_inject_lose(KFI_INJECT_POST_INV, 0, UINT_MAX);
	before = kfi_inject_calls(KFI_INJECT_DEREG_MR);
	EXPECT_EQ(t, do_close(&c), 0);
	EXPECT(t, kfi_inject_calls(KFI_INJECT_DEREG_MR) > before, "the region was not deregistered");
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_DESTROY_QP), 1);
	kfi_inject_lose(KFI_INJECT_POST_INV, 0, 0);
	expect_register(t, &c);
out:
	close_call(t, &c);
}

/*
 * The device gets round to requests when their time is over, and flushes them: the caller is told at once, and
 * nothing is tried again.
 */
static void late_case(struct kfi_test *t)
{
	struct call c;
	unsigned int deregs;
	int was;

	if (!open_call(t, &c, SHORT))
		return;
	/* For queues that are made in the place of the first one, too. */
	was = set_wr_timeout(SHORT);
	kfi_inject_defer(KFI_INJECT_POST_REG, 0, UINT_MAX);
	deregs = kfi_inject_calls(KFI_INJECT_DEREG_MR);
	EXPECT_EQ(t, do_register(&c), -KFI_EIO);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_REG), 1);
	/* The device may have registered it. */
	EXPECT(t, kfi_inject_calls(KFI_INJECT_DEREG_MR) > deregs, "the region was not deregistered");
	/* It has completed, so nothing had to be destroyed for it. */
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_CREATE_QP), 0);
	EXPECT_EQ(t, set_wr_timeout(was), SHORT);
	kfi_inject_defer(KFI_INJECT_POST_REG, 0, 0);
	expect_register(t, &c);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_CREATE_QP), 1);
	close_call(t, &c);
}

/* The same while a domain is opened. */
static void late_domain_case(struct kfi_test *t)
{
	struct call c = { .env = t->env };
	int was = set_wr_timeout(SHORT);

	if (!EXPECT(t, was > 0, "the parameter wr_timeout gives %d", was))
		return;
	if (EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0)) {
		kfi_inject_defer(KFI_INJECT_POST_REG, 0, UINT_MAX);
		EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &c.domain, NULL), -KFI_EIO);
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_REG), 1);
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_CREATE_QP), 1);
		kfi_inject_stop(t->env->dev);
	}
	EXPECT_EQ(t, set_wr_timeout(was), SHORT);
}

/* A driver's own drain may take for ever. Nobody waits for it. */
static void own_drain_case(struct kfi_test *t)
{
	struct call c;

	if (!open_call(t, &c, SHORT))
		return;
	kfi_inject_own_drain();
	kfi_inject_hold(KFI_INJECT_DRAIN);
	kfi_inject_lose(KFI_INJECT_POST_REG, 0, 1);
	EXPECT_EQ(t, do_register(&c), -KFI_EIO);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_DRAIN), 0);
	kfi_inject_release(KFI_INJECT_DRAIN);
	expect_register(t, &c);
	close_call(t, &c);
}

/* The device may carry a request out at any time, since its queue pair is there for good: so the region is leaked. */
static void stuck_queue_case(struct kfi_test *t)
{
	struct call c;

	if (!open_call(t, &c, SHORT))
		return;
	kfi_inject_own_drain();
	kfi_inject_lose(KFI_INJECT_POST_REG, 0, 1);
	kfi_inject_fail(KFI_INJECT_MODIFY_QP, -EIO, 0, 1);
	kfi_inject_fail(KFI_INJECT_DESTROY_QP, -EIO, 0, 1);
	EXPECT_EQ(t, do_register(&c), -KFI_ENOTRECOVERABLE);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_MODIFY_QP), 1);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_DESTROY_QP), 1);
	expect_register(t, &c);
	/* With the domain, before what was leaked is given back. */
	close_call(t, &c);
	kfi_inject_mend();
}

/* Many that wait for their requests. */
#define WAITERS	24
/* Seconds: longer than what comes before the first of them has waited too long. */
#define LIMIT	5

/*
 * A driver does not come back from posting, so the queue pair can't be destroyed. All who wait for other requests on it
 * find that out at the same time: one after the other, they would take longer than kfi_inject holds a call.
 */
static void held_post_case(struct kfi_test *t)
{
	struct call *calls = kcalloc(WAITERS + 1, sizeof(*calls), GFP_KERNEL);
	struct job *jobs = kcalloc(WAITERS + 1, sizeof(*jobs), GFP_KERNEL);
	struct call c;
	int i;

	if (!EXPECT(t, calls && jobs, "no memory") || !open_call(t, &c, LIMIT))
		goto out;
	kfi_inject_lose(KFI_INJECT_POST_REG, 0, WAITERS);
	for (i = 0; i <= WAITERS; i++) {
		calls[i] = c;
		if (i == WAITERS) {
			EXPECT(t, kfi_inject_wait_returned(KFI_INJECT_POST_REG, WAITERS),
			       "%u were posted", kfi_inject_calls(KFI_INJECT_POST_REG));
			kfi_inject_hold(KFI_INJECT_POST_REG);
		}
		job_start(t, &jobs[i], do_register, &calls[i]);
	}
	EXPECT(t, kfi_inject_wait_held(KFI_INJECT_POST_REG), "nobody posts");
	for (i = 0; i < WAITERS; i++)
		EXPECT_EQ(t, job_end(t, &jobs[i]), -KFI_ENOTRECOVERABLE);
	EXPECT(t, !job_is_done(&jobs[WAITERS]), "the call was not held as long as that");
	kfi_inject_release(KFI_INJECT_POST_REG);
	if (EXPECT_EQ(t, job_end(t, &jobs[WAITERS]), 0))
		EXPECT_EQ(t, do_close(&calls[WAITERS]), 0);
	/* With the domain, before what was leaked is given back. */
	close_call(t, &c);
	kfi_inject_mend();
out:
	kfree(jobs);
	kfree(calls);
}

/*
 * A task that looks for a completion doesn't find it, although it is there, and goes to sleep: it
 * is told of the ones before that. Nor is any left behind for the next task.
 */
static void unseen_case(struct kfi_test *t)
{
	struct call c;
	int i;

	if (!open_call(t, &c, 60))
		return;
	for (i = 0; i < scaled(20) && !t->failures; i++) {
		/* Sometimes it is found in the end, just before or while it goes to sleep. */
		kfi_inject_lose(KFI_INJECT_POLL_CQ, 0, i % 3 ? i : UINT_MAX);
		expect_register(t, &c);
		kfi_inject_lose(KFI_INJECT_POLL_CQ, 0, 0);
		expect_register(t, &c);
	}
	expect_undisturbed(t);
	close_call(t, &c);
}

/*
 * A task that looks for completions takes out those of others, and is kept from telling them. All
 * of them go to sleep meanwhile, and are told then.
 */
static void held_poll_case(struct kfi_test *t)
{
	struct call calls[4];
	struct job jobs[ARRAY_SIZE(calls)];
	unsigned int posted;
	int i;

	if (!open_call(t, &calls[0], 60))
		return;
	kfi_inject_hold(KFI_INJECT_POLL_CQ);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		calls[i] = calls[0];
		posted = kfi_inject_calls(KFI_INJECT_POST_REG);
		job_start(t, &jobs[i], do_register, &calls[i]);
		if (!i)
			EXPECT(t, kfi_inject_wait_held(KFI_INJECT_POLL_CQ), "nobody polls");
		EXPECT(t, kfi_inject_wait_returned(KFI_INJECT_POST_REG, posted + 1),
		       "nothing was posted");
	}
	/* Longer than anybody looks. */
	msleep(20);
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		EXPECT(t, !job_is_done(&jobs[i]), "there are two who poll");
	kfi_inject_release(KFI_INJECT_POLL_CQ);
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (EXPECT_EQ(t, job_end(t, &jobs[i]), 0))
			EXPECT_EQ(t, do_close(&calls[i]), 0);
	expect_register(t, &calls[0]);
	expect_undisturbed(t);
	close_call(t, &calls[0]);
}

/* While no other queue can be made registrations fail, and go on as soon as one can. */
static void no_queue_case(struct kfi_test *t)
{
	static const struct {
		enum kfi_inject_op op;
		int err;
		int want;
	} rows[] = {
		{ KFI_INJECT_CREATE_CQ, -ENOMEM, -KFI_ENOMEM },
		{ KFI_INJECT_CREATE_QP, -EINVAL, -KFI_EIO },
		{ KFI_INJECT_CREATE_QP, -ENOMEM, -KFI_ENOMEM },
		{ KFI_INJECT_MODIFY_QP, -EINVAL, -KFI_EIO },
	};
	struct call c;
	int i;

	if (!open_call(t, &c, SHORT))
		return;
	kfi_inject_lose(KFI_INJECT_POST_REG, 0, 1);
	EXPECT_EQ(t, do_register(&c), -KFI_EIO);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		kfi_inject_fail(rows[i].op, rows[i].err, 0, UINT_MAX);
		EXPECT_EQ(t, do_register(&c), rows[i].want);
		EXPECT_EQ(t, do_register(&c), rows[i].want);
		kfi_inject_fail(rows[i].op, 0, 0, 0);
	}
	expect_register(t, &c);
	close_call(t, &c);
}

/* A device that offers fast registration, but can't invalidate: hns is one. */
static void no_invalidation_case(struct kfi_test *t)
{
	struct call c = { .env = t->env };
	unsigned int before;

	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		return;
	kfi_inject_fail(KFI_INJECT_POST_INV, -EINVAL, 0, UINT_MAX);
	if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &c.domain, NULL), 0))
		goto out;
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV), has_feature(F_LOCAL_INV));
	if (EXPECT_EQ(t, do_register(&c), 0)) {
		EXPECT_EQ(t, kfi_mr_refresh(c.mr, NULL, 0, 0), -KFI_ENOSYS);
		before = kfi_inject_calls(KFI_INJECT_DEREG_MR);
		EXPECT_EQ(t, do_close(&c), 0);
		EXPECT(t, kfi_inject_calls(KFI_INJECT_DEREG_MR) > before,
		       "the region was not deregistered");
	}
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV), has_feature(F_LOCAL_INV));
	EXPECT_EQ(t, kfi_close(&c.domain->fid), 0);
	/* And one that can't register is no use. */
	kfi_inject_fail(KFI_INJECT_POST_REG, -EINVAL, 0, UINT_MAX);
	EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &c.domain, NULL), -KFI_EIO);
out:
	kfi_inject_stop(t->env->dev);
}

/* A first invalidation that does not complete in time says nothing about the device: another one is tried. */
static void late_probe_case(struct kfi_test *t)
{
	struct call c = { .env = t->env };
	int before = set_wr_timeout(SHORT);

	if (!EXPECT(t, before >= 0, "no wr_timeout") || !EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		goto out;
	kfi_inject_lose(KFI_INJECT_POST_INV, 0, 1);
	if (EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &c.domain, NULL), 0)) {
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV), has_feature(F_LOCAL_INV) ? 2 : 0);
		if (EXPECT_EQ(t, do_register(&c), 0)) {
			EXPECT_EQ(t, kfi_mr_refresh(c.mr, NULL, 0, 0), feature_errno(F_REFRESH));
			EXPECT_EQ(t, do_close(&c), 0);
		}
		EXPECT_EQ(t, kfi_close(&c.domain->fid), 0);
	}
	kfi_inject_stop(t->env->dev);
out:
	if (before >= 0)
		set_wr_timeout(before);
}

static const struct kfi_case cases[] = {
	{ "late_probe", late_probe_case },
	{ "post_fails", post_fails_case },
	{ "lost", lost_case },
	{ "lost_close", lost_close_case },
	{ "late", late_case },
	{ "late_domain", late_domain_case },
	{ "own_drain", own_drain_case },
	{ "stuck_queue", stuck_queue_case },
	{ "held_post", held_post_case },
	{ "unseen", unseen_case },
	{ "held_poll", held_poll_case },
	{ "no_queue", no_queue_case },
	{ "no_invalidation", no_invalidation_case },
};

const struct kfi_suite suite_queue = {
	.name = "queue",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
