// SPDX-License-Identifier: GPL-2.0
/* Memory of tests: buffers, and regions of single pages, each mapped on its own. */
#include <linux/slab.h>

#include "nic_test.h"

/* The filling of a region's pages around it. */
#define AROUND	0xee

const struct shape one_page = { .n = 1, .entries = { { 0, PAGE_SIZE } } };
const struct shape some_bytes = { .n = 1, .entries = { { 1000, 777 } } };
const struct shape offset_pages = {
	.n = 4,
	.entries = { { 3001, PAGE_SIZE - 3001 }, { 0, PAGE_SIZE }, { 0, PAGE_SIZE }, { 0, 99 } },
};
const struct shape full_pages = {
	.n = 6,
	.entries = {
		{ 0, PAGE_SIZE }, { 0, PAGE_SIZE }, { 0, PAGE_SIZE },
		{ 0, PAGE_SIZE }, { 0, PAGE_SIZE }, { 0, PAGE_SIZE },
	},
};
const struct shape with_gaps = {
	.n = 5,
	.entries = { { 17, 100 }, { 0, PAGE_SIZE }, { 2000, 1 }, { 0, 513 }, { 4000, 96 } },
};

void fill(u8 *mem, size_t len, u8 seed)
{
	for (size_t i = 0; i < len; i++)
		mem[i] = seed + i * 7 + (i >> 8) * 13;
}

bool is_filled(const u8 *mem, size_t len, u8 seed)
{
	for (size_t i = 0; i < len; i++)
		if (mem[i] != (u8)(seed + i * 7 + (i >> 8) * 13))
			return false;
	return true;
}

bool buffer_open(struct kfi_test *t, struct buffer *b, u32 len)
{
	b->len = len;
	b->mem = kzalloc(len, GFP_KERNEL);
	if (!EXPECT(t, b->mem, "no memory"))
		return false;
	b->dma = ib_dma_map_single(nic_env.dev, b->mem, len, DMA_BIDIRECTIONAL);
	if (!EXPECT(t, !ib_dma_mapping_error(nic_env.dev, b->dma), "can't map %u bytes", len))
		goto free;
	if (!two_devices())
		return true;
	b->peer_dma = ib_dma_map_single(nic_env.peer, b->mem, len, DMA_BIDIRECTIONAL);
	if (EXPECT(t, !ib_dma_mapping_error(nic_env.peer, b->peer_dma), "can't map %u bytes", len))
		return true;
	ib_dma_unmap_single(nic_env.dev, b->dma, b->len, DMA_BIDIRECTIONAL);
free:
	kfree(b->mem);
	b->mem = NULL;
	return false;
}

void buffer_close(struct buffer *b)
{
	if (!b->mem)
		return;
	ib_dma_unmap_single(nic_env.dev, b->dma, b->len, DMA_BIDIRECTIONAL);
	if (two_devices())
		ib_dma_unmap_single(nic_env.peer, b->peer_dma, b->len, DMA_BIDIRECTIONAL);
	kfree(b->mem);
	b->mem = NULL;
}

struct ib_sge buffer_sge(const struct buffer *b, const struct side *s, u32 at, u32 len)
{
	return (struct ib_sge) {
		.addr = (s->dev == nic_env.dev ? b->dma : b->peer_dma) + at,
		.length = len,
		.lkey = s->pd->local_dma_lkey,
	};
}

/* Makes a region's pages and maps them, each on its own, so that no two are neighbours to the device. */
static int get_pages(struct region *r)
{
	sg_init_table(r->list, r->shape->n);
	for (int i = 0; i < r->shape->n; i++) {
		struct page *page = alloc_page(GFP_KERNEL);
		u32 offset = r->shape->entries[i].offset, len = r->shape->entries[i].len;
		dma_addr_t dma;

		if (!page)
			return -ENOMEM;
		r->pages[i] = page;
		memset(page_address(page), AROUND, PAGE_SIZE);
		dma = ib_dma_map_page(r->side->dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
		if (ib_dma_mapping_error(r->side->dev, dma))
			return -EIO;
		r->dma[i] = dma;
		sg_set_page(&r->list[i], page, len, offset);
		sg_dma_address(&r->list[i]) = dma + offset;
		sg_dma_len(&r->list[i]) = len;
		r->len += len;
	}
	r->mapped = true;
	return 0;
}

bool region_alloc(struct kfi_test *t, struct region *r, struct side *s, const struct shape *shape)
{
	enum ib_mr_type type = shape == &with_gaps ? IB_MR_TYPE_SG_GAPS : IB_MR_TYPE_MEM_REG;

	*r = (struct region) { .side = s, .shape = shape };
	r->mr = ib_alloc_mr(s->pd, type, MAX_ENTRIES);
	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(r->mr), 0)) {
		*r = (struct region) {};
		return false;
	}
	if (EXPECT_EQ(t, get_pages(r), 0))
		return true;
	region_close(t, r);
	return false;
}

/* Returns how many entries the region took, or an errno. */
int region_map(struct region *r)
{
	return ib_map_mr_sg(r->mr, r->list, r->shape->n, NULL, PAGE_SIZE);
}

/* Registers what is mapped, under a new key. Returns the status, or an errno. */
int region_register(struct region *r, int access)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.mr = r->mr,
		.access = access,
	};

	ib_update_fast_reg_key(r->mr, (u8)(r->mr->rkey + 1));
	wr.key = r->mr->rkey;
	return execute(r->side, &wr.wr);
}

int region_invalidate(struct region *r, u32 key)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = key };

	return execute(r->side, &wr);
}

bool region_open(struct kfi_test *t, struct region *r, struct side *s, const struct shape *shape,
		 int access)
{
	if (!region_alloc(t, r, s, shape))
		return false;
	if (EXPECT_EQ(t, region_map(r), shape->n) &&
	    EXPECT_EQ(t, region_register(r, access), IB_WC_SUCCESS))
		return true;
	region_close(t, r);
	return false;
}

void region_unmap(struct region *r)
{
	for (int i = 0; i < r->shape->n; i++)
		if (r->dma[i])
			ib_dma_unmap_page(r->side->dev, r->dma[i], PAGE_SIZE, DMA_BIDIRECTIONAL);
	memset(r->dma, 0, sizeof(r->dma));
	r->mapped = false;
}

void region_close(struct kfi_test *t, struct region *r)
{
	if (!r->shape)
		return;
	if (r->mr)
		EXPECT_EQ(t, ib_dereg_mr(r->mr), 0);
	region_unmap(r);
	for (int i = 0; i < r->shape->n; i++)
		if (r->pages[i])
			__free_page(r->pages[i]);
	*r = (struct region) {};
}

/* Copies to the bytes of a region. */
void region_put(struct region *r, const u8 *from)
{
	for (int i = 0; i < r->shape->n; i++) {
		u8 *page = page_address(r->pages[i]);

		memcpy(page + r->shape->entries[i].offset, from, r->shape->entries[i].len);
		from += r->shape->entries[i].len;
	}
}

void region_get(const struct region *r, u8 *to)
{
	for (int i = 0; i < r->shape->n; i++) {
		u8 *page = page_address(r->pages[i]);

		memcpy(to, page + r->shape->entries[i].offset, r->shape->entries[i].len);
		to += r->shape->entries[i].len;
	}
}

/* Nobody has written to the pages of a region around it. */
bool region_clean(const struct region *r)
{
	for (int i = 0; i < r->shape->n; i++) {
		u8 *page = page_address(r->pages[i]);
		u32 offset = r->shape->entries[i].offset, end = offset + r->shape->entries[i].len;

		if (memchr_inv(page, AROUND, offset) ||
		    memchr_inv(page + end, AROUND, PAGE_SIZE - end))
			return false;
	}
	return true;
}

int rdma_write(struct side *s, const struct buffer *b, u64 addr, u32 key, u32 len)
{
	struct ib_sge sge = buffer_sge(b, s, 0, len);
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = addr,
		.rkey = key,
	};

	return execute(s, &wr.wr);
}

int rdma_read(struct side *s, const struct ib_sge *sink, u64 addr, u32 key)
{
	struct ib_sge sge = *sink;
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = addr,
		.rkey = key,
	};

	return execute(s, &wr.wr);
}

int receive(struct side *s, const struct ib_sge *sge, u64 id)
{
	struct ib_sge copy = *sge;
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &copy, .num_sge = 1 };

	return s->srq ? ib_post_srq_recv(s->srq, &wr, NULL) : ib_post_recv(s->qp, &wr, NULL);
}

bool reach_open(struct kfi_test *t, struct reach *s)
{
	*s = (struct reach) {};
	return conn_open(t, &s->c, NULL) && buffer_open(t, &s->from, PAGE_SIZE) &&
	       region_open(t, &s->r, &s->c.b, &one_page, REMOTE_ALL);
}

void reach_close(struct kfi_test *t, struct reach *s)
{
	region_close(t, &s->r);
	buffer_close(&s->from);
	conn_close(t, &s->c);
}

int reach_write(struct reach *s, int flags)
{
	struct ib_sge sge = buffer_sge(&s->from, &s->c.a, 0, 8);
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
			.send_flags = flags },
		.remote_addr = s->r.mr->iova,
		.rkey = s->r.mr->rkey,
	};

	return ib_post_send(s->c.a.qp, &wr.wr, NULL);
}
