// SPDX-License-Identifier: GPL-2.0
/* Regions that stay open, while their device comes and goes. */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "holder.h"

#define MAX_REGIONS	4096

static struct {
	struct kfid_mr *mr;
	void *mem;
} held[MAX_REGIONS];

static unsigned int held_count;

/* One region is on a list that we have mapped: it has to go when the device goes. */
static int open_mapped(struct holder *h)
{
	void *mem = kmalloc(REGION_LEN, GFP_KERNEL);
	int n, ret;

	h->mapped = kzalloc_obj(*h->mapped);
	if (!mem || !h->mapped) {
		ret = -ENOMEM;
		goto err_mem;
	}
	sg_init_one(h->mapped, mem, REGION_LEN);
	n = h->dma->map_sg(&h->domain->fid, h->mapped, 1, DMA_BIDIRECTIONAL);
	if (n != 1) {
		ret = n < 0 ? n : -EIO;
		goto err_mem;
	}
	ret = kfi_mr_regsgl(h->domain, h->mapped, n, ACCESS, 0, 0, 0, &h->mapped_mr, NULL);
	if (ret)
		goto err_map;
	return 0;
err_map:
	h->dma->unmap_sg(&h->domain->fid, h->mapped, 1, DMA_BIDIRECTIONAL);
err_mem:
	kfree(h->mapped);
	h->mapped = NULL;
	kfree(mem);
	return ret;
}

static int close_mapped(struct holder *h)
{
	int ret = 0;

	if (!h->mapped)
		return 0;
	if (h->mapped_mr)
		ret = kfi_close(&h->mapped_mr->fid);
	h->mapped_mr = NULL;
	h->dma->unmap_sg(&h->domain->fid, h->mapped, 1, DMA_BIDIRECTIONAL);
	kfree(sg_virt(h->mapped));
	kfree(h->mapped);
	h->mapped = NULL;
	return ret;
}

int regions_open(struct holder *h)
{
	unsigned int i;
	int ret;

	for (i = 0; i < min(holder_regions, MAX_REGIONS); i++) {
		held[i].mem = i % 2 ? vmalloc(REGION_LEN) : kmalloc(REGION_LEN, GFP_KERNEL);
		if (!held[i].mem)
			return -ENOMEM;
		ret = kfi_mr_reg(h->domain, held[i].mem, REGION_LEN, ACCESS, 0, 0, 0, &held[i].mr,
				 NULL);
		if (ret) {
			kvfree(held[i].mem);
			return ret;
		}
		held_count = i + 1;
	}
	return holder_regions ? open_mapped(h) : 0;
}

/* From the removal callback: what is ours at the device must be gone afterwards. */
void regions_device_gone(struct holder *h)
{
	unsigned int i;
	int ret;

	ret = close_mapped(h);
	if (ret)
		UNEXPECTED("closing a region in the callback gives %d", ret);
	/* Of the others some are closed here, some later: both must do. */
	for (i = 0; i < held_count / 4; i++) {
		ret = kfi_close(&held[i].mr->fid);
		if (ret)
			UNEXPECTED("closing a region in the callback gives %d", ret);
		held[i].mr = NULL;
	}
}

int regions_close(struct holder *h)
{
	int ret, first = close_mapped(h);

	while (held_count) {
		held_count--;
		if (held[held_count].mr) {
			ret = kfi_close(&held[held_count].mr->fid);
			first = first ?: ret;
		}
		kvfree(held[held_count].mem);
	}
	return first;
}

/* A region of several pieces in the second domain. It is closed after the device is gone. */
int raw_open(struct holder *h)
{
	struct kvec list[5];
	int i;

	h->raw_mem = vzalloc(ARRAY_SIZE(list) * PAGE_SIZE);
	if (!h->raw_mem)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(list); i++)
		list[i] = (struct kvec) { h->raw_mem + i * PAGE_SIZE + 5, 1000 };
	return kfi_mr_regv(h->raw, list, ARRAY_SIZE(list), ACCESS, 0, 0, 0, &h->raw_mr, NULL);
}

int raw_close(struct holder *h)
{
	int ret = 0;

	if (h->raw_mr)
		ret = kfi_close(&h->raw_mr->fid);
	h->raw_mr = NULL;
	vfree(h->raw_mem);
	h->raw_mem = NULL;
	return ret;
}
