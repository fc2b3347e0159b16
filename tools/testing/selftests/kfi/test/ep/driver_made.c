// SPDX-License-Identifier: GPL-2.0
/*
 * The driver doesn't make, change or end what an endpoint consists of, and doesn't take the registration
 * of a region.
 */
#include "attempt.h"
#include "driver.h"
#include "kinds.h"
#include "wr_timeout.h"

#define LEN	PAGE_SIZE

/* Time for another CPU to end a connection meanwhile. */
#define LINGER_MS	50

/* Connects again and again, until each of the calls has failed once; then it succeeds. */
static void make(struct kfi_test *t, enum kfi_inject_op op)
{
	struct ep_pair *p = ep_listening(t, NULL);
	unsigned int skip, came[EP_OUTCOMES] = {};
	struct ib_device *dev = p ? driver_wrap(t, &p->side[0]) : NULL;
	enum ep_outcome outcome;
	struct driver_step step;
	bool failed = dev;

	for (skip = 0; failed && !t->failures; skip++) {
		ep_attempt_close(t, p);
		step = driver_fails(op, skip);
		outcome = ep_attempt(t, p);
		failed = driver_failed(&step);
		came[outcome]++;
		EXPECT(t, failed || outcome == EP_UP, "no connection, and nothing has failed");
	}
	EXPECT(t, came[EP_REFUSED] + came[EP_FAILED], "nothing has failed");
	ktap_note("operation %d: %u up, %u refused, %u failed", op, came[EP_UP], came[EP_REFUSED],
		  came[EP_FAILED]);
	if (dev)
		kfi_inject_stop(dev);
	if (p)
		ep_pair_close(t, p);
}

void driver_making_case(struct kfi_test *t)
{
	make(t, KFI_INJECT_CREATE_CQ);
	make(t, KFI_INJECT_CREATE_QP);
	make(t, KFI_INJECT_MODIFY_QP);
}

/* A connection ends whatever the driver says, and all that was posted ends with it: by this errno. */
static void close_once(struct kfi_test *t, enum kfi_inject_op op, int err)
{
	struct ep_pair *p = ep_connected(t, NULL);
	struct ib_device *dev = p ? driver_wrap(t, &p->side[0]) : NULL;
	u8 *mem = kzalloc(LEN, GFP_KERNEL);
	int i;

	if (dev && EXPECT(t, mem, "no memory")) {
		for (i = 0; i < 3; i++)
			EXPECT_EQ(t, kfi_recv(p->side[0].ep, mem, LEN, NULL, 0, mem + i), 0);
		kfi_inject_fail(op, -EIO, 0, UINT_MAX);
		EXPECT_EQ(t, kfi_close(&p->side[0].ep->fid), 0);
		p->side[0].ep = NULL;
		EXPECT(t, kfi_inject_calls(op), "nothing was called");
		kfi_inject_fail(op, 0, 0, 0);
		for (i = 0; i < 3; i++)
			ep_failed_op(t, p->side[0].rx, mem + i, err, NULL);
		ep_nothing(t, p->side[0].rx);
	}
	if (dev)
		kfi_inject_stop(dev);
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

void driver_closing_case(struct kfi_test *t)
{
	/* A queue pair that won't fail flushes nothing: that is waited for, as long as for any request. */
	close_once(t, KFI_INJECT_MODIFY_QP, KFI_ETIMEDOUT);
	close_once(t, KFI_INJECT_POST_TO_PEER, KFI_ECANCELED);
	close_once(t, KFI_INJECT_POST_RECV, KFI_ECANCELED);
}

/*
 * The poller of a connection may still be about to ask for the next interrupt when the last
 * completion has been told: its queue is there until it has.
 */
void driver_lingering_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_connected(t, NULL);
	struct ib_device *dev = p ? driver_wrap(t, &p->side[0]) : NULL;
	int i;

	if (dev)
		kfi_inject_linger(LINGER_MS);
	for (i = 0; dev && i < 2; i++) {
		EXPECT_EQ(t, kfi_close(&p->side[i].ep->fid), 0);
		p->side[i].ep = NULL;
	}
	if (dev) {
		EXPECT(t, kfi_inject_calls(KFI_INJECT_NOTIFY_CQ), "softirq has polled nothing");
		EXPECT(t, kfi_inject_calls(KFI_INJECT_DESTROY_CQ), "nothing was destroyed");
		EXPECT_EQ(t, kfi_inject_destroyed(), 0);
		kfi_inject_linger(0);
		kfi_inject_stop(dev);
	}
	if (p)
		ep_pair_close(t, p);
}

/* A region of the first side, and a peer that may write to it. */
struct regions {
	struct ep_pair *p;
	struct ib_device *dev;
	struct kfid_mr *mr;
	u8 *mem;
};

static const struct ep_wants binds = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT };

static bool regions_make(struct kfi_test *t, struct regions *r)
{
	*r = (struct regions) { .p = ep_connected(t, &binds), .mem = kzalloc(2 * LEN, GFP_KERNEL) };
	return r->p && EXPECT(t, r->mem, "no memory") &&
	       EXPECT_EQ(t, kfi_mr_reg(r->p->side[0].domain, r->mem, LEN, KFI_REMOTE_WRITE, 0, 9, 0,
				       &r->mr, NULL), 0) &&
	       EXPECT_EQ(t, kfi_mr_bind(r->mr, &r->p->side[0].ep->fid, 0), 0);
}

static bool regions_open(struct kfi_test *t, struct regions *r)
{
	if (!regions_make(t, r))
		return false;
	r->dev = driver_wrap(t, &r->p->side[0]);
	return r->dev;
}

static void regions_close(struct kfi_test *t, struct regions *r)
{
	if (r->dev)
		kfi_inject_stop(r->dev);
	if (r->mr)
		EXPECT_EQ(t, kfi_close(&r->mr->fid), 0);
	if (r->p)
		ep_pair_close(t, r->p);
	kfree(r->mem);
}

/* The peer writes, and doesn't get there. */
static void expect_out_of_reach(struct kfi_test *t, struct regions *r, u64 at, u64 key)
{
	struct ep_side *s = &r->p->side[1];
	struct kfi_cq_err_entry err = {};
	struct kfi_cq_data_entry done;
	ssize_t ret;

	memset(r->mem + LEN, 0x77, LEN);
	ret = kfi_write(s->ep, r->mem + LEN, LEN, NULL, 0, at, key, r);
	if (ret)
		EXPECT_EQ(t, ret, -KFI_ENOTCONN);
	else if (EXPECT_EQ(t, kfi_cq_sread(s->tx, &done, 1, NULL, EP_WAIT_MS), -KFI_EAVAIL))
		EXPECT_EQ(t, kfi_cq_readerr(s->tx, &err, 0), 1);
	EXPECT(t, !memchr_inv(r->mem, 0, LEN), "it was written to");
}

/*
 * The request behind the registration gets lost, so nothing tells that it has ended. Closing takes
 * the connection down for it, and says so at this side, too.
 */
static void ends_with_region(struct kfi_test *t, struct regions *r, struct ep_event *e)
{
	int was;

	EXPECT_EQ(t, kfi_mr_enable(r->mr), 0);
	/* The domain's own queue posts another one afterwards, and waits as long as was set when the domain was opened. */
	kfi_inject_lose(KFI_INJECT_POST_INV, 0, 1);
	was = set_wr_timeout(1);
	if (EXPECT(t, was > 0, "the parameter wr_timeout gives %d", was)) {
		EXPECT_EQ(t, kfi_close(&r->mr->fid), 0);
		r->mr = NULL;
		EXPECT_EQ(t, set_wr_timeout(was), 1);
		ep_event(t, r->p->side[0].eq, KFI_SHUTDOWN, &r->p->side[0].ep->fid, e);
	}
	kfi_inject_lose(KFI_INJECT_POST_INV, 0, 0);
}

/* A message from the side that had the region: the connection goes on. */
static void goes_on(struct kfi_test *t, struct regions *r)
{
	struct ep_side *s = r->p->side;

	EXPECT_EQ(t, kfi_recv(s[1].ep, r->mem, 8, NULL, 0, r->mem), 0);
	EXPECT_EQ(t, kfi_send(s[0].ep, r->mem + LEN, 8, NULL, 0, r->mem), 0);
	ep_completed(t, s[0].tx, r->mem, KFI_MSG | KFI_SEND, NULL);
	ep_completed(t, s[1].rx, r->mem, KFI_MSG | KFI_RECV, NULL);
}

/*
 * The driver refuses the registration. The provider has accepted it, since it may go with others, and ends the
 * connection. Without LOCAL_INV it is posted by itself: kfi_mr_enable() fails, and the connection goes on.
 */
static void registration_refused(struct kfi_test *t, struct regions *r, struct ep_event *e)
{
	struct driver_step step = driver_fails(KFI_INJECT_POST_REG, 0);
	int i;

	EXPECT_EQ(t, kfi_mr_enable(r->mr), has_feature(F_LOCAL_INV) ? 0 : DRIVER_TOLD);
	EXPECT(t, driver_failed(&step), "nothing was posted");
	if (!has_feature(F_LOCAL_INV)) {
		EXPECT_EQ(t, kfi_mr_key(r->mr), KFI_KEY_NOTAVAIL);
		EXPECT_EQ(t, kfi_mr_enable(r->mr), -KFI_EOPBADSTATE);
		goes_on(t, r);
		return;
	}
	for (i = 0; i < 2; i++)
		ep_event(t, r->p->side[i].eq, KFI_SHUTDOWN, &r->p->side[i].ep->fid, e);
	expect_out_of_reach(t, r, r->mr->iova, kfi_mr_key(r->mr));
}

/* A region of an endpoint whose registration, or whose invalidation, the driver doesn't take. */
void driver_regions_case(struct kfi_test *t)
{
	struct ep_event *e = kzalloc_obj(*e);
	struct regions r;
	u64 at, key;

	if (regions_open(t, &r) && EXPECT(t, e, "no memory"))
		registration_refused(t, &r, e);
	regions_close(t, &r);
	/* It is out of reach when the close has returned, whatever that takes. */
	if (regions_open(t, &r)) {
		EXPECT_EQ(t, kfi_mr_enable(r.mr), 0);
		at = r.mr->iova;
		key = kfi_mr_key(r.mr);
		kfi_inject_fail(KFI_INJECT_POST_INV, DRIVER_SAYS, 0, UINT_MAX);
		EXPECT_EQ(t, kfi_close(&r.mr->fid), 0);
		r.mr = NULL;
		EXPECT_EQ(t, !!kfi_inject_calls(KFI_INJECT_POST_INV), has_feature(F_LOCAL_INV));
		expect_out_of_reach(t, &r, at, key);
	}
	regions_close(t, &r);
	if (has_feature(F_LOCAL_INV)) {
		if (regions_open(t, &r) && EXPECT(t, e, "no memory"))
			ends_with_region(t, &r, e);
		regions_close(t, &r);
	}
	kfree(e);
}

/*
 * On a device without LOCAL_INV none is posted behind a registration, to find out that this has ended: the region is
 * closed, and the connection goes on.
 */
void driver_regions_kept_case(struct kfi_test *t)
{
	struct regions r;
	int i;

	if (has_feature(F_REFRESH))
		return ktap_skip(t, "the device invalidates regions");
	for (i = 0; i < 2 && !t->failures; i++) {
		if (regions_open(t, &r)) {
			kfi_inject_driver(RDMA_DRIVER_HNS);
			EXPECT_EQ(t, i ? kfi_mr_enable_more(r.mr) : kfi_mr_enable(r.mr), 0);
			EXPECT_EQ(t, kfi_close(&r.mr->fid), 0);
			r.mr = NULL;
			EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_REG), 1);
			EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV), 0);
			goes_on(t, &r);
		}
		regions_close(t, &r);
	}
}

/* The same on a device that refuses LOCAL_INV when the domain is opened, whatever its driver is. */
void driver_regions_probed_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_connected(t, &binds);
	struct ib_device *dev = p ? driver_wrap(t, &p->side[0]) : NULL;
	unsigned int posted;
	struct regions r;

	if (p)
		ep_pair_close(t, p);
	if (!dev)
		return;
	kfi_inject_fail(KFI_INJECT_POST_INV, -EINVAL, 0, UINT_MAX);
	if (regions_make(t, &r)) {
		posted = kfi_inject_calls(KFI_INJECT_POST_INV);
		EXPECT_EQ(t, kfi_mr_enable(r.mr), 0);
		EXPECT_EQ(t, kfi_close(&r.mr->fid), 0);
		r.mr = NULL;
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV), posted);
		goes_on(t, &r);
	}
	r.dev = dev;
	regions_close(t, &r);
}

/* The requests that are under way with the one that the device fails. */
enum with { REGISTRATION, REGISTRATION_AND_SEND, INVALIDATION, WITHS };

/* The device fails a request that asks for no completion, or that nobody else's transfer depends on. */
static void fails_with(struct kfi_test *t, struct regions *r, struct ep_event *e, enum with with)
{
	struct ep_side *s = r->p->side;
	u64 at, key;
	int i;

	kfi_inject_spoil(with == INVALIDATION ? KFI_INJECT_POST_INV : KFI_INJECT_POST_REG, 0, 1);
	EXPECT_EQ(t, with == REGISTRATION_AND_SEND ? kfi_mr_enable_more(r->mr) : kfi_mr_enable(r->mr), 0);
	at = r->mr->iova;
	key = kfi_mr_key(r->mr);
	if (with == REGISTRATION_AND_SEND) {
		EXPECT_EQ(t, kfi_send(s[0].ep, r->mem, 8, NULL, 0, r), 0);
		ep_failed_op(t, s[0].tx, r, KFI_ECANCELED, NULL);
	} else if (with == INVALIDATION) {
		EXPECT_EQ(t, kfi_close(&r->mr->fid), 0);
		r->mr = NULL;
	}
	for (i = 0; i < 2; i++)
		ep_event(t, s[i].eq, KFI_SHUTDOWN, &s[i].ep->fid, e);
	ep_nothing(t, s[0].tx);
	expect_out_of_reach(t, r, at, key);
}

/* Nothing that is flushed with it tells of the failure: the connection ends all the same, and says so. */
void driver_failing_regions_case(struct kfi_test *t)
{
	enum with with, withs = has_feature(F_LOCAL_INV) ? WITHS : INVALIDATION;
	struct ep_event *e = kzalloc_obj(*e);
	struct regions r;

	for (with = REGISTRATION; EXPECT(t, e, "no memory") && with < withs && !t->failures; with++) {
		if (regions_open(t, &r))
			fails_with(t, &r, e, with);
		regions_close(t, &r);
	}
	kfree(e);
}

/*
 * The driver's own drain does nothing, and the queue pair can neither be put into error nor be destroyed. So the device
 * may carry out the registration of a region at any time: closing it says that its memory must stay.
 */
void driver_undrained_case(struct kfi_test *t)
{
	struct regions r;
	int was;

	/* Memory that the device may have for ever is leaked. */
	if (IS_ENABLED(CONFIG_DEBUG_KMEMLEAK))
		return ktap_skip(t, "kmemleak would report what is leaked on purpose");

	if (!regions_open(t, &r))
		goto out;
	kfi_inject_own_drain();
	kfi_inject_lose(KFI_INJECT_POST_REG, 0, 1);
	EXPECT_EQ(t, kfi_mr_enable(r.mr), 0);
	kfi_inject_lose(KFI_INJECT_POST_INV, 0, UINT_MAX);
	kfi_inject_fail(KFI_INJECT_MODIFY_QP, -EIO, 0, UINT_MAX);
	kfi_inject_fail(KFI_INJECT_DESTROY_QP, -EIO, 0, UINT_MAX);
	was = set_wr_timeout(1);
	if (EXPECT(t, was > 0, "the parameter wr_timeout gives %d", was)) {
		EXPECT_EQ(t, kfi_close(&r.mr->fid), -KFI_EIO);
		r.mr = NULL;
		EXPECT_EQ(t, set_wr_timeout(was), 1);
	}
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_DESTROY_QP), 1);
	kfi_inject_fail(KFI_INJECT_MODIFY_QP, 0, 0, 0);
	kfi_inject_fail(KFI_INJECT_DESTROY_QP, 0, 0, 0);
	kfi_inject_lose(KFI_INJECT_POST_INV, 0, 0);
out:
	regions_close(t, &r);
	kfi_inject_mend();
}
