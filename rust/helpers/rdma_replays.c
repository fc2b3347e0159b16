// SPDX-License-Identifier: GPL-2.0
/* Whether an emulated device has gone back in a send queue, for the `rdma` crate. */
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "rdma_helpers.h"

/* rxe's names of the counters that it raises before it goes back in a send queue, perhaps much later. */
static const char *const names[] = { "completer_retry_err", "rcvd_rnr_err" };

/* Where these are among the numbers that a device counts. */
struct rdma_helper_replays {
	spinlock_t lock; /* Protects the values of stats. */
	struct rdma_hw_stats *stats;
	u32 at[ARRAY_SIZE(names)];
};

void rdma_helper_free_replays(struct rdma_helper_replays *replays)
{
	rdma_free_hw_stats_struct(replays->stats);
	kfree(replays);
}

/*
 * Finds the counters by which rxe_completer() tells that its requester is to begin again with what the
 * peer has not acknowledged. Both are the device's, of all its queue pairs. NULL on other devices, and
 * without memory. May sleep.
 */
struct rdma_helper_replays *rdma_helper_find_replays(struct ib_device *dev)
{
	struct rdma_helper_replays *replays;

	if (dev->ops.driver_id != RDMA_DRIVER_RXE || !dev->ops.alloc_hw_port_stats ||
	    !dev->ops.get_hw_stats)
		return NULL;
	replays = kzalloc_obj(*replays);
	if (!replays)
		return NULL;
	spin_lock_init(&replays->lock);
	replays->stats = dev->ops.alloc_hw_port_stats(dev, rdma_start_port(dev));
	for (int i = 0; replays->stats && i < ARRAY_SIZE(names); i++) {
		u32 at = 0;

		while (at < replays->stats->num_counters &&
		       strcmp(replays->stats->descs[at].name, names[i]))
			at++;
		if (at == replays->stats->num_counters)
			goto not_found;
		replays->at[i] = at;
	}
	if (replays->stats)
		return replays;
not_found:
	rdma_helper_free_replays(replays);
	return NULL;
}

/* How often one of them has been counted. Any context. */
u64 rdma_helper_count_replays(struct ib_device *dev, struct rdma_helper_replays *replays)
{
	unsigned long flags;
	u64 sum = 0;

	spin_lock_irqsave(&replays->lock, flags);
	/* Reads each, and looks at nothing else. */
	dev->ops.get_hw_stats(dev, replays->stats, rdma_start_port(dev), 0);
	for (int i = 0; i < ARRAY_SIZE(names); i++)
		sum += replays->stats->value[replays->at[i]];
	spin_unlock_irqrestore(&replays->lock, flags);
	return sum;
}
