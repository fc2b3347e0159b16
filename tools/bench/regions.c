// SPDX-License-Identifier: GPL-2.0
/* Many regions that are open: what one more costs, and how much memory each takes. */
#include <linux/delay.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/vmstat.h>

#include "bench.h"

#define FEW	10
#define MANY	30000
#define TIMES	64

/*
 * Regions that are opened before memory is looked at: they take what the allocators have kept, so
 * that the MANY after them take fresh pages.
 */
#define BEFORE	2000
#define ALL	(BEFORE + MANY)

/*
 * How long memory that waits for readers of RCU is kept at most (5 s), and what kfi_verbs keeps
 * ready without need (10 s). By then the counters of CPUs have been added up, too.
 */
#define SETTLED_MS	12000

/**
 * struct side - regions of one side that stay open
 * @open_one: Opens a region of @pages pages.
 * @close_one: Closes one.
 * @region: The open regions.
 * @count: How many that are.
 */
struct side {
	int (*open_one)(struct bench *b, unsigned int pages, void **region);
	int (*close_one)(void *region);
	void **region;
	unsigned int count;
};

static int kfi_open_one(struct bench *b, unsigned int pages, void **region)
{
	struct kfid_mr *mr;
	int ret = kfi_register(b->domain, b->mem, LINEAR, pages, &mr);

	*region = mr;
	return ret;
}

static int kfi_close_one(void *region)
{
	struct kfid_mr *mr = region;

	return kfi_close(&mr->fid);
}

static int c_open_one(struct bench *b, unsigned int pages, void **region)
{
	struct ib_mr *mr = ib_alloc_mr(b->dev.pd, IB_MR_TYPE_MEM_REG, pages);

	*region = mr;
	return PTR_ERR_OR_ZERO(mr);
}

static int c_close_one(void *region)
{
	return ib_dereg_mr(region);
}

static int open_until(struct bench *b, struct side *s, unsigned int pages, unsigned int count)
{
	int ret;

	for (; s->count < count; s->count++) {
		ret = s->open_one(b, pages, &s->region[s->count]);
		if (ret)
			return ret;
	}
	return 0;
}

static int close_all(struct side *s)
{
	int closed, ret = 0;

	while (s->count) {
		closed = s->close_one(s->region[--s->count]);
		ret = ret ?: closed;
	}
	return ret;
}

/*
 * Bytes that small objects take on this machine: whole slabs, with what is free in them. Pages that are
 * free aren't counted, as they would have to be from the other end: some MiB of them, which lie with the
 * CPUs for the next to come, count neither as free nor as used.
 */
static s64 used(void)
{
	msleep(SETTLED_MS);
	return (s64)(global_node_page_state_pages(NR_SLAB_RECLAIMABLE_B) +
		     global_node_page_state_pages(NR_SLAB_UNRECLAIMABLE_B)) << PAGE_SHIFT;
}

/* Opens all; *@bytes grows by what each takes. */
static int open_all(struct bench *b, struct side *s, unsigned int pages, s64 *bytes)
{
	s64 before;
	int ret;

	ret = open_until(b, s, pages, BEFORE);
	if (ret)
		return ret;
	before = used();
	ret = open_until(b, s, pages, ALL);
	*bytes += div_s64(used() - before, MANY);
	return ret;
}

/* Returns @ret, or why one could not be closed. */
static int close_both(struct side *a, struct side *b, int ret)
{
	int closed_a = close_all(a), closed_b = close_all(b);

	return ret ?: closed_a ?: closed_b;
}

/* The cost of one more region. */
static int one_more(struct bench *b, unsigned int pages, unsigned int rounds, u64 *cost)
{
	unsigned int round;
	int ret = 0;
	u64 *each;

	each = kcalloc(rounds, sizeof(*each), GFP_KERNEL);
	if (!each)
		return -ENOMEM;
	for (round = 0; round < rounds && !ret; round++)
		ret = bench_time(b, kfi_one, LINEAR, pages, TIMES, &each[round]);
	*cost = bench_median(each, rounds);
	kfree(each);
	return ret;
}

static int measure(struct bench *b, const struct bench_options *o, unsigned int pages,
		   unsigned int memory_goal)
{
	struct side kfi = { .open_one = kfi_open_one, .close_one = kfi_close_one };
	struct side c = { .open_one = c_open_one, .close_one = c_close_one };
	s64 kfi_bytes = 0, c_bytes = 0;
	u64 few = 0, many = 0;
	char name[32];
	int ret;

	kfi.region = kvcalloc(2 * ALL, sizeof(*kfi.region), GFP_KERNEL);
	if (!kfi.region)
		return -ENOMEM;
	c.region = kfi.region + ALL;

	ret = open_until(b, &kfi, pages, FEW);
	if (!ret)
		ret = one_more(b, pages, o->rounds, &few);
	/* Once each is the first, to which the allocators are as they were left by others. */
	if (!ret)
		ret = open_all(b, &kfi, pages, &kfi_bytes);
	if (!ret)
		ret = one_more(b, pages, o->rounds, &many);
	if (!ret)
		ret = open_all(b, &c, pages, &c_bytes);
	ret = close_both(&kfi, &c, ret);
	if (!ret)
		ret = open_all(b, &c, pages, &c_bytes);
	if (!ret)
		ret = open_all(b, &kfi, pages, &kfi_bytes);
	ret = close_both(&kfi, &c, ret);
	kvfree(kfi.region);
	if (ret) {
		pr_err("bench: %u regions of %u pages: errno %d\n", ALL, pages, ret);
		return ret;
	}

	snprintf(name, sizeof(name), "open.many.%u", pages);
	bench_print(name, many, "few", few, 105);
	pr_info("bench: open.memory.%u %lld bytes %lld - %u\n", pages, (kfi_bytes - c_bytes) / 2,
		c_bytes / 2, memory_goal);
	return 0;
}

/**
 * bench_regions() - Measure what many open regions cost, and print it.
 * @b: The benchmark.
 * @o: How.
 *
 * Context: May sleep.
 * Return: 0, or the errno of the first call that fails.
 */
int bench_regions(struct bench *b, const struct bench_options *o)
{
	int ret;

	if (!bench_wanted(o, "open."))
		return 0;
	ret = measure(b, o, 1, 256);
	return ret ?: measure(b, o, 16, 384);
}
