// SPDX-License-Identifier: GPL-2.0
/* Several removal callbacks of a domain: their order, and taking them back. */
#include <linux/delay.h>
#include <linux/slab.h>

#include "removal.h"

#define MANY	6

/* Which were called, in their order. */
static unsigned int order[2 * MANY], calls;

static struct kfid_mr *mr[2];
static void *mem[2];

static struct task_struct *taker;
static DECLARE_COMPLETION(first_runs);
static DECLARE_COMPLETION(taking);
static bool returning, taken;

static int on_removal(void (*cb)(void *arg), unsigned long arg)
{
	return verbs->on_removal(&domain[0]->fid, cb, (void *)arg);
}

static void called(void *arg)
{
	if (calls < ARRAY_SIZE(order))
		order[calls++] = (unsigned long)arg;
}

/* Takes the first one back while it runs, which is to wait until it has returned. */
static int takes_first(void *arg)
{
	wait_for_completion(&first_runs);
	if (!calls)
		return 0;
	EXPECT_EQ(on_removal(called, 99), -KFI_ENODEV);
	complete_all(&taking);
	EXPECT_EQ(on_removal(NULL, 0), 0);
	EXPECT_EQ(READ_ONCE(returning), true);
	taken = true;
	return 0;
}

/* The calls that can be begun, and ended, in a callback. */
static void probe(void)
{
	struct kfid_domain *other;
	struct kfid_mr *more;

	EXPECT_EQ(on_removal(called, 99), -KFI_ENODEV);
	EXPECT_EQ(kfi_domain(fabric, info, &other, NULL), -KFI_ENODEV);
	EXPECT_EQ(kfi_mr_reg(domain[0], mem[0], PAGE_SIZE, ACCESS, 0, 0, 0, &more, NULL),
		  -KFI_ENODEV);
	EXPECT_EQ(kfi_mr_reg(domain[1], mem[0], PAGE_SIZE, ACCESS, 0, 0, 0, &more, NULL),
		  -KFI_ENODEV);
	EXPECT_EQ(!verbs->get_pd(&domain[0]->fid), true);
	EXPECT_EQ(!verbs->get_ib_device(&domain[0]->fid), false);
}

static void first(void *arg)
{
	called(arg);
	probe();
	complete_all(&first_runs);
	if (!wait_for_completion_timeout(&taking, PATIENCE))
		UNEXPECTED("nobody takes it back");
	/* The task that takes the callback back gets that far meanwhile, and no further. */
	msleep(A_WHILE_MS);
	WRITE_ONCE(returning, true);
}

/* Takes back one whose turn is yet to come, itself, and one that has been called. */
static void second(void *arg)
{
	called(arg);
	EXPECT_EQ(on_removal(NULL, 3), 0);
	EXPECT_EQ(on_removal(NULL, (unsigned long)arg), -KFI_EBUSY);
	EXPECT_EQ(on_removal(NULL, 0), 0);
}

/* Closes regions of its own domain and of the other one. */
static void third(void *arg)
{
	int i;

	called(arg);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(kfi_close(&mr[i]->fid), 0);
		mr[i] = NULL;
	}
}

static int open_regions(void)
{
	int i, ret = 0;

	for (i = 0; i < 2 && !ret; i++) {
		mem[i] = kmalloc(PAGE_SIZE, GFP_KERNEL);
		if (!mem[i])
			return -ENOMEM;
		ret = kfi_mr_reg(domain[i], mem[i], PAGE_SIZE, ACCESS, 0, 0, 0, &mr[i], NULL);
	}
	return ret;
}

static int order_open(void)
{
	void (*cb[MANY])(void *) = { first, second, third, called, called, called };
	unsigned long i;

	/* One that is taken back before leaves no gap; one of the other domain comes last. */
	EXPECT_EQ(verbs->on_removal(&domain[1]->fid, called, (void *)MANY), 0);
	EXPECT_EQ(on_removal(called, 50), 0);
	for (i = 0; i < MANY; i++)
		EXPECT_EQ(on_removal(cb[i], i), 0);
	EXPECT_EQ(on_removal(called, 4), -KFI_EBUSY);
	EXPECT_EQ(on_removal(NULL, 50), 0);
	taker = begin_thread(takes_first, NULL);
	return open_regions();
}

static void end_taker(void)
{
	complete_all(&first_runs);
	wait_for_thread(taker);
	taker = NULL;
}

static void order_gone(void)
{
	static const unsigned int want[] = { 0, 1, 2, 4, 5, MANY };
	int i;

	end_taker();
	EXPECT_EQ(taken, true);
	EXPECT_EQ(calls, ARRAY_SIZE(want));
	for (i = 0; i < ARRAY_SIZE(want); i++)
		EXPECT_EQ(order[i], want[i]);
}

static void order_close(void)
{
	int i;

	end_taker();
	for (i = 0; i < 2; i++) {
		if (mr[i])
			kfi_close(&mr[i]->fid);
		kfree(mem[i]);
	}
}

const struct scenario order_scenarios[] = {
	{ "order", order_open, order_gone, order_close },
	{ }
};
