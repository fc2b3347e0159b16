// SPDX-License-Identifier: GPL-2.0
/* Receives that endpoints share: what is refused, and what fails. */
#include "shared.h"

/* Contexts that can't be bound, enabled or posted to, with the errno; and the limits. */
void ep_shared_refused_case(struct kfi_test *t)
{
	struct kfi_cntr_attr cntr_attr = { .events = KFI_CNTR_EVENTS_COMP,
					   .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_rx_attr attr = { .size = 2 };
	struct kfid_cntr *cntr = NULL;
	struct kfid_ep *ep, *small = NULL;
	struct ep_side *side;
	struct sharing s;

	if (!sharing_begin(t, &s, NULL, 0))
		goto out;
	side = &s.p->side[1];
	EXPECT_EQ(t, kfi_ep_bind(s.srx, &side->rx->fid, KFI_RECV), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_ep_bind(s.srx, &side->rx->fid, KFI_TRANSMIT), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_ep_bind(s.srx, &side->eq->fid, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_send(s.srx, s.buf, 8, NULL, 0, NULL), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_read(s.srx, s.buf, 8, NULL, 0, 0, 0, NULL), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_recv(s.srx, NULL, 8, NULL, 0, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_tx_size_left(s.srx), -KFI_ENOSYS);
	/* One that doesn't share. */
	EXPECT_EQ(t, kfi_endpoint(side->domain, s.p->info, &ep, NULL), 0);
	EXPECT_EQ(t, kfi_ep_bind(ep, &s.srx->fid, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_close(&ep->fid), 0);
	/* One that does. */
	ep = sharing_ep(t, s.p, s.p->info);
	EXPECT_EQ(t, kfi_enable(ep), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_ep_bind(ep, &s.srx->fid, KFI_RECV), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_ep_bind(ep, &s.srx->fid, 0), 0);
	EXPECT_EQ(t, kfi_ep_bind(ep, &s.srx->fid, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_ep_bind(ep, &side->tx->fid, KFI_RECV), 0);
	/* Not the queue of the context. */
	EXPECT_EQ(t, kfi_enable(ep), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_close(&ep->fid), 0);
	/* The endpoint's becomes that of the context. */
	attr.size = 1 << 20;
	EXPECT_EQ(t, kfi_srx_context(side->domain, &attr, &small, NULL), -KFI_ENODATA);
	attr.size = 2;
	EXPECT_EQ(t, kfi_srx_context(side->domain, &attr, &small, NULL), 0);
	ep = sharing_ep(t, s.p, s.p->info);
	EXPECT_EQ(t, kfi_ep_bind(ep, &small->fid, 0), 0);
	EXPECT_EQ(t, kfi_enable(ep), -KFI_ENOCQ);
	EXPECT_EQ(t, kfi_cntr_open(side->domain, &cntr_attr, &cntr, NULL), 0);
	EXPECT_EQ(t, kfi_ep_bind(ep, &cntr->fid, KFI_RECV), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_ep_bind(small, &cntr->fid, KFI_RECV), 0);
	EXPECT_EQ(t, kfi_ep_bind(ep, &side->rx->fid, KFI_RECV), 0);
	EXPECT_EQ(t, kfi_enable(ep), 0);
	EXPECT_EQ(t, kfi_recv(ep, s.buf, LEN, NULL, 0, NULL), -KFI_EOPNOTSUPP);
	EXPECT_EQ(t, kfi_rx_size_left(small), 2);
	EXPECT_EQ(t, kfi_recv(small, s.buf, LEN, NULL, 0, ctx(1)), 0);
	EXPECT_EQ(t, kfi_recv(small, s.buf + LEN, LEN, NULL, 0, ctx(2)), 0);
	EXPECT_EQ(t, kfi_recv(small, s.buf, LEN, NULL, 0, ctx(3)), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_rx_size_left(small), 0);
	EXPECT_EQ(t, kfi_close(&ep->fid), 0);
	ep_nothing(t, side->rx);
	EXPECT_EQ(t, kfi_close(&small->fid), 0);
	ep_failed_op(t, side->rx, ctx(1), KFI_ECANCELED, NULL);
	ep_failed_op(t, side->rx, ctx(2), KFI_ECANCELED, NULL);
	ep_nothing(t, side->rx);
	EXPECT_EQ(t, kfi_cntr_readerr(cntr), 2);
	EXPECT_EQ(t, kfi_close(&cntr->fid), 0);
out:
	sharing_end(t, &s);
}

/* Connections beside one that has ended, and since when; to be looked at later. */
static struct {
	struct sharing *s;
	u64 since;
} beside;

/* A message that is too long ends the connection that it came by, and no other. */
void ep_shared_truncated_case(struct kfi_test *t)
{
	struct kfi_cq_data_entry entry;
	struct kfi_cq_err_entry err;
	struct ep_event *e = kzalloc_obj(*e);
	struct sharing *s = kzalloc_obj(*s);
	struct ep_side *a, *p;
	int i;

	if (!EXPECT(t, e && s, "no memory"))
		goto out;
	if (!sharing_begin(t, s, NULL, 2))
		goto end;
	for (i = 0; i < 3; i++)
		if (!sharing_join(t, s, i))
			goto end;
	a = &s->p->side[0];
	p = &s->p->side[1];
	EXPECT_EQ(t, kfi_send(s->active[1], s->buf + 8 * LEN, LEN + 1, NULL, 0, ctx(101)), 0);
	if (ep_failed_op(t, p->rx, ctx(0), KFI_ETRUNC, &err))
		EXPECT_EQ(t, err.olen, has_feature(F_OLEN));
	ep_failed_op(t, a->tx, ctx(101), KFI_EREMOTEIO, &err);
	ep_event(t, p->eq, KFI_SHUTDOWN, &s->passive[1]->fid, e);
	ep_event(t, a->eq, KFI_SHUTDOWN, &s->active[1]->fid, e);
	/* The others go on. */
	for (i = 0; i < 3; i += 2) {
		if (i)
			sharing_post(t, s, 1);
		s->buf[9 * LEN] = 40 + i;
		EXPECT_EQ(t, kfi_send(s->active[i], s->buf + 9 * LEN, 1, NULL, 0, ctx(102)), 0);
		ep_completed(t, a->tx, ctx(102), KFI_MSG | KFI_SEND, NULL);
		if (ep_completed(t, p->rx, ctx(1), KFI_MSG | KFI_RECV, &entry))
			EXPECT_EQ(t, s->buf[LEN], 40 + i);
	}
	/* Until shared_unharmed. */
	t->leaves_open = true;
	beside.s = s;
	beside.since = get_jiffies_64();
	kfree(e);
	return;
end:
	sharing_end(t, s);
out:
	kfree(s);
	kfree(e);
}

/* The others go on also when a peer that has been told of nothing would have been given up. */
void ep_shared_unharmed_case(struct kfi_test *t)
{
	/* Verbs leaves it to the peer for ten seconds to find out that its message has failed. */
	int waits = has_feature(F_DEVICE) ? 11000 : 100;
	struct ep_event *e = kzalloc_obj(*e);
	struct sharing *s = beside.s;
	u64 waited;

	if (EXPECT(t, e, "no memory") && EXPECT(t, s, "there are no others")) {
		waited = jiffies64_to_msecs(get_jiffies_64() - beside.since);
		waits = waited < waits ? waits - waited : 0;
		EXPECT_EQ(t, kfi_eq_sread(s->p->side[1].eq, &(u32){ 0 }, &e->entry, sizeof(*e), waits, 0),
			  -KFI_EAGAIN);
		EXPECT_EQ(t, kfi_eq_read(s->p->side[0].eq, &(u32){ 0 }, &e->entry, sizeof(*e), 0),
			  -KFI_EAGAIN);
		ep_nothing(t, s->p->side[1].rx);
	}
	if (s)
		sharing_end(t, s);
	beside.s = NULL;
	kfree(s);
	kfree(e);
}

/* Two who bind an endpoint to a context each, at once: it receives by the one that had it. */
void ep_shared_once_case(struct kfi_test *t)
{
	unsigned int rounds = scaled(100), i;
	struct sharing s;

	if (!sharing_begin(t, &s, NULL, 0) ||
	    !EXPECT_EQ(t, kfi_srx_context(s.p->side[1].domain, NULL, &s.other, NULL), 0) ||
	    !EXPECT_EQ(t, kfi_ep_bind(s.other, &s.p->side[1].rx->fid, KFI_RECV), 0))
		goto out;
	for (i = 0; i < rounds && !t->failures; i++) {
		if (!sharing_join(t, &s, 1) || !sharing_post(t, &s, 0))
			break;
		s.buf[8 * LEN] = i;
		EXPECT_EQ(t, kfi_inject(s.active[1], s.buf + 8 * LEN, 1, 0), 0);
		ep_completed(t, s.p->side[1].rx, ctx(0), KFI_MSG | KFI_RECV, NULL);
		EXPECT_EQ(t, s.buf[0], (u8)i);
		sharing_leave(t, &s, 1);
	}
	ep_nothing(t, s.p->side[1].rx);
out:
	sharing_end(t, &s);
}
