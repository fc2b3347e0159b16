// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of kinds that can't be registered, by whatever call and under whatever address they are
 * found: memory of devices, offline memory, broken memory, page tables, the kernel's own code, and
 * zero pages that would be written to. Some kinds are made here, since no machine is sure to have
 * them.
 */
#include <linux/hex.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/memremap.h>
#include <linux/mman.h>
#include <linux/moduleparam.h>

#include "errors.h"
#include "suites.h"

static bool hotplug;
module_param(hotplug, bool, 0444);
MODULE_PARM_DESC(hotplug, "memory that is added stays offline, so it may be added where none is");

/* What a row has made, for its restore. */
static struct {
	struct page *page;
	struct resource *res;
	struct dev_pagemap *pgmap;
	unsigned long map;
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

/* The kernel image, by the pages that it is in. */

static const char *text(struct kfi_env *env, struct reg_req *req)
{
	return use(env, req, virt_to_page(kfree));
}

static const char *rodata(struct kfi_env *env, struct reg_req *req)
{
	return use(env, req, virt_to_page(hex_asc));
}

static const char *data(struct kfi_env *env, struct reg_req *req)
{
	return use(env, req, virt_to_page(&init_task));
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

/* Memory of devices that is like any other: accepted. */
static void generic_memory(struct kfi_test *t)
{
	struct reg_req req;
	struct kfid_mr *mr;
	u8 *mem = arena_at(t->env, MEM_PAGES, ROW_ALIGN);

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, ROW_LEN, PAGE_SIZE), 0))
		return;
	req.value = MEMORY_DEVICE_GENERIC;
	t->skip = device_memory(t->env, &req);
	if (!t->skip && EXPECT(t, made.pgmap, "no such memory") &&
	    EXPECT_EQ(t, reg_submit(&req, &mr), 0))
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
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

/* Zero pages: all of the kernel reads them, and relies on what it reads. */

static const char *zero(struct kfi_env *env, struct reg_req *req)
{
	return use(env, req, ZERO_PAGE(0));
}

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
/* What user memory is that was read before it was ever written to. */
static const char *huge_zero(struct kfi_env *env, struct reg_req *req)
{
	unsigned long at;

	made.page = NULL;
	made.map = vm_mmap(NULL, 0, 2 * HPAGE_PMD_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(made.map))
		return "no user memory";
	at = ALIGN(made.map, HPAGE_PMD_SIZE);
	if (get_user_pages_fast(at, 1, 0, &made.page) != 1)
		return "user memory can't be read";
	if (folio_order(page_folio(made.page)) != HPAGE_PMD_ORDER)
		return "user memory has no huge pages";
	return use(env, req, pfn_to_page(page_to_pfn(made.page) + 3));
}

static void no_huge_zero(struct kfi_env *env, struct reg_req *req)
{
	if (made.page)
		put_page(made.page);
	if (!IS_ERR_VALUE(made.map))
		vm_munmap(made.map, 2 * HPAGE_PMD_SIZE);
}
#else
static const char *huge_zero(struct kfi_env *env, struct reg_req *req)
{
	return "the kernel has no transparent huge pages";
}

static void no_huge_zero(struct kfi_env *env, struct reg_req *req)
{
}
#endif

/* Storage writes from them, which takes no more than a right to read. */
static void readable(struct kfi_test *t)
{
	const struct row *row = t->c->data;
	struct reg_req req;
	struct kfid_mr *mr;
	u8 *mem = arena_at(t->env, MEM_PAGES, ROW_ALIGN);
	/* Of a list, the page is the second entry. */
	size_t at = t->variant == REG || reg_call_in(t->variant, KVEC_CALLS) ? 0 :
		    PAGE_SIZE - ROW_ALIGN;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, ROW_LEN, PAGE_SIZE), 0))
		return;
	req.access = KFI_REMOTE_READ;
	t->skip = row->spoil(t->env, &req);
	if (!t->skip && EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		memset(t->env->scratch, 0xee, PAGE_SIZE);
		EXPECT_EQ(t, peer_read(t->env, mr->iova + at, mr->key, t->env->scratch, PAGE_SIZE), 0);
		EXPECT(t, !memchr_inv(t->env->scratch, 0, PAGE_SIZE), "the peer read no zeros");
		EXPECT_EQ(t, peer_write(t->env, mr->iova + at, mr->key, t->env->scratch, 1), -EACCES);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	if (row->restore)
		row->restore(t->env, &req);
	reg_finish(t->env, &req);
}

#define READABLE(_name, _spoil, ...) {						\
	.name = _name,								\
	.run = readable,							\
	.variants = ALL_CALLS,							\
	.data = &(const struct row) { .spoil = _spoil, __VA_ARGS__ },		\
}

#define DEVICE(_name, _calls, _spoil, _type)					\
	ROW(_name, _calls, -KFI_EFAULT, _spoil, .restore = remove_device_memory, .value = _type, \
	    .alone = true)

static const struct kfi_case cases[] = {
	ROW("text", ALL_CALLS, -KFI_EFAULT, text, .alone = true),
	ROW("rodata", ALL_CALLS, -KFI_EFAULT, rodata, .alone = true),
	ROW("data", ALL_CALLS, -KFI_EFAULT, data, .alone = true),
	ROW("poisoned", ALL_CALLS, -KFI_EFAULT, poisoned, .restore = unpoison, .alone = true),
	ROW("page_table", ALL_CALLS, -KFI_EFAULT, page_table, .restore = no_page_table, .alone = true),
	ROW("ballooned", ALL_CALLS, -KFI_EFAULT, ballooned, .restore = not_ballooned, .alone = true),
	DEVICE("private", ALL_CALLS, device_memory, MEMORY_DEVICE_PRIVATE),
	DEVICE("coherent", ALL_CALLS, device_memory, MEMORY_DEVICE_COHERENT),
	DEVICE("pci", ALL_CALLS, pci_memory, MEMORY_DEVICE_PCI_P2PDMA),
	{ .name = "generic", .run = generic_memory, .variants = ALL_CALLS },
	ROW("offline", ALL_CALLS, -KFI_EFAULT, offline, .restore = remove_offline, .alone = true),
	ROW("zero", ALL_CALLS, -KFI_EFAULT, zero, .alone = true, .writes = true),
	READABLE("zero_readable", zero),
	READABLE("huge_zero_readable", huge_zero, .restore = no_huge_zero),
};

const struct kfi_suite suite_badpages = {
	.name = "badpages",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
	.end = end_refusals,
};
