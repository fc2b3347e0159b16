// SPDX-License-Identifier: GPL-2.0
/* Requests as transfers: see transfers.h. */
#include "ep/ep.h"
#include "errors.h"
#include "transfers.h"

#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define FETCHED		(KFI_RMA | KFI_READ)
#define WRITTEN		(KFI_RMA | KFI_WRITE)

/**
 * struct transfers - a connection from the side of the requests
 * @p: The connection. Requests are transfers of its first side.
 * @mr: A region of the second side: the environment's scratch memory.
 */
struct transfers {
	struct ep_pair *p;
	struct kfid_mr *mr;
};

enum move {
	MOVE_SEND,
	MOVE_WRITE,
	MOVE_RECV,
	MOVE_READ,
	MOVES
};

void transfers_close(struct kfi_test *t)
{
	struct transfers *x = t->env->transfers;

	if (!x)
		return;
	if (x->mr)
		EXPECT_EQ(t, kfi_close(&x->mr->fid), 0);
	if (x->p)
		ep_pair_close(t, x->p);
	kfree(x);
	t->env->transfers = NULL;
}

/* Returns the connection. NULL is a failure that was reported. */
static struct transfers *transfers_open(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct transfers *x = t->env->transfers;

	if (x)
		return x;
	x = kzalloc_obj(*x);
	if (!EXPECT(t, x, "no memory"))
		return NULL;
	t->env->transfers = x;
	x->p = ep_connected(t, &wants);
	if (x->p && EXPECT_EQ(t, kfi_mr_reg(x->p->side[1].domain, t->env->scratch, ROW_LEN, KFI_REMOTE, 0,
					    0, 0, &x->mr, NULL), 0) &&
	    EXPECT(t, x->p->info->tx_attr->iov_limit >= t->env->max_segs, "transfers have few segments"))
		return x;
	transfers_close(t);
	return NULL;
}

static ssize_t message(struct kfid_ep *ep, const struct reg_req *r, bool in)
{
	struct kfi_msg msg = { .type = r->type, .iov_count = r->count };

	switch (r->call) {
	case REG:
		return in ? kfi_recv(ep, (void *)r->buf, r->len, NULL, 0, NULL) :
			    kfi_send(ep, r->buf, r->len, NULL, 0, NULL);
	case REGV:
		return (in ? kfi_recvv : kfi_sendv)(ep, r->kv, NULL, r->count, 0, NULL);
	case REGBV:
		return (in ? kfi_recvbv : kfi_sendbv)(ep, r->bv, NULL, r->count, 0, NULL);
	case REGSGL:
		return (in ? kfi_recvsgl : kfi_sendsgl)(ep, r->sg, NULL, r->count, 0, NULL);
	case ATTR_KVEC:
		msg.msg_iov = r->kv;
		break;
	case ATTR_BVEC:
		msg.msg_biov = r->bv;
		break;
	default:
		msg.msg_sgl = r->sg;
	}
	return (in ? kfi_recvmsg : kfi_sendmsg)(ep, &msg, 0);
}

static ssize_t rma(struct kfid_ep *ep, const struct reg_req *r, bool in, u64 at, u64 key)
{
	if (r->call == REG)
		return in ? kfi_read(ep, (void *)r->buf, r->len, NULL, 0, at, key, NULL) :
			    kfi_write(ep, r->buf, r->len, NULL, 0, at, key, NULL);
	if (reg_call_in(r->call, KVEC_CALLS))
		return (in ? kfi_readv : kfi_writev)(ep, r->kv, NULL, r->count, 0, at, key, NULL);
	if (reg_call_in(r->call, BVEC_CALLS))
		return (in ? kfi_readbv : kfi_writebv)(ep, r->bv, NULL, r->count, 0, at, key, NULL);
	return (in ? kfi_readsgl : kfi_writesgl)(ep, r->sg, NULL, r->count, 0, at, key, NULL);
}

static ssize_t post(struct transfers *x, const struct reg_req *req, enum move move)
{
	struct kfid_ep *ep = x->p->side[0].ep;

	if (move == MOVE_SEND || move == MOVE_RECV)
		return message(ep, req, move == MOVE_RECV);
	return rma(ep, req, move == MOVE_READ, x->mr->iova, kfi_mr_key(x->mr));
}

void transfers_refused(struct kfi_test *t, const struct reg_req *req, int want, bool writes)
{
	enum move move;

	for (move = writes ? MOVE_RECV : MOVE_SEND; move < MOVES; move++) {
		struct transfers *x = transfers_open(t);
		ssize_t ret;

		if (!x)
			return;
		ret = post(x, req, move);
		if (EXPECT(t, ret == want, "transfer %u is %zd, expected %d", move, ret, want))
			t->env->refused[-want]++;
		/* The next one begins anew. */
		if (!ret)
			transfers_close(t);
	}
}

int transfers_try(struct kfi_test *t, const struct reg_req *req)
{
	struct transfers *x = transfers_open(t);
	int ret = x ? post(x, req, MOVE_SEND) : 0;

	if (!ret)
		transfers_close(t);
	return ret;
}

/* The memory of a request goes to the other side, or that of the other side to it. */
static void moved(struct kfi_test *t, struct transfers *x, const struct reg_req *req, enum move move,
		  u8 *mem, size_t len)
{
	bool in = move == MOVE_RECV || move == MOVE_READ;
	static const u64 flags[] = { SENT, WRITTEN, RECEIVED, FETCHED };
	struct ep_side *here = &x->p->side[0], *there = &x->p->side[1];
	u8 *scratch = t->env->scratch, *to = in ? mem : scratch;
	struct kfi_cq_data_entry entry;

	pattern(in ? scratch : mem, len, move);
	memset(to, 0, len);
	if (move == MOVE_SEND)
		EXPECT_EQ(t, kfi_recv(there->ep, scratch, len, NULL, 0, NULL), 0);
	EXPECT_EQ(t, post(x, req, move), 0);
	if (move == MOVE_RECV)
		EXPECT_EQ(t, kfi_send(there->ep, scratch, len, NULL, 0, NULL), 0);
	if (t->failures)
		return;
	ep_completed(t, move == MOVE_RECV ? here->rx : here->tx, NULL, flags[move], &entry);
	if (move == MOVE_SEND)
		ep_completed(t, there->rx, NULL, RECEIVED, &entry);
	else if (move == MOVE_RECV)
		ep_completed(t, there->tx, NULL, SENT, NULL);
	EXPECT(t, pattern_is(to, len, move), "transfer %u: other bytes have come", move);
}

void transfers_work(struct kfi_test *t, enum reg_call call, u8 *mem, size_t len, size_t split)
{
	struct transfers *x = transfers_open(t);
	enum move move;
	struct reg_req req;

	if (!x || !EXPECT_EQ(t, reg_prepare(t->env, &req, call, mem, len, split), 0))
		return;
	for (move = MOVE_SEND; move < MOVES && !t->failures; move++)
		moved(t, x, &req, move, mem, len);
	reg_finish(t->env, &req);
	/* A failed transfer may still be pending. */
	if (t->failures)
		transfers_close(t);
}
