// SPDX-License-Identifier: GPL-2.0
/* The memory that is registered. */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "bench.h"

#define BYTES	(MAX_PAGES * PAGE_SIZE)

/* No two neighbours in the list are neighbours in memory. */
static void scatter(struct bench_mem *mem)
{
	int i, pages, entries;

	for (i = 0; i < MAX_PAGES; i++) {
		mem->pages[i] = virt_to_page(mem->arena + 2 * i * PAGE_SIZE);
		bvec_set_page(&mem->bv[i], mem->pages[i], PAGE_SIZE, 0);
	}
	for (pages = 1; pages <= MAX_PAGES; pages *= 2) {
		struct scatterlist *sg = mem_list(mem, SGL_SCATTERED, pages, &entries);

		sg_init_table(sg, entries);
		for (i = 0; i < entries; i++)
			sg_set_page(&sg[i], mem->pages[i], PAGE_SIZE, 0);
	}
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

	if (!mem)
		return NULL;
	mem->linear = kmalloc(BYTES, GFP_KERNEL);
	mem->vmalloc = vmalloc(BYTES);
	mem->arena = alloc_pages_exact(2 * BYTES, GFP_KERNEL);
	if (!mem->linear || !mem->vmalloc || !mem->arena)
		goto err;
	scatter(mem);
	list_linear(mem);
	mem->vmap = vmap(mem->pages, MAX_PAGES, VM_MAP, PAGE_KERNEL);
	if (!mem->vmap)
		goto err;
	return mem;
err:
	mem_free(mem);
	return NULL;
}

/**
 * mem_free() - Free the memory.
 * @mem: What mem_alloc() returned.
 */
void mem_free(struct bench_mem *mem)
{
	if (!mem)
		return;
	vunmap(mem->vmap);
	if (mem->arena)
		free_pages_exact(mem->arena, 2 * BYTES);
	vfree(mem->vmalloc);
	kfree(mem->linear);
	kvfree(mem);
}

/**
 * mem_list() - Find the list of a form that comes mapped.
 * @mem: The memory.
 * @form: What form.
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
		return &mem->sg[pages];
	default:
		return NULL;
	}
}
