// SPDX-License-Identifier: GPL-2.0
/*
 * The requests for closing a region that was registered on its endpoint (KFI_MR_ENDPOINT): it waits
 * for no more than necessary. And the suite ep_fence, of the cases that are worth it where an
 * invalidation is the fence.
 */
#include "debugfs.h"
#include "driver.h"
#include "suites.h"

#define LEN	64
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)

static void *ctx(unsigned long n)
{
	return (void *)(0xfe4ce000 + n);
}

/* The state of a region when it is closed. */
enum after { NOTHING, A_MESSAGE, INVALIDATED, AFTERS };

static bool message(struct kfi_test *t, struct ep_pair *p, u8 *mem, int from, u64 invalidates)
{
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);
	struct ep_side *s = &p->side[from], *to = &p->side[!from];
	struct kvec kv = { mem, 8 };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.context = ctx(1),
		.data = invalidates,
	};
	ssize_t ret;

	if (!EXPECT_EQ(t, kfi_recv(to->ep, mem + 8, 8, NULL, 0, ctx(2)), 0))
		return false;
	/* A full queue is no end: it may be tried again. */
	while ((ret = kfi_sendmsg(s->ep, &msg, invalidates ? KFI_INVALIDATE : 0)) == -KFI_EAGAIN &&
	       time_before(jiffies, end))
		cond_resched();
	return EXPECT_EQ(t, ret, 0) &&
	       ep_completed(t, to->rx, ctx(2), RECEIVED | (invalidates ? KFI_INVALIDATE : 0), NULL) &&
	       ep_completed(t, s->tx, ctx(1), SENT, NULL);
}

static void closed(struct kfi_test *t, struct ep_pair *p, u8 *mem, enum after after, unsigned int want)
{
	struct ep_side *s = &p->side[1];
	struct kfid_mr *mr = NULL;
	unsigned int before, deregistered;

	if (!EXPECT_EQ(t, kfi_mr_reg(s->domain, mem, LEN, KFI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), 0))
		return;
	EXPECT_EQ(t, kfi_mr_bind(mr, &s->ep->fid, 0), 0);
	EXPECT_EQ(t, kfi_mr_enable(mr), 0);
	if (after >= A_MESSAGE)
		message(t, p, mem, 1, 0);
	if (after >= INVALIDATED)
		message(t, p, mem, 0, kfi_mr_key(mr));
	before = kfi_inject_calls(KFI_INJECT_POST_INV);
	deregistered = kfi_inject_calls(KFI_INJECT_DEREG_MR);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	EXPECT(t, kfi_inject_calls(KFI_INJECT_POST_INV) - before == want,
	       "%d: %u invalidations, expected %u; %u deregistrations, %u queue pairs made", after,
	       kfi_inject_calls(KFI_INJECT_POST_INV) - before, want,
	       kfi_inject_calls(KFI_INJECT_DEREG_MR) - deregistered,
	       kfi_inject_calls(KFI_INJECT_CREATE_QP));
}

/*
 * Where nothing has completed behind its registration, an invalidation tells of that, if the device can. Otherwise
 * there is one if it is the fence, and the peer has not had it done before.
 */
void ep_regions_closed_case(struct kfi_test *t)
{
	const unsigned int want[AFTERS] = { has_feature(F_LOCAL_INV), has_feature(F_REFRESH), 0 };
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT };
	u8 *mem = kzalloc(LEN, GFP_KERNEL);
	struct ib_device *dev;
	struct ep_pair *p;
	enum after after;

	if (!needs_feature(t, F_DEVICE))
		goto out;
	p = ep_connected(t, &wants);
	dev = p ? driver_wrap(t, &p->side[1]) : NULL;
	for (after = 0; dev && EXPECT(t, mem, "no memory") && after < AFTERS; after++)
		closed(t, p, mem, after, want[after]);
	if (dev)
		kfi_inject_stop(dev);
	if (p)
		ep_pair_close(t, p);
out:
	kfree(mem);
}

/* How long an access takes: the region is closed in the middle of it, however busy the machine is. */
#define ACCESS_US	1000000

/* Waits until a statistic of the model is more than @was. */
static bool comes(struct kfi_test *t, struct ib_device *dev, const char *name, long was)
{
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);

	while (nic_stat(t, dev, name) <= was && time_before(jiffies, end))
		usleep_range(100, 1000);
	return EXPECT(t, nic_stat(t, dev, name) > was, "nothing adds to %s", name);
}

/* The peer is in the middle of an access when a region is closed. */
static void accessed(struct kfi_test *t, struct ep_memory *m, struct ib_device *dev, enum after after, bool write)
{
	struct ep_side *s = &m->p->side[1], *peer = &m->p->side[0];
	long registered = nic_stat(t, dev, "reg_mr");
	u64 key;

	if (!EXPECT_EQ(t, kfi_mr_reg(s->domain, m->there, LEN, KFI_REMOTE, 0, 0, 0, &m->mr, NULL), 0))
		return;
	EXPECT_EQ(t, kfi_mr_bind(m->mr, &s->ep->fid, 0), 0);
	EXPECT_EQ(t, kfi_mr_enable(m->mr), 0);
	if (after >= A_MESSAGE)
		message(t, m->p, m->here, 1, 0);
	if (!comes(t, dev, "reg_mr", registered))
		return;
	key = kfi_mr_key(m->mr);
	nic_set(t, dev, "access_us", ACCESS_US);
	if (write)
		EXPECT_EQ(t, kfi_write(peer->ep, m->here, LEN, NULL, 0, m->mr->iova, key, ctx(3)), 0);
	else
		EXPECT_EQ(t, kfi_read(peer->ep, m->here, LEN, NULL, 0, m->mr->iova, key, ctx(3)), 0);
	comes(t, dev, "under_way", 0);
	EXPECT_EQ(t, kfi_close(&m->mr->fid), 0);
	m->mr = NULL;
	EXPECT_EQ(t, nic_stat(t, dev, "under_way"), 0);
	nic_set(t, dev, "access_us", 0);
	ep_completed(t, peer->tx, ctx(3), KFI_RMA | (write ? KFI_WRITE : KFI_READ), NULL);
}

/* Over the model NIC: closing waits, whatever has completed behind the registration. */
void ep_regions_accessed_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT };
	struct kfi_verbs_dom_ops *verbs;
	struct ep_memory m = {};
	enum after after;
	void *table;
	int write;

	if (!needs_model(t))
		return;
	if (ep_memory_open(t, &m, &wants, LEN) &&
	    EXPECT_EQ(t, kfi_open_ops(&m.p->side[1].domain->fid, KFI_VERBS_DOM_OPS_1, 0, &table, NULL), 0)) {
		verbs = table;
		for (after = NOTHING; after <= A_MESSAGE; after++)
			/* Over iWARP, a read's sink is a region, too, and counts as under way. */
			for (write = kfi_iwarp; write < 2 && !t->failures; write++)
				accessed(t, &m, verbs->get_ib_device(&m.p->side[1].domain->fid), after, write);
	}
	ep_memory_close(t, &m);
}

/* Many regions for each request that the endpoint can have under way. */
#define REGIONS	600
#define REQUESTS	32

/* Registers regions by the endpoint of side @s. A full queue is no end: it may be tried again. */
static void enable_all(struct kfi_test *t, struct ep_side *s, u8 *mem, struct kfid_mr **mrs)
{
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);
	unsigned int i;
	int ret;

	for (i = 0; i < REGIONS && !t->failures; i++) {
		if (!EXPECT_EQ(t, kfi_mr_reg(s->domain, mem, LEN, KFI_REMOTE_WRITE, 0, 0, 0, &mrs[i],
					     NULL), 0))
			return;
		EXPECT_EQ(t, kfi_mr_bind(mrs[i], &s->ep->fid, 0), 0);
		while ((ret = kfi_mr_enable(mrs[i])) == -KFI_EAGAIN && time_before(jiffies, end))
			cond_resched();
		EXPECT_EQ(t, ret, 0);
	}
}

/*
 * Closes regions. Expects that each takes a fence of its own: an invalidation, or else a deregistration. The pool may
 * deregister device regions that are idle, too.
 */
static void close_fenced(struct kfi_test *t, struct kfid_mr **mrs, unsigned int count, bool invalidated)
{
	unsigned int invs = kfi_inject_calls(KFI_INJECT_POST_INV);
	unsigned int deregs = kfi_inject_calls(KFI_INJECT_DEREG_MR);
	unsigned int i;

	for (i = 0; i < count; i++)
		if (mrs[i])
			EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0);
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV) - invs, invalidated ? count : 0);
	deregs = kfi_inject_calls(KFI_INJECT_DEREG_MR) - deregs;
	EXPECT(t, invalidated || deregs >= count, "%u deregistrations of %u regions", deregs, count);
}

/* As above. Expects that none takes a fence of its own. */
static void close_unfenced(struct kfi_test *t, struct kfid_mr **mrs, unsigned int count)
{
	unsigned int invs = kfi_inject_calls(KFI_INJECT_POST_INV);
	unsigned int i;

	for (i = 0; i < count; i++)
		EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0);
	memset(mrs, 0, count * sizeof(*mrs));
	EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV) - invs, 0);
}

/*
 * The peer has the first regions invalidated. They need no invalidation any more, and each of the others
 * does.
 */
static void invalidated_first(struct kfi_test *t, unsigned int count)
{
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT, .tx_size = REQUESTS };
	struct kfid_mr **mrs = kcalloc(REGIONS, sizeof(*mrs), GFP_KERNEL);
	u8 *mem = kzalloc(LEN, GFP_KERNEL);
	struct ib_device *dev = NULL;
	struct ep_pair *p = NULL;
	unsigned int i;

	if (strcmp(kfi_provider_name, "verbs")) {
		ktap_skip(t, "no device registers the provider's regions");
		goto out;
	}
	if (EXPECT(t, mrs && mem, "no memory"))
		p = ep_connected(t, &wants);
	if (p)
		enable_all(t, &p->side[1], mem, mrs);
	if (!p || t->failures || !message(t, p, mem, 1, 0))
		goto out;
	for (i = 0; i < count; i++)
		if (!message(t, p, mem, 0, kfi_mr_key(mrs[i])))
			goto out;
	dev = driver_wrap(t, &p->side[1]);
	if (!dev)
		goto out;
	close_fenced(t, mrs + count, REGIONS - count, kfi_weak);
	memset(mrs + count, 0, (REGIONS - count) * sizeof(*mrs));
	close_unfenced(t, mrs, count);
out:
	if (dev)
		kfi_inject_stop(dev);
	for (i = 0; mrs && i < REGIONS; i++)
		if (mrs[i])
			EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0);
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
	kfree(mrs);
}

/* The key of one is looked up where those of others are. */
void ep_regions_collide_case(struct kfi_test *t)
{
	invalidated_first(t, 1);
}

/* None of many is overlooked. */
void ep_regions_invalidated_case(struct kfi_test *t)
{
	invalidated_first(t, REGIONS);
}

static const struct kfi_case cases[] = {
	{ "regions", ep_regions_case },
	{ "regions_refused", ep_regions_refused_case },
	{ "regions_ends", ep_regions_ends_case },
	{ "regions_many", ep_regions_many_case },
	{ "regions_behind", ep_regions_behind_case },
	{ "regions_closed", ep_regions_closed_case },
	{ "regions_accessed", ep_regions_accessed_case },
	{ "regions_collide", ep_regions_collide_case },
	{ "regions_invalidated", ep_regions_invalidated_case },
	{ "regions_down", ep_regions_down_case },
	{ "regions_falling", ep_regions_falling_case },
};

const struct kfi_suite suite_ep_fence = {
	.name = "ep_fence",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
	.connects = true,
};
