// SPDX-License-Identifier: GPL-2.0
/*
 * The properties of a region, whatever call made it: memory, rights and a key, from the
 * registration to the close. Synchronous registrations, in the modes in which a region needs
 * nothing further.
 */
#include <linux/slab.h>

#include "conform.h"

#define LEN	(3 * PAGE_SIZE + 55)
#define INTO_PAGE	200

static u8 *at(struct place *p)
{
	return arena_at(&p->env, MEM_KMALLOC, INTO_PAGE);
}

/* The fields of a new region. */
static void check_fields(struct kfi_test *t, struct place *p, struct kfid_mr *mr, void *context)
{
	EXPECT_EQ(t, mr->fid.fclass, KFI_CLASS_MR);
	EXPECT(t, mr->fid.context == context, "the context is another one");
	EXPECT(t, kfi_mr_key(mr) != KFI_KEY_NOTAVAIL, "no key");
	EXPECT(t, kfi_mr_key(mr) == mr->key, "kfi_mr_key() is another key");
	EXPECT(t, kfi_mr_desc(mr) == mr->mem_desc, "kfi_mr_desc() is another descriptor");
	if (p->mode & KFI_MR_VIRT_ADDR)
		EXPECT(t, mr->iova, "no base address under KFI_MR_VIRT_ADDR");
	else
		EXPECT(t, !mr->iova, "peers must count from 0, not from %#llx", mr->iova);
}

/*
 * Each call makes one region of one buffer or of several. The peer reaches all of it by its key,
 * and after the close it gets an error.
 */
static void region_of(struct kfi_test *t, struct place *p, enum mem_kind kind, size_t split)
{
	u8 *mem = arena_at(&p->env, kind, INTO_PAGE);
	struct reg_req req;
	struct kfid_mr *mr;
	u64 key, iova;
	int context;

	if (!EXPECT_EQ(t, reg_prepare(&p->env, &req, t->variant, mem, LEN, split), 0))
		return;
	req.context = &context;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		key = mr->key;
		iova = mr->iova;
		check_fields(t, p, mr, &context);
		good(t, p, mr, mem, LEN);
		EXPECT(t, mr->key == key && mr->iova == iova, "key or address changed");
		close_mr(t, mr);
		refuses(t, p, iova, key, mem, LEN);
	}
	reg_finish(&p->env, &req);
}

static void region_in(struct kfi_test *t, struct place *p)
{
	enum mem_kind kind;

	for (kind = 0; kind < MEM_KINDS; kind++) {
		region_of(t, p, kind, SPLIT_NONE);
		region_of(t, p, kind, PAGE_SIZE);
	}
}

static void region_case(struct kfi_test *t)
{
	in_each_mode(t, region_in);
}

/* The local rights give a peer nothing; of the remote ones each gives its own access only. */
static void rights_in(struct kfi_test *t, struct place *p)
{
	static const u64 rights[] = {
		KFI_SEND, KFI_RECV, KFI_READ, KFI_WRITE,
		KFI_SEND | KFI_RECV | KFI_READ | KFI_WRITE,
		KFI_REMOTE_READ, KFI_REMOTE_READ | KFI_RECV | KFI_READ,
		KFI_REMOTE_WRITE, KFI_REMOTE_WRITE | KFI_SEND | KFI_WRITE,
		KFI_REMOTE, KFI_REMOTE | KFI_SEND | KFI_RECV | KFI_READ | KFI_WRITE,
	};
	u8 *mem = at(p), *scratch = p->env.scratch;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rights); i++) {
		bool may_read = rights[i] & KFI_REMOTE_READ, may_write = rights[i] & KFI_REMOTE_WRITE;
		struct reg_req req;
		struct kfid_mr *mr;

		if (!EXPECT_EQ(t, reg_prepare(&p->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
			return;
		req.access = rights[i];
		if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
			pattern(mem, LEN, 3);
			EXPECT_EQ(t, under_test->read(p, mr->iova, mr->key, scratch, LEN),
				  may_read ? 0 : -EACCES);
			EXPECT(t, !may_read || pattern_is(scratch, LEN, 3), "other bytes were read");
			pattern(scratch, LEN, 8);
			EXPECT_EQ(t, under_test->write(p, mr->iova, mr->key, scratch, LEN),
				  may_write ? 0 : -EACCES);
			EXPECT(t, pattern_is(mem, LEN, may_write ? 8 : 3),
			       "access %#llx: what was written is wrong", rights[i]);
			close_mr(t, mr);
		}
		reg_finish(&p->env, &req);
	}
}

static void rights_case(struct kfi_test *t)
{
	in_each_mode(t, rights_in);
}

/* Accesses that are not wholly within the region, in bytes from its beginning. */
static const struct {
	s64 from;
	size_t len;
} outside[] = {
	{ -1, 1 }, { -1, 2 }, { LEN, 1 }, { LEN - 1, 2 }, { 0, LEN + 1 }, { -1, LEN + 2 },
	{ LEN, 64 }, { -INTO_PAGE, 64 }, { -(s64)PAGE_SIZE, 64 }, { 64 * PAGE_SIZE, 64 },
	{ -(1LL << 40), 64 }, { 1LL << 40, 64 }, { S64_MAX, 64 }, { S64_MIN, 64 },
};

static void bounds_in(struct kfi_test *t, struct place *p)
{
	struct kfid_mr *mr;
	u8 *mem = at(p);
	unsigned int i;

	if (!EXPECT_EQ(t, register_buf(p, mem, LEN, KFI_REMOTE, &mr), 0))
		return;
	for (i = 0; i < ARRAY_SIZE(outside); i++)
		if (!refuses(t, p, mr->iova + outside[i].from, mr->key, mem, outside[i].len))
			ktap_note("bounds: above: %zu bytes from %lld on", outside[i].len,
				  outside[i].from);
	/* An offset is added to the base: each part of it can be reached by itself. */
	reaches(t, p, mr->iova + 1, mr->key, mem + 1, LEN - 2);
	reaches(t, p, mr->iova + PAGE_SIZE, mr->key, mem + PAGE_SIZE, 64);
	good(t, p, mr, mem, LEN);
	/* The memory's own address is no way in, and neither is its physical one. */
	refuses(t, p, (uintptr_t)mem, mr->key, mem, 64);
	refuses(t, p, virt_to_phys(mem), mr->key, mem, 64);
	close_mr(t, mr);
}

static void bounds_case(struct kfi_test *t)
{
	in_each_mode(t, bounds_in);
}

/* Access needs the region's own key. */
static void keys_in(struct kfi_test *t, struct place *p)
{
	u8 *mem = at(p), *other = arena_at(&p->env, MEM_PAGES, 0);
	struct kfid_mr *mr, *mr2;
	unsigned int bit;

	if (!EXPECT_EQ(t, kfi_mr_reg(p->env.domain, mem, LEN, KFI_REMOTE, 0, 7, 0, &mr, NULL), 0))
		return;
	if (EXPECT_EQ(t, kfi_mr_reg(p->env.domain, other, LEN, KFI_REMOTE, 0, 8, 0, &mr2, NULL),
		      0)) {
		EXPECT(t, mr->key != mr2->key, "two regions have one key");
		good(t, p, mr, mem, LEN);
		good(t, p, mr2, other, LEN);
		for (bit = 0; bit < 64; bit += bit < 8 ? 1 : 7)
			if ((mr->key ^ BIT_ULL(bit)) != mr2->key)
				refuses(t, p, mr->iova, mr->key ^ BIT_ULL(bit), mem, 64);
		refuses(t, p, mr->iova, KFI_KEY_NOTAVAIL, mem, 64);
		close_mr(t, mr2);
	}
	close_mr(t, mr);
}

static void keys_case(struct kfi_test *t)
{
	in_each_mode(t, keys_in);
}

/* Another remote side of the same domain, which goes on through it all with the connection it has. */
static void goes_on(struct kfi_test *t, struct place *other, struct kfid_mr *mr, u8 *mem)
{
	good(t, other, mr, mem, LEN);
	EXPECT_EQ(t, under_test->connects(other), 1);
}

/*
 * A close ends one region: the peer gets an error, and what else there is goes on as before, on the
 * local side and for other peers. The domain can't be closed before its regions.
 */
static void close_in(struct kfi_test *t, struct place *p)
{
	/* Too large for the stack. */
	struct place *other = kmemdup(p, sizeof(*p), GFP_KERNEL);
	struct kfid_mr *mr, *stays;
	u8 *mem = at(p);
	u64 key, iova;
	int round;

	if (!EXPECT(t, other, "out of memory"))
		return;
	if (!EXPECT_EQ(t, kfi_mr_reg(p->env.domain, mem, LEN, KFI_REMOTE, 0, 1, 0, &stays, NULL),
		       0))
		goto free;
	if (!EXPECT_EQ(t, under_test->attach(other), 0))
		goto close;
	goes_on(t, other, stays, mem);
	for (round = 0; round < 5; round++) {
		if (!EXPECT_EQ(t, kfi_mr_reg(p->env.domain, mem, LEN, KFI_REMOTE, 0, 2 + round, 0,
					     &mr, NULL), 0))
			break;
		key = mr->key;
		iova = mr->iova;
		good(t, p, mr, mem, LEN);
		close_mr(t, mr);
		refuses(t, p, iova, key, mem, LEN);
		good(t, p, stays, mem, LEN);
		goes_on(t, other, stays, mem);
	}
	under_test->detach(other);
	EXPECT_EQ(t, kfi_close(&p->env.domain->fid), -KFI_EBUSY);
	EXPECT_EQ(t, kfi_close(&t->env->fabric->fid), -KFI_EBUSY);
	good(t, p, stays, mem, LEN);
close:
	close_mr(t, stays);
free:
	kfree(other);
}

static void close_case(struct kfi_test *t)
{
	in_each_mode(t, close_in);
}

/* Key and descriptor of no region. */
static void no_region_case(struct kfi_test *t)
{
	EXPECT(t, kfi_mr_key(NULL) == KFI_KEY_NOTAVAIL, "a key of no region");
	EXPECT(t, kfi_mr_key(ERR_PTR(-ENODEV)) == KFI_KEY_NOTAVAIL, "a key of an error");
	EXPECT(t, !kfi_mr_desc(NULL), "a descriptor of no region");
	EXPECT_EQ(t, kfi_close(NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_close(ERR_PTR(-ENODEV)), -KFI_EINVAL);
}

/* A domain's keys are good in that domain. */
static void other_domain_in(struct kfi_test *t, struct place *p)
{
	struct kfid_mr *mr;
	struct place *other;
	u8 *mem = at(p);

	other = place_open_info(t, p->info);
	if (!other)
		return;
	if (EXPECT_EQ(t, register_buf(other, mem, LEN, KFI_REMOTE, &mr), 0)) {
		good(t, other, mr, mem, LEN);
		refuses(t, p, mr->iova, mr->key, mem, LEN);
		close_mr(t, mr);
	}
	place_close(t, other);
}

static void other_domain_case(struct kfi_test *t)
{
	in_each_mode(t, other_domain_in);
}

static const struct kfi_case cases[] = {
	ALWAYS("region", ALL_CALLS, F_CALLS, region_case),
	ALWAYS("rights", ALL_CALLS, F_RIGHTS, rights_case),
	ALWAYS("bounds", 0, F_BOUNDS, bounds_case),
	ALWAYS("keys", 0, F_BOUNDS, keys_case),
	ALWAYS("close", 0, F_CLOSING, close_case),
	ALWAYS("no_region", 0, F_CLOSING, no_region_case),
	ALWAYS("other_domain", 0, F_BOUNDS, other_domain_case),
};

SECTION(section_regions);
