// SPDX-License-Identifier: GPL-2.0
/* A close that meets removal: whichever has begun, the other waits until the device has let go. */
#include <linux/delay.h>
#include <linux/slab.h>

#include "removal.h"

static struct kfid_mr *mr;
static void *mem;
static struct ib_device *device;
static struct task_struct *thread;
static bool released, removed;
/* How the region ends. */
static enum kfi_inject_op ending;

static bool is_held(void)
{
	if (kfi_inject_wait_held(ending))
		return true;
	UNEXPECTED("the region isn't ended");
	return false;
}

static void let_go(void)
{
	/* The task that must not go on gets as far as that meanwhile. */
	msleep(A_WHILE_MS);
	WRITE_ONCE(released, true);
	kfi_inject_release(ending);
}

static int closes(void *arg)
{
	EXPECT_EQ(kfi_close(&mr->fid), 0);
	EXPECT_EQ(READ_ONCE(released), true);
	mr = NULL;
	return 0;
}

/* Removal deregisters the region, and a close of it comes. */
static int meets_removal(void *arg)
{
	struct task_struct *closer;

	if (is_held()) {
		closer = begin_thread(closes, NULL);
		let_go();
		wait_for_thread(closer);
	}
	return 0;
}

/* A close ends the region, and removal comes. */
static int meets_close(void *arg)
{
	struct task_struct *closer = begin_thread(closes, NULL);
	unsigned long end = jiffies + PATIENCE;

	if (is_held()) {
		while (verbs->get_pd(&domain[0]->fid) && time_before(jiffies, end))
			msleep(20);
		EXPECT_EQ(!verbs->get_pd(&domain[0]->fid), true);
		let_go();
	}
	wait_for_thread(closer);
	return 0;
}

/* Work that was under way has ended by then. */
static void on_going(void *arg)
{
	if (arg)
		EXPECT_EQ(READ_ONCE(released), true);
	WRITE_ONCE(removed, true);
}

static int meet(int (*run)(void *arg), void *ended)
{
	int ret;

	device = verbs->get_ib_device(&domain[0]->fid);
	mem = kmalloc(PAGE_SIZE, GFP_KERNEL);
	if (!device || !mem)
		return -ENODEV;
	ret = verbs->on_removal(&domain[0]->fid, on_going, ended) ?:
	      kfi_mr_reg(domain[0], mem, PAGE_SIZE, ACCESS, 0, 0, 0, &mr, NULL) ?:
	      kfi_inject_start(device);
	if (ret)
		return ret;
	/* A close of hardware's regions invalidates. */
	ending = ended && !ib_uses_virt_dma(device) ? KFI_INJECT_POST_INV : KFI_INJECT_DEREG_MR;
	kfi_inject_hold(ending);
	thread = begin_thread(run, NULL);
	return 0;
}

static int meet_removal_open(void)
{
	return meet(meets_removal, NULL);
}

static int meet_close_open(void)
{
	return meet(meets_close, &removed);
}

static void end_thread(void)
{
	wait_for_thread(thread);
	thread = NULL;
}

static void meet_gone(void)
{
	end_thread();
	EXPECT_EQ(removed, true);
	EXPECT_EQ(!mr, true);
}

static void meet_close(void)
{
	end_thread();
	kfi_inject_stop(device);
	if (mr)
		kfi_close(&mr->fid);
	kfree(mem);
}

const struct scenario meet_scenarios[] = {
	{ "meet_removal", meet_removal_open, meet_gone, meet_close },
	{ "meet_close", meet_close_open, meet_gone, meet_close },
	{ }
};
