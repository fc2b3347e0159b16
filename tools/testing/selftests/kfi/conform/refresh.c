// SPDX-License-Identifier: GPL-2.0
/* kfi_mr_refresh(): other pages behind the same addresses, by the same key. */
#include "conform.h"
#include "swap.h"

#define LEN	(SWAP_PAGES * PAGE_SIZE)

/* Key, address and rights stay; what the peer reads and writes are the new pages. */
static void swapped(struct kfi_test *t, struct place *p, struct swap_area *a, struct kfid_mr *mr,
		    const struct kvec *part)
{
	u64 key = mr->key, iova = mr->iova;
	u8 *scratch = p->env.scratch;

	pattern(scratch, LEN, 21);
	EXPECT_EQ(t, under_test->write(p, iova, key, scratch, LEN), 0);
	EXPECT(t, swap_is(a, 0, 0, LEN, 21), "the first pages have other bytes");
	if (!swap_put(t, a, 1))
		return;
	EXPECT_EQ(t, kfi_mr_refresh(mr, part, part ? 1 : 0, 0), 0);
	EXPECT(t, mr->key == key && mr->iova == iova, "key or address changed");
	pattern(scratch, LEN, 99);
	EXPECT_EQ(t, under_test->write(p, iova, key, scratch, LEN), 0);
	EXPECT(t, swap_is(a, 1, 0, LEN, 99), "the new pages have other bytes");
	EXPECT(t, swap_is(a, 0, 0, LEN, 21), "the old pages were written");
	memset(scratch, 0, LEN);
	EXPECT_EQ(t, under_test->read(p, iova, key, scratch, LEN), 0);
	EXPECT(t, pattern_is(scratch, LEN, 99), "other bytes were read");
	EXPECT_EQ(t, under_test->read(p, iova + LEN, key, scratch, 1), -EACCES);
}

static void swap_in(struct kfi_test *t, struct place *p, bool by_part)
{
	struct swap_area *a = swap_open(t);
	struct kvec some;
	struct kfid_mr *mr;
	u64 key, iova;

	if (!a)
		return;
	/* A part that isn't all; the page of its last byte counts whole. */
	some = (struct kvec) { .iov_base = a->addr + 1, .iov_len = LEN - PAGE_SIZE };
	if (EXPECT_EQ(t, register_buf(p, a->addr, LEN, KFI_REMOTE, &mr), 0)) {
		swapped(t, p, a, mr, by_part ? &some : NULL);
		key = mr->key;
		iova = mr->iova;
		close_mr(t, mr);
		EXPECT_EQ(t, under_test->read(p, iova, key, p->env.scratch, 1), -EACCES);
	}
	swap_close(a);
}

static void all_in(struct kfi_test *t, struct place *p)
{
	swap_in(t, p, false);
}

static void part_in(struct kfi_test *t, struct place *p)
{
	swap_in(t, p, true);
}

static void all_case(struct kfi_test *t)
{
	in_each_mode(t, all_in);
}

static void part_case(struct kfi_test *t)
{
	in_each_mode(t, part_in);
}

/* Memory outside the region can't be refreshed, and the region stays as it is. */
static void refused_in(struct kfi_test *t, struct place *p)
{
	u8 *mem = arena_at(&p->env, MEM_VMALLOC, 50);
	struct kvec parts[] = {
		{ mem, LEN }, { mem - 1, 1 }, { mem + LEN, 1 }, { mem, LEN + 1 },
		{ mem, 0 }, { NULL, 8 }, { mem + LEN - 1, SIZE_MAX },
	};
	struct kfid_mr *mr;
	unsigned int i;

	if (!EXPECT_EQ(t, register_buf(p, mem, LEN, KFI_REMOTE, &mr), 0))
		return;
	for (i = 1; i < ARRAY_SIZE(parts); i++) {
		if (!EXPECT_EQ(t, kfi_mr_refresh(mr, &parts[i], 1, 0), -KFI_EINVAL))
			ktap_note("refresh_refused: above: part %u", i);
		/* A good part makes a bad one no better. */
		swap(parts[1], parts[i]);
		EXPECT_EQ(t, kfi_mr_refresh(mr, parts, 2, 0), -KFI_EINVAL);
		swap(parts[1], parts[i]);
	}
	EXPECT_EQ(t, kfi_mr_refresh(mr, NULL, 1, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_refresh(mr, parts, 1, 1), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_mr_refresh(NULL, parts, 1, 0), -KFI_EINVAL);
	good(t, p, mr, mem, LEN);
	/* Nothing has changed: that is no mistake. */
	EXPECT_EQ(t, kfi_mr_refresh(mr, parts, 1, 0), 0);
	good(t, p, mr, mem, LEN);
	close_mr(t, mr);
}

static void refused_case(struct kfi_test *t)
{
	in_each_mode(t, refused_in);
}

/* Regions that have no addresses have none to be refreshed by. */
static void pages_in(struct kfi_test *t, struct place *p)
{
	u8 *mem = arena_at(&p->env, MEM_PAGES, 50);
	struct reg_req req;
	struct kfid_mr *mr;

	if (!EXPECT_EQ(t, reg_prepare(&p->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		EXPECT_EQ(t, kfi_mr_refresh(mr, NULL, 0, 0), -KFI_ENOSYS);
		good(t, p, mr, mem, LEN);
		close_mr(t, mr);
	}
	reg_finish(&p->env, &req);
}

static void pages_case(struct kfi_test *t)
{
	in_each_mode(t, pages_in);
}

static const struct kfi_case cases[] = {
	CHECK("refresh", 0, F_REFRESH, all_case, refused_refresh),
	CHECK("refresh_part", 0, F_REFRESH, part_case, refused_refresh),
	CHECK("refresh_refused", 0, F_REFRESH, refused_case, refused_refresh),
	CHECK("refresh_pages", BVEC_CALLS | SGL_CALLS, F_REFRESH, pages_case, refused_refresh),
};

SECTION(section_refresh);
