// SPDX-License-Identifier: GPL-2.0
/* Regions whose endpoint goes down: out of reach for all, and they say so (KFI_MR_ENDPOINT). */
#include <linux/delay.h>

#include "ep.h"

#define LEN		PAGE_SIZE
#define MANY		32
#define WRITTEN		(KFI_RMA | KFI_WRITE)

static void *ctx(unsigned long n)
{
	return (void *)(0x4e640000 + n);
}

/* How the endpoint of a region goes down. */
enum way { SHUT_DOWN, BY_PEER, BY_FAILURE, CLOSED, WAYS };

/* Two connections between the same two domains; the regions of the second side are for the first one. */
struct twice {
	struct ep_pair *p;
	struct ep_side other[2];
	struct kfid_eq *eq;
	struct kfid_mr *mr[MANY];
	u8 *mem;
	u8 *here;
};

static bool connect_again(struct kfi_test *t, struct twice *w, const struct ep_wants *wants)
{
	struct ep_event *e = kzalloc_obj(*e);
	struct ep_side *o = w->other;
	bool done = false;

	memcpy(o, w->p->side, sizeof(w->other));
	o[0].ep = o[1].ep = NULL;
	if (EXPECT(t, e, "no memory") && ep_open(t, &o[0], w->p->info, wants) &&
	    EXPECT_EQ(t, kfi_connect(o[0].ep, NULL, NULL, 0), 0) &&
	    ep_event(t, o[1].eq, KFI_CONNREQ, &w->p->pep->fid, e)) {
		done = ep_open(t, &o[1], e->entry.info, wants) &&
		       EXPECT_EQ(t, kfi_accept(o[1].ep, NULL, 0), 0);
		kfi_freeinfo(e->entry.info);
	}
	done = done && ep_event(t, o[0].eq, KFI_CONNECTED, &o[0].ep->fid, e) &&
	       ep_event(t, o[1].eq, KFI_CONNECTED, &o[1].ep->fid, e);
	kfree(e);
	return done;
}

static void twice_close(struct kfi_test *t, struct twice *w)
{
	unsigned int i;

	if (!w)
		return;
	for (i = 0; i < MANY; i++)
		if (w->mr[i])
			EXPECT_EQ(t, kfi_close(&w->mr[i]->fid), 0);
	for (i = 0; i < 2; i++)
		if (w->other[i].ep)
			EXPECT_EQ(t, kfi_close(&w->other[i].ep->fid), 0);
	if (w->p && w->eq)
		ep_domain_close(t, &w->p->side[1], w->eq);
	if (w->p)
		ep_pair_close(t, w->p);
	kfree(w->here);
	kfree(w->mem);
	kfree(w);
}

/* With a queue that is told of regions, if one is asked for.  NULL is a failure that has been reported. */
static struct twice *twice_open(struct kfi_test *t, bool events)
{
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT, .tx_size = 64 };
	struct kfi_eq_attr attr = { .size = 2 * MANY, .wait_obj = KFI_WAIT_UNSPEC };
	struct twice *w = kzalloc_obj(*w);
	struct ep_side *s;

	if (!EXPECT(t, w, "no memory"))
		return NULL;
	w->mem = kzalloc(MANY * LEN, GFP_KERNEL);
	w->here = kmalloc(LEN, GFP_KERNEL);
	w->p = ep_connected(t, &wants);
	if (!EXPECT(t, w->mem && w->here, "no memory") || !w->p || !connect_again(t, w, &wants))
		goto err;
	s = &w->p->side[1];
	if (events && (!EXPECT_EQ(t, kfi_eq_open(s->fabric, &attr, &w->eq, NULL, NULL), 0) ||
		       !EXPECT_EQ(t, kfi_domain_bind(s->domain, &w->eq->fid, KFI_REG_MR), 0)))
		goto err;
	memset(w->here, 0x5a, LEN);
	return w;
err:
	twice_close(t, w);
	return NULL;
}

/* Registers one, for the first connection, and enables it. */
static bool enabled(struct kfi_test *t, struct twice *w, unsigned int i)
{
	struct ep_side *s = &w->p->side[1];
	struct kfi_eq_entry entry = {};
	u32 event = 0;

	if (!EXPECT_EQ(t, kfi_mr_reg(s->domain, w->mem + i * LEN, LEN, KFI_REMOTE_WRITE, 0, i, 0,
				     &w->mr[i], ctx(i)), 0) ||
	    !EXPECT_EQ(t, kfi_mr_bind(w->mr[i], &s->ep->fid, 0), 0) ||
	    !EXPECT_EQ(t, kfi_mr_enable(w->mr[i]), 0))
		return false;
	if (!w->eq)
		return true;
	return EXPECT_EQ(t, kfi_eq_sread(w->eq, &event, &entry, sizeof(entry), EP_WAIT_MS, 0),
			 sizeof(entry)) &&
	       EXPECT_EQ(t, event, KFI_MR_COMPLETE) &&
	       EXPECT(t, entry.fid == &w->mr[i]->fid, "an event about another region");
}

/* Something that comes behind what has been posted for the region: now its key is good for anybody. */
static bool behind(struct kfi_test *t, struct twice *w)
{
	struct ep_side *s = w->p->side;

	return EXPECT_EQ(t, kfi_recv(s[0].ep, w->here, 8, NULL, 0, ctx(103)), 0) &&
	       EXPECT_EQ(t, kfi_send(s[1].ep, w->here, 8, NULL, 0, ctx(104)), 0) &&
	       ep_completed(t, s[0].rx, ctx(103), KFI_MSG | KFI_RECV, NULL) &&
	       ep_completed(t, s[1].tx, ctx(104), KFI_MSG | KFI_SEND, NULL);
}

static void go_down(struct kfi_test *t, struct twice *w, enum way way)
{
	struct ep_side *s = w->p->side;

	switch (way) {
	case SHUT_DOWN:
		EXPECT_EQ(t, kfi_shutdown(s[1].ep, 0), 0);
		break;
	case BY_PEER:
		EXPECT_EQ(t, kfi_shutdown(s[0].ep, 0), 0);
		break;
	case BY_FAILURE:
		EXPECT_EQ(t, kfi_write(s[0].ep, w->here, 8, NULL, 0, 0, 0x777700, ctx(100)), 0);
		ep_refused(t, &s[0], s[0].ep, ctx(100));
		break;
	default:
		EXPECT_EQ(t, kfi_close(&s[1].ep->fid), 0);
		s[1].ep = NULL;
	}
}

/* The key of a region that goes down can't be had any more. */
static void no_key(struct kfi_test *t, struct kfid_mr *mr, enum way way)
{
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);

	while (way != CLOSED && kfi_mr_key(mr) != KFI_KEY_NOTAVAIL && time_before(jiffies, end))
		usleep_range(100, 1000);
	EXPECT_EQ(t, kfi_mr_key(mr), KFI_KEY_NOTAVAIL);
}

/* It says that it is down, to whom it may concern. */
static void told(struct kfi_test *t, struct twice *w, unsigned int i, enum way way)
{
	struct kfi_eq_err_entry err = {};
	size_t size = 0;
	u64 base;
	u32 event;

	no_key(t, w->mr[i], way);
	if (w->eq && way != CLOSED) {
		EXPECT_EQ(t, kfi_eq_sread(w->eq, &event, &err, sizeof(err), EP_WAIT_MS, 0),
			  -KFI_EAVAIL);
		EXPECT_EQ(t, kfi_eq_readerr(w->eq, &err, 0), sizeof(err));
		EXPECT_EQ(t, err.err, KFI_ENOTCONN);
		EXPECT(t, err.context == ctx(i), "an event about another region");
	}
	EXPECT_EQ(t, kfi_mr_raw_attr(w->mr[i], &base, NULL, &size, 0), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, kfi_mr_enable(w->mr[i]), -KFI_EOPBADSTATE);
}

/* A peer that has its key can't use it, in each way that its endpoint goes down in. */
void ep_regions_down_case(struct kfi_test *t)
{
	unsigned int i;

	for (i = 0; i < 2 * WAYS && !t->failures; i++) {
		enum way way = i % WAYS;
		struct twice *w = twice_open(t, i >= WAYS);
		u64 addr, key;

		if (!w || !enabled(t, w, 0) || !behind(t, w))
			goto next;
		addr = w->mr[0]->iova;
		key = kfi_mr_key(w->mr[0]);
		EXPECT(t, key != KFI_KEY_NOTAVAIL, "no key");
		if (has_feature(F_DOMAIN_KEYS)) {
			/* A key is good for all of a protection domain. */
			EXPECT_EQ(t, kfi_write(w->other[0].ep, w->here, 8, NULL, 0, addr, key, ctx(101)),
				  0);
			ep_completed(t, w->other[0].tx, ctx(101), WRITTEN, NULL);
			EXPECT(t, !memcmp(w->mem, w->here, 8), "nothing was written");
			memset(w->mem, 0, 8);
		}
		go_down(t, w, way);
		told(t, w, 0, way);
		EXPECT_EQ(t, kfi_write(w->other[0].ep, w->here, LEN, NULL, 0, addr, key, ctx(102)), 0);
		ep_refused(t, &w->other[0], w->other[0].ep, ctx(102));
		EXPECT(t, !memchr_inv(w->mem, 0, LEN), "bytes of a region that is down changed");
		/* Nor does another one get so far. */
		if (way != CLOSED) {
			struct ep_side *s = &w->p->side[1];

			EXPECT_EQ(t, kfi_mr_reg(s->domain, w->mem + LEN, LEN, KFI_REMOTE_WRITE, 0, 1, 0,
						&w->mr[1], NULL), 0);
			EXPECT_EQ(t, kfi_mr_bind(w->mr[1], &s->ep->fid, 0), 0);
			EXPECT_EQ(t, kfi_mr_enable(w->mr[1]), -KFI_ENOTCONN);
		}
next:
		twice_close(t, w);
	}
}

/*
 * Enables a region while its endpoint goes down. It is refused, or goes down with the others. Once one was
 * refused, all are, and so are all after kfi_shutdown() or kfi_close() by this side.
 */
static void enable_falling(struct kfi_test *t, struct kfid_mr *mr, enum way way, bool *refused)
{
	int ret = kfi_mr_enable(mr);

	if (ret || *refused || way == SHUT_DOWN || way == CLOSED) {
		EXPECT_EQ(t, ret, -KFI_ENOTCONN);
		*refused = true;
	}
}

/* Many go down while some of them are being closed, and more are enabled. */
void ep_regions_falling_case(struct kfi_test *t)
{
	unsigned int i, round;
	bool refused;

	for (round = 0; round < WAYS && !t->failures; round++) {
		struct twice *w = twice_open(t, false);

		refused = false;
		for (i = 0; w && i < MANY / 2; i++)
			if (!enabled(t, w, i))
				goto next;
		if (!w)
			goto next;
		go_down(t, w, round);
		for (i = MANY / 2; round != CLOSED && i < MANY; i++) {
			struct ep_side *s = &w->p->side[1];

			EXPECT_EQ(t, kfi_mr_reg(s->domain, w->mem + i * LEN, LEN, KFI_REMOTE_WRITE, 0, i,
						0, &w->mr[i], NULL), 0);
			EXPECT_EQ(t, kfi_mr_bind(w->mr[i], &s->ep->fid, 0), 0);
			enable_falling(t, w->mr[i], round, &refused);
		}
		for (i = 0; i < MANY; i += 3) {
			if (!w->mr[i])
				continue;
			EXPECT_EQ(t, kfi_close(&w->mr[i]->fid), 0);
			w->mr[i] = NULL;
		}
		for (i = 1; i < MANY / 2; i += 3)
			told(t, w, i, round);
		for (i = MANY / 2; i < MANY; i++)
			if (w->mr[i])
				no_key(t, w->mr[i], round);
next:
		twice_close(t, w);
	}
}
