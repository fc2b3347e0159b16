// SPDX-License-Identifier: GPL-2.0
/*
 * Violations at one's own side: segments that a queue pair may not use, and registering and
 * invalidating regions against their state. The last case of each is the positive control of the
 * others.
 */
#include "nic_test.h"

#define LEN	100

struct stage {
	struct conn c;
	struct region r;
	struct buffer from, to;
};

static bool stage_open(struct kfi_test *t, struct stage *s)
{
	*s = (struct stage) {};
	return conn_open(t, &s->c, NULL) && buffer_open(t, &s->from, PAGE_SIZE) &&
	       buffer_open(t, &s->to, PAGE_SIZE);
}

static void stage_close(struct kfi_test *t, struct stage *s)
{
	region_close(t, &s->r);
	buffer_close(&s->from);
	buffer_close(&s->to);
	conn_close(t, &s->c);
}

static int send(struct stage *s, const struct ib_sge *from)
{
	struct ib_sge sge = *from;
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };

	return execute(&s->c.a, &wr);
}

static struct ib_sge region_sge(const struct region *r, s64 at, u32 len)
{
	return (struct ib_sge) { r->mr->iova + at, len, r->mr->lkey };
}

/* A message from segments that are not the sender's to read. */
enum source { SOURCE_GOOD, SOURCE_BEYOND, SOURCE_STALE, SOURCE_OTHER_PD, SOURCE_NO_KEY,
	      SOURCE_UNMAPPED, SOURCES };

static void try_source(struct kfi_test *t, enum source source)
{
	bool other = source == SOURCE_OTHER_PD;
	struct ib_sge in, out;
	struct ib_wc wc;
	struct stage s;

	if (!stage_open(t, &s) ||
	    !region_open(t, &s.r, other ? &s.c.b : &s.c.a, &some_bytes, IB_ACCESS_LOCAL_WRITE))
		goto close;
	in = buffer_sge(&s.to, &s.c.b, 0, PAGE_SIZE);
	out = region_sge(&s.r, source == SOURCE_BEYOND ? s.r.len - LEN + 1 : 0, LEN);
	EXPECT_EQ(t, receive(&s.c.b, &in, 1), 0);
	switch (source) {
	case SOURCE_STALE:
		EXPECT_EQ(t, region_invalidate(&s.r, s.r.mr->rkey), IB_WC_SUCCESS);
		break;
	case SOURCE_NO_KEY:
		out.lkey ^= 0xf0000000;
		break;
	case SOURCE_UNMAPPED:
		region_unmap(&s.r);
		nic_env.dma_faults++;
		nic_env.unmapped++;
		break;
	default:
		break;
	}
	EXPECT_EQ(t, send(&s, &out), source == SOURCE_GOOD ? IB_WC_SUCCESS : IB_WC_LOC_PROT_ERR);
	if (source == SOURCE_GOOD && EXPECT_EQ(t, wait_wc(s.c.b.recv_cq, &wc), 0))
		EXPECT_EQ(t, wc.status, IB_WC_SUCCESS);
close:
	stage_close(t, &s);
}

static void case_source(struct kfi_test *t)
{
	for (enum source source = 0; source < SOURCES; source++) {
		if (source == SOURCE_STALE && !nic_env.expect->local_inv)
			continue;
		if (source == SOURCE_UNMAPPED && !nic_env.translated)
			continue;
		try_source(t, source);
	}
}

/* A message to segments that are not the receiver's to write. */
enum sink { SINK_GOOD, SINK_NO_RIGHT, SINK_BEYOND, SINK_OTHER_PD, SINK_SHORT, SINK_UNMAPPED, SINKS };

static void try_sink(struct kfi_test *t, enum sink sink)
{
	enum ib_wc_status of_recv = IB_WC_LOC_PROT_ERR, of_send = IB_WC_REM_OP_ERR;
	struct ib_sge in, out;
	struct ib_wc wc;
	struct stage s;

	if (!stage_open(t, &s) ||
	    !region_open(t, &s.r, sink == SINK_OTHER_PD ? &s.c.a : &s.c.b, &some_bytes,
			 sink == SINK_NO_RIGHT ? 0 : IB_ACCESS_LOCAL_WRITE))
		goto close;
	out = buffer_sge(&s.from, &s.c.a, 0, LEN);
	in = region_sge(&s.r, sink == SINK_BEYOND ? s.r.len - LEN + 1 : 0,
			sink == SINK_SHORT ? LEN - 1 : LEN);
	if (sink == SINK_GOOD) {
		of_recv = IB_WC_SUCCESS;
		of_send = IB_WC_SUCCESS;
	} else if (sink == SINK_SHORT) {
		of_recv = IB_WC_LOC_LEN_ERR;
		of_send = IB_WC_REM_INV_REQ_ERR;
	} else if (sink == SINK_UNMAPPED) {
		region_unmap(&s.r);
		nic_env.dma_faults++;
		nic_env.unmapped++;
	}
	/* With iWARP the sender is not told. */
	if (nic_env.expect->iwarp)
		of_send = IB_WC_SUCCESS;
	fill(s.from.mem, LEN, 3);
	EXPECT_EQ(t, receive(&s.c.b, &in, 1), 0);
	EXPECT_EQ(t, send(&s, &out), of_send);
	if (EXPECT_EQ(t, wait_wc(s.c.b.recv_cq, &wc), 0))
		EXPECT_EQ(t, wc.status, of_recv);
	if (sink != SINK_GOOD)
		EXPECT(t, region_clean(&s.r) && !memcmp(page_address(s.r.pages[0]) + 1000,
							 page_address(s.r.pages[0]), LEN),
		       "bytes changed, sink %d", sink);
close:
	stage_close(t, &s);
}

static void case_sink(struct kfi_test *t)
{
	for (enum sink sink = 0; sink < SINKS; sink++)
		if (sink != SINK_UNMAPPED || nic_env.translated)
			try_sink(t, sink);
}

/* Reading into one's own memory: a local right, but with iWARP one that peers need as well. */
static void case_read_sink(struct kfi_test *t)
{
	bool iwarp = nic_env.expect->iwarp;
	const struct {
		int access;
		bool ok;
	} rows[] = {
		{ 0, false },
		{ IB_ACCESS_LOCAL_WRITE, !iwarp },
		{ IB_ACCESS_REMOTE_READ, false },
		{ IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, true },
	};
	struct region from;
	struct ib_sge in;
	struct stage s;

	for (int i = 0; i <= ARRAY_SIZE(rows); i++) {
		bool by_key = i == ARRAY_SIZE(rows), ok = by_key ? !iwarp : rows[i].ok;

		if (!stage_open(t, &s) ||
		    !region_open(t, &from, &s.c.b, &one_page, IB_ACCESS_REMOTE_READ))
			goto close;
		if (by_key) {
			in = buffer_sge(&s.to, &s.c.a, 0, LEN);
		} else {
			if (!region_open(t, &s.r, &s.c.a, &some_bytes, rows[i].access))
				goto close_from;
			in = region_sge(&s.r, 0, LEN);
		}
		EXPECT(t, rdma_read(&s.c.a, &in, from.mr->iova, from.mr->rkey) ==
		       (ok ? IB_WC_SUCCESS : IB_WC_LOC_PROT_ERR), "row %d: expected %s", i,
		       ok ? "success" : "LOC_PROT_ERR");
close_from:
		region_close(t, &from);
close:
		stage_close(t, &s);
	}
}

static void case_atomic_sink(struct kfi_test *t)
{
	struct region from;
	struct ib_sge in;
	struct ib_atomic_wr wr = {
		.wr = { .opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &in, .num_sge = 1 },
	};
	struct stage s;

	if (nic_env.expect->iwarp) {
		ktap_skip(t, "iWARP has no atomic operations");
		return;
	}
	if (!stage_open(t, &s))
		goto close;
	if (!region_open(t, &from, &s.c.b, &one_page,
			 IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC))
		goto close;
	if (region_open(t, &s.r, &s.c.a, &some_bytes, 0)) {
		wr.remote_addr = from.mr->iova;
		wr.rkey = from.mr->rkey;
		in = region_sge(&s.r, 0, 8);
		EXPECT_EQ(t, execute(&s.c.a, &wr.wr), IB_WC_LOC_PROT_ERR);
	}
	region_close(t, &from);
close:
	stage_close(t, &s);
}

/* Registering what is registered fails, and so does another's region. */
static void case_register(struct kfi_test *t)
{
	struct stage s;

	if (!stage_open(t, &s) || !region_open(t, &s.r, &s.c.a, &one_page, REMOTE_ALL))
		goto close;
	EXPECT_EQ(t, region_register(&s.r, REMOTE_ALL), IB_WC_MW_BIND_ERR);
close:
	stage_close(t, &s);

	if (!stage_open(t, &s) || !region_alloc(t, &s.r, &s.c.a, &one_page))
		goto close_other;
	EXPECT_EQ(t, region_map(&s.r), 1);
	s.r.side = &s.c.b;
	EXPECT_EQ(t, region_register(&s.r, REMOTE_ALL), IB_WC_MW_BIND_ERR);
close_other:
	stage_close(t, &s);
}

/* An invalidated region must be valid, except where the device does not look. */
static void case_invalidate(struct kfi_test *t)
{
	struct stage s;

	if (!nic_env.expect->local_inv) {
		ktap_skip(t, "regions can't be invalidated; the driver warns of it");
		return;
	}
	if (!stage_open(t, &s) || !region_open(t, &s.r, &s.c.a, &one_page, REMOTE_ALL))
		goto close;
	EXPECT_EQ(t, region_invalidate(&s.r, s.r.mr->rkey), IB_WC_SUCCESS);
	EXPECT_EQ(t, region_invalidate(&s.r, s.r.mr->rkey), nic_env.expect->inv_free);
close:
	stage_close(t, &s);

	/* By a key with other lowest bits. */
	if (!stage_open(t, &s) || !region_open(t, &s.r, &s.c.a, &one_page, REMOTE_ALL))
		goto close_key;
	EXPECT_EQ(t, region_invalidate(&s.r, s.r.mr->rkey ^ 1), IB_WC_LOC_QP_OP_ERR);
close_key:
	stage_close(t, &s);

	/* Of another protection domain. */
	if (!stage_open(t, &s) || !region_open(t, &s.r, &s.c.a, &one_page, REMOTE_ALL))
		goto close_pd;
	s.r.side = &s.c.b;
	EXPECT_EQ(t, region_invalidate(&s.r, s.r.mr->rkey), IB_WC_LOC_QP_OP_ERR);
close_pd:
	stage_close(t, &s);
}

/* A peer that invalidates what is not valid ends the connection, whether or not the device checks LOCAL_INV. */
static void send_inv(struct kfi_test *t, bool free)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .num_sge = 1 };
	struct ib_sge in, out;
	struct ib_wc wc;
	struct stage s;

	if (!stage_open(t, &s) || !region_open(t, &s.r, &s.c.b, &one_page, REMOTE_ALL))
		goto close;
	in = buffer_sge(&s.to, &s.c.b, 0, LEN);
	out = buffer_sge(&s.from, &s.c.a, 0, LEN);
	wr.sg_list = &out;
	wr.ex.invalidate_rkey = s.r.mr->rkey;
	if (free)
		EXPECT_EQ(t, region_invalidate(&s.r, s.r.mr->rkey), IB_WC_SUCCESS);
	else
		wr.ex.invalidate_rkey ^= 1;
	EXPECT_EQ(t, receive(&s.c.b, &in, 1), 0);
	EXPECT_EQ(t, execute(&s.c.a, &wr), nic_env.expect->iwarp ? IB_WC_SUCCESS : IB_WC_REM_OP_ERR);
	if (EXPECT_EQ(t, wait_wc(s.c.b.recv_cq, &wc), 0))
		EXPECT_EQ(t, wc.status, IB_WC_LOC_QP_OP_ERR);
close:
	stage_close(t, &s);
}

/* Refused when it is posted, with @bad at the request, and those before it are carried out. */
static void case_posting(struct kfi_test *t)
{
	struct ib_sge sges[3], in;
	struct ib_send_wr second = { .opcode = IB_WR_SEND, .sg_list = sges, .num_sge = 3 };
	struct ib_send_wr first = {
		.opcode = IB_WR_SEND, .sg_list = sges, .num_sge = 1, .wr_id = 7,
		.send_flags = IB_SEND_SIGNALED, .next = &second,
	};
	const struct ib_send_wr *bad = NULL;
	const struct ib_recv_wr *bad_recv = NULL;
	struct ib_recv_wr recv = { .sg_list = sges, .num_sge = 3 };
	struct ib_wc wc;
	struct stage s;

	if (!stage_open(t, &s))
		goto close;
	for (int i = 0; i < ARRAY_SIZE(sges); i++)
		sges[i] = buffer_sge(&s.from, &s.c.a, 0, 10);
	in = buffer_sge(&s.to, &s.c.b, 0, 10);
	EXPECT_EQ(t, receive(&s.c.b, &in, 1), 0);
	/* Connections of tests have two segments. */
	EXPECT_EQ(t, ib_post_send(s.c.a.qp, &first, &bad), -EINVAL);
	EXPECT(t, bad == &second, "the wrong request is bad");
	if (EXPECT_EQ(t, wait_wc(s.c.a.send_cq, &wc), 0))
		EXPECT(t, wc.status == IB_WC_SUCCESS && wc.wr_id == 7, "the first has failed");
	EXPECT_EQ(t, ib_post_recv(s.c.b.qp, &recv, &bad_recv), -EINVAL);
	EXPECT(t, bad_recv == &recv, "the wrong request is bad");
	second.opcode = IB_WR_RDMA_READ;
	second.num_sge = nic_env.expect->max_read_sge + 1;
	if (nic_env.expect->max_read_sge == 1)
		EXPECT_EQ(t, ib_post_send(s.c.a.qp, &second, &bad), -EINVAL);
close:
	stage_close(t, &s);
}

static void case_send_inv(struct kfi_test *t)
{
	send_inv(t, false);
	if (nic_env.expect->local_inv)
		send_inv(t, true);
}

static const struct kfi_case cases[] = {
	NIC_CASE(source),
	NIC_CASE(sink),
	NIC_CASE(read_sink),
	NIC_CASE(atomic_sink),
	NIC_CASE(register),
	NIC_CASE(invalidate),
	NIC_CASE(send_inv),
	NIC_CASE(posting),
};

const struct kfi_suite nic_suite_local = {
	.name = "nic_local",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
};
