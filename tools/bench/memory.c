// SPDX-License-Identifier: GPL-2.0
/* The memory that is registered. */
#include <linux/prandom.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "bench.h"

#define BYTES	(MAX_PAGES * PAGE_SIZE)
#define ARENA	(2 * BYTES)
/* The block in which each page of the layout FAR is the only one. */
#define BLOCK	get_order(SZ_2M)

/* The same numbers in each boot. */
static struct rnd_state random;

static u32 below(u32 limit)
{
	return prandom_u32_state(&random) % limit;
}

static void shuffle(struct page **pages, int count)
{
	int i, j;

	for (i = count - 1; i > 0; i--) {
		/* swap() evaluates its arguments more than once. */
		j = below(i + 1);
		swap(pages[i], pages[j]);
	}
}

static void find_alternate(struct bench_mem *mem, struct page **pages)
{
	int i;

	for (i = 0; i < MAX_PAGES; i++)
		pages[i] = virt_to_page(mem->arena + 2 * i * PAGE_SIZE);
}

/* Half of the pages of the arena, in random order. */
static int find_near(struct bench_mem *mem, struct page **pages)
{
	const int all = ARENA / PAGE_SIZE;
	struct page **shuffled = kvmalloc_array(all, sizeof(*shuffled), GFP_KERNEL);
	int i;

	if (!shuffled)
		return -ENOMEM;
	for (i = 0; i < all; i++)
		shuffled[i] = virt_to_page(mem->arena + i * PAGE_SIZE);
	shuffle(shuffled, all);
	memcpy(pages, shuffled, MAX_PAGES * sizeof(*pages));
	kvfree(shuffled);
	return 0;
}

/* A random page of each block. The others are freed, so that little memory is taken. */
static int find_far(struct page **pages)
{
	int i, j;

	for (i = 0; i < MAX_PAGES; i++) {
		struct page *block = alloc_pages(GFP_KERNEL, BLOCK);
		int chosen = below(1 << BLOCK);

		if (!block)
			return -ENOMEM;
		split_page(block, BLOCK);
		for (j = 0; j < 1 << BLOCK; j++)
			if (j != chosen)
				__free_page(block + j);
		pages[i] = block + chosen;
	}
	shuffle(pages, MAX_PAGES);
	return 0;
}

/* Makes the forms of scattered pages. */
static int make_forms(struct bench_scattered *scattered)
{
	int i, pages;

	for (i = 0; i < MAX_PAGES; i++)
		bvec_set_page(&scattered->bv[i], scattered->pages[i], PAGE_SIZE, 0);
	for (pages = 1; pages <= MAX_PAGES; pages *= 2) {
		struct scatterlist *sg = scattered->sg + pages;

		sg_init_table(sg, pages);
		for (i = 0; i < pages; i++)
			sg_set_page(&sg[i], scattered->pages[i], PAGE_SIZE, 0);
	}
	scattered->vmap = vmap(scattered->pages, MAX_PAGES, VM_MAP, PAGE_KERNEL);
	return scattered->vmap ? 0 : -ENOMEM;
}

static void list_linear(struct bench_mem *mem)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(mem->sg_one); i++)
		sg_init_one(&mem->sg_one[i], mem->linear, PAGE_SIZE << i);
}

/**
 * mem_alloc() - Allocate the memory.
 *
 * Context: May sleep.
 * Return: The memory, with lists that are not mapped, or NULL.
 */
struct bench_mem *mem_alloc(void)
{
	struct bench_mem *mem = kvzalloc_obj(*mem);
	int i;

	if (!mem)
		return NULL;
	prandom_seed_state(&random, 1);
	mem->linear = kmalloc(BYTES, GFP_KERNEL);
	mem->vmalloc = vmalloc(BYTES);
	mem->arena = alloc_pages_exact(ARENA, GFP_KERNEL);
	if (!mem->linear || !mem->vmalloc || !mem->arena)
		goto err;
	find_alternate(mem, mem->layouts[ALTERNATE].pages);
	if (find_near(mem, mem->layouts[NEAR].pages) || find_far(mem->layouts[FAR].pages))
		goto err;
	for (i = 0; i < LAYOUTS; i++)
		if (make_forms(&mem->layouts[i]))
			goto err;
	mem->scattered = mem->layouts;
	list_linear(mem);
	return mem;
err:
	mem_free(mem);
	return NULL;
}

/**
 * mem_free() - Free the memory.
 * @mem: The memory that mem_alloc() returned.
 */
void mem_free(struct bench_mem *mem)
{
	int i;

	if (!mem)
		return;
	for (i = 0; i < LAYOUTS; i++)
		vunmap(mem->layouts[i].vmap);
	for (i = 0; i < MAX_PAGES && mem->layouts[FAR].pages[i]; i++)
		__free_page(mem->layouts[FAR].pages[i]);
	if (mem->arena)
		free_pages_exact(mem->arena, ARENA);
	vfree(mem->vmalloc);
	kfree(mem->linear);
	kvfree(mem);
}

/**
 * mem_list() - Find the list of a form that comes mapped.
 * @mem: The memory.
 * @form: The form.
 * @pages: How many pages; a power of two.
 * @entries: How long the list is.
 *
 * Return: The list, or NULL if the form is another one.
 */
struct scatterlist *mem_list(struct bench_mem *mem, enum bench_form form, unsigned int pages,
			     int *entries)
{
	switch (form) {
	case SGL_ONE:
		*entries = 1;
		return &mem->sg_one[ilog2(pages)];
	case SGL_SCATTERED:
		*entries = pages;
		return &mem->scattered->sg[pages];
	default:
		return NULL;
	}
}
