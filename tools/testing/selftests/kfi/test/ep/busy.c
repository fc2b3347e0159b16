// SPDX-License-Identifier: GPL-2.0
/* A connection over which somebody transfers whatever there is, until it is over. */
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "busy.h"

#define SLOTS	32
#define LEN	2048

/* The content of a slot, for which both sides have memory. */
enum { ASKED = BIT(0), RECEIVE = BIT(1) };

struct busy {
	struct ep_pair *p;
	struct kfid_mr *mr;
	struct job job;
	u8 *near, *far;
	/* The requests that are under way of each. */
	u8 slot[SLOTS];
	unsigned int accepted;
	unsigned int well;
	unsigned int failed;
	unsigned int wrong;
};

/* One has ended, which must have been under way. */
static void ended(struct busy *b, void *context, u8 what, bool well)
{
	unsigned long n = (unsigned long)context - 1;

	if (n >= SLOTS || !(b->slot[n] & what)) {
		b->wrong++;
		return;
	}
	b->slot[n] &= ~what;
	if (well)
		b->well++;
	else
		b->failed++;
}

/* Takes a completion of one direction; false if there is none. */
static bool reap(struct busy *b, struct kfid_cq *cq, u8 what, int timeout)
{
	struct kfi_cq_err_entry err = {};
	struct kfi_cq_data_entry done;
	ssize_t n = kfi_cq_sread(cq, &done, 1, NULL, timeout);

	if (n == 1)
		ended(b, done.op_context, what, true);
	else if (n == -KFI_EAVAIL && kfi_cq_readerr(cq, &err, 0) == 1)
		ended(b, err.op_context, what, false);
	else
		return false;
	return true;
}

static ssize_t post(struct busy *b, unsigned int n, unsigned int how)
{
	struct kfid_ep *ep = b->p->side[0].ep;
	u8 *near = b->near + n * LEN, *far = b->far + n * LEN;
	void *context = (void *)(n + 1UL);
	u64 at = b->mr->iova + n * LEN, key = kfi_mr_key(b->mr);
	ssize_t ret;

	switch (how % 3) {
	case 0:
		return kfi_write(ep, near, LEN, NULL, 0, at, key, context);
	case 1:
		return kfi_read(ep, near, LEN, NULL, 0, at, key, context);
	}
	ret = kfi_recv(b->p->side[1].ep, far, LEN, NULL, 0, context);
	if (ret)
		return ret;
	b->slot[n] |= RECEIVE;
	b->accepted++;
	return kfi_send(ep, near, LEN, NULL, 0, context);
}

static int work(void *data)
{
	struct busy *b = data;
	unsigned int how = 0, n;
	ssize_t ret = 0;

	while (!ret || ret == -KFI_EAGAIN || ret == -KFI_ENOMEM) {
		for (n = 0; n < SLOTS && b->slot[n]; n++)
			;
		/* Not before: so that there is always much under way. */
		if (n == SLOTS || ret) {
			reap(b, b->p->side[0].tx, ASKED, 0);
			reap(b, b->p->side[1].rx, RECEIVE, 0);
			/* A task that waits for all tasks waits for this one too. */
			cond_resched_tasks_rcu_qs();
			ret = 0;
			continue;
		}
		ret = post(b, n, how++);
		if (!ret) {
			b->slot[n] |= ASKED;
			b->accepted++;
		}
	}
	return ret;
}

struct ep_pair *busy_pair(struct busy *b)
{
	return b->p;
}

struct busy *busy_start(struct kfi_test *t)
{
	struct busy *b = kzalloc_obj(*b);

	if (!EXPECT(t, b, "no memory"))
		return NULL;
	b->p = ep_connected(t, NULL);
	b->near = kzalloc(SLOTS * LEN, GFP_KERNEL);
	b->far = kzalloc(SLOTS * LEN, GFP_KERNEL);
	if (b->p && EXPECT(t, b->near && b->far, "no memory") &&
	    EXPECT_EQ(t, kfi_mr_reg(b->p->side[1].domain, b->far, SLOTS * LEN,
				    KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0, 0, 0, &b->mr, NULL), 0))
		job_start(t, &b->job, work, b);
	return b;
}

void busy_end(struct kfi_test *t, struct busy *b)
{
	unsigned int naps;

	if (!b)
		return;
	if (b->mr) {
		EXPECT_EQ(t, job_end(t, &b->job), -KFI_ENOTCONN);
		for (naps = 0; naps < EP_WAIT_MS / 20 && b->well + b->failed < b->accepted; naps++)
			while (reap(b, b->p->side[0].tx, ASKED, 10) ||
			       reap(b, b->p->side[1].rx, RECEIVE, 10))
				;
		ktap_note("%u transfers ended well, %u failed", b->well, b->failed);
		EXPECT_EQ(t, b->well + b->failed, b->accepted);
		EXPECT_EQ(t, b->wrong, 0);
		EXPECT(t, b->well && !memchr_inv(b->slot, 0, SLOTS), "nothing, or not all has ended");
		ep_nothing(t, b->p->side[0].tx);
		ep_nothing(t, b->p->side[1].rx);
		EXPECT_EQ(t, kfi_close(&b->mr->fid), 0);
	}
	if (b->p)
		ep_pair_close(t, b->p);
	kfree(b->near);
	kfree(b->far);
	kfree(b);
}
