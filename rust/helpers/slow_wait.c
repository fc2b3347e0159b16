// SPDX-License-Identifier: GPL-2.0
/* Logs the open objects if a close, an unload or the removal of a device takes long. */
#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include <kfabric.h>

#include "kfabric_helpers.h"

static unsigned int slow_wait = 10;
module_param(slow_wait, uint, 0644);
MODULE_PARM_DESC(slow_wait,
		 "seconds after which the open objects are logged if a close, an unload or the removal of a device still waits; 0: at once, for a close after 1 second");

/* Number of objects after which only those that are being closed are logged. */
#define MOST	64

struct kfi_helper_slow_wait {
	struct delayed_work work;
	const char *what;
	bool always;
};

static const char *class_name(u32 class)
{
	switch (class) {
	case KFI_CLASS_FABRIC:
		return "fabric";
	case KFI_CLASS_DOMAIN:
		return "domain";
	case KFI_CLASS_EP:
		return "endpoint";
	case KFI_CLASS_SRX_CTX:
		return "shared receive context";
	case KFI_CLASS_PEP:
		return "passive endpoint";
	case KFI_CLASS_MR:
		return "region";
	case KFI_CLASS_EQ:
		return "event queue";
	case KFI_CLASS_CQ:
		return "completion queue";
	case KFI_CLASS_CNTR:
		return "counter";
	default:
		return "object";
	}
}

/* Logs the open regions, or all other objects. @count: objects so far. @others: objects that are not logged. */
static void log_class(bool regions, unsigned int *count, unsigned int *others)
{
	void *listing = kfi_core_listing(KFI_CLASS_UNSPEC);
	struct kfi_helper_object object;

	if (IS_ERR(listing))
		return;
	for (; kfi_core_listing_get(listing, &object); kfi_core_listing_next(listing)) {
		if ((object.class == KFI_CLASS_MR) != regions)
			continue;
		if ((*count)++ >= MOST && object.state != KFI_STATE_CLOSING) {
			(*others)++;
			continue;
		}
		pr_warn("kfabric: %s %llu in %s%s%s, owner %s, open for %u s%s\n", class_name(object.class),
			object.id, object.fabric, object.domain ? "/" : "", object.domain ?: "",
			object.owner ?: "unknown", object.age,
			object.state == KFI_STATE_CLOSING ? ", is being closed" : "");
	}
	kfi_core_listing_free(listing);
}

static void log_open_objects(const char *what)
{
	unsigned int count = 0, others = 0;

	pr_warn("kfabric: %s takes long; open objects:\n", what);
	/* There can be a million regions, which would hide the objects that hold a device or a module. */
	log_class(false, &count, &others);
	log_class(true, &count, &others);
	if (others)
		pr_warn("kfabric: and %u others\n", others);
}

static void log_objects(struct work_struct *work)
{
	log_open_objects(container_of(to_delayed_work(work), struct kfi_helper_slow_wait, work)->what);
}

/* Begins a wait for @what, which stays valid until the end. May sleep. Returns NULL without memory: nothing is logged. */
struct kfi_helper_slow_wait *kfi_helper_slow_wait_begin(const char *what)
{
	struct kfi_helper_slow_wait *wait = kmalloc(sizeof(*wait), GFP_NOIO);
	unsigned int seconds = READ_ONCE(slow_wait);

	if (!wait)
		return NULL;
	wait->what = what;
	wait->always = !seconds;
	INIT_DELAYED_WORK(&wait->work, log_objects);
	schedule_delayed_work(&wait->work, (unsigned long)seconds * HZ);
	return wait;
}

/* Ends a wait. Sleeps while objects are logged. */
void kfi_helper_slow_wait_end(struct kfi_helper_slow_wait *wait)
{
	if (!wait)
		return;
	if (wait->always)
		flush_delayed_work(&wait->work);
	else
		cancel_delayed_work_sync(&wait->work);
	kfree(wait);
}

/*
 * Closes are too frequent for one timer each. A close records its beginning in the slot of its task, and a work item
 * checks all slots. If two tasks share a slot, the first close is watched and the other one is not.
 */
#define CLOSE_BITS	6

static struct kfi_helper_close {
	/* When the close began, as jiffies; 0 if there is none. */
	atomic_long_t since;
	/* The close that was logged. */
	long logged;
} ____cacheline_aligned closes[1 << CLOSE_BITS];

static void check_closes(struct work_struct *work);
static DECLARE_DELAYED_WORK(close_check, check_closes);

static void check_closes(struct work_struct *work)
{
	unsigned long limit = (READ_ONCE(slow_wait) ?: 1UL) * HZ;
	bool slow = false;

	for (unsigned int i = 0; i < ARRAY_SIZE(closes); i++) {
		long since = atomic_long_read(&closes[i].since);

		if (!since || since == closes[i].logged || time_before(jiffies, since + limit))
			continue;
		closes[i].logged = since;
		slow = true;
	}
	if (slow)
		log_open_objects("closing an object");
	schedule_delayed_work(&close_check, round_jiffies_relative(HZ));
}

/* Begins a close. Returns its slot, or NULL if another close has the slot. Any context. */
struct kfi_helper_close *kfi_helper_close_begin(void)
{
	struct kfi_helper_close *close = &closes[hash_ptr(current, CLOSE_BITS)];

	/* 0 is a free slot. */
	return atomic_long_cmpxchg_relaxed(&close->since, 0, jiffies | 1) ? NULL : close;
}

/* Ends a close. @close may be NULL. Any context. */
void kfi_helper_close_end(struct kfi_helper_close *close)
{
	if (close)
		atomic_long_set(&close->since, 0);
}

/* Starts the check of closes. Any context. */
void kfi_helper_closes_init(void)
{
	schedule_delayed_work(&close_check, round_jiffies_relative(HZ));
}

/* Stops the check of closes. Sleeps while the check logs objects. */
void kfi_helper_closes_exit(void)
{
	cancel_delayed_work_sync(&close_check);
}
