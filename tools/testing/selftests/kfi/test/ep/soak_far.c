// SPDX-License-Identifier: GPL-2.0
/*
 * Random sequences of transfers: those to several pieces of the peer's memory, and atomic operations.
 * These all go to a few words, so that each depends on those before.
 */
#include <kfi_atomic.h>

#include "soak.h"

/* Between pieces; and how many bytes there are at most, then. */
#define GAP	8
#define MOST	(SLOT - (PIECES - 1) * GAP)

/* The pieces of a slot: from its end on, the first one behind all others. */
static void lay(struct soak *k, const struct op *op, u8 *slot)
{
	unsigned int i, from = 0, at = SLOT;

	memset(slot, 0, SLOT);
	pattern(k->bytes, op->len, op->shift);
	for (i = 0; i < PIECES; i++) {
		at -= op->piece[i];
		memcpy(slot + at, k->bytes + from, op->piece[i]);
		from += op->piece[i];
		at -= min_t(unsigned int, at, GAP);
	}
}

/* Posts an access to pieces, some of them of no bytes, by the key of one region or the other. */
ssize_t soak_pieces(struct soak *k, struct end *e, struct end *peer, struct op *op)
{
	u8 *own = slot(e, OWN, op->slot), *target = slot(peer, TARGET, op->slot);
	bool reads = op->kind == OP_READ_PIECES;
	struct kfi_rma_iov iov[PIECES];
	void *region = desc(k, e);
	struct kvec kv;
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.desc = &region,
		.rma_iov = iov,
		.rma_iov_count = PIECES,
		.context = ctx(e, op->slot),
	};
	unsigned int i, left, at = SLOT;
	u64 flags = KFI_COMPLETION | more(k, e);

	op->len = min(op->len, MOST);
	left = op->len;
	op->places = 0;
	for (i = 0; i < PIECES; i++) {
		struct kfid_mr *mr = peer->mr[any(k, 2)];

		op->piece[i] = i < PIECES - 1 ? any(k, left + 1) : left;
		left -= op->piece[i];
		op->places += !!op->piece[i];
		at -= op->piece[i];
		iov[i] = (struct kfi_rma_iov) {
			.addr = mr->iova + (target + at - peer->mem),
			.len = op->piece[i],
			.key = kfi_mr_key(mr),
		};
		at -= min_t(unsigned int, at, GAP);
	}
	kv = (struct kvec) { own, op->len };
	memset(own, 0, SLOT);
	memset(target, 0, SLOT);
	if (reads)
		lay(k, op, target);
	else
		pattern(own, op->len, op->shift);
	return reads ? kfi_readmsg(e->s->ep, &msg, flags) : kfi_writemsg(e->s->ep, &msg, flags);
}

/* Just the pieces have changed, or just this side's bytes. */
void soak_pieces_check(struct kfi_test *t, struct soak *k, struct end *e, struct end *peer,
		       const struct op *op)
{
	const u8 *own = slot(e, OWN, op->slot);

	lay(k, op, k->model);
	EXPECT(t, !memcmp(slot(peer, TARGET, op->slot), k->model, SLOT),
	       "other bytes in pieces of %u, %u, %u", op->piece[0], op->piece[1], op->piece[2]);
	EXPECT(t, pattern_is(own, op->len, op->shift), "other bytes of %u here", op->len);
	EXPECT(t, !memchr_inv(own + op->len, 0, SLOT - op->len), "bytes behind have changed");
}

static ssize_t post(struct soak *k, struct end *e, struct op *op, u64 addr, u64 key,
		    enum kfi_op what, u64 operand, u64 compare)
{
	u64 *own = (u64 *)slot(e, OWN, op->slot);
	void *context = ctx(e, op->slot);
	struct kfid_ep *ep = e->s->ep;

	switch (op->kind) {
	case OP_ATOMIC:
		return kfi_atomic(ep, &operand, 1, NULL, 0, addr, key, KFI_UINT64, what, context);
	case OP_INJECT_ATOMIC:
		return kfi_inject_atomic(ep, &operand, 1, 0, addr, key, KFI_UINT64, what);
	case OP_FETCH:
		return kfi_fetch_atomic(ep, &operand, 1, NULL, own, desc(k, e), 0, addr, key,
					KFI_UINT64, what, context);
	default:
		return kfi_compare_atomic(ep, &operand, 1, NULL, &compare, NULL, own, desc(k, e), 0,
					  addr, key, KFI_UINT64, what, context);
	}
}

/* Posts an atomic operation to a word; which it is then, if it is posted. */
ssize_t soak_atomic(struct soak *k, struct end *e, struct end *peer, struct op *op)
{
	unsigned int n = any(k, WORDS);
	u64 operand = prandom_u32_state(&k->rnd) * 0x100000001ULL, compare = peer->word[n], after;
	struct kfid_mr *mr = peer->mr[any(k, 2)];
	u64 addr = mr->iova + (slot(peer, COUNTED, n) - peer->mem);
	bool other = any(k, 2);
	enum kfi_op what;
	ssize_t ret;

	op->before = peer->word[n];
	switch (op->kind) {
	case OP_FETCH:
		what = other ? KFI_ATOMIC_READ : KFI_SUM;
		after = other ? op->before : op->before + operand;
		break;
	case OP_COMPARE:
		what = KFI_CSWAP;
		after = other ? op->before : operand;
		compare += other;
		break;
	default:
		other = other && has_feature(F_ATOMIC_WRITE);
		what = other ? KFI_ATOMIC_WRITE : KFI_SUM;
		after = other ? operand : op->before + operand;
	}
	memset(slot(e, OWN, op->slot), 0xee, SLOT);
	ret = post(k, e, op, addr, kfi_mr_key(mr), what, operand, compare);
	if (!ret)
		peer->word[n] = after;
	return ret;
}

/* The old value has come back, if it was asked for. */
void soak_atomic_check(struct kfi_test *t, struct end *e, const struct op *op)
{
	const u8 *own = slot(e, OWN, op->slot);
	size_t got = op->kind == OP_ATOMIC ? 0 : sizeof(u64);

	if (got)
		EXPECT_EQ(t, *(const u64 *)own, op->before);
	EXPECT(t, !memchr_inv(own + got, 0xee, SLOT - got), "other bytes here have changed");
}

/* With nothing under way, the words are what all operations together have made of them. */
void soak_words_check(struct kfi_test *t, struct end *e)
{
	unsigned int n;

	for (n = 0; n < SLOTS; n++) {
		const u8 *at = slot(e, COUNTED, n);
		size_t word = n < WORDS ? sizeof(u64) : 0;

		if (word)
			EXPECT_EQ(t, *(const u64 *)at, e->word[n]);
		EXPECT(t, !memchr_inv(at + word, 0, SLOT - word), "bytes beside word %u changed", n);
	}
}
