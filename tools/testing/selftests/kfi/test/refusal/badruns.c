// SPDX-License-Identifier: GPL-2.0
/*
 * One bad page somewhere in a long range of good ones, where memory is looked at by more than a page
 * at once: at both ends, in between, and on either side of where the memory map may change.
 */
#include "errors.h"
#include "marks.h"
#include "suites.h"

/* Regions of this many pages, or as many as there may be. */
#define PAGES	768

static struct page *page_at(const u8 *mem, size_t i)
{
	const u8 *addr = mem + i * PAGE_SIZE;

	return is_vmalloc_addr(addr) ? vmalloc_to_page(addr) : virt_to_page(addr);
}

/* The first page from the second one on that begins a part of the memory map; none: the middle. */
static size_t map_boundary(const u8 *mem, size_t pages)
{
	size_t i;

	for (i = 1; i < pages; i++)
		if (page_to_pfn(page_at(mem, i)) % (SZ_2M / PAGE_SIZE) == 0)
			return i;
	return pages / 2;
}

static void with_bad_page(struct kfi_test *t, const struct mark *mark, u8 *mem, size_t pages,
			  size_t bad, size_t align)
{
	struct reg_req req;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem + align,
				      pages * PAGE_SIZE - 2 * align, SPLIT_NONE), 0))
		return;
	mark->set(page_at(mem, bad));
	expect_refused_memory(t, &req, -KFI_EFAULT, false);
	mark->clear(page_at(mem, bad));
	reg_finish(t->env, &req);
}

static void run(struct kfi_test *t)
{
	const struct mark *mark = t->c->data;
	u8 *mem = arena_at(t->env, mark->kind, 0);
	size_t pages = min_t(size_t, PAGES, t->env->max_pages);
	size_t boundary, i;

	if (!can_mark(mark))
		return ktap_skip(t, "the kernel has no CONFIG_MEMORY_FAILURE");
	if (reg_call_in(t->variant, SGL_CALLS) && !dma_tells_page(t->env))
		return ktap_skip(t, "any DMA address may be one of this device");
	pages = min(pages, reg_call_in(t->variant, KVEC_CALLS | BUF_CALLS) ? pages :
		    t->env->max_segs);
	boundary = map_boundary(mem, pages);
	const size_t bad[] = { 0, 1, pages / 2, boundary - 1, boundary, pages - 2, pages - 1 };

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		with_bad_page(t, mark, mem, pages, bad[i], 0);
		with_bad_page(t, mark, mem, pages, bad[i], 100);
	}
	expect_works(t, t->variant);
}

/* The range ends behind the area: what is there is not taken along. */
static void beyond_area(struct kfi_test *t)
{
	size_t pages = min_t(size_t, PAGES, t->env->max_pages);
	u8 *end = t->env->arena[MEM_VMALLOC] + t->env->arena_size;
	struct reg_req req;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant,
				      arena_at(t->env, MEM_VMALLOC, 0), PAGE_SIZE, SPLIT_NONE), 0))
		return;
	req.buf = end - (pages - 1) * PAGE_SIZE;
	req.len = (pages - 1) * PAGE_SIZE + 1;
	req.kv[0].iov_base = (void *)req.buf;
	req.kv[0].iov_len = req.len;
	expect_refused_memory(t, &req, -KFI_EFAULT, false);
	reg_finish(t->env, &req);
	expect_works(t, t->variant);
}

#define BAD(_name, _kind, _mark, _unmark) {					\
	.name = _name,								\
	.run = run,								\
	.variants = ALL_CALLS,							\
	.data = &(const struct mark) { .kind = _kind, .set = _mark, .clear = _unmark },	\
}

/* The pages of kmalloc() are one folio here, whose tails have no type and aren't reserved. */
static const struct kfi_case cases[] = {
	BAD("kmalloc_poisoned", MEM_KMALLOC, poison, unpoison),
	BAD("pages_poisoned", MEM_PAGES, poison, unpoison),
	BAD("pages_table", MEM_PAGES, make_table, unmake_table),
	BAD("pages_reserved", MEM_PAGES, reserve, unreserve),
	BAD("vmalloc_poisoned", MEM_VMALLOC, poison, unpoison),
	BAD("vmalloc_table", MEM_VMALLOC, make_table, unmake_table),
	BAD("vmalloc_reserved", MEM_VMALLOC, reserve, unreserve),
	{ .name = "beyond_area", .run = beyond_area, .variants = KVEC_CALLS | BUF_CALLS },
};

const struct kfi_suite suite_badruns = {
	.name = "badruns",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
	.end = end_refusals,
};
