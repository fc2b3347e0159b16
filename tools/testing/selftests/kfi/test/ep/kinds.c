// SPDX-License-Identifier: GPL-2.0
/* Transfers of each kind. */
#include <kfi_atomic.h>

#include "kinds.h"

#define LEN	64
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define SENT		(KFI_MSG | KFI_SEND)
#define FETCHED		(KFI_RMA | KFI_READ)
#define WRITTEN		(KFI_RMA | KFI_WRITE)
#define GOT		(KFI_ATOMIC | KFI_READ)
#define ADDED		(KFI_ATOMIC | KFI_WRITE)
#define TOLD		(KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA)
#define DATA		EP_KINDS_DATA

/* As in the tables of kfi_msg(3), kfi_rma(3) and kfi_atomic(3). */
const struct ep_kind ep_kinds[EP_KINDS] = {
	{ RECEIVED },
	{ SENT, RECEIVED, 16 },
	{ WRITTEN, 0, 8 },
	{ FETCHED, 0, 16 },
	{ SENT, RECEIVED, 8, 0, true },
	{ WRITTEN, 0, 16 },
	{ ADDED, 0, 8 },
	{ GOT, 0, 8 },
	{ WRITTEN, TOLD, 8, DATA },
	{ SENT, RECEIVED | KFI_REMOTE_CQ_DATA, 8, DATA },
	{ WRITTEN, 0, 8, 0, true },
	{ SENT, RECEIVED | KFI_REMOTE_CQ_DATA, 24, DATA, true },
	{ WRITTEN, TOLD, 24, DATA, true },
	{ ADDED, 0, 8, 0, true },
};

int ep_kinds_region(struct ep_pair *p, u8 *mem, struct kfid_mr **mr)
{
	return kfi_mr_reg(p->side[1].domain, mem + 2 * LEN, LEN, KFI_REMOTE_READ | KFI_REMOTE_WRITE,
			  0, 4, 0, mr, NULL);
}

/* Two buffers, to three places. */
static ssize_t pieces(struct kfid_ep *ep, u8 *mem, kfi_addr_t to, u64 at, u64 key, void *context)
{
	struct kvec kv[2] = { { mem, 8 }, { mem + 16, 8 } };
	struct kfi_rma_iov iov[3] = { { at, 4, key }, { at + 32, 8, key }, { at + 48, 4, key } };
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.msg_iov = kv,
		.iov_count = 2,
		.addr = to,
		.rma_iov = iov,
		.rma_iov_count = 3,
		.context = context,
	};

	return kfi_writemsg(ep, &msg, KFI_COMPLETION);
}

ssize_t ep_kind_post(struct ep_pair *p, u8 *mem, struct kfid_mr *mr, unsigned int kind)
{
	struct kfid_ep *ep = p->side[0].ep;
	struct kvec kv[2] = { { mem, 8 }, { mem + 16, 8 } };
	u64 at = mr->iova, key = kfi_mr_key(mr), one = 1;
	void *context = ep_kind_context(kind);
	size_t len = ep_kinds[kind].len;
	kfi_addr_t to = p->addr;

	switch (kind) {
	case 0:
		return kfi_recv(p->side[1].ep, mem + LEN, LEN, NULL, to, context);
	case EP_KIND_SEND:
		return kfi_sendv(ep, kv, NULL, 2, to, context);
	case EP_KIND_WRITE:
		return kfi_write(ep, mem, len, NULL, to, at, key, context);
	case 3:
		return kfi_readv(ep, kv, NULL, 2, to, at, key, context);
	case 4:
		return kfi_inject(ep, mem, len, to);
	case EP_KIND_PIECES:
		return pieces(ep, mem, to, at, key, context);
	case 6:
		return kfi_atomic(ep, &one, 1, NULL, to, at, key, KFI_UINT64, KFI_SUM, context);
	case 7:
		return kfi_fetch_atomic(ep, &one, 1, NULL, mem, NULL, to, at, key, KFI_UINT64,
					KFI_SUM, context);
	case 8:
		return kfi_writedata(ep, mem, len, NULL, DATA, to, at, key, context);
	case 9:
		return kfi_senddata(ep, mem, len, NULL, DATA, to, context);
	case 10:
		return kfi_inject_write(ep, mem, len, to, at, key);
	case 11:
		return kfi_injectdata(ep, mem, len, DATA, to);
	case 12:
		return kfi_inject_writedata(ep, mem, len, DATA, to, at, key);
	default:
		return kfi_inject_atomic(ep, &one, 1, to, at, key, KFI_UINT64, KFI_SUM);
	}
}

void ep_kind_ends(struct kfi_test *t, struct ep_pair *p, u8 *mem, struct kfid_mr *mr,
		  unsigned int kind)
{
	const struct ep_kind *taken = &ep_kinds[kind ?: EP_KIND_SEND];
	struct kfi_cq_data_entry entry;
	unsigned int sent = kind;

	/*
	 * Requests with nothing to wait for are awaited by those behind them. A message that the
	 * peer has got may still have its place in the queue.
	 */
	if (kind == 0)
		sent = EP_KIND_SEND;
	else if (!ep_kind_completes(kind))
		sent = EP_KIND_WRITE;
	if (sent != kind)
		EXPECT_EQ(t, ep_kind_post(p, mem, mr, sent), 0);
	if (taken->peer_flags &&
	    ep_completed(t, p->side[1].rx, ep_kind_context(0), taken->peer_flags, &entry)) {
		EXPECT_EQ(t, entry.len, taken->len);
		EXPECT_EQ(t, entry.data, taken->data);
	}
	if (ep_kind_completes(sent))
		ep_completed(t, p->side[0].tx, ep_kind_context(sent), ep_kinds[sent].flags, NULL);
}
