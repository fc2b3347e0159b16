// SPDX-License-Identifier: GPL-2.0
/*
 * Every call over every kind of memory, from every alignment and in every size up to the device's
 * limit: a peer writes and reads each region whole, and nothing around it changes.
 */
#include "request.h"
#include "suites.h"

static const size_t alignments[] = { 0, 1, 100, PAGE_SIZE - 1 };

/* Sizes in bytes; 0 stands for the largest that the device can hold from this alignment on. */
static const size_t sizes[] = { 1, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1, 5 * PAGE_SIZE + 13, 0 };

struct shape {
	enum mem_kind kind;
	size_t split;
	bool coalesce;
};

/*
 * Write into a scatterlist, by hand, what an IOMMU would: one DMA segment for all of @count entries
 * but the last ones, and one for those. Only devices whose DMA addresses are the kernel's let us.
 */
static size_t coalesce(struct scatterlist *sgl, size_t count, u8 *mem, size_t len)
{
	size_t i, first = 0, half = max(count / 2, (size_t)1);

	for (i = 0; i < count; i++) {
		if (i < half)
			first += sgl[i].length;
		sg_dma_address(&sgl[i]) = 0;
		sg_dma_len(&sgl[i]) = 0;
	}
	sg_dma_address(&sgl[0]) = (dma_addr_t)(uintptr_t)mem;
	sg_dma_len(&sgl[0]) = first;
	if (first == len)
		return 1;
	sg_dma_address(&sgl[1]) = (dma_addr_t)(uintptr_t)(mem + first);
	sg_dma_len(&sgl[1]) = len - first;
	return 2;
}

static void one_too_long(struct kfi_test *t, struct reg_req *req)
{
	struct kfid_mr *mr = ERR_PTR(-1);

	if (!EXPECT_EQ(t, reg_submit(req, &mr), -KFI_E2BIG) && !IS_ERR_OR_NULL(mr))
		kfi_close(&mr->fid);
	else
		EXPECT(t, !mr, "*mr is not NULL after a refusal");
}

/* Of a large region its beginning, middle and end only: to check all of it each time takes long. */
static void check_windows(struct kfi_test *t, const struct kfid_mr *mr, u8 *mem, size_t len)
{
	size_t window = 5 * PAGE_SIZE, at[] = { 0, (len - window) / 2, len - window };
	int i;

	for (i = 0; i < ARRAY_SIZE(at); i++) {
		struct kfid_mr part = { .key = mr->key, .iova = mr->iova + at[i] };

		check_region(t, &part, mem + at[i], window);
	}
}

static bool check_whole(const struct reg_req *req, const u8 *mem, size_t len)
{
	if (len < 64 * PAGE_SIZE)
		return true;
	return !offset_in_page(mem) && !reg_call_in(req->call, ATTR_CALLS);
}

static void one_region(struct kfi_test *t, struct reg_req *req, u8 *mem, size_t len)
{
	struct kfid_mr *mr;

	if (!EXPECT_EQ(t, reg_submit(req, &mr), 0))
		return;
	EXPECT(t, mr->fid.fclass == KFI_CLASS_MR, "fclass %zu", mr->fid.fclass);
	EXPECT(t, mr->iova && offset_in_page(mr->iova) == offset_in_page(mem),
	       "iova %#llx for memory %u bytes into a page", mr->iova,
	       (unsigned int)offset_in_page(mem));
	EXPECT(t, mr->iova < PAGE_OFFSET, "iova %#llx may be an address of the kernel", mr->iova);
	if (check_whole(req, mem, len))
		check_region(t, mr, mem, len);
	else
		check_windows(t, mr, mem, len);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
}

static void one_size(struct kfi_test *t, const struct shape *s, size_t align, size_t len, bool fits)
{
	unsigned int failures = t->failures;
	u8 *mem = arena_at(t->env, s->kind, align);
	struct reg_req req;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, len, s->split), 0))
		return;
	if (s->coalesce)
		req.count = coalesce(req.sg, req.count, mem, len);
	if (fits)
		one_region(t, &req, mem, len);
	else
		one_too_long(t, &req);
	reg_finish(t->env, &req);
	if (t->failures > failures && failures < MAX_DIAGNOSES)
		ktap_note("%s: above: %zu bytes, %zu bytes into a page", t->c->name, len, align);
}

static void run(struct kfi_test *t)
{
	const struct shape *s = t->c->data;
	struct kfi_env *env = t->env;
	int a, i;

	if (s->coalesce && !ib_uses_virt_dma(env->dev))
		return ktap_skip(t, "only where DMA addresses are the kernel's own");

	for (a = 0; a < ARRAY_SIZE(alignments); a++) {
		u8 *mem = arena_at(env, s->kind, alignments[a]);
		size_t limit = env->max_pages * PAGE_SIZE - alignments[a];

		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			size_t len = sizes[i] ?: limit;

			/* A list that is too long for the domain is another suite's matter. */
			if (reg_segments(t->variant, mem, len, s->split) <= env->max_segs)
				one_size(t, s, alignments[a], len, true);
		}
		if (env->at_limit &&
		    reg_segments(t->variant, mem, limit + 1, s->split) <= env->room)
			one_size(t, s, alignments[a], limit + 1, false);
		cond_resched();
	}
}

#define CASE(_name, _calls, _kind, _split, _coalesce) {				\
	.name = _name,								\
	.run = run,								\
	.variants = _calls,							\
	.data = &(const struct shape) {						\
		.kind = _kind,							\
		.split = _split,						\
		.coalesce = _coalesce,						\
	},									\
}

/* Split at odd places, the pieces still follow each other in memory: that is no gap. */
#define ODD	1500

static const struct kfi_case cases[] = {
	CASE("kmalloc", ALL_CALLS, MEM_KMALLOC, SPLIT_NONE, false),
	CASE("kmalloc_by_page", LIST_CALLS, MEM_KMALLOC, PAGE_SIZE, false),
	CASE("pages", ALL_CALLS, MEM_PAGES, SPLIT_NONE, false),
	CASE("pages_by_page", LIST_CALLS, MEM_PAGES, PAGE_SIZE, false),
	CASE("vmalloc", ALL_CALLS, MEM_VMALLOC, SPLIT_NONE, false),
	CASE("vmalloc_by_page", KVEC_CALLS, MEM_VMALLOC, PAGE_SIZE, false),
	CASE("kmalloc_odd", LIST_CALLS, MEM_KMALLOC, ODD, false),
	CASE("vmalloc_odd", KVEC_CALLS, MEM_VMALLOC, ODD, false),
	CASE("coalesced", SGL_CALLS, MEM_PAGES, PAGE_SIZE, true),
};

const struct kfi_suite suite_matrix = {
	.name = "matrix",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
};
