// SPDX-License-Identifier: GPL-2.0
/*
 * The pool of device regions, where closed ones are used again: that is the way of hardware, and of
 * weak_fence=1. pool.sh loads the provider for each of the suites here.
 *
 * A key's lowest eight bits change from one use of a device region to the next; the rest identifies
 * it. The test reads the pool's content from its file in debugfs.
 */
#include <linux/delay.h>
#include <linux/sizes.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include <kfi_batch_ext.h>

#include "debugfs.h"
#include "kfi_inject.h"
#include "recovery.h"
#include "request.h"
#include "suites.h"

/*
 * Of pool.sh: less than two large regions, but more than a large one and what the cases before it leave in the pool:
 * the 64 regions of a batch, and those that are kept ready, 32 at most.
 */
#define BUDGET	700

#define LINE	24
#define LEN	96

/* A number of the pool's file; -1 if there is none of that name. */
static long figure(struct kfi_test *t, const char *name)
{
	struct ib_pd *pd = t->env->verbs->get_pd(&t->env->domain->fid);
	char path[96];

	if (!EXPECT(t, pd, "no protection domain"))
		return -1;
	snprintf(path, sizeof(path), "kfi_verbs/%s-pd%u/pool", dev_name(&t->env->dev->dev),
		 pd->res.id);
	return debugfs_figure(t, path, name);
}

static bool reg_small(struct kfi_test *t, struct kfid_mr **mr)
{
	return EXPECT_EQ(t, reg_simple(t->env, arena_at(t->env, MEM_PAGES, 0), LEN, KFI_REMOTE, mr),
			 0);
}

static u32 region_of(struct kfid_mr *mr)
{
	return mr->key >> 8;
}

/* Register @n regions, all open at a time, and close them in the same order. */
static bool open_and_close(struct kfi_test *t, unsigned int n, u32 *regions)
{
	struct kfid_mr **mrs = kvcalloc(n, sizeof(*mrs), GFP_KERNEL);
	unsigned int i, failures = t->failures;

	if (!EXPECT(t, mrs, "no memory"))
		return false;
	for (i = 0; i < n && reg_small(t, &mrs[i]); i++)
		if (regions)
			regions[i] = region_of(mrs[i]);
	for (i = 0; i < n && mrs[i]; i++)
		EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0);
	kvfree(mrs);
	return t->failures == failures;
}

static int compare_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* However often few device regions are used, no key comes again. */
static void keys_case(struct kfi_test *t)
{
	unsigned int i, n = 0;
	struct kfid_mr *mr;
	u32 *keys;

	if (!open_and_close(t, 4, NULL))
		return;
	/* More than each can have keys, even if the line gets longer by what is being made ready. */
	n = (figure(t, "kept_1") + 10) * 256;
	keys = kvmalloc_array(n, sizeof(*keys), GFP_KERNEL);
	if (!EXPECT(t, keys, "no memory"))
		return;
	for (i = 0; i < n && reg_small(t, &mr); i++) {
		keys[i] = mr->key;
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	n = i;
	sort(keys, n, sizeof(*keys), compare_u32, NULL);
	for (i = 1; i < n && !t->failures; i++)
		EXPECT(t, keys[i] != keys[i - 1], "the key %#x came twice in %u", keys[i], n);
	kvfree(keys);
}

#define BATCH	64	/* more than are kept ready for those who come for one */
#define BATCHES	260	/* more than a region has keys */

/* Registers and closes a batch. */
static void use_batch(struct kfi_test *t, const struct kfi_mr_attr *attr, struct kfid_mr **mrs, u32 *keys)
{
	struct kfi_batch_ops *ops;
	unsigned int i;
	void *table;

	if (!EXPECT_EQ(t, kfi_open_ops(&t->env->domain->fid, KFI_BATCH_OPS_1, 0, &table, NULL), 0))
		return;
	ops = table;
	if (!EXPECT_EQ(t, ops->regattr_many(&t->env->domain->fid, attr, BATCH, 0, 0, mrs, NULL), 0))
		return;
	for (i = 0; i < BATCH; i++)
		keys[i] = mrs[i]->key;
	EXPECT_EQ(t, ops->close_many(mrs, BATCH, NULL), 0);
}

/* Nor does one of those that are registered together, although they use the device regions of others again. */
static void batch_keys_case(struct kfi_test *t)
{
	struct kvec kv = { arena_at(t->env, MEM_PAGES, 0), LEN };
	struct kfi_mr_attr *attr = kcalloc(BATCH, sizeof(*attr), GFP_KERNEL);
	struct kfid_mr **mrs = kcalloc(BATCH, sizeof(*mrs), GFP_KERNEL);
	u32 *keys = kvcalloc(BATCHES * BATCH, sizeof(*keys), GFP_KERNEL);
	unsigned int i, again = 0;

	if (!EXPECT(t, attr && mrs && keys, "no memory"))
		goto out;
	for (i = 0; i < BATCH; i++)
		attr[i] = (struct kfi_mr_attr) {
			.type = KFI_KVEC, .mr_iov = &kv, .iov_count = 1, .access = KFI_REMOTE,
		};
	for (i = 0; i < BATCHES && !t->failures; i++)
		use_batch(t, attr, mrs, keys + i * BATCH);
	if (t->failures)
		goto out;
	sort(keys, BATCHES * BATCH, sizeof(*keys), compare_u32, NULL);
	for (i = 1; i < BATCHES * BATCH && !t->failures; i++) {
		EXPECT(t, keys[i] != keys[i - 1], "the key %#x came twice", keys[i]);
		again += keys[i] >> 8 == keys[i - 1] >> 8;
	}
	EXPECT(t, again, "no device region was used again");
out:
	kvfree(keys);
	kfree(mrs);
	kfree(attr);
}

/* Device regions leave in the order in which they came: none is used again before the others. */
static void line_case(struct kfi_test *t)
{
	unsigned int i, j, at, last[LINE], next = 0, rounds;
	u32 regions[LINE];
	struct kfid_mr *mr;

	if (!open_and_close(t, LINE, regions))
		return;
	EXPECT(t, figure(t, "kept_1") >= LINE, "not all were kept");
	/* Once around for those before them in line, and then some; eight may be made meanwhile. */
	rounds = 4 * (figure(t, "kept_1") + 8);
	memset(last, 0, sizeof(last));
	for (at = 1; at <= rounds && reg_small(t, &mr); at++) {
		for (i = 0; i < LINE && regions[i] != region_of(mr); i++)
			;
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		if (i == LINE)
			continue;
		EXPECT(t, i == next % LINE, "%u: number %u before %u", at, i, next % LINE);
		EXPECT(t, !last[i] || at - last[i] >= LINE, "used again after %u others",
		       at - last[i] - 1);
		last[i] = at;
		next++;
	}
	for (j = 0; j < LINE; j++)
		EXPECT(t, last[j], "number %u never came again", j);
}

/*
 * A large region is kept when it comes back. But none is made ahead of need if there is no space
 * for two.
 */
static void large_case(struct kfi_test *t)
{
	size_t len = t->env->max_pages * PAGE_SIZE;
	char name[20];
	struct kfid_mr *mr;

	if (!t->env->at_limit)
		return ktap_skip(t, "the device has larger regions than fit in the budget");
	snprintf(name, sizeof(name), "kept_%zu", t->env->max_pages);
	if (!EXPECT_EQ(t, reg_simple(t->env, arena_at(t->env, MEM_VMALLOC, 0), len, KFI_REMOTE,
				     &mr), 0))
		return;
	EXPECT_EQ(t, figure(t, name), -1);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	EXPECT_EQ(t, figure(t, name), 1);
	EXPECT(t, figure(t, "pages") <= BUDGET, "more than the budget");
}

/* As many are kept as the budget allows, and no more, however many were open. */
static void budget_case(struct kfi_test *t)
{
	EXPECT_EQ(t, figure(t, "budget"), BUDGET);
	if (!open_and_close(t, BUDGET + 100, NULL))
		return;
	EXPECT(t, figure(t, "pages") <= BUDGET, "%ld pages", figure(t, "pages"));
	EXPECT(t, figure(t, "pages") > BUDGET / 2, "%ld pages", figure(t, "pages"));
	EXPECT(t, figure(t, "taken") > 0, "none was taken from the pool");
}

/*
 * A region is closed while there is no registration queue and none can be made: it is deregistered, which is counted.
 * As soon as there is one, regions are invalidated again.
 */
static void no_queue_case(struct kfi_test *t)
{
	unsigned int invs, deregs;
	struct kfid_mr *mr, *none;
	u64 key, iova;

	if (!reg_small(t, &mr))
		return;
	key = mr->key;
	iova = mr->iova;
	if (!break_queue(t) || !EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		goto out;
	kfi_inject_fail(KFI_INJECT_CREATE_QP, -ENOMEM, 0, UINT_MAX);
	/* This one finds out that the queue is broken. */
	EXPECT_EQ(t, reg_simple(t->env, arena_at(t->env, MEM_PAGES, 0), LEN, KFI_REMOTE, &none),
		  -KFI_ENOMEM);
	EXPECT_EQ(t, figure(t, "not_invalidated"), 0);
	invs = kfi_inject_calls(KFI_INJECT_POST_INV);
	deregs = kfi_inject_calls(KFI_INJECT_DEREG_MR);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	mr = NULL;
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV), invs);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_DEREG_MR), deregs + 1);
	EXPECT_EQ(t, figure(t, "not_invalidated"), 1);
	kfi_inject_fail(KFI_INJECT_CREATE_QP, 0, 0, 0);
	check_refused(t, iova, key, arena_at(t->env, MEM_PAGES, 0), LEN);
	if (reg_small(t, &mr))
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	mr = NULL;
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV), invs + 1);
	EXPECT_EQ(t, figure(t, "not_invalidated"), 1);
	kfi_inject_stop(t->env->dev);
out:
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
}

static const struct kfi_case line_cases[] = {
	{ "keys", keys_case },
	{ "batch_keys", batch_keys_case },
	{ "line", line_case },
	{ "large", large_case },
	{ "budget", budget_case },
	{ "no_queue", no_queue_case },
};

const struct kfi_suite suite_pool_line = {
	.name = "pool_line",
	.cases = line_cases,
	.count = ARRAY_SIZE(line_cases),
};

/*
 * Regions that nobody needs go back to the device, all of them. However long that takes, it ends.
 */
static void idle_case(struct kfi_test *t)
{
	unsigned int i;

	if (!open_and_close(t, LINE, NULL))
		return;
	for (i = 0; i < 600 && figure(t, "kept"); i++)
		msleep(100);
	EXPECT_EQ(t, figure(t, "kept"), 0);
	EXPECT_EQ(t, figure(t, "pages"), 0);
	EXPECT(t, figure(t, "given_back") >= LINE, "%ld were given back", figure(t, "given_back"));
	open_and_close(t, 3, NULL);
}

static const struct kfi_case idle_cases[] = {
	{ "given_back", idle_case },
};

const struct kfi_suite suite_pool_idle = {
	.name = "pool_idle",
	.cases = idle_cases,
	.count = ARRAY_SIZE(idle_cases),
};

/* Pages backwards, so that each of them is one of the device region's. */
static u8 *map_backwards(struct kfi_test *t, unsigned int count)
{
	u8 *memory = arena_at(t->env, MEM_VMALLOC, 0), *map = NULL;
	struct page **pages = kcalloc(count, sizeof(*pages), GFP_KERNEL);
	unsigned int i;

	if (EXPECT(t, pages, "no memory")) {
		for (i = 0; i < count; i++)
			pages[i] = vmalloc_to_page(memory + (count - 1 - i) * PAGE_SIZE);
		map = vmap(pages, count, VM_MAP, PAGE_KERNEL);
		EXPECT(t, map, "no memory");
	}
	kfree(pages);
	return map;
}

/* Where there is, others are made while the first one is in use, by the way of software too, and are what is used next. */
static void large_ahead_case(struct kfi_test *t)
{
	size_t pages = t->env->max_pages, len = pages * PAGE_SIZE;
	char name[20];
	struct kfid_mr *mr;
	unsigned int i;
	u8 *memory;

	if (pages > 512)
		return ktap_skip(t, "the device has larger regions, of which none is made before");
	memory = map_backwards(t, pages);
	snprintf(name, sizeof(name), "kept_%lu", roundup_pow_of_two(pages));
	if (!memory || !EXPECT_EQ(t, reg_simple(t->env, memory, len, KFI_REMOTE, &mr), 0))
		goto out;
	for (i = 0; i < 600 && figure(t, name) < 1; i++)
		msleep(100);
	EXPECT(t, figure(t, name) >= 1, "none was made");
	EXPECT_EQ(t, figure(t, "taken"), 0);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (!EXPECT_EQ(t, reg_simple(t->env, memory, len, KFI_REMOTE, &mr), 0))
		goto out;
	EXPECT_EQ(t, figure(t, "taken"), 1);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
out:
	vunmap(memory);
}

static const struct kfi_case ahead_cases[] = {
	{ "large_ahead", large_ahead_case },
};

const struct kfi_suite suite_pool_ahead = {
	.name = "pool_ahead",
	.cases = ahead_cases,
	.count = ARRAY_SIZE(ahead_cases),
};

#define APART	100	/* no device region is spent by as many */

/* The provider has large pages where it would need eight small ones. */
#define LARGE	max(SZ_64K, 8 * PAGE_SIZE)

/* Takes a region of @len bytes at @addr, and says which one of the device's it is. */
static u32 use_once(struct kfi_test *t, u8 *addr, size_t len)
{
	struct kfid_mr *mr;
	u32 region;

	if (!EXPECT_EQ(t, reg_simple(t->env, addr, len, KFI_REMOTE, &mr), 0))
		return 0;
	region = region_of(mr);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	return region;
}

/*
 * A device region of large pages is used again for large pages only: rxe frees a table that gets too short at once,
 * and a peer that has come by the key before may be looking there. One of large pages has as many as a region of
 * one small page.
 */
static void apart_case(struct kfi_test *t)
{
	size_t pages = LARGE / PAGE_SIZE;
	u8 *run = PTR_ALIGN(t->env->arena[MEM_PAGES], SZ_64K);
	static u32 large[APART], small[APART], single[APART];
	unsigned int i, j, again = 0;
	u8 *memory;

	if (!has_larger_pages(t->env->dev))
		return ktap_skip(t, "regions have small pages only");
	memory = map_backwards(t, pages);
	if (!memory)
		return;
	for (i = 0; i < APART && !t->failures; i++) {
		large[i] = use_once(t, run, LARGE);
		small[i] = use_once(t, memory, LARGE);
		single[i] = use_once(t, memory, LEN);
		for (j = 0; j <= i; j++) {
			EXPECT(t, large[i] != small[j] && large[j] != small[i],
			       "%u: a region for either", i);
			EXPECT(t, large[i] != single[j] && large[j] != single[i],
			       "%u: a region for large pages and for a small one", i);
			again += j < i && large[i] == large[j];
		}
	}
	EXPECT(t, again, "none of large pages was used again");
	EXPECT(t, figure(t, "kept_large_16") > 0 || pages != 16, "none of large pages is kept");
	EXPECT(t, figure(t, "kept_16") > 0 || pages != 16, "no other is kept");
	vunmap(memory);
}

static const struct kfi_case apart_cases[] = {
	{ "apart", apart_case },
};

const struct kfi_suite suite_pool_large = {
	.name = "pool_large",
	.cases = apart_cases,
	.count = ARRAY_SIZE(apart_cases),
};

static void none_case(struct kfi_test *t)
{
	long missed = figure(t, "missed");

	open_and_close(t, LINE, NULL);
	EXPECT_EQ(t, figure(t, "budget"), 0);
	EXPECT_EQ(t, figure(t, "kept"), 0);
	EXPECT_EQ(t, figure(t, "taken"), 0);
	EXPECT_EQ(t, figure(t, "missed") - missed, LINE);
}

static const struct kfi_case none_cases[] = {
	{ "nothing_kept", none_case },
};

const struct kfi_suite suite_pool_none = {
	.name = "pool_none",
	.cases = none_cases,
	.count = ARRAY_SIZE(none_cases),
};
