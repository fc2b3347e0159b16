// SPDX-License-Identifier: GPL-2.0
/* Access to several pieces of the peer's memory in one call, as a list of them. */
#include "ep.h"

#define REGIONS	3
#define LEN	3000
#define MOST	16
#define FETCHED	(KFI_RMA | KFI_READ)
#define WRITTEN	(KFI_RMA | KFI_WRITE)
#define TOLD	(KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA)

static struct rnd_state state;

static u32 rnd(u32 below)
{
	return prandom_u32_state(&state) % below;
}

static void *ctx(unsigned long n)
{
	return (void *)(0x91ece500 + n);
}

/* Some regions of the passive side, this side's memory, and what all of them should be. */
struct far {
	u8 *mem[REGIONS];
	u8 *model[REGIONS];
	struct kfid_mr *mr[REGIONS];
	u8 *own;
	u8 *own_model;
};

static bool far_open(struct kfi_test *t, struct ep_side *s, struct far *f)
{
	int i;

	f->own = kmalloc(2 * LEN, GFP_KERNEL);
	f->own_model = kmalloc(LEN, GFP_KERNEL);
	if (!EXPECT(t, f->own && f->own_model, "no memory"))
		return false;
	for (i = 0; i < REGIONS; i++) {
		f->mem[i] = kmalloc(LEN, GFP_KERNEL);
		f->model[i] = kmalloc(LEN, GFP_KERNEL);
		if (!EXPECT(t, f->mem[i] && f->model[i], "no memory") ||
		    !EXPECT_EQ(t, kfi_mr_reg(s->domain, f->mem[i], LEN,
					     KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0, 20 + i, 0,
					     &f->mr[i], NULL), 0))
			return false;
		pattern(f->mem[i], LEN, i);
		pattern(f->model[i], LEN, i);
	}
	return true;
}

static void far_close(struct kfi_test *t, struct far *f)
{
	int i;

	for (i = 0; i < REGIONS; i++) {
		if (f->mr[i])
			EXPECT_EQ(t, kfi_close(&f->mr[i]->fid), 0);
		kfree(f->mem[i]);
		kfree(f->model[i]);
	}
	kfree(f->own);
	kfree(f->own_model);
}

/* This side's memory is two parts, the second one from @cut on, with a gap between them. */
static void as_modelled(struct kfi_test *t, struct far *f, size_t cut, int round)
{
	int i;

	EXPECT(t, !memcmp(f->own, f->own_model, cut) &&
		  !memcmp(f->own + LEN + cut, f->own_model + cut, LEN - cut),
	       "round %d: other bytes here", round);
	EXPECT(t, !memchr_inv(f->own + cut, 0x5a, LEN), "round %d: the gap has changed", round);
	for (i = 0; i < REGIONS; i++)
		EXPECT(t, !memcmp(f->mem[i], f->model[i], LEN), "round %d: other bytes in region %d",
		       round, i);
}

/* A random list of pieces, in random regions; how many bytes they have. */
static size_t random_pieces(struct far *f, struct kfi_rma_iov *iov, int *region, size_t *at, int n)
{
	size_t sum = 0, most = rnd(2) ? LEN / MOST : 12;
	int i;

	for (i = 0; i < n; i++) {
		region[i] = rnd(REGIONS);
		at[i] = rnd(LEN - LEN / MOST);
		/* Some of no bytes. */
		iov[i].len = rnd(8) ? 1 + rnd(most - 1) : 0;
		iov[i].addr = f->mr[region[i]]->iova + at[i];
		iov[i].key = kfi_mr_key(f->mr[region[i]]);
		sum += iov[i].len;
	}
	return sum;
}

/*
 * Random lists, read and written, with data, injected and with more behind, by a descriptor or not: against
 * a model.
 */
void ep_pieces_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfi_rma_iov iov[MOST];
	struct kfi_cq_data_entry entry;
	int region[MOST], i, n, round;
	struct kfid_ep *ep;
	struct far f = {};
	size_t at[MOST], sum, from, cut;
	u8 *fill = kmalloc(LEN, GFP_KERNEL);
	struct kfid_mr *own = NULL;
	void *descs[2];

	prandom_seed_state(&state, kfi_seed);
	if (!p || !EXPECT(t, fill, "no memory") || !far_open(t, &p->side[1], &f) ||
	    !EXPECT_EQ(t, kfi_mr_reg(p->side[0].domain, f.own, 2 * LEN, KFI_READ | KFI_WRITE, 0, 30,
				     0, &own, NULL), 0))
		goto out;
	descs[0] = descs[1] = kfi_mr_desc(own);
	ep = p->side[0].ep;
	EXPECT_EQ(t, p->info->tx_attr->rma_iov_limit, MOST);
	for (round = 0; round < scaled(200) && !t->failures; round++) {
		struct kvec kv[2];
		struct kfi_msg_rma msg = {
			.type = KFI_KVEC,
			.msg_iov = kv,
			.iov_count = 2,
			.rma_iov = iov,
			.context = ctx(round),
			.data = round,
			.desc = rnd(2) ? descs : NULL,
		};
		bool writes = rnd(2), tells, injects;
		u64 flags = KFI_COMPLETION;
		ssize_t ret;

		n = 1 + rnd(MOST);
		do
			sum = random_pieces(&f, iov, region, at, n);
		while (sum < 2);
		injects = writes && sum <= p->info->tx_attr->inject_size;
		tells = writes && rnd(2);
		cut = 1 + rnd(sum - 1);
		kv[0] = (struct kvec) { f.own, cut };
		kv[1] = (struct kvec) { f.own + LEN + cut, sum - cut };
		pattern(f.own_model, LEN, round);
		memset(f.own, 0x5a, 2 * LEN);
		memcpy(f.own, f.own_model, cut);
		memcpy(f.own + LEN + cut, f.own_model + cut, LEN - cut);
		msg.rma_iov_count = n;
		for (from = 0, i = 0; i < n; from += iov[i++].len) {
			if (writes)
				memcpy(f.model[region[i]] + at[i], f.own_model + from, iov[i].len);
			else
				memcpy(f.own_model + from, f.model[region[i]] + at[i], iov[i].len);
		}
		if (tells) {
			flags |= KFI_REMOTE_CQ_DATA;
			EXPECT_EQ(t, kfi_recv(p->side[1].ep, NULL, 0, NULL, 0, ctx(round)), 0);
		}
		flags |= injects ? KFI_INJECT : 0;
		flags |= rnd(2) ? KFI_FENCE : 0;
		flags |= rnd(2) ? KFI_DELIVERY_COMPLETE : 0;
		flags |= rnd(2) ? KFI_MORE : 0;
		ret = writes ? kfi_writemsg(ep, &msg, flags) : kfi_readmsg(ep, &msg, flags);
		EXPECT_EQ(t, ret, 0);
		if (injects) {
			memset(f.own, 0xee, cut);
			memset(f.own + LEN + cut, 0xee, sum - cut);
		}
		/* Takes what waits with it. */
		if (flags & KFI_MORE)
			EXPECT_EQ(t, kfi_read(ep, fill, 1, NULL, 0, f.mr[0]->iova,
					      kfi_mr_key(f.mr[0]), ctx(round)), 0);
		ep_completed(t, p->side[0].tx, ctx(round), writes ? WRITTEN : FETCHED, NULL);
		if (flags & KFI_MORE)
			ep_completed(t, p->side[0].tx, ctx(round), FETCHED, NULL);
		if (tells && ep_completed(t, p->side[1].rx, ctx(round), TOLD, &entry))
			EXPECT_EQ(t, entry.data, round);
		if (injects)
			memset(f.own_model, 0xee, sum);
		as_modelled(t, &f, cut, round);
	}
	ep_nothing(t, p->side[0].tx);
	ep_nothing(t, p->side[1].rx);
out:
	if (own)
		EXPECT_EQ(t, kfi_close(&own->fid), 0);
	far_close(t, &f);
	kfree(fill);
	if (p)
		ep_pair_close(t, p);
}

/* Pieces that are refused at once; and a bad key in the middle fails the whole, once. */
void ep_pieces_refused_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE, .tx_size = 4 };
	struct kfi_cq_err_entry err;
	int bad, i, writes;

	for (i = 0; i < 4 && !t->failures; i++) {
		struct ep_pair *p = ep_connected(t, &wants);
		struct kfi_rma_iov iov[MOST + 1];
		struct far f = {};
		struct kvec kv;
		struct kfi_msg_rma msg = {
			.type = KFI_KVEC,
			.msg_iov = &kv,
			.iov_count = 1,
			.rma_iov = iov,
			.context = ctx(i),
		};
		int j;

		if (!p)
			break;
		if (!far_open(t, &p->side[1], &f))
			goto next;
		for (j = 0; j <= MOST; j++)
			iov[j] = (struct kfi_rma_iov) {
				f.mr[j % REGIONS]->iova + 10 * j, 10, kfi_mr_key(f.mr[j % REGIONS]),
			};
		kv = (struct kvec) { f.own, 10 * (MOST + 1) };
		if (!i) {
			msg.rma_iov_count = MOST + 1;
			EXPECT_EQ(t, kfi_writemsg(p->side[0].ep, &msg, 0), -KFI_EINVAL);
			msg.rma_iov_count = 0;
			EXPECT_EQ(t, kfi_writemsg(p->side[0].ep, &msg, 0), -KFI_EINVAL);
			msg.rma_iov_count = 3;
			kv.iov_len = 31;
			EXPECT_EQ(t, kfi_writemsg(p->side[0].ep, &msg, 0), -KFI_EINVAL);
			iov[1].len = SIZE_MAX;
			kv.iov_len = 19;
			EXPECT_EQ(t, kfi_writemsg(p->side[0].ep, &msg, 0), -KFI_EINVAL);
			iov[1].len = 10;
			/* More than the queue has places, where each takes one. */
			msg.rma_iov_count = 5;
			kv.iov_len = 50;
			if (has_feature(F_DEVICE))
				EXPECT_EQ(t, kfi_writemsg(p->side[0].ep, &msg, 0), -KFI_E2BIG);
			ep_nothing(t, p->side[0].tx);
		}
		writes = i & 1;
		bad = 1 + i / 2;
		msg.rma_iov_count = 4;
		kv.iov_len = 40;
		iov[bad].key ^= NO_KEY;
		memset(f.own, 0x33, LEN);
		EXPECT_EQ(t, writes ? kfi_writemsg(p->side[0].ep, &msg, KFI_COMPLETION) :
				      kfi_readmsg(p->side[0].ep, &msg, KFI_COMPLETION), 0);
		ep_failed_op(t, p->side[0].tx, ctx(i), KFI_EACCES, &err);
		EXPECT_EQ(t, err.flags, writes ? WRITTEN : FETCHED);
		/* Once: nothing comes behind it when all has ended. */
		EXPECT_EQ(t, kfi_close(&p->side[0].ep->fid), 0);
		p->side[0].ep = NULL;
		ep_nothing(t, p->side[0].tx);
		/* The memory behind the bad piece is as it was. */
		for (j = bad; j < 4 && writes; j++) {
			u8 *there = f.mem[j % REGIONS] + 10 * j;

			EXPECT(t, !memcmp(there, f.model[j % REGIONS] + 10 * j, 10),
			       "piece %d has changed", j);
		}
next:
		far_close(t, &f);
		ep_pair_close(t, p);
	}
}

/* All places of the queue in use by parts: the rest waits outside, and nothing is lost. */
void ep_pieces_full_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE, .tx_size = 4 };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfi_cq_data_entry entry;
	struct kfi_rma_iov iov[3];
	struct far f = {};
	struct kvec kv;
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.rma_iov = iov,
		.rma_iov_count = 3,
	};
	int i, posted = 0, done = 0;
	const int all = 100;
	ssize_t ret;

	if (!p || !far_open(t, &p->side[1], &f))
		goto out;
	kv = (struct kvec) { f.own, 30 };
	for (i = 0; i < 3; i++)
		iov[i] = (struct kfi_rma_iov) { f.mr[i]->iova, 10, kfi_mr_key(f.mr[i]) };
	/* A message that waits for a receive holds up all that is behind it, until the queue is full. */
	EXPECT_EQ(t, kfi_send(p->side[0].ep, f.own, 8, NULL, 0, ctx(all)), 0);
	do {
		msg.context = ctx(posted);
		ret = kfi_writemsg(p->side[0].ep, &msg, KFI_COMPLETION);
		posted += !ret;
	} while (!ret && posted < all);
	EXPECT_EQ(t, ret, -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_recv(p->side[1].ep, f.own + 64, 8, NULL, 0, ctx(0)), 0);
	ep_completed(t, p->side[0].tx, ctx(all), KFI_MSG | KFI_SEND, NULL);
	while (done < all && !t->failures) {
		ret = -KFI_EAGAIN;
		if (posted < all) {
			msg.context = ctx(posted);
			ret = kfi_writemsg(p->side[0].ep, &msg,
					   KFI_COMPLETION | (posted % 3 ? KFI_MORE : 0));
			posted += !ret;
		}
		if (!ret)
			continue;
		EXPECT_EQ(t, ret, -KFI_EAGAIN);
		if (EXPECT_EQ(t, kfi_cq_sread(p->side[0].tx, &entry, 1, NULL, EP_WAIT_MS), 1))
			EXPECT(t, entry.op_context == ctx(done++), "in another order");
	}
	ep_nothing(t, p->side[0].tx);
out:
	far_close(t, &f);
	if (p)
		ep_pair_close(t, p);
}
