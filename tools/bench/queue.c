// SPDX-License-Identifier: GPL-2.0
/* A queue pair that is connected to itself, and waiting for what is posted there. */
#include <linux/sched.h>

#include "bench.h"

/* All that is ever under way: a batch. */
#define DEPTH	BATCH

static void request_ended(struct ib_cq *cq, struct ib_wc *wc)
{
	struct bench_queue *q = container_of(wc->wr_cqe, struct bench_queue, cqe);

	q->status = wc->status;
	if (q->direct)
		q->ended = true;
	else
		complete(&q->done);
}

/**
 * queue_open() - Make a queue.
 * @q: Where; zeroed.
 * @pd: The protection domain.
 * @direct: Whether queue_run() polls; otherwise it sleeps, and softirq wakes it.
 *
 * Context: May sleep.
 * Return: 0 or an errno. queue_close() is needed in any case.
 */
int queue_open(struct bench_queue *q, struct ib_pd *pd, bool direct)
{
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_cq *cq;
	struct ib_qp *qp;

	q->direct = direct;
	q->cqe.done = request_ended;
	init_completion(&q->done);
	/* Room for all, since those that fail complete without being asked to. */
	cq = ib_alloc_cq(pd->device, NULL, DEPTH, 0, direct ? IB_POLL_DIRECT : IB_POLL_SOFTIRQ);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	q->cq = cq;
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ib_create_qp(pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	q->qp = qp;
	return connect_to_self(qp);
}

/**
 * queue_close() - Destroy a queue.
 * @q: The queue that queue_open() was given.
 *
 * Context: May sleep.
 */
void queue_close(struct bench_queue *q)
{
	if (q->qp)
		ib_destroy_qp(q->qp);
	if (q->cq)
		ib_free_cq(q->cq);
}

/*
 * Let the one run who carries the request out: over rxe a worker that was woken, and there may be
 * only this one CPU. That costs what yield() does, and less than any sleep; cond_resched() does
 * nothing in a kernel that can be preempted.
 */
static void give_way(void)
{
	schedule();
}

/**
 * queue_run() - Post a chain of requests, and wait until the last has ended.
 * @q: The queue.
 * @first: The chain; each with @q's cqe, which completes also those that fail.
 * @last: Its last request, which is made the one to be signalled.
 *
 * Context: May sleep. One caller at a time.
 * Return: 0, an errno of the driver's, or -EIO; the queue is of no use any more then.
 */
int queue_run(struct bench_queue *q, const struct ib_send_wr *first, struct ib_send_wr *last)
{
	int ret;

	q->ended = false;
	last->send_flags = IB_SEND_SIGNALED;
	ret = ib_post_send(q->qp, first, NULL);
	if (ret)
		return ret;
	if (!q->direct)
		wait_for_completion(&q->done);
	else
		while (ib_process_cq_direct(q->cq, 1), !q->ended)
			give_way();
	return q->status == IB_WC_SUCCESS ? 0 : -EIO;
}
