// SPDX-License-Identifier: GPL-2.0
/* Datagrams: when their requests complete, and when they arrive. */
#include <rdma/ib_verbs.h>

#include "nic_test.h"

#define QKEY	0x11111111
#define LEN	100
#define GRH	sizeof(struct ib_grh)

/* A queue pair for datagrams, which tells all completions to one queue and sends to itself. */
static struct ib_qp *open_ud(struct kfi_test *t, struct side *s)
{
	struct ib_qp_init_attr init = {
		.send_cq = s->recv_cq, .recv_cq = s->recv_cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_ALL_WR, .qp_type = IB_QPT_UD,
	};
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = nic_env.port, .qkey = QKEY,
	};
	struct ib_qp *qp = ib_create_qp(s->pd, &init);

	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(qp), 0))
		return NULL;
	s->qp = qp;
	EXPECT_EQ(t, ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
				  IB_QP_QKEY), 0);
	EXPECT_EQ(t, set_state(qp, IB_QPS_RTR), 0);
	attr.qp_state = IB_QPS_RTS;
	EXPECT_EQ(t, ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN), 0);
	return qp;
}

/* The sender's completion comes first. Its memory and its address handle may go then, before the datagram arrives. */
static void send_datagram(struct kfi_test *t, struct side *s, struct ib_ah *ah, struct buffer *b, u8 seed)
{
	struct ib_sge in = buffer_sge(b, s, 0, GRH + LEN), out = buffer_sge(b, s, 1000, LEN);
	struct ib_ud_wr wr = {
		.wr = { .opcode = IB_WR_SEND, .sg_list = &out, .num_sge = 1, .wr_id = 1 },
		.ah = ah, .remote_qpn = s->qp->qp_num, .remote_qkey = QKEY,
	};
	struct ib_wc wc;

	fill(b->mem + 1000, LEN, seed);
	EXPECT_EQ(t, receive(s, &in, 2), 0);
	EXPECT_EQ(t, ib_post_send(s->qp, &wr.wr, NULL), 0);
	if (EXPECT_EQ(t, wait_wc(s->recv_cq, &wc), 0)) {
		EXPECT_EQ(t, wc.status, IB_WC_SUCCESS);
		EXPECT_EQ(t, wc.wr_id, 1);
	}
	if (EXPECT_EQ(t, wait_wc(s->recv_cq, &wc), 0)) {
		EXPECT_EQ(t, wc.status, IB_WC_SUCCESS);
		EXPECT_EQ(t, wc.wr_id, 2);
		EXPECT_EQ(t, wc.byte_len, GRH + LEN);
		EXPECT_EQ(t, wc.src_qp, s->qp->qp_num);
		EXPECT(t, is_filled(b->mem + GRH, LEN, seed), "other bytes came");
	}
}

static void case_order(struct kfi_test *t)
{
	struct rdma_ah_attr attr = {};
	struct buffer b = {};
	struct side s = {};
	struct ib_ah *ah;

	if (nic_env.expect->iwarp) {
		ktap_skip(t, "iWARP has no datagrams");
		return;
	}
	if (!side_open(t, &s) || !open_ud(t, &s) || !buffer_open(t, &b, PAGE_SIZE))
		goto close;
	EXPECT_EQ(t, path_to(&attr, &s), 0);
	ah = rdma_create_ah(s.pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(ah), 0))
		goto close;
	for (int i = 0; i < 8; i++)
		send_datagram(t, &s, ah, &b, i);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
close:
	buffer_close(&b);
	side_close(t, &s);
}

static const struct kfi_case cases[] = {
	NIC_CASE_ANY(order),
};

const struct kfi_suite nic_suite_datagrams = {
	.name = "nic_datagrams",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
};
