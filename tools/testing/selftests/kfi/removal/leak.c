// SPDX-License-Identifier: GPL-2.0
/*
 * The device won't let go of regions or of a queue pair. They are leaked; domain and device go all
 * the same. The leaked objects are given back to the driver afterwards, so that it can be judged
 * like any other driver.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "removal.h"

#define REGIONS	3

static struct kfid_mr *mr[REGIONS];
static void *mem[REGIONS];

static struct ib_device *device;

/* In the first domain, but for the last one. */
static int open_regions(void)
{
	int i, ret = 0;

	for (i = 0; i < REGIONS && !ret; i++) {
		mem[i] = vmalloc(3 * PAGE_SIZE);
		if (!mem[i])
			return -ENOMEM;
		ret = kfi_mr_reg(domain[i == REGIONS - 1], mem[i], 3 * PAGE_SIZE, ACCESS, 0, 0, 0,
				 &mr[i], NULL);
	}
	return ret;
}

static void close_region(unsigned int i, int want)
{
	EXPECT_EQ(kfi_close(&mr[i]->fid), want);
	mr[i] = NULL;
}

/* Both give back what they could not destroy; nobody but the driver has it any more. */
static void end_failing(void)
{
	kfi_inject_stop(device);
	kfi_inject_mend();
}

/* The device stays while the domain is closed. */
static int fail_closing(enum kfi_inject_op op, int want)
{
	int i, ret;

	device = verbs->get_ib_device(&domain[0]->fid);
	if (!device)
		return -ENODEV;
	ret = open_regions() ?: kfi_inject_start(device);
	if (ret)
		return ret;
	/* Hardware invalidates a region that is closed. The domain's close deregisters it. */
	if (!ib_uses_virt_dma(device))
		want = 0;
	kfi_inject_fail(op, -EIO, 0, UINT_MAX);
	for (i = 0; i < REGIONS; i++)
		close_region(i, want);
	close_domain(0, 0);
	close_domain(1, 0);
	end_failing();
	return 0;
}

static int leak_mr_open(void)
{
	return fail_closing(KFI_INJECT_DEREG_MR, LEAKED);
}

static int leak_qp_open(void)
{
	return fail_closing(KFI_INJECT_DESTROY_QP, 0);
}

/*
 * The device goes while regions are open. Its last reference is ours: what is left of the provider
 * then holds none, and the driver is still there to be given back what was leaked.
 */
static struct task_struct *mender;
static DECLARE_COMPLETION(going);
static bool mended;

static void on_going(void *arg)
{
	complete_all(&going);
}

static int mends(void *arg)
{
	unsigned long end;

	wait_for_completion(&going);
	end = jiffies + PATIENCE;
	while (refcount_read(&device->refcount) > 1 && time_before(jiffies, end))
		msleep(20);
	/* If not so, then there is nothing to mend, and the script will see that it hangs. */
	if (refcount_read(&device->refcount) == 1) {
		end_failing();
		mended = true;
	}
	ib_device_put(device);
	return 0;
}

/* Only the first calls fail: others have objects on the device too, which are to go. */
static int fail_removal(enum kfi_inject_op op, unsigned int count)
{
	int ret;

	device = verbs->get_ib_device(&domain[0]->fid);
	if (!device)
		return -ENODEV;
	ret = open_regions() ?: verbs->on_removal(&domain[0]->fid, on_going, NULL) ?:
	      kfi_inject_start(device);
	if (ret)
		return ret;
	kfi_inject_fail(op, -EIO, 0, count);
	if (!ib_device_try_get(device))
		return -ENODEV;
	mender = begin_thread(mends, NULL);
	return 0;
}

static int leak_mr_removed_open(void)
{
	return fail_removal(KFI_INJECT_DEREG_MR, REGIONS - 1);
}

static int leak_qp_removed_open(void)
{
	return fail_removal(KFI_INJECT_DESTROY_QP, 1);
}

static void leak_mr_removed_gone(void)
{
	int i;

	EXPECT_EQ(mended, true);
	/* The regions of the first domain. */
	for (i = 0; i < REGIONS; i++)
		close_region(i, i < REGIONS - 1 ? LEAKED : 0);
}

static void leak_qp_removed_gone(void)
{
	int i;

	EXPECT_EQ(mended, true);
	for (i = 0; i < REGIONS; i++)
		close_region(i, 0);
}

static void leak_close(void)
{
	int i;

	complete_all(&going);
	wait_for_thread(mender);
	mender = NULL;
	kfi_inject_stop(device);
	for (i = 0; i < REGIONS; i++) {
		if (mr[i])
			kfi_close(&mr[i]->fid);
		vfree(mem[i]);
	}
}

const struct scenario leak_scenarios[] = {
	{ "leak_mr", leak_mr_open, NULL, leak_close },
	{ "leak_qp", leak_qp_open, NULL, leak_close },
	{ "leak_mr_removed", leak_mr_removed_open, leak_mr_removed_gone, leak_close },
	{ "leak_qp_removed", leak_qp_removed_open, leak_qp_removed_gone, leak_close },
	{ }
};
