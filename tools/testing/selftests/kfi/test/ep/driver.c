// SPDX-License-Identifier: GPL-2.0
/*
 * The driver refuses requests that are posted on an endpoint (inject/). A request that is refused
 * to the caller has had no effect. An accepted request ends, once.
 */
#include <linux/delay.h>
#include <linux/random.h>

#include "busy.h"
#include "driver.h"
#include "kinds.h"
#include "suites.h"

#define MORE	6
#define LEN	64

static void *ctx(unsigned long n)
{
	return (void *)(n + 1);
}

/* A connection, and what each kind of transfer needs. */
struct driven {
	struct ib_device *dev;
	struct ep_pair *p;
	struct kfid_mr *mr;
	u8 *mem;
};

static void driven_close(struct kfi_test *t, struct driven *d)
{
	if (d->dev)
		kfi_inject_stop(d->dev);
	if (d->mr)
		EXPECT_EQ(t, kfi_close(&d->mr->fid), 0);
	if (d->p)
		ep_pair_close(t, d->p);
	kfree(d->mem);
	*d = (struct driven) {};
}

static bool driven_open(struct kfi_test *t, struct driven *d)
{
	struct ep_wants wants = {
		.mr_mode = EP_MODE,
		.caps = KFI_MSG | KFI_RMA | KFI_ATOMIC,
	};

	d->mem = kzalloc(EP_KINDS_LEN, GFP_KERNEL);
	d->p = ep_connected(t, &wants);
	if (d->p && EXPECT(t, d->mem, "no memory") &&
	    EXPECT_EQ(t, ep_kinds_region(d->p, d->mem, &d->mr), 0))
		d->dev = driver_wrap(t, &d->p->side[0]);
	if (d->dev)
		return true;
	driven_close(t, d);
	return false;
}

/* One that was accepted has failed, and so has the connection: all of it is told, once. */
static void expect_over(struct kfi_test *t, struct driven *d, unsigned int kind)
{
	struct ep_event *e = kzalloc_obj(*e);
	int i;

	if (ep_kind_completes(kind))
		ep_failed_op(t, d->p->side[0].tx, ctx(kind), KFI_EIO, NULL);
	for (i = 0; e && i < 2; i++)
		ep_event(t, d->p->side[i].eq, KFI_SHUTDOWN, &d->p->side[i].ep->fid, e);
	if (ep_kind_needs_receive(kind))
		ep_failed_op(t, d->p->side[1].rx, ctx(0), KFI_ECANCELED, NULL);
	kfree(e);
}

static ssize_t room_for(struct driven *d, unsigned int kind)
{
	return kind ? kfi_tx_size_left(d->p->side[0].ep) : kfi_rx_size_left(d->p->side[1].ep);
}

/* Posts a request that may fail. Returns whether it did, and whether the connection is over. */
static bool post_once(struct kfi_test *t, struct driven *d, unsigned int kind, unsigned int skip,
		      bool *over)
{
	struct driver_step step;
	ssize_t ret, room;
	bool failed;

	if (ep_kind_needs_receive(kind))
		EXPECT_EQ(t, ep_kind_post(d->p, d->mem, d->mr, 0), 0);
	room = room_for(d, kind);
	step = driver_fails(kind ? KFI_INJECT_POST_TO_PEER : KFI_INJECT_POST_RECV, skip);
	ret = ep_kind_post(d->p, d->mem, d->mr, kind);
	failed = driver_failed(&step);
	*over = failed && !ret;
	if (*over) {
		expect_over(t, d, kind);
	} else {
		EXPECT_EQ(t, ret, failed ? DRIVER_TOLD : 0);
		if (failed) {
			ep_nothing(t, d->p->side[0].tx);
			ep_nothing(t, d->p->side[1].rx);
			EXPECT_EQ(t, room_for(d, kind), room);
			/* As if it hadn't been tried before. */
			EXPECT_EQ(t, ep_kind_post(d->p, d->mem, d->mr, kind), 0);
		}
		ep_kind_ends(t, d->p, d->mem, d->mr, kind);
	}
	ep_nothing(t, d->p->side[0].tx);
	ep_nothing(t, d->p->side[1].rx);
	return failed;
}

static void post_case(struct kfi_test *t)
{
	unsigned int kind, skip, failures, overs = 0;
	struct driven d = {};
	bool failed, over;

	for (kind = 0; kind < EP_KINDS && !t->failures; kind++) {
		failures = 0;
		for (skip = 0, failed = true; failed && !t->failures; skip++) {
			if (!d.p && !driven_open(t, &d))
				return;
			failed = post_once(t, &d, kind, skip, &over);
			failures += failed;
			overs += over;
			if (over)
				driven_close(t, &d);
		}
		EXPECT(t, failures, "kind %u: nothing was posted", kind);
	}
	ktap_note("%u have ended a connection", overs);
	driven_close(t, &d);
}

/* Of messages that wait for more and go in one go, the driver takes the first ones. */
static void more_once(struct kfi_test *t, struct driven *d, unsigned int taken)
{
	struct kvec kv = { d->mem, 8 };
	struct kfi_msg msg = { .type = KFI_KVEC, .msg_iov = &kv, .iov_count = 1 };
	struct ep_event *e = kzalloc_obj(*e);
	unsigned long seen = 0, n;
	struct driver_step step;
	int i;

	for (i = 0; i < MORE; i++)
		EXPECT_EQ(t, kfi_recv(d->p->side[1].ep, d->mem + LEN, LEN, NULL, 0, ctx(i)), 0);
	step = driver_fails(KFI_INJECT_POST_TO_PEER, taken);
	for (i = 0; i < MORE; i++) {
		msg.context = ctx(i);
		EXPECT_EQ(t, kfi_sendmsg(d->p->side[0].ep, &msg,
					 KFI_COMPLETION | (i < MORE - 1 ? KFI_MORE : 0)), 0);
	}
	EXPECT(t, driver_failed(&step), "nothing was refused");
	for (i = 0; i < MORE && !t->failures; i++) {
		struct kfi_cq_err_entry err = {};
		struct kfi_cq_data_entry done;
		ssize_t ret = kfi_cq_sread(d->p->side[0].tx, &done, 1, NULL, EP_WAIT_MS);

		if (ret == -KFI_EAVAIL)
			EXPECT_EQ(t, kfi_cq_readerr(d->p->side[0].tx, &err, 0), 1);
		else
			EXPECT_EQ(t, ret, 1);
		n = (unsigned long)(ret == 1 ? done.op_context : err.op_context) - 1;
		if (!EXPECT(t, n < MORE && !__test_and_set_bit(n, &seen), "%lu has ended twice", n))
			break;
		/* Requests that were taken may be on their way when the connection ends. */
		if (n >= taken) {
			EXPECT_EQ(t, err.err, KFI_EIO);
			EXPECT_EQ(t, err.prov_errno, DRIVER_SAYS);
		} else if (ret != 1) {
			EXPECT_EQ(t, err.err, KFI_ECANCELED);
		}
	}
	for (i = 0; e && i < 2; i++)
		ep_event(t, d->p->side[i].eq, KFI_SHUTDOWN, &d->p->side[i].ep->fid, e);
	ep_nothing(t, d->p->side[0].tx);
	kfree(e);
}

static void more_case(struct kfi_test *t)
{
	struct driven d = {};
	unsigned int taken;

	for (taken = 0; taken < MORE && !t->failures; taken++) {
		if (!driven_open(t, &d))
			return;
		more_once(t, &d, taken);
		driven_close(t, &d);
	}
}

/* A receive that endpoints share. */
static void shared_case(struct kfi_test *t)
{
	struct driven d = {};
	struct driver_step step;
	struct kfid_ep *srx;

	if (!driven_open(t, &d))
		return;
	if (EXPECT_EQ(t, kfi_srx_context(d.p->side[1].domain, NULL, &srx, NULL), 0)) {
		EXPECT_EQ(t, kfi_ep_bind(srx, &d.p->side[1].rx->fid, KFI_RECV), 0);
		step = driver_fails(KFI_INJECT_POST_SRQ_RECV, 0);
		EXPECT_EQ(t, kfi_recv(srx, d.mem, LEN, NULL, 0, ctx(0)), DRIVER_TOLD);
		EXPECT(t, driver_failed(&step), "nothing was posted");
		EXPECT_EQ(t, kfi_recv(srx, d.mem, LEN, NULL, 0, ctx(1)), 0);
		EXPECT_EQ(t, kfi_close(&srx->fid), 0);
		ep_failed_op(t, d.p->side[1].rx, ctx(1), KFI_ECANCELED, NULL);
		ep_nothing(t, d.p->side[1].rx);
	}
	driven_close(t, &d);
}

/* The errnos of a driver that refuses, and the errnos for the caller. The connection goes on. */
static void errnos_case(struct kfi_test *t)
{
	static const struct {
		int says;
		int told;
	} errnos[] = {
		{ -EINVAL, -KFI_EIO }, { -EIO, -KFI_EIO }, { -ENODEV, -KFI_EIO }, { -EACCES, -KFI_EIO },
		{ -EOVERFLOW, -KFI_EIO }, { -ENOMEM, -KFI_ENOMEM },
	};
	struct driven d = {};
	struct ep_side *s;
	unsigned int i;

	if (!driven_open(t, &d))
		return;
	s = d.p->side;
	for (i = 0; i < ARRAY_SIZE(errnos) && !t->failures; i++) {
		kfi_inject_fail(KFI_INJECT_POST_TO_PEER, errnos[i].says, 0, 1);
		EXPECT_EQ(t, kfi_send(s[0].ep, d.mem, LEN, NULL, 0, ctx(1)), errnos[i].told);
		kfi_inject_fail(KFI_INJECT_POST_RECV, errnos[i].says, 0, 1);
		EXPECT_EQ(t, kfi_recv(s[1].ep, d.mem + LEN, LEN, NULL, 0, ctx(2)), errnos[i].told);
		EXPECT_EQ(t, kfi_recv(s[1].ep, d.mem + LEN, LEN, NULL, 0, ctx(2)), 0);
		EXPECT_EQ(t, kfi_send(s[0].ep, d.mem, LEN, NULL, 0, ctx(1)), 0);
		ep_completed(t, s[0].tx, ctx(1), KFI_MSG | KFI_SEND, NULL);
		ep_completed(t, s[1].rx, ctx(2), KFI_MSG | KFI_RECV, NULL);
	}
	/* When it is over, that is what is said, whatever the driver would. */
	EXPECT_EQ(t, kfi_shutdown(s[0].ep, 0), 0);
	kfi_inject_fail(KFI_INJECT_POST_TO_PEER, -EINVAL, 0, UINT_MAX);
	EXPECT_EQ(t, kfi_send(s[0].ep, d.mem, LEN, NULL, 0, ctx(1)), -KFI_ENOTCONN);
	kfi_inject_fail(KFI_INJECT_POST_TO_PEER, 0, 0, 0);
	driven_close(t, &d);
}

/* Under load, one and then another. */
static void busy_case(struct kfi_test *t)
{
	static const enum kfi_inject_op ops[] = { KFI_INJECT_POST_TO_PEER, KFI_INJECT_POST_RECV };
	unsigned int i, naps, failures = 0;
	struct busy *b = busy_start(t);
	struct driver_step step;
	struct ib_device *dev;

	if (!b || !busy_pair(b))
		goto out;
	dev = driver_wrap(t, &busy_pair(b)->side[0]);
	for (i = 0; dev && i < scaled(20); i++) {
		step = driver_fails(ops[i % 2], get_random_u32_below(40));
		for (naps = 0; naps < EP_WAIT_MS / 20; naps++) {
			if (kfi_inject_calls(step.op) - step.before > step.skip)
				break;
			msleep(20);
		}
		failures += driver_failed(&step);
	}
	EXPECT_EQ(t, failures, i);
	if (dev)
		kfi_inject_stop(dev);
	EXPECT_EQ(t, kfi_shutdown(busy_pair(b)->side[0].ep, 0), 0);
out:
	busy_end(t, b);
}

/* How many connections a device has that completes nothing. */
#define DEAD	4

/*
 * The device loses a send of each connection, and the requests that drain the queues. Connections that end together
 * share their time limit: after the first one is closed, the others have none left.
 */
static void dead_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p[DEAD] = {};
	struct ib_device *dev = NULL;
	s64 first = 0, all;
	ktime_t begun;
	unsigned int i;
	u8 mem[8] = {};

	for (i = 0; i < DEAD && (!i || p[i - 1]); i++)
		p[i] = ep_connected(t, &wants);
	if (p[DEAD - 1])
		dev = driver_wrap(t, &p[0]->side[0]);
	if (!dev)
		goto out;
	kfi_inject_lose(KFI_INJECT_POST_TO_PEER, 0, UINT_MAX);
	for (i = 0; i < DEAD; i++) {
		EXPECT_EQ(t, kfi_inject(p[i]->side[0].ep, mem, sizeof(mem), 0), 0);
		EXPECT_EQ(t, kfi_shutdown(p[i]->side[0].ep, 0), 0);
	}
	begun = ktime_get();
	for (i = 0; i < DEAD; i++) {
		EXPECT_EQ(t, kfi_close(&p[i]->side[0].ep->fid), 0);
		p[i]->side[0].ep = NULL;
		if (!i)
			first = ktime_ms_delta(ktime_get(), begun);
	}
	all = ktime_ms_delta(ktime_get(), begun);
	EXPECT(t, first > 5000, "the first close did not wait: %lld ms", first);
	EXPECT(t, all < 2 * first, "%lld ms, of which %lld for the first close", all, first);
	kfi_inject_stop(dev);
out:
	for (i = 0; i < DEAD; i++)
		if (p[i])
			ep_pair_close(t, p[i]);
}

static const struct kfi_case cases[] = {
	{ "post", post_case },
	{ "more", more_case },
	{ "shared", shared_case },
	{ "errnos", errnos_case },
	{ "busy", busy_case },
	{ "dead", dead_case },
	{ "making", driver_making_case },
	{ "closing", driver_closing_case },
	{ "lingering", driver_lingering_case },
	{ "regions", driver_regions_case },
	{ "regions_kept", driver_regions_kept_case },
	{ "regions_probed", driver_regions_probed_case },
	{ "failing_regions", driver_failing_regions_case },
	{ "receives", driver_receives_case },
	{ "receives_shared", driver_receives_shared_case },
	{ "inline_refused", driver_inline_refused_case },
	{ "inline_less", driver_inline_less_case },
	{ "last_shared", driver_last_shared_case },
	{ "undrained", driver_undrained_case },
	{ "drain_refused", driver_drain_refused_case },
	{ "early", driver_early_case },
	{ "again", driver_again_case },
	{ "again_refused", driver_again_refused_case },
	{ "replayed", driver_replayed_case },
	{ "reuse_ended", driver_reuse_ended_case },
};

const struct kfi_suite suite_ep_driver = {
	.name = "ep_driver",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
	.connects = true,
};
