// SPDX-License-Identifier: GPL-2.0
/*
 * Most kinds of memory that kfi_mr(3) promises to register: by each call, and each byte of it. badpages.generic has
 * the memory of devices.
 */
#include <linux/dma-mapping.h>
#include <linux/dmapool.h>
#include <linux/jiffies.h>
#include <linux/kfence.h>
#include <linux/mman.h>
#include <linux/percpu.h>
#include <linux/platform_device.h>

#include "errors.h"
#include "suites.h"

/* Order of a block of pages, offset of its tail page, and number of single pages. */
#define ORDER	3
#define TAIL	(5 * PAGE_SIZE)
#define PARTS	4

/**
 * struct memory - memory of a kind
 * @base: Where it begins.
 * @mem: The part of it that is registered: GUARD bytes before and behind it are of the memory, too.
 * @len: How long that is, at most ROW_LEN.
 * @pages: The pages of it.
 * @map: User memory. The test holds a page of it.
 * @map_len: Its length.
 * @pdev: The device that it is for.
 * @pool: The pool that it is of.
 * @handle: Its address there.
 */
struct memory {
	void *base;
	u8 *mem;
	size_t len;
	struct page *pages[PARTS];
	unsigned long map;
	size_t map_len;
	struct platform_device *pdev;
	struct dma_pool *pool;
	dma_addr_t handle;
};

/**
 * struct kind - a kind of memory
 * @make: Allocates it; returns why there is none here, or NULL. If it leaves @mem NULL, there was no memory.
 * @free: Frees what was allocated.
 */
struct kind {
	const char *(*make)(struct memory *m);
	void (*free)(struct memory *m);
};

/* The memory begins at @base, and is used from @at on. */
static void use(struct memory *m, void *base, size_t at, size_t len)
{
	m->base = base;
	m->mem = base ? base + at : NULL;
	m->len = len;
}

static const char *large_kmalloc(struct memory *m)
{
	use(m, kmalloc(PAGE_SIZE << ORDER, GFP_KERNEL), TAIL, PAGE_SIZE);
	return NULL;
}

static void free_kmalloc(struct memory *m)
{
	kfree(m->base);
}

#ifdef CONFIG_KFENCE
#define OBJECT	200

/* Allocates an object by one of some twenty stacks. */
static noinline u8 *allocate(unsigned int which)
{
	size_t len = OBJECT;
	u8 *mem;

	OPTIMIZER_HIDE_VAR(len);
	if (which >= 3)
		mem = allocate(which - 3);
	else if (which == 2)
		mem = kmalloc_node(OBJECT, GFP_KERNEL, NUMA_NO_NODE);
	else
		mem = kmalloc(which ? len : OBJECT, GFP_KERNEL);
	/* No tail call. */
	OPTIMIZER_HIDE_VAR(mem);
	return mem;
}

/*
 * Allocates until it is KFENCE's turn, which comes once in an interval. When most of its memory is in use, KFENCE
 * skips stacks whose hash it takes for that of one that it has served. The pages of KFENCE are reserved.
 */
static const char *of_kfence(struct memory *m)
{
	unsigned long end = jiffies + 60 * HZ;
	unsigned int which = 0;
	u8 *mem;

	if (!kfence_sample_interval || !__kfence_pool)
		return "KFENCE is off (kfence.sample_interval)";
	do {
		mem = allocate(which++ % 18);
		if (!mem || is_kfence_address(mem))
			break;
		kfree(mem);
		mem = NULL;
		cond_resched();
	} while (time_before(jiffies, end));
	use(m, mem, GUARD, OBJECT - 2 * GUARD);
	return NULL;
}
#else
static const char *of_kfence(struct memory *m)
{
	return "the kernel has no KFENCE";
}
#endif

static const char *compound_tail(struct memory *m)
{
	use(m, (void *)__get_free_pages(GFP_KERNEL | __GFP_COMP, ORDER), TAIL, PAGE_SIZE);
	return NULL;
}

/* Only the first of these pages has a reference. */
static const char *block(struct memory *m)
{
	use(m, (void *)__get_free_pages(GFP_KERNEL, ORDER), GUARD, ROW_LEN);
	return NULL;
}

static const char *block_tail(struct memory *m)
{
	use(m, (void *)__get_free_pages(GFP_KERNEL, ORDER), TAIL, PAGE_SIZE);
	return NULL;
}

static void free_block(struct memory *m)
{
	free_pages((unsigned long)m->base, ORDER);
}

/* Holds a page of user memory, which the task has mapped. */
static const char *user(struct memory *m)
{
	m->map = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(m->map))
		return "no user memory";
	m->map_len = PAGE_SIZE;
	if (get_user_pages_fast(m->map, 1, FOLL_WRITE, m->pages) == 1)
		m->base = page_address(m->pages[0]);
	use(m, m->base, GUARD, PAGE_SIZE - 2 * GUARD);
	return NULL;
}

static void free_user(struct memory *m)
{
	if (m->pages[0])
		put_page(m->pages[0]);
	if (m->map_len)
		vm_munmap(m->map, m->map_len);
}

static const char *of_dma_pool(struct memory *m)
{
	void *base = NULL;

	m->pdev = platform_device_register_simple("kfi_selftest", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(m->pdev) || dma_coerce_mask_and_coherent(&m->pdev->dev, DMA_BIT_MASK(64)))
		return "no device for DMA";
	m->pool = dma_pool_create("kfi_selftest", &m->pdev->dev, PAGE_SIZE, 0, 0);
	if (m->pool)
		base = dma_pool_alloc(m->pool, GFP_KERNEL, &m->handle);
	use(m, base, GUARD, PAGE_SIZE - 2 * GUARD);
	return NULL;
}

static void free_dma_pool(struct memory *m)
{
	if (m->base)
		dma_pool_free(m->pool, m->base, m->handle);
	dma_pool_destroy(m->pool);
	if (!IS_ERR(m->pdev))
		platform_device_unregister(m->pdev);
}

/* So large that the first chunk, which is of the image, has no room. Areas can't be larger. */
#define AREA	SZ_32K
static void __percpu *area;

static const char *percpu(struct memory *m)
{
	area = __alloc_percpu(AREA, PAGE_SIZE);
	if (!area)
		return NULL;
	use(m, per_cpu_ptr(area, cpumask_first(cpu_online_mask)), ROW_ALIGN,
	    min_t(size_t, ROW_LEN, AREA - 2 * ROW_ALIGN));
	return is_vmalloc_addr(m->base) ? NULL : "the first chunk has so much room";
}

static void free_area(struct memory *m)
{
	free_percpu(area);
}

static const char *of_vmap(struct memory *m)
{
	void *base;
	int i;

	for (i = 0; i < PARTS; i++) {
		m->pages[i] = alloc_page(GFP_KERNEL);
		if (!m->pages[i])
			return NULL;
	}
	base = vmap(m->pages, PARTS, VM_MAP, PAGE_KERNEL);
	use(m, base, ROW_ALIGN, ROW_LEN);
	return NULL;
}

static void free_vmap(struct memory *m)
{
	int i;

	vunmap(m->base);
	for (i = 0; i < PARTS; i++)
		if (m->pages[i])
			__free_page(m->pages[i]);
}

static const char *of_vmalloc(struct memory *m)
{
	use(m, vmalloc(PARTS * PAGE_SIZE), ROW_ALIGN, ROW_LEN);
	return NULL;
}

/* Two huge pages meet in it. */
static const char *huge_vmalloc(struct memory *m)
{
	use(m, vmalloc_huge(2 * PMD_SIZE, GFP_KERNEL), PMD_SIZE - PAGE_SIZE - ROW_ALIGN, ROW_LEN);
	if (m->base && page_to_pfn(vmalloc_to_page(m->base + PMD_SIZE - PAGE_SIZE)) -
	    page_to_pfn(vmalloc_to_page(m->base)) != PMD_SIZE / PAGE_SIZE - 1)
		return "vmalloc_huge() has no huge pages";
	return NULL;
}

static void free_vmalloc(struct memory *m)
{
	vfree(m->base);
}

static void run(struct kfi_test *t)
{
	const struct kind *kind = t->c->data;
	struct memory m = {};

	t->skip = kind->make(&m);
	if (!t->skip && EXPECT(t, m.mem, "no memory"))
		expect_registered(t, t->variant, m.mem, m.len, SPLIT_NONE);
	kind->free(&m);
}

#define GOOD(_name, _make, _free) {						\
	.name = _name,								\
	.run = run,								\
	.variants = ALL_CALLS,							\
	.data = &(const struct kind) { .make = _make, .free = _free },		\
}

static const struct kfi_case cases[] = {
	GOOD("large_kmalloc", large_kmalloc, free_kmalloc),
	GOOD("kfence", of_kfence, free_kmalloc),
	GOOD("compound_tail", compound_tail, free_block),
	GOOD("block", block, free_block),
	GOOD("block_tail", block_tail, free_block),
	GOOD("user", user, free_user),
	GOOD("dma_pool", of_dma_pool, free_dma_pool),
	GOOD("percpu", percpu, free_area),
	GOOD("vmap", of_vmap, free_vmap),
	GOOD("vmalloc", of_vmalloc, free_vmalloc),
	GOOD("vmalloc_huge", huge_vmalloc, free_vmalloc),
};

const struct kfi_suite suite_goodmem = {
	.name = "goodmem",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
	.end = end_refusals,
};
