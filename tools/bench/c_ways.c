// SPDX-License-Identifier: GPL-2.0
/* C's ways to register one region and to close it. */
#include "bench.h"

/* A region of the device each time: deregistering it is the fence. */
static int dereg_on(struct bench *b, struct bench_queue *q, enum bench_form form,
		    unsigned int pages)
{
	struct c_region *r = &b->dev.fresh[0];
	int ret, ended;

	ret = c_alloc(b, r, pages);
	if (ret)
		return ret;
	ret = c_prepare(b, q, r, form, pages);
	if (!ret)
		ret = queue_run(q, &r->reg.wr, &r->reg.wr);
	ended = c_free(r);
	c_unmap(b, r);
	return ret ?: ended;
}

/* A region of a pool: invalidating it is the fence, as on hardware. */
static int pooled_on(struct bench *b, struct bench_queue *q, enum bench_form form,
		     unsigned int pages)
{
	struct c_region *r = &b->dev.pool[0];
	int ret;

	c_new_key(r);
	ret = c_prepare(b, q, r, form, pages);
	if (ret)
		return ret;
	ret = queue_run(q, &r->reg.wr, &r->reg.wr);
	if (!ret)
		ret = queue_run(q, &r->inv, &r->inv);
	c_unmap(b, r);
	return ret;
}

/* The way D. */
int c_dereg(struct bench *b, enum bench_form form, unsigned int pages)
{
	return dereg_on(b, &b->dev.softirq, form, pages);
}

/* The way Dp. */
int c_dereg_polled(struct bench *b, enum bench_form form, unsigned int pages)
{
	return dereg_on(b, &b->dev.polled, form, pages);
}

/* The way S. */
int c_pooled(struct bench *b, enum bench_form form, unsigned int pages)
{
	return pooled_on(b, &b->dev.softirq, form, pages);
}

/* The way Sp. */
int c_pooled_polled(struct bench *b, enum bench_form form, unsigned int pages)
{
	return pooled_on(b, &b->dev.polled, form, pages);
}
