// SPDX-License-Identifier: GPL-2.0
/* Access to several pieces of the peer's memory in one call, by a mapped raw key. */
#include <kfi_raw_ext.h>

#include "ep.h"

#define LEN	3000
#define FETCHED	(KFI_RMA | KFI_READ)
#define WRITTEN	(KFI_RMA | KFI_WRITE)

static struct rnd_state state;

static u32 rnd(u32 below)
{
	return prandom_u32_state(&state) % below;
}

static void *ctx(unsigned long n)
{
	return (void *)(0x4a3ce500 + n);
}

/* Writes to all of a region, from its beginning to the end, again and again. */
static ssize_t many_times(struct kfid_ep *ep, u8 *own, u64 base, size_t len, u64 key)
{
	struct kfi_rma_iov iov[4];
	struct kvec kv[ARRAY_SIZE(iov)];
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.msg_iov = kv,
		.iov_count = ARRAY_SIZE(kv),
		.rma_iov = iov,
		.rma_iov_count = ARRAY_SIZE(iov),
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i] = (struct kfi_rma_iov) { base, len, key };
		kv[i] = (struct kvec) { own, len };
	}
	return kfi_writemsg(ep, &msg, 0);
}

/* Reads nothing, or writes it, at both ends of the region, in a part, and between two. */
static void access_nothing(struct kfi_test *t, struct ep_side *s, u8 *own, u64 base, u64 key,
			   const size_t *lens, size_t sum)
{
	const u64 places[] = { 0, 5, lens[0], lens[0] + lens[1] - 1, sum };
	int i;

	for (i = 0; i < ARRAY_SIZE(places) && !t->failures; i++) {
		EXPECT_EQ(t, kfi_read(s->ep, own, 0, NULL, 0, base + places[i], key, ctx(2)), 0);
		EXPECT_EQ(t, kfi_write(s->ep, own, 0, NULL, 0, base + places[i], key, ctx(3)), 0);
		ep_completed(t, s->tx, ctx(2), FETCHED, NULL);
		ep_completed(t, s->tx, ctx(3), WRITTEN, NULL);
	}
	EXPECT_EQ(t, kfi_read(s->ep, own, 0, NULL, 0, base - 1, key, ctx(2)), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_write(s->ep, own, 0, NULL, 0, base + sum + 1, key, ctx(2)), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_read(s->ep, own, 0, NULL, 0, base, key + 1, ctx(2)), -KFI_ENOKEY);
}

/* A region that is several to the device, by its raw key: any part of it, in one call. */
void ep_raw_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_RAW };
	struct ep_pair *p = ep_connected(t, &wants);
	static const size_t lens[] = { 700, 33, 1500, 5, 100 };
	struct kvec kv[ARRAY_SIZE(lens)];
	u8 *mem = kmalloc(4 * PAGE_SIZE, GFP_KERNEL), *own = kmalloc(LEN, GFP_KERNEL);
	u8 *model = kmalloc(LEN, GFP_KERNEL), *raw = kmalloc(4096, GFP_KERNEL);
	struct kfid_mr *mr = NULL;
	size_t size = 4096, sum = 0, gap = 64;
	u64 base, key = KFI_KEY_NOTAVAIL;
	int i, round;
	u8 *at = mem;

	prandom_seed_state(&state, kfi_seed);
	if (!p || !EXPECT(t, mem && own && model && raw, "no memory"))
		goto out;
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		kv[i] = (struct kvec) { at, lens[i] };
		at += lens[i] + gap;
		sum += lens[i];
	}
	if (!EXPECT_EQ(t, kfi_mr_regv(p->side[1].domain, kv, ARRAY_SIZE(kv),
				      KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0, 9, 0, &mr, NULL), 0) ||
	    !EXPECT_EQ(t, kfi_mr_raw_attr(mr, &base, raw, &size, 0), 0) ||
	    !EXPECT_EQ(t, kfi_mr_map_raw(p->side[0].domain, base, raw, size, &key, 0), 0))
		goto out;
	pattern(model, LEN, 1);
	for (i = 0, at = model; i < ARRAY_SIZE(kv); at += lens[i++])
		memcpy(kv[i].iov_base, at, lens[i]);
	for (round = 0; round < scaled(100) && !t->failures; round++) {
		size_t from = round ? rnd(sum) : 0, len = round ? 1 + rnd(sum - from) : sum;
		bool writes = rnd(2);
		ssize_t ret;

		pattern(own, LEN, round);
		if (writes) {
			memcpy(model + from, own, len);
			ret = kfi_write(p->side[0].ep, own, len, NULL, 0, base + from, key, ctx(1));
		} else {
			ret = kfi_read(p->side[0].ep, own, len, NULL, 0, base + from, key, ctx(1));
		}
		EXPECT_EQ(t, ret, 0);
		ep_completed(t, p->side[0].tx, ctx(1), writes ? WRITTEN : FETCHED, NULL);
		EXPECT(t, !memcmp(own, model + from, len), "round %d: other bytes here", round);
		for (i = 0, at = model; i < ARRAY_SIZE(kv); at += lens[i++])
			EXPECT(t, !memcmp(kv[i].iov_base, at, lens[i]),
			       "round %d: other bytes in part %d", round, i);
	}
	access_nothing(t, &p->side[0], own, base, key, lens, sum);
	EXPECT_EQ(t, kfi_read(p->side[0].ep, own, 2, NULL, 0, base + sum - 1, key, ctx(1)),
		  -KFI_EINVAL);
	/*
	 * All of it four times is more pieces than any access may have, but fewer than that many
	 * ranges.
	 */
	EXPECT_EQ(t, many_times(p->side[0].ep, own, base, sum, key), -KFI_E2BIG);
	EXPECT_EQ(t, kfi_read(p->side[0].ep, own, 2, NULL, 0, base, key + 1, ctx(1)), -KFI_ENOKEY);
	ep_nothing(t, p->side[0].tx);
out:
	if (key != KFI_KEY_NOTAVAIL)
		EXPECT_EQ(t, kfi_mr_unmap_key(p->side[0].domain, key), 0);
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
	kfree(own);
	kfree(model);
	kfree(raw);
}
