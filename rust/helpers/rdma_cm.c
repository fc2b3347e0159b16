// SPDX-License-Identifier: GPL-2.0
/* Helpers of the `rdma` crate's connections; see the header for what belongs here. */
#include <linux/jiffies.h>
#include <net/net_namespace.h>
#include "rdma_cm_helpers.h"

/* Carries its owner's name (KBUILD_MODNAME) for resource tracking. */
struct rdma_cm_id *rdma_helper_create_id(rdma_cm_event_handler handler, void *context)
{
	return rdma_create_id(&init_net, handler, context, RDMA_PS_TCP, IB_QPT_RC);
}

void rdma_helper_init_alarm(struct delayed_work *work, work_func_t ring)
{
	INIT_DELAYED_WORK(work, ring);
}

void rdma_helper_set_alarm(struct delayed_work *work, u32 ms)
{
	queue_delayed_work(system_dfl_wq, work, msecs_to_jiffies(ms));
}
