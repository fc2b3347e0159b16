// SPDX-License-Identifier: GPL-2.0
/* Queues that are closed before the endpoints that are bound to them. */
#include <linux/delay.h>

#include "ep.h"

#define LEN	64

/* Posts, as soon as there is room. */
#define POSTED(t, call)								\
({										\
	int __naps = 0;								\
	ssize_t __ret;								\
										\
	while ((__ret = (call)) == -KFI_EAGAIN && __naps++ < EP_WAIT_MS)	\
		msleep(1);							\
	EXPECT_EQ(t, __ret, 0);							\
})

/* Closes the queue at @queue, which nobody closes again. */
static void eq_closed(struct kfi_test *t, struct kfid_eq **queue)
{
	EXPECT_EQ(t, kfi_close(&(*queue)->fid), 0);
	*queue = NULL;
}

static void cq_closed(struct kfi_test *t, struct kfid_cq **queue)
{
	EXPECT_EQ(t, kfi_close(&(*queue)->fid), 0);
	*queue = NULL;
}

static void pep_closed(struct kfi_test *t, struct ep_pair *p)
{
	EXPECT_EQ(t, kfi_close(&p->pep->fid), 0);
	p->pep = NULL;
}

/* The active side asks once more, and is rejected at once: nobody can read of it. */
static void rejected_again(struct kfi_test *t, struct ep_pair *p)
{
	struct ep_side *s = &p->side[0];
	static const struct ep_wants none;
	struct kfi_eq_err_entry err;

	EXPECT_EQ(t, kfi_close(&s->ep->fid), 0);
	s->ep = NULL;
	if (!ep_open(t, s, p->info, &none))
		return;
	EXPECT_EQ(t, kfi_connect(s->ep, NULL, NULL, 0), 0);
	ep_failed(t, s->eq, &s->ep->fid, KFI_ECONNREFUSED, &err);
}

/*
 * An event queue is closed before the passive endpoint. A request that nobody has read is rejected, and so is
 * each that comes later.  A request that was read can be answered.
 */
void ep_eq_first_case(struct kfi_test *t)
{
	struct ep_event *e = kzalloc_obj(*e);
	struct kfi_eq_err_entry err;
	struct ep_pair *p;
	ssize_t len;
	u32 event;
	int i;

	if (!EXPECT(t, e, "no memory"))
		return;
	for (i = 0; i < 2; i++) {
		p = ep_listening(t, NULL);
		if (!p)
			break;
		EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
		/* It is in the queue, and stays there. */
		len = kfi_eq_sread(p->side[1].eq, &event, e, sizeof(*e), EP_WAIT_MS, KFI_PEEK);
		EXPECT(t, len >= (ssize_t)sizeof(e->entry), "reading an event is %zd", len);
		eq_closed(t, &p->side[1].eq);
		ep_failed(t, p->side[0].eq, &p->side[0].ep->fid, KFI_ECONNREFUSED, &err);
		rejected_again(t, p);
		/* Both orders at the active side, too. */
		if (i)
			eq_closed(t, &p->side[0].eq);
		pep_closed(t, p);
		ep_pair_close(t, p);
	}
	p = ep_listening(t, NULL);
	if (!p)
		goto out;
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
	if (ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e)) {
		eq_closed(t, &p->side[1].eq);
		EXPECT_EQ(t, kfi_reject(p->pep, e->entry.info->handle, "no", 2), 0);
		ep_failed(t, p->side[0].eq, &p->side[0].ep->fid, KFI_ECONNREFUSED, &err);
		EXPECT(t, err.err_data_size >= 2 && !memcmp(err.err_data, "no", 2), "other data");
		kfi_freeinfo(e->entry.info);
	}
	ep_pair_close(t, p);
out:
	kfree(e);
}

/* A queue that was closed isn't bound any more: what needs one says so. */
void ep_eq_unbound_case(struct kfi_test *t)
{
	struct sockaddr_in address = ep_address();
	struct kfi_info *info = ep_info(t, &address, KFI_SOURCE, 0);
	struct kfi_eq_attr attr = {};
	static const struct ep_wants none;
	u8 *mem = kzalloc(LEN, GFP_KERNEL);
	struct ep_side s = {};
	struct kfid_pep *pep;
	struct kfid_ep *srx;
	struct kfid_eq *eq;

	if (!EXPECT(t, mem, "no memory") || !info || !ep_side_open(t, &s, info, &none) ||
	    !EXPECT_EQ(t, kfi_eq_open(s.fabric, &attr, &eq, NULL, NULL), 0))
		goto out;
	if (EXPECT_EQ(t, kfi_endpoint(s.domain, info, &s.ep, NULL), 0)) {
		EXPECT_EQ(t, kfi_ep_bind(s.ep, &eq->fid, 0), 0);
		/* The names that today's consumers have for both directions. */
		EXPECT_EQ(t, kfi_ep_bind(s.ep, &s.tx->fid, KFI_SEND), 0);
		EXPECT_EQ(t, kfi_ep_bind(s.ep, &s.rx->fid, KFI_RECV), 0);
	}
	if (EXPECT_EQ(t, kfi_passive_ep(s.fabric, info, &pep, NULL), 0)) {
		EXPECT_EQ(t, kfi_pep_bind(pep, &eq->fid, 0), 0);
		eq_closed(t, &eq);
		EXPECT_EQ(t, kfi_listen(pep), -KFI_ENOEQ);
		EXPECT_EQ(t, kfi_close(&pep->fid), 0);
	}
	if (s.ep)
		EXPECT_EQ(t, kfi_enable(s.ep), -KFI_ENOEQ);
	/* A context that endpoints share goes on without its queue, too. */
	if (EXPECT_EQ(t, kfi_srx_context(s.domain, NULL, &srx, NULL), 0)) {
		EXPECT_EQ(t, kfi_ep_bind(srx, &s.rx->fid, KFI_RECV), 0);
		EXPECT_EQ(t, kfi_recv(srx, mem, LEN, NULL, 0, NULL), 0);
		cq_closed(t, &s.rx);
		EXPECT_EQ(t, kfi_recv(srx, mem, LEN, NULL, 0, NULL), 0);
		EXPECT_EQ(t, kfi_close(&srx->fid), 0);
	}
out:
	kfree(mem);
	ep_side_close(t, &s);
	kfi_freeinfo(info);
}

/*
 * All queues of a side are closed while it is connected, with transfers under way in both directions. More
 * can be posted; nothing is reported, and no place in a queue is lost. The other side sees all of it.
 */
void ep_cq_first_case(struct kfi_test *t)
{
	static const struct ep_wants wants = { .cq_size = 8, .tx_size = 8, .rx_size = 8 };
	struct ep_event *e = kzalloc_obj(*e);
	struct kfi_cq_data_entry entry;
	struct ep_memory m = {};
	struct ep_side *s;
	int side, i;

	for (side = 0; e && side < 2 && !t->failures; side++) {
		memset(&m, 0, sizeof(m));
		if (!ep_memory_open(t, &m, &wants, 4 * LEN))
			goto next;
		s = m.p->side;
		for (i = 0; i < 4; i++) {
			EXPECT_EQ(t, kfi_recv(s[!side].ep, m.there, LEN, NULL, 0, NULL), 0);
			EXPECT_EQ(t, kfi_recv(s[side].ep, m.there + LEN, LEN, NULL, 0, NULL), 0);
		}
		EXPECT_EQ(t, kfi_send(s[side].ep, m.here, LEN, NULL, 0, NULL), 0);
		EXPECT_EQ(t, kfi_send(s[!side].ep, m.here, LEN, NULL, 0, NULL), 0);
		cq_closed(t, &s[side].tx);
		cq_closed(t, &s[side].rx);
		eq_closed(t, &s[side].eq);
		EXPECT_EQ(t, kfi_close(&s[side].domain->fid), -KFI_EBUSY);
		for (i = 1; i < 4; i++) {
			EXPECT_EQ(t, kfi_send(s[side].ep, m.here, LEN, NULL, 0, NULL), 0);
			EXPECT_EQ(t, kfi_send(s[!side].ep, m.here, LEN, NULL, 0, NULL), 0);
		}
		for (i = 0; i < 4; i++) {
			ep_completed(t, s[!side].rx, NULL, KFI_MSG | KFI_RECV, &entry);
			ep_completed(t, s[!side].tx, NULL, KFI_MSG | KFI_SEND, &entry);
		}
		/* More than there are places, so that each has come back. */
		for (i = 0; i < 16 && !t->failures; i++) {
			EXPECT_EQ(t, kfi_recv(s[!side].ep, m.there, LEN, NULL, 0, NULL), 0);
			POSTED(t, kfi_send(s[side].ep, m.here, LEN, NULL, 0, NULL));
			ep_completed(t, s[!side].rx, NULL, KFI_MSG | KFI_RECV, &entry);
		}
		EXPECT_EQ(t, kfi_shutdown(s[side].ep, 0), 0);
		ep_event(t, s[!side].eq, KFI_SHUTDOWN, &s[!side].ep->fid, e);
next:
		ep_memory_close(t, &m);
	}
	kfree(e);
}
