// SPDX-License-Identifier: GPL-2.0
/*
 * Raw keys: what a region says, mapped by the other side, leads to the region's bytes and nowhere
 * else. Malformed ones are in bad.c, the calls' arguments in calls.c, many keys in
 * many.c.
 */
#include "raw.h"
#include "request.h"
#include "suites.h"

#define LEN	(PAGE_SIZE + 300)
#define INTO_PAGE	72

/* A region's raw key, mapped in another domain, reaches all of the region and nothing else. */
static void map_and_reach(struct kfi_test *t, const struct raw_side *side, struct kfid_mr *mr,
			  u8 *mem)
{
	u8 raw[KFI_RAW_KEY_SIZE(1)];
	size_t size = sizeof(raw);
	u64 base, key;

	if (!EXPECT_EQ(t, kfi_mr_raw_attr(mr, &base, raw, &size, 0), 0) ||
	    !EXPECT_EQ(t, kfi_mr_map_raw(side->domain, base, raw, size, &key, 0), 0))
		return;
	EXPECT_EQ(t, size, sizeof(raw));
	EXPECT(t, key != KFI_KEY_NOTAVAIL && key & KFI_RAW_KEY_MAPPED, "key %#llx", key);

	pattern(mem - GUARD, LEN + 2 * GUARD, 5);
	memset(t->env->scratch, 0, LEN);
	EXPECT_EQ(t, raw_read(t, side, key, base, LEN), 0);
	EXPECT(t, pattern_is(t->env->scratch, LEN, 5 + GUARD), "the peer read other bytes");
	pattern(t->env->scratch, 100, 9);
	EXPECT_EQ(t, raw_write(t, side, key, base + 200, 100), 0);
	EXPECT(t, pattern_is(mem + 200, 100, 9), "the peer wrote other bytes");
	EXPECT(t, pattern_is(mem - GUARD, GUARD + 200, 5), "bytes before them changed");
	EXPECT(t, pattern_is(mem + 300, LEN - 300 + GUARD, 5 + GUARD + 300),
	       "bytes behind them changed");

	EXPECT_EQ(t, raw_read(t, side, key, base - 1, 1), -KFI_EINVAL);
	EXPECT_EQ(t, raw_read(t, side, key, base + LEN, 1), -KFI_EINVAL);
	EXPECT_EQ(t, raw_read(t, side, key, base + 1, LEN), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_unmap_key(side->domain, key), 0);
	EXPECT_EQ(t, raw_read(t, side, key, base, LEN), -KFI_ENOKEY);
}

static void round_trip_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	struct raw_side side;
	struct reg_req req;
	struct kfid_mr *mr;

	if (!side_open(t, &side))
		return;
	if (EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0)) {
		if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
			map_and_reach(t, &side, mr, mem);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
		reg_finish(t->env, &req);
	}
	side_close(t, &side);
}

/* The base address is the initiator's own choice: with another one it counts from there. */
static void other_base_case(struct kfi_test *t)
{
	static const u64 bases[] = { 0, 1, 0x123456789abcdef, U64_MAX - LEN };
	u8 *mem = arena_at(t->env, MEM_PAGES, INTO_PAGE);
	u8 raw[KFI_RAW_KEY_SIZE(1)];
	size_t size = sizeof(raw);
	struct raw_side side;
	struct kfid_mr *mr;
	u64 base, key;
	int i;

	if (!side_open(t, &side))
		return;
	if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr), 0))
		goto out;
	EXPECT_EQ(t, kfi_mr_raw_attr(mr, &base, raw, &size, 0), 0);
	pattern(mem, LEN, 11);
	for (i = 0; i < ARRAY_SIZE(bases); i++) {
		if (!EXPECT_EQ(t, kfi_mr_map_raw(side.domain, bases[i], raw, size, &key, 0), 0))
			continue;
		EXPECT_EQ(t, raw_read(t, &side, key, bases[i] + 7, LEN - 7), 0);
		EXPECT(t, pattern_is(t->env->scratch, LEN - 7, 11 + 7), "other bytes");
		EXPECT_EQ(t, raw_read(t, &side, key, bases[i] + 7, LEN - 6), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_mr_unmap_key(side.domain, key), 0);
	}
	EXPECT_EQ(t, kfi_mr_map_raw(side.domain, U64_MAX - LEN + 1, raw, size, &key, 0),
		  -KFI_EINVAL);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
out:
	side_close(t, &side);
}

/* Three regions behind one raw key: each access becomes the right parts of the right ones. */
static void split_case(struct kfi_test *t)
{
	static const size_t len[] = { 700, 1, 1000 };
	struct kfi_rma_iov iov[3], part[3];
	struct kfid_mr *mr[3] = {};
	struct raw_side side;
	struct kfi_raw_key *raw = NULL;
	u64 base = 0x5000, key;
	size_t from, n, count;
	u8 *mem[3];
	int i;

	if (!side_open(t, &side))
		return;
	for (i = 0; i < 3; i++) {
		mem[i] = arena_at(t->env, i, 100 * i);
		if (!EXPECT_EQ(t, reg_simple(t->env, mem[i], len[i], KFI_REMOTE, &mr[i]), 0))
			goto out;
		iov[i] = (struct kfi_rma_iov){ mr[i]->iova, len[i], mr[i]->key };
	}
	raw = raw_make(iov, 3);
	if (!EXPECT(t, raw, "out of memory") ||
	    !EXPECT_EQ(t, kfi_mr_map_raw(side.domain, base, (u8 *)raw, KFI_RAW_KEY_SIZE(3), &key,
					 0), 0))
		goto out;
	for (from = 0; from < 1701; from += from < 690 || from > 702 ? 230 : 3) {
		for (n = 1; from + n <= 1701; n += n < 12 ? 1 : 197) {
			for (i = 0; i < 3; i++)
				memset(mem[i], 0, len[i]);
			pattern(t->env->scratch, n, from);
			if (!EXPECT_EQ(t, raw_write(t, &side, key, base + from, n), 0))
				goto unmap;
			memcpy(t->env->scratch, mem[0], 700);
			memcpy(t->env->scratch + 700, mem[1], 1);
			memcpy(t->env->scratch + 701, mem[2], 1000);
			EXPECT(t, !memchr_inv(t->env->scratch, 0, from) &&
			       pattern_is(t->env->scratch + from, n, from) &&
			       !memchr_inv(t->env->scratch + from + n, 0, 1701 - from - n),
			       "other bytes: %zu from %zu on", n, from);
		}
	}
	/* The parts themselves, and how many. */
	count = 2;
	part[0].key = 0x5a;
	EXPECT_EQ(t, raw_resolve(&side, key, base, 1701, part, &count), -KFI_ETOOSMALL);
	EXPECT(t, count == 3 && part[0].key == 0x5a, "%zu parts", count);
	EXPECT_EQ(t, raw_resolve(&side, key, base, 1701, part, &count), 0);
	EXPECT(t, count == 3 && !memcmp(part, iov, sizeof(iov)), "not the pieces themselves");
	count = 0;
	EXPECT_EQ(t, raw_resolve(&side, key, base + 699, 2, NULL, &count), -KFI_ETOOSMALL);
	EXPECT_EQ(t, count, 2);
	count = 1;
	EXPECT_EQ(t, raw_resolve(&side, key, base + 700, 1, part, &count), 0);
	EXPECT(t, count == 1 && !memcmp(part, &iov[1], sizeof(*iov)), "not the middle piece");
unmap:
	EXPECT_EQ(t, kfi_mr_unmap_key(side.domain, key), 0);
out:
	kvfree(raw);
	for (i = 0; i < 3; i++)
		if (mr[i])
			EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
	side_close(t, &side);
}

/* A raw key outlives its region: it can still be mapped, and the target refuses every access. */
static void stale_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	u8 raw[KFI_RAW_KEY_SIZE(1)];
	struct kfi_rma_iov part;
	size_t size = sizeof(raw), count = 1;
	struct raw_side side;
	struct kfid_mr *mr;
	u64 base, before, after;

	if (!side_open(t, &side))
		return;
	if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr), 0))
		goto out;
	EXPECT_EQ(t, kfi_mr_raw_attr(mr, &base, raw, &size, 0), 0);
	EXPECT_EQ(t, kfi_mr_map_raw(side.domain, base, raw, size, &before, 0), 0);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	EXPECT_EQ(t, kfi_mr_map_raw(side.domain, base, raw, size, &after, 0), 0);
	EXPECT(t, before != after, "two mapped keys are one");
	EXPECT_EQ(t, raw_resolve(&side, before, base, LEN, &part, &count), 0);
	check_refused(t, part.addr, part.key, mem, LEN);
	EXPECT_EQ(t, raw_resolve(&side, after, base, LEN, &part, &count), 0);
	check_refused(t, part.addr, part.key, mem, LEN);
	EXPECT_EQ(t, kfi_mr_unmap_key(side.domain, before), 0);
	EXPECT_EQ(t, raw_resolve(&side, before, base, 1, &part, &count), -KFI_ENOKEY);
	EXPECT_EQ(t, raw_resolve(&side, after, base, 1, &part, &count), 0);
	EXPECT_EQ(t, kfi_mr_unmap_key(side.domain, after), 0);
out:
	side_close(t, &side);
}

static const struct kfi_case cases[] = {
	{ "round_trip", round_trip_case, GENMASK(REG_CALLS - 1, 0) },
	{ "fields", raw_fields_case },
	{ "other_base", other_base_case },
	{ "split", split_case },
	{ "stale", stale_case },
	{ "malformed", raw_malformed_case },
	{ "fuzz", raw_fuzz_case },
	{ "limits", raw_limits_case },
	{ "arguments", raw_arguments_case },
	{ "unmap", raw_unmap_case },
	{ "many", raw_many_case },
	{ "threads", raw_threads_case },
};

const struct kfi_suite suite_raw = {
	.name = "raw",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
};
