// SPDX-License-Identifier: GPL-2.0
/* Two domains of a device, which are closed while their removal callbacks are called. */
#include <linux/delay.h>

#include "removal.h"

/* An object of ours on each protection domain, or NULL. */
static struct ib_mr *object[2];

/* How often each callback has been called. */
static unsigned int called[2];

static void free_object(unsigned int i)
{
	if (!object[i])
		return;
	EXPECT_EQ(ib_dereg_mr(object[i]), 0);
	object[i] = NULL;
}

static void make_object(unsigned int i)
{
	struct ib_pd *pd = verbs->get_pd(&domain[i]->fid);
	struct ib_mr *mr = pd ? ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1) : ERR_PTR(-ENODEV);

	if (IS_ERR(mr))
		UNEXPECTED("no object on domain %u: %ld", i, PTR_ERR(mr));
	else
		object[i] = mr;
}

/* The callbacks, by the domain that they are on. */
static void (*on_going[2])(void);

static void callback(void *arg)
{
	unsigned int i = (unsigned long)arg;

	called[i]++;
	on_going[i]();
}

static int register_both(void (*first)(void), void (*second)(void))
{
	unsigned long i;
	int ret;

	on_going[0] = first;
	on_going[1] = second;
	for (i = 0; i < 2; i++) {
		ret = verbs->on_removal(&domain[i]->fid, callback, (void *)i);
		if (ret)
			return ret;
	}
	return 0;
}

static void expect_called(unsigned int first, unsigned int second)
{
	EXPECT_EQ(called[0], first);
	EXPECT_EQ(called[1], second);
}

/* Each closes the other: the first one does, and there is no second one any more. */
static void close_first(void)
{
	close_domain(0, 0);
}

static void close_second(void)
{
	close_domain(1, 0);
}

static int each_other_open(void)
{
	return register_both(close_second, close_first);
}

static void each_other_gone(void)
{
	expect_called(1, 0);
	EXPECT_EQ(!domain[1], true);
}

/* Each would close the other and has an object: what counts is who has one now. */
static void try_second(void)
{
	close_domain(1, -KFI_EBUSY);
	free_object(0);
}

static void free_and_close_first(void)
{
	free_object(1);
	close_domain(0, 0);
}

static int with_objects_open(void)
{
	int ret = register_both(try_second, free_and_close_first);

	make_object(0);
	make_object(1);
	return ret;
}

static void with_objects_gone(void)
{
	expect_called(1, 1);
	EXPECT_EQ(!domain[0], true);
}

/* The first one cleans up for both: the second domain is free to go. */
static void free_all_and_close_second(void)
{
	free_object(0);
	free_object(1);
	close_domain(1, 0);
}

static int for_both_open(void)
{
	int ret = register_both(free_all_and_close_second, close_first);

	make_object(0);
	make_object(1);
	return ret;
}

/* A callback can't wait for itself. */
static void try_own(void)
{
	EXPECT_EQ(verbs->on_removal(&domain[0]->fid, NULL, NULL), -KFI_EBUSY);
	close_domain(0, -KFI_EBUSY);
}

static void nothing(void)
{
}

static int own_open(void)
{
	return register_both(try_own, nothing);
}

static void own_gone(void)
{
	expect_called(1, 1);
	close_domain(0, 0);
}

/*
 * Another thread closes both while the first callback runs: the second domain at once, which the
 * callback waits for; the first one when the callback has returned.
 */
static struct task_struct *closer;
static DECLARE_COMPLETION(may_close);
static DECLARE_COMPLETION(second_closed);
static bool returning;

static int closes_both(void *arg)
{
	wait_for_completion(&may_close);
	if (called[0]) {
		close_domain(1, 0);
		complete_all(&second_closed);
		close_domain(0, 0);
		EXPECT_EQ(READ_ONCE(returning), true);
	}
	return 0;
}

static void wait_for_closer(void)
{
	complete_all(&may_close);
	if (!wait_for_completion_timeout(&second_closed, PATIENCE))
		UNEXPECTED("closing the second domain waits for the first one's callback");
	/* The first one isn't closed meanwhile. */
	msleep(A_WHILE_MS);
	WRITE_ONCE(returning, true);
}

static int by_thread_open(void)
{
	int ret = register_both(wait_for_closer, nothing);

	closer = begin_thread(closes_both, NULL);
	return ret;
}

static void by_thread_close(void)
{
	complete_all(&may_close);
	wait_for_thread(closer);
	closer = NULL;
}

static void by_thread_gone(void)
{
	by_thread_close();
	expect_called(1, 0);
	EXPECT_EQ(!domain[0] && !domain[1], true);
}

static void free_objects(void)
{
	free_object(0);
	free_object(1);
}

const struct scenario pair_scenarios[] = {
	{ "each_other", each_other_open, each_other_gone },
	{ "with_objects", with_objects_open, with_objects_gone, free_objects },
	{ "for_both", for_both_open, each_other_gone, free_objects },
	{ "own", own_open, own_gone },
	{ "by_thread", by_thread_open, by_thread_gone, by_thread_close },
	{ }
};
