// SPDX-License-Identifier: GPL-2.0
/* Work requests, for the `rdma` crate. */
#include "rdma_helpers.h"
#include "unfilled.h"

/* Posts send requests. Any context. */
int rdma_helper_post_send(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	return ib_post_send(qp, wr, NULL);
}

/* Posts receives. Any context. */
int rdma_helper_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr)
{
	return ib_post_recv(qp, wr, NULL);
}

/* Posts receives for any of the queue pairs that share @srq. Any context. */
int rdma_helper_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr)
{
	return ib_post_srq_recv(srq, wr, NULL);
}

/* How many are copied at a time, to the stack. */
#define CHAIN_PART	8

/*
 * Posts a list of requests, each of which begins a union rdma_helper_send_wr. On an error, the requests
 * before *bad have been posted. Any context.
 *
 * A request can complete, and be freed, as soon as the device knows of it. The driver may still read its
 * next pointer: rxe does that afterwards. So drivers get copies.
 */
int rdma_helper_post_chain(struct ib_qp *qp, struct ib_send_wr *first, struct ib_send_wr **bad)
{
	union rdma_helper_send_wr copies[CHAIN_PART] UNFILLED;
	struct ib_send_wr *from[CHAIN_PART] UNFILLED;
	struct ib_send_wr *next = first;

	while (next) {
		const struct ib_send_wr *bad_wr = NULL;
		int i, n, ret;

		for (n = 0; next && n < CHAIN_PART; n++) {
			from[n] = next;
			copies[n] = *container_of(next, union rdma_helper_send_wr, send);
			next = next->next;
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
