// SPDX-License-Identifier: GPL-2.0
/* Connecting: private data, being refused, nobody there, many at once. */
#include <kfi_pair_calls.h>

#include "pair.h"

/* Both sides check what comes with a request and with its acceptance. */
void pair_data_case(struct kfi_test *t)
{
	struct pair_link *l;
	int i;

	for (i = 0; i < 3 && !t->failures; i++) {
		l = pair_link(t, 0);
		if (!l)
			return;
		if (i == 2)
			pair_server_is_content(t, l);
		else if (i == 1 && EXPECT_EQ(t, kfi_shutdown(l->side.ep, 0), 0))
			pair_ended(t, l);
		pair_close(t, l);
	}
}

void pair_reject_case(struct kfi_test *t)
{
	struct pair_link *l = pair_open(t);
	struct kfi_eq_err_entry err;

	if (!l)
		return;
	if (pair_connect(t, l, PAIR_REFUSE)) {
		ep_failed(t, l->side.eq, &l->side.ep->fid, KFI_ECONNREFUSED, &err);
		if (EXPECT(t, err.err_data && err.err_data_size >= PAIR_REJECT, "no private data"))
			EXPECT(t, pair_is(err.err_data, PAIR_REJECT, l->seed + 1),
			       "other private data");
	}
	pair_close(t, l);
	pair_works(t);
}

/* The listener goes, connections stay; and comes again. */
void pair_nobody_case(struct kfi_test *t)
{
	static const struct pair_msg deaf = { .op = PAIR_DEAF }, listen = { .op = PAIR_LISTEN };
	struct pair_link *l = pair_link(t, 0), *in_vain;
	struct kfi_eq_err_entry err;

	if (!l)
		return;
	if (pair_ask(t, l, &deaf)) {
		in_vain = pair_open(t);
		if (in_vain) {
			if (pair_connect(t, in_vain, 0))
				ep_failed(t, in_vain->side.eq, &in_vain->side.ep->fid,
					  KFI_ECONNREFUSED, &err);
			pair_close(t, in_vain);
		}
		if (pair_ask(t, l, &listen))
			pair_works(t);
	}
	pair_server_is_content(t, l);
	pair_close(t, l);
}

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

static const size_t echo_len = 500;

static bool one_open(struct kfi_test *t, struct pair_link *l, struct one *o, u32 seed)
{
	static const struct ep_wants wants = { .tx_size = 4, .rx_size = 4 };
	struct ep_side side = l->side;
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
	if (!ep_open(t, &side, l->info, &wants)) {
		if (side.ep)
			kfi_close(&side.ep->fid);
		return false;
	}
	o->ep = side.ep;
	return EXPECT_EQ(t, kfi_connect(o->ep, NULL, &hello, sizeof(hello)), 0);
}

static struct one *one_of(struct one *ones, const struct kfid *fid)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		if (ones[i].ep && &ones[i].ep->fid == fid)
			return &ones[i];
	return NULL;
}

static bool all_connected(struct kfi_test *t, struct pair_link *l, struct one *ones)
{
	struct ep_event *e = kzalloc_obj(*e);
	struct kfi_eq_err_entry err = {};
	unsigned int i;

	for (i = 0; EXPECT(t, e, "no memory") && i < MANY && !t->failures; i++) {
		struct pair_welcome *w = (struct pair_welcome *)e->entry.data;
		u32 event = ~0;
		ssize_t len = kfi_eq_sread(l->side.eq, &event, e, sizeof(*e), PAIR_WAIT_MS, 0);
		struct one *o;

		if (len == -KFI_EAVAIL && kfi_eq_readerr(l->side.eq, &err, 0) > 0)
			ktap_note("connection %u of %u: error %d", i, MANY, err.err);
		if (!EXPECT(t, len >= (ssize_t)(sizeof(e->entry) + sizeof(*w)), "an event of %zd",
			    len) ||
		    !EXPECT_EQ(t, event, KFI_CONNECTED))
			break;
		o = one_of(ones, e->entry.fid);
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
static void all_echo(struct kfi_test *t, struct pair_link *l, struct one *ones)
{
	struct kfi_cq_data_entry entry;
	unsigned int i;

	for (i = 0; i < MANY && !t->failures; i++) {
		struct one *o = &ones[i];

		EXPECT_EQ(t, kfi_recv(o->ep, o->in, PAIR_MESSAGE, NULL, 0, o), 0);
		EXPECT_EQ(t, kfi_send(o->ep, o->out, sizeof(struct pair_msg) + echo_len, NULL, 0, o),
			  0);
	}
	for (i = 0; i < 2 * MANY && !t->failures; i++) {
		bool sent = i < MANY;
		struct one *o;

		if (!EXPECT_EQ(t, kfi_cq_sread(sent ? l->side.tx : l->side.rx, &entry, 1, NULL,
					       PAIR_WAIT_MS), 1))
			break;
		o = entry.op_context;
		EXPECT_EQ(t, entry.flags, KFI_MSG | (sent ? KFI_SEND : KFI_RECV));
		EXPECT_EQ(t, o->done++, sent ? 0 : 1);
	}
	for (i = 0; i < MANY && !t->failures; i++) {
		const struct pair_msg *in = (const struct pair_msg *)ones[i].in;

		EXPECT(t, in->op == PAIR_ECHO && !in->status && in->len == echo_len &&
				  pair_is(in + 1, echo_len, ones[i].seed + 1),
		       "connection %u gets other bytes", i);
	}
}

void pair_many_case(struct kfi_test *t)
{
	struct one *ones = kcalloc(MANY, sizeof(*ones), GFP_KERNEL);
	struct pair_link *l = pair_link(t, 0);
	unsigned int i;
	bool ok = true;

	if (!l || !EXPECT(t, ones, "no memory"))
		goto out;
	for (i = 0; ok && i < MANY; i++)
		ok = one_open(t, l, &ones[i], l->seed + 100000 + i);
	if (ok && all_connected(t, l, ones))
		all_echo(t, l, ones);
	for (i = 0; i < MANY; i++) {
		if (ones[i].ep)
			EXPECT_EQ(t, kfi_close(&ones[i].ep->fid), 0);
		kfree(ones[i].in);
		kfree(ones[i].out);
	}
	pair_server_is_content(t, l);
out:
	if (l)
		pair_close(t, l);
	kfree(ones);
}
