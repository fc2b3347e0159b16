// SPDX-License-Identifier: GPL-2.0
/* Regions that are filled with memory in any context, and emptied again and again (kfi_reuse_ops). */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#include "reuse.h"

#define FETCHED		(KFI_RMA | KFI_READ)
#define WRITTEN		(KFI_RMA | KFI_WRITE)
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define ROUNDS		1200

static DEFINE_SPINLOCK(lock);

static void *ctx(unsigned long n)
{
	return (void *)(0x4e050000 + n);
}

void reuse_close(struct kfi_test *t, struct reuse *r)
{
	int i;

	if (!r)
		return;
	if (r->mr)
		EXPECT_EQ(t, kfi_close(&r->mr->fid), 0);
	if (r->p)
		ep_pair_close(t, r->p);
	for (i = 0; i < REUSE_PAGES && r->pages[i]; i++)
		__free_page(r->pages[i]);
	kfree(r->here);
	kfree(r);
}

struct reuse *reuse_open(struct kfi_test *t, const struct ep_wants *wants)
{
	struct ep_wants bound = wants ? *wants : (struct ep_wants) {};
	struct reuse *r = needs_feature(t, F_REUSE) ? kzalloc_obj(*r) : NULL;
	struct ep_side *s;
	void *ops;
	int i;

	if (!has_feature(F_REUSE) || !EXPECT(t, r, "no memory"))
		return NULL;
	bound.mr_mode = EP_MODE | KFI_MR_ENDPOINT;
	for (i = 0; i < REUSE_PAGES; i++) {
		r->pages[i] = alloc_page(GFP_KERNEL);
		if (!EXPECT(t, r->pages[i], "no memory"))
			goto failed;
		bvec_set_page(&r->bv[i], r->pages[i], i ? PAGE_SIZE : PAGE_SIZE - REUSE_OFFSET,
			      i ? 0 : REUSE_OFFSET);
	}
	r->here = kzalloc(REUSE_LEN, GFP_KERNEL);
	r->p = ep_connected(t, &bound);
	if (!r->p || !EXPECT(t, r->here, "no memory"))
		goto failed;
	s = &r->p->side[1];
	if (!EXPECT_EQ(t, kfi_open_ops(&s->domain->fid, KFI_REUSE_OPS_1, 0, &ops, NULL), 0))
		goto failed;
	r->ops = ops;
	if (EXPECT_EQ(t, r->ops->open(&s->domain->fid, s->ep, REUSE_PAGES, &r->mr, ctx(0)), 0))
		return r;
failed:
	reuse_close(t, r);
	return NULL;
}

int reuse_fill_locked(struct reuse *r, unsigned int count, u64 access, u64 flags)
{
	unsigned long irq;
	int ret;

	spin_lock_irqsave(&lock, irq);
	ret = r->ops->fill(r->mr, r->bv, count, access, flags);
	spin_unlock_irqrestore(&lock, irq);
	return ret;
}

int reuse_empty_locked(struct reuse *r)
{
	unsigned long irq;
	int ret;

	spin_lock_irqsave(&lock, irq);
	ret = r->ops->empty_now(r->mr);
	spin_unlock_irqrestore(&lock, irq);
	return ret;
}

ssize_t reuse_send(struct reuse *r)
{
	r->out = (struct reuse_told){ r->mr->iova, kfi_mr_key(r->mr) };
	return kfi_send(r->p->side[1].ep, &r->out, sizeof(r->out), NULL, 0, ctx(1));
}

bool reuse_arrives(struct kfi_test *t, struct reuse *r)
{
	return ep_completed(t, r->p->side[0].rx, ctx(2), RECEIVED, NULL) &&
	       ep_completed(t, r->p->side[1].tx, ctx(1), SENT, NULL);
}

bool reuse_invalidated(struct kfi_test *t, struct reuse *r)
{
	struct kvec kv = { &r->in, 8 };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.context = ctx(3),
		.data = r->in.key,
	};

	return EXPECT_EQ(t, kfi_recv(r->p->side[1].ep, &r->got, 8, NULL, 0, ctx(4)), 0) &&
	       EXPECT_EQ(t, kfi_sendmsg(r->p->side[0].ep, &msg, KFI_INVALIDATE), 0) &&
	       ep_completed(t, r->p->side[1].rx, ctx(4), RECEIVED | KFI_INVALIDATE, NULL) &&
	       ep_completed(t, r->p->side[0].tx, ctx(3), SENT, NULL);
}

/* Goes through the memory of the region, and a pattern that covers it. */
static bool each(struct reuse *r, unsigned int shift, bool set)
{
	size_t done = 0;
	bool same = true;
	int i;

	pattern(r->here, REUSE_LEN, shift);
	for (i = 0; i < REUSE_PAGES && same; i++) {
		void *at = page_address(r->pages[i]) + r->bv[i].bv_offset;

		if (set)
			memcpy(at, r->here + done, r->bv[i].bv_len);
		else
			same = !memcmp(at, r->here + done, r->bv[i].bv_len);
		done += r->bv[i].bv_len;
	}
	return same;
}

bool reuse_is(struct reuse *r, unsigned int shift)
{
	return each(r, shift, false);
}

void reuse_set(struct reuse *r, unsigned int shift)
{
	each(r, shift, true);
}

bool reuse_empty(struct kfi_test *t, struct reuse *r)
{
	int ret = reuse_empty_locked(r);

	if (!ret)
		return true;
	EXPECT_EQ(t, ret, -KFI_EAGAIN);
	EXPECT_EQ(t, r->ops->empty(r->mr), 0);
	return false;
}

struct softly {
	struct timer_list timer;
	struct completion done;
	struct reuse *r;
	u64 access;
	ssize_t ret;
};

static void begin_softly(struct timer_list *timer)
{
	struct softly *s = timer_container_of(s, timer, timer);

	s->ret = s->r->ops->fill(s->r->mr, s->r->bv, REUSE_PAGES, s->access, KFI_MORE) ?:
		 reuse_send(s->r);
	complete(&s->done);
}

/* Fills the region and sends its key, with a lock held or in softirq. */
static ssize_t begin(struct reuse *r, u64 access, bool softirq)
{
	struct softly s = { .r = r, .access = access };
	unsigned long irq;

	if (!softirq) {
		spin_lock_irqsave(&lock, irq);
		s.ret = r->ops->fill(r->mr, r->bv, REUSE_PAGES, access, KFI_MORE) ?: reuse_send(r);
		spin_unlock_irqrestore(&lock, irq);
		return s.ret;
	}
	init_completion(&s.done);
	timer_setup_on_stack(&s.timer, begin_softly, 0);
	mod_timer(&s.timer, jiffies + 1);
	wait_for_completion(&s.done);
	timer_shutdown_sync(&s.timer);
	timer_destroy_on_stack(&s.timer);
	return s.ret;
}

/* The peer reads or writes all of the memory. */
static bool accessed(struct kfi_test *t, struct reuse *r, bool writes, unsigned int n)
{
	struct ep_side *s = &r->p->side[0];

	if (writes) {
		pattern(r->here, REUSE_LEN, n);
		return EXPECT_EQ(t, kfi_write(s->ep, r->here, REUSE_LEN, NULL, 0, r->in.addr, r->in.key,
					      ctx(5)), 0) &&
		       ep_completed(t, s->tx, ctx(5), WRITTEN, NULL);
	}
	memset(r->here, 0, REUSE_LEN);
	return EXPECT_EQ(t, kfi_read(s->ep, r->here, REUSE_LEN, NULL, 0, r->in.addr, r->in.key,
				     ctx(5)), 0) &&
	       ep_completed(t, s->tx, ctx(5), FETCHED, NULL) &&
	       EXPECT(t, pattern_is(r->here, REUSE_LEN, n), "round %u: other bytes", n);
}

/* One request after the other reads or writes. The peer invalidates each key, or those of some. */
static void rounds(struct kfi_test *t, unsigned int invalidated)
{
	unsigned int i, at_once = 0, count = scaled(invalidated == 1 ? ROUNDS : ROUNDS / 10);
	struct reuse *r = reuse_open(t, NULL);
	u64 key = KFI_KEY_NOTAVAIL;

	for (i = 0; r && i < count && !t->failures; i++) {
		bool writes = i % 2, invalidates = i % invalidated == 0, now;

		if (!writes)
			reuse_set(r, i);
		if (!EXPECT_EQ(t, kfi_recv(r->p->side[0].ep, &r->in, sizeof(r->in), NULL, 0, ctx(2)), 0) ||
		    !EXPECT_EQ(t, begin(r, writes ? KFI_REMOTE_WRITE : KFI_REMOTE_READ, i % 16 == 15),
			       0) ||
		    !reuse_arrives(t, r))
			break;
		EXPECT_EQ(t, r->in.key, kfi_mr_key(r->mr));
		EXPECT(t, r->in.key != key, "round %u: the key of the round before", i);
		key = r->in.key;
		if (!accessed(t, r, writes, i))
			break;
		EXPECT_EQ(t, reuse_empty_locked(r), -KFI_EAGAIN);
		if (invalidates && !reuse_invalidated(t, r))
			break;
		now = reuse_empty(t, r);
		EXPECT(t, invalidates || !now, "round %u: emptied while the peer has the key", i);
		at_once += now;
		if (writes)
			EXPECT(t, reuse_is(r, i), "round %u: other bytes were written", i);
		if (i % 100 == 99)
			cond_resched();
	}
	if (r)
		ktap_note("%u of %u were emptied at once", at_once, i);
	/* Where the device invalidates regions, each is; but rxe might repeat a registration. */
	if (r && invalidated == 1 && has_feature(F_LOCAL_INV))
		EXPECT(t, at_once >= (has_feature(F_REFRESH) ? i : i / 2), "%u of %u", at_once, i);
	reuse_close(t, r);
}

void ep_reuse_case(struct kfi_test *t)
{
	rounds(t, 1);
}

void ep_reuse_mixed_case(struct kfi_test *t)
{
	rounds(t, 3);
}

/* A flush posts the requests that wait for more, in any context. */
void ep_flush_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct kfi_reuse_ops *ops;
	struct ep_memory m = {};
	struct kvec kv;
	struct kfi_msg msg = { .type = KFI_KVEC, .msg_iov = &kv, .iov_count = 1, .context = ctx(1) };
	unsigned long irq;
	void *p;
	int ret;

	if (!ep_memory_open(t, &m, &wants, 64) ||
	    !EXPECT_EQ(t, kfi_open_ops(&m.p->side[0].domain->fid, KFI_REUSE_OPS_1, 0, &p, NULL), 0))
		goto out;
	ops = p;
	kv = (struct kvec){ m.here, 8 };
	EXPECT_EQ(t, kfi_recv(m.p->side[1].ep, m.there, 8, NULL, 0, ctx(2)), 0);
	EXPECT_EQ(t, kfi_sendmsg(m.p->side[0].ep, &msg, KFI_COMPLETION | KFI_MORE), 0);
	if (has_feature(F_REUSE)) {
		msleep(50);
		ep_nothing(t, m.p->side[0].tx);
	}
	spin_lock_irqsave(&lock, irq);
	ret = ops->flush(m.p->side[0].ep);
	spin_unlock_irqrestore(&lock, irq);
	EXPECT_EQ(t, ret, 0);
	ep_completed(t, m.p->side[0].tx, ctx(1), SENT, NULL);
	ep_completed(t, m.p->side[1].rx, ctx(2), RECEIVED, NULL);
	/* Nothing waits. */
	EXPECT_EQ(t, ops->flush(m.p->side[0].ep), 0);
	EXPECT_EQ(t, ops->flush(NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_shutdown(m.p->side[0].ep, 0), 0);
	EXPECT_EQ(t, ops->flush(m.p->side[0].ep), -KFI_ENOTCONN);
out:
	ep_memory_close(t, &m);
}
