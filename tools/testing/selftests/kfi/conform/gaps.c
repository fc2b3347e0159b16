// SPDX-License-Identifier: GPL-2.0
/*
 * KFI_MR_RAW: a region may be several to its device, so any list is one region, whatever its
 * alignment. It has no key of 64 bits, only a raw one.
 */
#include "mapped.h"

/* Pieces of memory that don't meet at page boundaries: where they begin, and how long they are. */
static const struct {
	enum mem_kind kind;
	size_t at;
	size_t len;
} gaps[] = {
	{ MEM_KMALLOC, 13, 100 },
	{ MEM_KMALLOC, 2 * PAGE_SIZE + 1, PAGE_SIZE },
	{ MEM_VMALLOC, PAGE_SIZE - 6, 2 * PAGE_SIZE + 8 },
	{ MEM_PAGES, 100, 1 },
	{ MEM_VMALLOC, 7 * PAGE_SIZE, 3 },
	{ MEM_PAGES, 4 * PAGE_SIZE - 1, PAGE_SIZE + 900 },
};

/* The calls for pages can't have more than a page of vmalloc() memory in a segment. */
static u8 *piece(const struct kfi_env *env, enum reg_call call, unsigned int i)
{
	enum mem_kind kind = gaps[i].kind;

	if (kind == MEM_VMALLOC && !reg_call_in(call, KVEC_CALLS))
		kind = MEM_PAGES;
	return env->arena[kind] + PAGE_SIZE + gaps[i].at;
}

static void add_piece(struct reg_req *req, unsigned int i, u8 *mem, size_t len)
{
	if (reg_call_in(req->call, KVEC_CALLS)) {
		req->kv[i].iov_base = mem;
		req->kv[i].iov_len = len;
	} else if (reg_call_in(req->call, BVEC_CALLS)) {
		bvec_set_page(&req->bv[i], virt_to_page(mem), len, offset_in_page(mem));
	} else {
		sg_set_page(&req->sg[i], virt_to_page(mem), len, offset_in_page(mem));
	}
}

/* A request for the pieces. Ends with reg_finish() if it succeeds. */
static bool prepare(struct kfi_test *t, struct place *p, struct reg_req *req)
{
	struct kfi_env *env = &p->env;
	unsigned int i, n = ARRAY_SIZE(gaps);
	int ret;

	/* Any request, for what is the same in all. */
	if (!EXPECT_EQ(t, reg_prepare(env, req, t->variant, arena_at(env, MEM_PAGES, 0), PAGE_SIZE,
				      SPLIT_NONE), 0))
		return false;
	reg_finish(env, req);
	req->sg = env->sg;
	req->count = n;
	if (reg_call_in(req->call, SGL_CALLS))
		sg_init_table(req->sg, n);
	for (i = 0; i < n; i++)
		add_piece(req, i, piece(env, req->call, i), gaps[i].len);
	if (!reg_call_in(req->call, SGL_CALLS))
		return true;
	ret = env->dma->map_sg(&env->domain->fid, req->sg, n, DMA_BIDIRECTIONAL);
	if (!EXPECT(t, ret > 0, "the list can't be mapped: %d", ret))
		return false;
	req->mapped = n;
	req->count = ret;
	return true;
}

static size_t total(void)
{
	size_t sum = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(gaps); i++)
		sum += gaps[i].len;
	return sum;
}

static void fill(struct kfi_env *env)
{
	enum mem_kind kind;

	for (kind = 0; kind < MEM_KINDS; kind++)
		pattern(env->arena[kind], env->arena_size, 500 + kind);
}

/* The written bytes are in the pieces, in their order, and nowhere else. */
static void check_pieces(struct kfi_test *t, struct kfi_env *env, unsigned int shift)
{
	size_t done = 0;
	enum mem_kind kind;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(gaps); i++) {
		u8 *mem = piece(env, t->variant, i);

		EXPECT(t, pattern_is(mem, gaps[i].len, shift + done), "piece %u is wrong", i);
		done += gaps[i].len;
		for (kind = 0; kind < MEM_KINDS; kind++)
			if (mem >= env->arena[kind] && mem < env->arena[kind] + env->arena_size)
				pattern(mem, gaps[i].len,
					500 + kind + (unsigned int)(mem - env->arena[kind]));
	}
	for (kind = 0; kind < MEM_KINDS; kind++)
		EXPECT(t, pattern_is(env->arena[kind], env->arena_size, 500 + kind),
		       "bytes in the gaps changed");
}

static void is_all_pieces(struct kfi_test *t, struct place *p, struct mapped *m, struct kfid_mr *mr)
{
	EXPECT(t, kfi_mr_key(mr) == KFI_KEY_NOTAVAIL, "a key that needs no mapping: %#llx",
	       kfi_mr_key(mr));
	if (!take_key(t, m, p, mr) || !map_key(t, m))
		return;
	fill(&p->env);
	whole_region(t, p, m, total());
	check_pieces(t, &p->env, 11);
}

static void gaps_case(struct kfi_test *t)
{
	struct place *p = place_open(t, MODE_RAW);
	struct kfid_mr *mr;
	struct reg_req req;
	struct mapped m;

	if (!p)
		return;
	if (!map_begin(t, &m, p))
		return place_close(t, p);
	if (prepare(t, p, &req)) {
		if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
			is_all_pieces(t, p, &m, mr);
			close_mr(t, mr);
			/* All of its pieces are gone. */
			if (m.open) {
				EXPECT_EQ(t, access_by(p, &m, 0, p->env.scratch, 1, false),
					  -EACCES);
				EXPECT_EQ(t, access_by(p, &m, total() - 1, p->env.scratch, 1,
						       false), -EACCES);
			}
		}
		reg_finish(&p->env, &req);
	}
	map_end(t, &m);
	place_close(t, p);
}

/* One piece that can't be registered, and none is. */
static void none_case(struct kfi_test *t)
{
	struct place *p = place_open(t, MODE_RAW);
	struct kfid_mr *mr = ERR_PTR(-1);
	struct reg_req req;

	if (!p)
		return;
	if (prepare(t, p, &req)) {
		if (reg_call_in(t->variant, KVEC_CALLS))
			req.kv[req.count - 1].iov_base = (void *)PAGE_SIZE;
		else
			req.bv[req.count - 1].bv_page = NULL;
		EXPECT_EQ(t, reg_submit(&req, &mr), -KFI_EFAULT);
		EXPECT(t, !mr, "*mr after a refusal");
		reg_finish(&p->env, &req);
	}
	place_close(t, p);
}

#define LONG	(700 * PAGE_SIZE)

/* More pages than one region of the device can have (rxe: 512) are still one region. */
static void long_case(struct kfi_test *t)
{
	static const size_t ends[] = { 0, 255, 511, 512, 699 };
	struct place *p = place_open(t, MODE_RAW);
	u8 *mem = vmalloc(LONG);
	struct kfid_mr *mr;
	struct mapped m;
	unsigned int i;

	if (!p || !EXPECT(t, mem, "no memory"))
		goto out;
	if (!map_begin(t, &m, p))
		goto out;
	if (EXPECT_EQ(t, register_buf(p, mem + 1, LONG - 2, KFI_REMOTE, &mr), 0)) {
		if (take_key(t, &m, p, mr) && map_key(t, &m))
			for (i = 0; i < ARRAY_SIZE(ends); i++) {
				size_t at = max(ends[i] * PAGE_SIZE, 10) - 10;

				pattern(p->env.scratch, 40, i);
				EXPECT_EQ(t, access_by(p, &m, at, p->env.scratch, 40, true), 0);
				EXPECT(t, pattern_is(mem + 1 + at, 40, i), "at page %zu", ends[i]);
			}
		close_mr(t, mr);
	}
	map_end(t, &m);
out:
	vfree(mem);
	if (p)
		place_close(t, p);
}

static const struct kfi_case cases[] = {
	ALWAYS("gaps", LIST_CALLS, F_RAW_MODE, gaps_case),
	ALWAYS("gaps_or_none", KVEC_CALLS | BVEC_CALLS, F_RAW_MODE, none_case),
	ALWAYS("long_region", 0, F_RAW_MODE, long_case),
};

SECTION(section_gaps);
