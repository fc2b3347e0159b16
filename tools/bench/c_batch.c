// SPDX-License-Identifier: GPL-2.0
/* C's ways to register many regions at a time: requests are chained, and only the last tells. */
#include "bench.h"

static int register_all(struct bench_queue *q, struct c_region *r)
{
	int i;

	for (i = 0; i < BATCH - 1; i++)
		r[i].reg.wr.next = &r[i + 1].reg.wr;
	return queue_run(q, &r[0].reg.wr, &r[i].reg.wr);
}

static int invalidate_all(struct bench_queue *q, struct c_region *r)
{
	int i;

	for (i = 0; i < BATCH - 1; i++)
		r[i].inv.next = &r[i + 1].inv;
	return queue_run(q, &r[0].inv, &r[i].inv);
}

static void unmap_all(struct bench *b, struct c_region *r)
{
	int i;

	for (i = 0; i < BATCH; i++)
		c_unmap(b, &r[i]);
}

/* The way B: regions of a pool, one wait for all registrations, one for all invalidations. */
int c_batch_pooled(struct bench *b, enum bench_form form, unsigned int pages)
{
	struct bench_queue *q = &b->dev.softirq;
	struct c_region *r = b->dev.pool;
	int i, ret = 0;

	for (i = 0; i < BATCH && !ret; i++) {
		c_new_key(&r[i]);
		ret = c_prepare(b, q, &r[i], form, pages);
	}
	if (!ret)
		ret = register_all(q, r);
	if (!ret)
		ret = invalidate_all(q, r);
	unmap_all(b, r);
	return ret;
}

/* The way Bd: regions of the device are made and deregistered; one wait for all registrations. */
int c_batch_dereg(struct bench *b, enum bench_form form, unsigned int pages)
{
	struct bench_queue *q = &b->dev.softirq;
	struct c_region *r = b->dev.fresh;
	int i, ended, ret = 0;

	for (i = 0; i < BATCH && !ret; i++) {
		ret = c_alloc(b, &r[i], pages);
		if (!ret)
			ret = c_prepare(b, q, &r[i], form, pages);
	}
	if (!ret)
		ret = register_all(q, r);
	for (i = 0; i < BATCH; i++) {
		ended = c_free(&r[i]);
		ret = ret ?: ended;
	}
	unmap_all(b, r);
	return ret;
}
