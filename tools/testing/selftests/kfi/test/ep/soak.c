// SPDX-License-Identifier: GPL-2.0
/*
 * Random sequences of transfers both ways, against a model of the queues: everything that was accepted
 * completes once, in its order, with its flags and its bytes. All choices are made from the seed.
 */
#include <linux/delay.h>

#include "soak.h"

static int take(struct end *e, int area)
{
	unsigned long n = find_first_zero_bit(&e->busy[area], SLOTS);

	if (n >= SLOTS)
		return -1;
	__set_bit(n, &e->busy[area]);
	return n;
}

static void post_receive(struct kfi_test *t, struct soak *k, struct end *e)
{
	int n = take(e, ROOM);
	struct op *op;

	if (n < 0)
		return;
	memset(slot(e, ROOM, n), 0, SLOT);
	if (!EXPECT_EQ(t, kfi_recv(e->s->ep, slot(e, ROOM, n), SLOT, desc(k, e), 0, ctx(e, n)), 0))
		return;
	op = fifo_add(&e->rx);
	*op = (struct op) { .slot = n };
}

static ssize_t send(struct soak *k, struct end *e, u8 *own, size_t len, void *context)
{
	struct kvec kv = { own, len };
	void *region = desc(k, e);
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.desc = &region,
		.context = context,
	};

	return kfi_sendmsg(e->s->ep, &msg, KFI_COMPLETION | more(k, e));
}

/* Posts a message, or an access to one piece of the peer's memory, or to a word there. */
static ssize_t start(struct soak *k, struct end *e, struct end *peer, struct op *op)
{
	u8 *own = slot(e, OWN, op->slot), *target = slot(peer, TARGET, op->slot);
	u64 addr = peer->mr[0]->iova + (target - peer->mem), key = kfi_mr_key(peer->mr[0]);
	void *context = ctx(e, op->slot);
	struct kfid_ep *ep = e->s->ep;
	ssize_t ret;

	if (op->kind == OP_INJECT)
		op->len = min_t(unsigned int, op->len, 64);
	memset(op->kind >= OP_READ ? target : own, 0, SLOT);
	pattern(op->kind == OP_READ ? target : own, op->len, op->shift);
	switch (op->kind) {
	case OP_SEND:
		return send(k, e, own, op->len, context);
	case OP_SENDDATA:
		return kfi_senddata(ep, own, op->len, desc(k, e), op->data, 0, context);
	case OP_INJECT:
		ret = kfi_inject(ep, own, op->len, 0);
		memset(own, 0xee, SLOT);
		return ret;
	case OP_READ:
		memset(own, 0, SLOT);
		return kfi_read(ep, own, op->len, desc(k, e), 0, addr, key, context);
	case OP_WRITE:
		return kfi_write(ep, own, op->len, desc(k, e), 0, addr, key, context);
	case OP_WRITEDATA:
		return kfi_writedata(ep, own, op->len, desc(k, e), op->data, 0, addr, key, context);
	case OP_READ_PIECES:
	case OP_WRITE_PIECES:
		return soak_pieces(k, e, peer, op);
	default:
		return soak_atomic(k, e, peer, op);
	}
}

static void post(struct kfi_test *t, struct soak *k, struct end *e, struct end *peer,
		 unsigned int kind)
{
	struct op op = {
		.kind = kind,
		.len = any(k, SLOT) + 1,
		.data = any(k, U32_MAX),
		.places = 1,
	};
	int n = take(e, OWN);
	ssize_t ret;

	/* Targets are used with the slot of the same number, so that accesses don't meet. */
	if (n < 0)
		return;
	op.slot = n;
	op.shift = k->shift++;
	ret = start(k, e, peer, &op);
	/* There is room for as many as have slots, but an injected one has left its slot before. */
	if (ret == -KFI_EAGAIN && e->places + op.places > SLOTS) {
		__clear_bit(n, &e->busy[OWN]);
		return;
	}
	if (!EXPECT_EQ(t, ret, 0))
		return;
	k->of_kind[kind]++;
	e->places += op.places;
	*fifo_add(&e->tx) = op;
	if (kind < OP_READ || kind == OP_WRITEDATA)
		*fifo_add(&e->sent) = op;
	if (silent(&op))
		__clear_bit(n, &e->busy[OWN]);
}

static void check_sent(struct kfi_test *t, struct soak *k, struct end *e, struct end *peer,
		       const struct kfi_cq_data_entry *entry)
{
	static const u64 flags[OP_KINDS] = {
		[OP_SEND] = SENT, [OP_SENDDATA] = SENT,
		[OP_READ] = FETCHED, [OP_WRITE] = WRITTEN, [OP_WRITEDATA] = WRITTEN,
		[OP_READ_PIECES] = FETCHED, [OP_WRITE_PIECES] = WRITTEN,
		[OP_ATOMIC] = ADDED, [OP_FETCH] = GOT, [OP_COMPARE] = GOT,
	};
	struct op op;
	u8 *to;

	do {
		if (!EXPECT(t, e->tx.count, "a completion of nothing"))
			return;
		op = fifo_take(&e->tx);
		e->places -= op.places;
	} while (silent(&op));
	EXPECT(t, entry->op_context == ctx(e, op.slot), "a transfer completes out of order");
	EXPECT_EQ(t, entry->flags, flags[op.kind]);
	switch (op.kind) {
	case OP_SEND:
	case OP_SENDDATA:
		break;
	case OP_READ_PIECES:
	case OP_WRITE_PIECES:
		soak_pieces_check(t, k, e, peer, &op);
		break;
	case OP_READ:
	case OP_WRITE:
	case OP_WRITEDATA:
		to = op.kind == OP_READ ? slot(e, OWN, op.slot) : slot(peer, TARGET, op.slot);
		EXPECT(t, pattern_is(to, op.len, op.shift), "other bytes of %u", op.len);
		EXPECT(t, op.len == SLOT || !to[op.len], "a byte behind has changed");
		break;
	default:
		soak_atomic_check(t, e, &op);
	}
	__clear_bit(op.slot, &e->busy[OWN]);
}

static void check_received(struct kfi_test *t, struct end *e, struct end *peer,
			   const struct kfi_cq_data_entry *entry)
{
	struct op room, op;
	u8 *to;

	if (!EXPECT(t, e->rx.count && peer->sent.count, "a message that nobody sent"))
		return;
	room = fifo_take(&e->rx);
	op = fifo_take(&peer->sent);
	to = slot(e, ROOM, room.slot);
	EXPECT(t, entry->op_context == ctx(e, room.slot), "a receive completes out of order");
	EXPECT_EQ(t, entry->len, op.len);
	if (op.kind == OP_SENDDATA || op.kind == OP_WRITEDATA)
		EXPECT_EQ(t, entry->data, op.data);
	switch (op.kind) {
	case OP_WRITEDATA:
		EXPECT_EQ(t, entry->flags, ARRIVED);
		EXPECT(t, !memchr_inv(to, 0, SLOT), "a write has changed the receive's buffer");
		break;
	case OP_SENDDATA:
		EXPECT_EQ(t, entry->flags, RECEIVED | KFI_REMOTE_CQ_DATA);
		EXPECT(t, pattern_is(to, op.len, op.shift), "other bytes of %u", op.len);
		break;
	default:
		EXPECT_EQ(t, entry->flags, RECEIVED);
		EXPECT(t, pattern_is(to, op.len, op.shift), "other bytes of %u", op.len);
	}
	EXPECT(t, op.len == SLOT || !to[op.len], "a byte behind has changed");
	__clear_bit(room.slot, &e->busy[ROOM]);
}

/* Looks what has completed at an end, or waits for something. */
static bool reap(struct kfi_test *t, struct soak *k, struct end *e, struct end *peer, bool tx,
		 bool wait)
{
	struct kfid_cq *cq = tx ? e->s->tx : e->s->rx;
	struct kfi_cq_data_entry entry;
	ssize_t n = wait ? kfi_cq_sread(cq, &entry, 1, NULL, EP_WAIT_MS) : kfi_cq_read(cq, &entry, 1);

	if (n == -KFI_EAGAIN && !wait)
		return false;
	if (!EXPECT_EQ(t, n, 1))
		return false;
	k->done++;
	if (tx)
		check_sent(t, k, e, peer, &entry);
	else
		check_received(t, e, peer, &entry);
	return true;
}

static void play(struct kfi_test *t, struct soak *k)
{
	unsigned int x = any(k, 2);
	struct end *e = &k->end[x], *peer = &k->end[!x];

	switch (any(k, 4)) {
	case 0:
		post_receive(t, k, e);
		break;
	case 1:
	case 2:
		/* Messages may wait for a receive, but not too many of them. */
		if (e->sent.count < 2 * SLOTS)
			post(t, k, e, peer, any(k, OP_KINDS));
		break;
	default:
		while (!t->failures && (reap(t, k, e, peer, true, false) ||
					reap(t, k, e, peer, false, false)))
			;
	}
}

/* Requests that end without a word have ended when one behind them has. */
static void settle(struct kfi_test *t, struct soak *k, struct end *e, struct end *peer)
{
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);

	while (e->tx.count && !t->failures) {
		if (!told_of(&e->tx))
			post(t, k, e, peer, OP_WRITE);
		if (told_of(&e->tx))
			reap(t, k, e, peer, true, true);
		else if (EXPECT(t, time_before(jiffies, end), "the queue stays full"))
			msleep(20);
	}
}

/* Everything comes to its end; what waits for more goes with a last write. */
static void drain(struct kfi_test *t, struct soak *k)
{
	int i;

	for (i = 0; i < 2 && !t->failures; i++) {
		while (!t->failures && (reap(t, k, &k->end[i], &k->end[!i], true, false)))
			;
		post(t, k, &k->end[i], &k->end[!i], OP_WRITE);
	}
	for (i = 0; i < 2 && !t->failures; i++) {
		struct end *e = &k->end[i], *peer = &k->end[!i];

		while (!t->failures && peer->sent.count) {
			while (e->rx.count < min(peer->sent.count, SLOTS) && !t->failures)
				post_receive(t, k, e);
			reap(t, k, e, peer, false, true);
		}
	}
	for (i = 0; i < 2 && !t->failures; i++)
		settle(t, k, &k->end[i], &k->end[!i]);
	for (i = 0; i < 2; i++) {
		ep_nothing(t, k->end[i].s->tx);
		ep_nothing(t, k->end[i].s->rx);
		if (!t->failures)
			soak_words_check(t, &k->end[i]);
	}
}

static bool end_open(struct kfi_test *t, struct end *e, struct ep_side *s)
{
	u64 access = KFI_REMOTE_READ | KFI_REMOTE_WRITE | KFI_SEND | KFI_RECV | KFI_READ | KFI_WRITE;
	int i;

	e->s = s;
	e->mem = kzalloc(AREAS * SLOTS * SLOT, GFP_KERNEL);
	if (!EXPECT(t, e->mem, "no memory"))
		return false;
	for (i = 0; i < 2; i++)
		if (!EXPECT_EQ(t, kfi_mr_reg(s->domain, e->mem, AREAS * SLOTS * SLOT, access, 0,
					     i + 1, 0, &e->mr[i], NULL), 0))
			return false;
	e->desc = kfi_mr_desc(e->mr[0]);
	return true;
}

static void end_close(struct kfi_test *t, struct end *e)
{
	int i;

	for (i = 0; i < 2; i++)
		if (e->mr[i])
			EXPECT_EQ(t, kfi_close(&e->mr[i]->fid), 0);
	kfree(e->mem);
}

void ep_soak_case(struct kfi_test *t)
{
	struct ep_wants wants = {
		.tx_size = SLOTS,
		.rx_size = SLOTS,
		.mr_mode = EP_MODE,
		.caps = KFI_MSG | KFI_RMA | KFI_ATOMIC,
	};
	struct ep_pair *p = ep_connected(t, &wants);
	struct soak *k = kzalloc_obj(*k);
	unsigned int i, rounds = scaled(20000);

	if (!p || !EXPECT(t, k, "no memory"))
		goto out;
	prandom_seed_state(&k->rnd, kfi_seed);
	for (i = 0; i < 2; i++)
		if (!end_open(t, &k->end[i], &p->side[i]))
			goto out;
	for (i = 0; i < rounds && !t->failures; i++)
		play(t, k);
	if (t->failures)
		ktap_note("round %u of %u", i, rounds);
	else
		drain(t, k);
	/* A short run may not have drawn each kind: the queues are empty, so each fits now. */
	for (i = 0; i < OP_KINDS && !t->failures; i++)
		if (!k->of_kind[i]) {
			post(t, k, &k->end[0], &k->end[1], i);
			drain(t, k);
		}
	ktap_note("%u transfers, %u completions", k->shift, k->done);
	for (i = 0; i < OP_KINDS; i++)
		EXPECT(t, k->of_kind[i] || t->failures, "none of kind %u", i);
out:
	/* Requests that are under way use the memory. */
	for (i = 0; p && i < 2; i++) {
		if (p->side[i].ep)
			EXPECT_EQ(t, kfi_close(&p->side[i].ep->fid), 0);
		p->side[i].ep = NULL;
	}
	for (i = 0; k && i < 2; i++)
		end_close(t, &k->end[i]);
	kfree(k);
	if (p)
		ep_pair_close(t, p);
}
