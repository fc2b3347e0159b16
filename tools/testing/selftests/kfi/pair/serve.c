// SPDX-License-Identifier: GPL-2.0
/* The requests of a client. */
#include <linux/errno.h>

#include "kfi_pair_calls.h"
#include "server.h"

#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define FETCHED		(KFI_RMA | KFI_READ)
#define WRITTEN		(KFI_RMA | KFI_WRITE)
#define HIT		(KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA)

static struct pair_msg *slot(struct connection *c, unsigned long n)
{
	return (struct pair_msg *)(c->in + n * PAIR_MESSAGE);
}

/* One after the other by each of the calls. */
static bool receive(struct connection *c, unsigned long n)
{
	ssize_t ret = pair_recv(c->ep, n % PAIR_RECVS, slot(c, n), PAIR_MESSAGE, (void *)n);

	/* Of a connection that is gone the completions tell. */
	if (ret && ret != -KFI_ENOTCONN)
		wrong("posting a receive: %zd", ret);
	return !ret;
}

bool serve_receives(struct connection *c)
{
	unsigned long n;

	for (n = 0; n < PAIR_RECEIVES; n++)
		if (!receive(c, n))
			return false;
	return true;
}

/* A completion, or false: the connection has ended, or the thread is to. */
static bool completion(struct kfid_cq *cq, struct kfi_cq_data_entry *entry)
{
	ssize_t n;

	do {
		n = kfi_cq_sread(cq, entry, 1, NULL, STOP_MS);
	} while (n == -KFI_EAGAIN && !kthread_should_stop());
	return n == 1;
}

/* The request that was posted with @ret has been carried out. */
static bool done(struct connection *c, ssize_t ret, u64 flags)
{
	struct kfi_cq_data_entry entry;

	if (ret) {
		if (ret != -KFI_ENOTCONN)
			wrong("posting: %zd", ret);
		return false;
	}
	if (!flags)
		return true;
	if (!completion(c->tx, &entry))
		return false;
	if (entry.flags != flags || entry.op_context != c) {
		wrong("a completion with flags %llx instead of %llx", entry.flags, flags);
		return false;
	}
	return true;
}

static bool answer(struct connection *c, struct pair_msg *out, size_t len)
{
	return done(c, pair_send(c->ep, out->call, out, sizeof(*out) + len, out->data, c),
		    pair_call_injects(out->call) ? 0 : SENT);
}

/* Is it a message as it was sent? 0, or a negative errno. */
static int look(const struct pair_msg *in, const struct kfi_cq_data_entry *entry)
{
	bool echo = in->op == PAIR_ECHO, data = echo && pair_call_has_data(in->call);
	size_t len = echo ? in->len : 0;

	if (entry->len != sizeof(*in) + len)
		return -EMSGSIZE;
	if (entry->flags != (RECEIVED | (data ? KFI_REMOTE_CQ_DATA : 0)))
		return -EPROTO;
	if (data && entry->data != in->data)
		return -EILSEQ;
	return pair_is(in + 1, len, in->seed) ? 0 : -EBADMSG;
}

static int check(struct connection *c, const struct pair_msg *in)
{
	bool same = pair_holds(c->memory, MEMORY, in->base, PAIR_GUARD + in->addr, in->len,
			       in->seed);

	return same ? 0 : -EBADMSG;
}

static bool pull(struct connection *c, const struct pair_msg *in, struct pair_msg *out)
{
	memset(c->scratch, 0, PAIR_REGION);
	if (!done(c, pair_read(c->ep, in->call, c->scratch, in->len, in->addr, in->key, c),
		  FETCHED))
		return false;
	out->status = pair_is(c->scratch, in->len, in->seed) ? 0 : EBADMSG;
	return true;
}

static bool push(struct connection *c, const struct pair_msg *in)
{
	pair_fill(c->scratch, in->len, in->seed);
	return done(c, pair_write(c->ep, in->call, c->scratch, in->len, in->data, in->addr, in->key,
				  c),
		    pair_call_injects(in->call) ? 0 : WRITTEN);
}

/* Does what is asked, and answers. False: the connection is to end, or has. */
static bool handle(struct connection *c, const struct pair_msg *in,
		   const struct kfi_cq_data_entry *entry)
{
	struct pair_msg *out = (struct pair_msg *)c->out;
	size_t len = 0;

	if (entry->len < sizeof(*in)) {
		wrong("a message of %zu bytes", entry->len);
		return false;
	}
	*out = (struct pair_msg){ .op = in->op, .seed = in->seed + 1, .status = -look(in, entry) };
	switch (in->op) {
	case PAIR_ECHO:
		out->call = in->call;
		out->data = ~in->data & 0xffffffff;
		out->len = in->len;
		len = out->status ? 0 : in->len;
		pair_fill(out + 1, len, out->seed);
		break;
	case PAIR_FILL:
		c->base = in->seed;
		pair_fill(c->memory, MEMORY, c->base);
		break;
	case PAIR_CHECK:
		out->status = out->status ?: -check(c, in);
		out->data = c->data;
		break;
	case PAIR_PULL:
		if (!pull(c, in, out))
			return false;
		break;
	case PAIR_PUSH:
		if (!push(c, in))
			return false;
		break;
	case PAIR_STATUS:
		out->base = atomic_read(&connections_open);
		out->seed = wrong_so_far();
		break;
	case PAIR_DEAF:
		listeners_deaf();
		break;
	case PAIR_LISTEN:
		out->status = -listeners_listen();
		break;
	case PAIR_DROP:
		return false;
	default:
		out->status = EOPNOTSUPP;
	}
	if (out->status)
		wrong("request %u by call %u: status %u", in->op, in->call, out->status);
	return answer(c, out, len);
}

bool serve(struct connection *c)
{
	struct kfi_cq_data_entry entry;

	while (completion(c->rx, &entry)) {
		unsigned long n = (unsigned long)entry.op_context;

		if (n >= PAIR_RECEIVES) {
			wrong("a completion of no receive");
			return false;
		}
		if (entry.flags == HIT)
			c->data = entry.data;
		else if (!handle(c, slot(c, n), &entry))
			return false;
		if (!receive(c, n))
			return false;
	}
	return true;
}
