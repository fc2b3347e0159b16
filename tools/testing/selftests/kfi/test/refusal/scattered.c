// SPDX-License-Identifier: GPL-2.0
/*
 * Scatterlists of pages without neighbours, which the provider may hand on as they are. Whatever is
 * wrong with one entry, wherever that is, the errors are the same as on the long way. A list takes
 * that way if its last entry isn't marked as the last.
 */
#include <linux/vmalloc.h>

#include "marks.h"
#include "scattered_list.h"
#include "suites.h"

/* Good lists of all lengths, and in two parts that are cut anywhere. */
static void good(struct kfi_test *t)
{
	struct scattered *s = scattered_open(t);
	unsigned int i;

	if (!s)
		return;
	for (i = 1; i <= PAGES && !t->failures; i++) {
		scattered_fill(s, i, 0);
		EXPECT_EQ(t, scattered_by_both(t, s, true), 0);
	}
	for (i = 1; i < PAGES && !t->failures; i++) {
		scattered_fill(s, PAGES, i);
		EXPECT_EQ(t, scattered_by_both(t, s, true), 0);
	}
	scattered_close(t, s);
}

/* @count entries at the end of memory, behind which comes a page that isn't there. */
static void to_end(struct scattered *s, void *room, unsigned int count)
{
	struct scatterlist *sg = room + PAGE_SIZE - count * sizeof(*sg);

	scattered_fill(s, count, 0);
	s->req.sg = memcpy(sg, s->sg, count * sizeof(*sg));
	s->last = &sg[count - 1];
}

/* Nothing says that the last entry is one; or it does, but there are to be more. */
static void at_end(struct kfi_test *t)
{
	void *room = vmalloc(PAGE_SIZE);
	struct scattered *s = scattered_open(t);
	unsigned int i;

	if (!s || !EXPECT(t, room, "no memory"))
		goto out;
	for (i = 1; i <= PAGES && !t->failures; i++) {
		to_end(s, room, i);
		sg_unmark_end(s->last);
		EXPECT_EQ(t, scattered_reg(t, s, true), 0);
		sg_mark_end(s->last);
		s->req.count++;
		EXPECT_EQ(t, scattered_reg(t, s, false), -KFI_EINVAL);
	}
out:
	if (s)
		scattered_close(t, s);
	vfree(room);
}

/* A page that may not be registered. */
static void marked(struct kfi_test *t)
{
	const struct mark *mark = t->c->data;
	struct scattered *s = can_mark(mark) ? scattered_open(t) : NULL;
	unsigned int i;

	if (!can_mark(mark))
		return ktap_skip(t, "the kernel has no CONFIG_MEMORY_FAILURE");
	for (i = 0; s && i < PAGES && !t->failures; i++) {
		scattered_fill(s, PAGES, 0);
		mark->set(s->pages[i]);
		expect_refused(t, &s->req, -KFI_EFAULT);
		EXPECT_EQ(t, scattered_by_both(t, s, false), -KFI_EFAULT);
		mark->clear(s->pages[i]);
	}
	if (s)
		scattered_close(t, s);
}

#ifdef CONFIG_HUGETLB_PAGE
#define make_huge(page)		__folio_set_hugetlb(page_folio(page))
#define unmake_huge(page)	__folio_clear_hugetlb(page_folio(page))
#else
#define make_huge(page)		((void)(page))
#define unmake_huge(page)	((void)(page))
#endif

static void make_large(struct page *page)
{
	int i;

	__SetPageHead(page);
	for (i = 1; i < 1 << LARGE_ORDER; i++)
		set_compound_head(page + i, page, LARGE_ORDER);
	make_huge(page);
}

static void unmake_large(struct page *page)
{
	int i;

	unmake_huge(page);
	for (i = 1; i < 1 << LARGE_ORDER; i++)
		clear_compound_head(page + i);
	__ClearPageHead(page);
}

/* A page of a larger one, about which only the first one of that says that it is bad. */
static void tail(struct kfi_test *t)
{
	bool can = IS_ENABLED(CONFIG_MEMORY_FAILURE) && IS_ENABLED(CONFIG_HUGETLB_PAGE);
	struct scattered *s = can ? scattered_open(t) : NULL;
	struct page *large;
	unsigned int i;

	if (!can)
		return ktap_skip(t, "the kernel has no CONFIG_MEMORY_FAILURE, or no CONFIG_HUGETLB_PAGE");
	if (!s)
		return;
	large = s->block + LARGE_AT;
	make_large(large);
	for (i = 0; i < PAGES && !t->failures; i++) {
		scattered_fill(s, PAGES, 0);
		/* Those before it have more to say than others. */
		scattered_set(&s->sg[i], large + 5);
		EXPECT_EQ(t, scattered_by_both(t, s, false), 0);
		poison(large);
		EXPECT_EQ(t, scattered_by_both(t, s, false), -KFI_EFAULT);
		unpoison(large);
	}
	unmake_large(large);
	scattered_close(t, s);
}

/* An entry that is something else. @want is what that gives, or 1 if that depends on where it is. */
struct spoil {
	void (*spoil)(struct scattered *s, struct scatterlist *sg, struct page *pair);
	int want;
};

static void of_zeros(struct scattered *s, struct scatterlist *sg, struct page *pair)
{
	scattered_set(sg, ZERO_PAGE(0));
}

static void of_vmalloc(struct scattered *s, struct scatterlist *sg, struct page *pair)
{
	sg_dma_address(sg) = (uintptr_t)s->mem;
}

static void of_nothing(struct scattered *s, struct scatterlist *sg, struct page *pair)
{
	sg_dma_address(sg) = (uintptr_t)page_address(pair) ^ BIT_ULL(62);
}

static void of_user(struct scattered *s, struct scatterlist *sg, struct page *pair)
{
	sg_dma_address(sg) = PAGE_SIZE;
}

static void inside(struct scattered *s, struct scatterlist *sg, struct page *pair)
{
	sg_dma_address(sg) += 64;
}

static void inside_by_a_byte(struct scattered *s, struct scatterlist *sg, struct page *pair)
{
	sg_dma_address(sg) += 1;
}

static void shorter(struct scattered *s, struct scatterlist *sg, struct page *pair)
{
	sg_dma_len(sg) = PAGE_SIZE - 64;
}

static void empty(struct scattered *s, struct scatterlist *sg, struct page *pair)
{
	sg_dma_len(sg) = 0;
}

static void longer(struct scattered *s, struct scatterlist *sg, struct page *pair)
{
	scattered_set(sg, pair);
	sg_dma_len(sg) = 2 * PAGE_SIZE;
}

/* As many bytes as there are pages. */
static void longer_and_empty(struct scattered *s, struct scatterlist *sg, struct page *pair)
{
	struct scatterlist *other = sg == s->last ? sg - 1 : sg + 1;

	longer(s, sg, pair);
	sg_dma_len(other) = 0;
}

static void last(struct scattered *s, struct scatterlist *sg, struct page *pair)
{
	sg_mark_end(sg);
}

static void spoiled(struct kfi_test *t)
{
	const struct spoil *spoil = t->c->data;
	struct scattered *s = scattered_open(t);
	struct page *pair;
	unsigned int i;

	if (!s)
		return;
	/* Of what is longer than a page the second one is bad. */
	pair = s->block + PAIR_AT;
	make_table(pair + 1);
	for (i = 0; i < PAGES && !t->failures; i++) {
		int ret;

		/* The last entry is the last in any case. */
		if (spoil->spoil == last && i + 1 == PAGES)
			break;
		scattered_fill(s, PAGES, 0);
		/* Leaves a region of the device ready that has room for more. */
		EXPECT_EQ(t, scattered_reg(t, s, false), 0);
		spoil->spoil(s, &s->sg[i], pair);
		ret = scattered_by_both(t, s, false);
		if (spoil->want <= 0)
			EXPECT_EQ(t, ret, spoil->want);
	}
	unmake_table(pair + 1);
	scattered_close(t, s);
}

#define MARKED(_name, _mark, _unmark) {						\
	.name = _name,								\
	.run = marked,								\
	.variants = SGL_CALLS,							\
	.data = &(const struct mark) { .set = _mark, .clear = _unmark },	\
}

#define SPOILED(_name, _spoil, _want) {						\
	.name = _name,								\
	.run = spoiled,								\
	.variants = SGL_CALLS,							\
	.data = &(const struct spoil) { .spoil = _spoil, .want = _want },	\
}

static const struct kfi_case cases[] = {
	{ .name = "good", .run = good, .variants = SGL_CALLS },
	{ .name = "at_end", .run = at_end, .variants = SGL_CALLS },
	MARKED("poisoned", poison, unpoison),
	MARKED("table", make_table, unmake_table),
	MARKED("reserved", reserve, unreserve),
	{ .name = "tail", .run = tail, .variants = SGL_CALLS },
	SPOILED("zeros", of_zeros, -KFI_EFAULT),
	SPOILED("vmalloc", of_vmalloc, -KFI_EINVAL),
	SPOILED("nothing", of_nothing, -KFI_EINVAL),
	SPOILED("user", of_user, -KFI_EINVAL),
	SPOILED("inside", inside, 1),
	SPOILED("inside_by_a_byte", inside_by_a_byte, 1),
	SPOILED("shorter", shorter, 1),
	SPOILED("empty", empty, -KFI_EINVAL),
	SPOILED("longer", longer, -KFI_EFAULT),
	SPOILED("longer_and_empty", longer_and_empty, -KFI_EINVAL),
	SPOILED("last", last, -KFI_EINVAL),
};

const struct kfi_suite suite_scattered = {
	.name = "scattered",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
	.end = end_refusals,
};
