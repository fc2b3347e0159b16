// SPDX-License-Identifier: GPL-2.0
/* Several threads that use one endpoint before it is connected. */
#include "ep.h"
#include "job.h"

/* The work of a thread, when the other is there. */
struct doing {
	int (*call)(struct kfid_ep *ep);
	struct kfid_ep *ep;
	atomic_t *waits;
};

static int enable(struct kfid_ep *ep)
{
	return kfi_enable(ep);
}

/* To where nobody listens: it doesn't matter what comes of it. */
static int connect(struct kfid_ep *ep)
{
	struct sockaddr_in nowhere = ep_address();

	nowhere.sin_port = htons(9);
	return kfi_connect(ep, &nowhere, NULL, 0);
}

static int do_at_once(void *data)
{
	struct doing *d = data;
	int patience = 1 << 20;

	atomic_dec(d->waits);
	while (atomic_read(d->waits) && patience--)
		cpu_relax();
	return d->call(d->ep);
}

/* One connects what another enables; or both connect, of whom one does. */
static void at_once(struct kfi_test *t, struct kfid_ep *ep, bool enables)
{
	atomic_t waits = ATOMIC_INIT(2);
	struct doing by[2] = {
		{ connect, ep, &waits }, { enables ? enable : connect, ep, &waits },
	};
	struct job job[2] = {};
	int ret[2], i;

	for (i = 0; i < 2; i++)
		job_start(t, &job[i], do_at_once, &by[i]);
	for (i = 0; i < 2; i++)
		ret[i] = job_end(t, &job[i]);
	if (enables)
		EXPECT(t, !ret[0] && (!ret[1] || ret[1] == -KFI_EOPBADSTATE),
		       "connecting is %d, enabling %d", ret[0], ret[1]);
	else
		EXPECT(t, (!ret[0] && ret[1] == -KFI_EOPBADSTATE) ||
			  (!ret[1] && ret[0] == -KFI_EOPBADSTATE),
		       "connecting is %d and %d", ret[0], ret[1]);
}

/* Each gets what it would get before or after the other. */
void ep_at_once_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_listening(t, NULL);
	unsigned int rounds = max(scaled(40), 10U), i;
	struct ep_side *s;

	if (!p)
		return;
	s = &p->side[0];
	p->info->tx_attr->size = 1;
	p->info->rx_attr->size = 1;
	for (i = 0; i < rounds && !t->failures; i++) {
		EXPECT_EQ(t, kfi_close(&s->ep->fid), 0);
		s->ep = NULL;
		if (!EXPECT_EQ(t, kfi_endpoint(s->domain, p->info, &s->ep, NULL), 0) ||
		    !EXPECT_EQ(t, kfi_ep_bind(s->ep, &s->eq->fid, 0), 0) ||
		    !EXPECT_EQ(t, kfi_ep_bind(s->ep, &s->tx->fid, KFI_TRANSMIT), 0) ||
		    !EXPECT_EQ(t, kfi_ep_bind(s->ep, &s->rx->fid, KFI_RECV), 0))
			break;
		at_once(t, s->ep, i % 2);
	}
	ep_pair_close(t, p);
}
