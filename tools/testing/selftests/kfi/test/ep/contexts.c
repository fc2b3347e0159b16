// SPDX-License-Identifier: GPL-2.0
/* Posting where nobody may sleep. */
#include <linux/completion.h>
#include <linux/irq_work.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#include <kfi_atomic.h>

#include "ep.h"

#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define FETCHED		(KFI_RMA | KFI_READ)
#define WRITTEN		(KFI_RMA | KFI_WRITE)
#define LEN		512
#define PART		64

static void *ctx(unsigned long n)
{
	return (void *)(0xc0de0000 + n);
}

/* Where it is posted. */
enum where { LOCKED, SOFTIRQ, HARDIRQ, WHERES };

/**
 * struct posting - transfers of each kind, one after the other
 * @m: Between whom; LEN bytes at each side. The receives are in the region, too, from PART on.
 * @ret: The results of the calls; the last one must be refused.
 * @inside: Whether that was where it should be.
 * @timer: By which it comes there.
 * @work: Likewise.
 * @done: It was there.
 */
struct posting {
	struct ep_memory m;
	ssize_t ret[8];
	bool inside;
	struct timer_list timer;
	struct irq_work work;
	struct completion done;
};

static void post(struct posting *g)
{
	struct kfid_ep *from = g->m.p->side[0].ep, *to = g->m.p->side[1].ep;
	u64 at = g->m.mr->iova, key = kfi_mr_key(g->m.mr);
	void *bad = ep_atomic_context_case;
	u8 on_stack[8];
	int n = 0;

	g->ret[n++] = kfi_recv(to, g->m.there + PART, PART, NULL, 0, ctx(1));
	g->ret[n++] = kfi_recv(to, g->m.there + 2 * PART, PART, NULL, 0, ctx(2));
	g->ret[n++] = kfi_send(from, g->m.here, PART, NULL, 0, ctx(3));
	/* Which is another one in softirq and in an interrupt handler. */
	memcpy(on_stack, g->m.here, 8);
	g->ret[n++] = kfi_inject(from, on_stack, 8, 0);
	memset(on_stack, 0, 8);
	g->ret[n++] = kfi_write(from, g->m.here, PART, NULL, 0, at, key, ctx(4));
	g->ret[n++] = kfi_read(from, g->m.here + PART, PART, NULL, 0, at, key, ctx(5));
	g->ret[n++] = kfi_fetch_atomic(from, NULL, 1, NULL, g->m.here + 2 * PART, NULL, 0, at, key,
				       KFI_UINT64, KFI_ATOMIC_READ, ctx(6));
	g->ret[n] = kfi_send(from, bad, PART, NULL, 0, NULL);
}

static void by_timer(struct timer_list *timer)
{
	struct posting *g = timer_container_of(g, timer, timer);

	g->inside = in_serving_softirq();
	post(g);
	complete(&g->done);
}

static void by_work(struct irq_work *work)
{
	struct posting *g = container_of(work, struct posting, work);

	g->inside = in_hardirq() || IS_ENABLED(CONFIG_PREEMPT_RT);
	post(g);
	complete(&g->done);
}

static void post_there(struct posting *g, enum where where)
{
	static DEFINE_SPINLOCK(lock);
	unsigned long flags;

	init_completion(&g->done);
	switch (where) {
	case LOCKED:
		spin_lock_irqsave(&lock, flags);
		post(g);
		g->inside = irqs_disabled();
		spin_unlock_irqrestore(&lock, flags);
		break;
	case SOFTIRQ:
		timer_setup(&g->timer, by_timer, 0);
		mod_timer(&g->timer, jiffies + 1);
		wait_for_completion(&g->done);
		timer_shutdown_sync(&g->timer);
		break;
	default:
		init_irq_work(&g->work, by_work);
		irq_work_queue(&g->work);
		wait_for_completion(&g->done);
		irq_work_sync(&g->work);
	}
}

static void ends(struct kfi_test *t, struct posting *g, enum where where)
{
	const u8 *there = g->m.there, *here = g->m.here;
	struct ep_side *s = g->m.p->side;
	int i;

	EXPECT(t, g->inside, "%d: not there", where);
	for (i = 0; i < ARRAY_SIZE(g->ret); i++)
		EXPECT_EQ(t, g->ret[i], i < ARRAY_SIZE(g->ret) - 1 ? 0 : -KFI_EFAULT);
	if (t->failures)
		return;
	for (i = 1; i <= 2; i++)
		ep_completed(t, s[1].rx, ctx(i), RECEIVED, NULL);
	ep_completed(t, s[0].tx, ctx(3), SENT, NULL);
	ep_completed(t, s[0].tx, ctx(4), WRITTEN, NULL);
	ep_completed(t, s[0].tx, ctx(5), FETCHED, NULL);
	ep_completed(t, s[0].tx, ctx(6), KFI_ATOMIC | KFI_READ, NULL);
	EXPECT(t, pattern_is(there, PART, where) && pattern_is(there + PART, PART, where) &&
		  pattern_is(there + 2 * PART, 8, where) && pattern_is(here + PART, PART, where) &&
		  pattern_is(here + 2 * PART, 8, where), "%d: other bytes", where);
}

/* Everything may be posted under a spinlock, in softirq, and in an interrupt handler. */
void ep_atomic_context_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE, .caps = KFI_MSG | KFI_RMA | KFI_ATOMIC };
	struct posting *g = kzalloc_obj(*g);
	enum where where;

	if (!EXPECT(t, g, "no memory"))
		return;
	if (!ep_memory_open(t, &g->m, &wants, LEN) ||
	    !EXPECT_EQ(t, kfi_mr_reg(g->m.p->side[1].domain, g->m.there, LEN,
				     KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0, 1, 0, &g->m.mr, NULL), 0))
		goto out;
	for (where = 0; where < WHERES && !t->failures; where++) {
		memset(g->m.there, 0, LEN);
		memset(g->m.here, 0, LEN);
		pattern(g->m.here, PART, where);
		post_there(g, where);
		ends(t, g, where);
	}
	ep_nothing(t, g->m.p->side[0].tx);
out:
	ep_memory_close(t, &g->m);
	kfree(g);
}
