// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of kinds that can't be registered, by whatever call and under whatever address they are
 * found: memory of devices, offline memory, broken memory, free pages, page tables, the kernel's own
 * code, and the zero page that would be written to. Some kinds are made here, since no machine is sure
 * to have them.
 */
#include <linux/hex.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/memremap.h>
#include <linux/moduleparam.h>

#include "errors.h"
#include "suites.h"

static bool hotplug;
module_param(hotplug, bool, 0444);
MODULE_PARM_DESC(hotplug, "memory that is added stays offline, so it may be added where none is");

/* The objects that a row has made, for its restore. */
static struct {
	struct page *page;
	struct resource *res;
	struct dev_pagemap *pgmap;
} made;

/* All calls find the page in the place of one of the request's own. */
static const char *use(struct kfi_env *env, struct reg_req *req, struct page *page)
{
	void *addr = page_address(page);

	if (reg_call_in(req->call, BVEC_CALLS)) {
		bvec_set_page(&req->bv[1], page, PAGE_SIZE, 0);
	} else if (reg_call_in(req->call, SGL_CALLS)) {
		if (!dma_tells_page(env))
			return "any DMA address may be one of this device";
		sg_dma_address(&req->sg[1]) = dma_address_of(env, page);
	} else {
		req->buf = addr;
		req->len = PAGE_SIZE;
		req->kv[0].iov_base = addr;
		req->kv[0].iov_len = PAGE_SIZE;
		req->count = 1;
	}
	return NULL;
}

/* The kernel image, by the pages that it is in. Its mapping may be another one than that of other memory. */

static const char *text(struct kfi_env *env, struct reg_req *req)
{
	return use(env, req, virt_to_page(lm_alias(kfree)));
}

static const char *rodata(struct kfi_env *env, struct reg_req *req)
{
	return use(env, req, virt_to_page(lm_alias(hex_asc)));
}

static const char *data(struct kfi_env *env, struct reg_req *req)
{
	return use(env, req, virt_to_page(lm_alias(&init_task)));
}

/* Returns a page frame behind all memory, which has no struct page. */
static const char *no_memory(struct kfi_env *env, struct reg_req *req)
{
	unsigned long pfn = ALIGN(PHYS_PFN(__pa(high_memory - 1)) + 1, PAGES_PER_SECTION);

	while (pfn_valid(pfn))
		pfn += PAGES_PER_SECTION;
	return use(env, req, pfn_to_page(pfn + 5));
}

/* Marks that memory can have; nobody else looks at this page meanwhile. */

static const char *poisoned(struct kfi_env *env, struct reg_req *req)
{
	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		return "the kernel has no CONFIG_MEMORY_FAILURE";
	made.page = virt_to_page(env->arena[MEM_PAGES]);
#ifdef CONFIG_MEMORY_FAILURE
	SetPageHWPoison(made.page);
#endif
	return use(env, req, made.page);
}

static void unpoison(struct kfi_env *env, struct reg_req *req)
{
#ifdef CONFIG_MEMORY_FAILURE
	ClearPageHWPoison(made.page);
#endif
}

static const char *page_table(struct kfi_env *env, struct reg_req *req)
{
	made.page = virt_to_page(env->arena[MEM_PAGES]);
	__SetPageTable(made.page);
	return use(env, req, made.page);
}

static void no_page_table(struct kfi_env *env, struct reg_req *req)
{
	__ClearPageTable(made.page);
}

/* Given away by a balloon driver. */
static const char *ballooned(struct kfi_env *env, struct reg_req *req)
{
	made.page = virt_to_page(env->arena[MEM_PAGES]);
	__SetPageOffline(made.page);
	return use(env, req, made.page);
}

static void not_ballooned(struct kfi_env *env, struct reg_req *req)
{
	__ClearPageOffline(made.page);
}

/* Memory of devices: a memory map without any memory behind it. */

#ifdef CONFIG_DEVICE_PRIVATE
static void folio_free(struct folio *folio)
{
}

static vm_fault_t migrate_to_ram(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

static const struct dev_pagemap_ops device_ops = {
	.folio_free = folio_free,
	.migrate_to_ram = migrate_to_ram,
};

static void remove_device_memory(struct kfi_env *env, struct reg_req *req)
{
	struct resource *res = made.res;

	if (made.pgmap) {
		memunmap_pages(made.pgmap);
		kfree(made.pgmap);
	}
	if (res)
		release_mem_region(res->start, resource_size(res));
	made.pgmap = NULL;
	made.res = NULL;
}

static int add_device_memory(enum memory_type type)
{
	struct dev_pagemap *pgmap = kzalloc_obj(*pgmap);
	void *ptr;

	if (!pgmap)
		return -ENOMEM;
	made.res = request_free_mem_region(&iomem_resource, PAGES_PER_SECTION * PAGE_SIZE,
					   "kfi_selftest");
	if (IS_ERR(made.res)) {
		int ret = PTR_ERR(made.res);

		made.res = NULL;
		kfree(pgmap);
		return ret;
	}
	pgmap->type = type;
	pgmap->ops = &device_ops;
	pgmap->owner = &made;
	pgmap->range.start = made.res->start;
	pgmap->range.end = made.res->end;
	pgmap->nr_range = 1;
	ptr = memremap_pages(pgmap, numa_node_id());
	if (IS_ERR(ptr)) {
		kfree(pgmap);
		return PTR_ERR(ptr);
	}
	made.pgmap = pgmap;
	return 0;
}

/* A row that can't make its memory fails, by giving the request as it was. */
static const char *device_memory(struct kfi_env *env, struct reg_req *req)
{
	int ret = add_device_memory(req->value);

	if (ret) {
		ktap_note("no memory of type %llu: %d", req->value, ret);
		return NULL;
	}
	return use(env, req, pfn_to_page(PHYS_PFN(made.res->start) + 5));
}

/* Which memory of PCI devices a device can reach, its DMA mapping tells. */
static const char *pci_memory(struct kfi_env *env, struct reg_req *req)
{
	if (!dma_tells_page(env))
		return "the device may be able to reach it";
	return device_memory(env, req);
}

/* Memory of devices that is like any other: accepted up to its end, where the memory map ends, too. */
static void generic_memory(struct kfi_test *t)
{
	bool by_device = reg_call_in(t->variant, SGL_CALLS);
	u8 *mem = arena_at(t->env, MEM_PAGES, ROW_ALIGN);
	struct reg_req req;
	struct kfid_mr *mr;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, ROW_LEN, PAGE_SIZE), 0))
		return;
	req.value = MEMORY_DEVICE_GENERIC;
	t->skip = device_memory(t->env, &req);
	if (t->skip || !EXPECT(t, made.pgmap, "no such memory"))
		goto out;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0))
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	use(t->env, &req, pfn_to_page(PHYS_PFN(made.res->end)));
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0))
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	/* One page more. */
	req.len += PAGE_SIZE;
	req.kv[0].iov_len += PAGE_SIZE;
	req.bv[1].bv_len += PAGE_SIZE;
	sg_dma_len(&req.sg[1]) += PAGE_SIZE;
	expect_refused(t, &req, by_device ? -KFI_EINVAL : -KFI_EFAULT);
out:
	remove_device_memory(t->env, &req);
	reg_finish(t->env, &req);
}
#else
static const char *device_memory(struct kfi_env *env, struct reg_req *req)
{
	return "the kernel has no CONFIG_DEVICE_PRIVATE";
}

static const char *pci_memory(struct kfi_env *env, struct reg_req *req)
{
	return device_memory(env, req);
}

static void remove_device_memory(struct kfi_env *env, struct reg_req *req)
{
}

static void generic_memory(struct kfi_test *t)
{
	t->skip = device_memory(NULL, NULL);
}
#endif

/* Memory that was added and isn't used yet: there is a memory map, with nothing in it. */
#if defined(CONFIG_MEMORY_HOTREMOVE) && defined(CONFIG_GET_FREE_REGION)
static u64 added;

static const char *offline(struct kfi_env *env, struct reg_req *req)
{
	u64 size = memory_block_size_bytes();
	struct resource *res;
	int ret;

	added = 0;
	if (!hotplug)
		return "memory that is added does not stay offline";
	/* Where nothing is; add_memory() wants it to itself. */
	res = request_free_mem_region(&iomem_resource, 2 * size, "kfi_selftest");
	if (IS_ERR(res)) {
		ktap_note("no place for memory: %pe", res);
		return NULL;
	}
	added = ALIGN(res->start, size);
	release_mem_region(res->start, resource_size(res));
	ret = add_memory(numa_node_id(), added, size, MHP_NONE);
	if (ret) {
		ktap_note("can't add memory: %d", ret);
		added = 0;
		return NULL;
	}
	return use(env, req, pfn_to_page(PHYS_PFN(added) + 5));
}

static void remove_offline(struct kfi_env *env, struct reg_req *req)
{
	if (added && remove_memory(added, memory_block_size_bytes()))
		ktap_note("can't remove the memory again");
}
#else
static const char *offline(struct kfi_env *env, struct reg_req *req)
{
	return "the kernel has no memory hotplug";
}

static void remove_offline(struct kfi_env *env, struct reg_req *req)
{
}
#endif

/* The zero page: all of the kernel reads it, and relies on what it reads. */

static const char *zero(struct kfi_env *env, struct reg_req *req)
{
	return use(env, req, ZERO_PAGE(0));
}

/* A free page is found in another place in each try, if somebody takes it at once. */
#define TRIES	20

/* As many blocks are freed at once, the one in question first: others are taken before it. */
#define BLOCKS	8

/* A block of pages of an order, and the page of it that is used. */
struct block {
	unsigned int order;
	unsigned int at;
};

/* Frees a block. Returns the page of it; NULL if there is no memory. */
static struct page *free_page_of(const struct block *b)
{
	struct page *blocks[BLOCKS] = {};
	int i;

	for (i = 0; i < BLOCKS; i++)
		blocks[i] = alloc_pages(GFP_KERNEL, b->order);
	for (i = 0; i < BLOCKS; i++)
		if (blocks[i])
			__free_pages(blocks[i], b->order);
	return blocks[0] ? blocks[0] + b->at : NULL;
}

/* Free pages are refused. If somebody has taken the page meanwhile, the test tries another one. */
static void freed(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_PAGES, ROW_ALIGN);
	int i, ret = 0, was_free = 0;
	struct reg_req req;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, ROW_LEN, PAGE_SIZE), 0))
		return;
	for (i = 0; i < TRIES && !ret && !t->failures; i++) {
		struct page *page = free_page_of(t->c->data);

		if (!EXPECT(t, page, "no memory"))
			break;
		t->skip = use(t->env, &req, page);
		if (t->skip)
			break;
		ret = try_request(t, &req);
		if (!ret && !page_ref_count(page))
			was_free++;
	}
	if (ret)
		EXPECT_EQ(t, ret, -KFI_EFAULT);
	else if (EXPECT(t, !was_free, "accepted %d times", was_free) && !t->skip)
		ktap_skip(t, "the page was taken at each try");
	reg_finish(t->env, &req);
	if (!t->skip)
		expect_works(t, t->variant);
}

/* Storage writes from it, which takes no more than a right to read. */
static void readable(struct kfi_test *t)
{
	struct reg_req req;
	struct kfid_mr *mr;
	u8 *mem = arena_at(t->env, MEM_PAGES, ROW_ALIGN);
	/* Of a list, the page is the second entry. */
	size_t at = t->variant == REG || reg_call_in(t->variant, KVEC_CALLS) ? 0 :
		    PAGE_SIZE - ROW_ALIGN;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, ROW_LEN, PAGE_SIZE), 0))
		return;
	req.access = KFI_REMOTE_READ;
	t->skip = zero(t->env, &req);
	if (!t->skip && kfi_transfers) {
		EXPECT_EQ(t, try_request(t, &req), 0);
	} else if (!t->skip && EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		memset(t->env->scratch, 0xee, PAGE_SIZE);
		EXPECT_EQ(t, peer_read(t->env, mr->iova + at, mr->key, t->env->scratch, PAGE_SIZE), 0);
		EXPECT(t, !memchr_inv(t->env->scratch, 0, PAGE_SIZE), "the peer read no zeros");
		EXPECT_EQ(t, peer_write(t->env, mr->iova + at, mr->key, t->env->scratch, 1), -EACCES);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	reg_finish(t->env, &req);
}

#define FREED(_name, _order, _at) {						\
	.name = _name,								\
	.run = freed,								\
	.variants = ALL_CALLS,							\
	.data = &(const struct block) { .order = _order, .at = _at },		\
}

#define DEVICE(_name, _calls, _spoil, _type)					\
	ROW(_name, _calls, -KFI_EFAULT, _spoil, .restore = remove_device_memory, .value = _type, \
	    .alone = true)

static const struct kfi_case cases[] = {
	ROW("text", ALL_CALLS, -KFI_EFAULT, text, .alone = true),
	ROW("rodata", ALL_CALLS, -KFI_EFAULT, rodata, .alone = true),
	ROW("data", ALL_CALLS, -KFI_EFAULT, data, .alone = true),
	ROW("no_memory", ALL_CALLS & ~SGL_CALLS, -KFI_EFAULT, no_memory, .alone = true),
	ROW("no_memory", SGL_CALLS, -KFI_EINVAL, no_memory, .alone = true),
	ROW("poisoned", ALL_CALLS, -KFI_EFAULT, poisoned, .restore = unpoison, .alone = true),
	ROW("page_table", ALL_CALLS, -KFI_EFAULT, page_table, .restore = no_page_table, .alone = true),
	ROW("ballooned", ALL_CALLS, -KFI_EFAULT, ballooned, .restore = not_ballooned, .alone = true),
	DEVICE("private", ALL_CALLS, device_memory, MEMORY_DEVICE_PRIVATE),
	DEVICE("coherent", ALL_CALLS, device_memory, MEMORY_DEVICE_COHERENT),
	DEVICE("pci", ALL_CALLS, pci_memory, MEMORY_DEVICE_PCI_P2PDMA),
	{ .name = "generic", .run = generic_memory, .variants = ALL_CALLS },
	ROW("offline", ALL_CALLS, -KFI_EFAULT, offline, .restore = remove_offline, .alone = true),
	FREED("free_page", 0, 0),
	FREED("free_block", 5, 17),
	ROW("zero", ALL_CALLS, -KFI_EFAULT, zero, .alone = true, .writes = true),
	{ .name = "zero_readable", .run = readable, .variants = ALL_CALLS },
};

const struct kfi_suite suite_badpages = {
	.name = "badpages",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
	.end = end_refusals,
};
