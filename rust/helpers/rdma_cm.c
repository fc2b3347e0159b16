// SPDX-License-Identifier: GPL-2.0
/* Helpers of the `rdma` crate's connections; see the header for what belongs here. */
#include <linux/jiffies.h>
#include <linux/sched/mm.h>
#include <net/net_namespace.h>
#include "rdma_cm_helpers.h"

/* Carries its owner's name (KBUILD_MODNAME) for resource tracking. */
struct rdma_cm_id *rdma_helper_create_id(rdma_cm_event_handler handler, void *context)
{
	return rdma_create_id(&init_net, handler, context, RDMA_PS_TCP, IB_QPT_RC);
}

void rdma_helper_init_herald(struct rdma_helper_herald *herald)
{
	spin_lock_init(&herald->lock);
	herald->id = NULL;
}

/* Once this has returned, the identifier that was set before is not used any more. */
void rdma_helper_set_herald(struct rdma_helper_herald *herald, struct rdma_cm_id *id)
{
	unsigned long flags;

	spin_lock_irqsave(&herald->lock, flags);
	herald->id = id;
	spin_unlock_irqrestore(&herald->lock, flags);
}

void rdma_helper_qp_event(struct ib_event *event, void *context)
{
	struct rdma_helper_herald *herald = context;
	unsigned long flags;

	if (event->event != IB_EVENT_COMM_EST)
		return;
	spin_lock_irqsave(&herald->lock, flags);
	/* It may be there already, or be over. */
	if (herald->id)
		rdma_notify(herald->id, event->event);
	spin_unlock_irqrestore(&herald->lock, flags);
}

/* For a queue pair that can't be destroyed: the handler may go, with this module. */
void rdma_helper_silence_qp(struct ib_qp *qp)
{
	WRITE_ONCE(qp->registered_event_handler, NULL);
}

/* Allocations of the current task do not start I/O until rdma_helper_noio_restore(). Process context. */
unsigned int rdma_helper_noio_save(void)
{
	return memalloc_noio_save();
}

void rdma_helper_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}

/*
 * For the time limits of connections. Writing memory back may wait until a connection with a peer that is gone is
 * given up, so there must be a rescuer.
 */
static struct workqueue_struct *alarms;

int rdma_helper_alarms_init(void)
{
	alarms = alloc_workqueue("kfi_alarms", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return alarms ? 0 : -ENOMEM;
}

void rdma_helper_alarms_exit(void)
{
	destroy_workqueue(alarms);
}

void rdma_helper_init_alarm(struct delayed_work *work, work_func_t ring)
{
	INIT_DELAYED_WORK(work, ring);
}

void rdma_helper_set_alarm(struct delayed_work *work, u32 ms)
{
	mod_delayed_work(alarms, work, msecs_to_jiffies(ms));
}
