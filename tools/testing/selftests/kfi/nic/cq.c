// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues. Consumers are told of completions from a hard interrupt. The places of a send queue are free again
 * when a completion behind them has been polled, as with real drivers. The parameter early_places changes that.
 */
#include <linux/slab.h>

#include "nic.h"

/* In a hard interrupt. */
static void nic_cq_interrupt(struct irq_work *irq)
{
	struct nic_cq *cq = container_of(irq, struct nic_cq, irq);

	cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

static int nic_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs)
{
	struct nic_device *nic = to_nic(ibcq->device);
	struct nic_cq *cq = to_nic_cq(ibcq);

	if (!attr->cqe || attr->cqe > ibcq->device->attrs.max_cqe)
		return -EINVAL;
	if (nic_fault(nic, NIC_FAULT_CREATE_CQ))
		return nic_errno(nic);
	cq->ring = kvcalloc(attr->cqe, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	cq->size = attr->cqe;
	ibcq->cqe = attr->cqe;
	spin_lock_init(&cq->lock);
	cq->irq = IRQ_WORK_INIT_HARD(nic_cq_interrupt);
	nic_count(nic, NIC_STAT_CQS, 1);
	return 0;
}

static int nic_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct nic_cq *cq = to_nic_cq(ibcq);

	irq_work_sync(&cq->irq);
	kvfree(cq->ring);
	nic_count(to_nic(ibcq->device), NIC_STAT_CQS, -1);
	return 0;
}

/* Add a completion, and tell the consumer if it wants to hear of it. Any context. */
void nic_complete(struct nic_cq *cq, const struct nic_cqe *cqe)
{
	struct nic_device *nic = to_nic(cq->ib.device);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->head - cq->tail == cq->size) {
		spin_unlock_irqrestore(&cq->lock, flags);
		nic_count(nic, NIC_STAT_OVERFLOWS, 1);
		dev_err_ratelimited(&nic->ib.dev, "a completion queue of %u is full\n", cq->size);
		return;
	}
	cq->ring[cq->head++ % cq->size] = *cqe;
	if (cq->armed && (cqe->solicited || !cq->solicited_only)) {
		cq->armed = false;
		irq_work_queue(&cq->irq);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
}

static int nic_poll_cq(struct ib_cq *ibcq, int max, struct ib_wc *wc)
{
	struct nic_cq *cq = to_nic_cq(ibcq);
	unsigned long flags;
	int n;

	spin_lock_irqsave(&cq->lock, flags);
	for (n = 0; n < max && cq->tail != cq->head; n++) {
		struct nic_cqe *cqe = &cq->ring[cq->tail++ % cq->size];

		wc[n] = cqe->wc;
		if (!cqe->send || to_nic(ibcq->device)->early_places)
			continue;
		/* Pairs with nic_post_send(). */
		smp_store_release(&cqe->qp->sq_tail, cqe->upto);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

static int nic_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags how)
{
	struct nic_cq *cq = to_nic_cq(ibcq);
	bool solicited = (how & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	unsigned long flags;
	int missed;

	spin_lock_irqsave(&cq->lock, flags);
	/* The wider of two requests holds. */
	cq->solicited_only = solicited && (!cq->armed || cq->solicited_only);
	cq->armed = true;
	missed = (how & IB_CQ_REPORT_MISSED_EVENTS) && cq->head != cq->tail;
	spin_unlock_irqrestore(&cq->lock, flags);
	return missed;
}

/* Drop the completions of a queue pair that goes. Any context. */
void nic_cq_forget(struct nic_cq *cq, struct nic_qp *qp)
{
	unsigned long flags;
	u32 from, to;

	spin_lock_irqsave(&cq->lock, flags);
	for (from = to = cq->tail; from != cq->head; from++)
		if (cq->ring[from % cq->size].qp != qp)
			cq->ring[to++ % cq->size] = cq->ring[from % cq->size];
	cq->head = to;
	spin_unlock_irqrestore(&cq->lock, flags);
}

const struct ib_device_ops nic_cq_ops = {
	.create_cq = nic_create_cq,
	.destroy_cq = nic_destroy_cq,
	.poll_cq = nic_poll_cq,
	.req_notify_cq = nic_req_notify_cq,
	INIT_RDMA_OBJ_SIZE(ib_cq, nic_cq, ib),
};
