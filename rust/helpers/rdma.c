// SPDX-License-Identifier: GPL-2.0
/* Helpers of the `rdma` crate; see the header for what belongs here. */
#include <linux/device.h>
#include <linux/irq_poll.h>
#include <linux/kmemleak.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "rdma_helpers.h"
#include "unfilled.h"

/* --- The device and its ports --- */

/* @name has room for IB_DEVICE_NAME_MAX bytes. A rename may run meanwhile. */
void rdma_helper_device_name(const struct ib_device *dev, char *name)
{
	strscpy(name, dev->name, IB_DEVICE_NAME_MAX);
}

u32 rdma_helper_first_port(const struct ib_device *dev)
{
	return rdma_start_port(dev);
}

u32 rdma_helper_last_port(const struct ib_device *dev)
{
	return rdma_end_port(dev);
}

enum rdma_helper_protocol rdma_helper_protocol(const struct ib_device *dev, u32 port)
{
	if (!rdma_is_port_valid(dev, port))
		return RDMA_HELPER_OTHER;
	if (rdma_protocol_ib(dev, port))
		return RDMA_HELPER_INFINIBAND;
	if (rdma_protocol_roce(dev, port))
		return RDMA_HELPER_ROCE;
	if (rdma_protocol_iwarp(dev, port))
		return RDMA_HELPER_IWARP;
	return RDMA_HELPER_OTHER;
}

enum rdma_ah_attr_type rdma_helper_ah_type(struct ib_device *dev, u32 port)
{
	return rdma_ah_find_type(dev, port);
}

bool rdma_helper_grh_required(const struct ib_device *dev, u32 port)
{
	return rdma_is_grh_required(dev, port);
}

void rdma_helper_set_dlid(struct rdma_ah_attr *attr, u32 dlid)
{
	rdma_ah_set_dlid(attr, dlid);
}

/* How many places of a RoCE port's GID table, the first ones, are kept for default GIDs. */
u32 rdma_helper_default_gids(const struct ib_device *dev, u32 port)
{
	return rdma_protocol_roce_eth_encap(dev, port) + rdma_protocol_roce_udp_encap(dev, port);
}

/* --- Objects --- */

struct ib_pd *rdma_helper_alloc_pd(struct ib_device *dev)
{
	return ib_alloc_pd(dev, 0);
}

/* Quiet. @cpu selects the completion vector; without one (-1), the RDMA core does. */
struct ib_cq *rdma_helper_alloc_cq(struct ib_device *dev, u32 nr_cqe, int cpu)
{
	int vector = cpu % max(dev->num_comp_vectors, 1);
	struct ib_cq *cq = cpu < 0 ? ib_alloc_cq_any(dev, NULL, nr_cqe, IB_POLL_SOFTIRQ) :
				     ib_alloc_cq(dev, NULL, nr_cqe, vector, IB_POLL_SOFTIRQ);

	if (!IS_ERR(cq))
		irq_poll_disable(&cq->iop);
	return cq;
}

/*
 * While a completion queue is quiet, softirq does not poll it, even after an interrupt. The task that made it
 * quiet may poll. This does not wait like irq_poll_disable(): it fails while softirq polls or is about to.
 * On success no callback is running.
 */
bool rdma_helper_quiet_cq(struct ib_cq *cq)
{
	return !test_and_set_bit(IRQ_POLL_F_SCHED, &cq->iop.state);
}

/*
 * Has softirq poll a quiet completion queue again, now if something has come meanwhile: drivers that
 * don't tell that interrupt at once. From here on the RDMA core asks for the next interrupt after
 * each poll.
 */
void rdma_helper_listen_cq(struct ib_cq *cq)
{
	irq_poll_enable(&cq->iop);
	if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
		irq_poll_sched(&cq->iop);
}

/* Completions taken out at a time. Mostly there is one, and the call shows that there are no more. */
#define REAP_BATCH	2

/*
 * Calls the callbacks of at most @budget completions. ib_process_cq_direct() clears a larger array on the
 * stack. Only for the single task that polls a quiet completion queue.
 */
void rdma_helper_reap_cq(struct ib_cq *cq, u32 budget)
{
	struct ib_wc wcs[REAP_BATCH] UNFILLED;
	struct ib_wc *wc;
	int n;

	do {
		n = ib_poll_cq(cq, min_t(u32, REAP_BATCH, budget), wcs);
		for (wc = wcs; wc < wcs + n; wc++)
			wc->wr_cqe->done(cq, wc);
		budget -= max(n, 0);
	} while (n == REAP_BATCH && budget);
}

/*
 * Lets other tasks run, if the scheduler finds that they need it more. The caller may be in any task state, and is
 * TASK_RUNNING afterwards: schedule() does not return by itself to a caller that isn't. Process context; may sleep.
 */
void rdma_helper_schedule(void)
{
	__set_current_state(TASK_RUNNING);
	schedule();
}

/* Has the scheduler said that the caller's turn is over, so that schedule() has others run? */
bool rdma_helper_turn_is_over(void)
{
	return need_resched() || test_thread_flag(TIF_NEED_RESCHED_LAZY);
}

/*
 * Nothing polls a completion queue any more that can't be freed: its callbacks have returned when
 * this does, and none is called again. Sleeps. This is what ib_free_cq() begins with.
 */
void rdma_helper_silence_cq(struct ib_cq *cq, bool quiet)
{
	if (!quiet)
		irq_poll_disable(&cq->iop);
}

/*
 * Its callbacks have returned when this does. Sleeps.
 *
 * ib_free_cq() by itself would wait for the poll only, but ib_poll_handler() uses the queue once more after
 * irq_poll_complete(), to ask for the next interrupt. That is in softirq, for which a grace period waits.
 */
void rdma_helper_free_cq(struct ib_cq *cq, bool quiet)
{
	rdma_helper_silence_cq(cq, quiet);
	synchronize_rcu_expedited();
	/* ib_free_cq() disables it once more; nothing is polled before that, whatever the driver tells. */
	set_bit(IRQ_POLL_F_DISABLE, &cq->iop.state);
	irq_poll_enable(&cq->iop);
	ib_free_cq(cq);
}

struct ib_qp *rdma_helper_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *attr)
{
	return ib_create_qp(pd, attr);
}

/* Receives that queue pairs share. */
struct ib_srq *rdma_helper_create_srq(struct ib_pd *pd, u32 requests, u32 segments)
{
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = requests, .max_sge = segments },
		.srq_type = IB_SRQT_BASIC,
	};

	return ib_create_srq(pd, &attr);
}

/*
 * A leaked object stays in the list of resources that user space can read. The name of its owner is a
 * string of this module, which may be unloaded. The name of the device stays valid.
 */
void rdma_helper_disown(struct ib_device *dev, struct rdma_restrack_entry *res)
{
	WRITE_ONCE(res->kern_name, dev->name);
}

/* --- Events --- */

void rdma_helper_register_events(struct ib_event_handler *handler, struct ib_device *dev,
				 void (*callback)(struct ib_event_handler *, struct ib_event *))
{
	INIT_IB_EVENT_HANDLER(handler, dev, callback);
	ib_register_event_handler(handler);
}

void rdma_helper_rescan_port(struct ib_device *dev, u32 port)
{
	rdma_roce_rescan_port(dev, port);
}

/* For an allocation that is kept for good, on purpose. */
void rdma_helper_not_leak(const void *object)
{
	kmemleak_not_leak(object);
}

void rdma_helper_sema_init(struct semaphore *sem, int val)
{
	sema_init(sem, val);
}
