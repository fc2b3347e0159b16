// SPDX-License-Identifier: GPL-2.0
/* Endpoints without data transfers: see slots.h. */
#include <kfi_atomic.h>
#include <kfi_endpoint.h>
#include <kfi_rma.h>
#include <kfi_tagged.h>

#include "bare.h"

static char buf[8];

void bare_messages_case(struct kfi_test *t)
{
	union bare_ops ops;
	struct kfid_ep endpoint = { .msg = BARE(&ops, t->variant, struct kfi_ops_msg) };
	struct kfid_ep *ep = &endpoint;
	struct kfi_msg msg = {};

	NOSYS(t, kfi_recv(ep, buf, 8, NULL, 0, NULL));
	NOSYS(t, kfi_recvv(ep, NULL, NULL, 0, 0, NULL));
	NOSYS(t, kfi_recvbv(ep, NULL, NULL, 0, 0, NULL));
	NOSYS(t, kfi_recvsgl(ep, NULL, NULL, 0, 0, NULL));
	NOSYS(t, kfi_recvmsg(ep, &msg, 0));
	NOSYS(t, kfi_send(ep, buf, 8, NULL, 0, NULL));
	NOSYS(t, kfi_sendv(ep, NULL, NULL, 0, 0, NULL));
	NOSYS(t, kfi_sendbv(ep, NULL, NULL, 0, 0, NULL));
	NOSYS(t, kfi_sendsgl(ep, NULL, NULL, 0, 0, NULL));
	NOSYS(t, kfi_sendmsg(ep, &msg, 0));
	NOSYS(t, kfi_inject(ep, buf, 8, 0));
	NOSYS(t, kfi_senddata(ep, buf, 8, NULL, 0, 0, NULL));
	NOSYS(t, kfi_injectdata(ep, buf, 8, 0, 0));
}

void bare_rma_case(struct kfi_test *t)
{
	union bare_ops ops;
	struct kfid_ep endpoint = { .rma = BARE(&ops, t->variant, struct kfi_ops_rma) };
	struct kfid_ep *ep = &endpoint;
	struct kfi_msg_rma msg = {};

	NOSYS(t, kfi_read(ep, buf, 8, NULL, 0, 0, 0, NULL));
	NOSYS(t, kfi_readv(ep, NULL, NULL, 0, 0, 0, 0, NULL));
	NOSYS(t, kfi_readbv(ep, NULL, NULL, 0, 0, 0, 0, NULL));
	NOSYS(t, kfi_readsgl(ep, NULL, NULL, 0, 0, 0, 0, NULL));
	NOSYS(t, kfi_readmsg(ep, &msg, 0));
	NOSYS(t, kfi_write(ep, buf, 8, NULL, 0, 0, 0, NULL));
	NOSYS(t, kfi_writev(ep, NULL, NULL, 0, 0, 0, 0, NULL));
	NOSYS(t, kfi_writebv(ep, NULL, NULL, 0, 0, 0, 0, NULL));
	NOSYS(t, kfi_writesgl(ep, NULL, NULL, 0, 0, 0, 0, NULL));
	NOSYS(t, kfi_writemsg(ep, &msg, 0));
	NOSYS(t, kfi_inject_write(ep, buf, 8, 0, 0, 0));
	NOSYS(t, kfi_writedata(ep, buf, 8, NULL, 0, 0, 0, 0, NULL));
	NOSYS(t, kfi_inject_writedata(ep, buf, 8, 0, 0, 0, 0));
}

void bare_tagged_case(struct kfi_test *t)
{
	union bare_ops ops;
	struct kfid_ep endpoint = { .tagged = BARE(&ops, t->variant, struct kfi_ops_tagged) };
	struct kfid_ep *ep = &endpoint;
	struct kfi_msg_tagged msg = {};

	NOSYS(t, kfi_trecv(ep, buf, 8, NULL, 0, 0, 0, NULL));
	NOSYS(t, kfi_trecvv(ep, NULL, NULL, 0, 0, 0, 0, NULL));
	NOSYS(t, kfi_trecvbv(ep, NULL, NULL, 0, 0, 0, 0, NULL));
	NOSYS(t, kfi_trecvsgl(ep, NULL, NULL, 0, 0, 0, 0, NULL));
	NOSYS(t, kfi_trecvmsg(ep, &msg, 0));
	NOSYS(t, kfi_tsend(ep, buf, 8, NULL, 0, 0, NULL));
	NOSYS(t, kfi_tsendv(ep, NULL, NULL, 0, 0, 0, NULL));
	NOSYS(t, kfi_tsendbv(ep, NULL, NULL, 0, 0, 0, NULL));
	NOSYS(t, kfi_tsendsgl(ep, NULL, NULL, 0, 0, 0, NULL));
	NOSYS(t, kfi_tsendmsg(ep, &msg, 0));
	NOSYS(t, kfi_tinject(ep, buf, 8, 0, 0));
	NOSYS(t, kfi_tsenddata(ep, buf, 8, NULL, 0, 0, 0, NULL));
	NOSYS(t, kfi_tinjectdata(ep, buf, 8, 0, 0, 0));
}

void bare_atomic_case(struct kfi_test *t)
{
	union bare_ops ops;
	struct kfid_ep endpoint = { .atomic = BARE(&ops, t->variant, struct kfi_ops_atomic) };
	struct kfid_ep *ep = &endpoint;
	struct kfi_msg_atomic msg = {};
	size_t n;

	NOSYS(t, kfi_atomic(ep, buf, 1, NULL, 0, 0, 0, KFI_UINT64, KFI_SUM, NULL));
	NOSYS(t, kfi_atomicv(ep, NULL, NULL, 0, 0, 0, 0, KFI_UINT64, KFI_SUM, NULL));
	NOSYS(t, kfi_atomicmsg(ep, &msg, 0));
	NOSYS(t, kfi_inject_atomic(ep, buf, 1, 0, 0, 0, KFI_UINT64, KFI_SUM));
	NOSYS(t, kfi_fetch_atomic(ep, buf, 1, NULL, buf, NULL, 0, 0, 0, KFI_UINT64, KFI_SUM,
				  NULL));
	NOSYS(t, kfi_fetch_atomicv(ep, NULL, NULL, 0, NULL, NULL, 0, 0, 0, 0, KFI_UINT64, KFI_SUM,
				   NULL));
	NOSYS(t, kfi_fetch_atomicmsg(ep, &msg, NULL, NULL, 0, 0));
	NOSYS(t, kfi_compare_atomic(ep, buf, 1, NULL, buf, NULL, buf, NULL, 0, 0, 0, KFI_UINT64,
				    KFI_CSWAP, NULL));
	NOSYS(t, kfi_compare_atomicv(ep, NULL, NULL, 0, NULL, NULL, 0, NULL, NULL, 0, 0, 0, 0,
				     KFI_UINT64, KFI_CSWAP, NULL));
	NOSYS(t, kfi_compare_atomicmsg(ep, &msg, NULL, NULL, 0, NULL, NULL, 0, 0));
	NOSYS(t, kfi_atomicvalid(ep, KFI_UINT64, KFI_SUM, &n));
	NOSYS(t, kfi_fetch_atomicvalid(ep, KFI_UINT64, KFI_SUM, &n));
	NOSYS(t, kfi_compare_atomicvalid(ep, KFI_UINT64, KFI_CSWAP, &n));
}
