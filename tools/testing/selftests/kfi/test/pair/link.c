// SPDX-License-Identifier: GPL-2.0
/* A connection to the server: opening it, asking over it, closing it. */
#include <linux/delay.h>

#include <kfi_pair_calls.h>
#include <kfi_pair_info.h>

#include "pair.h"

/* Each connection has a pattern of its own. */
static u32 next_seed(void)
{
	static atomic_t last;

	return kfi_seed + 16 * atomic_inc_return(&last);
}

struct pair_link *pair_open(struct kfi_test *t)
{
	static const struct ep_wants wants = { .tx_size = 32, .rx_size = 8, .cq_size = 256 };
	struct pair_link *l = kzalloc_obj(*l);
	unsigned int i;

	if (!EXPECT(t, l, "no memory"))
		return NULL;
	l->seed = next_seed();
	l->out = kmalloc(PAIR_MESSAGE, GFP_KERNEL);
	for (i = 0; i < PAIR_SLOTS; i++)
		l->in[i] = kmalloc(PAIR_MESSAGE, GFP_KERNEL);
	if (!EXPECT(t, l->out && l->in[0] && l->in[1], "no memory") ||
	    !EXPECT_EQ(t, pair_getinfo(kfi_provider_name, kfi_peer_address, kfi_port, 0, &l->info),
		       0) ||
	    !ep_side_open(t, &l->side, l->info, &wants) ||
	    !ep_open(t, &l->side, l->info, &wants)) {
		pair_close(t, l);
		return NULL;
	}
	return l;
}

bool pair_connect(struct kfi_test *t, struct pair_link *l, u32 flags)
{
	struct pair_hello hello = { .magic = PAIR_MAGIC, .flags = flags, .seed = l->seed };

	pair_fill(hello.rest, sizeof(hello.rest), l->seed);
	return EXPECT_EQ(t, kfi_connect(l->side.ep, NULL, &hello, sizeof(hello)), 0);
}

bool pair_connected(struct kfi_test *t, struct pair_link *l)
{
	struct ep_event *e = kzalloc_obj(*e);
	bool ok;

	ok = EXPECT(t, e, "no memory") &&
	     EXPECT(t, ep_event(t, l->side.eq, KFI_CONNECTED, &l->side.ep->fid, e) >=
			       sizeof(e->entry) + sizeof(l->welcome), "private data are missing");
	if (ok) {
		memcpy(&l->welcome, e->entry.data, sizeof(l->welcome));
		ok = EXPECT(t, l->welcome.seed == l->seed &&
				       pair_is(l->welcome.rest, sizeof(l->welcome.rest), l->seed + 1),
			    "other private data");
	}
	kfree(e);
	return ok;
}

struct pair_link *pair_link(struct kfi_test *t, u32 flags)
{
	struct pair_link *l = pair_open(t);

	if (!l)
		return NULL;
	if (pair_connect(t, l, flags) && pair_connected(t, l))
		return l;
	pair_close(t, l);
	return NULL;
}

void pair_close(struct kfi_test *t, struct pair_link *l)
{
	unsigned int i;

	ep_side_close(t, &l->side);
	kfi_freeinfo(l->info);
	kfree(l->out);
	for (i = 0; i < PAIR_SLOTS; i++)
		kfree(l->in[i]);
	kfree(l);
}

bool pair_ended(struct kfi_test *t, struct pair_link *l)
{
	struct kfi_eq_cm_entry entry;
	u32 event = ~0;

	return EXPECT_EQ(t, kfi_eq_sread(l->side.eq, &event, &entry, sizeof(entry), PAIR_WAIT_MS, 0),
			 sizeof(entry)) &&
	       EXPECT_EQ(t, event, KFI_SHUTDOWN) &&
	       EXPECT(t, entry.fid == &l->side.ep->fid, "an event about another object");
}

/* Do remote CQ data come to this side on the way? They take a receive of their own. */
static bool is_hit(const struct pair_msg *m)
{
	return m->op == PAIR_PUSH && pair_call_has_data(m->call);
}

/* The answer to @m, with @len bytes behind its header. */
static const struct pair_msg *answer(struct kfi_test *t, struct pair_link *l,
				     const struct pair_msg *m, size_t len)
{
	struct pair_msg *out = (struct pair_msg *)l->out, *in = (struct pair_msg *)l->in[0];
	bool data = m->op == PAIR_ECHO && pair_call_has_data(m->call);
	struct kfi_cq_data_entry entry;

	if (is_hit(m)) {
		if (!ep_completed(t, l->side.rx, l->in[1],
				  KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA, &entry))
			return NULL;
		EXPECT_EQ(t, entry.data, m->data);
	}
	if (!ep_completed(t, l->side.rx, in,
			  KFI_MSG | KFI_RECV | (data ? KFI_REMOTE_CQ_DATA : 0), &entry))
		return NULL;
	if (!EXPECT(t, entry.len >= sizeof(*in), "an answer of %zu bytes", entry.len) ||
	    !EXPECT(t, in->op == out->op, "an answer to %u instead of %u", in->op, out->op) ||
	    !EXPECT(t, !in->status, "the server says %u to %u by call %u", in->status, m->op,
		    m->call) ||
	    !EXPECT_EQ(t, entry.len, sizeof(*in) + len) ||
	    !EXPECT(t, pair_is(in + 1, len, out->seed + 1), "the answer's bytes are others"))
		return NULL;
	if (data)
		EXPECT_EQ(t, entry.data, ~out->data & 0xffffffff);
	return in;
}

const struct pair_msg *pair_ask(struct kfi_test *t, struct pair_link *l, const struct pair_msg *m)
{
	bool echo = m->op == PAIR_ECHO;
	unsigned int call = echo ? m->call : 0;
	size_t len = echo ? m->len : 0;
	struct pair_msg *out = (struct pair_msg *)l->out;

	*out = *m;
	pair_fill(out + 1, len, m->seed);
	memset(l->in[0], 0, PAIR_MESSAGE);
	if (is_hit(m) && !EXPECT_EQ(t, kfi_recv(l->side.ep, l->in[1], PAIR_MESSAGE, NULL, 0,
						l->in[1]), 0))
		return NULL;
	if (!EXPECT_EQ(t, pair_recv(l->side.ep, m->seed % PAIR_RECVS, l->in[0], PAIR_MESSAGE,
				    l->in[0]), 0) ||
	    !EXPECT_EQ(t, pair_send(l->side.ep, call, out, sizeof(*out) + len, m->data, out), 0))
		return NULL;
	if (!pair_call_injects(call) &&
	    !ep_completed(t, l->side.tx, out, KFI_MSG | KFI_SEND, NULL))
		return NULL;
	if (pair_call_injects(call))
		memset(out + 1, 0, len);
	return answer(t, l, m, len);
}

void pair_works(struct kfi_test *t)
{
	struct pair_link *l = pair_link(t, 0);
	struct pair_msg echo = { .op = PAIR_ECHO, .len = 1000 };

	if (!l)
		return;
	echo.seed = l->seed;
	pair_ask(t, l, &echo);
	pair_close(t, l);
}

void pair_server_is_content(struct kfi_test *t, struct pair_link *l)
{
	static const struct pair_msg status = { .op = PAIR_STATUS };
	const struct pair_msg *in;
	unsigned int ms;

	/* It learns of the end of the others by and by. */
	for (ms = 0; ms < PAIR_WAIT_MS; ms += 20) {
		in = pair_ask(t, l, &status);
		if (!in || in->base == 1)
			break;
		msleep(20);
	}
	if (in) {
		EXPECT_EQ(t, in->base, 1);
		EXPECT(t, !in->seed, "the server says what is wrong: %u", in->seed);
	}
}
