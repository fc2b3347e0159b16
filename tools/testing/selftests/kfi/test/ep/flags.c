// SPDX-License-Identifier: GPL-2.0
/* The flags of single transfers, and how much can be posted. */
#include <linux/scatterlist.h>

#include "ep.h"

#define LEN		2048
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define FETCHED		(KFI_RMA | KFI_READ)
#define WRITTEN		(KFI_RMA | KFI_WRITE)

static void *ctx(unsigned long n)
{
	return (void *)(0xf1a65000 + n);
}

/* Memory of both sides; the passive one's is registered. */
struct sides {
	u8 *own;
	u8 *mem;
	struct kfid_mr *mr;
};

static bool sides_open(struct kfi_test *t, struct ep_pair *p, struct sides *s)
{
	s->own = kzalloc(LEN, GFP_KERNEL);
	s->mem = kzalloc(LEN, GFP_KERNEL);
	return EXPECT(t, s->own && s->mem, "no memory") &&
	       EXPECT_EQ(t, kfi_mr_reg(p->side[1].domain, s->mem, LEN,
				       KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0, 4, 0, &s->mr, NULL), 0);
}

static void sides_close(struct kfi_test *t, struct sides *s)
{
	if (s->mr)
		EXPECT_EQ(t, kfi_close(&s->mr->fid), 0);
	kfree(s->own);
	kfree(s->mem);
}

static ssize_t send_list(struct kfid_ep *ep, struct kvec *kv, size_t count, u64 flags, void *context)
{
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = kv,
		.iov_count = count,
		.context = context,
	};

	return kfi_sendmsg(ep, &msg, KFI_COMPLETION | flags);
}

/* A message that waits for earlier reads sends the bytes that they have brought. */
void ep_fence_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	struct sides s = {};
	struct kvec kv;
	u8 *to = kzalloc(LEN, GFP_KERNEL);
	int i;

	if (!p || !EXPECT(t, to, "no memory") || !sides_open(t, p, &s))
		goto out;
	kv = (struct kvec) { s.own, LEN };
	for (i = 0; i < 50 && !t->failures; i++) {
		pattern(s.mem, LEN, i);
		memset(s.own, 0xa5, LEN);
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, to, LEN, NULL, 0, ctx(1)), 0);
		EXPECT_EQ(t, kfi_read(p->side[0].ep, s.own, LEN, NULL, 0, s.mr->iova,
				      kfi_mr_key(s.mr), ctx(2)), 0);
		EXPECT_EQ(t, send_list(p->side[0].ep, &kv, 1, KFI_FENCE, ctx(3)), 0);
		ep_completed(t, p->side[0].tx, ctx(2), FETCHED, NULL);
		ep_completed(t, p->side[0].tx, ctx(3), SENT, NULL);
		ep_completed(t, p->side[1].rx, ctx(1), RECEIVED, NULL);
		EXPECT(t, pattern_is(to, LEN, i), "round %d: sent before it was read", i);
	}
out:
	sides_close(t, &s);
	if (p)
		ep_pair_close(t, p);
	kfree(to);
}

/* A list of any kind is the caller's at once, with its memory. */
void ep_inject_lists_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfi_cq_data_entry entry;
	struct sides s = {};
	struct bio_vec bv[2];
	struct kvec kv[3];
	struct kfi_rma_iov remote;
	struct kfi_msg msg = { .context = ctx(1) };
	struct kfi_msg_rma rma = {
		.type = KFI_KVEC,
		.msg_iov = kv,
		.iov_count = 3,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = ctx(1),
	};
	u8 *to;
	int i;

	if (!p || !sides_open(t, p, &s))
		goto out;
	to = s.mem + LEN / 2;
	for (i = 0; i < 3; i++)
		kv[i] = (struct kvec) { s.own + 20 * i, 20 };
	for (i = 0; i < 2; i++)
		bvec_set_page(&bv[i], virt_to_page(s.own + 30 * i), 30, offset_in_page(s.own + 30 * i));
	remote = (struct kfi_rma_iov) { s.mr->iova, 60, kfi_mr_key(s.mr) };
	for (i = 0; i < 3 && !t->failures; i++) {
		memset(s.mem, 0, LEN);
		pattern(s.own, 60, i);
		if (i < 2) {
			msg.type = i ? KFI_BVEC : KFI_KVEC;
			msg.msg_biov = i ? bv : (void *)kv;
			msg.iov_count = i ? 2 : 3;
			EXPECT_EQ(t, kfi_recv(p->side[1].ep, to, 64, NULL, 0, ctx(2)), 0);
			EXPECT_EQ(t, kfi_sendmsg(p->side[0].ep, &msg, KFI_INJECT | KFI_COMPLETION), 0);
		} else {
			EXPECT_EQ(t, kfi_writemsg(p->side[0].ep, &rma,
						  KFI_INJECT | KFI_COMPLETION |
						  KFI_DELIVERY_COMPLETE), 0);
		}
		memset(s.own, 0xff, LEN);
		ep_completed(t, p->side[0].tx, ctx(1), i < 2 ? SENT : WRITTEN, NULL);
		if (i < 2 && ep_completed(t, p->side[1].rx, ctx(2), RECEIVED, &entry))
			EXPECT_EQ(t, entry.len, 60);
		EXPECT(t, pattern_is(i < 2 ? to : s.mem, 60, i), "list %d: other bytes", i);
	}
	kv[2].iov_len = p->info->tx_attr->inject_size;
	EXPECT_EQ(t, send_list(p->side[0].ep, kv, 3, KFI_INJECT, ctx(1)), -KFI_EMSGSIZE);
	ep_nothing(t, p->side[0].tx);
out:
	sides_close(t, &s);
	if (p)
		ep_pair_close(t, p);
}

/* When a transfer has completed, its bytes are where they should be, if that was asked for. */
void ep_complete_case(struct kfi_test *t)
{
	static const u64 flags[] = {
		KFI_DELIVERY_COMPLETE, KFI_TRANSMIT_COMPLETE, KFI_INJECT_COMPLETE,
	};
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfi_cq_data_entry entry;
	struct sides s = {};
	struct kfi_rma_iov remote;
	struct kvec kv;
	struct kfi_msg_rma rma = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = ctx(1),
	};
	u8 *to;
	int i;

	if (!p || !sides_open(t, p, &s))
		goto out;
	to = s.mem + LEN / 2;
	kv = (struct kvec) { s.own, LEN / 2 };
	remote = (struct kfi_rma_iov) { s.mr->iova, LEN / 2, kfi_mr_key(s.mr) };
	for (i = 0; i < 30 && !t->failures; i++) {
		u64 how = flags[i % ARRAY_SIZE(flags)];

		pattern(s.own, LEN / 2, i);
		EXPECT_EQ(t, kfi_writemsg(p->side[0].ep, &rma, KFI_COMPLETION | how), 0);
		ep_completed(t, p->side[0].tx, ctx(1), WRITTEN, NULL);
		if (how == KFI_DELIVERY_COMPLETE)
			EXPECT(t, pattern_is(s.mem, LEN / 2, i), "round %d: not delivered", i);
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, to, LEN / 2, NULL, 0, ctx(2)), 0);
		EXPECT_EQ(t, send_list(p->side[0].ep, &kv, 1, how, ctx(3)), 0);
		ep_completed(t, p->side[0].tx, ctx(3), SENT, NULL);
		if (how == KFI_DELIVERY_COMPLETE)
			EXPECT(t, pattern_is(to, LEN / 2, i), "round %d: not received", i);
		ep_completed(t, p->side[1].rx, ctx(2), RECEIVED, &entry);
		EXPECT(t, pattern_is(s.mem, LEN / 2, i) && pattern_is(to, LEN / 2, i),
		       "round %d: other bytes", i);
	}
	EXPECT_EQ(t, kfi_writemsg(p->side[0].ep, &rma, KFI_COMMIT_COMPLETE), -KFI_EBADFLAGS);
	ep_nothing(t, p->side[0].tx);
out:
	sides_close(t, &s);
	if (p)
		ep_pair_close(t, p);
}

/*
 * A message never ends before the peer has a receive for it, whatever its flag. A sender that
 * closes its endpoint then takes nothing back. The providers make no difference between the flags.
 */
static void complete_late(struct kfi_test *t, u64 how)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfi_cq_data_entry entry;
	struct kfid_mr *mr = NULL;
	struct sides s = {};
	struct kvec kv;

	if (!p || !sides_open(t, p, &s) ||
	    !EXPECT_EQ(t, kfi_mr_reg(p->side[0].domain, s.own + LEN / 2, 8, KFI_REMOTE_WRITE, 0, 5, 0,
				     &mr, NULL), 0))
		goto out;
	kv = (struct kvec) { s.own, LEN / 2 };
	pattern(s.own, LEN / 2, 4);
	EXPECT_EQ(t, send_list(p->side[0].ep, &kv, 1, how, ctx(1)), 0);
	ep_nothing(t, p->side[0].tx);
	/* Meanwhile something goes all the way the other way. */
	EXPECT_EQ(t, kfi_write(p->side[1].ep, s.mem, 8, NULL, 0, mr->iova, kfi_mr_key(mr), ctx(2)), 0);
	ep_completed(t, p->side[1].tx, ctx(2), WRITTEN, NULL);
	ep_nothing(t, p->side[0].tx);
	EXPECT_EQ(t, kfi_recv(p->side[1].ep, s.mem, LEN, NULL, 0, ctx(3)), 0);
	ep_completed(t, p->side[0].tx, ctx(1), SENT, NULL);
	EXPECT_EQ(t, kfi_close(&p->side[0].ep->fid), 0);
	p->side[0].ep = NULL;
	if (ep_completed(t, p->side[1].rx, ctx(3), RECEIVED, &entry))
		EXPECT_EQ(t, entry.len, LEN / 2);
	EXPECT(t, pattern_is(s.mem, LEN / 2, 4), "flags %#llx: other bytes", how);
out:
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	sides_close(t, &s);
	if (p)
		ep_pair_close(t, p);
}

void ep_complete_late_case(struct kfi_test *t)
{
	complete_late(t, KFI_INJECT_COMPLETE);
	complete_late(t, KFI_TRANSMIT_COMPLETE);
	complete_late(t, KFI_DELIVERY_COMPLETE);
}

/* A call without flags has those of the endpoint; a call with flags has its own only. */
void ep_op_flags_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE, .op_flags = KFI_INJECT };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfi_cq_data_entry entry;
	struct kfi_rma_iov remote;
	struct sides s = {};
	struct kvec kv;
	struct kfi_msg_rma rma = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = ctx(2),
	};
	struct kfid_ep *ep;

	if (!p || !sides_open(t, p, &s))
		goto out;
	ep = p->side[0].ep;
	kv = (struct kvec) { s.own, LEN / 2 };
	remote = (struct kfi_rma_iov) { s.mr->iova, LEN / 2, kfi_mr_key(s.mr) };
	pattern(s.own, LEN / 2, 1);
	/* More than can be injected. */
	EXPECT_EQ(t, kfi_send(ep, s.own, LEN / 2, NULL, 0, ctx(1)), -KFI_EMSGSIZE);
	EXPECT_EQ(t, kfi_write(ep, s.own, LEN / 2, NULL, 0, remote.addr, remote.key, ctx(1)),
		  -KFI_EMSGSIZE);
	EXPECT_EQ(t, kfi_writemsg(ep, &rma, KFI_COMPLETION), 0);
	ep_completed(t, p->side[0].tx, ctx(2), WRITTEN, NULL);
	EXPECT(t, pattern_is(s.mem, LEN / 2, 1), "other bytes are written");
	EXPECT_EQ(t, kfi_recv(p->side[1].ep, s.mem + LEN / 2, LEN / 2, NULL, 0, ctx(3)), 0);
	EXPECT_EQ(t, send_list(ep, &kv, 1, 0, ctx(4)), 0);
	ep_completed(t, p->side[0].tx, ctx(4), SENT, NULL);
	if (ep_completed(t, p->side[1].rx, ctx(3), RECEIVED, &entry))
		EXPECT_EQ(t, entry.len, LEN / 2);
	/* There is nothing to inject. */
	EXPECT_EQ(t, kfi_read(ep, s.own + LEN / 2, LEN / 2, NULL, 0, remote.addr, remote.key, ctx(5)), 0);
	ep_completed(t, p->side[0].tx, ctx(5), FETCHED, NULL);
	EXPECT(t, pattern_is(s.own + LEN / 2, LEN / 2, 1), "other bytes are read");
	/* Injected bytes are copied before the peer has a receive. */
	pattern(s.own, 16, 2);
	EXPECT_EQ(t, kfi_send(ep, s.own, 16, NULL, 0, ctx(6)), 0);
	memset(s.own, 0xff, 16);
	EXPECT_EQ(t, kfi_recv(p->side[1].ep, s.mem, LEN / 2, NULL, 0, ctx(7)), 0);
	ep_completed(t, p->side[0].tx, ctx(6), SENT, NULL);
	if (ep_completed(t, p->side[1].rx, ctx(7), RECEIVED, &entry))
		EXPECT_EQ(t, entry.len, 16);
	EXPECT(t, pattern_is(s.mem, 16, 2), "other bytes are injected");
out:
	sides_close(t, &s);
	if (p)
		ep_pair_close(t, p);
}

/* As much as is said to fit does. */
void ep_size_left_case(struct kfi_test *t)
{
	struct ep_wants wants = { .tx_size = 4, .rx_size = 6, .cq_size = 16 };
	struct ep_wants small = { .tx_size = 4, .rx_size = 8, .cq_size = 3 };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfid_ep *ep = NULL;
	struct kfi_cq_data_entry entry;
	u8 *mem = kzalloc(LEN, GFP_KERNEL);
	int i;

	if (!p || !EXPECT(t, mem, "no memory"))
		goto out;
	EXPECT_EQ(t, kfi_rx_size_left(NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_tx_size_left(p->side[0].ep), 4);
	for (i = 6; i > 0; i--) {
		EXPECT_EQ(t, kfi_rx_size_left(p->side[1].ep), i);
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, mem, 8, NULL, 0, ctx(i)), 0);
	}
	EXPECT_EQ(t, kfi_rx_size_left(p->side[1].ep), 0);
	EXPECT_EQ(t, kfi_recv(p->side[1].ep, mem, 8, NULL, 0, ctx(i)), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_send(p->side[0].ep, mem, 8, NULL, 0, ctx(7)), 0);
	ep_completed(t, p->side[0].tx, ctx(7), SENT, NULL);
	ep_completed(t, p->side[1].rx, ctx(6), RECEIVED, &entry);
	EXPECT_EQ(t, kfi_tx_size_left(p->side[0].ep), 4);
	EXPECT_EQ(t, kfi_rx_size_left(p->side[1].ep), 1);
	if (EXPECT_EQ(t, kfi_endpoint(p->side[0].domain, p->info, &ep, NULL), 0)) {
		EXPECT_EQ(t, kfi_tx_size_left(ep), -KFI_EOPBADSTATE);
		EXPECT_EQ(t, kfi_close(&ep->fid), 0);
	}
	ep_pair_close(t, p);
	/* Nor is there more room than for completions. */
	p = ep_connected(t, &small);
	if (!p)
		goto out;
	for (i = 3; i > 0; i--) {
		EXPECT_EQ(t, kfi_rx_size_left(p->side[1].ep), i);
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, mem, 8, NULL, 0, ctx(i)), 0);
	}
	EXPECT_EQ(t, kfi_rx_size_left(p->side[1].ep), 0);
	EXPECT_EQ(t, kfi_recv(p->side[1].ep, mem, 8, NULL, 0, ctx(i)), -KFI_EAGAIN);
out:
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}
