// SPDX-License-Identifier: GPL-2.0
/*
 * The provider's registration queue breaks, and the domain works on.
 *
 * The queue is the provider's own, so the test looks it up among all queue pairs of the device. It
 * posts a work request that must fail: the invalidation of a key that does not exist. Without
 * LOCAL_INV, the test moves the queue to the state ERR.
 */
#include <linux/delay.h>
#include <rdma/restrack.h>

#include "recovery.h"
#include "refusal/errors.h"
#include "suites.h"
#include "workers.h"

#define MAX_QPN	0x1000000
#define THREADS	4

struct bad_request {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

/* Static, since its completion may come after the wait for it has given up. */
static struct bad_request bad;

static void bad_done(struct ib_cq *cq, struct ib_wc *wc)
{
	bad.status = wc->status;
	complete(&bad.done);
}

static enum ib_qp_state state_of(struct ib_qp *qp)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	return ib_query_qp(qp, &attr, IB_QP_STATE, &init) ? IB_QPS_RESET : attr.qp_state;
}

/*
 * A queue pair of the provider's, on the domain's protection domain; the caller must put it.  One that
 * works: one that broke before may still be there, drained, and what is posted to it completes for
 * nobody.
 */
static struct ib_qp *find_queue(struct kfi_env *env)
{
	struct ib_pd *pd = env->verbs->get_pd(&env->domain->fid);
	struct rdma_restrack_entry *res;
	struct ib_qp *qp;
	u32 qpn;

	for (qpn = 1; qpn < min(MAX_QPN, 2 * env->dev->attrs.max_qp); qpn++) {
		res = rdma_restrack_get_byid(env->dev, RDMA_RESTRACK_QP, qpn);
		if (IS_ERR(res))
			continue;
		qp = container_of(res, struct ib_qp, res);
		if (res->kern_name && !strcmp(res->kern_name, "kfi_verbs") && qp->pd == pd &&
		    state_of(qp) == IB_QPS_RTS)
			return qp;
		rdma_restrack_put(res);
		if (qpn % 4096 == 0)
			cond_resched();
	}
	return NULL;
}

/*
 * Its state, not its completion: that is found by who waits for a completion of the queue's, and nobody
 * does while it is idle.
 */
static bool broken(struct ib_qp *qp)
{
	int looks;

	for (looks = 0; looks < 3000; looks++) {
		if (state_of(qp) == IB_QPS_ERR)
			return true;
		msleep(20);
	}
	return false;
}

/*
 * Posts the request that fails, or moves the queue to ERR.  Not both: threads may find the error at
 * once, and then nobody waits for what is posted to the old queue later.
 */
bool break_queue(struct kfi_test *t)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_send_wr wr = {
		.wr_cqe = &bad.cqe,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = 0xdead5500,
	};
	struct ib_qp *qp = find_queue(t->env);
	bool failed;
	int ret;

	if (!EXPECT(t, qp, "no queue pair of the provider's"))
		return false;
	bad.cqe.done = bad_done;
	bad.status = IB_WC_SUCCESS;
	init_completion(&bad.done);
	if (has_feature(F_LOCAL_INV))
		ret = ib_post_send(qp, &wr, NULL);
	else
		ret = ib_modify_qp(qp, &attr, IB_QP_STATE);
	failed = !ret && broken(qp);
	rdma_restrack_put(&qp->res);
	return EXPECT_EQ(t, ret, 0) && EXPECT(t, failed, "the queue did not break");
}

/*
 * Tasks that were in the way of the bad request, or came after it, have found their completions
 * too.
 */
static void check_failed(struct kfi_test *t)
{
	if (!has_feature(F_LOCAL_INV))
		return;
	if (EXPECT(t, wait_for_completion_timeout(&bad.done, 60 * HZ),
		   "the bad request did not complete"))
		EXPECT(t, bad.status != IB_WC_SUCCESS, "the bad request succeeded");
}

static void idle_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, 300);
	struct kfid_mr *before, *mr;
	u64 key, iova;
	int i;

	for (i = 0; i < 3; i++) {
		if (!EXPECT_EQ(t, reg_simple(t->env, mem, PAGE_SIZE, KFI_REMOTE, &before), 0))
			return;
		if (!break_queue(t))
			goto close;
		/* Regions that were registered before stay reachable: keys outlive the queue. */
		check_region(t, before, mem, PAGE_SIZE);
		if (EXPECT_EQ(t, reg_simple(t->env, mem, 5000, KFI_REMOTE, &mr), 0)) {
			check_failed(t);
			check_region(t, mr, mem, 5000);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
close:
		key = before->key;
		iova = before->iova;
		EXPECT_EQ(t, kfi_close(&before->fid), 0);
		check_refused(t, iova, key, mem, PAGE_SIZE);
	}
}

/* The first thing after the failure is a close. */
static void close_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 300);
	struct kfid_mr *mr;
	u64 key, iova;

	if (!EXPECT_EQ(t, reg_simple(t->env, mem, PAGE_SIZE, KFI_REMOTE, &mr), 0))
		return;
	key = mr->key;
	iova = mr->iova;
	break_queue(t);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	check_refused(t, iova, key, mem, PAGE_SIZE);
	if (EXPECT_EQ(t, reg_simple(t->env, mem, PAGE_SIZE, KFI_REMOTE, &mr), 0)) {
		check_failed(t);
		check_region(t, mr, mem, PAGE_SIZE);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
}

/* Threads register and close while the queue breaks again and again: none of them notices. */
static void under_load_case(struct kfi_test *t)
{
	struct workers *ws = workers_start(t, THREADS, WORKER_PAGES, 0, worker_register, NULL);
	unsigned int i, before, naps;

	if (!ws)
		return;
	for (i = 0; i < scaled(10) && !t->failures; i++) {
		if (!break_queue(t))
			break;
		/* Each thread may have been at the end of a round; the next is a new one. */
		before = workers_rounds(ws);
		for (naps = 0; naps < 6000 && workers_rounds(ws) - before <= THREADS; naps++)
			msleep(20);
		EXPECT(t, workers_rounds(ws) - before > THREADS,
		       "no registration after the failure");
		check_failed(t);
	}
	EXPECT(t, workers_stop(t, ws), "the threads did nothing");
	expect_works(t, REG);
}

static const struct kfi_case cases[] = {
	{ "idle", idle_case },
	{ "close", close_case },
	{ "under_load", under_load_case },
};

const struct kfi_suite suite_recovery = {
	.name = "recovery",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
