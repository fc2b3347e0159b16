// SPDX-License-Identifier: GPL-2.0
/* Regions that are bound to a connected endpoint and enabled by it (KFI_MR_ENDPOINT). */
#include <linux/completion.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#include "ep.h"

#define MODE		(EP_MODE | KFI_MR_ENDPOINT)
#define LEN		(2 * PAGE_SIZE + 300)
#define FETCHED		(KFI_RMA | KFI_READ)
#define WRITTEN		(KFI_RMA | KFI_WRITE)
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)

static void *ctx(unsigned long n)
{
	return (void *)(0x4e610000 + n);
}

/* The message of the passive side about a region. */
struct told {
	u64 addr;
	u64 key;
};

/* A region of the passive side's, and what is told of it. */
struct bound {
	struct ep_memory m;
	struct told out;
	struct told in;
};

static void bound_close(struct kfi_test *t, struct bound *b)
{
	if (b)
		ep_memory_close(t, &b->m);
	kfree(b);
}

/* NULL is a failure that has been reported. */
static struct bound *bound_open(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = MODE };
	struct bound *b = kzalloc_obj(*b);

	if (EXPECT(t, b, "no memory") && ep_memory_open(t, &b->m, &wants, LEN))
		return b;
	bound_close(t, b);
	return NULL;
}

/* Registers the passive side's memory, and binds it. */
static bool bind(struct kfi_test *t, struct bound *b, u64 access)
{
	struct ep_side *s = &b->m.p->side[1];

	return EXPECT_EQ(t, kfi_mr_reg(s->domain, b->m.there, LEN, access, 0, 0, 0, &b->m.mr, NULL),
			 0) &&
	       EXPECT_EQ(t, kfi_mr_key(b->m.mr), KFI_KEY_NOTAVAIL) &&
	       EXPECT_EQ(t, kfi_mr_bind(b->m.mr, &s->ep->fid, 0), 0);
}

/* How a region is enabled. */
enum how { ALONE, MORE, LOCKED, SOFTIRQ, HOWS };

struct softly {
	struct timer_list timer;
	struct completion done;
	struct kfid_mr *mr;
	int ret;
};

static void enable_softly(struct timer_list *timer)
{
	struct softly *s = timer_container_of(s, timer, timer);

	s->ret = kfi_mr_enable_more(s->mr);
	complete(&s->done);
}

static int enable(struct kfid_mr *mr, enum how how)
{
	static DEFINE_SPINLOCK(lock);
	struct softly s = { .mr = mr };
	unsigned long flags;

	switch (how) {
	case ALONE:
		return kfi_mr_enable(mr);
	case MORE:
		return kfi_mr_enable_more(mr);
	case LOCKED:
		spin_lock_irqsave(&lock, flags);
		s.ret = kfi_mr_enable(mr);
		spin_unlock_irqrestore(&lock, flags);
		return s.ret;
	default:
		init_completion(&s.done);
		timer_setup_on_stack(&s.timer, enable_softly, 0);
		mod_timer(&s.timer, jiffies + 1);
		wait_for_completion(&s.done);
		timer_shutdown_sync(&s.timer);
		timer_destroy_on_stack(&s.timer);
		return s.ret;
	}
}

/* Enables the region, and tells the active side of it. */
static bool tell(struct kfi_test *t, struct bound *b, enum how how)
{
	struct ep_side *to = &b->m.p->side[0], *from = &b->m.p->side[1];

	if (!EXPECT_EQ(t, kfi_recv(to->ep, &b->in, sizeof(b->in), NULL, 0, ctx(1)), 0) ||
	    !EXPECT_EQ(t, enable(b->m.mr, how), 0))
		return false;
	EXPECT(t, kfi_mr_key(b->m.mr) != KFI_KEY_NOTAVAIL, "no key");
	b->out = (struct told){ b->m.mr->iova, kfi_mr_key(b->m.mr) };
	return EXPECT_EQ(t, kfi_send(from->ep, &b->out, sizeof(b->out), NULL, 0, ctx(2)), 0) &&
	       ep_completed(t, to->rx, ctx(1), RECEIVED, NULL) &&
	       ep_completed(t, from->tx, ctx(2), SENT, NULL) &&
	       EXPECT_EQ(t, b->in.key, b->out.key);
}

/* Over iWARP a write has ended when it was sent: whether @cond comes true, at once on others. */
#define come(cond)								\
({										\
	unsigned long _end = jiffies + msecs_to_jiffies(EP_WAIT_MS);		\
										\
	while (!has_feature(F_WRITES_ANSWERED) && !(cond) && time_before(jiffies, _end))		\
		msleep(1);							\
	(cond);									\
})

/* The active side writes all of it, and reads that again. */
static bool use(struct kfi_test *t, struct bound *b, unsigned int shift)
{
	struct ep_side *s = &b->m.p->side[0];

	pattern(b->m.here, LEN, shift);
	if (!EXPECT_EQ(t, kfi_write(s->ep, b->m.here, LEN, NULL, 0, b->in.addr, b->in.key, ctx(3)),
		       0) ||
	    !ep_completed(t, s->tx, ctx(3), WRITTEN, NULL))
		return false;
	EXPECT(t, come(pattern_is(b->m.there, LEN, shift)), "other bytes were written");
	memset(b->m.here, 0, LEN);
	if (!EXPECT_EQ(t, kfi_read(s->ep, b->m.here, LEN, NULL, 0, b->in.addr, b->in.key, ctx(4)),
		       0) ||
	    !ep_completed(t, s->tx, ctx(4), FETCHED, NULL))
		return false;
	return EXPECT(t, pattern_is(b->m.here, LEN, shift), "other bytes were read");
}

/* A message of the active side's that invalidates @key. */
static ssize_t send_invalidating(struct bound *b, u64 key, u64 flags)
{
	struct kvec kv = { &b->in, sizeof(b->in) };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.context = ctx(5),
		.data = key,
	};

	return kfi_sendmsg(b->m.p->side[0].ep, &msg, KFI_INVALIDATE | flags);
}

/*
 * Round after round: bound, enabled with what carries the key, in any context, used, invalidated by the
 * peer, closed.
 */
void ep_regions_case(struct kfi_test *t)
{
	struct kfi_cq_data_entry entry;
	struct bound *b = bound_open(t);
	unsigned int i, j;
	u64 keys[40];
	bool prov_key;

	if (!b)
		goto out;
	prov_key = b->m.p->info->domain_attr->mr_mode & KFI_MR_PROV_KEY;
	for (i = 0; i < ARRAY_SIZE(keys) && !t->failures; i++) {
		bool invalidates = i % 3 == 1;
		struct ep_side *s = b->m.p->side;

		if (!bind(t, b, KFI_REMOTE_WRITE | KFI_REMOTE_READ) || !tell(t, b, i % HOWS) ||
		    !use(t, b, i))
			break;
		EXPECT_EQ(t, kfi_mr_enable(b->m.mr), -KFI_EOPBADSTATE);
		/* A peer that is late doesn't get at the next one, unless the key was asked for. */
		keys[i] = b->in.key;
		for (j = 0; prov_key && j < i; j++)
			EXPECT(t, keys[j] != keys[i], "key %#llx is back", keys[i]);
		if (invalidates) {
			EXPECT_EQ(t, kfi_recv(s[1].ep, &b->out, sizeof(b->out), NULL, 0, ctx(6)), 0);
			EXPECT_EQ(t, send_invalidating(b, b->in.key, 0), 0);
			if (!ep_completed(t, s[1].rx, ctx(6), RECEIVED | KFI_INVALIDATE, &entry) ||
			    !ep_completed(t, s[0].tx, ctx(5), SENT, NULL))
				break;
			EXPECT_EQ(t, entry.data, b->in.key);
			EXPECT_EQ(t, entry.len, sizeof(b->out));
		}
		EXPECT_EQ(t, kfi_close(&b->m.mr->fid), 0);
		b->m.mr = NULL;
	}
	if (!t->failures) {
		EXPECT_EQ(t, send_invalidating(b, 1, KFI_REMOTE_CQ_DATA), -KFI_EBADFLAGS);
		ep_nothing(t, b->m.p->side[0].tx);
		ep_nothing(t, b->m.p->side[1].tx);
	}
out:
	bound_close(t, b);
}

/* After its invalidation, or its end, a key leads nowhere; nor does a right that was not given, nor a place beyond. */
void ep_regions_refused_case(struct kfi_test *t)
{
	unsigned int i;

	for (i = 0; i < 5 && !t->failures; i++) {
		u64 access = i == 3 ? KFI_REMOTE_READ : KFI_REMOTE_WRITE | KFI_REMOTE_READ;
		struct bound *b = bound_open(t);
		struct ep_side *s;

		if (!b || !bind(t, b, access) || !tell(t, b, MORE))
			goto next;
		s = b->m.p->side;
		memset(b->m.here, 0x77, LEN);
		if (i == 0) {
			EXPECT_EQ(t, kfi_recv(s[1].ep, &b->out, sizeof(b->out), NULL, 0, ctx(6)), 0);
			EXPECT_EQ(t, send_invalidating(b, b->in.key, 0), 0);
			ep_completed(t, s[0].tx, ctx(5), SENT, NULL);
		} else if (i == 1) {
			EXPECT_EQ(t, kfi_close(&b->m.mr->fid), 0);
			b->m.mr = NULL;
		}
		/* In the third round the key was never given out; in the last one a byte is beyond the end. */
		EXPECT_EQ(t, kfi_write(s[0].ep, b->m.here, 64, NULL, 0, b->in.addr + (i == 4 ? LEN - 63 : 0),
				       i == 2 ? b->in.key ^ NO_KEY : b->in.key, ctx(3)), 0);
		ep_refused(t, &s[0], s[0].ep, ctx(3));
		EXPECT(t, !memchr_inv(b->m.there, 0, LEN), "the peer's bytes changed");
next:
		bound_close(t, b);
	}
}

/* In any order: nothing posted behind it, the endpoint closed first, or shut down, or not connected yet. */
void ep_regions_ends_case(struct kfi_test *t)
{
	unsigned int i;

	for (i = 0; i < 6 && !t->failures; i++) {
		struct bound *b = bound_open(t);
		struct ep_side *s;

		if (!b)
			goto next;
		s = &b->m.p->side[1];
		if (i >= 4) {
			/* Shut down before it is enabled. */
			EXPECT_EQ(t, kfi_shutdown(s->ep, 0), 0);
		}
		if (!bind(t, b, KFI_REMOTE_WRITE))
			goto next;
		switch (i) {
		case 0:
			break;
		case 1:
			EXPECT_EQ(t, kfi_mr_enable(b->m.mr), 0);
			break;
		case 2:
			EXPECT_EQ(t, kfi_mr_enable_more(b->m.mr), 0);
			break;
		case 3:
			EXPECT_EQ(t, kfi_mr_enable_more(b->m.mr), 0);
			EXPECT_EQ(t, kfi_close(&s->ep->fid), 0);
			s->ep = NULL;
			break;
		case 4:
			EXPECT_EQ(t, kfi_mr_enable(b->m.mr), -KFI_ENOTCONN);
			break;
		default:
			EXPECT_EQ(t, kfi_close(&s->ep->fid), 0);
			s->ep = NULL;
			EXPECT_EQ(t, kfi_mr_enable(b->m.mr), -KFI_ENOTCONN);
		}
next:
		bound_close(t, b);
	}
}

/*
 * More regions than the queue has space for. Only the requests behind them tell that they have
 * ended.
 */
void ep_regions_many_case(struct kfi_test *t)
{
	enum { MANY = 100 };
	struct ep_wants wants = { .mr_mode = MODE, .tx_size = 32 };
	struct ep_pair *p = ep_connected(t, &wants);
	u8 *mem = kzalloc(MANY * 64, GFP_KERNEL);
	struct kfid_mr **mrs = kcalloc(MANY, sizeof(*mrs), GFP_KERNEL);
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);
	struct ep_side *s;
	unsigned int i;
	ssize_t ret;

	if (!p || !EXPECT(t, mem && mrs, "no memory"))
		goto out;
	s = p->side;
	for (i = 0; i < MANY && !t->failures; i++) {
		EXPECT_EQ(t, kfi_mr_reg(s[1].domain, mem + i * 64, 64, KFI_REMOTE_WRITE, 0, i, 0,
					&mrs[i], NULL), 0);
		EXPECT_EQ(t, kfi_mr_bind(mrs[i], &s[1].ep->fid, 0), 0);
		/* A full queue is no end: it may be tried again. */
		while ((ret = kfi_mr_enable(mrs[i])) == -KFI_EAGAIN && time_before(jiffies, end))
			cond_resched();
		EXPECT_EQ(t, ret, 0);
	}
	/* All of them are good behind a message. */
	if (t->failures)
		goto out;
	EXPECT_EQ(t, kfi_recv(s[0].ep, mem, 8, NULL, 0, ctx(1)), 0);
	do {
		ret = kfi_send(s[1].ep, mem, 8, NULL, 0, ctx(2));
	} while (ret == -KFI_EAGAIN && time_before(jiffies, end));
	EXPECT_EQ(t, ret, 0);
	ep_completed(t, s[0].rx, ctx(1), RECEIVED, NULL);
	for (i = 0; i < MANY && !t->failures; i++) {
		u64 *number = (u64 *)mem, *there = (u64 *)(mem + i * 64 + 8);

		*number = 0x0123456789abcdef ^ i;
		EXPECT_EQ(t, kfi_write(s[0].ep, number, 8, NULL, 0, mrs[i]->iova + 8,
				       kfi_mr_key(mrs[i]), ctx(3)), 0);
		ep_completed(t, s[0].tx, ctx(3), WRITTEN, NULL);
		EXPECT(t, come(READ_ONCE(*there) == *number), "%u: there is %#llx", i, *there);
	}
out:
	for (i = 0; mrs && i < MANY; i++)
		if (mrs[i])
			EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0);
	if (p)
		ep_pair_close(t, p);
	kfree(mrs);
	kfree(mem);
}
