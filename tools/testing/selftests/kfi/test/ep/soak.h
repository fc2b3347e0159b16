/* SPDX-License-Identifier: GPL-2.0 */
/* Random sequences of transfers: what the files of the case share. */
#ifndef KFI_TEST_SOAK_H
#define KFI_TEST_SOAK_H

#include "ep.h"

#define SLOTS	16U
#define SLOT	256
#define PIECES	3
#define WORDS	4

/* How each kind is told of. */
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define FETCHED		(KFI_RMA | KFI_READ)
#define WRITTEN		(KFI_RMA | KFI_WRITE)
#define ARRIVED		(KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA)
#define ADDED		(KFI_ATOMIC | KFI_WRITE)
#define GOT		(KFI_ATOMIC | KFI_READ)

enum {
	OP_SEND, OP_SENDDATA, OP_INJECT,
	OP_READ, OP_WRITE, OP_WRITEDATA, OP_READ_PIECES, OP_WRITE_PIECES,
	OP_ATOMIC, OP_INJECT_ATOMIC, OP_FETCH, OP_COMPARE,
	OP_KINDS
};

/**
 * struct op - a transfer to the peer
 * @kind: Which.
 * @slot: Where its memory is at this end and, unless it's atomic, at the peer's.
 * @len: How many bytes.
 * @shift: Which bytes.
 * @data: The data that go along.
 * @places: How many places of the queue it may take.
 * @piece: How many bytes each piece of the peer's memory has.
 * @before: The value that an atomic operation must find.
 */
struct op {
	unsigned int kind, slot, len, shift, data, places;
	unsigned int piece[PIECES];
	u64 before;
};

/* Transfers in the order of posting. */
struct fifo {
	struct op ops[4 * SLOTS];
	unsigned int first, count;
};

static inline struct op *fifo_add(struct fifo *f)
{
	return &f->ops[(f->first + f->count++) % ARRAY_SIZE(f->ops)];
}

static inline struct op fifo_take(struct fifo *f)
{
	struct op op = f->ops[f->first % ARRAY_SIZE(f->ops)];

	f->first++;
	f->count--;
	return op;
}

/* Injected transfers end without a word. */
static inline bool silent(const struct op *op)
{
	return op->kind == OP_INJECT || op->kind == OP_INJECT_ATOMIC;
}

/* Is there anything that must still be told of? */
static inline bool told_of(const struct fifo *f)
{
	unsigned int i;

	for (i = 0; i < f->count; i++)
		if (!silent(&f->ops[(f->first + i) % ARRAY_SIZE(f->ops)]))
			return true;
	return false;
}

/* Where a side's memory begins: what it sends or fetches, what it receives, what peers get at. */
enum { OWN, ROOM, TARGET, COUNTED, AREAS };

/**
 * struct end - one end of the connection, and what it must still see
 * @s: Its objects.
 * @mem: AREAS times SLOTS slots.
 * @mr: Two regions of it, each of all.
 * @desc: The descriptor of the first.
 * @tx: The requests that were posted to the peer, and haven't completed.
 * @sent: The messages among them that the peer hasn't got.
 * @rx: Which slots receives were posted with.
 * @busy: Which slots are in use, by area.
 * @places: How many places of the queue may be taken.
 * @word: The first bytes of the slots in COUNTED, after everything that the peer has posted.
 */
struct end {
	struct ep_side *s;
	u8 *mem;
	struct kfid_mr *mr[2];
	void *desc;
	struct fifo tx, sent, rx;
	unsigned long busy[AREAS];
	unsigned int places;
	u64 word[WORDS];
};

struct soak {
	struct rnd_state rnd;
	struct end end[2];
	unsigned int shift, done, of_kind[OP_KINDS];
	u8 bytes[SLOT], model[SLOT];
};

static inline u32 any(struct soak *k, u32 below)
{
	return prandom_u32_state(&k->rnd) % below;
}

static inline u8 *slot(struct end *e, int area, unsigned int n)
{
	return e->mem + (area * SLOTS + n) * SLOT;
}

static inline void *ctx(const struct end *e, unsigned int n)
{
	return (void *)(0x50a40000ul + ((unsigned long)e & 0xff0) * 16 + n);
}

/* A descriptor of the memory, or none: both are right. */
static inline void *desc(struct soak *k, struct end *e)
{
	return any(k, 2) ? e->desc : NULL;
}

/* Some wait for more to come, as long as there will be room for it. */
static inline u64 more(struct soak *k, struct end *e)
{
	return e->places < SLOTS / 2 && hweight_long(e->busy[OWN]) < SLOTS / 2 && !any(k, 3) ?
	       KFI_MORE : 0;
}

/* soak_far.c: accesses to several pieces of the peer's memory, and to words there. */
ssize_t soak_pieces(struct soak *k, struct end *e, struct end *peer, struct op *op);
void soak_pieces_check(struct kfi_test *t, struct soak *k, struct end *e, struct end *peer,
		       const struct op *op);
ssize_t soak_atomic(struct soak *k, struct end *e, struct end *peer, struct op *op);
void soak_atomic_check(struct kfi_test *t, struct end *e, const struct op *op);
void soak_words_check(struct kfi_test *t, struct end *e);

#endif /* KFI_TEST_SOAK_H */
