// SPDX-License-Identifier: GPL-2.0
/*
 * Connections whose peer ends while requests are under way. The peer disconnects; or its device is removed, which
 * nic.sh does as soon as the case says so. The sender's requests fail, and nobody hangs.
 */
#include <linux/delay.h>

#include "nic_test.h"

#define WRITES	8

/* Ends the peer's queue pair while it has one write to answer, and others wait. @state: the region's after that. */
static void end_peer(struct kfi_test *t, struct reach *s, enum nic_mr_state state)
{
	struct nic_mr *mr = to_nic_mr(s->r.mr);
	int ms;

	/* No write succeeds before the end: the device can't look up the region. */
	down_write(&mr->sem);
	for (int i = 0; i < WRITES; i++)
		EXPECT_EQ(t, reach_write(s, IB_SEND_SIGNALED), 0);
	for (ms = 0; ms < PATIENCE_MS && !rwsem_is_contended(&mr->sem); ms++)
		usleep_range(1000, 1500);
	EXPECT(t, ms < PATIENCE_MS, "no write is under way");
	EXPECT_EQ(t, set_state(s->c.b.qp, IB_QPS_ERR), 0);
	mr->state = state;
	up_write(&mr->sem);
}

/* The write under way may have succeeded. The next one fails, and the others are flushed. */
static void expect_failed(struct kfi_test *t, struct reach *s)
{
	enum ib_wc_status last = IB_WC_SUCCESS;
	struct ib_wc wc;

	for (int i = 0; i < WRITES && EXPECT_EQ(t, wait_wc(s->c.a.send_cq, &wc), 0); i++) {
		if (last != IB_WC_SUCCESS)
			EXPECT_EQ(t, wc.status, IB_WC_WR_FLUSH_ERR);
		else if (wc.status != IB_WC_SUCCESS)
			EXPECT_EQ(t, wc.status, nic_env.expect->iwarp ? IB_WC_WR_FLUSH_ERR :
									IB_WC_RETRY_EXC_ERR);
		last = wc.status;
	}
	EXPECT(t, last != IB_WC_SUCCESS, "all writes have succeeded");
	EXPECT_EQ(t, rdma_write(&s->c.a, &s->from, 0, 0, 8), IB_WC_WR_FLUSH_ERR);
}

static void case_disconnected(struct kfi_test *t)
{
	struct reach s;

	if (reach_open(t, &s)) {
		end_peer(t, &s, NIC_MR_VALID);
		expect_failed(t, &s);
	}
	reach_close(t, &s);
}

/* The peer's region goes with its queue pair. Nobody is there to refuse the write under way. */
static void case_unanswered(struct kfi_test *t)
{
	struct reach s;

	if (reach_open(t, &s)) {
		end_peer(t, &s, NIC_MR_DEAD);
		expect_failed(t, &s);
	}
	reach_close(t, &s);
}

/* Closes all that the case has of the peer's device, whose statistics are not read after that. */
static void let_go(struct kfi_test *t, struct reach *s)
{
	struct ib_device *peer = nic_env.peer;

	if (s->c.listener)
		rdma_destroy_id(s->c.listener);
	s->c.listener = NULL;
	region_close(t, &s->r);
	side_close(t, &s->c.b);
	ib_dma_unmap_single(peer, s->from.peer_dma, s->from.len, DMA_BIDIRECTIONAL);
	nic_env.peer_nic = nic_env.nic;
	nic_env.peer = nic_env.dev;
	complete(&nic_env.gone);
}

/* The peer's device is removed. Not run_checked(): what it counts includes the peer's objects. */
static void run_removed(struct kfi_test *t)
{
	s64 faults = atomic64_read(&nic_env.nic->stats[NIC_STAT_DMA_FAULTS]);
	struct reach s;

	if (!two_devices()) {
		ktap_skip(t, "there is one device");
		return;
	}
	WRITE_ONCE(nic_env.holds, true);
	if (!reach_open(t, &s)) {
		WRITE_ONCE(nic_env.holds, false);
		goto close;
	}
	/* nic.sh waits for this line. */
	pr_info("kfi_nic_test: the peer may go\n");
	if (EXPECT(t, wait_for_completion_timeout(&nic_env.going, msecs_to_jiffies(PATIENCE_MS)),
		   "the peer does not go")) {
		end_peer(t, &s, NIC_MR_VALID);
		let_go(t, &s);
		expect_failed(t, &s);
	}
	WRITE_ONCE(nic_env.holds, false);
close:
	reach_close(t, &s);
	EXPECT_EQ(t, atomic64_read(&nic_env.nic->stats[NIC_STAT_DMA_FAULTS]), faults);
}

static const struct kfi_case cases[] = {
	NIC_CASE(disconnected),
	NIC_CASE(unanswered),
	{ .name = "removed", .run = run_removed },
};

const struct kfi_suite nic_suite_pair = {
	.name = "nic_pair",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
};
