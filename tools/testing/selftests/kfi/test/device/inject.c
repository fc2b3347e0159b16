// SPDX-License-Identifier: GPL-2.0
/*
 * The module kfi_inject itself: what it makes fail, wait and get lost. Seen through kfabric, which
 * must return the documented errno meanwhile, and work afterwards.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <kfi_raw_ext.h>

#include "kfi_inject.h"
#include "job.h"
#include "request.h"
#include "suites.h"

#define LEN	(2 * PAGE_SIZE)

/* The steps that make the provider call the device. */
enum step {
	OPEN,		/* Open a domain. */
	REGISTER,	/* Register a region in a new domain. */
	CLOSE,		/* Close a domain in which there was a region. */
};

/**
 * struct target - an operation, and how to come by it
 * @op: The operation.
 * @step: The step that calls it.
 * @err: The errno that it is made to fail with.
 * @want: The result of the step then.
 */
struct target {
	enum kfi_inject_op op;
	enum step step;
	int err;
	int want;
};

/**
 * struct stage - a step, ready to be done
 * @env: The resources that the suite shares.
 * @step: Which one.
 * @domain: A domain of its own; NULL while it isn't open.
 */
struct stage {
	struct kfi_env *env;
	enum step step;
	struct kfid_domain *domain;
};

static int open_domain(struct stage *s)
{
	return kfi_domain(s->env->fabric, s->env->info, &s->domain, NULL);
}

static int close_domain(struct stage *s)
{
	int ret = s->domain ? kfi_close(&s->domain->fid) : 0;

	s->domain = NULL;
	return ret;
}

static int register_one(struct stage *s)
{
	struct kfid_mr *mr;

	return kfi_mr_reg(s->domain, arena_at(s->env, MEM_PAGES, 0), LEN, KFI_REMOTE, 0, 0, 0, &mr,
			  NULL) ?: kfi_close(&mr->fid);
}

/* The preparation of the step. */
static int prepare(struct stage *s)
{
	if (s->step == OPEN)
		return 0;
	return open_domain(s) ?: s->step == CLOSE ? register_one(s) : 0;
}

static int do_step(void *data)
{
	struct stage *s = data;

	if (s->step == OPEN)
		return open_domain(s);
	return s->step == REGISTER ? register_one(s) : close_domain(s);
}

static void fail_case(struct kfi_test *t)
{
	const struct target *target = t->c->data;
	struct stage s = { .env = t->env, .step = target->step };

	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		return;
	if (EXPECT_EQ(t, prepare(&s), 0)) {
		kfi_inject_fail(target->op, target->err, 0, UINT_MAX);
		EXPECT_EQ(t, do_step(&s), target->want);
		EXPECT(t, kfi_inject_calls(target->op), "nothing was called");
		kfi_inject_fail(target->op, 0, 0, 0);
		EXPECT_EQ(t, do_step(&s), 0);
	}
	EXPECT_EQ(t, close_domain(&s), 0);
	kfi_inject_stop(t->env->dev);
}

static void hold_case(struct kfi_test *t)
{
	const struct target *target = t->c->data;
	struct stage s = { .env = t->env, .step = target->step };
	struct job job;

	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		return;
	if (EXPECT_EQ(t, prepare(&s), 0)) {
		kfi_inject_hold(target->op);
		job_start(t, &job, do_step, &s);
		EXPECT(t, kfi_inject_wait_held(target->op), "nothing was called");
		EXPECT(t, !job_is_done(&job), "the step didn't wait");
		kfi_inject_release(target->op);
		EXPECT_EQ(t, job_end(t, &job), 0);
	}
	EXPECT_EQ(t, close_domain(&s), 0);
	kfi_inject_stop(t->env->dev);
}

/* How a held call ends is said while it is held. */
static void hold_then_fail_case(struct kfi_test *t)
{
	struct stage s = { .env = t->env, .step = OPEN };
	struct job job;

	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		return;
	kfi_inject_hold(KFI_INJECT_ALLOC_PD);
	job_start(t, &job, do_step, &s);
	EXPECT(t, kfi_inject_wait_held(KFI_INJECT_ALLOC_PD), "nothing was called");
	kfi_inject_fail(KFI_INJECT_ALLOC_PD, -ENOMEM, 0, 1);
	kfi_inject_release(KFI_INJECT_ALLOC_PD);
	EXPECT_EQ(t, job_end(t, &job), -KFI_ENOMEM);
	EXPECT_EQ(t, close_domain(&s), 0);
	kfi_inject_stop(t->env->dev);
}

/* Counting: these calls and no others, from when it was said. */
static void skip_case(struct kfi_test *t)
{
	static const int want[] = { 0, 0, -KFI_ENOMEM, -KFI_ENOMEM, 0, 0 };
	struct stage s = { .env = t->env, .step = OPEN };
	int i;

	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		return;
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_ALLOC_PD), 0);
	kfi_inject_fail(KFI_INJECT_ALLOC_PD, -ENOMEM, 2, 2);
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		EXPECT(t, open_domain(&s) == want[i], "wrong in round %d", i);
		EXPECT_EQ(t, close_domain(&s), 0);
	}
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_ALLOC_PD), ARRAY_SIZE(want));
	kfi_inject_stop(t->env->dev);
}

/* Posts to a queue pair that isn't connected, which the driver itself refuses. */
static int post(struct ib_qp *qp, enum ib_wr_opcode opcode)
{
	struct ib_send_wr wr = { .wr_id = opcode, .opcode = opcode };

	return ib_post_send(qp, &wr, NULL);
}

/* A drain of the driver's own follows the plan for it. */
static void drain_in(struct kfi_test *t, struct ib_qp *qp)
{
	kfi_inject_own_drain();
	ib_drain_sq(qp);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_DRAIN), 1);
	/* Nothing was posted, and the state has not changed. */
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_TO_PEER), 1);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_MODIFY_QP), 0);
}

/* The next completion is a flush, of this request. */
static void expect_flushed(struct kfi_test *t, struct ib_qp *qp, enum ib_wr_opcode opcode)
{
	unsigned long end = jiffies + 60 * HZ;
	struct ib_wc wc = {};

	while (!ib_poll_cq(qp->send_cq, 1, &wc) && time_before(jiffies, end))
		msleep(1);
	EXPECT_EQ(t, wc.wr_id, opcode);
	EXPECT_EQ(t, wc.status, IB_WC_WR_FLUSH_ERR);
}

static void defer_in(struct kfi_test *t, struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	struct ib_wc wc;

	EXPECT_EQ(t, ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
				  IB_QP_ACCESS_FLAGS), 0);
	kfi_inject_defer(KFI_INJECT_POST_INV, 0, 1);
	EXPECT_EQ(t, post(qp, IB_WR_LOCAL_INV), 0);
	EXPECT_EQ(t, ib_poll_cq(qp->send_cq, 1, &wc), 0);
	attr.qp_state = IB_QPS_ERR;
	EXPECT_EQ(t, ib_modify_qp(qp, &attr, IB_QP_STATE), 0);
	/* It is ahead of what is posted afterwards. */
	EXPECT_EQ(t, post(qp, IB_WR_RDMA_WRITE), 0);
	expect_flushed(t, qp, IB_WR_LOCAL_INV);
	expect_flushed(t, qp, IB_WR_RDMA_WRITE);
}

static void lose_in(struct kfi_test *t, struct ib_qp *qp)
{
	kfi_inject_lose(KFI_INJECT_POST_INV, 1, 2);
	EXPECT(t, post(qp, IB_WR_LOCAL_INV), "the first was lost");
	EXPECT(t, post(qp, IB_WR_RDMA_WRITE), "another request was lost");
	EXPECT_EQ(t, post(qp, IB_WR_LOCAL_INV), 0);
	EXPECT_EQ(t, post(qp, IB_WR_LOCAL_INV), 0);
	EXPECT(t, post(qp, IB_WR_LOCAL_INV), "too many were lost");
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV), 4);
	kfi_inject_fail(KFI_INJECT_POST_INV, -EXDEV, 0, 1);
	EXPECT_EQ(t, post(qp, IB_WR_LOCAL_INV), -EXDEV);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_REG), 0);
}

static void lose_case(struct kfi_test *t)
{
	struct ib_pd *pd = t->env->verbs->get_pd(&t->env->domain->fid);
	struct ib_qp_init_attr init = {
		/* Some devices refuse a queue pair without receives. */
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_qp *qp;

	/* The requests are invalidations. */
	if (!needs_feature(t, F_LOCAL_INV))
		return;
	init.send_cq = ib_alloc_cq(t->env->dev, NULL, 8, 0, IB_POLL_DIRECT);
	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(init.send_cq), 0))
		return;
	init.recv_cq = init.send_cq;
	qp = ib_create_qp(pd, &init);
	if (EXPECT_EQ(t, PTR_ERR_OR_ZERO(qp), 0)) {
		if (EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0)) {
			lose_in(t, qp);
			drain_in(t, qp);
			defer_in(t, qp);
			kfi_inject_stop(t->env->dev);
		}
		EXPECT_EQ(t, ib_destroy_qp(qp), 0);
	}
	ib_free_cq(init.send_cq);
}

/* One device, once; and afterwards it is what it was. */
static void start_stop_case(struct kfi_test *t)
{
	struct stage s = { .env = t->env, .step = OPEN };
	/* Too large for the stack. */
	void *before = kmemdup(&t->env->dev->ops, sizeof(t->env->dev->ops), GFP_KERNEL);
	u32 pages = t->env->dev->attrs.max_fast_reg_page_list_len;

	if (!EXPECT(t, before, "out of memory"))
		return;
	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		goto out;
	EXPECT_EQ(t, kfi_inject_start(t->env->dev), -EBUSY);
	kfi_inject_stop(NULL);
	kfi_inject_driver(RDMA_DRIVER_UNKNOWN);
	kfi_inject_pages(1);
	EXPECT_EQ(t, t->env->dev->ops.driver_id, RDMA_DRIVER_UNKNOWN);
	EXPECT_EQ(t, t->env->dev->attrs.max_fast_reg_page_list_len, 1);
	kfi_inject_fail(KFI_INJECT_ALLOC_PD, -ENOMEM, 0, UINT_MAX);
	EXPECT_EQ(t, open_domain(&s), -KFI_ENOMEM);
	kfi_inject_stop(t->env->dev);
	EXPECT(t, !memcmp(before, &t->env->dev->ops, sizeof(t->env->dev->ops)), "something is left");
	EXPECT_EQ(t, t->env->dev->attrs.max_fast_reg_page_list_len, pages);
	EXPECT_EQ(t, open_domain(&s), 0);
	EXPECT_EQ(t, close_domain(&s), 0);
	/* Nothing of one time is planned the next time. */
	if (EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0)) {
		EXPECT_EQ(t, open_domain(&s), 0);
		EXPECT_EQ(t, close_domain(&s), 0);
		kfi_inject_stop(t->env->dev);
	}
out:
	kfree(before);
}

/* A device that has LOCAL_INV is asked to carry one out. One that is known to lack it is never given one. */
static void local_inv_case(struct kfi_test *t)
{
	struct kvec kv = { arena_at(t->env, MEM_PAGES, 0), LEN };
	struct stage s = { .env = t->env, .step = OPEN };
	struct kfid_mr *mr;

	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		return;
	if (t->env->dev->ops.driver_id != RDMA_DRIVER_HNS) {
		EXPECT_EQ(t, open_domain(&s), 0);
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV), 1);
		EXPECT_EQ(t, close_domain(&s), 0);
	}
	kfi_inject_stop(t->env->dev);
	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		return;
	kfi_inject_driver(RDMA_DRIVER_HNS);
	if (EXPECT_EQ(t, open_domain(&s), 0)) {
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_REG), 1);
		EXPECT_EQ(t, register_one(&s), 0);
		if (EXPECT_EQ(t, kfi_mr_regv(s.domain, &kv, 1, KFI_REMOTE, 0, 0, 0, &mr, NULL), 0)) {
			EXPECT_EQ(t, kfi_mr_refresh(mr, NULL, 0, 0), -KFI_ENOSYS);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
		EXPECT_EQ(t, close_domain(&s), 0);
	}
	/* It can't be opened on a device that doesn't register. */
	kfi_inject_fail(KFI_INJECT_POST_REG, -EINVAL, 0, UINT_MAX);
	EXPECT_EQ(t, open_domain(&s), -KFI_EIO);
	kfi_inject_fail(KFI_INJECT_POST_REG, 0, 0, 0);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV), 0);
	kfi_inject_stop(t->env->dev);
}

#define MANY_PAGES	(2 * KFI_RAW_KEY_MOST)
#define MANY_SEGMENTS	(KFI_RAW_KEY_MOST + 900)

/* As many segments as an offer without raw keys allows, in one region of the device; and too many pieces. */
static void many_segments(struct kfi_test *t, struct kfid_domain *domain)
{
	struct kvec *list = kvcalloc(MANY_SEGMENTS, sizeof(*list), GFP_KERNEL);
	u8 *mem = vmalloc(MANY_SEGMENTS * PAGE_SIZE);
	size_t i, size = 0;
	struct kfid_mr *mr;
	u64 base;

	if (!EXPECT(t, list && mem, "no memory"))
		goto out;
	for (i = 0; i < MANY_SEGMENTS; i++)
		list[i] = (struct kvec) { mem + i * PAGE_SIZE, PAGE_SIZE };
	if (EXPECT_EQ(t, kfi_mr_regv(domain, list, i, KFI_REMOTE, 0, 0, 0, &mr, NULL), 0)) {
		EXPECT_EQ(t, kfi_mr_raw_attr(mr, &base, NULL, &size, 0), -KFI_ETOOSMALL);
		EXPECT_EQ(t, size, KFI_RAW_KEY_SIZE(1));
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	for (i = 0; i < MANY_SEGMENTS; i++)
		list[i].iov_len = 16;
	EXPECT_EQ(t, kfi_mr_regv(domain, list, i, KFI_REMOTE, 0, 0, 0, &mr, NULL), -KFI_E2BIG);
out:
	kvfree(list);
	vfree(mem);
}

/* An info that was not offered with KFI_MR_RAW, of a device with longer regions than raw keys have parts. */
static void raw_by_hand_case(struct kfi_test *t)
{
	struct kfid_domain *domain;
	struct kfi_info *info;

	/* rxe makes longer regions than it says. */
	if (kfi_hardware && t->env->dev->attrs.max_fast_reg_page_list_len < MANY_SEGMENTS) {
		ktap_skip(t, "the device has no region of so many pages");
		return;
	}
	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		return;
	kfi_inject_pages(MANY_PAGES);
	if (EXPECT_EQ(t, env_getinfo(&info), 0)) {
		EXPECT(t, !(info->domain_attr->mr_mode & KFI_MR_RAW), "offered with raw keys");
		EXPECT_EQ(t, info->domain_attr->mr_iov_limit, MANY_PAGES);
		info->domain_attr->mr_mode |= KFI_MR_RAW;
		if (EXPECT_EQ(t, kfi_domain(t->env->fabric, info, &domain, NULL), 0)) {
			many_segments(t, domain);
			EXPECT_EQ(t, kfi_close(&domain->fid), 0);
		}
		kfi_freeinfo(info);
	}
	kfi_inject_stop(t->env->dev);
}

#define TARGET(_op, ...)	(&(const struct target){ KFI_INJECT_##_op, __VA_ARGS__ })

static const struct kfi_case cases[] = {
	{ "start_stop", start_stop_case },
	{ "skip", skip_case },
	{ "lose", lose_case },
	{ "fail_alloc_pd", fail_case, 0, TARGET(ALLOC_PD, OPEN, -ENOMEM, -KFI_ENOMEM) },
	{ "fail_create_cq", fail_case, 0, TARGET(CREATE_CQ, OPEN, -ENOMEM, -KFI_ENOMEM) },
	{ "fail_create_qp", fail_case, 0, TARGET(CREATE_QP, OPEN, -EINVAL, -KFI_EIO) },
	{ "fail_modify_qp", fail_case, 0, TARGET(MODIFY_QP, OPEN, -EINVAL, -KFI_EIO) },
	{ "fail_alloc_mr", fail_case, 0, TARGET(ALLOC_MR, REGISTER, -ENOMEM, -KFI_ENOMEM) },
	{ "fail_map_mr_sg", fail_case, 0, TARGET(MAP_MR_SG, REGISTER, -EINVAL, -KFI_EIO) },
	{ "fail_post_reg", fail_case, 0, TARGET(POST_REG, REGISTER, -EINVAL, -KFI_EIO) },
	{ "hold_alloc_pd", hold_case, 0, TARGET(ALLOC_PD, OPEN) },
	{ "hold_create_cq", hold_case, 0, TARGET(CREATE_CQ, OPEN) },
	{ "hold_create_qp", hold_case, 0, TARGET(CREATE_QP, OPEN) },
	{ "hold_modify_qp", hold_case, 0, TARGET(MODIFY_QP, OPEN) },
	{ "hold_alloc_mr", hold_case, 0, TARGET(ALLOC_MR, REGISTER) },
	{ "hold_map_mr_sg", hold_case, 0, TARGET(MAP_MR_SG, REGISTER) },
	{ "hold_post_reg", hold_case, 0, TARGET(POST_REG, REGISTER) },
	{ "hold_dereg_mr", hold_case, 0, TARGET(DEREG_MR, CLOSE) },
	{ "hold_destroy_qp", hold_case, 0, TARGET(DESTROY_QP, CLOSE) },
	{ "hold_dealloc_pd", hold_case, 0, TARGET(DEALLOC_PD, CLOSE) },
	{ "hold_then_fail", hold_then_fail_case },
	{ "local_inv", local_inv_case },
	{ "raw_by_hand", raw_by_hand_case },
};

const struct kfi_suite suite_inject = {
	.name = "inject",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
