// SPDX-License-Identifier: GPL-2.0
/*
 * Measuring the works: each round takes kfabric's way and C's ways of a work in turn, so that all
 * see the same machine. The result is the median of the rounds.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "bench.h"

/* A way of C, with the name that it has in what is printed. */
struct c_way {
	const char *name;
	bench_way way;
};

/* Those for one region and those for a batch. The first is compared with, the second if weak. */
static const struct c_way single_ways[] = {
	{ "D", c_dereg }, { "S", c_pooled }, { "Dp", c_dereg_polled }, { "Sp", c_pooled_polled },
};

static const struct c_way batch_ways[] = {
	{ "Bd", c_batch_dereg }, { "B", c_batch_pooled },
};

#define MAX_WAYS	(1 + ARRAY_SIZE(single_ways))

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

u64 bench_median(u64 *values, unsigned int count)
{
	sort(values, count, sizeof(*values), compare, NULL);
	return values[count / 2];
}

bool bench_wanted(const struct bench_options *o, const char *name)
{
	return !o->only || strstarts(name, o->only);
}

/* One line, the same for all: what, kfabric's figure, C's way and figure, the ratio, the goal. */
void bench_print(const char *name, u64 value, const char *way, u64 c, unsigned int goal)
{
	u64 ratio = div64_u64(value * 100 + c / 2, c ?: 1);
	char wanted[16] = "-";

	if (goal)
		snprintf(wanted, sizeof(wanted), "%u.%02u", goal / 100, goal % 100);
	pr_info("bench: %s %llu %s %llu %llu.%02llu %s\n", name, value, way, c, ratio / 100,
		ratio % 100, wanted);
}

/**
 * bench_time() - Take the time of a way.
 * @b: The benchmark.
 * @way: The way.
 * @form: The form of the memory.
 * @pages: How much of it.
 * @times: How many times the way is gone in a row, once before that not counted.
 * @each: The time of one registration, in nanoseconds.
 *
 * Context: May sleep.
 * Return: 0 or the way's errno.
 */
int bench_time(struct bench *b, bench_way way, enum bench_form form, unsigned int pages,
	       unsigned int times, u64 *each)
{
	unsigned int i;
	u64 start;
	int ret;

	ret = way(b, form, pages);
	/* The background work of others is theirs. */
	msleep(20);
	start = ktime_get_ns();
	for (i = 0; i < times && !ret; i++) {
		bench_mark(way);
		ret = way(b, form, pages);
		bench_mark(NULL);
	}
	*each = div_u64(ktime_get_ns() - start, times);
	return ret;
}

/* A way takes longer with more pages; the sum is about the same. */
static unsigned int how_often(const struct bench_work *w)
{
	if (w->batch)
		return w->pages < MAX_PAGES ? 64 : 16;
	return w->pages == 1 ? 1024 : w->pages < MAX_PAGES ? 512 : 256;
}

static bool is_scattered(const struct bench_work *w)
{
	return w->form == VMAP || w->form == BVEC_SCATTERED || w->form == SGL_SCATTERED;
}

/* Of scattered pages there are many works, so only the ways that are compared with. */
static unsigned int ways_of(const struct bench_work *w, const struct c_way **ways)
{
	*ways = w->batch ? batch_ways : single_ways;
	return w->batch || is_scattered(w) ? 2 : ARRAY_SIZE(single_ways);
}

/* All ways of a work, once. @figures has @o->rounds for each way, kfabric's first. */
static int one_round(struct bench *b, const struct bench_work *w, const struct bench_options *o,
		     unsigned int round, u64 *figures)
{
	unsigned int i, times = how_often(w), regions = w->batch ? BATCH : 1;
	const struct c_way *ways;
	unsigned int count = ways_of(w, &ways);
	u64 each;
	int ret;

	b->mem->scattered = &b->mem->layouts[w->layout];
	for (i = 0; i < 1 + count; i++) {
		bench_way way = i ? ways[i - 1].way : w->batch ? kfi_batch : kfi_one;

		ret = bench_time(b, way, w->form, w->pages, times, &each);
		if (ret) {
			pr_err("bench: %s, %s: errno %d\n", w->name,
			       i ? ways[i - 1].name : "kfabric", ret);
			return ret;
		}
		figures[i * o->rounds + round] = div_u64(each, regions);
	}
	return 0;
}

static void print_work(const struct bench_work *w, const struct bench_options *o, u64 *figures)
{
	u64 value = bench_median(figures, o->rounds), c;
	const struct c_way *ways;
	unsigned int i, goal, count = ways_of(w, &ways);

	for (i = 0; i < count; i++) {
		goal = i == o->weak ? (o->weak ? w->weak_goal : w->goal) : 0;
		c = bench_median(figures + (i + 1) * o->rounds, o->rounds);
		bench_print(w->name, value, ways[i].name, c, goal);
	}
}

/**
 * bench_measure() - Measure all works, and print what they cost.
 * @b: The benchmark.
 * @o: How.
 *
 * Context: May sleep.
 * Return: 0, or the errno of the first call that fails.
 */
int bench_measure(struct bench *b, const struct bench_options *o)
{
	const struct bench_work *w;
	unsigned int round;
	u64 *figures;
	int ret = 0;

	figures = kcalloc(MAX_WAYS * o->rounds, sizeof(*figures), GFP_KERNEL);
	if (!figures)
		return -ENOMEM;
	for (w = bench_works; w < bench_works + bench_works_count && !ret; w++) {
		if (!bench_wanted(o, w->name))
			continue;
		for (round = 0; round < o->rounds && !ret; round++)
			ret = one_round(b, w, o, round, figures);
		if (!ret)
			print_work(w, o, figures);
	}
	kfree(figures);
	return ret;
}
