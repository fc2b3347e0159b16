// SPDX-License-Identifier: GPL-2.0
/*
 * Random sequences of transfers both ways, against a model of the queues: everything that was accepted
 * completes once, in its order, with its flags and its bytes. All choices are made from the seed.
 */
#include "ep.h"

#define SLOTS	16U
#define SLOT	256
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define FETCHED		(KFI_RMA | KFI_READ)
#define WRITTEN		(KFI_RMA | KFI_WRITE)
#define ARRIVED		(KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA)

enum { OP_SEND, OP_SENDDATA, OP_INJECT, OP_READ, OP_WRITE, OP_WRITEDATA, OP_KINDS };

/* A transfer to the peer. */
struct op {
	unsigned int kind, slot, len, shift, data;
};

/* Transfers in the order of posting. */
struct fifo {
	struct op ops[4 * SLOTS];
	unsigned int first, count;
};

static struct op *fifo_add(struct fifo *f)
{
	return &f->ops[(f->first + f->count++) % ARRAY_SIZE(f->ops)];
}

static struct op fifo_take(struct fifo *f)
{
	struct op op = f->ops[f->first % ARRAY_SIZE(f->ops)];

	f->first++;
	f->count--;
	return op;
}

/* Where a side's memory begins: what it sends or fetches, what it receives, what peers get at. */
enum { OWN, ROOM, TARGET, AREAS };

/**
 * struct end - one end of the connection, and what it must still see
 * @s: Its objects.
 * @mem: AREAS times SLOTS slots.
 * @mr: A region of it.
 * @desc: Its descriptor.
 * @tx: What was posted to the peer, and hasn't completed.
 * @sent: What of that the peer gets as a message, and hasn't.
 * @rx: Which slots receives were posted with.
 * @busy: Which slots are in use, by area.
 */
struct end {
	struct ep_side *s;
	u8 *mem;
	struct kfid_mr *mr;
	void *desc;
	struct fifo tx, sent, rx;
	unsigned long busy[AREAS];
};

struct soak {
	struct rnd_state rnd;
	struct end end[2];
	unsigned int shift, done;
};

static u32 any(struct soak *k, u32 below)
{
	return prandom_u32_state(&k->rnd) % below;
}

static u8 *slot(struct end *e, int area, unsigned int n)
{
	return e->mem + (area * SLOTS + n) * SLOT;
}

static void *ctx(const struct end *e, unsigned int n)
{
	return (void *)(0x50a40000ul + ((unsigned long)e & 0xff0) * 16 + n);
}

static int take(struct end *e, int area)
{
	unsigned long n = find_first_zero_bit(&e->busy[area], SLOTS);

	if (n >= SLOTS)
		return -1;
	__set_bit(n, &e->busy[area]);
	return n;
}

/* A descriptor of the memory, or none: both are right. */
static void *desc(struct soak *k, struct end *e)
{
	return any(k, 2) ? e->desc : NULL;
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

/* Some wait for more to come. */
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
	bool more = hweight_long(e->busy[OWN]) < SLOTS / 2 && !any(k, 3);

	return kfi_sendmsg(e->s->ep, &msg, KFI_COMPLETION | (more ? KFI_MORE : 0));
}

static void post(struct kfi_test *t, struct soak *k, struct end *e, struct end *peer,
		 unsigned int kind)
{
	struct op op = { .kind = kind, .len = any(k, SLOT) + 1, .data = any(k, U32_MAX) };
	bool access = op.kind >= OP_READ, message = op.kind < OP_READ || op.kind == OP_WRITEDATA;
	struct kfid_ep *ep = e->s->ep;
	int n = take(e, OWN);
	u64 addr, key;
	ssize_t ret;
	u8 *own;

	/* Targets are used with the slot of the same number, so that accesses don't meet. */
	if (n < 0)
		return;
	op.slot = n;
	op.shift = k->shift++;
	own = slot(e, OWN, n);
	addr = peer->mr->iova + (slot(peer, TARGET, n) - peer->mem);
	key = kfi_mr_key(peer->mr);
	if (op.kind == OP_INJECT)
		op.len = min_t(unsigned int, op.len, 64);
	memset(access ? slot(peer, TARGET, n) : own, 0, SLOT);
	pattern(op.kind == OP_READ ? slot(peer, TARGET, n) : own, op.len, op.shift);
	switch (op.kind) {
	case OP_SEND:
		ret = send(k, e, own, op.len, ctx(e, n));
		break;
	case OP_SENDDATA:
		ret = kfi_senddata(ep, own, op.len, desc(k, e), op.data, 0, ctx(e, n));
		break;
	case OP_INJECT:
		ret = kfi_inject(ep, own, op.len, 0);
		memset(own, 0xee, SLOT);
		break;
	case OP_READ:
		memset(own, 0, SLOT);
		ret = kfi_read(ep, own, op.len, desc(k, e), 0, addr, key, ctx(e, n));
		break;
	case OP_WRITE:
		ret = kfi_write(ep, own, op.len, desc(k, e), 0, addr, key, ctx(e, n));
		break;
	default:
		ret = kfi_writedata(ep, own, op.len, desc(k, e), op.data, 0, addr, key, ctx(e, n));
	}
	/* There is room for as many as have slots, but an injected one has left its slot before. */
	if (ret == -KFI_EAGAIN && e->tx.count >= SLOTS) {
		__clear_bit(n, &e->busy[OWN]);
		return;
	}
	if (!EXPECT_EQ(t, ret, 0))
		return;
	*fifo_add(&e->tx) = op;
	if (message)
		*fifo_add(&e->sent) = op;
	if (op.kind == OP_INJECT)
		__clear_bit(n, &e->busy[OWN]);
}

static void check_sent(struct kfi_test *t, struct end *e, struct end *peer,
		       const struct kfi_cq_data_entry *entry)
{
	static const u64 flags[] = { SENT, SENT, SENT, FETCHED, WRITTEN, WRITTEN };
	struct op op;

	/* Those that are injected end without a word. */
	do {
		if (!EXPECT(t, e->tx.count, "a completion of nothing"))
			return;
		op = fifo_take(&e->tx);
	} while (op.kind == OP_INJECT);
	EXPECT(t, entry->op_context == ctx(e, op.slot), "a transfer completes out of order");
	EXPECT_EQ(t, entry->flags, flags[op.kind]);
	if (op.kind >= OP_READ) {
		u8 *to = op.kind == OP_READ ? slot(e, OWN, op.slot) : slot(peer, TARGET, op.slot);

		EXPECT(t, pattern_is(to, op.len, op.shift), "other bytes of %u", op.len);
		EXPECT(t, op.len == SLOT || !to[op.len], "a byte behind has changed");
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
		check_sent(t, e, peer, &entry);
	else
		check_received(t, e, peer, &entry);
	return true;
}

/* Is there anything that must still be told of? */
static bool told_of(const struct fifo *f)
{
	unsigned int i;

	for (i = 0; i < f->count; i++)
		if (f->ops[(f->first + i) % ARRAY_SIZE(f->ops)].kind != OP_INJECT)
			return true;
	return false;
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
		while (!t->failures && told_of(&k->end[i].tx))
			reap(t, k, &k->end[i], &k->end[!i], true, true);
	for (i = 0; i < 2; i++) {
		ep_nothing(t, k->end[i].s->tx);
		ep_nothing(t, k->end[i].s->rx);
	}
}

void ep_soak_case(struct kfi_test *t)
{
	struct ep_wants wants = { .tx_size = SLOTS, .rx_size = SLOTS, .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	struct soak *k = kzalloc_obj(*k);
	unsigned int i, rounds = scaled(20000);
	u64 access = KFI_REMOTE_READ | KFI_REMOTE_WRITE | KFI_SEND | KFI_RECV | KFI_READ | KFI_WRITE;

	if (!p || !EXPECT(t, k, "no memory"))
		goto out;
	prandom_seed_state(&k->rnd, kfi_seed);
	for (i = 0; i < 2; i++) {
		struct end *e = &k->end[i];

		e->s = &p->side[i];
		e->mem = kzalloc(AREAS * SLOTS * SLOT, GFP_KERNEL);
		if (!EXPECT(t, e->mem, "no memory") ||
		    !EXPECT_EQ(t, kfi_mr_reg(e->s->domain, e->mem, AREAS * SLOTS * SLOT, access, 0,
					     i + 1, 0, &e->mr, NULL), 0))
			goto out;
		e->desc = kfi_mr_desc(e->mr);
	}
	for (i = 0; i < rounds && !t->failures; i++)
		play(t, k);
	if (t->failures)
		ktap_note("round %u of %u", i, rounds);
	else
		drain(t, k);
	ktap_note("%u transfers, %u completions", k->shift, k->done);
out:
	/* What is under way uses the memory. */
	for (i = 0; p && i < 2; i++) {
		if (p->side[i].ep)
			EXPECT_EQ(t, kfi_close(&p->side[i].ep->fid), 0);
		p->side[i].ep = NULL;
	}
	for (i = 0; k && i < 2; i++) {
		if (k->end[i].mr)
			EXPECT_EQ(t, kfi_close(&k->end[i].mr->fid), 0);
		kfree(k->end[i].mem);
	}
	kfree(k);
	if (p)
		ep_pair_close(t, p);
}
