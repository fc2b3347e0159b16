// SPDX-License-Identifier: GPL-2.0
/*
 * The device goes away while a call of it is held up: at a moment that no load would find for
 * certain. Each case takes the device away, so it is a suite of its own; removal.sh makes a new
 * link for each.
 */
#include <linux/delay.h>

#include "kfi_inject.h"
#include "job.h"
#include "request.h"
#include "suites.h"

#define LEN	(2 * PAGE_SIZE)
#define REGIONS	3
#define TIMEOUT	60000

/**
 * struct leaving - a domain whose device is going to go
 * @info: The info that it was opened with.
 * @fabric: Its fabric.
 * @domain: The domain.
 * @verbs: Its extension.
 * @dev: The device, which a reference keeps from being freed.
 * @mem: Memory to register.
 * @callbacks: How often the removal callback was called.
 */
struct leaving {
	struct kfi_info *info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct kfi_verbs_dom_ops *verbs;
	struct ib_device *dev;
	u8 *mem;
	atomic_t callbacks;
};

static void on_removal(void *arg)
{
	struct leaving *l = arg;

	atomic_inc(&l->callbacks);
}

static bool leaving_open(struct kfi_test *t, struct leaving *l)
{
	void *ops;

	*l = (struct leaving) { .mem = kmalloc(REGIONS * LEN, GFP_KERNEL) };
	if (!EXPECT(t, l->mem, "no memory"))
		return false;
	if (!EXPECT_EQ(t, env_getinfo(&l->info), 0))
		goto err_mem;
	if (!EXPECT_EQ(t, env_open_domain(l->info, &l->fabric, &l->domain), 0))
		goto err_info;
	if (!EXPECT_EQ(t, kfi_open_ops(&l->domain->fid, KFI_VERBS_DOM_OPS_1, 0, &ops, NULL), 0))
		goto err_domain;
	l->verbs = ops;
	l->dev = l->verbs->get_ib_device(&l->domain->fid);
	if (EXPECT(t, l->dev, "no device") &&
	    EXPECT_EQ(t, l->verbs->on_removal(&l->domain->fid, on_removal, l), 0)) {
		get_device(&l->dev->dev);
		if (EXPECT_EQ(t, kfi_inject_start(l->dev), 0))
			return true;
		put_device(&l->dev->dev);
	}
err_domain:
	kfi_close(&l->domain->fid);
	kfi_close(&l->fabric->fid);
err_info:
	kfi_freeinfo(l->info);
err_mem:
	kfree(l->mem);
	return false;
}

/* The device is gone by now. */
static void leaving_close(struct kfi_test *t, struct leaving *l)
{
	kfi_inject_stop(l->dev);
	put_device(&l->dev->dev);
	EXPECT_EQ(t, atomic_read(&l->callbacks), 1);
	if (l->domain)
		EXPECT_EQ(t, kfi_close(&l->domain->fid), 0);
	EXPECT_EQ(t, kfi_close(&l->fabric->fid), 0);
	kfi_freeinfo(l->info);
	kfree(l->mem);
}

/* Does the same as deleting the link of a software device, or taking hardware from its driver. */
static int unregister(void *data)
{
	struct leaving *l = data;

	if (l->dev->dma_device) {
		device_release_driver(l->dev->dma_device);
		return 0;
	}
	if (!ib_device_try_get(l->dev))
		return -ENODEV;
	ib_unregister_device_and_put(l->dev);
	return 0;
}

/* Removal has begun: nobody gets in any more. */
static bool is_shut(struct leaving *l)
{
	return !l->verbs->get_pd(&l->domain->fid);
}

static bool wait_shut(struct kfi_test *t, struct leaving *l)
{
	unsigned long end = jiffies + msecs_to_jiffies(TIMEOUT);

	while (!is_shut(l) && time_before(jiffies, end))
		msleep(10);
	return EXPECT(t, is_shut(l), "removal doesn't begin");
}

/* A registration is under way: it ends in an error event, and in nothing else. */
static void expect_error_event(struct kfi_test *t, struct kfid_eq *eq, struct kfid_mr *mr)
{
	struct kfi_eq_err_entry err = {};
	struct kfi_eq_entry entry;
	u32 event;

	EXPECT_EQ(t, kfi_eq_sread(eq, &event, &entry, sizeof(entry), TIMEOUT, 0), -KFI_EAVAIL);
	EXPECT_EQ(t, kfi_eq_readerr(eq, &err, 0), sizeof(err));
	EXPECT_EQ(t, err.err, KFI_ENODEV);
	EXPECT_EQ(t, err.prov_errno, KFI_ENODEV);
	EXPECT(t, err.fid == &mr->fid, "the event is about another object");
	EXPECT(t, err.context == mr->fid.context, "the event has another context");
	EXPECT(t, kfi_mr_key(mr) == KFI_KEY_NOTAVAIL, "there is a key");
	EXPECT_EQ(t, kfi_eq_read(eq, &event, &entry, sizeof(entry), 0), -KFI_EAGAIN);
}

static void in_async(struct kfi_test *t, struct leaving *l, struct kfid_eq *eq)
{
	unsigned int modified = kfi_inject_calls(KFI_INJECT_MODIFY_QP);
	struct kfid_mr *mr;
	struct job removal;
	int ret;

	kfi_inject_hold(KFI_INJECT_POST_REG);
	ret = kfi_mr_reg(l->domain, l->mem, LEN, KFI_REMOTE, 0, 0, 0, &mr, l);
	if (!EXPECT_EQ(t, ret, 0))
		return;
	EXPECT(t, kfi_inject_wait_held(KFI_INJECT_POST_REG), "nothing was registered");
	job_start(t, &removal, unregister, l);
	/* The queue pair is in error, and then the request is posted. */
	wait_shut(t, l);
	EXPECT(t, kfi_inject_wait_returned(KFI_INJECT_MODIFY_QP, modified + 1),
	       "removal doesn't end what is under way");
	EXPECT(t, !job_is_done(&removal), "removal didn't wait for the registration");
	EXPECT_EQ(t, atomic_read(&l->callbacks), 0);
	kfi_inject_release(KFI_INJECT_POST_REG);
	expect_error_event(t, eq, mr);
	EXPECT_EQ(t, job_end(t, &removal), 0);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
}

/* A registration that was under way when the device went ends in an error event. */
static void async_case(struct kfi_test *t)
{
	struct kfi_eq_attr attr = { .wait_obj = KFI_WAIT_QUEUE };
	struct kfid_eq *eq = NULL;
	struct leaving l;

	if (!leaving_open(t, &l))
		return;
	if (EXPECT_EQ(t, kfi_eq_open(l.fabric, &attr, &eq, NULL, NULL), 0) &&
	    EXPECT_EQ(t, kfi_domain_bind(l.domain, &eq->fid, KFI_REG_MR), 0))
		in_async(t, &l, eq);
	else
		unregister(&l);
	/* A queue can't be closed before what it is bound to. */
	if (eq) {
		EXPECT_EQ(t, kfi_close(&l.domain->fid), 0);
		EXPECT_EQ(t, kfi_close(&eq->fid), 0);
		l.domain = NULL;
	}
	leaving_close(t, &l);
}

static int close_mr(void *data)
{
	struct kfid_mr *mr = data;

	return kfi_close(&mr->fid);
}

/*
 * Regions are closed while removal is taking them from the device: one that removal has, and others
 * that it doesn't have yet. None of the closes returns before the device has let go of its region.
 */
static void close_case(struct kfi_test *t)
{
	struct job removal, close[REGIONS];
	struct kfid_mr *mr[REGIONS];
	struct leaving l;
	int i, n;

	if (!leaving_open(t, &l))
		return;
	for (n = 0; n < REGIONS; n++)
		if (!EXPECT_EQ(t, kfi_mr_reg(l.domain, l.mem + n * LEN, LEN, KFI_REMOTE, 0, 0, 0,
					     &mr[n], NULL), 0))
			break;
	kfi_inject_hold(KFI_INJECT_DEREG_MR);
	job_start(t, &removal, unregister, &l);
	EXPECT(t, kfi_inject_wait_held(KFI_INJECT_DEREG_MR), "removal doesn't take regions away");
	for (i = 0; i < n; i++)
		job_start(t, &close[i], close_mr, mr[i]);
	/* Time enough for a close that doesn't wait; one that does is never too slow. */
	msleep(2000);
	for (i = 0; i < n; i++)
		EXPECT(t, !job_is_done(&close[i]), "region %d was closed, and peers reach it", i);
	EXPECT(t, !job_is_done(&removal), "removal has left regions behind");
	kfi_inject_release(KFI_INJECT_DEREG_MR);
	for (i = 0; i < n; i++)
		EXPECT_EQ(t, job_end(t, &close[i]), 0);
	EXPECT_EQ(t, job_end(t, &removal), 0);
	leaving_close(t, &l);
}

static const struct kfi_case async_cases[] = { { "under_way", async_case } };
static const struct kfi_case close_cases[] = { { "meets_removal", close_case } };

const struct kfi_suite suite_gone_async = {
	.name = "gone_async",
	.cases = async_cases,
	.count = ARRAY_SIZE(async_cases),
	.bare = true,
};

const struct kfi_suite suite_gone_close = {
	.name = "gone_close",
	.cases = close_cases,
	.count = ARRAY_SIZE(close_cases),
	.bare = true,
};
