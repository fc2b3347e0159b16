// SPDX-License-Identifier: GPL-2.0
/*
 * Device regions that are used again after a peer has invalidated them (KFI_MR_ENDPOINT). rxe has
 * no fence for these, except in a domain with one connection and nobody else.
 */
#include <linux/delay.h>

#include <rdma/ib_verbs.h>

#include <kfi_batch_ext.h>

#include "driver.h"
#include "rnr.h"

#define ROUNDS		32
#define DISTURBED	2
#define LEN		PAGE_SIZE
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define BOTH		(KFI_REMOTE_READ | KFI_REMOTE_WRITE)

static void *ctx(unsigned long n)
{
	return (void *)(0x4e660000 + n);
}

/* The regions are of the second side's memory, and for the first side. */
struct again {
	struct ep_memory m;
	struct kfi_verbs_dom_ops *verbs;
	struct kfi_batch_ops *batch;
	u64 key;
	u64 base;
	u64 got;
};

static void again_close(struct kfi_test *t, struct again *a)
{
	if (a)
		ep_memory_close(t, &a->m);
	kfree(a);
}

/* No side is in a hurry to have a message repeated.  NULL is a failure that has been reported. */
static struct again *again_open(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT, .rnr_delay = 655360 };
	struct again *a = kzalloc_obj(*a);
	void *ops, *batch;

	if (!EXPECT(t, a, "no memory") || !ep_memory_open(t, &a->m, &wants, LEN) ||
	    !EXPECT_EQ(t, kfi_open_ops(&a->m.p->side[1].domain->fid, KFI_VERBS_DOM_OPS_1, 0, &ops,
				       NULL), 0) ||
	    !EXPECT_EQ(t, kfi_open_ops(&a->m.p->side[1].domain->fid, KFI_BATCH_OPS_1, 0, &batch,
				       NULL), 0)) {
		again_close(t, a);
		return NULL;
	}
	a->verbs = ops;
	a->batch = batch;
	return a;
}

/* Registers the memory with these rights, and sends the key, for which there may be no receive yet. */
static ssize_t tell(struct again *a, u64 access)
{
	struct ep_side *s = &a->m.p->side[1];
	ssize_t ret;

	ret = kfi_mr_reg(s->domain, a->m.there, LEN, access, 0, 0, 0, &a->m.mr, NULL);
	ret = ret ?: kfi_mr_bind(a->m.mr, &s->ep->fid, 0);
	ret = ret ?: kfi_mr_enable_more(a->m.mr);
	if (ret)
		return ret;
	a->key = kfi_mr_key(a->m.mr);
	a->base = a->m.mr->iova;
	return kfi_send(s->ep, &a->key, sizeof(a->key), NULL, 0, ctx(1));
}

static bool told(struct kfi_test *t, struct again *a)
{
	return ep_completed(t, a->m.p->side[0].rx, ctx(2), RECEIVED, NULL) &&
	       ep_completed(t, a->m.p->side[1].tx, ctx(1), SENT, NULL);
}

static bool listen(struct kfi_test *t, struct again *a)
{
	return EXPECT_EQ(t, kfi_recv(a->m.p->side[0].ep, a->m.here, 8, NULL, 0, ctx(2)), 0);
}

/* The peer invalidates the region; the second side is going to hear of that. */
static ssize_t invalidate(struct again *a)
{
	struct kvec kv = { a->m.here + 8, 8 };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.context = ctx(3),
		.data = a->key,
	};

	return kfi_recv(a->m.p->side[1].ep, &a->got, 8, NULL, 0, ctx(4)) ?:
	       kfi_sendmsg(a->m.p->side[0].ep, &msg, KFI_INVALIDATE);
}

static bool invalidated(struct kfi_test *t, struct again *a)
{
	return ep_completed(t, a->m.p->side[1].rx, ctx(4), RECEIVED | KFI_INVALIDATE, NULL) &&
	       ep_completed(t, a->m.p->side[0].tx, ctx(3), SENT, NULL);
}

static void end(struct kfi_test *t, struct again *a)
{
	EXPECT_EQ(t, kfi_close(&a->m.mr->fid), 0);
	a->m.mr = NULL;
}

/* The same, but where nobody may sleep; false, and it is open, if something has to be waited for. */
static bool end_now(struct kfi_test *t, struct again *a)
{
	static DEFINE_SPINLOCK(lock);
	unsigned long flags;
	int ret;

	spin_lock_irqsave(&lock, flags);
	ret = a->batch->close_now(a->m.mr);
	spin_unlock_irqrestore(&lock, flags);
	if (ret) {
		EXPECT_EQ(t, ret, -KFI_EAGAIN);
		return false;
	}
	a->m.mr = NULL;
	return true;
}

/* The disturbances in the domain, from round DISTURBED on; or of the regions. */
enum way { ALONE, RIGHTS, ANOTHER, TAKEN, REPEATED, UNSEEN, WRONG, WAYS };

static struct ib_device *device_of(struct again *a)
{
	return a->verbs->get_ib_device(&a->m.p->side[1].domain->fid);
}

/* A number that rxe counts, by its name. */
static u64 counted(struct kfi_test *t, struct again *a, const char *name)
{
	struct ib_device *dev = device_of(a);
	struct rdma_hw_stats *stats = dev->ops.alloc_hw_port_stats(dev, 1);
	u64 value = 0;
	int i;

	if (!EXPECT(t, stats, "no memory"))
		return 0;
	dev->ops.get_hw_stats(dev, stats, 1, 0);
	for (i = 0; i < stats->num_counters; i++)
		if (!strcmp(stats->descs[i].name, name))
			value = stats->value[i];
	rdma_free_hw_stats_struct(stats);
	return value;
}

/* Waits until the device has counted more than that. */
static bool counts(struct kfi_test *t, struct again *a, const char *name, u64 before)
{
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);

	while (counted(t, a, name) == before && time_before(jiffies, end))
		msleep(1);
	return EXPECT(t, counted(t, a, name) != before, "%s: no more", name);
}

static bool disturb(struct kfi_test *t, struct again *a, enum way way)
{
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT };
	struct ep_side other = a->m.p->side[1];
	bool done = true;
	u64 before;

	switch (way) {
	case ANOTHER:
		other.ep = NULL;
		done = ep_open(t, &other, a->m.p->info, &wants);
		if (other.ep)
			EXPECT_EQ(t, kfi_close(&other.ep->fid), 0);
		break;
	case TAKEN:
		done = EXPECT(t, a->verbs->get_pd(&a->m.p->side[1].domain->fid), "no domain");
		break;
	case REPEATED:
		before = counted(t, a, "rcvd_rnr_err");
		done = EXPECT_EQ(t, kfi_send(a->m.p->side[1].ep, &a->key, 8, NULL, 0, ctx(1)), 0) &&
		       counts(t, a, "rcvd_rnr_err", before) && listen(t, a) && told(t, a);
		break;
	default:
		break;
	}
	return done;
}

/*
 * The peer's request before the region is closed: mostly it invalidates the region, or another one,
 * or nothing.
 */
static bool ends(struct kfi_test *t, struct again *a, bool now, enum way way)
{
	struct kfid_mr *mr = a->m.mr;
	u64 key = a->key;
	bool done;

	if (way == UNSEEN)
		return true;
	if (way == WRONG && (!listen(t, a) || !EXPECT_EQ(t, tell(a, BOTH), 0) || !told(t, a)))
		return false;
	done = EXPECT_EQ(t, invalidate(a), 0) && invalidated(t, a);
	if (way == WRONG) {
		if (!now || !end_now(t, a))
			end(t, a);
		a->m.mr = mr;
		a->key = key;
	}
	return done;
}

/*
 * Round after round, a device region comes again or it doesn't: its number is most of its key. Where it does,
 * nothing had to be waited for to close the region, which can be done @now then.
 */
static void rounds(struct kfi_test *t, bool now, enum way way)
{
	u64 keys[ROUNDS], access[ROUNDS];
	unsigned int i, j, again = 0, at_once = 0;
	struct again *a = again_open(t);

	if (!a)
		return;
	for (i = 0; i < ROUNDS && !t->failures; i++) {
		access[i] = way == RIGHTS && i % 2 ? KFI_REMOTE_READ : BOTH;
		if (!listen(t, a) || !EXPECT_EQ(t, tell(a, access[i]), 0) || !told(t, a))
			break;
		/* With a region open whose key the peer has. */
		if (i == DISTURBED && !disturb(t, a, way))
			break;
		/* There is something to be waited for. */
		if (now)
			EXPECT(t, !end_now(t, a), "closed while the peer has the key");
		if (t->failures || !ends(t, a, now, way))
			break;
		if (now && end_now(t, a))
			at_once += i >= DISTURBED;
		else
			end(t, a);
		keys[i] = a->key;
		/* Those before were ended by other rules. */
		for (j = DISTURBED; j < i; j++) {
			if (keys[j] >> 8 != keys[i] >> 8)
				continue;
			again++;
			EXPECT(t, keys[j] != keys[i], "key %#llx came again", keys[i]);
			/* A device region that was invalidated on hardware may have any rights. */
			if (!kfi_hardware)
				EXPECT_EQ(t, access[j], access[i]);
		}
	}
	if (way == ALONE || way == RIGHTS) {
		EXPECT(t, again, "no device region came again");
		EXPECT(t, at_once || !now, "nothing was closed at once");
	} else {
		EXPECT_EQ(t, again, 0);
		EXPECT_EQ(t, at_once, 0);
	}
	again_close(t, a);
}

void driver_again_case(struct kfi_test *t)
{
	/* Where an invalidation ends all access, device regions come again whatever else there is. */
	enum way way, ways = has_feature(F_REFRESH) ? ANOTHER : WAYS;

	if (!needs_feature(t, F_LOCAL_INV))
		return;
	for (way = ALONE; way < ways && !t->failures; way++) {
		rounds(t, false, way);
		rounds(t, true, way);
	}
}

/* The peer goes on with a key that it has invalidated, when others have the device region, or nobody. */
void driver_again_refused_case(struct kfi_test *t)
{
	struct again *a = needs_feature(t, F_LOCAL_INV) ? again_open(t) : NULL;
	struct ep_side *s;
	unsigned int i;
	u64 key = 0;

	if (!a)
		return;
	s = a->m.p->side;
	for (i = 0; i < ROUNDS; i++) {
		if (!listen(t, a) || !EXPECT_EQ(t, tell(a, BOTH), 0) || !told(t, a))
			goto out;
		/* The device region of the first one again. */
		if (i && a->key >> 8 == key >> 8)
			break;
		if (!i)
			key = a->key;
		if (!EXPECT_EQ(t, invalidate(a), 0) || !invalidated(t, a))
			goto out;
		end(t, a);
	}
	if (EXPECT(t, a->m.mr, "no device region came again")) {
		memset(a->m.here, 0x77, LEN);
		EXPECT_EQ(t, kfi_write(s[0].ep, a->m.here, LEN, NULL, 0, a->m.mr->iova, key, ctx(5)), 0);
		ep_refused(t, &s[0], s[0].ep, ctx(5));
		EXPECT(t, !memchr_inv(a->m.there, 0, LEN), "it was written to");
	}
out:
	again_close(t, a);
}

/*
 * A peer that lets a message wait makes rxe register a region once more that the peer has invalidated
 * meanwhile, by the same key. All the same, the peer can't reach the memory after the close.
 */
void driver_replayed_case(struct kfi_test *t)
{
	struct again *a = again_open(t);
	struct ep_side *s;
	u64 before;

	if (!a)
		return;
	s = a->m.p->side;
	if (device_of(a)->ops.driver_id != RDMA_DRIVER_RXE) {
		ktap_skip(t, "this device repeats no registration");
		goto out;
	}
	if (!rnr_hold(t, a->m.p, a->m.here) ||
	    !EXPECT_EQ(t, kfi_send(s[1].ep, &a->got, 8, NULL, 0, ctx(1)), 0) || !rnr_waits(t))
		goto out;
	before = counted(t, a, "out_of_seq_request");
	if (!EXPECT_EQ(t, tell(a, BOTH), 0))
		goto out;
	/* The key is sent behind the registration: when it arrives, the region is registered. */
	if (!counts(t, a, "out_of_seq_request", before) ||
	    !EXPECT_EQ(t, invalidate(a), 0) || !invalidated(t, a))
		goto out;
	if (!listen(t, a) || !listen(t, a))
		goto out;
	rnr_release();
	if (!told(t, a) || !told(t, a))
		goto out;
	end(t, a);
	memset(a->m.there, 0, LEN);
	memset(a->m.here, 0x77, LEN);
	EXPECT_EQ(t, kfi_write(s[0].ep, a->m.here, LEN, NULL, 0, a->base, a->key, ctx(5)), 0);
	ep_refused(t, &s[0], s[0].ep, ctx(5));
	EXPECT(t, !memchr_inv(a->m.there, 0, LEN), "the memory of a closed region was written to");
out:
	rnr_release();
	again_close(t, a);
}
