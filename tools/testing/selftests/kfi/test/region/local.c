// SPDX-License-Identifier: GPL-2.0
/*
 * The local half of a region: it is named in work requests of its own side, by its local key or its
 * descriptor, with the rights for that and without.
 */
#include "request.h"
#include "suites.h"

#define LEN	(2 * PAGE_SIZE + 300)
#define INTO_PAGE	200

/* The rights that regions are registered with; each bit of a variant stands for one. */
static const u64 rights[] = {
	KFI_SEND,
	KFI_RECV,
	KFI_READ,
	KFI_WRITE,
	KFI_REMOTE_READ,
	KFI_REMOTE_WRITE,
	KFI_SEND | KFI_WRITE | KFI_REMOTE_READ,
	KFI_SEND | KFI_RECV | KFI_READ | KFI_WRITE,
};

static const char *rights_name(unsigned int variant)
{
	static const char *const names[] = {
		"send", "recv", "read", "write", "remote_read", "remote_write", "all_source",
		"all_local",
	};

	return names[variant];
}

#define ALL_RIGHTS	GENMASK(ARRAY_SIZE(rights) - 1, 0)

/* Whether the device writes to the region, for which verbs has one right. */
static bool is_sink(enum kfi_peer_local op)
{
	return op == KFI_PEER_LOCAL_RECV || op == KFI_PEER_LOCAL_READ;
}

static bool device_may_write(u64 access)
{
	return access & (KFI_RECV | KFI_READ | KFI_REMOTE_WRITE);
}

/* The other side's bytes arrive in the region, or they are refused and nothing changes. */
static void sink(struct kfi_test *t, struct kfid_mr *mr, u32 lkey, u8 *mem, u64 access)
{
	const enum kfi_peer_local *op = t->c->data;
	u8 *other = t->env->scratch;
	bool may = device_may_write(access);

	pattern(mem - GUARD, LEN + 2 * GUARD, 3);
	pattern(other, LEN, 8);
	EXPECT_EQ(t, kfi_peer_local(t->env->peer, *op, mr->iova, lkey, other, LEN),
		  may ? 0 : -EACCES);
	EXPECT(t, pattern_is(mem, LEN, may ? 8 : 3 + GUARD),
	       may ? "other bytes are in the region" : "a refused request changed bytes");
	EXPECT(t, pattern_is(mem - GUARD, GUARD, 3), "bytes before the region changed");
	EXPECT(t, pattern_is(mem + LEN, GUARD, 3 + GUARD + LEN), "bytes behind the region changed");
}

/* The region's bytes arrive at the other side, whatever its rights: reading at this side needs none. */
static void source(struct kfi_test *t, struct kfid_mr *mr, u32 lkey, u8 *mem)
{
	const enum kfi_peer_local *op = t->c->data;
	u8 *other = t->env->scratch;
	int ret;

	pattern(mem - GUARD, LEN + 2 * GUARD, 5);
	memset(other, 0, LEN);
	ret = kfi_peer_local(t->env->peer, *op, mr->iova, lkey, other, LEN);
	EXPECT_EQ(t, ret, 0);
	EXPECT(t, pattern_is(other, LEN, 5 + GUARD), "the other side has other bytes");
	EXPECT(t, pattern_is(mem - GUARD, LEN + 2 * GUARD, 5), "the region changed");
}

static void use(struct kfi_test *t, struct kfid_mr *mr, u32 lkey, u8 *mem, u64 access)
{
	const enum kfi_peer_local *op = t->c->data;

	if (is_sink(*op))
		sink(t, mr, lkey, mem, access);
	else
		source(t, mr, lkey, mem);
}

/* Nothing outside of the region is in reach of its key, and afterwards nothing at all is. */
static void outside(struct kfi_test *t, u64 iova, u32 lkey, u8 *mem, bool closed)
{
	const enum kfi_peer_local *op = t->c->data;
	u8 *other = t->env->scratch;

	pattern(mem - GUARD, LEN + 2 * GUARD, 6);
	pattern(other, LEN + 1, 9);
	EXPECT_EQ(t, kfi_peer_local(t->env->peer, *op, iova, lkey, other, closed ? LEN : LEN + 1),
		  -EACCES);
	EXPECT(t, pattern_is(mem - GUARD, GUARD, 6), "bytes before the region changed");
	EXPECT(t, pattern_is(mem + LEN, GUARD, 6 + GUARD + LEN), "bytes behind the region changed");
	/*
	 * A message that is too long by a byte may have come in packets. The first of these were
	 * not too long.
	 */
	EXPECT(t, !closed || pattern_is(mem, LEN, 6 + GUARD), "a closed region's bytes changed");
}

static void local_case(struct kfi_test *t)
{
	const enum kfi_peer_local *op = t->c->data;
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	u64 access = rights[t->variant], iova;
	struct kfid_mr *mr;
	u32 lkey;

	if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, access, &mr), 0))
		return;
	iova = mr->iova;
	lkey = t->env->verbs->get_lkey(mr);
	EXPECT(t, (unsigned long)kfi_mr_desc(mr) == lkey, "descriptor and local key differ");
	use(t, mr, lkey, mem, access);
	/* Once more: what was refused doesn't cost the region anything. */
	use(t, mr, (unsigned long)kfi_mr_desc(mr), mem, access);
	if (!is_sink(*op) || device_may_write(access))
		outside(t, iova, lkey, mem, false);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	outside(t, iova, lkey, mem, true);
}

#define LOCAL(_name, _op)							\
	{ _name, local_case, ALL_RIGHTS, &(const enum kfi_peer_local){ _op } }

static const struct kfi_case cases[] = {
	LOCAL("send_from", KFI_PEER_LOCAL_SEND),
	LOCAL("recv_into", KFI_PEER_LOCAL_RECV),
	LOCAL("read_into", KFI_PEER_LOCAL_READ),
	LOCAL("write_from", KFI_PEER_LOCAL_WRITE),
};

const struct kfi_suite suite_local = {
	.name = "local",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = rights_name,
};
