// SPDX-License-Identifier: GPL-2.0
/* Posting requests: what is wrong with one is found here, as far as drivers find it when it is posted. Any context. */
#include "nic.h"

/* Copy inline data, which need not be mapped. */
static int nic_copy_inline(struct nic_qp *qp, struct nic_wqe *wqe, const struct ib_send_wr *wr)
{
	u32 at = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->init.cap.max_inline_data - at)
			return -EINVAL;
		memcpy(wqe->data + at, (void *)(uintptr_t)sge->addr, sge->length);
		at += sge->length;
	}
	wqe->is_inline = true;
	wqe->len = at;
	return 0;
}

static int nic_fill_by_opcode(struct nic_qp *qp, struct nic_wqe *wqe, const struct ib_send_wr *wr)
{
	const struct nic_persona *persona = qp->nic->persona;

	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_INV:
		return 0;
	case IB_WR_SEND_WITH_IMM:
		return persona->iwarp ? -EINVAL : 0;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		if (persona->iwarp)
			return -EINVAL;
		fallthrough;
	case IB_WR_RDMA_WRITE:
		wqe->remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
		return 0;
	case IB_WR_RDMA_READ_WITH_INV:
		if (!persona->iwarp)
			return -EINVAL;
		fallthrough;
	case IB_WR_RDMA_READ:
		if (wr->num_sge > persona->max_read_sge)
			return -EINVAL;
		wqe->remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
		return 0;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		if (persona->iwarp || wr->num_sge != 1 || wr->sg_list->length != sizeof(u64))
			return -EINVAL;
		wqe->remote_addr = atomic_wr(wr)->remote_addr;
		wqe->rkey = atomic_wr(wr)->rkey;
		wqe->operand = atomic_wr(wr)->compare_add;
		wqe->swap = atomic_wr(wr)->swap;
		return 0;
	case IB_WR_REG_MR:
		if (!persona->fast_reg)
			return -EINVAL;
		wqe->mr = to_nic_mr(reg_wr(wr)->mr);
		wqe->key = reg_wr(wr)->key;
		wqe->access = reg_wr(wr)->access;
		refcount_inc(&wqe->mr->refs);
		return 0;
	case IB_WR_LOCAL_INV:
		if (WARN_ONCE(!persona->local_inv, "kfi_nic: no IB_WR_LOCAL_INV on %s\n",
			      persona->name))
			return -EINVAL;
		return 0;
	default:
		return -EINVAL;
	}
}

static int nic_fill_datagram(struct nic_wqe *wqe, const struct ib_send_wr *wr)
{
	if (wr->opcode != IB_WR_SEND && wr->opcode != IB_WR_SEND_WITH_IMM)
		return -EINVAL;
	if (!ud_wr(wr)->ah)
		return -EINVAL;
	wqe->ah = to_nic_ah(ud_wr(wr)->ah);
	wqe->remote_qpn = ud_wr(wr)->remote_qpn;
	wqe->remote_qkey = ud_wr(wr)->remote_qkey;
	return 0;
}

/* Put a request into its place. Under qp->lock. */
static int nic_fill(struct nic_qp *qp, struct nic_wqe *wqe, const struct ib_send_wr *wr)
{
	const struct nic_persona *persona = qp->nic->persona;
	bool is_inline = wr->send_flags & IB_SEND_INLINE;
	u8 *data = wqe->data;
	int err;

	if (wr->num_sge < 0 || wr->num_sge > qp->init.cap.max_send_sge)
		return -EINVAL;
	*wqe = (struct nic_wqe) {
		.data = data,
		.wr.wr_id = wr->wr_id,
		.wr.opcode = wr->opcode,
		.wr.send_flags = wr->send_flags,
		.wr.ex = wr->ex,
		.n = wr->num_sge,
		.signaled = qp->init.sq_sig_type == IB_SIGNAL_ALL_WR ||
			    (wr->send_flags & IB_SEND_SIGNALED),
	};
	if (wr->num_sge)
		memcpy(wqe->sge, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
	if (nic_sge_len(wqe->sge, wqe->n) > NIC_MAX_MSG)
		return -EINVAL;
	wqe->len = nic_sge_len(wqe->sge, wqe->n);
	if (is_inline && persona->inline_over != NIC_INLINE_IGNORED) {
		err = nic_copy_inline(qp, wqe, wr);
		if (err)
			return err;
	}
	if (qp->ib.qp_type != IB_QPT_RC)
		return nic_fill_datagram(wqe, wr);
	return nic_fill_by_opcode(qp, wqe, wr);
}

int nic_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct nic_qp *qp = to_nic_qp(ibqp);
	unsigned long flags;
	int err = 0;

	nic_count(qp->nic, NIC_STAT_POSTS, 1);
	spin_lock_irqsave(&qp->lock, flags);
	for (; wr; wr = wr->next) {
		if (qp->state != IB_QPS_RTS && qp->state != IB_QPS_ERR &&
		    qp->state != IB_QPS_SQE && qp->state != IB_QPS_SQD)
			err = -EINVAL;
		/* Pairs with nic_poll_cq(): what it polled is not needed any more. */
		else if (qp->sq_head - smp_load_acquire(&qp->sq_tail) >= qp->sq_size - 1)
			err = -ENOMEM;
		else if (nic_fault(qp->nic, NIC_FAULT_POST))
			err = nic_errno(qp->nic);
		else
			err = nic_fill(qp, &qp->sq[qp->sq_head % qp->sq_size], wr);
		if (err)
			break;
		qp->sq_head++;
	}
	if (err && bad)
		*bad = wr;
	queue_delayed_work(qp->nic->wq, &qp->work, 0);
	spin_unlock_irqrestore(&qp->lock, flags);
	return err;
}

static int nic_fill_recv(struct nic_device *nic, struct nic_rq *rq, const struct ib_recv_wr *wr)
{
	struct nic_recv *recv;

	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return -EINVAL;
	if (rq->head - rq->tail >= rq->size - 1)
		return -ENOMEM;
	if (nic_fault(nic, NIC_FAULT_POST))
		return nic_errno(nic);
	recv = &rq->ring[rq->head % rq->size];
	recv->wr_id = wr->wr_id;
	recv->n = wr->num_sge;
	if (wr->num_sge)
		memcpy(recv->sge, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
	rq->head++;
	return 0;
}

int nic_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct nic_qp *qp = to_nic_qp(ibqp);
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&qp->lock, flags);
	for (; wr && !err; wr = wr->next) {
		err = qp->state == IB_QPS_RESET || ibqp->srq ? -EINVAL :
		      nic_fill_recv(qp->nic, &qp->rq, wr);
		if (err && bad)
			*bad = wr;
	}
	if (qp->state == IB_QPS_ERR) {
		qp->flush_rq = true;
		queue_delayed_work(qp->nic->wq, &qp->work, 0);
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	return err;
}

int nic_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad)
{
	struct nic_srq *srq = to_nic_srq(ibsrq);
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&srq->lock, flags);
	for (; wr && !err; wr = wr->next) {
		err = nic_fill_recv(to_nic(ibsrq->device), &srq->rq, wr);
		if (err && bad)
			*bad = wr;
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	return err;
}

/* A request that only says when all before it have been flushed, in a place that is kept for it. May sleep. */
void nic_post_drain(struct nic_qp *qp, struct ib_cqe *cqe, bool send)
{
	spin_lock_irq(&qp->lock);
	if (send) {
		struct nic_wqe *wqe = &qp->sq[qp->sq_head++ % qp->sq_size];
		u8 *data = wqe->data;

		*wqe = (struct nic_wqe) {
			.data = data, .wr.wr_cqe = cqe, .wr.opcode = IB_WR_RDMA_WRITE, .signaled = true,
		};
	} else {
		struct nic_recv *recv = &qp->rq.ring[qp->rq.head++ % qp->rq.size];

		recv->wr_id = (uintptr_t)cqe;
		recv->n = 0;
		qp->flush_rq = true;
	}
	queue_delayed_work(qp->nic->wq, &qp->work, 0);
	spin_unlock_irq(&qp->lock);
}
