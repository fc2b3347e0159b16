// SPDX-License-Identifier: GPL-2.0
/* Transfers that are injected, counted, cancelled, kept waiting; and posting in atomic context. */
#include <linux/delay.h>
#include <linux/sched.h>

#include <kfi_atomic.h>

#include "ep.h"

#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define WRITTEN		(KFI_RMA | KFI_WRITE)
#define LEN		512

static void *ctx(unsigned long n)
{
	return (void *)(0x30e00000 + n);
}

/* The calls that inject, with data and without, as messages and as writes. */
void ep_injects_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	u8 *from = kzalloc(LEN, GFP_KERNEL), *to = kzalloc(LEN, GFP_KERNEL);
	struct kfi_cq_data_entry entry;
	struct kfid_mr *mr = NULL;
	struct kfid_ep *tx, *rx;
	static const u8 constant[] = "a constant of the module";
	u8 on_stack[128];
	size_t most;

	if (!p || !EXPECT(t, from && to, "no memory") ||
	    !EXPECT_EQ(t, kfi_mr_reg(p->side[1].domain, to, LEN, KFI_REMOTE_WRITE, 0, 3, 0, &mr,
				     NULL), 0))
		goto out;
	tx = p->side[0].ep;
	rx = p->side[1].ep;
	most = p->info->tx_attr->inject_size;
	if (!EXPECT(t, most < sizeof(on_stack), "inject_size is %zu", most))
		goto out;
	pattern(from, most, 1);
	EXPECT_EQ(t, kfi_recv(rx, to, LEN, NULL, 0, ctx(1)), 0);
	EXPECT_EQ(t, kfi_injectdata(tx, from, most, 0x89abcdef, 0), 0);
	memset(from, 0, LEN);
	if (ep_completed(t, p->side[1].rx, ctx(1), RECEIVED | KFI_REMOTE_CQ_DATA, &entry)) {
		EXPECT_EQ(t, entry.len, most);
		EXPECT_EQ(t, entry.data, 0x89abcdef);
	}
	EXPECT(t, pattern_is(to, most, 1), "injectdata: other bytes");
	/* A write without a trace; the message behind it says that it is done. */
	memset(to, 0, LEN);
	pattern(from, most, 2);
	EXPECT_EQ(t, kfi_recv(rx, to + 256, 8, NULL, 0, ctx(2)), 0);
	EXPECT_EQ(t, kfi_inject_write(tx, from, most + 1, 0, mr->iova, kfi_mr_key(mr)),
		  -KFI_EMSGSIZE);
	EXPECT_EQ(t, kfi_inject_write(tx, from, most, 0, mr->iova, kfi_mr_key(mr)), 0);
	memset(from, 0, LEN);
	EXPECT_EQ(t, kfi_inject(tx, from, 1, 0), 0);
	ep_completed(t, p->side[1].rx, ctx(2), RECEIVED, NULL);
	EXPECT(t, pattern_is(to, most, 2), "inject_write: other bytes");
	/* And one with data, which the peer is told. */
	pattern(from, 16, 3);
	EXPECT_EQ(t, kfi_recv(rx, to + 256, 8, NULL, 0, ctx(3)), 0);
	EXPECT_EQ(t, kfi_inject_writedata(tx, from, 16, 77, 0, mr->iova + 100, kfi_mr_key(mr)), 0);
	memset(from, 0, LEN);
	if (ep_completed(t, p->side[1].rx, ctx(3),
			 KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA, &entry))
		EXPECT(t, entry.data == 77 && entry.len == 16, "data %llu, len %zu", entry.data,
		       entry.len);
	EXPECT(t, pattern_is(to + 100, 16, 3), "inject_writedata: other bytes");
	/* From the stack, which can't be registered. */
	pattern(on_stack, most, 4);
	EXPECT_EQ(t, kfi_recv(rx, to, LEN, NULL, 0, ctx(4)), 0);
	EXPECT_EQ(t, kfi_inject(tx, on_stack, most, 0), 0);
	memset(on_stack, 0, sizeof(on_stack));
	if (ep_completed(t, p->side[1].rx, ctx(4), RECEIVED, &entry))
		EXPECT_EQ(t, entry.len, most);
	EXPECT(t, pattern_is(to, most, 4), "inject from the stack: other bytes");
	EXPECT_EQ(t, kfi_recv(rx, to + 256, 8, NULL, 0, ctx(5)), 0);
	pattern(on_stack, 16, 5);
	EXPECT_EQ(t, kfi_inject_write(tx, on_stack, 16, 0, mr->iova + 50, kfi_mr_key(mr)), 0);
	EXPECT_EQ(t, kfi_inject(tx, on_stack, 1, 0), 0);
	ep_completed(t, p->side[1].rx, ctx(5), RECEIVED, NULL);
	EXPECT(t, pattern_is(to + 50, 16, 5), "inject_write from the stack: other bytes");
	ep_nothing(t, p->side[0].tx);
	EXPECT_EQ(t, kfi_inject(tx, on_stack, most + 1, 0), -KFI_EMSGSIZE);
	/* With nowhere to go yet, over loop, whose messages wait: it is the bytes that are kept, not their place. */
	if (!strcmp(kfi_provider_name, "loop")) {
		pattern(from, most, 7);
		EXPECT_EQ(t, kfi_inject(tx, from, most, 0), 0);
		memset(from, 0xff, LEN);
		EXPECT_EQ(t, kfi_recv(rx, to, LEN, NULL, 0, ctx(7)), 0);
		ep_completed(t, p->side[1].rx, ctx(7), RECEIVED, NULL);
		EXPECT(t, pattern_is(to, most, 7), "a message that waits: other bytes");
	}
	/* From constants, which can't be registered either. */
	EXPECT_EQ(t, kfi_recv(rx, to, LEN, NULL, 0, ctx(6)), 0);
	EXPECT_EQ(t, kfi_inject(tx, constant, sizeof(constant), 0), 0);
	if (ep_completed(t, p->side[1].rx, ctx(6), RECEIVED, &entry))
		EXPECT_EQ(t, entry.len, sizeof(constant));
	EXPECT(t, !memcmp(to, constant, sizeof(constant)), "inject of a constant: other bytes");
	/* Bytes that are not injected are not copied. */
	EXPECT_EQ(t, kfi_send(tx, on_stack, 16, NULL, 0, NULL), -KFI_EFAULT);
	EXPECT_EQ(t, kfi_send(tx, constant, 8, NULL, 0, NULL), -KFI_EFAULT);
	ep_nothing(t, p->side[0].tx);
out:
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (p)
		ep_pair_close(t, p);
	kfree(from);
	kfree(to);
}

/* Each call that injects says so if there is no memory at @bad, and sends nothing. */
static void injects_nothing(struct kfi_test *t, struct ep_memory *m, void *bad)
{
	struct kvec kv[] = { { m->here, 8 }, { bad, 16 } };
	struct kfi_msg msg = { .type = KFI_KVEC, .msg_iov = kv, .iov_count = ARRAY_SIZE(kv) };
	u64 at = m->mr->iova, key = kfi_mr_key(m->mr);
	struct kfid_ep *tx = m->p->side[0].ep;

	EXPECT_EQ(t, kfi_inject(tx, bad, 16, 0), -KFI_EFAULT);
	EXPECT_EQ(t, kfi_injectdata(tx, bad, 16, 1, 0), -KFI_EFAULT);
	EXPECT_EQ(t, kfi_inject_write(tx, bad, 16, 0, at, key), -KFI_EFAULT);
	EXPECT_EQ(t, kfi_inject_writedata(tx, bad, 16, 1, 0, at, key), -KFI_EFAULT);
	EXPECT_EQ(t, kfi_sendmsg(tx, &msg, KFI_INJECT), -KFI_EFAULT);
	EXPECT_EQ(t, kfi_inject_atomic(tx, bad, 1, 0, at, key, KFI_UINT64, KFI_SUM),
		  -KFI_EFAULT);
	EXPECT_EQ(t, kfi_compare_atomic(tx, m->here, 1, NULL, bad, NULL, m->here, NULL, 0, at, key,
					KFI_UINT64, KFI_CSWAP, NULL), -KFI_EFAULT);
}

/* Bytes to inject are copied from wherever they are. If there is no memory, that is an error, and no oops. */
void ep_injects_refused_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE, .caps = KFI_MSG | KFI_RMA | KFI_ATOMIC };
	struct bio_vec bv = { .bv_page = (void *)8, .bv_len = 8 };
	struct kfi_msg msg = { .type = KFI_BVEC, .msg_biov = &bv, .iov_count = 1 };
	u8 *area = vmalloc(PAGE_SIZE);
	struct ep_memory m = {};
	/* Of a user, of nobody, at the end of all addresses; and partly in the guard page, or all of it. */
	void *bad[] = {
		(void *)PAGE_SIZE, (void *)BIT_ULL(62), (void *)-PAGE_SIZE,
		area + PAGE_SIZE - 7, area + PAGE_SIZE,
	};
	int i;

	if (!ep_memory_open(t, &m, &wants, LEN) || !EXPECT(t, area, "no memory") ||
	    !EXPECT_EQ(t, kfi_mr_reg(m.p->side[1].domain, m.there, LEN,
				     KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0, 3, 0, &m.mr, NULL), 0))
		goto out;
	for (i = 0; i < ARRAY_SIZE(bad) && !t->failures; i++)
		injects_nothing(t, &m, bad[i]);
	EXPECT_EQ(t, kfi_inject(m.p->side[0].ep, NULL, 8, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_sendmsg(m.p->side[0].ep, &msg, KFI_INJECT), -KFI_EFAULT);
	EXPECT(t, !memchr_inv(m.there, 0, LEN), "something was written");
	ep_nothing(t, m.p->side[0].tx);
	ep_nothing(t, m.p->side[1].rx);
out:
	ep_memory_close(t, &m);
	vfree(area);
}

/* Waits until the counters have these values. */
static void counted(struct kfi_test *t, struct kfid_cntr **cntr, const u64 *want, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (want[i])
			EXPECT_EQ(t, kfi_cntr_wait(cntr[i], want[i], EP_WAIT_MS), 0);
		EXPECT_EQ(t, kfi_cntr_read(cntr[i]), want[i]);
	}
}

/* Each counter counts what it is bound for, and errors. */
void ep_counters_case(struct kfi_test *t)
{
	static const u64 flags[4] = { KFI_TRANSMIT, KFI_RECV, KFI_READ, KFI_WRITE };
	struct kfi_cntr_attr attr = { .events = KFI_CNTR_EVENTS_COMP, .wait_obj = KFI_WAIT_UNSPEC };
	struct ep_wants wants = { .mr_mode = EP_MODE, .caps = KFI_MSG | KFI_RMA | KFI_ATOMIC };
	struct ep_pair *p = ep_listening(t, &wants);
	struct kfid_cntr *cntr[4] = {};
	struct kfid_mr *mr = NULL;
	struct ep_event *e = kzalloc_obj(*e);
	u8 *mem = kzalloc(LEN, GFP_KERNEL);
	struct ep_side *s;
	u64 one = 1;
	int i;

	if (!p || !EXPECT(t, e && mem, "no memory"))
		goto out;
	s = &p->side[0];
	EXPECT_EQ(t, kfi_close(&s->ep->fid), 0);
	s->ep = NULL;
	if (!EXPECT_EQ(t, kfi_endpoint(s->domain, p->info, &s->ep, s), 0) ||
	    !EXPECT_EQ(t, kfi_ep_bind(s->ep, &s->eq->fid, 0), 0) ||
	    !EXPECT_EQ(t, kfi_ep_bind(s->ep, &s->tx->fid, KFI_TRANSMIT), 0) ||
	    !EXPECT_EQ(t, kfi_ep_bind(s->ep, &s->rx->fid, KFI_RECV), 0))
		goto out;
	for (i = 0; i < 4; i++)
		if (!EXPECT_EQ(t, kfi_cntr_open(s->domain, &attr, &cntr[i], NULL), 0) ||
		    !EXPECT_EQ(t, kfi_ep_bind(s->ep, &cntr[i]->fid, flags[i]), 0))
			goto out;
	EXPECT_EQ(t, kfi_ep_bind(s->ep, &cntr[0]->fid, KFI_READ), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_connect(s->ep, NULL, NULL, 0), 0);
	if (!ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e))
		goto out;
	ep_open(t, &p->side[1], e->entry.info, &wants);
	kfi_freeinfo(e->entry.info);
	if (t->failures || !EXPECT_EQ(t, kfi_accept(p->side[1].ep, NULL, 0), 0) ||
	    !ep_event(t, s->eq, KFI_CONNECTED, &s->ep->fid, e) ||
	    !ep_event(t, p->side[1].eq, KFI_CONNECTED, &p->side[1].ep->fid, e) ||
	    !EXPECT_EQ(t, kfi_mr_reg(p->side[1].domain, mem, LEN,
				     KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0, 2, 0, &mr, NULL), 0))
		goto out;
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, mem, 8, NULL, 0, ctx(0)), 0);
		EXPECT_EQ(t, kfi_send(s->ep, mem + 256, 8, NULL, 0, ctx(0)), 0);
	}
	for (i = 0; i < 3; i++)
		EXPECT_EQ(t, kfi_read(s->ep, mem + 256, 8, NULL, 0, mr->iova, kfi_mr_key(mr),
				      ctx(0)), 0);
	EXPECT_EQ(t, kfi_write(s->ep, mem + 256, 8, NULL, 0, mr->iova, kfi_mr_key(mr), ctx(0)), 0);
	counted(t, cntr, (const u64[]) { 2, 0, 3, 1 }, 4);
	EXPECT_EQ(t, kfi_recv(s->ep, mem, 8, NULL, 0, ctx(0)), 0);
	EXPECT_EQ(t, kfi_send(p->side[1].ep, mem + 256, 8, NULL, 0, ctx(0)), 0);
	counted(t, cntr, (const u64[]) { 2, 1, 3, 1 }, 4);
	/* Injected transfers count, too; of atomic operations, those that fetch as reads, others as writes. */
	EXPECT_EQ(t, kfi_recv(p->side[1].ep, mem, 8, NULL, 0, ctx(0)), 0);
	EXPECT_EQ(t, kfi_inject(s->ep, mem + 256, 8, 0), 0);
	EXPECT_EQ(t, kfi_inject_write(s->ep, mem + 256, 8, 0, mr->iova, kfi_mr_key(mr)), 0);
	EXPECT_EQ(t, kfi_inject_atomic(s->ep, &one, 1, 0, mr->iova, kfi_mr_key(mr), KFI_UINT64,
				       KFI_SUM), 0);
	EXPECT_EQ(t, kfi_fetch_atomic(s->ep, &one, 1, NULL, mem + 256, NULL, 0, mr->iova,
				      kfi_mr_key(mr), KFI_UINT64, KFI_SUM, ctx(0)), 0);
	counted(t, cntr, (const u64[]) { 3, 1, 4, 3 }, 4);
	/* An error counts where its transfer would have. */
	EXPECT_EQ(t, kfi_read(s->ep, mem + 256, 8, NULL, 0, mr->iova + LEN, kfi_mr_key(mr), ctx(0)),
		  0);
	for (i = 0; i < EP_WAIT_MS / 10 && !kfi_cntr_readerr(cntr[2]); i++)
		msleep(10);
	EXPECT_EQ(t, kfi_cntr_readerr(cntr[2]), 1);
	EXPECT_EQ(t, kfi_cntr_read(cntr[2]), 4);
	EXPECT_EQ(t, kfi_cntr_readerr(cntr[0]), 0);
	/* One that is closed counts no more, and is in nobody's way. */
	EXPECT_EQ(t, kfi_close(&cntr[0]->fid), 0);
	cntr[0] = NULL;
out:
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (p && p->side[0].ep) {
		EXPECT_EQ(t, kfi_close(&p->side[0].ep->fid), 0);
		p->side[0].ep = NULL;
	}
	for (i = 0; i < 4; i++)
		if (cntr[i])
			EXPECT_EQ(t, kfi_close(&cntr[i]->fid), 0);
	if (p)
		ep_pair_close(t, p);
	kfree(e);
	kfree(mem);
}

/* kfi_cancel() ends a receive that no message has come for, if the provider has the call. */
void ep_cancel_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_connected(t, NULL);
	struct kfi_cq_err_entry err;
	u8 *mem = kzalloc(LEN, GFP_KERNEL);
	bool cancels = has_feature(F_CANCEL);
	int i;

	if (!p || !EXPECT(t, mem, "no memory"))
		goto out;
	for (i = 0; i < 3; i++)
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, mem + i * 64, 64, NULL, 0, ctx(i)), 0);
	EXPECT_EQ(t, kfi_cancel(&p->side[1].ep->fid, ctx(1)), feature_errno(F_CANCEL));
	if (cancels) {
		ep_failed_op(t, p->side[1].rx, ctx(1), KFI_ECANCELED, &err);
		EXPECT_EQ(t, kfi_cancel(&p->side[1].ep->fid, ctx(1)), -KFI_ENOENT);
	}
	ep_nothing(t, p->side[1].rx);
	/* The others are still there, in their order. */
	pattern(mem + 256, 8, 3);
	for (i = 0; i < 3; i += cancels ? 2 : 1) {
		EXPECT_EQ(t, kfi_send(p->side[0].ep, mem + 256, 8, NULL, 0, ctx(9)), 0);
		ep_completed(t, p->side[1].rx, ctx(i), RECEIVED, NULL);
		EXPECT(t, pattern_is(mem + i * 64, 8, 3), "other bytes");
	}
out:
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

static ssize_t sendmore(struct kfid_ep *ep, u8 *mem, void *context, u64 flags)
{
	struct kvec kv = { mem, 8 };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.context = context,
	};

	return kfi_sendmsg(ep, &msg, KFI_COMPLETION | flags);
}

/* Transfers that wait for more go with the next one that doesn't, in their order; or end with the rest. */
void ep_sendmore_case(struct kfi_test *t)
{
	struct ep_wants wants = { .tx_size = 8, .rx_size = 32 };
	struct ep_pair *p = ep_connected(t, &wants);
	u8 *mem = kzalloc(LEN, GFP_KERNEL);
	struct kfi_cq_err_entry err;
	struct kfid_ep *tx, *rx;
	int i;

	if (!p || !EXPECT(t, mem, "no memory"))
		goto out;
	tx = p->side[0].ep;
	rx = p->side[1].ep;
	for (i = 0; i < 5; i++)
		EXPECT_EQ(t, kfi_recv(rx, mem + 256, 8, NULL, 0, ctx(i)), 0);
	for (i = 0; i < 5; i++)
		EXPECT_EQ(t, sendmore(tx, mem, ctx(i), i < 4 ? KFI_MORE : 0), 0);
	for (i = 0; i < 5; i++) {
		ep_completed(t, p->side[1].rx, ctx(i), RECEIVED, NULL);
		ep_completed(t, p->side[0].tx, ctx(i), SENT, NULL);
	}
	/*
	 * The queue is full of messages that wait for more: the next one is refused, and they go. None of
	 * them can leave the queue before, since the peer has no receive.
	 */
	for (i = 0; i < 8; i++)
		EXPECT_EQ(t, sendmore(tx, mem, ctx(i), KFI_MORE), 0);
	EXPECT_EQ(t, sendmore(tx, mem, ctx(8), KFI_MORE), -KFI_EAGAIN);
	for (i = 0; i < 8; i++)
		EXPECT_EQ(t, kfi_recv(rx, mem + 256, 8, NULL, 0, ctx(i)), 0);
	for (i = 0; i < 8; i++)
		ep_completed(t, p->side[0].tx, ctx(i), SENT, NULL);
	/* The end comes before the rest: nothing is lost, nor told twice. */
	for (i = 0; i < 3; i++)
		EXPECT_EQ(t, sendmore(p->side[1].ep, mem, ctx(20 + i), KFI_MORE), 0);
	EXPECT_EQ(t, kfi_shutdown(p->side[1].ep, 0), 0);
	for (i = 0; i < 3; i++)
		ep_failed_op(t, p->side[1].tx, ctx(20 + i), KFI_ECANCELED, &err);
	ep_nothing(t, p->side[1].tx);
out:
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

/* No more requests wait at a listener than its backlog says; the others are refused. */
void ep_backlog_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_listening(t, NULL);
	struct kfi_eq_err_entry err;
	struct sockaddr_in address;
	size_t len = sizeof(address);
	struct ep_event *e = kzalloc_obj(*e);
	struct kfi_info *source;
	static const struct ep_wants none;
	struct ep_side *s;
	int backlog = 1;

	if (!p || !EXPECT(t, e, "no memory"))
		goto out;
	s = &p->side[0];
	EXPECT_EQ(t, kfi_control(&p->pep->fid, KFI_BACKLOG, &backlog), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, kfi_close(&p->pep->fid), 0);
	p->pep = NULL;
	address = ep_address();
	source = ep_info(t, &address, KFI_SOURCE, 0);
	if (!source)
		goto out;
	EXPECT_EQ(t, kfi_passive_ep(p->side[1].fabric, source, &p->pep, p), 0);
	kfi_freeinfo(source);
	backlog = 0;
	EXPECT_EQ(t, kfi_control(&p->pep->fid, KFI_BACKLOG, &backlog), -KFI_EINVAL);
	backlog = 1;
	if (!EXPECT_EQ(t, kfi_control(&p->pep->fid, KFI_BACKLOG, &backlog), 0) ||
	    !EXPECT_EQ(t, kfi_pep_bind(p->pep, &p->side[1].eq->fid, 0), 0) ||
	    !EXPECT_EQ(t, kfi_listen(p->pep), 0) ||
	    !EXPECT_EQ(t, kfi_getname(&p->pep->fid, &address, &len), 0))
		goto out;
	EXPECT_EQ(t, kfi_connect(s->ep, &address, NULL, 0), 0);
	if (!ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e))
		goto out;
	/* That one waits; there is no place for another. */
	EXPECT_EQ(t, kfi_close(&s->ep->fid), 0);
	s->ep = NULL;
	if (ep_open(t, s, p->info, &none)) {
		EXPECT_EQ(t, kfi_connect(s->ep, &address, NULL, 0), 0);
		ep_failed(t, s->eq, &s->ep->fid, KFI_ECONNREFUSED, &err);
	}
	EXPECT_EQ(t, kfi_reject(p->pep, e->entry.info->handle, NULL, 0), 0);
	kfi_freeinfo(e->entry.info);
out:
	kfree(e);
	if (p)
		ep_pair_close(t, p);
}
