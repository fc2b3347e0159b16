// SPDX-License-Identifier: GPL-2.0
/*
 * The visible state of an asynchronous registration while the device's part of it is held up. And
 * its end, when that is let go, fails, or is waited for.
 */
#include <kfi_batch_ext.h>

#include "kfi_inject.h"
#include "job.h"
#include "request.h"
#include "suites.h"

#define LEN	(2 * PAGE_SIZE)
#define TIMEOUT	60000

/**
 * struct pending - a region whose registration is held up
 * @domain: Its domain, with an event queue.
 * @eq: The queue.
 * @mr: The region.
 * @context: Its context.
 */
struct pending {
	struct kfid_domain *domain;
	struct kfid_eq *eq;
	struct kfid_mr *mr;
	int context;
};

static bool no_event(struct kfi_test *t, struct pending *p)
{
	struct kfi_eq_entry entry;
	u32 event;

	return EXPECT_EQ(t, kfi_eq_read(p->eq, &event, &entry, sizeof(entry), 0), -KFI_EAGAIN);
}

/* The call has returned, the region is there, and nothing works yet. */
static void expect_pending(struct kfi_test *t, struct pending *p)
{
	struct kfi_eq_entry entry;
	u32 event;

	EXPECT(t, !IS_ERR_OR_NULL(p->mr), "*mr was not written");
	EXPECT_EQ(t, p->mr->fid.fclass, KFI_CLASS_MR);
	EXPECT(t, p->mr->fid.context == &p->context, "the context is another one");
	EXPECT(t, kfi_mr_key(p->mr) == KFI_KEY_NOTAVAIL, "there is a key");
	EXPECT(t, !kfi_mr_desc(p->mr), "there is a descriptor");
	EXPECT_EQ(t, kfi_mr_enable(p->mr), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, kfi_mr_refresh(p->mr, NULL, 0, 0),
		  feature_errno(F_REFRESH) ?: -KFI_EOPBADSTATE);
	EXPECT_EQ(t, kfi_close(&p->domain->fid), -KFI_EBUSY);
	no_event(t, p);
	EXPECT_EQ(t, kfi_eq_sread(p->eq, &event, &entry, sizeof(entry), 20, 0), -KFI_EAGAIN);
}

static bool pending_open(struct kfi_test *t, struct pending *p)
{
	struct kfi_eq_attr attr = { .wait_obj = KFI_WAIT_QUEUE };
	u8 *mem = arena_at(t->env, MEM_PAGES, 0);

	*p = (struct pending) {};
	if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &p->domain, NULL), 0))
		return false;
	if (!EXPECT_EQ(t, kfi_eq_open(t->env->fabric, &attr, &p->eq, NULL, NULL), 0))
		goto err_domain;
	if (!EXPECT_EQ(t, kfi_domain_bind(p->domain, &p->eq->fid, KFI_REG_MR), 0) ||
	    !EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		goto err_eq;
	kfi_inject_hold(KFI_INJECT_POST_REG);
	if (EXPECT_EQ(t, kfi_mr_reg(p->domain, mem, LEN, KFI_REMOTE, 0, 0, 0, &p->mr, &p->context),
		      0)) {
		EXPECT(t, kfi_inject_wait_held(KFI_INJECT_POST_REG), "nothing was registered");
		expect_pending(t, p);
		return true;
	}
	kfi_inject_stop(t->env->dev);
err_eq:
	kfi_close(&p->domain->fid);
	kfi_close(&p->eq->fid);
	return false;
err_domain:
	kfi_close(&p->domain->fid);
	return false;
}

/* The region is closed by now, and nothing is held any more. */
static void pending_close(struct kfi_test *t, struct pending *p)
{
	no_event(t, p);
	kfi_inject_stop(t->env->dev);
	EXPECT_EQ(t, kfi_close(&p->domain->fid), 0);
	EXPECT_EQ(t, kfi_close(&p->eq->fid), 0);
}

static void completes_case(struct kfi_test *t)
{
	struct kfi_eq_entry entry = {};
	struct pending p;
	u32 event = ~0;

	if (!pending_open(t, &p))
		return;
	kfi_inject_release(KFI_INJECT_POST_REG);
	EXPECT_EQ(t, kfi_eq_sread(p.eq, &event, &entry, sizeof(entry), TIMEOUT, 0), sizeof(entry));
	EXPECT_EQ(t, event, KFI_MR_COMPLETE);
	EXPECT(t, entry.fid == &p.mr->fid, "the event is about another object");
	EXPECT(t, kfi_mr_key(p.mr) != KFI_KEY_NOTAVAIL, "no key after the event");
	EXPECT(t, kfi_mr_desc(p.mr), "no descriptor after the event");
	EXPECT_EQ(t, kfi_close(&p.mr->fid), 0);
	pending_close(t, &p);
}

static void fails_case(struct kfi_test *t)
{
	struct kfi_eq_err_entry err = {};
	struct kfi_eq_entry entry;
	struct pending p;
	u32 event;

	if (!pending_open(t, &p))
		return;
	kfi_inject_fail(KFI_INJECT_POST_REG, -EINVAL, 0, UINT_MAX);
	kfi_inject_release(KFI_INJECT_POST_REG);
	EXPECT_EQ(t, kfi_eq_sread(p.eq, &event, &entry, sizeof(entry), TIMEOUT, 0), -KFI_EAVAIL);
	EXPECT_EQ(t, kfi_eq_readerr(p.eq, &err, 0), sizeof(err));
	EXPECT_EQ(t, err.err, KFI_EIO);
	EXPECT_EQ(t, err.prov_errno, KFI_EIO);
	EXPECT(t, err.fid == &p.mr->fid, "the event is about another object");
	EXPECT(t, err.context == &p.context, "the event has another context");
	EXPECT(t, kfi_mr_key(p.mr) == KFI_KEY_NOTAVAIL, "a region that failed has a key");
	EXPECT_EQ(t, kfi_close(&p.mr->fid), 0);
	pending_close(t, &p);
}

static int close_mr(void *data)
{
	struct pending *p = data;

	return kfi_close(&p->mr->fid);
}

/* A close waits for the registration, and leaves no event of it behind. */
static void closed_case(struct kfi_test *t)
{
	struct pending p;
	struct job job;

	if (!pending_open(t, &p))
		return;
	job_start(t, &job, close_mr, &p);
	/* Time enough for a close that doesn't wait; one that does is never too slow. */
	schedule_timeout_uninterruptible(HZ);
	EXPECT(t, !job_is_done(&job), "a region was closed while it was being registered");
	kfi_inject_release(KFI_INJECT_POST_REG);
	EXPECT_EQ(t, job_end(t, &job), 0);
	pending_close(t, &p);
}

/* A region that is left to be closed later. */
struct left {
	struct kfi_closing closing;
	struct completion done;
	int err;
};

static void left_done(struct kfi_closing *closing, int err)
{
	struct left *left = container_of(closing, struct left, closing);

	left->err = err;
	complete(&left->done);
}

/* While a region is being closed nobody else closes it, in whatever way; and it is closed once. */
static void closed_twice_case(struct kfi_test *t)
{
	struct kfi_batch_ops *ops;
	struct job job, again;
	struct pending p;
	struct left left;
	void *table;
	int err = 0;

	if (!pending_open(t, &p))
		return;
	if (!EXPECT_EQ(t, kfi_open_ops(&p.domain->fid, KFI_BATCH_OPS_1, 0, &table, NULL), 0))
		return;
	ops = table;
	init_completion(&left.done);
	left.closing.done = left_done;
	job_start(t, &job, close_mr, &p);
	job_start(t, &again, close_mr, &p);
	if (EXPECT(t, job_either_done(&job, &again), "each waits for the registration")) {
		EXPECT_EQ(t, ops->close_many(&p.mr, 1, &err), -KFI_EINVAL);
		EXPECT_EQ(t, err, -KFI_EINVAL);
		EXPECT_EQ(t, ops->close_now(p.mr), -KFI_EINVAL);
		ops->close_later(p.mr, &left.closing);
		wait_for_completion(&left.done);
		EXPECT_EQ(t, left.err, -KFI_EINVAL);
		EXPECT(t, !job_is_done(&job) || !job_is_done(&again),
		       "a region was closed while it was being registered");
	}
	kfi_inject_release(KFI_INJECT_POST_REG);
	/* One has closed it, the other was refused. */
	err = job_end(t, &job);
	EXPECT_EQ(t, job_end(t, &again), err ? 0 : -KFI_EINVAL);
	if (err)
		EXPECT_EQ(t, err, -KFI_EINVAL);
	pending_close(t, &p);
}

static const struct kfi_case cases[] = {
	{ "completes", completes_case },
	{ "fails", fails_case },
	{ "closed", closed_case },
	{ "closed_twice", closed_twice_case },
};

const struct kfi_suite suite_held = {
	.name = "held",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
