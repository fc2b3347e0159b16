// SPDX-License-Identifier: GPL-2.0
/* Many connections at once, with receives of their own, or with some that they share. */
#include <linux/slab.h>

#include <kfi_pair_calls.h>

#include "pair.h"

#define MANY	64

/* An endpoint among many, with what it has of its own. */
struct one {
	struct kfid_ep *ep;
	u32 seed;
	u8 *out;
	u8 *in;
	bool connected;
	unsigned int done;
};

/* Receives that all of them share, fewer than there are messages. */
#define SHARED	16

struct many {
	struct pair_link *link;
	struct one one[MANY];
	struct kfid_ep *srx;
	u8 *slots;
};

static const size_t echo_len = 500;

static bool one_open(struct kfi_test *t, struct many *m, struct one *o, u32 seed)
{
	struct ep_wants wants = { .tx_size = 4, .rx_size = 4, .srx = m->srx };
	struct ep_side side = m->link->side;
	struct pair_hello hello = { .magic = PAIR_MAGIC, .seed = seed };
	struct pair_msg *out;

	o->seed = seed;
	o->in = kzalloc(PAIR_MESSAGE, GFP_KERNEL);
	o->out = kzalloc(PAIR_MESSAGE, GFP_KERNEL);
	if (!EXPECT(t, o->in && o->out, "no memory"))
		return false;
	out = (struct pair_msg *)o->out;
	*out = (struct pair_msg){ .op = PAIR_ECHO, .len = echo_len, .seed = seed };
	pair_fill(out + 1, echo_len, seed);
	pair_fill(hello.rest, sizeof(hello.rest), seed);
	side.ep = NULL;
	if (!ep_open(t, &side, m->link->info, &wants)) {
		if (side.ep)
			kfi_close(&side.ep->fid);
		return false;
	}
	o->ep = side.ep;
	return EXPECT_EQ(t, kfi_connect(o->ep, NULL, &hello, sizeof(hello)), 0);
}

static struct one *one_of(struct many *m, const struct kfid *fid)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		if (m->one[i].ep && &m->one[i].ep->fid == fid)
			return &m->one[i];
	return NULL;
}

static bool shared_receive(struct kfi_test *t, struct many *m, u8 *slot)
{
	return EXPECT_EQ(t, kfi_recv(m->srx, slot, PAIR_MESSAGE, NULL, 0, slot), 0);
}

/* Whose message has come to a receive that all share; the receive is posted again. */
static struct one *shared_came(struct kfi_test *t, struct many *m, u8 *slot)
{
	const struct pair_msg *in = (const struct pair_msg *)slot;
	unsigned int i;

	for (i = 0; i < MANY && m->one[i].seed + 1 != in->seed; i++)
		;
	if (!EXPECT(t, i < MANY, "a message to nobody"))
		return NULL;
	memcpy(m->one[i].in, slot, PAIR_MESSAGE);
	return shared_receive(t, m, slot) ? &m->one[i] : NULL;
}

static bool all_connected(struct kfi_test *t, struct many *m)
{
	struct ep_event *e = kzalloc_obj(*e);
	struct kfi_eq_err_entry err = {};
	struct kfid_eq *eq = m->link->side.eq;
	unsigned int i;

	for (i = 0; EXPECT(t, e, "no memory") && i < MANY && !t->failures; i++) {
		struct pair_welcome *w = (struct pair_welcome *)e->entry.data;
		u32 event = ~0;
		ssize_t len = kfi_eq_sread(eq, &event, e, sizeof(*e), PAIR_WAIT_MS, 0);
		struct one *o;

		if (len == -KFI_EAVAIL && kfi_eq_readerr(eq, &err, 0) > 0)
			ktap_note("connection %u of %u: error %d", i, MANY, err.err);
		if (!EXPECT(t, len >= (ssize_t)(sizeof(e->entry) + sizeof(*w)), "an event of %zd",
			    len) ||
		    !EXPECT_EQ(t, event, KFI_CONNECTED))
			break;
		o = one_of(m, e->entry.fid);
		if (!EXPECT(t, o && !o->connected, "an event about nothing, or twice"))
			break;
		o->connected = true;
		EXPECT(t, w->seed == o->seed && pair_is(w->rest, sizeof(w->rest), o->seed + 1),
		       "private data of another connection");
	}
	kfree(e);
	return !t->failures;
}

/* All of them ask; the answers and completions come in whatever order. */
static void all_echo(struct kfi_test *t, struct many *m)
{
	struct ep_side *side = &m->link->side;
	struct kfi_cq_data_entry entry;
	unsigned int i;

	for (i = 0; i < MANY && !t->failures; i++) {
		struct one *o = &m->one[i];

		if (!m->srx)
			EXPECT_EQ(t, kfi_recv(o->ep, o->in, PAIR_MESSAGE, NULL, 0, o), 0);
		EXPECT_EQ(t, kfi_send(o->ep, o->out, sizeof(struct pair_msg) + echo_len, NULL, 0, o),
			  0);
	}
	for (i = 0; i < 2 * MANY && !t->failures; i++) {
		bool sent = i < MANY;
		struct one *o;

		if (!EXPECT_EQ(t, kfi_cq_sread(sent ? side->tx : side->rx, &entry, 1, NULL,
					       PAIR_WAIT_MS), 1))
			break;
		o = entry.op_context;
		if (!sent && m->srx) {
			o = shared_came(t, m, entry.op_context);
			if (!o)
				break;
		}
		EXPECT_EQ(t, entry.flags, KFI_MSG | (sent ? KFI_SEND : KFI_RECV));
		EXPECT_EQ(t, o->done++, sent ? 0 : 1);
	}
	for (i = 0; i < MANY && !t->failures; i++) {
		const struct pair_msg *in = (const struct pair_msg *)m->one[i].in;

		EXPECT(t, in->op == PAIR_ECHO && !in->status && in->len == echo_len &&
				  pair_is(in + 1, echo_len, m->one[i].seed + 1),
		       "connection %u gets other bytes", i);
	}
}

static bool shared_open(struct kfi_test *t, struct many *m)
{
	struct kfid_ep *srx;
	unsigned int i;

	m->slots = kvcalloc(SHARED, PAIR_MESSAGE, GFP_KERNEL);
	if (!EXPECT(t, m->slots, "no memory") ||
	    !EXPECT_EQ(t, kfi_srx_context(m->link->side.domain, NULL, &srx, NULL), 0))
		return false;
	m->srx = srx;
	if (!EXPECT_EQ(t, kfi_ep_bind(srx, &m->link->side.rx->fid, KFI_RECV), 0))
		return false;
	for (i = 0; i < SHARED; i++)
		if (!shared_receive(t, m, m->slots + i * PAIR_MESSAGE))
			return false;
	return true;
}

/* The receives that are left are cancelled. */
static void shared_close(struct kfi_test *t, struct many *m)
{
	struct kfi_cq_data_entry entry;
	struct kfi_cq_err_entry err = {};
	unsigned int i;

	EXPECT_EQ(t, kfi_close(&m->srx->fid), 0);
	for (i = 0; i < SHARED && !t->failures; i++) {
		EXPECT_EQ(t, kfi_cq_sread(m->link->side.rx, &entry, 1, NULL, PAIR_WAIT_MS),
			  -KFI_EAVAIL);
		EXPECT_EQ(t, kfi_cq_readerr(m->link->side.rx, &err, 0), 1);
		EXPECT_EQ(t, err.err, KFI_ECANCELED);
	}
}

static void many(struct kfi_test *t, struct many *m, bool shares)
{
	unsigned int i;
	bool ok = !shares || shared_open(t, m);

	for (i = 0; ok && i < MANY; i++)
		ok = one_open(t, m, &m->one[i], m->link->seed + 100000 + i);
	if (ok && all_connected(t, m))
		all_echo(t, m);
	for (i = 0; i < MANY; i++) {
		if (m->one[i].ep)
			EXPECT_EQ(t, kfi_close(&m->one[i].ep->fid), 0);
		kfree(m->one[i].in);
		kfree(m->one[i].out);
	}
	if (m->srx)
		shared_close(t, m);
	kvfree(m->slots);
}

static void case_of(struct kfi_test *t, bool shares)
{
	struct many *m = kzalloc_obj(*m);

	if (EXPECT(t, m, "no memory"))
		m->link = pair_link(t, 0);
	if (m && m->link) {
		many(t, m, shares);
		pair_server_is_content(t, m->link);
		pair_close(t, m->link);
	}
	kfree(m);
}

void pair_many_case(struct kfi_test *t)
{
	case_of(t, false);
}

void pair_shared_case(struct kfi_test *t)
{
	case_of(t, true);
}
