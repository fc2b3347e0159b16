// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_mr_refresh(): other pages behind the same addresses, and from then on behind the same key.
 *
 * Pages come and go at an address by vmap(): what is unmapped there is not freed, and the next
 * mapping gets the address again, or sooner or later does.
 */
#include "request.h"
#include "suites.h"

#define PAGES		6
#define INTO_PAGE	200
#define LEN		((PAGES - 1) * PAGE_SIZE - 300)
#define TRIES		500

/**
 * struct place - an address with one or the other set of pages behind it
 * @pages: Both sets.
 * @at: The address; NULL if nothing is mapped there.
 * @first: The address that regions are registered at.
 */
struct place {
	struct page *pages[2][PAGES];
	void *at;
	void *first;
};

static bool alloc_pages_of(struct place *p)
{
	int i, j;

	for (i = 0; i < 2; i++)
		for (j = 0; j < PAGES; j++) {
			p->pages[i][j] = alloc_page(GFP_KERNEL);
			if (!p->pages[i][j])
				return false;
		}
	return true;
}

static void place_close(struct place *p)
{
	int i, j;

	vunmap(p->at);
	for (i = 0; i < 2; i++)
		for (j = 0; j < PAGES; j++)
			if (p->pages[i][j])
				__free_page(p->pages[i][j]);
	kfree(p);
}

static struct place *place_open(struct kfi_test *t)
{
	struct place *p = kzalloc_obj(*p);

	if (!EXPECT(t, p, "no memory"))
		return NULL;
	if (EXPECT(t, alloc_pages_of(p), "no memory")) {
		p->at = vmap(p->pages[0], PAGES, VM_MAP, PAGE_KERNEL);
		p->first = p->at;
		if (EXPECT(t, p->at, "no mapping"))
			return p;
	}
	place_close(p);
	return NULL;
}

static void unmap(struct place *p)
{
	vunmap(p->at);
	p->at = NULL;
	/* Addresses that are not in use any more may be given out again. */
	vm_unmap_aliases();
}

/* Map set @i at the place's address. Skips the case if the kernel never gives it. */
static bool map_again(struct kfi_test *t, struct place *p, int i)
{
	void **others = kvcalloc(TRIES, sizeof(*others), GFP_KERNEL);
	int n = 0;

	if (!EXPECT(t, others, "no memory"))
		return false;
	if (p->at)
		unmap(p);
	/*
	 * Each wrong address is kept until the end, so that it doesn't come again. The right one
	 * may lie with another processor's, until it gets to all of them.
	 */
	for (; n < TRIES; vm_unmap_aliases()) {
		p->at = vmap(p->pages[i], PAGES, VM_MAP, PAGE_KERNEL);
		if (!p->at || p->at == p->first)
			break;
		others[n++] = p->at;
		p->at = NULL;
	}
	while (n--)
		vunmap(others[n]);
	kvfree(others);
	if (!p->at)
		ktap_skip(t, "the kernel didn't give the same address to another mapping");
	return p->at;
}

static u8 *start(struct place *p)
{
	return (u8 *)p->first + INTO_PAGE;
}

/* Does set @i hold the pattern? It is looked at by another mapping. */
static bool set_is(struct kfi_test *t, struct place *p, int i, unsigned int shift)
{
	u8 *view = vmap(p->pages[i], PAGES, VM_MAP, PAGE_KERNEL);
	bool is;

	if (!EXPECT(t, view, "no mapping"))
		return false;
	is = pattern_is(view, PAGES * PAGE_SIZE, shift);
	vunmap(view);
	return is;
}

static void fill(struct kfi_test *t, struct place *p, int i, unsigned int shift)
{
	u8 *view = vmap(p->pages[i], PAGES, VM_MAP, PAGE_KERNEL);

	if (EXPECT(t, view, "no mapping"))
		pattern(view, PAGES * PAGE_SIZE, shift);
	vunmap(view);
}

static int refresh_all(struct kfid_mr *mr)
{
	return kfi_mr_refresh(mr, NULL, 0, 0);
}

/* Key, base and length are what they were, the new pages are reached, the old ones are not. */
static void new_pages_case(struct kfi_test *t)
{
	u8 *beside = arena_at(t->env, MEM_KMALLOC, 40);
	struct place *p = place_open(t);
	struct kfid_mr *mr, *other;
	u64 key, iova;

	if (!p)
		return;
	if (!EXPECT_EQ(t, reg_simple(t->env, start(p), LEN, KFI_REMOTE, &mr), 0))
		goto out;
	if (!EXPECT_EQ(t, reg_simple(t->env, beside, LEN, KFI_REMOTE, &other), 0))
		goto close;
	key = mr->key;
	iova = mr->iova;
	check_region(t, mr, start(p), LEN);

	if (!map_again(t, p, 1))
		goto close_other;
	fill(t, p, 0, 11);
	fill(t, p, 1, 22);
	/* Nobody has said so yet: the region is still what it was. */
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, iova, key, t->env->scratch, LEN), 0);
	EXPECT(t, pattern_is(t->env->scratch, LEN, 11 + INTO_PAGE), "not the old pages");

	EXPECT_EQ(t, refresh_all(mr), 0);
	EXPECT(t, mr->key == key && kfi_mr_key(mr) == key, "another key");
	EXPECT(t, mr->iova == iova, "another base");
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, iova, key, t->env->scratch, LEN), 0);
	EXPECT(t, pattern_is(t->env->scratch, LEN, 22 + INTO_PAGE), "not the new pages");
	check_region(t, mr, start(p), LEN);
	EXPECT(t, set_is(t, p, 0, 11), "the old pages were reached");
	/* Neither longer nor shorter than it was. */
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, iova + LEN, key, t->env->scratch, 1), -EACCES);
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, iova - 1, key, t->env->scratch, 1), -EACCES);
	check_region(t, other, beside, LEN);
close_other:
	EXPECT_EQ(t, kfi_close(&other->fid), 0);
close:
	key = mr->key;
	iova = mr->iova;
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (p->at)
		check_refused(t, iova, key, start(p), LEN);
out:
	place_close(p);
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
	struct place *p = place_open(t);
	struct kfid_mr *mr;
	u64 key;

	if (!p)
		return;
	if (!EXPECT_EQ(t, reg_simple(t->env, start(p), LEN, KFI_REMOTE, &mr), 0))
		goto out;
	key = mr->key;
	for (i = 1; i <= n && !t->failures; i++) {
		if (i % 10 == 1 && !map_again(t, p, i / 10 % 2))
			break;
		EXPECT_EQ(t, refresh_all(mr), 0);
		EXPECT(t, mr->key == key, "another key in round %u", i);
		if (i % 50 == 1)
			check_region(t, mr, start(p), LEN);
	}
	if (p->at)
		check_region(t, mr, start(p), LEN);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
out:
	place_close(p);
}

/* Nothing is mapped there: refused, and the region is what it was. */
static void nothing_there_case(struct kfi_test *t)
{
	struct place *p = place_open(t);
	struct kfid_mr *mr;

	if (!p)
		return;
	if (!EXPECT_EQ(t, reg_simple(t->env, start(p), LEN, KFI_REMOTE, &mr), 0))
		goto out;
	unmap(p);
	fill(t, p, 0, 33);
	EXPECT_EQ(t, refresh_all(mr), -KFI_EFAULT);
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, mr->iova, mr->key, t->env->scratch, LEN), 0);
	EXPECT(t, pattern_is(t->env->scratch, LEN, 33 + INTO_PAGE), "not the old pages");
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
out:
	place_close(p);
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

static const struct kfi_case cases[] = {
	{ "new_pages", new_pages_case },
	{ "rights", rights_case },
	{ "many_times", many_times_case },
	{ "nothing_there", nothing_there_case },
	{ "parts", parts_case },
	{ "calls", calls_case, ALL_CALLS },
};

const struct kfi_suite suite_refresh = {
	.name = "refresh",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
};
