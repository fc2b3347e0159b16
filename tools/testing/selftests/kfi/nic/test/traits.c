// SPDX-License-Identifier: GPL-2.0
/* The attributes of a device, and how it differs from others: against the table in expect.c. */
#include <linux/delay.h>
#include <linux/sizes.h>

#include "nic_test.h"

static void case_attributes(struct kfi_test *t)
{
	const struct ib_device_attr *attr = &nic_env.dev->attrs;
	const struct expect *e = nic_env.expect;

	EXPECT_EQ(t, rdma_protocol_iwarp(nic_env.dev, nic_env.port), e->iwarp);
	EXPECT_EQ(t, rdma_protocol_ib(nic_env.dev, nic_env.port), e->ib);
	EXPECT_EQ(t, rdma_protocol_roce(nic_env.dev, nic_env.port), !e->ib && !e->iwarp);
	EXPECT_EQ(t, !!(attr->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS), e->reliable);
	EXPECT_EQ(t, !!(attr->kernel_cap_flags & IBK_LOCAL_DMA_LKEY), e->all_memory_key);
	EXPECT_EQ(t, !!(attr->kernel_cap_flags & IBK_SG_GAPS_REG), e->gaps);
	EXPECT_EQ(t, attr->max_fast_reg_page_list_len, e->max_pages);
	EXPECT_EQ(t, !!(attr->page_size_cap & SZ_8K), e->pages_8k);
	EXPECT_EQ(t, !!(attr->page_size_cap & SZ_4K), true);
	EXPECT_EQ(t, attr->max_send_sge, e->max_send_sge);
	EXPECT_EQ(t, attr->max_recv_sge, e->max_recv_sge);
	EXPECT_EQ(t, attr->max_sge_rd, e->max_read_sge);
	EXPECT_EQ(t, !!attr->max_srq, e->srq);
	EXPECT_EQ(t, !!nic_env.dev->ops.drain_sq, e->own_drain);
	EXPECT_EQ(t, ib_uses_virt_dma(nic_env.dev), false);
}

static void expect_qp(struct kfi_test *t, const char *what, struct ib_qp_cap cap, int err)
{
	struct ib_qp_init_attr init = {
		.cap = cap, .qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_REQ_WR,
	};
	struct side s = {};
	struct ib_qp *qp;

	if (side_open(t, &s)) {
		init.send_cq = s.send_cq;
		init.recv_cq = s.recv_cq;
		qp = ib_create_qp(s.pd, &init);
		EXPECT(t, PTR_ERR_OR_ZERO(qp) == err, "%s: %d, expected %d", what,
		       PTR_ERR_OR_ZERO(qp), err);
		if (!IS_ERR(qp)) {
			u32 max = min(cap.max_inline_data, nic_env.expect->max_inline);

			EXPECT_EQ(t, init.cap.max_inline_data, max);
			EXPECT(t, init.cap.max_send_wr >= cap.max_send_wr &&
			       init.cap.max_recv_wr >= cap.max_recv_wr, "%s: less than asked for", what);
			EXPECT_EQ(t, ib_destroy_qp(qp), 0);
		}
	}
	side_close(t, &s);
}

/* How large a queue pair may be. */
static void case_limits(struct kfi_test *t)
{
	const struct expect *e = nic_env.expect;
	const struct ib_qp_cap usual = {
		.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1,
	};
	struct ib_qp_cap cap = usual;

	if (!e->reliable) {
		expect_qp(t, "reliable", usual, -EOPNOTSUPP);
		return;
	}
	expect_qp(t, "usual", usual, 0);
	cap.max_send_sge = e->max_send_sge;
	cap.max_recv_sge = e->max_recv_sge;
	expect_qp(t, "all segments", cap, 0);
	cap.max_send_sge++;
	expect_qp(t, "too many segments to send", cap, -EINVAL);
	cap = usual;
	cap.max_recv_sge = e->max_recv_sge + 1;
	expect_qp(t, "too many segments to receive", cap, -EINVAL);
	cap = usual;
	cap.max_inline_data = e->max_inline;
	expect_qp(t, "all inline data", cap, 0);
	cap.max_inline_data++;
	expect_qp(t, "too much inline data", cap,
		  e->inline_over == NIC_INLINE_REFUSED ? -EINVAL : 0);
	cap = usual;
	cap.max_recv_wr = 0;
	expect_qp(t, "no receive request", cap, e->zero_recv ? 0 : -EINVAL);
	cap = usual;
	cap.max_recv_sge = 0;
	expect_qp(t, "no segment to receive", cap, e->zero_recv ? 0 : -EINVAL);
	cap = usual;
	cap.max_send_wr = nic_env.dev->attrs.max_qp_wr + 1;
	expect_qp(t, "too many requests", cap, -EINVAL);
}

static void case_regions(struct kfi_test *t)
{
	const struct expect *e = nic_env.expect;
	struct scatterlist sg;
	struct side s = {};
	struct ib_mr *mr;

	if (!side_open(t, &s))
		goto close;
	if (!e->reliable) {
		EXPECT_EQ(t, PTR_ERR_OR_ZERO(ib_alloc_mr(s.pd, IB_MR_TYPE_MEM_REG, 1)), -EOPNOTSUPP);
		goto close;
	}
	EXPECT_EQ(t, PTR_ERR_OR_ZERO(ib_alloc_mr(s.pd, IB_MR_TYPE_MEM_REG, e->max_pages + 1)),
		  -EINVAL);
	mr = ib_alloc_mr(s.pd, IB_MR_TYPE_MEM_REG, e->max_pages);
	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(mr), 0))
		goto close;
	/* Only calculated with, so there need be no memory. */
	sg_init_table(&sg, 1);
	sg_dma_address(&sg) = SZ_1M;
	sg_dma_len(&sg) = SZ_8K;
	EXPECT_EQ(t, ib_map_mr_sg(mr, &sg, 1, NULL, SZ_4K), 1);
	EXPECT_EQ(t, mr->length, SZ_8K);
	EXPECT_EQ(t, mr->iova, SZ_1M);
	EXPECT_EQ(t, ib_map_mr_sg(mr, &sg, 1, NULL, SZ_8K), e->pages_8k ? 1 : -EINVAL);
	/* As many pages as it has, and one more. */
	sg_dma_len(&sg) = e->max_pages * SZ_4K;
	EXPECT_EQ(t, ib_map_mr_sg(mr, &sg, 1, NULL, SZ_4K), 1);
	EXPECT_EQ(t, mr->length, (u64)e->max_pages * SZ_4K);
	sg_dma_len(&sg) += SZ_4K;
	EXPECT_EQ(t, ib_map_mr_sg(mr, &sg, 1, NULL, SZ_4K), 0);
	EXPECT_EQ(t, ib_dereg_mr(mr), 0);
close:
	side_close(t, &s);
}

/* After the state ERR each request is flushed, in order; and LAST_WQE_REACHED, for a queue pair with SRQ. */
static void flush(struct kfi_test *t, bool srq)
{
	struct conn_attr attr = { .srq = srq };
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED };
	struct buffer buf = {};
	struct ib_sge sge;
	struct ib_wc wc;
	struct conn c;
	int ms, told;

	if (!conn_open(t, &c, &attr))
		return;
	if (!buffer_open(t, &buf, PAGE_SIZE))
		goto close;
	sge = buffer_sge(&buf, &c.b, 0, 8);
	EXPECT_EQ(t, receive(&c.b, &sge, 1), 0);
	EXPECT_EQ(t, receive(&c.b, &sge, 2), 0);
	EXPECT_EQ(t, set_state(c.b.qp, IB_QPS_ERR), 0);
	for (u64 id = 3; id < 5; id++) {
		wr.wr_id = id;
		EXPECT_EQ(t, ib_post_send(c.b.qp, &wr, NULL), 0);
	}
	for (u64 id = 3; id < 5; id++)
		if (EXPECT_EQ(t, wait_wc(c.b.send_cq, &wc), 0))
			EXPECT(t, wc.wr_id == id && wc.status == IB_WC_WR_FLUSH_ERR,
			       "request %llu: status %d", wc.wr_id, wc.status);
	for (u64 id = 1; id < 3 && !srq; id++)
		if (EXPECT_EQ(t, wait_wc(c.b.recv_cq, &wc), 0))
			EXPECT(t, wc.wr_id == id && wc.status == IB_WC_WR_FLUSH_ERR,
			       "receive request %llu: status %d", wc.wr_id, wc.status);
	told = srq && nic_env.expect->last_wqe;
	for (ms = 0; ms < PATIENCE_MS && told && !atomic_read(&c.b.last_wqe); ms++)
		usleep_range(1000, 1500);
	EXPECT_EQ(t, atomic_read(&c.b.last_wqe), told);
	/* Receive requests of an SRQ are nobody's yet. */
	EXPECT_EQ(t, ib_poll_cq(c.b.recv_cq, 1, &wc), 0);
close:
	buffer_close(&buf);
	conn_close(t, &c);
}

static void case_flush(struct kfi_test *t)
{
	flush(t, false);
}

static void case_flush_srq(struct kfi_test *t)
{
	if (nic_env.expect->srq)
		flush(t, true);
	else
		ktap_skip(t, "there are no SRQs");
}

struct drained {
	struct ib_cqe cqe;
	atomic_t n;
};

static void drained(struct ib_cq *cq, struct ib_wc *wc)
{
	struct drained *d = container_of(wc->wr_cqe, struct drained, cqe);

	if (wc->status == IB_WC_WR_FLUSH_ERR)
		atomic_inc(&d->n);
}

/* When a drain returns, each request has been told: the core's drain, or the driver's own. */
static void case_drain(struct kfi_test *t)
{
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 9, .max_recv_wr = 9, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_ALL_WR,
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = nic_env.port };
	struct drained d = { .cqe.done = drained };
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .wr_cqe = &d.cqe };
	struct ib_recv_wr recv = { .wr_cqe = &d.cqe };
	struct ib_cq *cq = ib_alloc_cq(nic_env.dev, NULL, 32, 0, IB_POLL_WORKQUEUE);
	struct side s = {};
	struct ib_qp *qp;

	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(cq), 0))
		return;
	if (!side_open(t, &s))
		goto close;
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ib_create_qp(s.pd, &init);
	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(qp), 0))
		goto close;
	EXPECT_EQ(t, ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
				  IB_QP_ACCESS_FLAGS), 0);
	EXPECT_EQ(t, set_state(qp, IB_QPS_ERR), 0);
	for (int i = 0; i < 8; i++) {
		EXPECT_EQ(t, ib_post_send(qp, &wr, NULL), 0);
		EXPECT_EQ(t, ib_post_recv(qp, &recv, NULL), 0);
	}
	ib_drain_qp(qp);
	EXPECT_EQ(t, atomic_read(&d.n), 16);
	EXPECT_EQ(t, ib_destroy_qp(qp), 0);
close:
	side_close(t, &s);
	ib_free_cq(cq);
}

/* Where there is no receive request: by the number of retries, or with iWARP the end of the connection. */
static void case_no_receive(struct kfi_test *t)
{
	struct conn_attr attr = { .rnr_once = true };
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };
	struct conn c;

	if (!conn_open(t, &c, &attr))
		return;
	EXPECT_EQ(t, execute(&c.a, &wr),
		  nic_env.expect->iwarp ? IB_WC_SUCCESS : IB_WC_RNR_RETRY_EXC_ERR);
	EXPECT_EQ(t, execute(&c.a, &wr), IB_WC_WR_FLUSH_ERR);
	conn_close(t, &c);
}

/* More completions than there is room for. */
static void case_overflow(struct kfi_test *t)
{
	s64 before = stat(NIC_STAT_OVERFLOWS);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED };
	struct conn_attr attr = { .send_wr = 200 };
	struct conn c;
	int room;

	if (!conn_open(t, &c, &attr))
		return;
	room = to_nic_cq(c.a.send_cq)->size;
	EXPECT_EQ(t, set_state(c.a.qp, IB_QPS_ERR), 0);
	for (int i = 0; i < room + 3; i++)
		EXPECT_EQ(t, ib_post_send(c.a.qp, &wr, NULL), 0);
	for (int ms = 0; ms < PATIENCE_MS && stat(NIC_STAT_OVERFLOWS) - before < 3; ms++)
		usleep_range(1000, 1500);
	EXPECT_EQ(t, stat(NIC_STAT_OVERFLOWS) - before, 3);
	conn_close(t, &c);
}

/* Datagrams that carry connections are counted as others; here only that statistics go by one each. */
static void case_statistics(struct kfi_test *t)
{
	s64 posted, sent, received, bytes, registered;
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .num_sge = 1 };
	struct ib_sge in, out;
	struct buffer buf = {};
	struct region r = {};
	struct ib_wc wc;
	struct conn c;

	if (!conn_open(t, &c, NULL))
		return;
	if (!buffer_open(t, &buf, PAGE_SIZE))
		goto close;
	registered = stat(NIC_STAT_REG_MR);
	if (!region_open(t, &r, &c.b, &one_page, REMOTE_ALL))
		goto close;
	EXPECT_EQ(t, stat(NIC_STAT_REG_MR) - registered, 1);
	in = buffer_sge(&buf, &c.b, 100, 100);
	out = buffer_sge(&buf, &c.a, 0, 100);
	wr.sg_list = &out;
	posted = stat(NIC_STAT_POSTS);
	sent = stat(NIC_STAT_SEND_OPS);
	received = stat(NIC_STAT_RECV_OPS);
	bytes = stat(NIC_STAT_BYTES);
	EXPECT_EQ(t, receive(&c.b, &in, 1), 0);
	EXPECT_EQ(t, execute(&c.a, &wr), IB_WC_SUCCESS);
	EXPECT_EQ(t, wait_wc(c.b.recv_cq, &wc), 0);
	EXPECT_EQ(t, stat(NIC_STAT_POSTS) - posted, 1);
	EXPECT_EQ(t, stat(NIC_STAT_SEND_OPS) - sent, 1);
	EXPECT_EQ(t, stat(NIC_STAT_RECV_OPS) - received, 1);
	/* Read once, and written once. */
	EXPECT_EQ(t, stat(NIC_STAT_BYTES) - bytes, 200);
close:
	region_close(t, &r);
	buffer_close(&buf);
	conn_close(t, &c);
}

static const struct kfi_case cases[] = {
	NIC_CASE_ANY(attributes),
	NIC_CASE_ANY(limits),
	NIC_CASE_ANY(regions),
	NIC_CASE(flush),
	NIC_CASE(flush_srq),
	NIC_CASE(drain),
	NIC_CASE(no_receive),
	NIC_CASE(overflow),
	NIC_CASE(statistics),
};

const struct kfi_suite nic_suite_traits = {
	.name = "nic_traits",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
};
