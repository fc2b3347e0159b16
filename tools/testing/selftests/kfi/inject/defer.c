// SPDX-License-Identifier: GPL-2.0
/*
 * Requests that reach the driver later than they were posted: when the state of their queue pair changes, for
 * whatever state that is.
 *
 * They are copied, and posted in their order, before anything that is posted after the change.
 */
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "inject.h"

/* How many there may be. */
#define ROOM	16

/**
 * struct deferred - a request that the driver doesn't know of yet
 * @qp: Where it was posted.
 * @wr: A copy of it. Only an IB_WR_REG_MR has more than its first member.
 */
struct deferred {
	struct ib_qp *qp;
	struct ib_reg_wr wr;
};

/* In the order in which they were posted. */
static struct deferred all[ROOM];
static unsigned int count;
static DEFINE_SPINLOCK(lock);

/**
 * defer() - Keep requests.
 * @qp: Where they are posted.
 * @wr: The first of them.
 *
 * Context: Any.
 * Return: 0, or -ENOMEM without room for all of them; none is kept then.
 */
int defer(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	unsigned int had;

	guard(spinlock_irqsave)(&lock);
	for (had = count; wr; wr = wr->next) {
		struct deferred *d = &all[count];

		if (count == ROOM) {
			count = had;
			return -ENOMEM;
		}
		d->qp = qp;
		if (wr->opcode == IB_WR_REG_MR)
			d->wr = *reg_wr(wr);
		else
			d->wr.wr = *wr;
		d->wr.wr.next = NULL;
		count++;
	}
	return 0;
}

/* Takes the first one of a queue pair. */
static bool take(struct ib_qp *qp, struct ib_reg_wr *wr)
{
	unsigned int i;

	guard(spinlock_irqsave)(&lock);
	for (i = 0; i < count; i++) {
		if (all[i].qp != qp)
			continue;
		*wr = all[i].wr;
		count--;
		memmove(&all[i], &all[i + 1], (count - i) * sizeof(all[0]));
		return true;
	}
	return false;
}

/**
 * defer_end() - Have the requests of a queue pair posted.
 * @qp: The queue pair.
 * @post: Posts one; NULL: they are forgotten.
 *
 * Context: As that of @post.
 */
void defer_end(struct ib_qp *qp, int (*post)(struct ib_qp *qp, const struct ib_send_wr *wr,
					     const struct ib_send_wr **bad_wr))
{
	const struct ib_send_wr *bad;
	struct ib_reg_wr wr;

	while (take(qp, &wr))
		if (post)
			WARN_ON_ONCE(post(qp, &wr.wr, &bad));
}

/**
 * defer_forget() - Forget all requests.
 */
void defer_forget(void)
{
	guard(spinlock_irqsave)(&lock);
	count = 0;
}
