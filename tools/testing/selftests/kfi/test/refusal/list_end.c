// SPDX-License-Identifier: GPL-2.0
/*
 * A scatterlist that ends where its memory does: nothing says that the last entry is one, and
 * behind it comes a page that isn't there.
 */
#include "request.h"
#include "list_end.h"

#define ENTRIES	3

/* A list of pages from @mem on whose end is the end of @room, a page. */
static struct scatterlist *list_at_end(void *room, u8 *mem)
{
	struct scatterlist *sg = room + PAGE_SIZE - ENTRIES * sizeof(*sg);
	int i;

	sg_init_table(sg, ENTRIES);
	for (i = 0; i < ENTRIES; i++)
		sg_set_page(&sg[i], vmalloc_to_page(mem + i * PAGE_SIZE), PAGE_SIZE, 0);
	sg_unmark_end(&sg[ENTRIES - 1]);
	return sg;
}

/* Register a list that ends there. Its entries are mapped as a device's, or by the extension. */
void list_end(struct kfi_test *t, struct kfi_env *env, bool by_extension)
{
	u8 *mem = arena_at(env, MEM_VMALLOC, 0);
	void *room = vmalloc(PAGE_SIZE);
	struct scatterlist *sg, *mapped = env->sg;
	struct kfid_mr *mr;
	int n = ENTRIES, i;

	if (!EXPECT(t, room, "no memory"))
		return;
	sg = list_at_end(room, mem);
	if (by_extension) {
		mapped = sg;
	} else {
		/* The kernel's own mapping does look behind the end. */
		sg_init_table(mapped, ENTRIES);
		for (i = 0; i < ENTRIES; i++)
			sg_set_page(&mapped[i], sg_page(&sg[i]), PAGE_SIZE, 0);
	}
	n = env->dma->map_sg(&env->domain->fid, mapped, ENTRIES, DMA_BIDIRECTIONAL);
	if (!EXPECT(t, n > 0, "can't be mapped"))
		goto out;
	/* As many as are mapped, and those at the end. */
	sg += ENTRIES - n;
	for (i = 0; i < n && !by_extension; i++) {
		sg_dma_address(&sg[i]) = sg_dma_address(&mapped[i]);
		sg_dma_len(&sg[i]) = sg_dma_len(&mapped[i]);
	}
	if (EXPECT_EQ(t, kfi_mr_regsgl(env->domain, sg, n, KFI_REMOTE, 0, 1, 0, &mr, NULL), 0)) {
		if (env->peer)
			check_region(t, mr, mem, ENTRIES * PAGE_SIZE);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	env->dma->unmap_sg(&env->domain->fid, mapped, ENTRIES, DMA_BIDIRECTIONAL);
out:
	vfree(room);
}

void list_end_case(struct kfi_test *t)
{
	list_end(t, t->env, false);
}
