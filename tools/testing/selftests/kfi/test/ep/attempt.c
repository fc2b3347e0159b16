// SPDX-License-Identifier: GPL-2.0
/* Connecting, where anything may fail. */
#include "attempt.h"

#define LEN	64

/* Milliseconds; what gets lost on the way is not waited for as long as the fabric would. */
#define LIMIT	5000

struct attempt {
	struct ep_pair *p;
	struct ep_event e;
	u8 mem[2 * LEN];
};

/* The errors that a call may return. */
static bool refused(struct kfi_test *t, const char *call, int ret)
{
	if (!ret)
		return false;
	EXPECT(t, ret == -KFI_ENOMEM || ret == -KFI_EIO || ret == -KFI_ENOSPC ||
		  ret == -KFI_ENODATA || ret == -KFI_EADDRNOTAVAIL || ret == -KFI_EHOSTUNREACH,
	       "%s: error %d", call, ret);
	return true;
}

/* An endpoint of a side that is enabled. */
static int opened(struct ep_side *s, struct kfi_info *info)
{
	unsigned int limit = LIMIT;

	return kfi_endpoint(s->domain, info, &s->ep, NULL) ?:
	       kfi_ep_bind(s->ep, &s->eq->fid, 0) ?:
	       kfi_ep_bind(s->ep, &s->tx->fid, KFI_TRANSMIT) ?:
	       kfi_ep_bind(s->ep, &s->rx->fid, KFI_RECV) ?:
	       kfi_setopt(&s->ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_CONNECT_TIMEOUT, &limit,
			  sizeof(limit)) ?:
	       kfi_enable(s->ep);
}

static void closed(struct kfi_test *t, struct ep_side *s)
{
	if (s->ep)
		EXPECT_EQ(t, kfi_close(&s->ep->fid), 0);
	s->ep = NULL;
}

/* The next event of a side, 0 if it is an error; waits at most @timeout milliseconds. */
static bool next(struct kfi_test *t, struct attempt *a, struct ep_side *s, u32 *event, int timeout)
{
	struct kfi_eq_err_entry err = {};
	ssize_t len = kfi_eq_sread(s->eq, event, &a->e, sizeof(a->e), timeout, 0);

	if (len == -KFI_EAVAIL) {
		*event = 0;
		return EXPECT_EQ(t, kfi_eq_readerr(s->eq, &err, 0), sizeof(err));
	}
	return len > 0;
}

/* The request has come to the listener, or whoever asked is told that it has failed. */
static bool asked(struct kfi_test *t, struct attempt *a)
{
	unsigned int waited;
	u32 event;

	for (waited = 0; waited < EP_WAIT_MS; waited += 20) {
		if (next(t, a, &a->p->side[1], &event, 20))
			return EXPECT_EQ(t, event, KFI_CONNREQ);
		if (next(t, a, &a->p->side[0], &event, 0))
			return !EXPECT_EQ(t, event, 0);
	}
	return EXPECT(t, false, "nobody is told what becomes of the connection");
}

/* Accepts the request that was read. */
static int answered(struct kfi_test *t, struct attempt *a)
{
	struct ep_side *s = &a->p->side[1];
	struct kfi_info *info = a->e.entry.info;
	int ret = opened(s, info) ?: kfi_accept(s->ep, NULL, 0);

	/* The side that asked is told by the end of the endpoint; if none was made, by that. */
	if (ret)
		closed(t, s);
	kfi_freeinfo(info);
	return ret;
}

/* A message arrives, or both learn that there is no connection any more. */
static bool sent(struct kfi_test *t, struct attempt *a)
{
	struct kfi_cq_data_entry done;
	struct ep_side *s = a->p->side;

	return EXPECT_EQ(t, kfi_recv(s[1].ep, a->mem + LEN, LEN, NULL, 0, a), 0) &&
	       EXPECT_EQ(t, kfi_send(s[0].ep, a->mem, LEN, NULL, 0, a), 0) &&
	       EXPECT_EQ(t, kfi_cq_sread(s[1].rx, &done, 1, NULL, EP_WAIT_MS), 1) &&
	       EXPECT_EQ(t, kfi_cq_sread(s[0].tx, &done, 1, NULL, EP_WAIT_MS), 1) &&
	       EXPECT(t, !memcmp(a->mem, a->mem + LEN, LEN), "other bytes");
}

static enum ep_outcome attempt(struct kfi_test *t, struct attempt *a)
{
	struct ep_side *s = a->p->side;
	u32 event[2] = {};

	if (refused(t, "connecting", opened(&s[0], a->p->info) ?: kfi_connect(s[0].ep, NULL, NULL, 0)))
		return EP_REFUSED;
	if (!asked(t, a))
		return EP_FAILED;
	if (refused(t, "accepting", answered(t, a))) {
		if (EXPECT(t, next(t, a, &s[0], &event[0], EP_WAIT_MS), "nobody tells who asked"))
			EXPECT_EQ(t, event[0], 0);
		return EP_REFUSED;
	}
	if (!EXPECT(t, next(t, a, &s[0], &event[0], EP_WAIT_MS), "nobody tells who asked"))
		return EP_FAILED;
	if (!event[0]) {
		/* The side that has accepted is told too, or was told already that all is well. */
		do {
			if (!EXPECT(t, next(t, a, &s[1], &event[1], EP_WAIT_MS), "no end of it"))
				break;
		} while (event[1] == KFI_CONNECTED);
		return EP_FAILED;
	}
	EXPECT_EQ(t, event[0], KFI_CONNECTED);
	if (!EXPECT(t, next(t, a, &s[1], &event[1], EP_WAIT_MS), "nobody tells who has accepted"))
		return EP_FAILED;
	if (event[1] == KFI_CONNECTED) {
		sent(t, a);
		return EP_UP;
	}
	EXPECT_EQ(t, event[1], 0);
	if (EXPECT(t, next(t, a, &s[0], &event[0], EP_WAIT_MS), "no end of it"))
		EXPECT_EQ(t, event[0], KFI_SHUTDOWN);
	return EP_FAILED;
}

enum ep_outcome ep_attempt(struct kfi_test *t, struct ep_pair *p)
{
	struct attempt *a = kzalloc_obj(*a);
	enum ep_outcome outcome = EP_FAILED;

	if (!EXPECT(t, a, "no memory"))
		return outcome;
	a->p = p;
	memset(a->mem, 0x3c, LEN);
	outcome = attempt(t, a);
	/* Requests that were posted may still be under way. */
	if (t->failures)
		ep_attempt_close(t, p);
	kfree(a);
	return outcome;
}

void ep_attempt_close(struct kfi_test *t, struct ep_pair *p)
{
	closed(t, &p->side[0]);
	closed(t, &p->side[1]);
}
