// SPDX-License-Identifier: GPL-2.0
/*
 * The rights of a peer to a region: exactly those that it was registered with, exactly within its
 * bounds, by its own key only.
 */
#include "request.h"
#include "suites.h"

#define LEN	(2 * PAGE_SIZE + 300)
#define INTO_PAGE	200

/* Combinations of rights; each bit of a variant stands for one. */
static const u64 rights[] = {
	KFI_REMOTE_READ,
	KFI_REMOTE_WRITE,
	KFI_REMOTE_READ | KFI_REMOTE_WRITE,
	KFI_SEND,
	KFI_RECV,
	KFI_READ,
	KFI_WRITE,
	KFI_SEND | KFI_RECV | KFI_READ | KFI_WRITE,
	KFI_REMOTE_READ | KFI_RECV,
	KFI_REMOTE_READ | KFI_READ,
	KFI_REMOTE_READ | KFI_SEND | KFI_WRITE,
	KFI_REMOTE_WRITE | KFI_SEND,
	KFI_REMOTE_WRITE | KFI_RECV | KFI_READ,
	KFI_REMOTE | KFI_SEND | KFI_RECV | KFI_READ | KFI_WRITE,
	0,
};

static const char *rights_name(unsigned int variant)
{
	static const char *const names[] = {
		"remote_read", "remote_write", "remote", "send", "recv", "read", "write", "local",
		"remote_read_recv", "remote_read_read", "remote_read_send_write",
		"remote_write_send", "remote_write_recv_read", "all", "none",
	};

	return names[variant];
}

/* Each of read, write and atomic works if and only if the region's rights say so. */
static void expect_rights(struct kfi_test *t, struct kfid_mr *mr, u8 *mem, u64 access)
{
	struct kfi_env *env = t->env;
	bool may_read = access & KFI_REMOTE_READ, may_write = access & KFI_REMOTE_WRITE;

	pattern(mem - GUARD, LEN + 2 * GUARD, 3);
	EXPECT_EQ(t, kfi_peer_read(env->peer, mr->iova, mr->key, env->scratch, LEN),
		  may_read ? 0 : -EACCES);
	if (may_read)
		EXPECT(t, pattern_is(env->scratch, LEN, 3 + GUARD), "the peer read other bytes");

	pattern(env->scratch, LEN, 8);
	EXPECT_EQ(t, kfi_peer_write(env->peer, mr->iova, mr->key, env->scratch, LEN),
		  may_write ? 0 : -EACCES);
	EXPECT(t, pattern_is(mem, LEN, may_write ? 8 : 3 + GUARD),
	       may_write ? "the peer's write is not there" : "a refused write changed bytes");
	EXPECT(t, pattern_is(mem - GUARD, GUARD, 3), "bytes before the region changed");

	/* The domain was not opened for atomic operations. */
	EXPECT_EQ(t, kfi_peer_fetch_add(env->peer, mr->iova, mr->key, 1, NULL), -EACCES);
	EXPECT(t, pattern_is(mem, LEN, may_write ? 8 : 3 + GUARD), "an atomic changed bytes");
}

static void access_case(struct kfi_test *t)
{
	u64 access = rights[t->variant];
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	enum reg_call call;

	for (call = 0; call < REG_CALLS; call++) {
		struct reg_req req;
		struct kfid_mr *mr;

		if (!EXPECT_EQ(t, reg_prepare(t->env, &req, call, mem, LEN, PAGE_SIZE), 0))
			return;
		req.access = access;
		if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
			expect_rights(t, mr, mem, access);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
		reg_finish(t->env, &req);
	}
}

/* Accesses that are not wholly inside: from @from on, @len bytes, relative to the region. */
static const struct {
	s64 from;
	size_t len;
} outside[] = {
	{ -1, 1 },			/* the byte before */
	{ -1, 2 },			/* over the beginning */
	{ LEN, 1 },			/* the byte behind */
	{ LEN - 1, 2 },			/* over the end */
	{ 0, LEN + 1 },			/* one byte too long */
	{ -1, LEN + 1 },
	{ -1, LEN + 2 },		/* all of it, and more at both ends */
	{ -INTO_PAGE, INTO_PAGE },		/* the rest of the first page */
	{ LEN, PAGE_SIZE / 2 },		/* the rest of the last page */
	{ -(s64)PAGE_SIZE, 64 },
	{ 64 * PAGE_SIZE, 64 },
	{ -(1LL << 40), 64 },
	{ 1LL << 40, 64 },
};

static void bounds_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	struct kfid_mr *mr;
	int i;

	if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr), 0))
		return;
	for (i = 0; i < ARRAY_SIZE(outside); i++) {
		unsigned int failures = t->failures;

		/* All memory around it is checked, not only what the access is about. */
		pattern(t->env->arena[MEM_KMALLOC], 5 * PAGE_SIZE, i);
		EXPECT_EQ(t, kfi_peer_read(t->env->peer, mr->iova + outside[i].from, mr->key,
					   t->env->scratch, outside[i].len), -EACCES);
		memset(t->env->scratch, 0xee, outside[i].len);
		EXPECT_EQ(t, kfi_peer_write(t->env->peer, mr->iova + outside[i].from, mr->key,
					    t->env->scratch, outside[i].len), -EACCES);
		EXPECT(t, pattern_is(t->env->arena[MEM_KMALLOC], 5 * PAGE_SIZE, i),
		       "a refused write changed bytes");
		if (t->failures > failures && failures < MAX_DIAGNOSES)
			ktap_note("bounds: above: %zu bytes from %lld on", outside[i].len,
				  outside[i].from);
	}
	check_region(t, mr, mem, LEN);
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, mr->iova, mr->key, t->env->scratch, 1), 0);
	EXPECT_EQ(t, kfi_peer_read(t->env->peer, mr->iova + LEN - 1, mr->key, t->env->scratch, 1),
		  0);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
}

/* Neither the memory's own addresses nor other keys lead to it. */
static void other_ways_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	struct kfid_mr *mr;
	int bit;

	if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr), 0))
		return;
	EXPECT(t, mr->iova != (uintptr_t)mem && mr->iova != virt_to_phys(mem),
	       "the region's address is the memory's own");
	check_refused(t, (uintptr_t)mem, mr->key, mem, 64);
	check_refused(t, virt_to_phys(mem), mr->key, mem, 64);
	check_refused(t, 0, mr->key, mem, 64);
	for (bit = 0; bit < 32; bit++)
		check_refused(t, mr->iova, mr->key ^ BIT(bit), mem, 64);
	check_refused(t, mr->iova, 0, mem, 64);
	check_region(t, mr, mem, LEN);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
}

/* A key is good for the region that it was made for, and not for one that is next to it. */
static void neighbour_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_PAGES, 0);
	struct kfid_mr *a, *b;

	if (!EXPECT_EQ(t, reg_simple(t->env, mem, PAGE_SIZE, KFI_REMOTE, &a), 0))
		return;
	if (!EXPECT_EQ(t, reg_simple(t->env, mem + PAGE_SIZE, PAGE_SIZE, KFI_REMOTE, &b), 0))
		goto out;
	EXPECT(t, a->key != b->key, "two open regions have one key");
	check_region(t, a, mem, PAGE_SIZE);
	check_region(t, b, mem + PAGE_SIZE, PAGE_SIZE);
	check_refused(t, a->iova + PAGE_SIZE, a->key, mem + PAGE_SIZE, 64);
	check_refused(t, b->iova - 64, b->key, mem + PAGE_SIZE - 64, 64);
	EXPECT_EQ(t, kfi_close(&b->fid), 0);
out:
	EXPECT_EQ(t, kfi_close(&a->fid), 0);
}

static const struct kfi_case cases[] = {
	{ "access", access_case, GENMASK(ARRAY_SIZE(rights) - 1, 0) },
	{ "bounds", bounds_case },
	{ "other_ways", other_ways_case },
	{ "neighbour", neighbour_case },
};

const struct kfi_suite suite_rights = {
	.name = "rights",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = rights_name,
};
