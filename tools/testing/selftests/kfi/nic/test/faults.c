// SPDX-License-Identifier: GPL-2.0
/* Faults: a number of calls or requests get that errno or status, and no more. */
#include <linux/delay.h>

#include "nic_test.h"

/* Calls that can be refused: each does it once, undoes it, and returns its errno. */

static int try_post_send(struct reach *s)
{
	return reach_write(s, 0);
}

static int try_post_recv(struct reach *s)
{
	struct ib_sge sge = buffer_sge(&s->from, &s->c.b, 0, 8);

	return receive(&s->c.b, &sge, 1);
}

static int try_create_qp(struct reach *s)
{
	struct ib_qp_cap cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
				 .max_recv_sge = 1 };
	struct ib_qp *qp = new_qp(&s->c.a, &cap);

	return IS_ERR(qp) ? PTR_ERR(qp) : ib_destroy_qp(qp);
}

static int try_modify_qp(struct reach *s)
{
	struct ib_qp_attr attr = { .qp_access_flags = IB_ACCESS_REMOTE_READ };

	return ib_modify_qp(s->c.a.qp, &attr, IB_QP_ACCESS_FLAGS);
}

static int try_modify_err(struct reach *s)
{
	return set_state(s->c.a.qp, IB_QPS_ERR);
}

/* The queue pair is still there if it could not be destroyed. */
static int try_destroy_qp(struct reach *s)
{
	struct ib_qp_cap cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
				 .max_recv_sge = 1 };
	struct ib_qp *qp;
	int err, left;

	qp = new_qp(&s->c.a, &cap);
	if (IS_ERR(qp))
		return -EBADMSG;
	err = ib_destroy_qp(qp);
	if (!err)
		return 0;
	left = atomic_xchg(&nic_env.nic->faults[NIC_FAULT_DESTROY_QP], 0);
	if (ib_destroy_qp(qp))
		return -EBADMSG;
	set_fault(NIC_FAULT_DESTROY_QP, left);
	return err;
}

static int try_create_cq(struct reach *s)
{
	struct ib_cq_init_attr attr = { .cqe = 1 };
	struct ib_cq *cq = ib_create_cq(nic_env.dev, NULL, NULL, NULL, &attr);

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	ib_destroy_cq(cq);
	return 0;
}

static int try_alloc_pd(struct reach *s)
{
	struct ib_pd *pd = ib_alloc_pd(nic_env.dev, 0);

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	ib_dealloc_pd(pd);
	return 0;
}

static int try_alloc_mr(struct reach *s)
{
	struct ib_mr *mr = ib_alloc_mr(s->c.a.pd, IB_MR_TYPE_MEM_REG, 1);

	return IS_ERR(mr) ? PTR_ERR(mr) : ib_dereg_mr(mr);
}

static int try_map_mr(struct reach *s)
{
	int n = region_map(&s->r);

	return n < 0 ? n : 0;
}

/* The region is still there if it could not be deregistered. */
static int try_dereg_mr(struct reach *s)
{
	struct ib_mr *mr = ib_alloc_mr(s->c.a.pd, IB_MR_TYPE_MEM_REG, 1);
	int err, left;

	if (IS_ERR(mr))
		return -EBADMSG;
	err = ib_dereg_mr(mr);
	if (!err)
		return 0;
	left = atomic_xchg(&nic_env.nic->faults[NIC_FAULT_DEREG_MR], 0);
	if (ib_dereg_mr(mr))
		return -EBADMSG;
	set_fault(NIC_FAULT_DEREG_MR, left);
	return err;
}

static const struct {
	const char *name;
	enum nic_fault fault;
	int (*try)(struct reach *s);
} calls[] = {
	{ "post_send", NIC_FAULT_POST, try_post_send },
	{ "post_recv", NIC_FAULT_POST, try_post_recv },
	{ "create_qp", NIC_FAULT_CREATE_QP, try_create_qp },
	{ "modify_qp", NIC_FAULT_MODIFY_QP, try_modify_qp },
	{ "modify_err", NIC_FAULT_MODIFY_ERR, try_modify_err },
	{ "destroy_qp", NIC_FAULT_DESTROY_QP, try_destroy_qp },
	{ "create_cq", NIC_FAULT_CREATE_CQ, try_create_cq },
	{ "alloc_pd", NIC_FAULT_ALLOC_PD, try_alloc_pd },
	{ "alloc_mr", NIC_FAULT_ALLOC_MR, try_alloc_mr },
	{ "map_mr", NIC_FAULT_MAP_MR, try_map_mr },
	{ "dereg_mr", NIC_FAULT_DEREG_MR, try_dereg_mr },
};

static const char *call_name(unsigned int variant)
{
	return calls[variant].name;
}

static void case_refused(struct kfi_test *t)
{
	enum nic_fault fault = calls[t->variant].fault;
	struct reach s;

	if (!reach_open(t, &s))
		goto close;
	for (int round = 0; round < 2; round++) {
		int err = round ? EBUSY : EIO;

		set_fault(NIC_VALUE_ERRNO, err);
		set_fault(fault, 2);
		EXPECT_EQ(t, calls[t->variant].try(&s), -err);
		EXPECT_EQ(t, calls[t->variant].try(&s), -err);
		EXPECT_EQ(t, calls[t->variant].try(&s), 0);
		EXPECT_EQ(t, nic_value(nic_env.nic, fault), 0);
	}
close:
	reach_close(t, &s);
}

/* Requests that fail at the device: the connection ends, and the next one works. */
static void fails_once(struct kfi_test *t, enum nic_fault fault, enum ib_wc_status status)
{
	struct region r;
	struct reach s;
	int got = -EINVAL;

	if (!reach_open(t, &s))
		goto close;
	if (!region_open(t, &r, &s.c.a, &one_page, REMOTE_ALL))
		goto close;
	if (fault == NIC_FAULT_REG && nic_env.expect->local_inv)
		EXPECT_EQ(t, region_invalidate(&r, r.mr->rkey), IB_WC_SUCCESS);
	set_fault(fault, 1);
	if (fault == NIC_FAULT_REG)
		got = region_register(&r, REMOTE_ALL);
	else if (fault == NIC_FAULT_INV)
		got = region_invalidate(&r, r.mr->rkey);
	else
		got = rdma_write(&s.c.a, &s.from, s.r.mr->iova, s.r.mr->rkey, 8);
	EXPECT_EQ(t, got, status);
	EXPECT_EQ(t, nic_value(nic_env.nic, fault), 0);
	EXPECT_EQ(t, rdma_write(&s.c.a, &s.from, s.r.mr->iova, s.r.mr->rkey, 8), IB_WC_WR_FLUSH_ERR);
	region_close(t, &r);
close:
	reach_close(t, &s);
}

static void case_reg(struct kfi_test *t)
{
	fails_once(t, NIC_FAULT_REG, IB_WC_MW_BIND_ERR);
}

static void case_inv(struct kfi_test *t)
{
	if (nic_env.expect->local_inv)
		fails_once(t, NIC_FAULT_INV, IB_WC_LOC_QP_OP_ERR);
	else
		ktap_skip(t, "regions can't be invalidated");
}

static void case_complete(struct kfi_test *t)
{
	fails_once(t, NIC_FAULT_COMPLETE, IB_WC_GENERAL_ERR);
}

/* A completion that never comes; the next does, and brings back the places of both. */
static void case_lose(struct kfi_test *t)
{
	struct ib_sge sge;
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
			.wr_id = 1, .send_flags = IB_SEND_SIGNALED },
	};
	struct ib_wc wc;
	struct reach s;

	if (!reach_open(t, &s))
		goto close;
	sge = buffer_sge(&s.from, &s.c.a, 0, 8);
	wr.remote_addr = s.r.mr->iova;
	wr.rkey = s.r.mr->rkey;
	set_fault(NIC_FAULT_LOSE, 1);
	EXPECT_EQ(t, ib_post_send(s.c.a.qp, &wr.wr, NULL), 0);
	wr.wr.wr_id = 2;
	EXPECT_EQ(t, ib_post_send(s.c.a.qp, &wr.wr, NULL), 0);
	if (EXPECT_EQ(t, wait_wc(s.c.a.send_cq, &wc), 0))
		EXPECT_EQ(t, wc.wr_id, 2);
	EXPECT_EQ(t, ib_poll_cq(s.c.a.send_cq, 1, &wc), 0);
	EXPECT_EQ(t, nic_value(nic_env.nic, NIC_FAULT_LOSE), 0);
close:
	reach_close(t, &s);
}

static void case_late(struct kfi_test *t)
{
	u64 since;
	struct reach s;

	if (!reach_open(t, &s))
		goto close;
	set_fault(NIC_VALUE_DELAY_MS, 500);
	set_fault(NIC_FAULT_LATE, 1);
	since = get_jiffies_64();
	EXPECT_EQ(t, rdma_write(&s.c.a, &s.from, s.r.mr->iova, s.r.mr->rkey, 8), IB_WC_SUCCESS);
	expect_waited(t, since, 500);
	EXPECT_EQ(t, nic_value(nic_env.nic, NIC_FAULT_LATE), 0);
close:
	reach_close(t, &s);
}

/* A queue pair with a completion that is late can be destroyed meanwhile. */
static void case_late_destroyed(struct kfi_test *t)
{
	u64 since = get_jiffies_64();
	struct reach s;

	if (reach_open(t, &s)) {
		set_fault(NIC_VALUE_DELAY_MS, 10 * PATIENCE_MS);
		set_fault(NIC_FAULT_LATE, 1);
		EXPECT_EQ(t, set_state(s.c.a.qp, IB_QPS_ERR), 0);
		/* Flushed, so that there is a completion. */
		EXPECT_EQ(t, try_post_send(&s), 0);
	}
	reach_close(t, &s);
	EXPECT(t, get_jiffies_64() - since < msecs_to_jiffies(10 * PATIENCE_MS), "it has waited");
}

/* Each access takes at least so long. */
static void case_access_us(struct kfi_test *t)
{
	struct reach s;
	u64 since;

	if (!reach_open(t, &s))
		goto close;
	set_fault(NIC_VALUE_ACCESS_US, 200000);
	since = get_jiffies_64();
	EXPECT_EQ(t, rdma_write(&s.c.a, &s.from, s.r.mr->iova, s.r.mr->rkey, 8), IB_WC_SUCCESS);
	expect_waited(t, since, 400);
close:
	set_fault(NIC_VALUE_ACCESS_US, 0);
	reach_close(t, &s);
}

static const struct kfi_case cases[] = {
	NIC_VARIANTS(refused, ARRAY_SIZE(calls)),
	NIC_CASE(reg),
	NIC_CASE(inv),
	NIC_CASE(complete),
	NIC_CASE(lose),
	NIC_CASE(late),
	NIC_CASE(late_destroyed),
	NIC_CASE(access_us),
};

const struct kfi_suite nic_suite_faults = {
	.name = "nic_faults",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = call_name,
	.bare = true,
};
