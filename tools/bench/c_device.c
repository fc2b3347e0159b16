// SPDX-License-Identifier: GPL-2.0
/* C's side: a protection domain, two queues, and a pool of regions. */
#include <linux/slab.h>

#include "bench.h"

static int make_lists(struct c_region *r)
{
	int i;

	for (i = 0; i < BATCH; i++) {
		r[i].list = kcalloc(MAX_PAGES, sizeof(*r[i].list), GFP_KERNEL);
		if (!r[i].list)
			return -ENOMEM;
		sg_init_table(r[i].list, MAX_PAGES);
	}
	return 0;
}

static int fill_pool(struct bench_dev *dev)
{
	struct ib_mr *mr;
	int i;

	for (i = 0; i < BATCH; i++) {
		mr = ib_alloc_mr(dev->pd, IB_MR_TYPE_MEM_REG, MAX_PAGES);
		if (IS_ERR(mr))
			return PTR_ERR(mr);
		dev->pool[i].mr = mr;
	}
	return 0;
}

/**
 * c_open() - Take what C needs at a device.
 * @dev: Where to put it; zeroed.
 * @ib: The device. It can't go away until c_close().
 *
 * Context: May sleep.
 * Return: 0 or an errno. c_close() is needed in any case.
 */
int c_open(struct bench_dev *dev, struct ib_device *ib)
{
	struct ib_pd *pd;
	int ret;

	if (!ib || !ib_device_try_get(ib))
		return -ENODEV;
	dev->ib = ib;
	pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	dev->pd = pd;
	ret = queue_open(&dev->softirq, pd, false);
	if (!ret)
		ret = queue_open(&dev->polled, pd, true);
	if (!ret)
		ret = make_lists(dev->pool);
	if (!ret)
		ret = make_lists(dev->fresh);
	return ret ?: fill_pool(dev);
}

/**
 * c_close() - Give all of it back.
 * @dev: The device that c_open() was given.
 *
 * Context: May sleep.
 */
void c_close(struct bench_dev *dev)
{
	int i;

	for (i = 0; i < BATCH; i++) {
		if (dev->pool[i].mr)
			ib_dereg_mr(dev->pool[i].mr);
		kfree(dev->pool[i].list);
		kfree(dev->fresh[i].list);
	}
	queue_close(&dev->polled);
	queue_close(&dev->softirq);
	if (dev->pd)
		ib_dealloc_pd(dev->pd);
	if (dev->ib)
		ib_device_put(dev->ib);
}
