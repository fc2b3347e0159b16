// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_mr_refresh(): other pages behind the same addresses, and from then on behind the same key.
 * See swap.h for how they get there.
 */
#include "kfi_inject.h"
#include "job.h"
#include "request.h"
#include "suites.h"
#include "swap.h"

#define INTO_PAGE	200
#define LEN		((SWAP_PAGES - 1) * PAGE_SIZE - 300)

static u8 *start(struct swap_area *a)
{
	return a->addr + INTO_PAGE;
}

/* The peer reaches the pages of set @i, all of the region and no byte beside it, and not the others. */
static void expect_set(struct kfi_test *t, struct kfid_mr *mr, struct swap_area *a, int i)
{
	u8 *scratch = t->env->scratch;

	swap_fill(a, i, 11);
	swap_fill(a, !i, 22);
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, mr->iova, mr->key, scratch, LEN), 0);
	EXPECT(t, pattern_is(scratch, LEN, 11 + INTO_PAGE), "the peer read other pages");
	pattern(scratch, LEN, 33);
	EXPECT_EQ(t, kfi_peer_write(t->env->peer, mr->iova, mr->key, scratch, LEN), 0);
	EXPECT(t, swap_is(a, i, INTO_PAGE, LEN, 33), "the peer wrote other pages");
	EXPECT(t, swap_is(a, i, 0, INTO_PAGE, 11), "bytes before the region changed");
	EXPECT(t, swap_is(a, i, INTO_PAGE + LEN, GUARD, 11 + INTO_PAGE + LEN),
	       "bytes behind the region changed");
	EXPECT(t, swap_is(a, !i, 0, SWAP_PAGES * PAGE_SIZE, 22), "the other pages were reached");
	/* Neither longer nor shorter than it was. */
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, mr->iova + LEN, mr->key, scratch, 1), -EACCES);
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, mr->iova - 1, mr->key, scratch, 1), -EACCES);
}

static int refresh_all(struct kfid_mr *mr)
{
	return kfi_mr_refresh(mr, NULL, 0, 0);
}

/* A provider that lacks refreshing refuses it, and the region stays as it is. */
static void refused_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, 72);
	struct kvec part = { .iov_base = mem, .iov_len = 1 };
	struct reg_req req;
	struct kfid_mr *mr;

	if (has_feature(F_REFRESH))
		return ktap_skip(t, "the provider has kfi_mr_refresh");
	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		EXPECT_EQ(t, refresh_all(mr), feature_errno(F_REFRESH));
		EXPECT_EQ(t, kfi_mr_refresh(mr, &part, 1, 0), feature_errno(F_REFRESH));
		check_region(t, mr, mem, LEN);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	reg_finish(t->env, &req);
}

/* Key, base and length are what they were, the new pages are reached, the old ones are not. */
static void new_pages_case(struct kfi_test *t)
{
	u8 *beside = arena_at(t->env, MEM_KMALLOC, 40);
	struct swap_area *a = swap_open(t);
	struct kfid_mr *mr, *other;
	u64 key, iova;

	if (!a)
		return;
	if (!EXPECT_EQ(t, reg_simple(t->env, start(a), LEN, KFI_REMOTE, &mr), 0))
		goto out;
	if (!EXPECT_EQ(t, reg_simple(t->env, beside, LEN, KFI_REMOTE, &other), 0))
		goto close;
	key = mr->key;
	iova = mr->iova;
	expect_set(t, mr, a, 0);
	if (!swap_put(t, a, 1))
		goto close_other;
	/* Nobody has said so yet: the region is still what it was. */
	expect_set(t, mr, a, 0);

	EXPECT_EQ(t, refresh_all(mr), 0);
	EXPECT(t, mr->key == key && kfi_mr_key(mr) == key, "another key");
	EXPECT(t, mr->iova == iova, "another base");
	expect_set(t, mr, a, 1);
	check_region(t, other, beside, LEN);
close_other:
	EXPECT_EQ(t, kfi_close(&other->fid), 0);
close:
	key = mr->key;
	iova = mr->iova;
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	swap_fill(a, 1, 44);
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, iova, key, t->env->scratch, LEN), -EACCES);
	EXPECT_EQ(t, kfi_peer_write(t->env->peer, iova, key, t->env->scratch, LEN), -EACCES);
	EXPECT(t, swap_is(a, 1, 0, SWAP_PAGES * PAGE_SIZE, 44), "a refused write changed bytes");
out:
	swap_close(a);
}

/*
 * While the device is at it, the region is out of reach: neither the old pages nor the new ones can
 * be read or written. Afterwards the new ones can.
 */
static int refresh_job(void *data)
{
	return refresh_all(data);
}

static void meanwhile_case(struct kfi_test *t)
{
	struct swap_area *a = swap_open(t);
	u8 *scratch = t->env->scratch;
	struct kfid_mr *mr;
	struct job job;

	if (!a)
		return;
	if (!EXPECT_EQ(t, reg_simple(t->env, start(a), LEN, KFI_REMOTE, &mr), 0))
		goto out;
	swap_fill(a, 0, 1);
	swap_fill(a, 1, 2);
	if (swap_put(t, a, 1) && EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0)) {
		kfi_inject_hold(KFI_INJECT_POST_REG);
		job_start(t, &job, refresh_job, mr);
		EXPECT(t, kfi_inject_wait_held(KFI_INJECT_POST_REG), "nothing was registered");
		EXPECT_EQ(t, kfi_peer_read(t->env->peer, mr->iova, mr->key, scratch, LEN), -EACCES);
		pattern(scratch, LEN, 3);
		EXPECT_EQ(t, kfi_peer_write(t->env->peer, mr->iova, mr->key, scratch, LEN),
			  -EACCES);
		EXPECT(t, swap_is(a, 0, 0, SWAP_PAGES * PAGE_SIZE, 1), "the old pages were written");
		EXPECT(t, swap_is(a, 1, 0, SWAP_PAGES * PAGE_SIZE, 2), "the new pages were written");
		EXPECT(t, !job_is_done(&job), "the refresh didn't wait");
		kfi_inject_release(KFI_INJECT_POST_REG);
		EXPECT_EQ(t, job_end(t, &job), 0);
		kfi_inject_stop(t->env->dev);
		expect_set(t, mr, a, 1);
	}
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
out:
	swap_close(a);
}

/* Rights are what they were, too. */
static void rights_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 40);
	struct kfid_mr *mr;

	if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE_READ, &mr), 0))
		return;
	EXPECT_EQ(t, refresh_all(mr), 0);
	pattern(mem, LEN, 5);
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, mr->iova, mr->key, t->env->scratch, LEN), 0);
	EXPECT(t, pattern_is(t->env->scratch, LEN, 5), "the peer read other bytes");
	EXPECT_EQ(t, kfi_peer_write(t->env->peer, mr->iova, mr->key, t->env->scratch, LEN),
		  -EACCES);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
}

/* More often than a key can be changed: it is not changed. */
static void many_times_case(struct kfi_test *t)
{
	unsigned int i, n = max(scaled(300), 300u);
	struct swap_area *a = swap_open(t);
	struct kfid_mr *mr;
	u64 key;

	if (!a)
		return;
	if (!EXPECT_EQ(t, reg_simple(t->env, start(a), LEN, KFI_REMOTE, &mr), 0))
		goto out;
	key = mr->key;
	for (i = 1; i <= n && !t->failures; i++) {
		if (!swap_put(t, a, i % 2))
			break;
		EXPECT_EQ(t, refresh_all(mr), 0);
		EXPECT(t, mr->key == key, "another key in round %u", i);
		if (i % 50 == 1 || i == n)
			expect_set(t, mr, a, i % 2);
	}
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
out:
	swap_close(a);
}

/* Nothing is mapped there: refused, and the region is what it was. */
static void nothing_there_case(struct kfi_test *t)
{
	struct swap_area *a = swap_open(t);
	struct kfid_mr *mr;

	if (!a)
		return;
	if (EXPECT_EQ(t, reg_simple(t->env, start(a), LEN, KFI_REMOTE, &mr), 0)) {
		if (swap_take_away(t, a)) {
			EXPECT_EQ(t, refresh_all(mr), -KFI_EFAULT);
			expect_set(t, mr, a, 0);
			/* And it can be, once something is there. */
			if (swap_put(t, a, 1)) {
				EXPECT_EQ(t, refresh_all(mr), 0);
				expect_set(t, mr, a, 1);
			}
		}
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	swap_close(a);
}

/* Which parts may be named: what lies in one of the ranges that were registered. */
static void parts_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 0);
	struct kvec list[] = {
		{ .iov_base = mem, .iov_len = 2 * PAGE_SIZE },
		{ .iov_base = mem + 4 * PAGE_SIZE, .iov_len = 100 },
	};
	const struct {
		struct kvec part;
		int want;
	} rows[] = {
		{ { mem, 2 * PAGE_SIZE }, 0 },
		{ { mem + 5, 1 }, 0 },
		{ { mem + 2 * PAGE_SIZE - 1, 1 }, 0 },
		{ { mem + 4 * PAGE_SIZE, 100 }, 0 },
		{ { mem - 1, 2 }, -KFI_EINVAL },
		{ { mem, 2 * PAGE_SIZE + 1 }, -KFI_EINVAL },
		{ { mem + 2 * PAGE_SIZE, 1 }, -KFI_EINVAL },
		{ { mem + 3 * PAGE_SIZE, PAGE_SIZE }, -KFI_EINVAL },
		{ { mem + 4 * PAGE_SIZE, 101 }, -KFI_EINVAL },
		{ { mem, 4 * PAGE_SIZE + 100 }, -KFI_EINVAL },
		{ { mem, 0 }, -KFI_EINVAL },
		{ { NULL, 1 }, -KFI_EINVAL },
		{ { mem, SIZE_MAX }, -KFI_EINVAL },
		{ { t->env->arena[MEM_KMALLOC], 1 }, -KFI_EINVAL },
	};
	struct kfid_mr *mr;
	int i;

	if (!EXPECT_EQ(t, kfi_mr_regv(t->env->domain, list, 2, KFI_REMOTE, 0, 0, 0, &mr, NULL), 0))
		return;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct kvec both[] = { list[0], rows[i].part };
		int ret = kfi_mr_refresh(mr, &rows[i].part, 1, 0);

		EXPECT(t, ret == rows[i].want, "row %d: %d", i, ret);
		ret = kfi_mr_refresh(mr, both, 2, 0);
		EXPECT(t, ret == rows[i].want, "row %d with a good part: %d", i, ret);
	}
	EXPECT_EQ(t, kfi_mr_refresh(mr, list, 2, 0), 0);
	EXPECT_EQ(t, kfi_mr_refresh(mr, list, 0, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_refresh(mr, NULL, 1, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_refresh(mr, list, 2, 1), -KFI_EBADFLAGS);
	pattern(mem, 2 * PAGE_SIZE, 8);
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, mr->iova, mr->key, t->env->scratch,
				   2 * PAGE_SIZE + 100), 0);
	EXPECT(t, pattern_is(t->env->scratch, 2 * PAGE_SIZE, 8), "the peer read other bytes");
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
}

/* Regions of kvecs can be refreshed, whichever call made them, others can't. */
static void calls_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, 72);
	bool can = reg_call_in(t->variant, BUF_CALLS | KVEC_CALLS);
	struct reg_req req;
	struct kfid_mr *mr;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		EXPECT_EQ(t, refresh_all(mr), can ? 0 : -KFI_ENOSYS);
		check_region(t, mr, mem, LEN);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	reg_finish(t->env, &req);
}

/* Cases of what the provider may lack: skipped then. */
#define REFRESHES(_name)					\
	static void _name##_if_offered(struct kfi_test *t)	\
	{							\
		if (needs_feature(t, F_REFRESH))		\
			_name##_case(t);			\
	}

REFRESHES(new_pages)
REFRESHES(meanwhile)
REFRESHES(rights)
REFRESHES(many_times)
REFRESHES(nothing_there)
REFRESHES(parts)
REFRESHES(calls)

static const struct kfi_case cases[] = {
	{ "new_pages", new_pages_if_offered },
	{ "meanwhile", meanwhile_if_offered },
	{ "rights", rights_if_offered },
	{ "many_times", many_times_if_offered },
	{ "nothing_there", nothing_there_if_offered },
	{ "parts", parts_if_offered },
	{ "calls", calls_if_offered, ALL_CALLS },
	{ "refused", refused_case, ALL_CALLS },
};

const struct kfi_suite suite_refresh = {
	.name = "refresh",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
};
