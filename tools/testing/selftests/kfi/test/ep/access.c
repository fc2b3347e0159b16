// SPDX-License-Identifier: GPL-2.0
/* Access to the peer's memory by key. */
#include "ep.h"

#define LEN	(3 * PAGE_SIZE + 100)
#define FETCHED	(KFI_RMA | KFI_READ)
#define WRITTEN	(KFI_RMA | KFI_WRITE)

static void *ctx(unsigned long n)
{
	return (void *)(0xaccce500 + n);
}

/* The passive side's memory, registered for @access. */
struct target {
	u8 *mem;
	u8 *own;
	struct kfid_mr *mr;
};

static bool target_open(struct kfi_test *t, struct ep_pair *p, struct target *g, u64 access)
{
	g->mem = kzalloc(LEN + 2 * GUARD, GFP_KERNEL);
	g->own = kzalloc(LEN + 2 * GUARD, GFP_KERNEL);
	return EXPECT(t, g->mem && g->own, "no memory") &&
	       EXPECT_EQ(t, kfi_mr_reg(p->side[1].domain, g->mem + GUARD, LEN, access, 0, 77, 0,
				       &g->mr, NULL), 0);
}

static void target_close(struct kfi_test *t, struct target *g)
{
	if (g->mr)
		EXPECT_EQ(t, kfi_close(&g->mr->fid), 0);
	kfree(g->mem);
	kfree(g->own);
}

/* Every call, at some place in the region. */
void ep_rma_case(struct kfi_test *t)
{
	static const struct { size_t at, len; } parts[] = {
		{ 0, LEN }, { 0, 1 }, { LEN - 1, 1 }, { 100, 5000 }, { PAGE_SIZE, PAGE_SIZE },
	};
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	struct target g = {};
	unsigned int i, call;

	if (!p)
		return;
	if (!target_open(t, p, &g, KFI_REMOTE_READ | KFI_REMOTE_WRITE))
		goto out;
	for (i = 0; i < ARRAY_SIZE(parts) && !t->failures; i++) {
		u64 addr = g.mr->iova + parts[i].at, key = kfi_mr_key(g.mr);
		u8 *there = g.mem + GUARD + parts[i].at, *here = g.own + GUARD;
		size_t len = parts[i].len, half = len / 2;
		struct kfid_ep *ep = p->side[0].ep;
		struct kvec kv[2] = { { here, half ?: 1 }, { here + half, len - half } };
		struct kfi_rma_iov remote = { .addr = addr, .len = len, .key = key };
		struct kfi_msg_rma msg = {
			.type = KFI_KVEC,
			.msg_iov = half ? kv : kv + 1,
			.iov_count = half ? 2 : 1,
			.rma_iov = &remote,
			.rma_iov_count = 1,
			.context = ctx(1),
		};

		for (call = 0; call < 6 && !t->failures; call++) {
			bool writes = call & 1;
			ssize_t ret;

			memset(g.mem, 0x5a, LEN + 2 * GUARD);
			memset(g.own, 0x5a, LEN + 2 * GUARD);
			pattern(writes ? here : there, len, call);
			switch (call) {
			case 0:
				ret = kfi_read(ep, here, len, NULL, 0, addr, key, ctx(1));
				break;
			case 1:
				ret = kfi_write(ep, here, len, NULL, 0, addr, key, ctx(1));
				break;
			case 2:
				ret = kfi_readv(ep, msg.msg_iov, NULL, msg.iov_count, 0, addr, key,
						ctx(1));
				break;
			case 3:
				ret = kfi_writev(ep, msg.msg_iov, NULL, msg.iov_count, 0, addr,
						 key, ctx(1));
				break;
			case 4:
				ret = kfi_readmsg(ep, &msg, KFI_COMPLETION);
				break;
			default:
				ret = kfi_writemsg(ep, &msg, KFI_COMPLETION);
			}
			if (!EXPECT_EQ(t, ret, 0) ||
			    !ep_completed(t, p->side[0].tx, ctx(1), writes ? WRITTEN : FETCHED, NULL))
				break;
			EXPECT(t, pattern_is(writes ? there : here, len, call),
			       "call %u, part %u: other bytes", call, i);
			EXPECT(t, !memchr_inv((writes ? there : here) + len, 0x5a, GUARD),
			       "call %u, part %u: bytes behind have changed", call, i);
			EXPECT(t, !memchr_inv((writes ? there : here) - GUARD, 0x5a, GUARD),
			       "call %u, part %u: bytes before have changed", call, i);
		}
	}
	if (!t->failures) {
		struct kvec kv = { g.own, 16 };
		struct kfi_rma_iov remote = { g.mr->iova, 16, kfi_mr_key(g.mr) };
		struct kfi_msg_rma msg = {
			.type = KFI_KVEC,
			.msg_iov = &kv,
			.iov_count = 1,
			.rma_iov = &remote,
			.rma_iov_count = 1,
		};

		/* There is nothing to inject, and nobody who would get data. */
		EXPECT_EQ(t, kfi_readmsg(p->side[0].ep, &msg, KFI_INJECT), -KFI_EBADFLAGS);
		EXPECT_EQ(t, kfi_readmsg(p->side[0].ep, &msg, KFI_REMOTE_CQ_DATA), -KFI_EBADFLAGS);
		remote.len = 17;
		EXPECT_EQ(t, kfi_readmsg(p->side[0].ep, &msg, 0), -KFI_EINVAL);
	}
	ep_nothing(t, p->side[1].rx);
out:
	target_close(t, &g);
	ep_pair_close(t, p);
}

/* A wrong key, a missing right, bytes beyond: refused, nothing moves, and the connection ends. */
void ep_rma_refused_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	unsigned int i;

	for (i = 0; i < 4 && !t->failures; i++) {
		struct ep_pair *p = ep_connected(t, &wants);
		struct kfi_cq_err_entry err;
		struct target g = {};
		ssize_t ret;
		u64 key;

		if (!p)
			return;
		if (target_open(t, p, &g, i ? KFI_REMOTE_READ : KFI_REMOTE_WRITE)) {
			memset(g.own, 0x11, LEN + 2 * GUARD);
			key = kfi_mr_key(g.mr);
			switch (i) {
			case 0:
				ret = kfi_read(p->side[0].ep, g.own, 64, NULL, 0, g.mr->iova, key,
					       ctx(1));
				break;
			case 1:
				ret = kfi_write(p->side[0].ep, g.own, 64, NULL, 0, g.mr->iova, key,
						ctx(1));
				break;
			case 2:
				ret = kfi_read(p->side[0].ep, g.own, 64, NULL, 0,
					       g.mr->iova + LEN - 63, key, ctx(1));
				break;
			default:
				ret = kfi_read(p->side[0].ep, g.own, 64, NULL, 0, g.mr->iova,
					       key ^ NO_KEY, ctx(1));
			}
			EXPECT_EQ(t, ret, 0);
			ep_failed_op(t, p->side[0].tx, ctx(1), KFI_EACCES, &err);
			EXPECT(t, !memchr_inv(g.mem, 0, LEN + 2 * GUARD), "the peer's bytes changed");
			EXPECT(t, !memchr_inv(g.own, 0x11, LEN), "own bytes changed");
			ep_lost(t, p);
		}
		target_close(t, &g);
		ep_pair_close(t, p);
	}
}

/* Data with a write: they take a receive of the peer's, whose buffer stays as it is. */
void ep_rma_data_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfi_cq_data_entry entry;
	struct target g = {};

	if (p && target_open(t, p, &g, KFI_REMOTE_WRITE)) {
		pattern(g.own, 200, 8);
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, g.own + 1024, 64, NULL, 0, ctx(2)), 0);
		EXPECT_EQ(t, kfi_writedata(p->side[0].ep, g.own, 200, NULL, 0x12345678, 0,
					   g.mr->iova, kfi_mr_key(g.mr), ctx(1)), 0);
		if (ep_completed(t, p->side[1].rx, ctx(2),
				 KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA, &entry))
			EXPECT(t, entry.data == 0x12345678 && entry.len == 200, "data %#llx, len %zu",
			       entry.data, entry.len);
		ep_completed(t, p->side[0].tx, ctx(1), WRITTEN, NULL);
		EXPECT(t, pattern_is(g.mem + GUARD, 200, 8), "other bytes");
		EXPECT(t, !memchr_inv(g.own + 1024, 0, 64), "the receive's buffer has changed");
	}
	target_close(t, &g);
	if (p)
		ep_pair_close(t, p);
}

/* Posts an access of no bytes, by each call in turn. */
static ssize_t post_empty(struct kfid_ep *ep, u8 *mem, u64 at, u64 key, unsigned int call)
{
	struct kfi_rma_iov remote = { .addr = at, .key = key };
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = ctx(1),
	};

	switch (call) {
	case 0:
		return kfi_read(ep, NULL, 0, NULL, 0, at, key, ctx(1));
	case 1:
		return kfi_write(ep, mem, 0, NULL, 0, at, key, ctx(1));
	case 2:
		return kfi_readv(ep, NULL, NULL, 0, 0, at, key, ctx(1));
	case 3:
		return kfi_writemsg(ep, &msg, KFI_COMPLETION);
	case 4:
		return kfi_inject_write(ep, NULL, 0, 0, at, key);
	default:
		return kfi_writedata(ep, NULL, 0, NULL, 5, 0, at, key, ctx(1));
	}
}

/* An access of no bytes ends well, whatever its key and address, and data with it reach the peer. */
void ep_rma_empty_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfi_cq_data_entry entry;
	struct target g = {};
	unsigned int call, i;

	if (!p || !target_open(t, p, &g, KFI_REMOTE_READ | KFI_REMOTE_WRITE))
		goto out;
	for (i = 0; i < 4; i++) {
		u64 at = g.mr->iova + (i == 1 ? LEN : 0) + (i == 2 ? LEN + 1 : 0);
		u64 key = kfi_mr_key(g.mr) ^ (i == 3 ? NO_KEY : 0);

		for (call = 0; call < 6 && !t->failures; call++) {
			ssize_t ret;

			EXPECT_EQ(t, kfi_recv(p->side[1].ep, g.own, 64, NULL, 0, ctx(2)), 0);
			ret = post_empty(p->side[0].ep, g.own, at, key, call);
			EXPECT(t, !ret, "call %u, place %u is %zd", call, i, ret);
			if (call != 4)
				ep_completed(t, p->side[0].tx, ctx(1), call & 1 ? WRITTEN : FETCHED,
					     NULL);
			if (call < 5)
				EXPECT_EQ(t, kfi_inject(p->side[0].ep, NULL, 0, 0), 0);
			if (ep_completed(t, p->side[1].rx, ctx(2), call < 5 ? KFI_MSG | KFI_RECV :
					 KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA, &entry))
				EXPECT(t, !entry.len && entry.data == (call < 5 ? 0 : 5),
				       "data %#llx, len %zu", entry.data, entry.len);
		}
	}
	ep_nothing(t, p->side[0].tx);
	EXPECT(t, !memchr_inv(g.mem, 0, LEN + 2 * GUARD), "the peer's bytes changed");
	EXPECT(t, !memchr_inv(g.own, 0, LEN + 2 * GUARD), "own bytes changed");
out:
	target_close(t, &g);
	if (p)
		ep_pair_close(t, p);
}
