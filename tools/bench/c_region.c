// SPDX-License-Identifier: GPL-2.0
/* C's side: what becomes of one region before and after its requests. */
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "bench.h"

/* The pages behind addresses of vmalloc() or vmap(); neighbours become one entry. */
static int fill_from_addresses(struct scatterlist *list, const u8 *addr, unsigned int pages)
{
	struct scatterlist *last = NULL;
	unsigned long next = 0;
	int entries = 0;

	for (; pages; pages--, addr += PAGE_SIZE) {
		struct page *page = vmalloc_to_page(addr);

		if (last && page_to_pfn(page) == next) {
			last->length += PAGE_SIZE;
		} else {
			last = &list[entries++];
			sg_set_page(last, page, PAGE_SIZE, 0);
		}
		next = page_to_pfn(page) + 1;
	}
	return entries;
}

static int fill_from_bvecs(struct scatterlist *list, const struct bio_vec *bv, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		sg_set_page(&list[i], bv[i].bv_page, bv[i].bv_len, bv[i].bv_offset);
	return count;
}

/* Contiguous memory is one entry. Returns how many there are. */
static int fill(struct scatterlist *list, struct bench_mem *mem, enum bench_form form,
		unsigned int pages)
{
	switch (form) {
	case VMALLOC:
		return fill_from_addresses(list, mem->vmalloc, pages);
	case VMAP:
		return fill_from_addresses(list, mem->scattered->vmap, pages);
	case BVEC_SCATTERED:
		return fill_from_bvecs(list, mem->scattered->bv, pages);
	default:
		sg_set_page(list, virt_to_page(mem->linear), pages * PAGE_SIZE, 0);
		return 1;
	}
}

/**
 * c_prepare() - Do all but posting: list, mapping, the device's region, the requests.
 * @b: The benchmark.
 * @q: The queue that the requests will be posted on.
 * @r: A region with its device's.
 * @form: The form of the memory.
 * @pages: How much of it.
 *
 * Context: Process context.
 * Return: 0, and c_unmap() is needed; or an errno.
 */
int c_prepare(struct bench *b, struct bench_queue *q, struct c_region *r, enum bench_form form,
	      unsigned int pages)
{
	struct scatterlist *list;
	int entries, n;

	r->mapped = 0;
	list = mem_list(b->mem, form, pages, &entries);
	if (!list) {
		list = r->list;
		entries = fill(list, b->mem, form, pages);
		if (ib_dma_map_sg(b->dev.ib, list, entries, DMA_BIDIRECTIONAL) != entries)
			return -EIO;
		r->mapped = entries;
	}
	n = ib_map_mr_sg(r->mr, list, entries, NULL, PAGE_SIZE);
	if (n != entries) {
		c_unmap(b, r);
		return n < 0 ? n : -EINVAL;
	}
	r->reg = (struct ib_reg_wr) {
		.wr = { .opcode = IB_WR_REG_MR, .wr_cqe = &q->cqe },
		.mr = r->mr,
		.key = r->mr->rkey,
		.access = IB_RIGHTS,
	};
	r->inv = (struct ib_send_wr) {
		.opcode = IB_WR_LOCAL_INV,
		.wr_cqe = &q->cqe,
		.ex.invalidate_rkey = r->mr->rkey,
	};
	return 0;
}

/**
 * c_unmap() - Undo the mapping of c_prepare().
 * @b: The benchmark.
 * @r: A region that the device doesn't know any more.
 */
void c_unmap(struct bench *b, struct c_region *r)
{
	if (r->mapped)
		ib_dma_unmap_sg(b->dev.ib, r->list, r->mapped, DMA_BIDIRECTIONAL);
	r->mapped = 0;
}

/**
 * c_alloc() - Get a region of the device.
 * @b: The benchmark.
 * @r: Whose it is to be.
 * @pages: How many pages it has room for.
 *
 * Context: May sleep.
 * Return: 0 or an errno.
 */
int c_alloc(struct bench *b, struct c_region *r, unsigned int pages)
{
	struct ib_mr *mr = ib_alloc_mr(b->dev.pd, IB_MR_TYPE_MEM_REG, pages);

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	r->mr = mr;
	return 0;
}

/**
 * c_free() - Give the region of the device back.
 * @r: The region that c_alloc() was given.
 *
 * Context: May sleep.
 * Return: 0 or an errno.
 */
int c_free(struct c_region *r)
{
	struct ib_mr *mr = r->mr;

	r->mr = NULL;
	return mr ? ib_dereg_mr(mr) : 0;
}

/**
 * c_new_key() - Take the next key, which a region that is used again needs.
 * @r: The region.
 */
void c_new_key(struct c_region *r)
{
	ib_update_fast_reg_key(r->mr, ib_inc_rkey(r->mr->rkey));
}
