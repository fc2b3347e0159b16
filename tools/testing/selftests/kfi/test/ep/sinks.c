// SPDX-License-Identifier: GPL-2.0
/*
 * Reads over iWARP go to a key by which the peer may write, as hardware demands. siw demands less, so
 * kfi_inject checks that.
 */
#include <linux/delay.h>

#include "driver.h"
#include "job.h"

#define LEN		(2 * PAGE_SIZE + 300)
#define FETCHED		(KFI_RMA | KFI_READ)
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)

/* An endpoint has one region more than the 16 that it uses at once, each with 255 keys. */
#define REGIONS		17
#define READS		(16 * 255 + 100)

/* How many are under way at once. */
#define AT_ONCE		8

static void *ctx(unsigned long n)
{
	return (void *)(0x51470000 + n);
}

/**
 * struct reading - a connection over a device that is looked at
 * @m: The connection; its region is that which is read.
 * @dev: The device.
 * @own: A region of the first side that reads go to.
 */
struct reading {
	struct ep_memory m;
	struct ib_device *dev;
	struct kfid_mr *own;
};

static void reading_close(struct kfi_test *t, struct reading *r)
{
	if (r->own)
		EXPECT_EQ(t, kfi_close(&r->own->fid), 0);
	if (r->dev)
		kfi_inject_stop(r->dev);
	ep_memory_close(t, &r->m);
}

/* Registers memory on an endpoint, and waits until that is done. */
static struct kfid_mr *bound(struct kfi_test *t, struct reading *r, int side, u8 *mem, u64 access)
{
	struct ep_side *from = &r->m.p->side[side], *to = &r->m.p->side[!side];
	struct kfid_mr *mr = NULL;

	if (!EXPECT_EQ(t, kfi_mr_reg(from->domain, mem, LEN, access, 0, 0, 0, &mr, NULL), 0))
		return NULL;
	if (EXPECT_EQ(t, kfi_recv(to->ep, NULL, 0, NULL, 0, ctx(1)), 0) &&
	    EXPECT_EQ(t, kfi_mr_bind(mr, &from->ep->fid, 0), 0) &&
	    EXPECT_EQ(t, kfi_mr_enable(mr), 0) &&
	    EXPECT_EQ(t, kfi_send(from->ep, NULL, 0, NULL, 0, ctx(2)), 0) &&
	    ep_completed(t, to->rx, ctx(1), RECEIVED, NULL) &&
	    ep_completed(t, from->tx, ctx(2), SENT, NULL))
		return mr;
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	return NULL;
}

static bool reading_open(struct kfi_test *t, struct reading *r)
{
	static const struct kfi_inject_device as = {
		.max_inline = U32_MAX, .gives_inline = U32_MAX, .remote_sinks = true,
	};
	struct ep_wants wants = {};

	*r = (struct reading) {};
	if (!ep_memory_open(t, &r->m, &wants, LEN))
		return false;
	r->dev = driver_wrap(t, &r->m.p->side[0]);
	if (!r->dev)
		return false;
	kfi_inject_device(&as);
	pattern(r->m.there, LEN, 7);
	r->m.mr = bound(t, r, 1, r->m.there, KFI_REMOTE_READ);
	return r->m.mr;
}

static ssize_t post_read(struct reading *r, size_t at, size_t len, void *desc, u64 key, void *context)
{
	return kfi_read(r->m.p->side[0].ep, r->m.here + at, len, desc, 0, r->m.mr->iova + at, key,
			context);
}

/* Reads all of it. */
static void read_once(struct kfi_test *t, struct reading *r, void *desc)
{
	memset(r->m.here, 0, LEN);
	if (EXPECT_EQ(t, post_read(r, 0, LEN, desc, kfi_mr_key(r->m.mr), ctx(3)), 0) &&
	    ep_completed(t, r->m.p->side[0].tx, ctx(3), FETCHED, NULL))
		EXPECT(t, pattern_is(r->m.here, LEN, 7), "other bytes were read");
	EXPECT_EQ(t, kfi_inject_misread(), 0);
}

/* With a descriptor, of a region for that, and of one for everything at this side. */
static void by_region(struct kfi_test *t, struct reading *r, u64 access)
{
	unsigned int writable = kfi_inject_writable();

	r->own = bound(t, r, 0, r->m.here, access);
	if (!r->own)
		return;
	EXPECT_EQ(t, kfi_inject_writable(), writable + 1);
	read_once(t, r, kfi_mr_desc(r->own));
	EXPECT_EQ(t, kfi_close(&r->own->fid), 0);
	r->own = NULL;
}

/* Many, each for a part of its own: the regions for them are used again and again. */
static void many(struct kfi_test *t, struct reading *r)
{
	const size_t part = LEN / AT_ONCE;
	struct kfi_cq_data_entry done;
	unsigned int i, ended = 0;

	memset(r->m.here, 0, LEN);
	for (i = 0; i < READS && !t->failures; i++) {
		if (i >= AT_ONCE)
			ended += EXPECT_EQ(t, kfi_cq_sread(r->m.p->side[0].tx, &done, 1, NULL,
							   EP_WAIT_MS), 1);
		EXPECT_EQ(t, post_read(r, i % AT_ONCE * part, part, NULL, kfi_mr_key(r->m.mr), ctx(i)), 0);
	}
	while (ended < i && EXPECT_EQ(t, kfi_cq_sread(r->m.p->side[0].tx, &done, 1, NULL, EP_WAIT_MS), 1))
		ended++;
	EXPECT(t, pattern_is(r->m.here, AT_ONCE * part, 7), "other bytes were read");
	EXPECT_EQ(t, kfi_inject_misread(), 0);
	EXPECT_EQ(t, kfi_inject_writable(), 0);
}

void ep_sinks_case(struct kfi_test *t)
{
	unsigned int regs;
	struct reading r;

	if (reading_open(t, &r)) {
		by_region(t, &r, KFI_READ);
		by_region(t, &r, 0);
		/* kfi_inject does not see that a closed region was deregistered. */
		kfi_inject_device(NULL);
		EXPECT_EQ(t, kfi_close(&r.m.mr->fid), 0);
		r.m.mr = NULL;
	}
	reading_close(t, &r);
	if (reading_open(t, &r)) {
		regs = kfi_inject_calls(KFI_INJECT_POST_REG);
		read_once(t, &r, NULL);
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_REG), regs + 1);
		/* The peer can't write there any more. */
		EXPECT_EQ(t, kfi_inject_writable(), 0);
		many(t, &r);
	}
	reading_close(t, &r);
}

/* One read after the other, each for some bytes. Returns what posting the first one gives that is not taken. */
static ssize_t read_some(struct kfi_test *t, struct reading *r, unsigned int count)
{
	unsigned int i;
	ssize_t ret;

	for (i = 0; i < count && !t->failures; i++) {
		ret = post_read(r, 0, 64, NULL, kfi_mr_key(r->m.mr), ctx(i));
		if (ret)
			return ret;
		ep_completed(t, r->m.p->side[0].tx, ctx(i), FETCHED, NULL);
	}
	return 0;
}

/*
 * The endpoint replaces its regions long before their keys are used up, one at a time. So a read finds a region even if
 * the device takes very long to let go of the first of those that are replaced.
 */
void ep_sinks_worn_case(struct kfi_test *t)
{
	struct reading r;

	if (reading_open(t, &r)) {
		kfi_inject_hold(KFI_INJECT_DEREG_MR);
		EXPECT_EQ(t, read_some(t, &r, REGIONS * 200), 0);
		EXPECT(t, kfi_inject_wait_held(KFI_INJECT_DEREG_MR), "no region has been replaced");
		EXPECT_EQ(t, read_some(t, &r, READS - REGIONS * 200), 0);
		kfi_inject_release(KFI_INJECT_DEREG_MR);
		EXPECT_EQ(t, kfi_inject_misread(), 0);
	}
	reading_close(t, &r);
}

static int close_fid(void *data)
{
	return kfi_close(data);
}

/*
 * All regions are used up while the device makes another one, and the endpoint is closed before it has deregistered
 * them. It gives all of them back: if it forgot one, the model would count it, and siw could not be removed.
 */
void ep_sinks_closed_case(struct kfi_test *t)
{
	struct reading r;
	struct job job;

	if (reading_open(t, &r)) {
		kfi_inject_hold(KFI_INJECT_ALLOC_MR);
		EXPECT_EQ(t, read_some(t, &r, REGIONS * 255 + 1), -KFI_EAGAIN);
		kfi_inject_hold(KFI_INJECT_DEREG_MR);
		kfi_inject_release(KFI_INJECT_ALLOC_MR);
		EXPECT(t, kfi_inject_wait_held(KFI_INJECT_DEREG_MR), "nothing was deregistered");
		job_start(t, &job, close_fid, &r.m.p->side[0].ep->fid);
		r.m.p->side[0].ep = NULL;
		EXPECT(t, kfi_inject_wait_returned(KFI_INJECT_DESTROY_QP, 1), "the endpoint was not closed");
		/* Then it gives its regions up. */
		msleep(100);
		kfi_inject_release(KFI_INJECT_DEREG_MR);
		EXPECT_EQ(t, job_end(t, &job), 0);
	}
	reading_close(t, &r);
}

/* Reads that the peer refuses, or the driver: they fail, and their memory is the consumer's then. */
void ep_sinks_failed_case(struct kfi_test *t)
{
	struct kfi_cq_err_entry err;
	struct ep_event *e = kzalloc_obj(*e);
	struct reading r;
	unsigned int i, was;

	for (i = 0; i < 2 && !t->failures && EXPECT(t, e, "no memory"); i++) {
		if (!reading_open(t, &r))
			goto next;
		memset(r.m.here, 0x11, LEN);
		if (i)
			kfi_inject_fail(KFI_INJECT_POST_REG, DRIVER_SAYS, 0, 1);
		else
			kfi_inject_hold(KFI_INJECT_DEREG_MR);
		was = kfi_inject_calls(KFI_INJECT_POST_REG);
		EXPECT_EQ(t, post_read(&r, 0, LEN, NULL, kfi_mr_key(r.m.mr) ^ (i ? 0 : NO_KEY), ctx(4)),
			  0);
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_REG), was + 1);
		if (!i) {
			/* The device knows the region of its memory until that has been deregistered. */
			EXPECT(t, kfi_inject_wait_held(KFI_INJECT_DEREG_MR), "nothing was deregistered");
			ep_nothing(t, r.m.p->side[0].tx);
			kfi_inject_release(KFI_INJECT_DEREG_MR);
		}
		/* siw does not say why the peer has ended the connection. */
		ep_failed_op(t, r.m.p->side[0].tx, ctx(4), i ? KFI_EIO : KFI_ECANCELED, &err);
		EXPECT(t, !memchr_inv(r.m.here, 0x11, LEN), "own bytes changed");
		ep_event(t, r.m.p->side[0].eq, KFI_SHUTDOWN, &r.m.p->side[0].ep->fid, e);
next:
		reading_close(t, &r);
	}
	kfree(e);
}

/* A read of a byte by an unknown key. The device gets it with a request that follows. */
static ssize_t post_failing(struct reading *r, unsigned int n)
{
	struct kvec kv = { r->m.here + n, 1 };
	struct kfi_rma_iov iov = { .addr = r->m.mr->iova, .len = 1, .key = kfi_mr_key(r->m.mr) ^ NO_KEY };
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC, .msg_iov = &kv, .iov_count = 1, .rma_iov = &iov, .rma_iov_count = 1,
		.context = ctx(n),
	};

	return kfi_readmsg(r->m.p->side[0].ep, &msg, KFI_COMPLETION | KFI_MORE);
}

/*
 * Reads by all regions fail while the device deregisters the first region. The reads complete in order,
 * after their regions have been deregistered. If the list of failed reads grows, the kernel warns.
 */
void ep_sinks_failed_together_case(struct kfi_test *t)
{
	struct kfi_cq_err_entry err;
	struct ep_side *s;
	struct reading r;
	unsigned int i;

	if (!reading_open(t, &r))
		goto out;
	s = &r.m.p->side[0];
	kfi_inject_hold(KFI_INJECT_DEREG_MR);
	for (i = 0; i < REGIONS - 1; i++)
		EXPECT_EQ(t, post_failing(&r, i), 0);
	EXPECT_EQ(t, kfi_send(s->ep, NULL, 0, NULL, 0, ctx(REGIONS)), 0);
	EXPECT(t, kfi_inject_wait_held(KFI_INJECT_DEREG_MR), "nothing was deregistered");
	/* The requests before it have ended. */
	ep_failed_op(t, s->tx, ctx(REGIONS), KFI_ECANCELED, &err);
	ep_nothing(t, s->tx);
	kfi_inject_release(KFI_INJECT_DEREG_MR);
	for (i = 0; i < REGIONS - 1; i++)
		ep_failed_op(t, s->tx, ctx(i), KFI_ECANCELED, &err);
out:
	reading_close(t, &r);
}

/* A read that is longer than a region, and one in a queue with too few places. */
void ep_sinks_refused_case(struct kfi_test *t)
{
	struct ep_wants wants = { .tx_size = 2 };
	size_t len = 1 << 21;
	struct ep_memory m = {};
	ssize_t room;

	if (ep_memory_open(t, &m, NULL, len)) {
		room = kfi_tx_size_left(m.p->side[0].ep);
		EXPECT_EQ(t, kfi_read(m.p->side[0].ep, m.here, len, NULL, 0, 0, NO_KEY, ctx(5)),
			  -KFI_EMSGSIZE);
		ep_nothing(t, m.p->side[0].tx);
		EXPECT_EQ(t, kfi_tx_size_left(m.p->side[0].ep), room);
	}
	ep_memory_close(t, &m);
	m = (struct ep_memory) {};
	if (ep_memory_open(t, &m, &wants, LEN)) {
		EXPECT_EQ(t, kfi_read(m.p->side[0].ep, m.here, LEN, NULL, 0, 0, NO_KEY, ctx(5)),
			  -KFI_E2BIG);
		ep_nothing(t, m.p->side[0].tx);
	}
	ep_memory_close(t, &m);
}
