// SPDX-License-Identifier: GPL-2.0
/*
 * Requests of reliable connections. The model has no wire: the sender's work item checks what the peer's device would
 * check, moves the bytes in chunks, and completes the peer's receive request.
 */
#include "nic.h"

/* The peer of a connection, with a reference, if it is there, ready, and can be reached. */
static struct nic_qp *nic_peer_get(struct nic_qp *qp)
{
	struct nic_qp *peer = nic_qp_get(qp->attr.dest_qp_num);
	struct nic_port *port;
	bool ready;

	guard(srcu)(&nic_srcu);
	if (!peer)
		return NULL;
	spin_lock_irq(&peer->lock);
	ready = peer->ib.qp_type == IB_QPT_RC && peer->attr.dest_qp_num == qp->ib.qp_num &&
		(peer->state == IB_QPS_RTR || peer->state == IB_QPS_RTS);
	spin_unlock_irq(&peer->lock);
	if (ready && !qp->nic->persona->iwarp) {
		port = nic_find_port(qp->nic, &qp->attr.ah_attr);
		ready = port && port->nic == peer->nic && port->number == peer->attr.port_num;
	}
	if (ready)
		return peer;
	nic_qp_put(peer);
	return NULL;
}

/* In units of 10 us, by the value on the wire. */
static const u16 rnr_timers[] = {
	65535, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
	49152,
};

/* How long a peer without a receive request wants its sender to wait, in jiffies. */
unsigned long nic_rnr_delay(struct nic_qp *qp)
{
	struct nic_qp *peer = nic_qp_get(qp->attr.dest_qp_num);
	unsigned int timer = 0;

	if (peer) {
		timer = peer->attr.min_rnr_timer % ARRAY_SIZE(rnr_timers);
		nic_qp_put(peer);
	}
	return max(1, usecs_to_jiffies(10 * rnr_timers[timer]));
}

/*
 * The peer refuses a request: its queue pair fails, and the sender is told. iWARP tells only who waits for an answer;
 * the connection ends in any case. A queue pair that has failed meanwhile, so that its region may be gone, says nothing.
 */
static int nic_refused(struct nic_qp *qp, struct nic_qp *peer, enum ib_wr_opcode opcode,
		       enum ib_wc_status status, enum ib_event_type event)
{
	if (!nic_qp_fail(peer, event) && status == IB_WC_REM_ACCESS_ERR)
		return NIC_NO_ANSWER;
	if (!qp->nic->persona->iwarp)
		return status;
	return opcode == IB_WR_RDMA_READ || opcode == IB_WR_RDMA_READ_WITH_INV ? IB_WC_WR_FLUSH_ERR : IB_WC_SUCCESS;
}

enum nic_moved {
	NIC_MOVED,
	NIC_SOURCE_FAILED,
	NIC_SINK_FAILED,
};

/* Move a message from one end to the other, by the sender's chunk. */
static enum nic_moved nic_move(struct nic_qp *qp, const struct nic_end *from,
			       const struct nic_end *to, u32 len)
{
	u32 at, n;

	for (at = 0; at < len; at += n) {
		n = min_t(u32, len - at, NIC_CHUNK);
		if (nic_end_copy(from, at, qp->chunk, n, false))
			return NIC_SOURCE_FAILED;
		if (nic_end_copy(to, at, qp->chunk, n, true))
			return NIC_SINK_FAILED;
	}
	return NIC_MOVED;
}

/* The memory of a request at the sender's side. */
static struct nic_end nic_local(struct nic_qp *qp, struct nic_wqe *wqe)
{
	return (struct nic_end) {
		.qp = qp, .sge = wqe->sge, .n = wqe->n,
		.data = wqe->is_inline ? wqe->data : NULL,
	};
}

static int nic_no_receive(struct nic_qp *qp, struct nic_qp *peer, enum ib_wr_opcode opcode)
{
	if (!qp->nic->persona->iwarp)
		return NIC_NO_RECEIVE;
	return nic_refused(qp, peer, opcode, IB_WC_SUCCESS, IB_EVENT_QP_FATAL);
}

static int nic_send(struct nic_qp *qp, struct nic_qp *peer, struct nic_wqe *wqe)
{
	struct ib_wc wc = { .opcode = IB_WC_RECV, .byte_len = wqe->len };
	struct nic_end from = nic_local(qp, wqe), to;
	struct nic_recv recv;
	int status = IB_WC_SUCCESS;

	if (nic_end_check(&from, wqe->len))
		return IB_WC_LOC_PROT_ERR;
	if (!nic_take_recv(peer, &recv))
		return nic_no_receive(qp, peer, wqe->wr.opcode);
	to = (struct nic_end) {
		.qp = peer, .sge = recv.sge, .n = recv.n, .access = IB_ACCESS_LOCAL_WRITE,
	};
	if (nic_sge_len(recv.sge, recv.n) < wqe->len) {
		wc.status = IB_WC_LOC_LEN_ERR;
		status = IB_WC_REM_INV_REQ_ERR;
	} else if (nic_end_check(&to, wqe->len)) {
		wc.status = IB_WC_LOC_PROT_ERR;
		status = IB_WC_REM_OP_ERR;
	} else {
		switch (nic_move(qp, &from, &to, wqe->len)) {
		case NIC_SOURCE_FAILED:
			/* The peer has got a part of the message; its request is flushed. */
			wc.status = IB_WC_WR_FLUSH_ERR;
			nic_complete_recv(peer, &recv, &wc, false);
			nic_qp_fail(peer, IB_EVENT_QP_FATAL);
			return IB_WC_LOC_PROT_ERR;
		case NIC_SINK_FAILED:
			wc.status = IB_WC_LOC_PROT_ERR;
			status = IB_WC_REM_OP_ERR;
			break;
		case NIC_MOVED:
			break;
		}
	}
	if (status == IB_WC_SUCCESS && wqe->wr.opcode == IB_WR_SEND_WITH_INV) {
		wc.wc_flags |= IB_WC_WITH_INVALIDATE;
		wc.ex.invalidate_rkey = wqe->wr.ex.invalidate_rkey;
		if (nic_mr_invalidate(peer, wqe->wr.ex.invalidate_rkey, true)) {
			wc.status = IB_WC_LOC_QP_OP_ERR;
			status = IB_WC_REM_OP_ERR;
		}
	}
	if (wqe->wr.opcode == IB_WR_SEND_WITH_IMM) {
		wc.wc_flags |= IB_WC_WITH_IMM;
		wc.ex.imm_data = wqe->wr.ex.imm_data;
	}
	nic_complete_recv(peer, &recv, &wc, wqe->wr.send_flags & IB_SEND_SOLICITED);
	if (status == IB_WC_SUCCESS)
		return status;
	return nic_refused(qp, peer, wqe->wr.opcode, status, 0);
}

static int nic_write(struct nic_qp *qp, struct nic_qp *peer, struct nic_wqe *wqe)
{
	struct ib_sge remote = { wqe->remote_addr, wqe->len, wqe->rkey };
	struct nic_end from = nic_local(qp, wqe);
	struct nic_end to = { .qp = peer, .sge = &remote, .n = 1, .access = IB_ACCESS_REMOTE_WRITE };
	bool imm = wqe->wr.opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	struct ib_wc wc = {
		.opcode = IB_WC_RECV_RDMA_WITH_IMM, .byte_len = wqe->len,
		.wc_flags = IB_WC_WITH_IMM, .ex.imm_data = wqe->wr.ex.imm_data,
	};
	struct nic_recv recv;

	if (nic_end_check(&from, wqe->len))
		return IB_WC_LOC_PROT_ERR;
	if (wqe->len && (!(peer->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) ||
			 nic_end_check(&to, wqe->len)))
		goto refused;
	if (imm && !nic_take_recv(peer, &recv))
		return nic_no_receive(qp, peer, wqe->wr.opcode);
	switch (nic_move(qp, &from, &to, wqe->len)) {
	case NIC_SOURCE_FAILED:
		if (imm) {
			wc.status = IB_WC_WR_FLUSH_ERR;
			nic_complete_recv(peer, &recv, &wc, false);
			nic_qp_fail(peer, IB_EVENT_QP_FATAL);
		}
		return IB_WC_LOC_PROT_ERR;
	case NIC_SINK_FAILED:
		if (imm) {
			wc.status = IB_WC_WR_FLUSH_ERR;
			nic_complete_recv(peer, &recv, &wc, false);
		}
		goto refused;
	case NIC_MOVED:
		break;
	}
	if (imm)
		nic_complete_recv(peer, &recv, &wc, wqe->wr.send_flags & IB_SEND_SOLICITED);
	return IB_WC_SUCCESS;
refused:
	return nic_refused(qp, peer, wqe->wr.opcode, IB_WC_REM_ACCESS_ERR,
			   IB_EVENT_QP_ACCESS_ERR);
}

static int nic_read(struct nic_qp *qp, struct nic_qp *peer, struct nic_wqe *wqe)
{
	struct ib_sge remote = { wqe->remote_addr, wqe->len, wqe->rkey };
	struct nic_end from = { .qp = peer, .sge = &remote, .n = 1, .access = IB_ACCESS_REMOTE_READ };
	struct nic_end to = { .qp = qp, .sge = wqe->sge, .n = wqe->n, .read_sink = true };

	if (nic_end_check(&to, wqe->len))
		return IB_WC_LOC_PROT_ERR;
	if (!qp->nic->persona->iwarp && !peer->attr.max_dest_rd_atomic)
		return nic_refused(qp, peer, wqe->wr.opcode, IB_WC_REM_INV_REQ_ERR,
				   IB_EVENT_QP_REQ_ERR);
	if (wqe->len && (!(peer->attr.qp_access_flags & IB_ACCESS_REMOTE_READ) ||
			 nic_end_check(&from, wqe->len)))
		goto refused;
	switch (nic_move(qp, &from, &to, wqe->len)) {
	case NIC_SOURCE_FAILED:
		goto refused;
	case NIC_SINK_FAILED:
		return IB_WC_LOC_PROT_ERR;
	case NIC_MOVED:
		break;
	}
	/* Hardware invalidates the key of the sink. rdma_rw names an old one (rdma_rw_update_lkey()). */
	if (wqe->wr.opcode == IB_WR_RDMA_READ_WITH_INV && wqe->n &&
	    nic_mr_invalidate(qp, wqe->sge[0].lkey, false))
		return IB_WC_LOC_QP_OP_ERR;
	return IB_WC_SUCCESS;
refused:
	return nic_refused(qp, peer, wqe->wr.opcode, IB_WC_REM_ACCESS_ERR,
			   IB_EVENT_QP_ACCESS_ERR);
}

static int nic_atomic(struct nic_qp *qp, struct nic_qp *peer, struct nic_wqe *wqe)
{
	struct ib_sge remote = { wqe->remote_addr, sizeof(u64), wqe->rkey };
	struct nic_end there = {
		.qp = peer, .sge = &remote, .n = 1, .access = IB_ACCESS_REMOTE_ATOMIC,
	};
	struct nic_end here = {
		.qp = qp, .sge = wqe->sge, .n = wqe->n, .access = IB_ACCESS_LOCAL_WRITE,
	};
	u64 old = 0, new;
	int err;

	if (nic_end_check(&here, sizeof(u64)))
		return IB_WC_LOC_PROT_ERR;
	if (!IS_ALIGNED(wqe->remote_addr, sizeof(u64)) || !peer->attr.max_dest_rd_atomic)
		return nic_refused(qp, peer, wqe->wr.opcode, IB_WC_REM_INV_REQ_ERR,
				   IB_EVENT_QP_REQ_ERR);
	if (!(peer->attr.qp_access_flags & IB_ACCESS_REMOTE_ATOMIC))
		goto refused;
	mutex_lock(&peer->nic->atomic);
	err = nic_end_copy(&there, 0, &old, sizeof(old), false);
	if (wqe->wr.opcode == IB_WR_ATOMIC_FETCH_AND_ADD)
		new = old + wqe->operand;
	else
		new = old == wqe->operand ? wqe->swap : old;
	if (!err)
		err = nic_end_copy(&there, 0, &new, sizeof(new), true);
	mutex_unlock(&peer->nic->atomic);
	if (err)
		goto refused;
	if (nic_end_copy(&here, 0, &old, sizeof(old), true))
		return IB_WC_LOC_PROT_ERR;
	return IB_WC_SUCCESS;
refused:
	return nic_refused(qp, peer, wqe->wr.opcode, IB_WC_REM_ACCESS_ERR,
			   IB_EVENT_QP_ACCESS_ERR);
}

/*
 * Carry out the first request of a queue pair. Returns an enum ib_wc_status, or NIC_NO_RECEIVE or NIC_NO_ANSWER if it is to
 * be tried again. May sleep.
 */
int nic_rc_execute(struct nic_qp *qp, struct nic_wqe *wqe)
{
	struct nic_qp *peer;
	int status;

	switch (wqe->wr.opcode) {
	case IB_WR_REG_MR:
		return nic_mr_register(qp, wqe) ? IB_WC_MW_BIND_ERR : IB_WC_SUCCESS;
	case IB_WR_LOCAL_INV:
		if (nic_fault(qp->nic, NIC_FAULT_INV))
			return IB_WC_LOC_QP_OP_ERR;
		return nic_mr_invalidate(qp, wqe->wr.ex.invalidate_rkey, false) ?
		       IB_WC_LOC_QP_OP_ERR : IB_WC_SUCCESS;
	default:
		break;
	}
	peer = nic_peer_get(qp);
	if (!peer)
		return NIC_NO_ANSWER;
	switch (wqe->wr.opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		status = nic_write(qp, peer, wqe);
		break;
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		status = nic_read(qp, peer, wqe);
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		status = nic_atomic(qp, peer, wqe);
		break;
	default:
		status = nic_send(qp, peer, wqe);
		break;
	}
	nic_qp_put(peer);
	return status;
}
