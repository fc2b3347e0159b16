// SPDX-License-Identifier: GPL-2.0
/* Transfers of each kind. */
#include <kfi_atomic.h>

#include "kinds.h"

#define LEN	64

static void *ctx(unsigned int kind)
{
	return (void *)(kind + 1UL);
}

int ep_kinds_region(struct ep_pair *p, u8 *mem, struct kfid_mr **mr)
{
	return kfi_mr_reg(p->side[1].domain, mem + 2 * LEN, LEN, KFI_REMOTE_READ | KFI_REMOTE_WRITE,
			  0, 4, 0, mr, NULL);
}

/* Two buffers, to three places. */
static ssize_t pieces(struct kfid_ep *ep, u8 *mem, u64 at, u64 key, void *context)
{
	struct kvec kv[2] = { { mem, 8 }, { mem + 16, 8 } };
	struct kfi_rma_iov iov[3] = { { at, 4, key }, { at + 32, 8, key }, { at + 48, 4, key } };
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.msg_iov = kv,
		.iov_count = 2,
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
	void *context = ctx(kind);

	switch (kind) {
	case 0:
		return kfi_recv(p->side[1].ep, mem + LEN, LEN, NULL, 0, context);
	case EP_KIND_SEND:
		return kfi_sendv(ep, kv, NULL, 2, 0, context);
	case 2:
		return kfi_write(ep, mem, 8, NULL, 0, at, key, context);
	case 3:
		return kfi_readv(ep, kv, NULL, 2, 0, at, key, context);
	case 4:
		return kfi_inject(ep, mem, 8, 0);
	case EP_KIND_PIECES:
		return pieces(ep, mem, at, key, context);
	case 6:
		return kfi_atomic(ep, &one, 1, NULL, 0, at, key, KFI_UINT64, KFI_SUM, context);
	case 7:
		return kfi_fetch_atomic(ep, &one, 1, NULL, mem, NULL, 0, at, key, KFI_UINT64, KFI_SUM,
					context);
	case 8:
		return kfi_writedata(ep, mem, 8, NULL, 7, 0, at, key, context);
	case 9:
		return kfi_senddata(ep, mem, 8, NULL, 7, 0, context);
	default:
		return kfi_inject_write(ep, mem, 8, 0, at, key);
	}
}

bool ep_kind_needs_receive(unsigned int kind)
{
	return kind == EP_KIND_SEND || kind == 4 || kind == 8 || kind == 9;
}

bool ep_kind_completes(unsigned int kind)
{
	return kind != 4 && kind != 10;
}

void ep_kind_ends(struct kfi_test *t, struct ep_pair *p, u8 *mem, struct kfid_mr *mr,
		  unsigned int kind)
{
	struct kfi_cq_data_entry entry = {};
	unsigned int sent = kind;

	/*
	 * What has nothing to wait for is waited for by what is behind it. That the peer has got a message
	 * doesn't say that its place in the queue is free again.
	 */
	if (kind == 0)
		sent = EP_KIND_SEND;
	else if (!ep_kind_completes(kind))
		sent = 2;
	if (sent != kind)
		EXPECT_EQ(t, ep_kind_post(p, mem, mr, sent), 0);
	if (!kind || ep_kind_needs_receive(kind)) {
		EXPECT_EQ(t, kfi_cq_sread(p->side[1].rx, &entry, 1, NULL, EP_WAIT_MS), 1);
		EXPECT(t, entry.op_context == ctx(0), "a completion of something else");
	}
	if (ep_kind_completes(sent)) {
		EXPECT_EQ(t, kfi_cq_sread(p->side[0].tx, &entry, 1, NULL, EP_WAIT_MS), 1);
		EXPECT(t, entry.op_context == ctx(sent), "a completion of something else");
	}
}
