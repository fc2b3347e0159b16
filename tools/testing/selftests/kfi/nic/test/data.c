// SPDX-License-Identifier: GPL-2.0
/* Permitted requests: each kind of request does what it should, byte by byte, and nothing else. */
#include <linux/slab.h>

#include "nic_test.h"

#define SIZE	(MAX_ENTRIES * PAGE_SIZE)

/* The needs of most cases: a connection, and memory on either side. */
struct stage {
	struct conn c;
	struct buffer from, to;
};

static void stage_close(struct kfi_test *t, struct stage *s)
{
	buffer_close(&s->from);
	buffer_close(&s->to);
	conn_close(t, &s->c);
}

static bool stage_open(struct kfi_test *t, struct stage *s, const struct conn_attr *attr)
{
	*s = (struct stage) {};
	if (conn_open(t, &s->c, attr) && buffer_open(t, &s->from, SIZE) &&
	    buffer_open(t, &s->to, SIZE))
		return true;
	stage_close(t, s);
	return false;
}

/* The next completion of @b's receive queue: that receive request, with @len bytes. */
static bool received(struct kfi_test *t, struct side *b, u64 id, u32 len, struct ib_wc *wc)
{
	if (!EXPECT_EQ(t, wait_wc(b->recv_cq, wc), 0))
		return false;
	return EXPECT_EQ(t, wc->status, IB_WC_SUCCESS) && EXPECT_EQ(t, wc->wr_id, id) &&
	       EXPECT(t, wc->qp == b->qp, "a completion of another queue pair") &&
	       EXPECT_EQ(t, wc->byte_len, len);
}

/* Sends @len bytes in one or two segments to a receive request of one or two. */
static void send(struct kfi_test *t, struct stage *s, u32 len, bool split, u8 seed)
{
	struct side *a = &s->c.a, *b = &s->c.b;
	int n_send = split && nic_env.expect->max_send_sge > 1 ? 2 : 1;
	int n_recv = split && nic_env.expect->max_recv_sge > 1 ? 2 : 1;
	struct ib_sge out[2] = {
		buffer_sge(&s->from, a, 0, n_send == 2 ? len / 3 : len),
		buffer_sge(&s->from, a, len / 3, len - len / 3),
	};
	/* The second segment comes first in memory. */
	struct ib_sge in[2] = {
		buffer_sge(&s->to, b, n_recv == 2 ? len - len / 2 + 64 : 64,
			   n_recv == 2 ? len / 2 : len),
		buffer_sge(&s->to, b, 64, len - len / 2),
	};
	struct ib_recv_wr recv = { .wr_id = len, .sg_list = in, .num_sge = n_recv };
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = out, .num_sge = n_send };
	struct ib_wc wc;
	u8 *linear;

	fill(s->from.mem, len, seed);
	memset(s->to.mem, 0xcc, SIZE);
	EXPECT_EQ(t, ib_post_recv(b->qp, &recv, NULL), 0);
	EXPECT_EQ(t, execute(a, &wr), IB_WC_SUCCESS);
	if (!received(t, b, len, len, &wc))
		return;
	EXPECT_EQ(t, wc.opcode, IB_WC_RECV);
	EXPECT_EQ(t, wc.wc_flags & (IB_WC_WITH_IMM | IB_WC_WITH_INVALIDATE), 0);

	linear = kmalloc(len ?: 1, GFP_KERNEL);
	if (!EXPECT(t, linear, "no memory"))
		return;
	if (n_recv == 2) {
		memcpy(linear, s->to.mem + 64 + len - len / 2, len / 2);
		memcpy(linear + len / 2, s->to.mem + 64, len - len / 2);
	} else {
		memcpy(linear, s->to.mem + 64, len);
	}
	EXPECT(t, is_filled(linear, len, seed), "%u bytes came as others", len);
	EXPECT(t, !memchr_inv(s->to.mem, 0xcc, 64) &&
	       !memchr_inv(s->to.mem + 64 + len, 0xcc, SIZE - 64 - len),
	       "bytes around %u changed", len);
	kfree(linear);
}

static void case_send(struct kfi_test *t)
{
	static const u32 sizes[] = { 0, 1, 63, 1000, PAGE_SIZE, PAGE_SIZE + 1, 5 * PAGE_SIZE + 77 };
	struct stage s;

	if (!stage_open(t, &s, NULL))
		return;
	for (int i = 0; i < ARRAY_SIZE(sizes); i++) {
		send(t, &s, sizes[i], false, i);
		send(t, &s, sizes[i], true, i + 100);
	}
	stage_close(t, &s);
}

static void case_send_imm(struct kfi_test *t)
{
	struct stage s;
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND_WITH_IMM,
		.num_sge = 1,
		.ex.imm_data = cpu_to_be32(0x12345678),
	};
	struct ib_sge in, out;
	struct ib_wc wc;

	if (!stage_open(t, &s, NULL))
		return;
	out = buffer_sge(&s.from, &s.c.a, 0, 100);
	in = buffer_sge(&s.to, &s.c.b, 0, 100);
	wr.sg_list = &out;
	fill(s.from.mem, 100, 1);
	if (nic_env.expect->iwarp) {
		EXPECT_EQ(t, execute(&s.c.a, &wr), -EINVAL);
	} else {
		EXPECT_EQ(t, receive(&s.c.b, &in, 5), 0);
		EXPECT_EQ(t, execute(&s.c.a, &wr), IB_WC_SUCCESS);
		if (received(t, &s.c.b, 5, 100, &wc)) {
			EXPECT_EQ(t, wc.opcode, IB_WC_RECV);
			EXPECT_EQ(t, wc.wc_flags & IB_WC_WITH_IMM, IB_WC_WITH_IMM);
			EXPECT_EQ(t, be32_to_cpu(wc.ex.imm_data), 0x12345678);
			EXPECT(t, is_filled(s.to.mem, 100, 1), "other bytes came");
		}
	}
	stage_close(t, &s);
}

/* The peer's region is invalid once its receive request has completed. */
static void case_send_inv(struct kfi_test *t)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .num_sge = 1 };
	struct ib_sge in, out;
	struct region r;
	struct stage s;
	struct ib_wc wc;

	if (!stage_open(t, &s, NULL))
		return;
	if (!region_open(t, &r, &s.c.b, &one_page, REMOTE_ALL))
		goto close;
	out = buffer_sge(&s.from, &s.c.a, 0, 100);
	in = buffer_sge(&s.to, &s.c.b, 0, 100);
	fill(s.from.mem, 100, 1);
	wr.sg_list = &out;
	wr.ex.invalidate_rkey = r.mr->rkey;
	EXPECT_EQ(t, rdma_write(&s.c.a, &s.from, r.mr->iova, r.mr->rkey, 10), IB_WC_SUCCESS);
	EXPECT_EQ(t, receive(&s.c.b, &in, 6), 0);
	EXPECT_EQ(t, execute(&s.c.a, &wr), IB_WC_SUCCESS);
	if (received(t, &s.c.b, 6, 100, &wc)) {
		EXPECT_EQ(t, wc.wc_flags & IB_WC_WITH_INVALIDATE, IB_WC_WITH_INVALIDATE);
		EXPECT_EQ(t, wc.ex.invalidate_rkey, r.mr->rkey);
		EXPECT(t, is_filled(s.to.mem, 100, 1), "other bytes came");
	}
	/* iWARP does not tell the sender. */
	memset(s.from.mem, 0xff, 10);
	EXPECT_EQ(t, rdma_write(&s.c.a, &s.from, r.mr->iova, r.mr->rkey, 10),
		  nic_env.expect->iwarp ? IB_WC_SUCCESS : IB_WC_REM_ACCESS_ERR);
	EXPECT(t, is_filled(page_address(r.pages[0]), 10, 1), "the region was written");
	region_close(t, &r);
close:
	stage_close(t, &s);
}

/* A region of that shape is written and read, whole and in part. */
static void reach(struct kfi_test *t, struct stage *s, const struct shape *shape)
{
	u32 parts[][2] = { { 0, 0 }, { 0, 1 }, { 0, 0 }, { 0, 1 } };
	struct region r, sink;
	struct ib_sge in;
	u8 *bytes = kmalloc(SIZE, GFP_KERNEL);

	if (!EXPECT(t, bytes, "no memory"))
		return;
	if (!region_open(t, &r, &s->c.b, shape, REMOTE_ALL))
		goto free;
	if (!region_open(t, &sink, &s->c.a, &full_pages,
			 IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE))
		goto close;
	/* All, its first byte, its last byte, and a piece from the middle. */
	parts[0][1] = r.len;
	parts[2][0] = r.len - 1;
	parts[2][1] = 1;
	parts[3][0] = r.len / 3;
	parts[3][1] = r.len / 2;
	for (int i = 0; i < ARRAY_SIZE(parts); i++) {
		u32 at = parts[i][0], len = parts[i][1];
		u8 seed = i + 3 * shape->n;

		memset(bytes, 0x55, r.len);
		region_put(&r, bytes);
		fill(s->from.mem, len, seed);
		EXPECT_EQ(t, rdma_write(&s->c.a, &s->from, r.mr->iova + at, r.mr->rkey, len),
			  IB_WC_SUCCESS);
		region_get(&r, bytes);
		EXPECT(t, is_filled(bytes + at, len, seed), "wrote others: %u at %u", len, at);
		EXPECT(t, !memchr_inv(bytes, 0x55, at) &&
		       !memchr_inv(bytes + at + len, 0x55, r.len - at - len) && region_clean(&r),
		       "wrote around: %u at %u", len, at);

		memset(bytes, 0xaa, SIZE);
		region_put(&sink, bytes);
		in = (struct ib_sge) { sink.mr->iova + 5, min_t(u32, len, SIZE - 5), sink.mr->lkey };
		EXPECT_EQ(t, rdma_read(&s->c.a, &in, r.mr->iova + at, r.mr->rkey), IB_WC_SUCCESS);
		region_get(&sink, bytes);
		EXPECT(t, is_filled(bytes + 5, in.length, seed), "read others: %u at %u", len, at);
		EXPECT(t, !memchr_inv(bytes, 0xaa, 5) &&
		       !memchr_inv(bytes + 5 + in.length, 0xaa, SIZE - 5 - in.length),
		       "read around: %u at %u", len, at);
	}
	region_close(t, &sink);
close:
	region_close(t, &r);
free:
	kfree(bytes);
}

static void reach_shape(struct kfi_test *t, const struct shape *shape)
{
	struct stage s;

	if (!stage_open(t, &s, NULL))
		return;
	reach(t, &s, shape);
	stage_close(t, &s);
}

static void case_page(struct kfi_test *t)
{
	reach_shape(t, &one_page);
	reach_shape(t, &some_bytes);
}

static void case_pages(struct kfi_test *t)
{
	reach_shape(t, &offset_pages);
	reach_shape(t, &full_pages);
}

static void case_gaps(struct kfi_test *t)
{
	struct conn c;

	if (nic_env.expect->gaps) {
		reach_shape(t, &with_gaps);
		return;
	}
	EXPECT_EQ(t, nic_env.dev->attrs.kernel_cap_flags & IBK_SG_GAPS_REG, 0);
	if (!conn_open(t, &c, NULL))
		return;
	EXPECT_EQ(t, PTR_ERR_OR_ZERO(ib_alloc_mr(c.a.pd, IB_MR_TYPE_SG_GAPS, 4)), -EINVAL);
	conn_close(t, &c);
}

/* A list with a hole is no list of pages: the region takes what is before the hole. */
static void case_hole(struct kfi_test *t)
{
	struct region r;
	struct conn c;

	if (!conn_open(t, &c, NULL))
		return;
	if (region_alloc(t, &r, &c.b, &full_pages)) {
		sg_dma_len(&r.list[2]) = 100;
		EXPECT_EQ(t, region_map(&r), 3);
		region_close(t, &r);
	}
	conn_close(t, &c);
}

/* More than a region has keys. */
#define ROUNDS	300

/* Registers a region again and again, with the pages of the one and the other, and keys that come round. */
static noinline_for_stack void register_rounds(struct kfi_test *t, struct stage *s, struct region *r,
					       struct region *other)
{
	u8 bytes[8];

	for (int i = 0; i < ROUNDS; i++) {
		struct region *now = i % 2 ? r : other;

		if (!EXPECT_EQ(t, region_invalidate(r, r->mr->rkey), IB_WC_SUCCESS) ||
		    !EXPECT_EQ(t, ib_map_mr_sg(r->mr, now->list, 1, NULL, PAGE_SIZE), 1) ||
		    !EXPECT_EQ(t, region_register(r, REMOTE_ALL), IB_WC_SUCCESS))
			return;
		fill(s->from.mem, sizeof(bytes), i);
		EXPECT_EQ(t, rdma_write(&s->c.a, &s->from, r->mr->iova, r->mr->rkey, sizeof(bytes)),
			  IB_WC_SUCCESS);
		memcpy(bytes, page_address(now->pages[0]), sizeof(bytes));
		if (!EXPECT(t, is_filled(bytes, sizeof(bytes), i), "round %d: other bytes", i))
			return;
	}
}

static void case_register_again(struct kfi_test *t)
{
	struct region *r = kcalloc(2, sizeof(*r), GFP_KERNEL);
	struct stage s;

	if (!EXPECT(t, r, "no memory"))
		return;
	if (!stage_open(t, &s, NULL))
		goto free;
	if (!region_open(t, &r[0], &s.c.b, &one_page, REMOTE_ALL))
		goto close;
	if (!region_alloc(t, &r[1], &s.c.b, &one_page))
		goto close_region;
	if (nic_env.expect->local_inv) {
		register_rounds(t, &s, &r[0], &r[1]);
		nic_env.keys_again = 1 + ROUNDS - 256;
	}
	region_close(t, &r[1]);
close_region:
	region_close(t, &r[0]);
close:
	stage_close(t, &s);
free:
	kfree(r);
}

static void case_write_imm(struct kfi_test *t)
{
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE_WITH_IMM, .num_sge = 1,
			.ex.imm_data = cpu_to_be32(0xfedcba98) },
	};
	struct ib_sge out, in;
	struct region r;
	struct stage s;
	struct ib_wc wc;
	u8 *bytes;

	if (!stage_open(t, &s, NULL))
		return;
	if (!region_open(t, &r, &s.c.b, &one_page, REMOTE_ALL))
		goto close;
	out = buffer_sge(&s.from, &s.c.a, 0, 500);
	in = buffer_sge(&s.to, &s.c.b, 0, 10);
	memset(s.to.mem, 0xcc, 10);
	fill(s.from.mem, 500, 9);
	wr.wr.sg_list = &out;
	wr.remote_addr = r.mr->iova + 50;
	wr.rkey = r.mr->rkey;
	if (nic_env.expect->iwarp) {
		EXPECT_EQ(t, execute(&s.c.a, &wr.wr), -EINVAL);
		goto close_region;
	}
	EXPECT_EQ(t, receive(&s.c.b, &in, 7), 0);
	EXPECT_EQ(t, execute(&s.c.a, &wr.wr), IB_WC_SUCCESS);
	if (received(t, &s.c.b, 7, 500, &wc)) {
		EXPECT_EQ(t, wc.opcode, IB_WC_RECV_RDMA_WITH_IMM);
		EXPECT_EQ(t, wc.wc_flags & IB_WC_WITH_IMM, IB_WC_WITH_IMM);
		EXPECT_EQ(t, be32_to_cpu(wc.ex.imm_data), 0xfedcba98);
	}
	bytes = page_address(r.pages[0]);
	EXPECT(t, is_filled(bytes + 50, 500, 9), "other bytes were written");
	EXPECT(t, !memchr_inv(s.to.mem, 0xcc, 10), "the receive request's memory was written");
close_region:
	region_close(t, &r);
close:
	stage_close(t, &s);
}

static void case_atomic(struct kfi_test *t)
{
	static const struct {
		enum ib_wr_opcode opcode;
		u64 before, operand, swap, after;
	} rows[] = {
		{ IB_WR_ATOMIC_FETCH_AND_ADD, 5, 7, 0, 12 },
		{ IB_WR_ATOMIC_FETCH_AND_ADD, U64_MAX, 1, 0, 0 },
		{ IB_WR_ATOMIC_CMP_AND_SWP, 9, 9, 11, 11 },
		{ IB_WR_ATOMIC_CMP_AND_SWP, 9, 8, 11, 9 },
	};
	struct region r;
	struct stage s;

	if (!stage_open(t, &s, NULL))
		return;
	EXPECT_EQ(t, nic_env.dev->attrs.atomic_cap,
		  nic_env.expect->iwarp ? IB_ATOMIC_NONE : IB_ATOMIC_HCA);
	if (!region_open(t, &r, &s.c.b, &one_page, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC))
		goto close;
	for (int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ib_sge in = buffer_sge(&s.to, &s.c.a, 0, sizeof(u64));
		struct ib_atomic_wr wr = {
			.wr = { .opcode = rows[i].opcode, .sg_list = &in, .num_sge = 1 },
			.remote_addr = r.mr->iova + 8 * i,
			.rkey = r.mr->rkey,
			.compare_add = rows[i].operand,
			.swap = rows[i].swap,
		};
		u64 *word = (u64 *)page_address(r.pages[0]) + i;

		*word = rows[i].before;
		if (nic_env.expect->iwarp) {
			EXPECT_EQ(t, execute(&s.c.a, &wr.wr), -EINVAL);
			continue;
		}
		EXPECT_EQ(t, execute(&s.c.a, &wr.wr), IB_WC_SUCCESS);
		EXPECT_EQ(t, *word, rows[i].after);
		EXPECT_EQ(t, *(u64 *)s.to.mem, rows[i].before);
	}
	region_close(t, &r);
close:
	stage_close(t, &s);
}

/* Inline data is taken when the request is posted: then its memory may change, and is not mapped. */
static void case_inline(struct kfi_test *t)
{
	u32 len = nic_env.expect->max_inline;
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .num_sge = 1, .send_flags = IB_SEND_INLINE };
	struct ib_sge in, out;
	struct stage s;
	struct ib_wc wc;
	u8 data[NIC_MAX_INLINE + 1];

	if (!stage_open(t, &s, NULL))
		return;
	in = buffer_sge(&s.to, &s.c.b, 0, NIC_MAX_INLINE);
	wr.sg_list = &out;
	if (nic_env.expect->inline_over == NIC_INLINE_IGNORED) {
		/* The flag means nothing: the segment is one of mapped memory. */
		len = 100;
		fill(s.from.mem, len, 4);
		out = buffer_sge(&s.from, &s.c.a, 0, len);
	} else {
		out = (struct ib_sge) { (uintptr_t)data, len + 1, 0 };
		EXPECT_EQ(t, execute(&s.c.a, &wr), -EINVAL);
		fill(data, len, 4);
		out.length = len;
	}
	EXPECT_EQ(t, receive(&s.c.b, &in, 8), 0);
	EXPECT_EQ(t, ib_post_send(s.c.a.qp, &wr, NULL), 0);
	memset(data, 0, sizeof(data));
	if (received(t, &s.c.b, 8, len, &wc))
		EXPECT(t, is_filled(s.to.mem, len, 4), "other bytes came");
	stage_close(t, &s);
}

/* Two connections take their receive requests from one SRQ. */
static void case_srq(struct kfi_test *t)
{
	struct conn_attr first = { .srq = true }, second = {};
	struct stage s;
	struct conn other;

	if (!nic_env.expect->srq) {
		struct ib_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
		struct side side = {};

		EXPECT_EQ(t, nic_env.dev->attrs.max_srq, 0);
		/* The core calls create_srq without a look whether there is one. */
		EXPECT(t, !nic_env.dev->ops.create_srq || side_open(t, &side), "no side");
		if (side.pd)
			EXPECT_EQ(t, PTR_ERR_OR_ZERO(ib_create_srq(side.pd, &init)), -EOPNOTSUPP);
		side_close(t, &side);
		return;
	}
	if (!stage_open(t, &s, &first))
		return;
	second.share = &s.c.b;
	if (!conn_open(t, &other, &second))
		goto close;
	for (int i = 0; i < 4; i++) {
		struct conn *c = i % 2 ? &other : &s.c;
		struct ib_sge in = buffer_sge(&s.to, &c->b, 0, 100 + i);
		struct ib_sge out = buffer_sge(&s.from, &c->a, 0, 100 + i);
		struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &out, .num_sge = 1 };
		struct ib_wc wc;

		fill(s.from.mem, 100 + i, i);
		EXPECT_EQ(t, receive(&s.c.b, &in, i), 0);
		EXPECT_EQ(t, execute(&c->a, &wr), IB_WC_SUCCESS);
		if (received(t, &c->b, i, 100 + i, &wc))
			EXPECT(t, is_filled(s.to.mem, 100 + i, i), "other bytes came");
	}
	conn_close(t, &other);
close:
	stage_close(t, &s);
}

/* The event comes once, when fewer receive requests than the limit are left. */
static void case_srq_limit(struct kfi_test *t)
{
	struct conn_attr attr = { .srq = true };
	struct ib_srq_attr limit = { .srq_limit = 2 };
	struct stage s;

	if (!nic_env.expect->srq) {
		ktap_skip(t, "there are no SRQs");
		return;
	}
	if (!stage_open(t, &s, &attr))
		return;
	for (int i = 0; i < 4; i++) {
		struct ib_sge in = buffer_sge(&s.to, &s.c.b, 0, 10);

		EXPECT_EQ(t, receive(&s.c.b, &in, i), 0);
	}
	EXPECT_EQ(t, ib_modify_srq(s.c.b.srq, &limit, IB_SRQ_LIMIT), 0);
	for (int i = 0; i < 4; i++) {
		struct ib_sge out = buffer_sge(&s.from, &s.c.a, 0, 10);
		struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &out, .num_sge = 1 };
		struct ib_wc wc;

		EXPECT_EQ(t, execute(&s.c.a, &wr), IB_WC_SUCCESS);
		received(t, &s.c.b, i, 10, &wc);
		EXPECT_EQ(t, atomic_read(&s.c.b.srq_limit), i >= 2);
	}
	stage_close(t, &s);
}

/* Both ways over a connection that the connection manager has made. */
static void case_connected(struct kfi_test *t)
{
	struct conn_attr attr = { .cm = true };
	struct stage s;

	if (!stage_open(t, &s, &attr))
		return;
	send(t, &s, PAGE_SIZE + 1, true, 5);
	reach(t, &s, &offset_pages);
	stage_close(t, &s);
}

static const struct kfi_case cm_cases[] = {
	NIC_CASE(connected),
};

const struct kfi_suite nic_suite_cm = {
	.name = "nic_cm",
	.cases = cm_cases,
	.count = ARRAY_SIZE(cm_cases),
	.bare = true,
};

static const struct kfi_case cases[] = {
	NIC_CASE(send),
	NIC_CASE(send_imm),
	NIC_CASE(send_inv),
	NIC_CASE(page),
	NIC_CASE(pages),
	NIC_CASE(gaps),
	NIC_CASE(hole),
	NIC_CASE(register_again),
	NIC_CASE(write_imm),
	NIC_CASE(atomic),
	NIC_CASE(inline),
	NIC_CASE(srq),
	NIC_CASE(srq_limit),
};

const struct kfi_suite nic_suite_data = {
	.name = "nic_data",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
};
