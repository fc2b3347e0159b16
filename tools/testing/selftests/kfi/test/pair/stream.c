// SPDX-License-Identifier: GPL-2.0
/*
 * Transfers that don't end by themselves, and what becomes of them when the server goes, or the
 * wire: each of them ends once, and what has been done is right.
 */
#include <linux/delay.h>

#include "pair.h"

#define SLOTS	16
#define PART	(PAIR_REGION / SLOTS)

enum step { IDLE, WRITING, READING };

/**
 * struct stream - transfers on a connection, one in each part of the server's region
 * @l: The connection.
 * @slot: The transfers that are under way in a part: written there, it is read again.
 * @outstanding: How many are.
 * @words: How many messages to the server may fail yet, which were injected: they are told of only then.
 * @done: How many have been done.
 * @err: The errno of the first that has failed, or 0.
 */
struct stream {
	struct pair_link *l;
	struct {
		enum step step;
		u32 seed;
		u8 *mem;
	} slot[SLOTS];
	unsigned int outstanding;
	unsigned int words;
	unsigned int done;
	int err;
};

static void post(struct kfi_test *t, struct stream *s, unsigned long n, enum step step)
{
	u64 addr = s->l->welcome.addr + n * PART, key = s->l->welcome.key;
	struct kfid_ep *ep = s->l->side.ep;
	void *context = (void *)(n + 1);
	u8 *mem = s->slot[n].mem;
	ssize_t ret;

	if (step == WRITING) {
		s->slot[n].seed += SLOTS;
		pair_fill(mem, PART, s->slot[n].seed);
		ret = kfi_write(ep, mem, PART, NULL, 0, addr, key, context);
	} else {
		memset(mem, 0, PART);
		ret = kfi_read(ep, mem, PART, NULL, 0, addr, key, context);
	}
	s->slot[n].step = ret ? IDLE : step;
	s->outstanding += !ret;
	/* That a queue is full may be since it is just emptied; the part is given up then. */
	if (ret == -KFI_ENOTCONN)
		s->err = s->err ?: KFI_ENOTCONN;
	else if (ret != -KFI_EAGAIN)
		EXPECT_EQ(t, ret, 0);
}

/* The other result of reap(). */
#define NONE	-1
#define OTHER	-2

/* One has ended, within @ms: its slot. Or none; or something else has failed. */
static int reap(struct kfi_test *t, struct stream *s, int ms)
{
	struct kfi_cq_data_entry entry = {};
	struct kfi_cq_err_entry err = {};
	unsigned long n;
	ssize_t ret;

	ret = kfi_cq_sread(s->l->side.tx, &entry, 1, NULL, ms);
	if (ret == -KFI_EAGAIN)
		return NONE;
	if (ret == -KFI_EAVAIL) {
		EXPECT_EQ(t, kfi_cq_readerr(s->l->side.tx, &err, 0), 1);
		entry.op_context = err.op_context;
		s->err = s->err ?: err.err;
		if (!entry.op_context) {
			if (EXPECT(t, s->words, "a message that was not injected"))
				s->words--;
			return OTHER;
		}
	} else if (!EXPECT_EQ(t, ret, 1)) {
		return NONE;
	}
	n = (unsigned long)entry.op_context - 1;
	if (!EXPECT(t, n < SLOTS && s->slot[n].step != IDLE, "a completion of nothing, or twice"))
		return NONE;
	s->outstanding--;
	if (ret == 1) {
		s->done++;
		EXPECT_EQ(t, entry.flags, KFI_RMA | (s->slot[n].step == WRITING ? KFI_WRITE : KFI_READ));
		if (s->slot[n].step == READING)
			EXPECT(t, pair_is(s->slot[n].mem, PART, s->slot[n].seed), "other bytes");
	}
	return n;
}

/* Goes on until there are @done more, or none within @ms, or one has failed. */
static void go_on(struct kfi_test *t, struct stream *s, unsigned int done, int ms)
{
	unsigned int end = s->done + done;
	enum step step;
	int n;

	while (s->done < end && !s->err && !t->failures) {
		n = reap(t, s, ms);
		if (n < 0)
			break;
		step = s->slot[n].step == WRITING ? READING : WRITING;
		s->slot[n].step = IDLE;
		if (!s->err)
			post(t, s, n, step);
	}
}

/* Nothing new, and each that is under way ends. */
static void drain(struct kfi_test *t, struct stream *s)
{
	unsigned int left = s->outstanding;
	int n;

	while (s->outstanding && !t->failures) {
		n = reap(t, s, PAIR_WAIT_MS);
		if (n == NONE)
			break;
		if (n != OTHER)
			s->slot[n].step = IDLE;
	}
	EXPECT(t, !s->outstanding, "%u of %u have not ended", s->outstanding, left);
	/* If all of these were posted before a word to the server, its failure comes last. */
	while (reap(t, s, 0) == OTHER && !t->failures)
		;
}

static struct stream *begin(struct kfi_test *t)
{
	struct stream *s = kzalloc_obj(*s);
	unsigned long n;

	if (!EXPECT(t, s, "no memory"))
		return NULL;
	s->l = pair_link(t, PAIR_READ | PAIR_WRITE);
	for (n = 0; s->l && n < SLOTS && !t->failures; n++) {
		s->slot[n].mem = kmalloc(PART, GFP_KERNEL);
		s->slot[n].seed = s->l->seed + n;
		if (EXPECT(t, s->slot[n].mem, "no memory"))
			post(t, s, n, WRITING);
	}
	if (s->l)
		go_on(t, s, 2 * SLOTS, PAIR_WAIT_MS);
	if (s->l && !t->failures && EXPECT_EQ(t, s->err, 0))
		return s;
	if (s->l)
		pair_close(t, s->l);
	for (n = 0; n < SLOTS; n++)
		kfree(s->slot[n].mem);
	kfree(s);
	return NULL;
}

static void end(struct kfi_test *t, struct stream *s)
{
	unsigned int n;

	pair_close(t, s->l);
	for (n = 0; n < SLOTS; n++)
		kfree(s->slot[n].mem);
	kfree(s);
}

/* The connection is over, in the middle of it all. */
static void broken(struct kfi_test *t, struct stream *s)
{
	struct pair_link *l = s->l;
	struct kfi_cq_err_entry err;

	ktap_note("after %u transfers error %d, %u more under way", s->done, s->err,
		  s->outstanding);
	drain(t, s);
	ep_failed_op(t, l->side.rx, l->in[0], KFI_ECANCELED, &err);
	pair_ended(t, l);
	EXPECT_EQ(t, kfi_send(l->side.ep, l->out, 8, NULL, 0, NULL), -KFI_ENOTCONN);
	ep_nothing(t, l->side.rx);
}

static bool receive(struct kfi_test *t, struct pair_link *l)
{
	return EXPECT_EQ(t, kfi_recv(l->side.ep, l->in[0], PAIR_MESSAGE, NULL, 0, l->in[0]), 0);
}

/* The server closes its endpoint, and takes others. */
void pair_dropped_case(struct kfi_test *t)
{
	struct stream *s = begin(t);
	struct pair_msg *out;

	if (!s)
		return;
	out = (struct pair_msg *)s->l->out;
	*out = (struct pair_msg){ .op = PAIR_DROP };
	if (receive(t, s->l) &&
	    EXPECT_EQ(t, kfi_inject(s->l->side.ep, out, sizeof(*out), 0), 0)) {
		s->words = 1;
		go_on(t, s, INT_MAX, PAIR_WAIT_MS);
		if (EXPECT(t, s->err, "the connection goes on"))
			broken(t, s);
	}
	end(t, s);
	pair_works(t);
}

/* The server's machine is no more. */
void pair_killed_case(struct kfi_test *t)
{
	struct stream *s = begin(t);

	if (!s)
		return;
	if (receive(t, s->l)) {
		pr_info("pair: kill peer\n");
		go_on(t, s, INT_MAX, PAIR_WAIT_MS);
		if (EXPECT(t, s->err, "the connection goes on"))
			broken(t, s);
	}
	end(t, s);
}

/*
 * The wire is cut and mended. Whether a connection outlives that depends on how long it takes; if it
 * does, it has lost nothing, and if it doesn't, everything has been told.
 */
void pair_cut_case(struct kfi_test *t)
{
	struct stream *s = begin(t);
	unsigned long mend = jiffies + 2 * HZ;

	if (!s)
		return;
	if (receive(t, s->l)) {
		pr_info("pair: link down\n");
		while (time_before(jiffies, mend) && !s->err && !t->failures)
			go_on(t, s, 1, 100);
		pr_info("pair: link up\n");
		go_on(t, s, 4 * SLOTS, PAIR_WAIT_MS);
		if (s->err)
			broken(t, s);
		else
			drain(t, s);
	}
	end(t, s);
}
