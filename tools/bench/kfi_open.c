// SPDX-License-Identifier: GPL-2.0
/* kfabric's side: what is open. */
#include <linux/slab.h>

#include <kfi_batch_ext.h>
#include <kfi_verbs_ext.h>

#include "bench.h"

/* Finds a domain that is named so; any if @name is NULL. */
static int find(struct bench *b, const char *name)
{
	struct kfi_info *hints = kfi_allocinfo();
	int ret = -ENOMEM;

	if (!hints)
		return ret;
	hints->caps = KFI_RMA | KFI_RIGHTS;
	hints->domain_attr->mr_mode = KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = kstrdup("verbs", GFP_KERNEL);
	if (name)
		hints->domain_attr->name = kstrdup(name, GFP_KERNEL);
	if (hints->fabric_attr->prov_name && (!name || hints->domain_attr->name))
		ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, &b->info);
	kfi_freeinfo(hints);
	return ret;
}

static int open_domains(struct bench *b)
{
	void *ops;
	int ret;

	ret = kfi_fabric(b->info->fabric_attr, &b->fabric, NULL);
	if (!ret)
		ret = kfi_domain(b->fabric, b->info, &b->domain, NULL);
	if (!ret)
		ret = kfi_open_ops(&b->domain->fid, KFI_BATCH_OPS_1, 0, &ops, NULL);
	if (!ret)
		b->many = ops;
	return ret;
}

/* The list number @i of those that come mapped; NULL behind the last. */
static struct scatterlist *list(struct bench_mem *mem, int i, int *entries)
{
	const int sizes = ilog2(MAX_PAGES) + 1;
	int layout = i / sizes - 1;

	if (i < sizes)
		return mem_list(mem, SGL_ONE, 1 << i, entries);
	if (layout >= LAYOUTS)
		return NULL;
	mem->scattered = &mem->layouts[layout];
	return mem_list(mem, SGL_SCATTERED, 1 << i % sizes, entries);
}

static int map_lists(struct bench *b)
{
	struct scatterlist *sg;
	int entries, n;
	void *ops;

	n = kfi_open_ops(&b->domain->fid, KFI_DMA_OPS_1, 0, &ops, NULL);
	if (n)
		return n;
	b->dma = ops;
	while ((sg = list(b->mem, b->mapped, &entries))) {
		n = b->dma->map_sg(&b->domain->fid, sg, entries, DMA_BIDIRECTIONAL);
		if (n < 0)
			return n;
		b->mapped++;
		if (n != entries)
			return -EINVAL;
	}
	return 0;
}

static void unmap_lists(struct bench *b)
{
	int entries;

	while (b->mapped) {
		struct scatterlist *sg = list(b->mem, --b->mapped, &entries);

		b->dma->unmap_sg(&b->domain->fid, sg, entries, DMA_BIDIRECTIONAL);
	}
}

/**
 * kfi_open() - Open all that kfabric's ways need, and C's side of the same device.
 * @b: The benchmark, with its memory.
 * @name: Which domain; NULL for the first.
 *
 * Context: May sleep.
 * Return: 0 or an errno. kfi_shut() is needed in any case.
 */
int kfi_open(struct bench *b, const char *name)
{
	struct kfi_verbs_dom_ops *verbs;
	void *ops;
	int ret;

	ret = find(b, name);
	if (!ret)
		ret = open_domains(b);
	if (!ret)
		ret = map_lists(b);
	if (!ret)
		ret = kfi_open_ops(&b->domain->fid, KFI_VERBS_DOM_OPS_1, 0, &ops, NULL);
	if (ret)
		return ret;
	verbs = ops;
	return c_open(&b->dev, verbs->get_ib_device(&b->domain->fid));
}

static int shut(struct kfid *fid)
{
	int ret = kfi_close(fid);

	if (ret)
		pr_err("bench: an object doesn't close: %s\n", kfi_strerror(ret));
	return ret;
}

/**
 * kfi_shut() - Close all of it.
 * @b: The bench that kfi_open() was given.
 *
 * Context: May sleep.
 * Return: 0 or an errno.
 */
int kfi_shut(struct bench *b)
{
	int ret = 0;

	c_close(&b->dev);
	unmap_lists(b);
	if (b->domain)
		ret = shut(&b->domain->fid) ?: ret;
	if (b->fabric)
		ret = shut(&b->fabric->fid) ?: ret;
	kfi_freeinfo(b->info);
	return ret;
}
