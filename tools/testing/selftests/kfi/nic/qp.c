// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs and shared receive queues: how they are made, change state and end. A queue pair's work item carries out
 * its requests one after the other, and flushes them when it is in the state ERR.
 */
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "nic.h"

/* Numbers 0 and 1 are those of the management queue pairs. Each port has its own. */
static DEFINE_XARRAY_FLAGS(nic_qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
#define NIC_QPNS	XA_LIMIT(16, 0xffffff)
static u32 nic_next_qpn;

/* Returns a queue pair of any device, with a reference, or NULL. Any context. */
struct nic_qp *nic_qp_get(u32 number)
{
	struct nic_qp *qp;
	unsigned long flags;

	xa_lock_irqsave(&nic_qps, flags);
	qp = xa_load(&nic_qps, number);
	if (qp && !refcount_inc_not_zero(&qp->refs))
		qp = NULL;
	xa_unlock_irqrestore(&nic_qps, flags);
	return qp;
}

void nic_qp_put(struct nic_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->freed);
}

/* Any context. */
void nic_qp_event(struct nic_qp *qp, enum ib_event_type type)
{
	struct ib_event event = { .device = &qp->nic->ib, .element.qp = &qp->ib, .event = type };

	if (qp->ib.event_handler)
		qp->ib.event_handler(&event, qp->ib.qp_context);
}

/*
 * Moves a queue pair to the state ERR and flushes its requests. Reports @event unless it is 0. Returns
 * false, and does nothing, unless the queue pair is in RTR, RTS or SQD. May sleep.
 */
bool nic_qp_fail(struct nic_qp *qp, enum ib_event_type event)
{
	bool failed;

	spin_lock_irq(&qp->lock);
	failed = qp->state == IB_QPS_RTR || qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQD;
	if (failed) {
		qp->state = IB_QPS_ERR;
		qp->flush_rq = true;
		mod_delayed_work(qp->nic->wq, &qp->work, 0);
	}
	spin_unlock_irq(&qp->lock);
	if (!failed)
		return false;
	if (event)
		nic_qp_event(qp, event);
	if (qp->nic->persona->iwarp)
		nic_iwarp_closed(qp, true);
	return true;
}

static bool nic_rq_pop(struct nic_rq *rq, struct nic_recv *recv)
{
	if (rq->head == rq->tail)
		return false;
	*recv = rq->ring[rq->tail++ % rq->size];
	return true;
}

static bool nic_srq_pop(struct nic_srq *srq, struct nic_recv *recv)
{
	struct ib_event event = {
		.device = srq->ib.device, .element.srq = &srq->ib,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};
	unsigned long flags;
	bool found, low;

	spin_lock_irqsave(&srq->lock, flags);
	found = nic_rq_pop(&srq->rq, recv);
	low = srq->rq.head - srq->rq.tail < srq->limit;
	if (low)
		srq->limit = 0;
	spin_unlock_irqrestore(&srq->lock, flags);
	if (low && srq->ib.event_handler)
		srq->ib.event_handler(&event, srq->ib.srq_context);
	return found;
}

/* A sender has completed a receive request. Without others, the queue can be flushed, or reset. Any context. */
static void nic_received(struct nic_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	if (!--qp->receiving) {
		if (qp->flush_rq)
			queue_delayed_work(qp->nic->wq, &qp->work, 0);
		wake_up_all(&qp->wait);
	}
	spin_unlock_irqrestore(&qp->lock, flags);
}

/* Takes the next receive request if the queue pair's state allows it. nic_complete_recv() must follow. Any context. */
bool nic_take_recv(struct nic_qp *qp, struct nic_recv *recv)
{
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&qp->lock, flags);
	if (qp->state == IB_QPS_RTR || qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQE)
		found = qp->ib.srq || nic_rq_pop(&qp->rq, recv);
	qp->receiving += found;
	spin_unlock_irqrestore(&qp->lock, flags);
	/* Outside of the lock, since this can call the consumer. */
	if (found && qp->ib.srq && !nic_srq_pop(to_nic_srq(qp->ib.srq), recv)) {
		nic_received(qp);
		return false;
	}
	return found;
}

/*
 * Returns true if a fault loses the completion. Waits if a fault delays it, until the queue pair is destroyed at the
 * latest. May sleep.
 */
static bool nic_delay_or_lose(struct nic_qp *qp)
{
	struct nic_device *nic = qp->nic;

	if (nic_fault(nic, NIC_FAULT_LOSE))
		return true;
	if (nic_fault(nic, NIC_FAULT_LATE))
		wait_event_timeout(qp->wait, READ_ONCE(qp->dying),
				   msecs_to_jiffies(nic_value(nic, NIC_VALUE_DELAY_MS)));
	return false;
}

static void nic_put_recv(struct nic_qp *qp, const struct nic_recv *recv, const struct ib_wc *wc,
			 bool solicited)
{
	struct nic_cqe cqe = {
		.wc = *wc, .qp = qp, .solicited = solicited || wc->status != IB_WC_SUCCESS,
	};

	nic_count(qp->nic, NIC_STAT_RECV_OPS, 1);
	if (nic_delay_or_lose(qp))
		return;
	cqe.wc.wr_id = recv->wr_id;
	cqe.wc.qp = &qp->ib;
	/* Without success, only the identity and the status mean something. */
	if (wc->status != IB_WC_SUCCESS)
		cqe.wc.byte_len = 0;
	nic_complete(to_nic_cq(qp->ib.recv_cq), &cqe);
}

/* Completes a receive request that was taken; @wc gives all but wr_id and qp. May sleep. */
void nic_complete_recv(struct nic_qp *qp, const struct nic_recv *recv, const struct ib_wc *wc,
		       bool solicited)
{
	nic_put_recv(qp, recv, wc, solicited);
	nic_received(qp);
}

static enum ib_wc_opcode nic_wc_opcode(const struct nic_wqe *wqe)
{
	switch (wqe->wr.opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		return IB_WC_RDMA_READ;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return IB_WC_COMP_SWAP;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return IB_WC_FETCH_ADD;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	default:
		return IB_WC_SEND;
	}
}

/* Fails the send queue of datagrams; the consumer moves it to RTS again. May sleep. */
static void nic_sq_fail(struct nic_qp *qp)
{
	spin_lock_irq(&qp->lock);
	if (qp->state == IB_QPS_RTS)
		qp->state = IB_QPS_SQE;
	spin_unlock_irq(&qp->lock);
}

/* Completes the first request that is not carried out. */
static void nic_finish(struct nic_qp *qp, struct nic_wqe *wqe, enum ib_wc_status status)
{
	struct nic_cqe cqe = { .qp = qp, .send = true };

	if (status == IB_WC_SUCCESS && nic_fault(qp->nic, NIC_FAULT_COMPLETE))
		status = IB_WC_GENERAL_ERR;
	nic_count(qp->nic, NIC_STAT_SEND_OPS, 1);
	if (wqe->mr)
		nic_mr_put(wqe->mr);
	wqe->mr = NULL;
	cqe.wc.wr_id = wqe->wr.wr_id;
	cqe.wc.status = status;
	cqe.wc.opcode = nic_wc_opcode(wqe);
	if (status == IB_WC_SUCCESS)
		cqe.wc.byte_len = wqe->len;
	cqe.wc.qp = &qp->ib;
	cqe.solicited = status != IB_WC_SUCCESS;
	cqe.upto = qp->sq_exec + 1;
	if (status != IB_WC_SUCCESS && status != IB_WC_WR_FLUSH_ERR) {
		if (qp->ib.qp_type == IB_QPT_RC)
			nic_qp_fail(qp, 0);
		else
			nic_sq_fail(qp);
	}
	if ((wqe->signaled || status != IB_WC_SUCCESS) && !nic_delay_or_lose(qp))
		nic_complete(to_nic_cq(qp->ib.send_cq), &cqe);
	spin_lock_irq(&qp->lock);
	qp->sq_exec++;
	if (qp->nic->early_places)
		WRITE_ONCE(qp->sq_tail, qp->sq_exec);
	spin_unlock_irq(&qp->lock);
	qp->tries = 0;
	qp->rnr_tries = 0;
}

/* Flush the receive queue of a queue pair in the state ERR. */
static void nic_flush_rq(struct nic_qp *qp)
{
	const struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .opcode = IB_WC_RECV };
	struct nic_recv recv;
	bool found;

	do {
		spin_lock_irq(&qp->lock);
		found = nic_rq_pop(&qp->rq, &recv);
		qp->flush_rq = found;
		spin_unlock_irq(&qp->lock);
		if (found)
			nic_put_recv(qp, &recv, &wc, false);
	} while (found);
	if (qp->ib.srq && qp->nic->persona->last_wqe && !qp->last_wqe_told) {
		qp->last_wqe_told = true;
		nic_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
	}
}

/* Returns the jiffies until a request without an answer is tried again, or 0 to give up. */
static unsigned long nic_retry_delay(struct nic_qp *qp, int why)
{
	if (why == NIC_NO_RECEIVE) {
		if (qp->attr.rnr_retry < 7 && qp->rnr_tries++ >= qp->attr.rnr_retry)
			return 0;
		return nic_rnr_delay(qp);
	}
	/* 4.096 us times two to the power of the timeout; without one, for ever. */
	if (qp->attr.timeout && qp->tries++ > qp->attr.retry_cnt)
		return 0;
	return max(1, nsecs_to_jiffies(4096ULL << (qp->attr.timeout ?: 14)));
}

/*
 * Carries out a datagram's request. The request completes when the datagram leaves, as on hardware: before anybody
 * can answer. A request that was answered, is cancelled and then completes is told to ib_mad's client twice.
 * May sleep.
 */
static void nic_execute_datagram(struct nic_qp *qp, struct nic_wqe *wqe)
{
	struct nic_datagram gram;
	int status = nic_ud_prepare(qp, wqe, &gram);

	nic_finish(qp, wqe, status);
	if (status == IB_WC_SUCCESS)
		nic_ud_send(qp, &gram);
}

/* Carries out the requests of a queue pair, or flushes them in the state ERR. */
static void nic_qp_work(struct work_struct *work)
{
	struct nic_qp *qp = container_of(to_delayed_work(work), struct nic_qp, work);

	for (;;) {
		struct nic_wqe *wqe = NULL;
		enum ib_qp_state state;
		bool flush_rq;
		int status;

		spin_lock_irq(&qp->lock);
		state = qp->state;
		/* Receives that a sender has taken complete first. */
		flush_rq = qp->flush_rq && !qp->receiving;
		if (qp->sq_exec != qp->sq_head)
			wqe = &qp->sq[qp->sq_exec % qp->sq_size];
		spin_unlock_irq(&qp->lock);
		if (READ_ONCE(qp->dying))
			return;
		if (state == IB_QPS_ERR || state == IB_QPS_SQE) {
			if (wqe)
				nic_finish(qp, wqe, IB_WC_WR_FLUSH_ERR);
			else if (flush_rq && state == IB_QPS_ERR)
				nic_flush_rq(qp);
			else
				return;
			continue;
		}
		if (!wqe || state != IB_QPS_RTS)
			return;
		if (qp->ib.qp_type != IB_QPT_RC) {
			nic_execute_datagram(qp, wqe);
			cond_resched();
			continue;
		}
		status = nic_rc_execute(qp, wqe);
		if (status < 0) {
			unsigned long delay = nic_retry_delay(qp, status);

			if (delay) {
				queue_delayed_work(qp->nic->wq, &qp->work, delay);
				return;
			}
			status = status == NIC_NO_RECEIVE ? IB_WC_RNR_RETRY_EXC_ERR :
							    IB_WC_RETRY_EXC_ERR;
		}
		nic_finish(qp, wqe, status);
		cond_resched();
	}
}

static int nic_check_cap(const struct nic_persona *persona, struct ib_qp_init_attr *init)
{
	struct ib_qp_cap *cap = &init->cap;

	if (cap->max_send_wr > 4096 || cap->max_recv_wr > 4096 ||
	    cap->max_send_sge > persona->max_send_sge || cap->max_recv_sge > persona->max_recv_sge)
		return -EINVAL;
	if (!init->srq && (cap->max_recv_wr < persona->min_recv ||
			   cap->max_recv_sge < persona->min_recv))
		return -EINVAL;
	if (cap->max_inline_data <= persona->max_inline)
		return 0;
	if (persona->inline_over == NIC_INLINE_REFUSED)
		return -EINVAL;
	cap->max_inline_data = persona->max_inline;
	return 0;
}

static int nic_rq_init(struct nic_rq *rq, u32 requests, u32 max_sge)
{
	rq->size = requests + 1;
	rq->max_sge = max_sge;
	rq->ring = kvcalloc(rq->size, sizeof(*rq->ring), GFP_KERNEL);
	return rq->ring ? 0 : -ENOMEM;
}

static int nic_qp_init(struct nic_qp *qp)
{
	u32 inline_len = max(qp->init.cap.max_inline_data, 1u), i;

	refcount_set(&qp->refs, 1);
	init_completion(&qp->freed);
	spin_lock_init(&qp->lock);
	init_waitqueue_head(&qp->wait);
	INIT_DELAYED_WORK(&qp->work, nic_qp_work);
	qp->state = IB_QPS_RESET;
	qp->sq_size = qp->init.cap.max_send_wr + 1;
	qp->sq = kvcalloc(qp->sq_size, sizeof(*qp->sq), GFP_KERNEL);
	qp->sq_data = kvcalloc(qp->sq_size, inline_len, GFP_KERNEL);
	qp->chunk = kmalloc(NIC_CHUNK, GFP_KERNEL);
	if (!qp->sq || !qp->sq_data || !qp->chunk)
		return -ENOMEM;
	for (i = 0; i < qp->sq_size; i++)
		qp->sq[i].data = qp->sq_data + i * inline_len;
	return nic_rq_init(&qp->rq, qp->init.cap.max_recv_wr, qp->init.cap.max_recv_sge);
}

static void nic_qp_free(struct nic_qp *qp)
{
	u32 i;

	for (i = qp->sq_exec; qp->sq && i != qp->sq_head; i++)
		if (qp->sq[i % qp->sq_size].mr)
			nic_mr_put(qp->sq[i % qp->sq_size].mr);
	kvfree(qp->sq);
	kvfree(qp->sq_data);
	kvfree(qp->rq.ring);
	kfree(qp->chunk);
}

/* Gives a queue pair its number. Other queue pairs can find it then. */
static int nic_qp_publish(struct nic_qp *qp)
{
	struct nic_port *port;
	u32 number;
	int err = 0;

	if (qp->ib.qp_type != IB_QPT_GSI && qp->ib.qp_type != IB_QPT_SMI) {
		/* The connection manager takes a number that comes back soon for a stale connection. */
		err = xa_alloc_cyclic_irq(&nic_qps, &number, qp, NIC_QPNS, &nic_next_qpn,
					  GFP_KERNEL);
		qp->ib.qp_num = number;
		return min(err, 0);
	}
	if (!rdma_is_port_valid(&qp->nic->ib, qp->init.port_num))
		return -EINVAL;
	port = &qp->nic->ports[qp->init.port_num - 1];
	qp->ib.qp_num = qp->ib.qp_type == IB_QPT_GSI;
	spin_lock_irq(&nic_list_lock);
	if (qp->ib.qp_type == IB_QPT_GSI ? port->gsi : port->smi)
		err = -EBUSY;
	else if (qp->ib.qp_type == IB_QPT_GSI)
		port->gsi = qp;
	else
		port->smi = qp;
	spin_unlock_irq(&nic_list_lock);
	return err;
}

static void nic_qp_unpublish(struct nic_qp *qp)
{
	if (qp->ib.qp_num > 1) {
		xa_erase_irq(&nic_qps, qp->ib.qp_num);
		return;
	}
	spin_lock_irq(&nic_list_lock);
	if (qp->ib.qp_num)
		qp->nic->ports[qp->init.port_num - 1].gsi = NULL;
	else
		qp->nic->ports[qp->init.port_num - 1].smi = NULL;
	spin_unlock_irq(&nic_list_lock);
}

static int nic_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct nic_device *nic = to_nic(ibqp->device);
	struct nic_qp *qp = to_nic_qp(ibqp);
	int err;

	switch (init->qp_type) {
	case IB_QPT_RC:
		/* Those devices have datagrams, and connections of their own kind only. */
		if (!nic->persona->fast_reg)
			return -EOPNOTSUPP;
		break;
	case IB_QPT_UD:
	case IB_QPT_GSI:
	case IB_QPT_SMI:
		if (nic->persona->iwarp)
			return -EOPNOTSUPP;
		break;
	default:
		return -EOPNOTSUPP;
	}
	err = nic_check_cap(nic->persona, init);
	if (err)
		return err;
	if (nic_fault(nic, NIC_FAULT_CREATE_QP))
		return nic_errno(nic);
	qp->nic = nic;
	qp->init = *init;
	err = nic_qp_init(qp);
	if (!err)
		err = nic_qp_publish(qp);
	if (err) {
		nic_qp_free(qp);
		return err;
	}
	nic_count(nic, NIC_STAT_QPS, 1);
	return 0;
}

/* Forget all requests, as a reset does. */
static void nic_qp_reset(struct nic_qp *qp)
{
	u32 i;

	cancel_delayed_work_sync(&qp->work);
	wait_event(qp->wait, !READ_ONCE(qp->receiving));
	nic_cq_forget(to_nic_cq(qp->ib.send_cq), qp);
	nic_cq_forget(to_nic_cq(qp->ib.recv_cq), qp);
	for (i = qp->sq_exec; i != qp->sq_head; i++) {
		struct nic_wqe *wqe = &qp->sq[i % qp->sq_size];

		if (wqe->mr)
			nic_mr_put(wqe->mr);
		wqe->mr = NULL;
	}
	qp->sq_head = 0;
	qp->sq_exec = 0;
	qp->sq_tail = 0;
	qp->rq.head = 0;
	qp->rq.tail = 0;
	qp->last_wqe_told = false;
	qp->flush_rq = false;
	qp->tries = 0;
	qp->rnr_tries = 0;
}

static void nic_take_attr(struct ib_qp_attr *to, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_ACCESS_FLAGS)
		to->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PORT)
		to->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		to->qkey = attr->qkey;
	if (mask & IB_QP_AV)
		to->ah_attr = attr->ah_attr;
	if (mask & IB_QP_PATH_MTU)
		to->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		to->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_DEST_QPN)
		to->dest_qp_num = attr->dest_qp_num;
	if (mask & IB_QP_RQ_PSN)
		to->rq_psn = attr->rq_psn;
	if (mask & IB_QP_SQ_PSN)
		to->sq_psn = attr->sq_psn;
	/* The core's reference to the GID ends with the call. */
	to->ah_attr.grh.sgid_attr = NULL;
}

/* Does the path leave by another port than the queue pair's? */
static bool nic_other_port(struct nic_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	u32 port = mask & IB_QP_PORT ? attr->port_num : qp->attr.port_num;

	return mask & IB_QP_AV && rdma_ah_get_port_num(&attr->ah_attr) != port;
}

static int nic_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			 struct ib_udata *udata)
{
	struct nic_qp *qp = to_nic_qp(ibqp);
	struct nic_device *nic = qp->nic;
	enum ib_qp_state old, new;

	if (nic_fault(nic, NIC_FAULT_MODIFY_QP))
		return nic_errno(nic);
	if ((mask & IB_QP_STATE) && attr->qp_state == IB_QPS_ERR &&
	    nic_fault(nic, NIC_FAULT_MODIFY_ERR))
		return nic_errno(nic);
	spin_lock_irq(&qp->lock);
	old = qp->state;
	new = mask & IB_QP_STATE ? attr->qp_state : old;
	if (!nic->persona->iwarp && (!ib_modify_qp_is_ok(old, new, ibqp->qp_type, mask) ||
				     nic_other_port(qp, attr, mask))) {
		spin_unlock_irq(&qp->lock);
		return -EINVAL;
	}
	nic_take_attr(&qp->attr, attr, mask);
	if (!(nic->persona->iwarp && (new == IB_QPS_SQD || old == IB_QPS_ERR)))
		qp->state = new;
	if (new == IB_QPS_ERR)
		qp->flush_rq = true;
	spin_unlock_irq(&qp->lock);
	if (new == IB_QPS_RESET && READ_ONCE(qp->state) == IB_QPS_RESET)
		nic_qp_reset(qp);
	else
		mod_delayed_work(nic->wq, &qp->work, 0);
	if (nic->persona->iwarp && (new == IB_QPS_ERR || new == IB_QPS_SQD))
		nic_iwarp_closed(qp, new == IB_QPS_ERR);
	return 0;
}

static int nic_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			struct ib_qp_init_attr *init)
{
	struct nic_qp *qp = to_nic_qp(ibqp);

	spin_lock_irq(&qp->lock);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->cap = qp->init.cap;
	*init = qp->init;
	spin_unlock_irq(&qp->lock);
	return 0;
}

static int nic_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct nic_qp *qp = to_nic_qp(ibqp);
	struct nic_device *nic = qp->nic;

	if (nic_fault(nic, NIC_FAULT_DESTROY_QP))
		return nic_errno(nic);
	if (nic->persona->iwarp)
		nic_iwarp_closed(qp, true);
	nic_qp_unpublish(qp);
	WRITE_ONCE(qp->dying, true);
	wake_up_all(&qp->wait);
	nic_qp_put(qp);
	wait_for_completion(&qp->freed);
	cancel_delayed_work_sync(&qp->work);
	nic_cq_forget(to_nic_cq(ibqp->send_cq), qp);
	nic_cq_forget(to_nic_cq(ibqp->recv_cq), qp);
	nic_qp_free(qp);
	nic_count(nic, NIC_STAT_QPS, -1);
	return 0;
}

struct nic_drain {
	struct ib_cqe cqe;
	struct completion done;
};

static void nic_drained(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct nic_drain, cqe)->done);
}

/* Drains a queue as the driver does: waits without a time limit. May sleep. */
static void nic_drain(struct ib_qp *ibqp, struct ib_cq *cq, bool send)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct nic_drain drain = { .cqe.done = nic_drained };
	int err;

	err = ib_modify_qp(ibqp, &attr, IB_QP_STATE);
	if (err) {
		dev_warn(&ibqp->device->dev, "failed to drain a queue: %d\n", err);
		return;
	}
	init_completion(&drain.done);
	nic_post_drain(to_nic_qp(ibqp), &drain.cqe, send);
	if (cq->poll_ctx != IB_POLL_DIRECT)
		wait_for_completion(&drain.done);
	else
		while (!wait_for_completion_timeout(&drain.done, HZ / 10))
			ib_process_cq_direct(cq, -1);
}

static void nic_drain_sq(struct ib_qp *ibqp)
{
	nic_drain(ibqp, ibqp->send_cq, true);
}

static void nic_drain_rq(struct ib_qp *ibqp)
{
	nic_drain(ibqp, ibqp->recv_cq, false);
}

static int nic_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
			  struct ib_udata *udata)
{
	struct nic_device *nic = to_nic(ibsrq->device);
	struct nic_srq *srq = to_nic_srq(ibsrq);
	int err;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > ibsrq->device->attrs.max_srq_wr ||
	    init->attr.max_sge > nic->persona->max_recv_sge)
		return -EINVAL;
	spin_lock_init(&srq->lock);
	err = nic_rq_init(&srq->rq, init->attr.max_wr, init->attr.max_sge);
	if (!err)
		nic_count(nic, NIC_STAT_SRQS, 1);
	return err;
}

static int nic_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			  enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct nic_srq *srq = to_nic_srq(ibsrq);

	if (mask & IB_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	if ((mask & IB_SRQ_LIMIT) && attr->srq_limit >= srq->rq.size)
		return -EINVAL;
	spin_lock_irq(&srq->lock);
	if (mask & IB_SRQ_LIMIT)
		srq->limit = attr->srq_limit;
	spin_unlock_irq(&srq->lock);
	return 0;
}

static int nic_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	kvfree(to_nic_srq(ibsrq)->rq.ring);
	nic_count(to_nic(ibsrq->device), NIC_STAT_SRQS, -1);
	return 0;
}

const struct ib_device_ops nic_qp_ops = {
	.create_qp = nic_create_qp,
	.modify_qp = nic_modify_qp,
	.query_qp = nic_query_qp,
	.destroy_qp = nic_destroy_qp,
	.post_send = nic_post_send,
	.post_recv = nic_post_recv,
	INIT_RDMA_OBJ_SIZE(ib_qp, nic_qp, ib),
};

const struct ib_device_ops nic_srq_ops = {
	.create_srq = nic_create_srq,
	.modify_srq = nic_modify_srq,
	.destroy_srq = nic_destroy_srq,
	.post_srq_recv = nic_post_srq_recv,
	INIT_RDMA_OBJ_SIZE(ib_srq, nic_srq, ib),
};

const struct ib_device_ops nic_drain_ops = {
	.drain_sq = nic_drain_sq,
	.drain_rq = nic_drain_rq,
};
