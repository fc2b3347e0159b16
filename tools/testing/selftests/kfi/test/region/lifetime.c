// SPDX-License-Identifier: GPL-2.0
/*
 * From the return of a registration to somewhere inside kfi_close() a key is good, and never
 * outside; what else a region tells about itself.
 */
#include <linux/delay.h>

#include "request.h"
#include "suites.h"
#include "workers.h"

#define LEN	(PAGE_SIZE + 50)
#define INTO_PAGE	72

static void after_close_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	struct reg_req req;
	struct kfid_mr *mr;
	u64 key, iova;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		key = mr->key;
		iova = mr->iova;
		check_region(t, mr, mem, LEN);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		check_refused(t, iova, key, mem, LEN);
	}
	reg_finish(t->env, &req);
}

/* The fields of a region, whatever call made it. */
static void fields_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	struct reg_req req;
	struct kfid_mr *mr;
	int context;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return;
	req.context = &context;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		EXPECT_EQ(t, mr->fid.fclass, KFI_CLASS_MR);
		EXPECT(t, mr->fid.context == &context, "the context is another one");
		EXPECT(t, kfi_mr_key(mr) == mr->key, "two keys");
		EXPECT(t, mr->key != KFI_KEY_NOTAVAIL, "no key");
		EXPECT(t, kfi_mr_desc(mr) == mr->mem_desc, "two descriptors");
		EXPECT(t, t->env->verbs->get_lkey(mr), "no lkey");
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	reg_finish(t->env, &req);
}

/* The provider chooses keys: the requested one is neither an error nor what comes out. */
static void requested_key_case(struct kfi_test *t)
{
	static const u64 asked[] = { 0, 1, 0x1234, U32_MAX, U64_MAX, 0x1234 };
	struct kfid_mr *mr[ARRAY_SIZE(asked)] = {};
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	struct reg_req req;
	int i, j;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return;
	for (i = 0; i < ARRAY_SIZE(asked); i++) {
		req.key = asked[i];
		if (!EXPECT_EQ(t, reg_submit(&req, &mr[i]), 0))
			break;
		check_region(t, mr[i], mem, LEN);
		for (j = 0; j < i; j++)
			EXPECT(t, mr[j]->key != mr[i]->key, "a key was given twice");
	}
	while (i-- > 0)
		EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
	reg_finish(t->env, &req);
}

/* One region at a time, so that the provider reuses what it has: the first key never comes back. */
static void recycled_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	unsigned int i, n = max(scaled(300), 300u);
	u64 first_key = 0, first_iova = 0, last_key = 0;
	struct kfid_mr *mr;

	for (i = 0; i < n && !t->failures; i++) {
		if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr), 0))
			return;
		EXPECT(t, i == 0 || mr->key != first_key, "round %u has the first key", i);
		EXPECT(t, i == 0 || mr->key != last_key, "round %u has the key of the last", i);
		last_key = mr->key;
		if (!i) {
			first_key = mr->key;
			first_iova = mr->iova;
			check_region(t, mr, mem, LEN);
		} else {
			EXPECT_EQ(t, kfi_peer_read(t->env->peer, first_iova, first_key,
						   t->env->scratch, LEN), -EACCES);
			/* Also at the address that this round's region has, and to write. */
			if (i % 16 == 1)
				check_refused(t, mr->iova, first_key, mem, 16);
		}
		if (i == n - 1)
			check_region(t, mr, mem, LEN);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	check_refused(t, first_iova, first_key, mem, LEN);
}

/* The same memory, registered again and again: each key works until its own close. */
static void overlapping_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, INTO_PAGE);
	struct kfid_mr *mr[16];
	int i, j, n;

	for (n = 0; n < ARRAY_SIZE(mr); n++)
		if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr[n]), 0))
			break;
	for (i = 0; i < n; i++) {
		u64 key = mr[i]->key, iova = mr[i]->iova;

		check_region(t, mr[i], mem, LEN);
		EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
		check_refused(t, iova, key, mem, LEN);
		for (j = i + 1; j < n; j++)
			EXPECT(t, mr[j]->key != key, "two open regions have one key");
	}
}

/* A peer that has a key may invalidate it: then the key is dead and the close goes well. */
static void remote_invalidate_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	struct kfid_mr *mr;
	u64 key, iova;
	int round, ret;

	for (round = 0; round < 3; round++) {
		if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr), 0))
			return;
		key = mr->key;
		iova = mr->iova;
		check_region(t, mr, mem, LEN);
		ret = kfi_peer_send_inv(t->env->peer, key);
		if (EXPECT_EQ(t, ret, 0))
			check_refused(t, iova, key, mem, LEN);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		check_refused(t, iova, key, mem, LEN);
	}
	if (EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr), 0)) {
		check_region(t, mr, mem, LEN);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
}

/* An open object keeps its parent open, and a refused close changes nothing. */
static void busy_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	struct kfid_mr *mr;

	EXPECT_EQ(t, kfi_close(&t->env->fabric->fid), -KFI_EBUSY);
	if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr), 0))
		return;
	EXPECT_EQ(t, kfi_close(&t->env->domain->fid), -KFI_EBUSY);
	EXPECT_EQ(t, kfi_close(&t->env->fabric->fid), -KFI_EBUSY);
	check_region(t, mr, mem, LEN);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr), 0)) {
		check_region(t, mr, mem, LEN);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
}

/*
 * A close comes right behind a registration, while the provider may still be busy with making
 * itself ready for the next one: that is its own affair and no reason to refuse.
 */
static void close_at_once_case(struct kfi_test *t)
{
	struct workers *ws = workers_start(t, 2, WORKER_PAGES, 0, worker_register, NULL);
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	struct kfid_domain *domain;
	unsigned int i, j;
	struct kfid_mr *mr;

	for (i = 0; i < scaled(100) && !t->failures; i++) {
		if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &domain, NULL), 0))
			break;
		for (j = 0; j < i % 12; j++) {
			if (!EXPECT_EQ(t, kfi_mr_reg(domain, mem, LEN, KFI_REMOTE, 0, 0, 0, &mr,
						     NULL), 0))
				break;
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
		if (!EXPECT_EQ(t, kfi_close(&domain->fid), 0)) {
			/* Give it time, so that only this test fails. */
			msleep(500);
			EXPECT_EQ(t, kfi_close(&domain->fid), 0);
		}
	}
	workers_stop(t, ws);
}

/* Keys belong to their domain: another one of the same device doesn't know them. */
static void other_domain_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	struct kfid_domain *domain;
	struct kfi_peer *peer;
	struct kfid_mr *mr;

	if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &domain, NULL), 0))
		return;
	peer = kfi_peer_open(domain);
	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(peer), 0))
		goto out;
	if (EXPECT_EQ(t, kfi_mr_reg(domain, mem, LEN, KFI_REMOTE, 0, 0, 0, &mr, NULL), 0)) {
		EXPECT_EQ(t, kfi_peer_read(peer, mr->iova, mr->key, t->env->scratch, LEN), 0);
		check_refused(t, mr->iova, mr->key, mem, LEN);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	kfi_peer_close(peer);
out:
	EXPECT_EQ(t, kfi_close(&domain->fid), 0);
}

/* A domain doesn't close while others have queue pairs on its protection domain. */
static void peer_busy_case(struct kfi_test *t)
{
	struct kfid_domain *domain;
	struct kfi_peer *peer;

	if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &domain, NULL), 0))
		return;
	peer = kfi_peer_open(domain);
	if (EXPECT_EQ(t, PTR_ERR_OR_ZERO(peer), 0)) {
		/* Should it close, then there is no way to close the peer any more. */
		if (!EXPECT_EQ(t, kfi_close(&domain->fid), -KFI_EBUSY))
			return;
		kfi_peer_close(peer);
	}
	EXPECT_EQ(t, kfi_close(&domain->fid), 0);
}

static const struct kfi_case cases[] = {
	{ "after_close", after_close_case, ALL_CALLS },
	{ "fields", fields_case, ALL_CALLS },
	{ "requested_key", requested_key_case, ALL_CALLS },
	{ "recycled", recycled_case },
	{ "overlapping", overlapping_case },
	{ "remote_invalidate", remote_invalidate_case },
	{ "busy", busy_case },
	{ "close_at_once", close_at_once_case },
	{ "peer_busy", peer_busy_case },
	{ "other_domain", other_domain_case },
};

const struct kfi_suite suite_lifetime = {
	.name = "lifetime",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
};
