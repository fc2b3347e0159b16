// SPDX-License-Identifier: GPL-2.0
/*
 * Endpoints over the model NIC (nic/), which says what it has done, and does it as late as it is told. Part of the
 * suite ep_driver.
 */
#include <linux/delay.h>

#include "debugfs.h"
#include "driver.h"
#include "wr_timeout.h"

#define LEN		64
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define WRITTEN		(KFI_RMA | KFI_WRITE)

/* How late a completion is: the test closes the endpoint before that. */
#define LATE_MS		3000

static void *ctx(unsigned long n)
{
	return (void *)(0x30de1000 + n);
}

/* Waits until the device has counted one more than @before. */
static bool counted(struct kfi_test *t, struct ib_device *dev, const char *name, long before)
{
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);

	while (nic_stat(t, dev, name) <= before && !t->failures && time_before(jiffies, end))
		usleep_range(100, 1000);
	return EXPECT(t, nic_stat(t, dev, name) > before, "%s is still %ld", name, before);
}

/* A message from side @from; it has the peer's device invalidate a key, if there is one. */
static void message(struct kfi_test *t, struct ep_pair *p, u8 *mem, int from, u64 invalidates)
{
	struct ep_side *s = &p->side[from], *to = &p->side[!from];
	struct kvec kv = { mem, 8 };
	struct kfi_msg msg = {
		.type = KFI_KVEC, .msg_iov = &kv, .iov_count = 1, .context = ctx(1), .data = invalidates,
	};

	if (EXPECT_EQ(t, kfi_recv(to->ep, mem + 8, 8, NULL, 0, ctx(2)), 0) &&
	    EXPECT_EQ(t, kfi_sendmsg(s->ep, &msg, invalidates ? KFI_INVALIDATE : 0), 0) &&
	    ep_completed(t, to->rx, ctx(2), RECEIVED | (invalidates ? KFI_INVALIDATE : 0), NULL))
		ep_completed(t, s->tx, ctx(1), SENT, NULL);
}

/*
 * The peer has a region invalidated that the device has registered, before anything has completed behind the
 * registration. Closing the region finds out that the registration has ended, and the connection goes on.
 */
void driver_early_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT };
	struct kfid_mr *mr = NULL;
	struct ib_device *dev;
	struct ep_pair *p;
	long before;
	int was;
	u8 *mem;

	if (!needs_model(t))
		return;
	p = ep_connected(t, &wants);
	dev = p ? driver_wrap(t, &p->side[1]) : NULL;
	mem = kzalloc(LEN, GFP_KERNEL);
	if (!dev || !EXPECT(t, mem, "no memory") ||
	    !EXPECT_EQ(t, kfi_mr_reg(p->side[1].domain, mem, LEN, KFI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), 0) ||
	    !EXPECT_EQ(t, kfi_mr_bind(mr, &p->side[1].ep->fid, 0), 0))
		goto out;
	before = nic_stat(t, dev, "reg_mr");
	if (!EXPECT_EQ(t, kfi_mr_enable(mr), 0) || !counted(t, dev, "reg_mr", before))
		goto out;
	/* The peer has got the key by another way. */
	message(t, p, mem, 0, kfi_mr_key(mr));
	was = set_wr_timeout(2);
	if (!EXPECT(t, was > 0, "the parameter wr_timeout gives %d", was))
		goto out;
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	mr = NULL;
	EXPECT_EQ(t, set_wr_timeout(was), 2);
	message(t, p, mem, 1, 0);
	message(t, p, mem, 0, 0);
out:
	if (dev)
		kfi_inject_stop(dev);
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

/*
 * The driver refuses the request that drains the queue once, as one does whose queue is full. The drain posts it again,
 * and so waits for a transfer whose completion is late.
 */
void driver_drain_refused_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ib_device *dev = NULL;
	struct ep_memory m = {};
	struct driver_step step;
	struct ep_side *s;
	long before;

	if (!needs_model(t))
		return;
	if (!ep_memory_open(t, &m, &wants, LEN) ||
	    !EXPECT_EQ(t, kfi_mr_reg(m.p->side[1].domain, m.there, LEN, KFI_REMOTE_WRITE, 0, 0, 0, &m.mr,
				     NULL), 0))
		goto out;
	s = &m.p->side[0];
	dev = driver_wrap(t, s);
	if (!dev || !nic_set(t, dev, "delay_ms", LATE_MS) || !nic_set(t, dev, "late", 1))
		goto out;
	before = nic_stat(t, dev, "send_ops");
	EXPECT_EQ(t, kfi_write(s->ep, m.here, LEN, NULL, 0, m.mr->iova, kfi_mr_key(m.mr), ctx(3)), 0);
	/* The device has carried it out, and has its completion. */
	if (counted(t, dev, "send_ops", before)) {
		step = driver_fails(KFI_INJECT_POST_TO_PEER, 0);
		EXPECT_EQ(t, kfi_close(&s->ep->fid), 0);
		s->ep = NULL;
		EXPECT(t, kfi_inject_calls(step.op) - step.before > 1, "the drain has posted %u times",
		       kfi_inject_calls(step.op) - step.before);
		EXPECT(t, driver_failed(&step), "nothing was posted");
		ep_completed(t, s->tx, ctx(3), WRITTEN, NULL);
	}
	nic_set(t, dev, "late", 0);
out:
	if (dev)
		kfi_inject_stop(dev);
	ep_memory_close(t, &m);
}
