// SPDX-License-Identifier: GPL-2.0
/*
 * When things happen: an invalidation and accesses under way, the reading of a page list, the places of a
 * send queue, and where completions are told.
 */
#include <linux/delay.h>
#include <linux/swait.h>

#include "nic_test.h"

#define ACCESS_US	500000

/* Waits until the device has looked the region up for an access, and is about to access its memory. */
static bool under_way(struct kfi_test *t, struct reach *s)
{
	struct rw_semaphore *sem = &to_nic_mr(s->r.mr)->sem;

	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (rwsem_is_locked(sem))
			return true;
		usleep_range(1000, 1500);
	}
	return EXPECT(t, false, "no access");
}

/*
 * The region is invalidated or deregistered, and unmapped, while a peer's write is under way. Returns how
 * many accesses went to memory that was not mapped any more.
 */
static s64 end_meanwhile(struct kfi_test *t, bool deregister)
{
	s64 before = stat(NIC_STAT_DMA_FAULTS);
	struct ib_wc wc;
	struct reach s;

	if (!reach_open(t, &s))
		goto close;
	set_fault(NIC_VALUE_ACCESS_US, ACCESS_US);
	EXPECT_EQ(t, reach_write(&s, IB_SEND_SIGNALED), 0);
	if (under_way(t, &s)) {
		if (deregister) {
			EXPECT_EQ(t, ib_dereg_mr(s.r.mr), 0);
			s.r.mr = NULL;
		} else {
			EXPECT_EQ(t, region_invalidate(&s.r, s.r.mr->rkey), IB_WC_SUCCESS);
		}
		region_unmap(&s.r);
	}
	EXPECT_EQ(t, wait_wc(s.c.a.send_cq, &wc), 0);
close:
	set_fault(NIC_VALUE_ACCESS_US, 0);
	reach_close(t, &s);
	return stat(NIC_STAT_DMA_FAULTS) - before;
}

static const char *why_not(bool invalidates)
{
	if (!nic_env.translated)
		return "without an IOMMU the end of a mapping is not seen";
	return invalidates && !nic_env.expect->local_inv ? "regions can't be invalidated" : NULL;
}

static void case_invalidate_waits(struct kfi_test *t)
{
	const char *why = why_not(true);

	if (why)
		ktap_skip(t, why);
	else
		EXPECT_EQ(t, end_meanwhile(t, false), 0);
}

static void case_deregister_waits(struct kfi_test *t)
{
	const char *why = why_not(false);

	if (why)
		ktap_skip(t, why);
	else
		EXPECT_EQ(t, end_meanwhile(t, true), 0);
}

/* A region that is deregistered while others use it. */
struct ending {
	struct work_struct work;
	struct ib_mr *mr;
	struct completion done;
	int err;
};

static void deregister(struct work_struct *work)
{
	struct ending *e = container_of(work, struct ending, work);

	e->err = ib_dereg_mr(e->mr);
	complete(&e->done);
}

/*
 * An access has found the region, and does not hold its lock yet. The region stays until the access
 * has ended.
 */
static void case_deregister_referenced(struct kfi_test *t)
{
	struct ending e = {};
	struct nic_mr *mr;
	struct reach s;

	if (!reach_open(t, &s))
		goto close;
	mr = to_nic_mr(s.r.mr);
	e.mr = s.r.mr;
	s.r.mr = NULL;
	init_completion(&e.done);
	INIT_WORK_ONSTACK(&e.work, deregister);
	/* As nic_mr_get() and nic_mr_put() do. */
	refcount_inc(&mr->refs);
	schedule_work(&e.work);
	while (!completion_done(&e.done) && !swait_active(&mr->freed.wait))
		usleep_range(1000, 1500);
	if (EXPECT(t, !completion_done(&e.done), "the region was freed during an access") &&
	    EXPECT(t, refcount_dec_and_test(&mr->refs), "others refer to the region"))
		complete(&mr->freed);
	wait_for_completion(&e.done);
	destroy_work_on_stack(&e.work);
	EXPECT_EQ(t, e.err, 0);
close:
	reach_close(t, &s);
}

/* The test of the test: an invalidation that does not wait is seen. It may need several tries. */
static void case_weak_invalidate(struct kfi_test *t)
{
	const char *why = why_not(true);
	s64 faults = 0;

	if (why) {
		ktap_skip(t, why);
		return;
	}
	for (int i = 0; i < 20 && !faults; i++) {
		set_fault(NIC_VALUE_WEAK_INV, 1);
		faults = end_meanwhile(t, false);
		set_fault(NIC_VALUE_WEAK_INV, 0);
	}
	EXPECT_EQ(t, faults, 1);
	nic_env.dma_faults += faults;
}

/* REG_MR takes over what is mapped when it is carried out, not when it is posted. */
static void case_page_list(struct kfi_test *t)
{
	struct ib_reg_wr wr = { .wr.opcode = IB_WR_REG_MR, .wr.send_flags = IB_SEND_SIGNALED };
	struct rw_semaphore *sem;
	struct region *r = kcalloc(2, sizeof(*r), GFP_KERNEL), *later = r + 1;
	struct ib_wc wc;
	struct reach s;

	if (!EXPECT(t, r, "no memory"))
		return;
	if (!reach_open(t, &s))
		goto close;
	if (!region_alloc(t, r, &s.c.a, &one_page))
		goto close;
	if (!region_alloc(t, later, &s.c.a, &one_page))
		goto close_first;
	fill(s.from.mem, 8, 21);
	EXPECT_EQ(t, region_map(r), 1);
	ib_update_fast_reg_key(r->mr, (u8)(r->mr->rkey + 1));
	wr.mr = r->mr;
	wr.key = r->mr->rkey;
	wr.access = REMOTE_ALL;

	/* A write that the device can't carry out yet, and the registration behind it. */
	sem = &to_nic_mr(s.r.mr)->sem;
	down_write(sem);
	EXPECT_EQ(t, reach_write(&s, 0), 0);
	EXPECT_EQ(t, ib_post_send(s.c.a.qp, &wr.wr, NULL), 0);
	EXPECT_EQ(t, ib_map_mr_sg(r->mr, later->list, 1, NULL, PAGE_SIZE), 1);
	up_write(sem);
	if (EXPECT_EQ(t, wait_wc(s.c.a.send_cq, &wc), 0)) {
		EXPECT_EQ(t, wc.status, IB_WC_SUCCESS);
		EXPECT_EQ(t, wc.opcode, IB_WC_REG_MR);
	}
	/* The region of the earlier list is valid when the memory of the later one goes. */
	nic_env.unmapped = nic_env.translated;
	EXPECT_EQ(t, rdma_write(&s.c.b, &s.from, r->mr->iova, r->mr->rkey, 8), IB_WC_SUCCESS);
	EXPECT(t, is_filled(page_address(later->pages[0]), 8, 21), "not the later list");
	region_close(t, later);
close_first:
	region_close(t, r);
close:
	reach_close(t, &s);
	kfree(r);
}

/* Posts until the queue is full. */
static unsigned int post_all(struct kfi_test *t, struct reach *s, int flags)
{
	unsigned int n = 0;
	int err;

	do
		err = reach_write(s, flags);
	while (!err && ++n < 1000);
	EXPECT_EQ(t, err, -ENOMEM);
	return n;
}

static void wait_executed(struct kfi_test *t, struct side *s)
{
	struct nic_qp *qp = to_nic_qp(s->qp);
	int ms;

	for (ms = 0; ms < PATIENCE_MS && READ_ONCE(qp->sq_exec) != READ_ONCE(qp->sq_head); ms++)
		usleep_range(1000, 1500);
	EXPECT(t, ms < PATIENCE_MS, "requests are not carried out");
}

/* The places of requests come back when they are carried out. Nobody polls a completion. */
static void places_early(struct kfi_test *t, struct reach *s, unsigned int places)
{
	for (unsigned int i = 0; i < 2 * places; i++) {
		EXPECT_EQ(t, reach_write(s, 0), 0);
		wait_executed(t, &s->c.a);
	}
}

/*
 * The places of requests come back when a completion behind them is polled, not when they are done, unless the model
 * returns them early.
 */
static void case_places(struct kfi_test *t)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	unsigned int places;
	struct ib_wc wc;
	struct reach s;

	if (!reach_open(t, &s))
		goto close;
	EXPECT_EQ(t, ib_query_qp(s.c.a.qp, &attr, IB_QP_CAP, &init), 0);
	if (nic_env.early_places) {
		places_early(t, &s, attr.cap.max_send_wr);
		goto close;
	}
	EXPECT_EQ(t, reach_write(&s, 0), 0);
	EXPECT_EQ(t, reach_write(&s, 0), 0);
	EXPECT_EQ(t, reach_write(&s, IB_SEND_SIGNALED), 0);
	places = 3 + post_all(t, &s, 0);
	EXPECT(t, places >= attr.cap.max_send_wr, "%u of %u places", places, attr.cap.max_send_wr);
	wait_executed(t, &s.c.a);
	EXPECT_EQ(t, reach_write(&s, 0), -ENOMEM);
	/* One completion brings back its own place, and two before it. */
	EXPECT_EQ(t, wait_wc(s.c.a.send_cq, &wc), 0);
	EXPECT_EQ(t, post_all(t, &s, 0), 3);
	/* Nothing brings back the places of requests that no completion follows. */
	wait_executed(t, &s.c.a);
	EXPECT_EQ(t, ib_poll_cq(s.c.a.send_cq, 1, &wc), 0);
	EXPECT_EQ(t, reach_write(&s, IB_SEND_SIGNALED), -ENOMEM);
close:
	reach_close(t, &s);
}

/* An armed queue tells once, and from a hard interrupt. */
static void case_interrupt(struct kfi_test *t)
{
	struct ib_wc wc;
	struct reach s;
	int ms;

	if (!reach_open(t, &s))
		goto close;
	EXPECT_EQ(t, atomic_read(&s.c.a.hard) + atomic_read(&s.c.a.soft), 0);
	EXPECT_EQ(t, ib_req_notify_cq(s.c.a.send_cq, IB_CQ_NEXT_COMP), 0);
	EXPECT_EQ(t, reach_write(&s, IB_SEND_SIGNALED), 0);
	EXPECT_EQ(t, wait_wc(s.c.a.send_cq, &wc), 0);
	for (ms = 0; ms < PATIENCE_MS && !atomic_read(&s.c.a.hard); ms++)
		usleep_range(1000, 1500);
	EXPECT_EQ(t, reach_write(&s, IB_SEND_SIGNALED), 0);
	EXPECT_EQ(t, wait_wc(s.c.a.send_cq, &wc), 0);
	EXPECT_EQ(t, atomic_read(&s.c.a.hard), 1);
	EXPECT_EQ(t, atomic_read(&s.c.a.soft), 0);

	/* Receives that are there already are reported, if that is asked for. */
	EXPECT_EQ(t, reach_write(&s, IB_SEND_SIGNALED), 0);
	wait_executed(t, &s.c.a);
	EXPECT_EQ(t, ib_req_notify_cq(s.c.a.send_cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 1);
	EXPECT_EQ(t, wait_wc(s.c.a.send_cq, &wc), 0);
close:
	reach_close(t, &s);
}

/* Only completions of solicited requests, or of failures. */
static void case_solicited(struct kfi_test *t)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .num_sge = 1 };
	struct ib_sge in, out;
	struct ib_wc wc;
	struct reach s;
	int ms;

	if (!reach_open(t, &s))
		goto close;
	in = (struct ib_sge) { s.r.mr->iova, 100, s.r.mr->lkey };
	out = buffer_sge(&s.from, &s.c.a, 0, 100);
	wr.sg_list = &out;
	EXPECT_EQ(t, receive(&s.c.b, &in, 1), 0);
	EXPECT_EQ(t, receive(&s.c.b, &in, 2), 0);
	EXPECT_EQ(t, ib_req_notify_cq(s.c.b.recv_cq, IB_CQ_SOLICITED), 0);
	EXPECT_EQ(t, execute(&s.c.a, &wr), IB_WC_SUCCESS);
	EXPECT_EQ(t, wait_wc(s.c.b.recv_cq, &wc), 0);
	EXPECT_EQ(t, to_nic_cq(s.c.b.recv_cq)->armed, true);
	wr.send_flags = IB_SEND_SOLICITED;
	EXPECT_EQ(t, execute(&s.c.a, &wr), IB_WC_SUCCESS);
	EXPECT_EQ(t, wait_wc(s.c.b.recv_cq, &wc), 0);
	for (ms = 0; ms < PATIENCE_MS && !atomic_read(&s.c.b.hard); ms++)
		usleep_range(1000, 1500);
	EXPECT_EQ(t, atomic_read(&s.c.b.hard), 1);
close:
	reach_close(t, &s);
}

static const struct kfi_case cases[] = {
	NIC_CASE(invalidate_waits),
	NIC_CASE(deregister_waits),
	NIC_CASE(deregister_referenced),
	NIC_CASE(weak_invalidate),
	NIC_CASE(page_list),
	NIC_CASE(places),
	NIC_CASE(interrupt),
	NIC_CASE(solicited),
};

const struct kfi_suite nic_suite_order = {
	.name = "nic_order",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
};
