// SPDX-License-Identifier: GPL-2.0
/*
 * What closing a region takes that was registered on its endpoint (KFI_MR_ENDPOINT): no more than there is to
 * wait for.  And the suite ep_fence, of the cases that are worth it where an invalidation is the fence.
 */
#include "driver.h"
#include "suites.h"

#define LEN	64
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)

static void *ctx(unsigned long n)
{
	return (void *)(0xfe4ce000 + n);
}

/* What has become of a region when it is closed. */
enum after { NOTHING, A_MESSAGE, INVALIDATED, AFTERS };

static bool message(struct kfi_test *t, struct ep_pair *p, u8 *mem, int from, u64 invalidates)
{
	struct ep_side *s = &p->side[from], *to = &p->side[!from];
	struct kvec kv = { mem, 8 };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.context = ctx(1),
		.data = invalidates,
	};

	return EXPECT_EQ(t, kfi_recv(to->ep, mem + 8, 8, NULL, 0, ctx(2)), 0) &&
	       EXPECT_EQ(t, kfi_sendmsg(s->ep, &msg, invalidates ? KFI_INVALIDATE : 0), 0) &&
	       ep_completed(t, to->rx, ctx(2), RECEIVED | (invalidates ? KFI_INVALIDATE : 0), NULL) &&
	       ep_completed(t, s->tx, ctx(1), SENT, NULL);
}

static void closed(struct kfi_test *t, struct ep_pair *p, u8 *mem, enum after after, unsigned int want)
{
	struct ep_side *s = &p->side[1];
	struct kfid_mr *mr = NULL;
	unsigned int before;

	if (!EXPECT_EQ(t, kfi_mr_reg(s->domain, mem, LEN, KFI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), 0))
		return;
	EXPECT_EQ(t, kfi_mr_bind(mr, &s->ep->fid, 0), 0);
	EXPECT_EQ(t, kfi_mr_enable(mr), 0);
	if (after >= A_MESSAGE)
		message(t, p, mem, 1, 0);
	if (after >= INVALIDATED)
		message(t, p, mem, 0, kfi_mr_key(mr));
	before = kfi_inject_calls(KFI_INJECT_POST_INV);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	EXPECT(t, kfi_inject_calls(KFI_INJECT_POST_INV) - before == want,
	       "%d: %u invalidations, expected %u", after,
	       kfi_inject_calls(KFI_INJECT_POST_INV) - before, want);
}

/*
 * Where nothing has completed behind its registration, an invalidation tells of that.  Otherwise there is one
 * if it is the fence, and the peer has not had it done before.
 */
void ep_regions_closed_case(struct kfi_test *t)
{
	const unsigned int want[AFTERS] = { 1, kfi_weak, 0 };
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT };
	u8 *mem = kzalloc(LEN, GFP_KERNEL);
	struct ib_device *dev = NULL;
	struct ep_pair *p = NULL;
	enum after after;

	if (strcmp(kfi_provider_name, "verbs")) {
		ktap_note("no device");
	} else {
		p = ep_connected(t, &wants);
		dev = p ? driver_wrap(t, &p->side[1]) : NULL;
	}
	for (after = 0; dev && EXPECT(t, mem, "no memory") && after < AFTERS; after++)
		closed(t, p, mem, after, want[after]);
	if (dev)
		kfi_inject_stop(dev);
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

static const struct kfi_case cases[] = {
	{ "regions", ep_regions_case },
	{ "regions_refused", ep_regions_refused_case },
	{ "regions_ends", ep_regions_ends_case },
	{ "regions_many", ep_regions_many_case },
	{ "regions_behind", ep_regions_behind_case },
	{ "regions_closed", ep_regions_closed_case },
	{ "regions_down", ep_regions_down_case },
	{ "regions_falling", ep_regions_falling_case },
};

const struct kfi_suite suite_ep_fence = {
	.name = "ep_fence",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
};
