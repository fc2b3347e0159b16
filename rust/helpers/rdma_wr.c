// SPDX-License-Identifier: GPL-2.0
/* Work requests, for the `rdma` crate. */
#include "rdma_helpers.h"
#include "registration.h"

static int post_reg(struct ib_qp *qp, const struct rdma_helper_wr *w)
{
	struct ib_reg_wr reg = registration(w->mr, w->access, w->flags, w->cqe);

	return ib_post_send(qp, &reg.wr, NULL);
}

/* All others. */
static void fill_other(union rdma_helper_room *room, const struct rdma_helper_wr *w)
{
	struct ib_send_wr send = {
		.wr_cqe = w->cqe,
		.sg_list = (struct ib_sge *)w->sges,
		.num_sge = w->num_sge,
		.opcode = w->opcode,
		.send_flags = IB_SEND_SIGNALED | w->flags,
	};

	switch (w->opcode) {
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		send.ex.imm_data = (__force __be32)w->ex;
		break;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		send.ex.invalidate_rkey = w->ex;
		break;
	default:
		break;
	}

	switch (w->opcode) {
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		room->rdma = (struct ib_rdma_wr) {
			.wr = send, .remote_addr = w->remote_addr, .rkey = w->rkey,
		};
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		room->atomic = (struct ib_atomic_wr) {
			.wr = send, .remote_addr = w->remote_addr, .rkey = w->rkey,
			.compare_add = w->compare_add, .swap = w->swap,
		};
		break;
	default:
		room->send = send;
	}
}

static struct ib_recv_wr receive(const struct rdma_helper_wr *w)
{
	return (struct ib_recv_wr) {
		.wr_cqe = w->cqe,
		.sg_list = (struct ib_sge *)w->sges,
		.num_sge = w->num_sge,
	};
}

static int post_other(struct ib_qp *qp, const struct rdma_helper_wr *w)
{
	union rdma_helper_room room;
	struct ib_recv_wr recv = receive(w);

	if (w->receive)
		return ib_post_recv(qp, &recv, NULL);
	fill_other(&room, w);
	return ib_post_send(qp, &room.send, NULL);
}

/* Posts one request, signalled. Any context. */
int rdma_helper_post(struct ib_qp *qp, const struct rdma_helper_wr *w)
{
	if (!w->receive && w->opcode == IB_WR_REG_MR)
		return post_reg(qp, w);
	return post_other(qp, w);
}

/* Posts a receive for whichever queue pair takes it. Any context. */
int rdma_helper_post_shared(struct ib_srq *srq, const struct rdma_helper_wr *w)
{
	struct ib_recv_wr recv = receive(w);

	return ib_post_srq_recv(srq, &recv, NULL);
}

/* --- Several in one go, each in room of its own --- */

/* The memory that @w refers to must stay valid until the request has been posted. */
void rdma_helper_fill(union rdma_helper_room *room, const struct rdma_helper_wr *w)
{
	if (w->opcode == IB_WR_REG_MR)
		room->reg = registration(w->mr, w->access, w->flags, w->cqe);
	else
		fill_other(room, w);
}

void rdma_helper_link(union rdma_helper_room *room, union rdma_helper_room *next)
{
	room->send.next = &next->send;
}

union rdma_helper_room *rdma_helper_next(union rdma_helper_room *room)
{
	/* Each begins with that. */
	return (union rdma_helper_room *)room->send.next;
}

struct ib_cqe *rdma_helper_cqe(const union rdma_helper_room *room)
{
	return room->send.wr_cqe;
}

/* Whether it completes also if it doesn't fail; as filled it does. */
void rdma_helper_signal(union rdma_helper_room *room, bool signal)
{
	if (signal)
		room->send.send_flags |= IB_SEND_SIGNALED;
	else
		room->send.send_flags &= ~IB_SEND_SIGNALED;
}

/* How many are copied at a time, to the stack. */
#define CHAIN_PART	8

/*
 * On an error those before *bad have been posted. Any context.
 *
 * A request can complete, and its room be freed, as soon as the device knows of it. The driver may still
 * read the link to the next one: rxe does that afterwards. So drivers get copies.
 */
int rdma_helper_post_chain(struct ib_qp *qp, union rdma_helper_room *first,
			   union rdma_helper_room **bad)
{
	union rdma_helper_room *from[CHAIN_PART], copies[CHAIN_PART], *next = first;

	while (next) {
		const struct ib_send_wr *bad_wr = NULL;
		int i, n, ret;

		for (n = 0; next && n < CHAIN_PART; n++) {
			from[n] = next;
			copies[n] = *next;
			next = rdma_helper_next(next);
			copies[n].send.next = NULL;
			if (n)
				copies[n - 1].send.next = &copies[n].send;
		}
		ret = ib_post_send(qp, &copies[0].send, &bad_wr);
		if (ret) {
			/* Not all drivers say which, if it is the first. */
			for (i = n - 1; i > 0 && bad_wr != &copies[i].send; i--)
				;
			*bad = from[i];
			return ret;
		}
	}
	return 0;
}

/*
 * Checks whether the driver takes IB_WR_LOCAL_INV. No attribute of a device tells. hns is the only driver that has fast
 * registration and lacks this request: its set_rc_opcode() refuses it with a kernel warning.
 */
bool rdma_helper_has_local_inv(const struct ib_device *dev)
{
	return dev->ops.driver_id != RDMA_DRIVER_HNS;
}

/*
 * Posts requests about regions with one doorbell. The last request is signalled and completes to @last. The others are
 * unsignalled: if one fails, it completes to @quiet.
 *
 * If the driver accepts some of the requests only, this posts a signalled invalidation behind them, which completes to
 * @last. It names a region that is valid at that point of the queue: the last one that is registered, or the first one
 * whose invalidation the driver refused. @posted is what has been posted then. Any context.
 */
int rdma_helper_post_together(struct ib_qp *qp, enum ib_wr_opcode opcode,
			      const struct rdma_helper_region_wr *regions, u32 count,
			      struct ib_cqe *quiet, struct ib_cqe *last,
			      enum rdma_helper_posted *posted)
{
	struct ib_reg_wr wrs[RDMA_HELPER_MAX_TOGETHER];
	const struct ib_send_wr *bad = NULL;
	u32 i;
	int ret;

	*posted = RDMA_HELPER_POSTED_ALL;
	for (i = 0; i < count; i++) {
		struct ib_mr *mr = regions[i].mr;
		bool ends = i + 1 == count;

		/* Drivers read no more of a request than its kind has. */
		wrs[i] = (struct ib_reg_wr) {
			.wr = {
				.next = ends ? NULL : &wrs[i + 1].wr,
				.wr_cqe = ends ? last : quiet,
				.opcode = opcode,
				.send_flags = ends ? IB_SEND_SIGNALED : 0,
				.ex.invalidate_rkey = regions[i].key,
			},
			.mr = mr,
			.key = mr ? mr->rkey : 0,
			.access = regions[i].access,
		};
	}
	ret = ib_post_send(qp, &wrs[0].wr, &bad);
	if (!ret)
		return 0;
	/* Not all drivers say which, if it is the first. */
	i = bad ? reg_wr(bad) - wrs : 0;
	if (!i)
		*posted = RDMA_HELPER_POSTED_NONE;
	else if (!rdma_helper_has_local_inv(qp->device) ||
		 rdma_helper_post_inv(qp, opcode == IB_WR_REG_MR ? wrs[i - 1].key :
							       regions[i].key, last))
		*posted = RDMA_HELPER_POSTED_UNTOLD;
	else
		*posted = RDMA_HELPER_POSTED_SOME;
	return ret;
}

/*
 * Returns whether the driver reports IB_EVENT_QP_LAST_WQE_REACHED. Of those that have shared receive queues, irdma
 * and qedr do not.
 */
bool rdma_helper_reports_last_wqe(const struct ib_device *dev)
{
	return dev->ops.driver_id != RDMA_DRIVER_IRDMA && dev->ops.driver_id != RDMA_DRIVER_QEDR;
}

/*
 * Waits until the device takes no more from the shared receive queue, which the core hears of. Not
 * ib_drain_qp(): that polls the completion queue, which has its own context, and waits for a minute.
 */
bool rdma_helper_await_last_wqe(struct ib_qp *qp, u32 seconds)
{
	return wait_for_completion_timeout(&qp->srq_completion, secs_to_jiffies(seconds)) > 0;
}
