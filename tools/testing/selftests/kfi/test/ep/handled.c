// SPDX-License-Identifier: GPL-2.0
/* A listener that does everything in the handler of its event queue: opens, accepts, posts and closes. */
#include "ep.h"

#define LEN	64

struct handled {
	struct ep_side *s;
	struct ep_event e;
	struct kfid_pep *pep;
	struct kfid_eq *eq;
	struct kfid_ep *ep;
	u8 *mem;
	/* The first thing that went wrong. */
	ssize_t wrong;
	struct completion connected;
	struct completion closed;
};

static void note(struct handled *h, ssize_t ret)
{
	h->wrong = h->wrong ?: ret;
}

static int answered(struct handled *h, struct kfi_info *info)
{
	return kfi_endpoint(h->s->domain, info, &h->ep, h) ?:
	       kfi_ep_bind(h->ep, &h->eq->fid, 0) ?:
	       kfi_ep_bind(h->ep, &h->s->tx->fid, KFI_TRANSMIT) ?:
	       kfi_ep_bind(h->ep, &h->s->rx->fid, KFI_RECV) ?:
	       kfi_enable(h->ep) ?:
	       (int)kfi_recv(h->ep, h->mem, LEN, NULL, 0, h) ?:
	       kfi_accept(h->ep, NULL, 0);
}

static void handler(struct kfid_eq *eq, void *context)
{
	struct handled *h = context;
	ssize_t len;
	u32 event;

	while ((len = kfi_eq_read(eq, &event, &h->e, sizeof(h->e), 0)) > 0) {
		if (event == KFI_CONNREQ) {
			note(h, answered(h, h->e.entry.info));
			kfi_freeinfo(h->e.entry.info);
		} else if (event == KFI_SHUTDOWN) {
			note(h, kfi_close(&h->ep->fid));
			h->ep = NULL;
			complete(&h->closed);
		} else if (event == KFI_CONNECTED) {
			complete(&h->connected);
		} else {
			note(h, event);
		}
	}
	if (len != -KFI_EAGAIN)
		note(h, len);
}

static bool listens(struct kfi_test *t, struct handled *h, struct sockaddr_in *address)
{
	struct kfi_eq_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_info *source = ep_info(t, address, KFI_SOURCE, 0);
	size_t len = sizeof(*address);
	bool done;

	done = source && EXPECT_EQ(t, kfi_eq_open(h->s->fabric, &attr, &h->eq, handler, h), 0) &&
	       EXPECT_EQ(t, kfi_passive_ep(h->s->fabric, source, &h->pep, h), 0) &&
	       EXPECT_EQ(t, kfi_pep_bind(h->pep, &h->eq->fid, 0), 0) &&
	       EXPECT_EQ(t, kfi_listen(h->pep), 0) &&
	       EXPECT_EQ(t, kfi_getname(&h->pep->fid, address, &len), 0);
	kfi_freeinfo(source);
	return done;
}

void ep_handled_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_listening(t, NULL);
	struct sockaddr_in address = ep_address();
	struct handled *h = kzalloc_obj(*h);
	u8 *mem = kzalloc(2 * LEN, GFP_KERNEL);
	struct ep_event e;
	struct ep_side *s;

	if (!p || !EXPECT(t, h && mem, "no memory"))
		goto out;
	s = &p->side[0];
	h->s = &p->side[1];
	h->mem = mem + LEN;
	init_completion(&h->connected);
	init_completion(&h->closed);
	memset(mem, 0x2d, LEN);
	if (listens(t, h, &address) && EXPECT_EQ(t, kfi_connect(s->ep, &address, NULL, 0), 0) &&
	    ep_event(t, s->eq, KFI_CONNECTED, &s->ep->fid, &e) &&
	    EXPECT_EQ(t, kfi_send(s->ep, mem, LEN, NULL, 0, s), 0)) {
		ep_completed(t, s->tx, s, KFI_MSG | KFI_SEND, NULL);
		ep_completed(t, h->s->rx, h, KFI_MSG | KFI_RECV, NULL);
		EXPECT(t, !memcmp(mem, h->mem, LEN), "other bytes");
		/* Data may arrive first. A connection that ends before is an error. */
		EXPECT(t, wait_for_completion_timeout(&h->connected, msecs_to_jiffies(EP_WAIT_MS)),
		       "it was not connected");
		EXPECT_EQ(t, kfi_shutdown(s->ep, 0), 0);
		EXPECT(t, wait_for_completion_timeout(&h->closed, msecs_to_jiffies(EP_WAIT_MS)),
		       "it was not closed");
	}
	EXPECT_EQ(t, h->wrong, 0);
	if (h->pep)
		EXPECT_EQ(t, kfi_close(&h->pep->fid), 0);
	if (h->ep)
		EXPECT_EQ(t, kfi_close(&h->ep->fid), 0);
	if (h->eq)
		EXPECT_EQ(t, kfi_close(&h->eq->fid), 0);
out:
	if (p)
		ep_pair_close(t, p);
	kfree(h);
	kfree(mem);
}
