// SPDX-License-Identifier: GPL-2.0
/* kfi_mr_refresh(): other pages behind the same addresses, by the same key. */
#include "conform.h"

#define PAGES	4
#define LEN	(PAGES * PAGE_SIZE)

/* An area of addresses, and two sets of pages for it. */
struct area {
	struct page *pages[2][PAGES];
	u8 *addr;
};

static void *map_pages(struct area *a, unsigned int set)
{
	return vmap(a->pages[set], PAGES, VM_MAP, PAGE_KERNEL);
}

static void area_free(struct area *a)
{
	unsigned int i;

	vunmap(a->addr);
	for (i = 0; i < 2 * PAGES; i++)
		if (a->pages[i / PAGES][i % PAGES])
			__free_page(a->pages[i / PAGES][i % PAGES]);
}

static bool area_alloc(struct kfi_test *t, struct area *a)
{
	unsigned int i;

	*a = (struct area) {};
	for (i = 0; i < 2 * PAGES; i++) {
		a->pages[i / PAGES][i % PAGES] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!EXPECT(t, a->pages[i / PAGES][i % PAGES], "no memory"))
			goto err;
	}
	a->addr = map_pages(a, 0);
	if (EXPECT(t, a->addr, "no memory"))
		return true;
err:
	area_free(a);
	return false;
}

/* The other pages at the same addresses, which nobody promises. */
static bool area_swap(struct area *a)
{
	void *others[16] = {}, *addr = NULL;
	unsigned int i;

	vunmap(a->addr);
	vm_unmap_aliases();
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		addr = map_pages(a, 1);
		if (!addr || addr == a->addr)
			break;
		others[i] = addr;
		addr = NULL;
	}
	for (i = 0; i < ARRAY_SIZE(others); i++)
		vunmap(others[i]);
	a->addr = addr;
	return addr;
}

static bool pages_are(struct area *a, unsigned int set, unsigned int shift)
{
	bool same = true;
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		same &= pattern_is(page_address(a->pages[set][i]), PAGE_SIZE,
				   shift + i * PAGE_SIZE);
	return same;
}

/* Key, address and rights stay; what the peer reads and writes are the new pages. */
static void swapped(struct kfi_test *t, struct place *p, struct area *a, struct kfid_mr *mr,
		    const struct kvec *part)
{
	u64 key = mr->key, iova = mr->iova;
	u8 *scratch = p->env.scratch;

	pattern(scratch, LEN, 21);
	EXPECT_EQ(t, under_test->write(p, iova, key, scratch, LEN), 0);
	EXPECT(t, pages_are(a, 0, 21), "the first pages have other bytes");
	if (!area_swap(a))
		return ktap_skip(t, "the area did not come back at its addresses");
	EXPECT_EQ(t, kfi_mr_refresh(mr, part, part ? 1 : 0, 0), 0);
	EXPECT(t, mr->key == key && mr->iova == iova, "key or address changed");
	pattern(scratch, LEN, 99);
	EXPECT_EQ(t, under_test->write(p, iova, key, scratch, LEN), 0);
	EXPECT(t, pages_are(a, 1, 99), "the new pages have other bytes");
	EXPECT(t, pages_are(a, 0, 21), "the old pages were written");
	memset(scratch, 0, LEN);
	EXPECT_EQ(t, under_test->read(p, iova, key, scratch, LEN), 0);
	EXPECT(t, pattern_is(scratch, LEN, 99), "other bytes were read");
	EXPECT_EQ(t, under_test->read(p, iova + LEN, key, scratch, 1), -EACCES);
}

static void swap_in(struct kfi_test *t, struct place *p, bool by_part)
{
	struct kvec whole;
	struct kfid_mr *mr;
	struct area a;
	u64 key, iova;

	if (!area_alloc(t, &a))
		return;
	whole = (struct kvec) { .iov_base = a.addr, .iov_len = LEN };
	if (EXPECT_EQ(t, register_buf(p, a.addr, LEN, KFI_REMOTE, &mr), 0)) {
		swapped(t, p, &a, mr, by_part ? &whole : NULL);
		key = mr->key;
		iova = mr->iova;
		close_mr(t, mr);
		EXPECT_EQ(t, under_test->read(p, iova, key, p->env.scratch, 1), -EACCES);
	}
	area_free(&a);
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

/* What isn't part of the region can't be refreshed, and the region stays as it is. */
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
