// SPDX-License-Identifier: GPL-2.0
/* Completions that are only told where that is asked for, and failures, which are told anyway. */
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
	/* What fails is told. */
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
