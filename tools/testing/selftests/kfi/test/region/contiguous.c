// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is contiguous beyond pages, which a device may be given by larger pages: lists of
 * pieces of all alignments, at whose joints larger pages are right, or would be wrong. A peer reads
 * and writes each byte of them, and no other byte changes.
 */
#include <linux/log2.h>
#include <linux/prandom.h>
#include <linux/sizes.h>

#include "kfi_inject.h"
#include "request.h"
#include "suites.h"

#define MAX_PIECES	4
#define ROUNDS		40

struct piece {
	size_t at;
	size_t len;
};

/* The region, and what is left of the arena. */
struct layout {
	struct piece pieces[MAX_PIECES];
	int count;
	size_t len;
	/* A bio_vec's page may be one far before its memory. */
	bool far;
};

/*
 * Pieces in different places, each of them a unit long, which is a power of two: the first begins
 * and the last ends anywhere, or at a page. One joint may be at half a unit only.
 */
static void choose(struct layout *l, size_t arena, struct rnd_state *rnd)
{
	size_t max_unit = rounddown_pow_of_two(arena / (2 * MAX_PIECES));
	size_t unit = PAGE_SIZE << prandom_u32_state(rnd) % (ilog2(max_unit / PAGE_SIZE) + 1);
	size_t units = arena / unit;
	size_t mask = prandom_u32_state(rnd) % 2 ? PAGE_MASK : ~0UL;
	int i;

	l->count = 1 + prandom_u32_state(rnd) % MAX_PIECES;
	l->len = 0;
	l->far = prandom_u32_state(rnd) % 2;
	for (i = 0; i < l->count; i++) {
		struct piece *p = &l->pieces[i];
		/* In every other unit, and backwards: no two of them follow each other. */
		size_t place = units / MAX_PIECES * (MAX_PIECES - 1 - i);
		size_t into = 0;

		p->len = unit;
		if (l->count == 1)
			p->len = unit * (units - 1);
		/* Pages as large as a unit are only for memory that starts in the first small page of one. */
		if (i == 0)
			into = prandom_u32_state(rnd) % (prandom_u32_state(rnd) % 2 ? unit : PAGE_SIZE) & mask;
		else if (prandom_u32_state(rnd) % 8 == 0 && unit > PAGE_SIZE)
			into = unit / 2;
		if (l->count == 1)
			place = 0;
		p->at = place * unit + into;
		p->len -= into;
		if (i == l->count - 1)
			p->len -= min(prandom_u32_state(rnd) % unit & mask, p->len - 1);
		l->len += p->len;
	}
}

static int prepare(struct kfi_env *env, struct reg_req *req, enum reg_call call,
		   const struct layout *l, u8 *arena)
{
	int i, ret = reg_prepare(env, req, call, arena, PAGE_SIZE, SPLIT_NONE);

	if (ret)
		return ret;
	reg_finish(env, req);
	req->buf = arena + l->pieces[0].at;
	req->len = l->len;
	req->sg = env->sg;
	req->count = l->count;
	sg_init_table(env->sg, l->count);
	for (i = 0; i < l->count; i++) {
		u8 *at = arena + l->pieces[i].at;
		u8 *from = l->far ? arena : PTR_ALIGN_DOWN(at, PAGE_SIZE);

		env->kv[i] = (struct kvec){ at, l->pieces[i].len };
		bvec_set_page(&env->bv[i], virt_to_page(from), l->pieces[i].len, at - from);
		sg_set_page(&env->sg[i], virt_to_page(at), l->pieces[i].len, offset_in_page(at));
	}
	if (!reg_call_in(call, SGL_CALLS))
		return 0;
	ret = env->dma->map_sg(&env->domain->fid, env->sg, l->count, DMA_BIDIRECTIONAL);
	if (ret < 0)
		return ret;
	req->mapped = l->count;
	req->count = ret;
	return 0;
}

/* The peer reaches the pieces one after the other, and nothing else. */
static void check(struct kfi_test *t, const struct kfid_mr *mr, const struct layout *l, u8 *arena,
		  size_t size, u8 *model)
{
	struct kfi_env *env = t->env;
	size_t done = 0;
	int i;

	/* All that a peer sees of where the memory is. */
	EXPECT_EQ(t, mr->iova % SZ_4M, l->pieces[0].at % PAGE_SIZE);
	pattern(arena, size, 3);
	pattern(model, size, 3);
	memset(env->scratch, 0, l->len);
	EXPECT_EQ(t, kfi_peer_read(env->peer, mr->iova, mr->key, env->scratch, l->len), 0);
	for (i = 0; i < l->count; i++) {
		EXPECT(t, !memcmp(env->scratch + done, arena + l->pieces[i].at, l->pieces[i].len),
		       "the peer read other bytes than piece %d has", i);
		done += l->pieces[i].len;
	}
	pattern(env->scratch, l->len, 1234);
	EXPECT_EQ(t, kfi_peer_write(env->peer, mr->iova, mr->key, env->scratch, l->len), 0);
	for (i = 0, done = 0; i < l->count; done += l->pieces[i++].len)
		memcpy(model + l->pieces[i].at, env->scratch + done, l->pieces[i].len);
	EXPECT(t, !memcmp(arena, model, size), "the peer wrote other bytes");
	/* Of a page at either end only what is the region's. */
	EXPECT_EQ(t, kfi_peer_read(env->peer, mr->iova - 1, mr->key, env->scratch, 1), -EACCES);
	EXPECT_EQ(t, kfi_peer_write(env->peer, mr->iova + l->len, mr->key, env->scratch, 1),
		  -EACCES);
	EXPECT(t, !memcmp(arena, model, size), "a refused write changed bytes");
}

static void one_round(struct kfi_test *t, struct rnd_state *rnd, u8 *model)
{
	u8 *arena = t->env->arena[MEM_PAGES];
	size_t size = rounddown_pow_of_two(t->env->max_pages) * PAGE_SIZE;
	unsigned int failures = t->failures;
	struct reg_req req;
	struct layout l;
	struct kfid_mr *mr;

	choose(&l, size, rnd);
	if (reg_call_in(t->variant, BUF_CALLS))
		l = (struct layout){ .pieces = { l.pieces[0] }, .count = 1, .len = l.pieces[0].len };
	if (!EXPECT_EQ(t, prepare(t->env, &req, t->variant, &l, arena), 0))
		return;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		check(t, mr, &l, arena, size, model);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	reg_finish(t->env, &req);
	if (t->failures > failures)
		ktap_note("above: %d pieces, the first at %#zx, %zu bytes, the last at %#zx",
			  l.count, l.pieces[0].at, l.len, l.pieces[l.count - 1].at);
}

static void run(struct kfi_test *t)
{
	u8 *model = vmalloc(t->env->arena_size);
	struct rnd_state rnd;
	int i;

	prandom_seed_state(&rnd, kfi_seed + t->variant);
	if (!EXPECT(t, model, "no memory"))
		return;
	for (i = 0; i < scaled(ROUNDS) && !t->failures; i++) {
		one_round(t, &rnd, model);
		cond_resched();
	}
	vfree(model);
}

/* A driver that takes no larger pages gets small ones; one that takes none has failed. */
static void falls_back(struct kfi_test *t)
{
	struct layout l = { .pieces = { { 0, 64 * PAGE_SIZE } }, .count = 1,
			    .len = 64 * PAGE_SIZE };
	u8 *model = vmalloc(t->env->arena_size);
	u8 *arena = t->env->arena[MEM_PAGES];
	struct reg_req req;
	struct kfid_mr *mr;

	if (t->env->max_pages < 64 || !has_larger_pages(t->env->dev)) {
		vfree(model);
		return ktap_skip(t, "regions have small pages only");
	}
	if (!EXPECT(t, model, "no memory") ||
	    !EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		goto out;
	if (EXPECT_EQ(t, prepare(t->env, &req, t->variant, &l, arena), 0)) {
		kfi_inject_fail(KFI_INJECT_MAP_MR_SG, -EINVAL, 0, 1);
		if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
			EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_MAP_MR_SG), 2);
			check(t, mr, &l, arena, 65 * PAGE_SIZE, model);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
		kfi_inject_fail(KFI_INJECT_MAP_MR_SG, -EINVAL, 0, UINT_MAX);
		EXPECT_EQ(t, reg_submit(&req, &mr), -KFI_EIO);
		kfi_inject_fail(KFI_INJECT_MAP_MR_SG, 0, 0, 0);
		if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
			check(t, mr, &l, arena, 65 * PAGE_SIZE, model);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
		reg_finish(t->env, &req);
	}
	kfi_inject_stop(t->env->dev);
out:
	vfree(model);
}

static const struct kfi_case cases[] = {
	{ .name = "pieces", .run = run, .variants = ALL_CALLS },
	{ .name = "falls_back", .run = falls_back, .variants = BIT(REG) | BIT(REGBV) | BIT(REGSGL) },
};

const struct kfi_suite suite_contiguous = {
	.name = "contiguous",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
};
