// SPDX-License-Identifier: GPL-2.0
/* Completions that are only told where that is asked for, and failures, which are told anyway. */
#include <kfi_atomic.h>

#include "ep.h"

#define LEN		64
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)

static void *ctx(unsigned long n)
{
	return (void *)(0x5e1ec700 + n);
}

/* Posts a message, and a receive for it: by calls without flags, with none, and with one. */
static void post(struct kfi_test *t, struct ep_pair *p, u8 *from, u8 *to, unsigned int how)
{
	struct kvec kv[2] = { { from, 16 }, { to, LEN } };
	struct kfi_msg msg[2];
	int i;

	for (i = 0; i < 2; i++)
		msg[i] = (struct kfi_msg) {
			.type = KFI_KVEC,
			.msg_iov = &kv[i],
			.iov_count = 1,
			.context = ctx(how + 10 * i),
		};
	if (how) {
		u64 flags = how == 2 ? KFI_COMPLETION : 0;

		EXPECT_EQ(t, kfi_recvmsg(p->side[1].ep, &msg[1], flags), 0);
		EXPECT_EQ(t, kfi_sendmsg(p->side[0].ep, &msg[0], flags), 0);
	} else {
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, to, LEN, NULL, 0, ctx(10)), 0);
		EXPECT_EQ(t, kfi_send(p->side[0].ep, from, 16, NULL, 0, ctx(0)), 0);
	}
}

static void selective(struct kfi_test *t, u64 op_flags)
{
	struct ep_wants wants = {
		.bind_flags = KFI_SELECTIVE_COMPLETION,
		.recv_flags = KFI_SELECTIVE_COMPLETION,
		.op_flags = op_flags,
	};
	struct ep_pair *p = ep_connected(t, &wants);
	u8 *mem = kzalloc(4 * LEN, GFP_KERNEL);
	struct kfid_ep *ep;
	int i;

	if (!p || !EXPECT(t, mem, "no memory"))
		goto out;
	pattern(mem, LEN, 2);
	for (i = 0; i < 3; i++)
		post(t, p, mem + i, mem + (i + 1) * LEN, i);
	/* The endpoint's flags are those of calls that have none. */
	for (i = op_flags ? 0 : 2; i < 3; i += 2) {
		ep_completed(t, p->side[0].tx, ctx(i), SENT, NULL);
		ep_completed(t, p->side[1].rx, ctx(10 + i), RECEIVED, NULL);
	}
	for (i = 0; i < 3; i++)
		EXPECT(t, pattern_is(mem + (i + 1) * LEN, 16, 2 + i), "message %d: other bytes", i);
	ep_nothing(t, p->side[0].tx);
	ep_nothing(t, p->side[1].rx);
	/* A failure is told. */
	EXPECT_EQ(t, kfi_recv(p->side[1].ep, mem, LEN, NULL, 0, ctx(20)), 0);
	EXPECT_EQ(t, kfi_shutdown(p->side[0].ep, 0), 0);
	ep_failed_op(t, p->side[1].rx, ctx(20), KFI_ECANCELED, NULL);
	ep_nothing(t, p->side[1].rx);
	p->info->tx_attr->op_flags = BIT_ULL(62);
	EXPECT_EQ(t, kfi_endpoint(p->side[0].domain, p->info, &ep, NULL), -KFI_EBADFLAGS);
	p->info->tx_attr->op_flags = 0;
	p->info->rx_attr->op_flags = KFI_FENCE;
	EXPECT_EQ(t, kfi_endpoint(p->side[0].domain, p->info, &ep, NULL), -KFI_EBADFLAGS);
out:
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

void ep_selective_case(struct kfi_test *t)
{
	selective(t, 0);
	selective(t, KFI_COMPLETION);
}

/* Transfers to and from the peer's memory. */
enum rma_call { CALL_WRITE, CALL_READ, CALL_ADD, CALL_FETCH, CALL_SWAP, CALLS };

static const u64 done[CALLS] = {
	[CALL_WRITE] = KFI_RMA | KFI_WRITE,
	[CALL_READ] = KFI_RMA | KFI_READ,
	[CALL_ADD] = KFI_ATOMIC | KFI_WRITE,
	[CALL_FETCH] = KFI_ATOMIC | KFI_READ,
	[CALL_SWAP] = KFI_ATOMIC | KFI_READ,
};

/* Posts one of them, by the call that has flags, or by the one that has none. */
static ssize_t post_rma(struct ep_memory *m, enum rma_call call, bool has_flags, u64 flags, void *context)
{
	struct kfid_ep *ep = m->p->side[0].ep;
	u64 at = m->mr->iova, key = kfi_mr_key(m->mr), one = 1;
	struct kvec kv = { m->here, 8 };
	struct kfi_rma_iov there = { at, 8, key };
	struct kfi_ioc operand = { &one, 1 }, result = { m->here, 1 };
	struct kfi_rma_ioc word = { at, 1, key };
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.rma_iov = &there,
		.rma_iov_count = 1,
		.context = context,
	};
	struct kfi_msg_atomic atomic = {
		.msg_iov = &operand,
		.iov_count = 1,
		.rma_iov = &word,
		.rma_iov_count = 1,
		.datatype = KFI_UINT64,
		.op = call == CALL_SWAP ? KFI_CSWAP : KFI_SUM,
		.context = context,
	};

	switch (call) {
	case CALL_WRITE:
		return has_flags ? kfi_writemsg(ep, &msg, flags) :
				   kfi_write(ep, m->here, 8, NULL, 0, at, key, context);
	case CALL_READ:
		return has_flags ? kfi_readmsg(ep, &msg, flags) :
				   kfi_read(ep, m->here, 8, NULL, 0, at, key, context);
	case CALL_ADD:
		return has_flags ? kfi_atomicmsg(ep, &atomic, flags) :
				   kfi_atomic(ep, &one, 1, NULL, 0, at, key, KFI_UINT64, KFI_SUM,
					      context);
	case CALL_FETCH:
		return has_flags ? kfi_fetch_atomicmsg(ep, &atomic, &result, NULL, 1, flags) :
				   kfi_fetch_atomic(ep, &one, 1, NULL, m->here, NULL, 0, at, key,
						    KFI_UINT64, KFI_SUM, context);
	default:
		return has_flags ? kfi_compare_atomicmsg(ep, &atomic, &operand, NULL, 1, &result,
							 NULL, 1, flags) :
				   kfi_compare_atomic(ep, &one, 1, NULL, &one, NULL, m->here, NULL,
						      0, at, key, KFI_UINT64, KFI_CSWAP, context);
	}
}

/*
 * Each by a call without flags, whose flags are the endpoint's; by one with flags, but without
 * KFI_COMPLETION; and by one with it. They complete in their order, so that what isn't told of the ones in
 * between is never told.
 */
static void selective_rma(struct kfi_test *t, u64 op_flags)
{
	struct ep_wants wants = {
		.mr_mode = EP_MODE,
		.caps = KFI_MSG | KFI_RMA | KFI_ATOMIC,
		.bind_flags = KFI_SELECTIVE_COMPLETION,
		.op_flags = op_flags,
	};
	struct ep_memory m = {};
	unsigned int call, how;
	struct kfid_cq *tx;

	if (!ep_memory_open(t, &m, &wants, LEN) ||
	    !EXPECT_EQ(t, kfi_mr_reg(m.p->side[1].domain, m.there, LEN,
				     KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0, 6, 0, &m.mr, NULL), 0))
		goto out;
	tx = m.p->side[0].tx;
	for (call = 0; call < CALLS; call++)
		for (how = 0; how < 3; how++)
			EXPECT_EQ(t, post_rma(&m, call, how, how == 2 ? KFI_COMPLETION : 0,
					      ctx(10 * call + how)), 0);
	for (call = 0; call < CALLS; call++)
		for (how = op_flags ? 0 : 2; how < 3; how += 2)
			ep_completed(t, tx, ctx(10 * call + how), done[call], NULL);
	ep_nothing(t, tx);
	/* A failure is told, whatever was asked for. */
	m.mr->key ^= NO_KEY;
	EXPECT_EQ(t, post_rma(&m, CALL_WRITE, true, 0, ctx(99)), 0);
	m.mr->key ^= NO_KEY;
	ep_failed_op(t, tx, ctx(99), KFI_EACCES, NULL);
	ep_nothing(t, tx);
out:
	ep_memory_close(t, &m);
}

void ep_selective_rma_case(struct kfi_test *t)
{
	selective_rma(t, 0);
	selective_rma(t, KFI_COMPLETION);
}
