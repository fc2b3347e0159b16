// SPDX-License-Identifier: GPL-2.0
/*
 * Violations at the remote side: a peer's request that names a region by a wrong key, beyond its
 * bounds, or against its rights. Each row first does the same in order, and succeeds; then it
 * commits its violation, and the request fails, no byte changes, and the connection has ended.
 */
#include <linux/slab.h>

#include "nic_test.h"

enum spoil {
	NOTHING,
	STALE,		/* the region was invalidated */
	OLD_KEY,	/* and registered again, under another key */
	WRONG_KEY,	/* the consumer's 8 bits of the key are others */
	DEREGISTERED,
	OTHER_PD,	/* of the peer's own domain */
	UNMAPPED,	/* memory that is not mapped any more */
	FREED,		/* memory that is mapped, and nobody's: the last page of a CPU's list */
	FREED_BEFORE,	/* the same, before another page of the list */
	NO_QP_RIGHT,	/* the queue pair allows nothing */
	LOCAL_KEY,	/* the key that a protection domain has for all memory */
};

struct violation {
	const char *name;
	enum ib_wr_opcode opcode;
	enum spoil spoil;
	int access;	/* rights of the region; 0: all */
	s64 at;		/* from where the region begins */
	u32 len;
	enum ib_wc_status status;	/* besides IB_WC_REM_ACCESS_ERR */
};

#define LEN	777
#define ATOMIC	IB_WR_ATOMIC_FETCH_AND_ADD
#define RDMA_WRITE	IB_WR_RDMA_WRITE
#define RDMA_READ	IB_WR_RDMA_READ

static const struct violation rows[] = {
	{ "write_stale", RDMA_WRITE, STALE, 0, 0, 8 },
	{ "read_stale", RDMA_READ, STALE, 0, 0, 8 },
	{ "atomic_stale", ATOMIC, STALE, 0, 0, 8 },
	{ "write_old_key", RDMA_WRITE, OLD_KEY, 0, 0, 8 },
	{ "read_old_key", RDMA_READ, OLD_KEY, 0, 0, 8 },
	{ "write_wrong_key", RDMA_WRITE, WRONG_KEY, 0, 0, 8 },
	{ "write_deregistered", RDMA_WRITE, DEREGISTERED, 0, 0, 8 },
	{ "write_other_pd", RDMA_WRITE, OTHER_PD, 0, 0, 8 },
	{ "read_other_pd", RDMA_READ, OTHER_PD, 0, 0, 8 },
	{ "atomic_other_pd", ATOMIC, OTHER_PD, 0, 0, 8 },
	{ "write_before", RDMA_WRITE, NOTHING, 0, -1, 8 },
	{ "read_before", RDMA_READ, NOTHING, 0, -1, 8 },
	{ "write_beyond", RDMA_WRITE, NOTHING, 0, LEN - 7, 8 },
	{ "read_beyond", RDMA_READ, NOTHING, 0, LEN - 7, 8 },
	{ "atomic_beyond", ATOMIC, NOTHING, 0, LEN / 8 * 8, 8 },
	{ "write_longer", RDMA_WRITE, NOTHING, 0, 0, LEN + 1 },
	{ "write_far", RDMA_WRITE, NOTHING, 0, 4 * PAGE_SIZE, 8 },
	{ "write_no_right", RDMA_WRITE, NOTHING, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ, 0, 8 },
	{ "read_no_right", RDMA_READ, NOTHING, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, 0, 8 },
	{ "atomic_no_right", ATOMIC, NOTHING, REMOTE_ALL, 0, 8 },
	{ "write_no_qp_right", RDMA_WRITE, NO_QP_RIGHT, 0, 0, 8 },
	{ "read_no_qp_right", RDMA_READ, NO_QP_RIGHT, 0, 0, 8 },
	{ "atomic_no_qp_right", ATOMIC, NO_QP_RIGHT, 0, 0, 8 },
	{ "atomic_misaligned", ATOMIC, NOTHING, 0, 4, 8, IB_WC_REM_INV_REQ_ERR },
	{ "write_unmapped", RDMA_WRITE, UNMAPPED, 0, 0, 8 },
	{ "read_unmapped", RDMA_READ, UNMAPPED, 0, 0, 8 },
	{ "atomic_unmapped", ATOMIC, UNMAPPED, 0, 0, 8 },
	{ "write_freed", RDMA_WRITE, FREED, 0, 0, 8 },
	{ "read_freed", RDMA_READ, FREED, 0, 0, 8 },
	{ "read_freed_before", RDMA_READ, FREED_BEFORE, 0, 0, 8 },
	{ "write_local_key", RDMA_WRITE, LOCAL_KEY, 0, 0, 8 },
	{ "read_local_key", RDMA_READ, LOCAL_KEY, 0, 0, 8 },
};

struct stage {
	struct conn c;
	struct region target, sink;
	struct buffer from;
	struct list_head *free;
};

/*
 * The first page of the region looks like a free one, but nobody can get it. Otherwise the other
 * tests would end there. The list's head is in memory like that of a CPU's lists.
 */
static void pretend_free(struct kfi_test *t, struct stage *s, bool before)
{
	EXPECT(t, page_ref_freeze(s->target.pages[0], 1), "the page is somebody else's, too");
	s->free = kmalloc_obj(*s->free);
	if (!EXPECT(t, s->free, "no memory"))
		return;
	INIT_LIST_HEAD(s->free);
	if (before)
		list_add(&s->sink.pages[0]->pcp_list, s->free);
	list_add(&s->target.pages[0]->pcp_list, s->free);
}

static void end_pretense(struct stage *s)
{
	struct list_head *page, *next;

	list_for_each_safe(page, next, s->free)
		list_del(page);
	kfree(s->free);
	page_ref_unfreeze(s->target.pages[0], 1);
}

/* The content of the region before; LEN bytes. */
static void prepare(struct stage *s, u8 *bytes)
{
	fill(bytes, LEN, 17);
	region_put(&s->target, bytes);
	memset(bytes, 0x77, LEN);
	region_put(&s->sink, bytes);
	memset(s->from.mem, 0xff, s->from.len);
}

static int request(struct stage *s, enum ib_wr_opcode opcode, u64 addr, u32 key, u32 len)
{
	/* A sink that each of the operations may use, on each device. */
	struct ib_sge sink = { s->sink.mr->iova, min_t(u32, len, LEN), s->sink.mr->lkey };
	struct ib_atomic_wr atomic = {
		.wr = { .opcode = opcode, .sg_list = &sink, .num_sge = 1 },
		.remote_addr = addr,
		.rkey = key,
		.compare_add = 1,
	};

	if (opcode == RDMA_WRITE)
		return rdma_write(&s->c.a, &s->from, addr, key, len);
	if (opcode == RDMA_READ)
		return rdma_read(&s->c.a, &sink, addr, key);
	return execute(&s->c.a, &atomic.wr);
}

/* Makes the row's violation possible. Returns the key to use. */
static u32 spoil(struct kfi_test *t, struct stage *s, const struct violation *v)
{
	struct region *r = &s->target;
	u32 key = r->mr->rkey;

	switch (v->spoil) {
	case STALE:
		EXPECT_EQ(t, region_invalidate(r, key), IB_WC_SUCCESS);
		break;
	case OLD_KEY:
		EXPECT_EQ(t, region_invalidate(r, key), IB_WC_SUCCESS);
		EXPECT_EQ(t, region_register(r, REMOTE_ALL), IB_WC_SUCCESS);
		EXPECT(t, r->mr->rkey != key, "the key has not changed");
		break;
	case WRONG_KEY:
		return key ^ 1;
	case DEREGISTERED:
		EXPECT_EQ(t, ib_dereg_mr(r->mr), 0);
		r->mr = NULL;
		break;
	case UNMAPPED:
		region_unmap(r);
		break;
	case FREED:
	case FREED_BEFORE:
		pretend_free(t, s, v->spoil == FREED_BEFORE);
		break;
	case OTHER_PD:
		/* The sink is the sender's own, with all rights. */
		return s->sink.mr->rkey;
	case LOCAL_KEY:
		return s->c.b.pd->local_dma_lkey;
	default:
		break;
	}
	return key;
}

/* The status that the sender gets. */
static enum ib_wc_status expected(const struct violation *v)
{
	/* iWARP has no answer to a write, and flushes a read. */
	if (nic_env.expect->iwarp)
		return v->opcode == RDMA_READ ? IB_WC_WR_FLUSH_ERR : IB_WC_SUCCESS;
	return v->status ?: IB_WC_REM_ACCESS_ERR;
}

/* The next request on a connection is flushed. */
static bool ended(struct side *s)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };

	return execute(s, &wr) == IB_WC_WR_FLUSH_ERR;
}

static void commit(struct kfi_test *t, struct stage *s, const struct violation *v, u8 *bytes)
{
	u64 addr = s->target.mr->iova + v->at;
	u32 key;

	if (v->spoil == OTHER_PD)
		addr = s->sink.mr->iova;
	else if (v->spoil == LOCAL_KEY)
		addr = s->target.dma[0] + 1000;
	key = spoil(t, s, v);
	prepare(s, bytes);
	EXPECT_EQ(t, request(s, v->opcode, addr, key, v->len), expected(v));
	if (s->free)
		end_pretense(s);
	EXPECT(t, ended(&s->c.a), "the connection goes on");

	region_get(&s->target, bytes);
	EXPECT(t, is_filled(bytes, LEN, 17) && region_clean(&s->target), "bytes of the region changed");
	region_get(&s->sink, bytes);
	EXPECT(t, !memchr_inv(bytes, 0x77, LEN) && region_clean(&s->sink),
	       "bytes of the sink changed");
}

static const char *skipped(const struct violation *v)
{
	bool invalidates = v->spoil == STALE || v->spoil == OLD_KEY;

	if (nic_env.expect->iwarp && v->opcode == ATOMIC)
		return "iWARP has no atomic operations";
	if (nic_env.expect->iwarp && v->spoil == NO_QP_RIGHT)
		return "the connection manager of iWARP gives all rights";
	if (!nic_env.expect->local_inv && invalidates)
		return "regions can't be invalidated";
	if (v->spoil == UNMAPPED && !nic_env.translated)
		return "without an IOMMU the end of a mapping is not seen";
	return NULL;
}

static void case_remote(struct kfi_test *t)
{
	const struct violation *v = &rows[t->variant];
	const int all = REMOTE_ALL | IB_ACCESS_REMOTE_ATOMIC;
	/* If the connection goes on, the next request finds no receive request, and fails at once. */
	struct conn_attr attr = { .no_access = v->spoil == NO_QP_RIGHT, .rnr_once = true };
	const char *why = skipped(v);
	/* Aligned, for atomic operations. */
	static const struct shape shape = { .n = 1, .entries = { { 1000, LEN } } };
	struct stage s = {};
	u8 *bytes;

	if (why) {
		ktap_skip(t, why);
		return;
	}
	bytes = kmalloc(PAGE_SIZE, GFP_KERNEL);
	if (!EXPECT(t, bytes, "no memory"))
		return;
	if (!conn_open(t, &s.c, &attr) || !buffer_open(t, &s.from, PAGE_SIZE))
		goto close;
	if (!region_open(t, &s.target, &s.c.b, &shape, all) ||
	    !region_open(t, &s.sink, &s.c.a, &shape, all))
		goto close;
	if (v->spoil != NO_QP_RIGHT)
		EXPECT_EQ(t, request(&s, v->opcode, s.target.mr->iova, s.target.mr->rkey, 8),
			  IB_WC_SUCCESS);
	if (v->access) {
		region_close(t, &s.target);
		if (!region_open(t, &s.target, &s.c.b, &shape, v->access))
			goto close;
	}
	if (v->spoil == UNMAPPED) {
		nic_env.dma_faults = 1;
		nic_env.unmapped = 1;
	}
	if (v->spoil == FREED || v->spoil == FREED_BEFORE)
		nic_env.freed = 1;
	commit(t, &s, v, bytes);
close:
	region_close(t, &s.sink);
	region_close(t, &s.target);
	buffer_close(&s.from);
	conn_close(t, &s.c);
	kfree(bytes);
}

/* Memory that is free indeed: a block that is too large for a CPU's lists, and so the last to be given away. */
static void case_freed(struct kfi_test *t)
{
	const unsigned int order = PAGE_ALLOC_COSTLY_ORDER + 2;
	struct page *block = alloc_pages(GFP_KERNEL, order);
	struct stage s = {};
	struct ib_sge in;
	dma_addr_t dma;

	if (!EXPECT(t, block, "no memory"))
		return;
	dma = ib_dma_map_page(nic_env.peer, block, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (!EXPECT(t, !ib_dma_mapping_error(nic_env.peer, dma), "can't map")) {
		__free_pages(block, order);
		return;
	}
	if (!conn_open(t, &s.c, NULL) ||
	    !region_open(t, &s.sink, &s.c.a, &one_page, REMOTE_ALL) ||
	    !region_alloc(t, &s.target, &s.c.b, &one_page))
		goto close;
	sg_dma_address(s.target.list) = dma;
	EXPECT_EQ(t, region_map(&s.target), 1);
	EXPECT_EQ(t, region_register(&s.target, REMOTE_ALL), IB_WC_SUCCESS);
	in = (struct ib_sge) { s.sink.mr->iova, 8, s.sink.mr->lkey };
	EXPECT_EQ(t, rdma_read(&s.c.a, &in, s.target.mr->iova, s.target.mr->rkey), IB_WC_SUCCESS);
	__free_pages(block, order);
	block = NULL;
	nic_env.freed = 1;
	EXPECT_EQ(t, rdma_read(&s.c.a, &in, s.target.mr->iova, s.target.mr->rkey),
		  nic_env.expect->iwarp ? IB_WC_WR_FLUSH_ERR : IB_WC_REM_ACCESS_ERR);
close:
	region_close(t, &s.target);
	region_close(t, &s.sink);
	conn_close(t, &s.c);
	ib_dma_unmap_page(nic_env.peer, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (block)
		__free_pages(block, order);
}

/* A region is registered by its last key again, which is none of its earlier ones, and then by one of these. */
static void case_key_again(struct kfi_test *t)
{
	static const int back[] = { 0, 1, 2 };
	struct region r = {};
	struct conn c = {};
	unsigned int i;

	if (!nic_env.expect->local_inv) {
		ktap_skip(t, "regions can't be invalidated");
		return;
	}
	if (!conn_open(t, &c, NULL) || !region_open(t, &r, &c.a, &one_page, REMOTE_ALL))
		goto close;
	for (i = 0; i < ARRAY_SIZE(back); i++) {
		EXPECT_EQ(t, region_invalidate(&r, r.mr->rkey), IB_WC_SUCCESS);
		/* region_register() takes the next key. */
		ib_update_fast_reg_key(r.mr, (u8)(r.mr->rkey - back[i]));
		EXPECT_EQ(t, region_register(&r, REMOTE_ALL), IB_WC_SUCCESS);
	}
	nic_env.keys_again = 1;
close:
	region_close(t, &r);
	conn_close(t, &c);
}

static const char *variant_name(unsigned int variant)
{
	return rows[variant].name;
}

static const struct kfi_case cases[] = {
	NIC_VARIANTS(remote, ARRAY_SIZE(rows)),
	NIC_CASE(freed),
	NIC_CASE(key_again),
};

const struct kfi_suite nic_suite_violations = {
	.name = "nic_violations",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = variant_name,
	.bare = true,
};
