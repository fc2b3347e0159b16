// SPDX-License-Identifier: GPL-2.0
/* Lists of scattered pages: their memory, how they are filled, and registered. */
#include <linux/vmalloc.h>

#include "scattered_list.h"

void scattered_set(struct scatterlist *sg, struct page *page)
{
	sg_set_page(sg, page, PAGE_SIZE, 0);
	sg_dma_address(sg) = (uintptr_t)page_address(page);
	sg_dma_len(sg) = PAGE_SIZE;
}

void scattered_fill(struct scattered *s, unsigned int count, unsigned int cut)
{
	struct scatterlist *sg = s->sg;
	unsigned int i;

	memset(s->sg, 0, sizeof(s->sg));
	memset(s->rest, 0, sizeof(s->rest));
	sg_init_table(s->sg, count);
	if (cut) {
		sg_init_table(s->rest, count - cut);
		sg_chain(s->sg, cut + 1, s->rest);
	}
	for (i = 0; i < count; i++, sg = sg_next(sg))
		scattered_set(sg, s->pages[i]);
	s->last = cut ? &s->rest[count - cut - 1] : &s->sg[count - 1];
	s->req.sg = s->sg;
	s->req.count = count;
}

void scattered_close(struct kfi_test *t, struct scattered *s)
{
	if (s->mem)
		vunmap(s->mem - PAGE_SIZE);
	if (s->block)
		__free_pages(s->block, BLOCK_ORDER);
	reg_finish(t->env, &s->req);
	kfree(s);
}

static u8 *map_pages(struct scattered *s)
{
	struct page *pages[PAGES + 2];
	u8 *map;
	int i;

	for (i = 0; i < PAGES + 2; i++)
		pages[i] = s->block + 2 * i;
	memcpy(s->pages, pages + 1, sizeof(s->pages));
	map = vmap(pages, PAGES + 2, VM_MAP, PAGE_KERNEL);
	return map ? map + PAGE_SIZE : NULL;
}

struct scattered *scattered_open(struct kfi_test *t)
{
	u8 *arena = arena_at(t->env, MEM_VMALLOC, 0);
	struct scattered *s;

	if (!dma_tells_page(t->env)) {
		ktap_skip(t, "any DMA address may be one of this device");
		return NULL;
	}
	s = kzalloc_obj(*s);
	if (!EXPECT(t, s, "no memory"))
		return NULL;
	if (!EXPECT_EQ(t, reg_prepare(t->env, &s->req, t->variant, arena, PAGE_SIZE, SPLIT_NONE), 0)) {
		kfree(s);
		return NULL;
	}
	s->block = alloc_pages(GFP_KERNEL, BLOCK_ORDER);
	if (s->block)
		s->mem = map_pages(s);
	if (EXPECT(t, s->mem, "no memory"))
		return s;
	scattered_close(t, s);
	return NULL;
}

int scattered_reg(struct kfi_test *t, struct scattered *s, bool whole)
{
	struct kfid_mr *mr;
	int ret = reg_submit(&s->req, &mr);

	if (ret)
		return ret;
	if (whole)
		check_region(t, mr, s->mem, s->req.count * PAGE_SIZE);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	return 0;
}

int scattered_by_both(struct kfi_test *t, struct scattered *s, bool whole)
{
	int ret = scattered_reg(t, s, whole);

	sg_unmark_end(s->last);
	EXPECT_EQ(t, scattered_reg(t, s, whole), ret);
	sg_mark_end(s->last);
	return ret;
}
