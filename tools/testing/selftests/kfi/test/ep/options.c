// SPDX-License-Identifier: GPL-2.0
/* Options, and what they bound. */
#include "ep.h"

static int set(struct kfid_ep *ep, int option, unsigned int value)
{
	return kfi_setopt(&ep->fid, KFI_OPT_ENDPOINT, option, &value, sizeof(value));
}

/* The value of an option, and the values that it can be set to. */
static void option(struct kfi_test *t, struct kfid_ep *ep, int option, unsigned int std,
		   unsigned int other, unsigned int wrong)
{
	unsigned int value = 0;
	size_t len = sizeof(value);

	EXPECT_EQ(t, kfi_getopt(&ep->fid, KFI_OPT_ENDPOINT, option, &value, &len), 0);
	EXPECT_EQ(t, value, std);
	EXPECT_EQ(t, len, sizeof(value));
	EXPECT_EQ(t, set(ep, option, wrong), -KFI_EINVAL);
	EXPECT_EQ(t, set(ep, option, other), 0);
	EXPECT_EQ(t, kfi_getopt(&ep->fid, KFI_OPT_ENDPOINT, option, &value, &len), 0);
	EXPECT_EQ(t, value, other);
	EXPECT_EQ(t, kfi_setopt(&ep->fid, KFI_OPT_ENDPOINT, option, NULL, sizeof(value)),
		  -KFI_EINVAL);
	EXPECT_EQ(t, kfi_setopt(&ep->fid, KFI_OPT_ENDPOINT, option, &value, 3), -KFI_EINVAL);
	len = 3;
	EXPECT_EQ(t, kfi_getopt(&ep->fid, KFI_OPT_ENDPOINT, option, &value, &len), -KFI_ETOOSMALL);
	EXPECT_EQ(t, len, sizeof(value));
}

void ep_options_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_listening(t, NULL);
	struct kfid_ep *ep;
	size_t room = 0, len = sizeof(room);

	if (!p)
		return;
	ep = p->side[0].ep;
	EXPECT_EQ(t, kfi_getopt(&ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_CM_DATA_SIZE, &room, &len), 0);
	EXPECT_EQ(t, room, CM_REQUEST);
	EXPECT_EQ(t, kfi_setopt(&ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_CM_DATA_SIZE, &room, len),
		  -KFI_EINVAL);
	EXPECT_EQ(t, kfi_getopt(&ep->fid, KFI_OPT_ENDPOINT, 4711, &room, &len), -KFI_ENOPROTOOPT);
	EXPECT_EQ(t, kfi_getopt(&ep->fid, 3, KFI_OPT_CM_DATA_SIZE, &room, &len), -KFI_ENOPROTOOPT);
	EXPECT_EQ(t, kfi_getopt(&ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_CM_DATA_SIZE, &room, NULL),
		  -KFI_EINVAL);
	EXPECT_EQ(t, kfi_getopt(&ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_CM_DATA_SIZE, NULL, &len),
		  -KFI_EINVAL);
	EXPECT_EQ(t, set(ep, KFI_OPT_MIN_MULTI_RECV, 1), -KFI_ENOPROTOOPT);
	if (has_feature(F_CM_BOUNDS)) {
		option(t, ep, KFI_OPT_CONNECT_TIMEOUT, 30000, 60000, 0);
		option(t, ep, KFI_OPT_STALL_TIMEOUT, 60000, 0, UINT_MAX);
		option(t, ep, KFI_OPT_RNR_DELAY, 640, 10, 0);
	} else {
		EXPECT_EQ(t, set(ep, KFI_OPT_CONNECT_TIMEOUT, 1), feature_errno(F_CM_BOUNDS));
		EXPECT_EQ(t, set(ep, KFI_OPT_STALL_TIMEOUT, 1), feature_errno(F_CM_BOUNDS));
		EXPECT_EQ(t, set(ep, KFI_OPT_RNR_DELAY, 1), feature_errno(F_CM_BOUNDS));
	}
	EXPECT_EQ(t, kfi_connect(ep, NULL, NULL, 0), 0);
	if (has_feature(F_CM_BOUNDS))
		EXPECT_EQ(t, set(ep, KFI_OPT_STALL_TIMEOUT, 1), -KFI_EOPBADSTATE);
	ep_pair_close(t, p);
}

/* Two that nobody answers, the second with all the time that there is: the first one gives up before it. */
static void gives_up(struct kfi_test *t, struct ep_pair *p, struct sockaddr_in *peer)
{
	struct ep_side *s = &p->side[0], patient = *s;
	static const struct ep_wants none;
	const unsigned int limit = 300;
	struct kfi_eq_err_entry err;
	u64 start;

	patient.ep = NULL;
	if (ep_open(t, &patient, p->info, &none)) {
		EXPECT_EQ(t, set(s->ep, KFI_OPT_CONNECT_TIMEOUT, limit), 0);
		start = get_jiffies_64();
		EXPECT_EQ(t, kfi_connect(s->ep, peer, NULL, 0), 0);
		EXPECT_EQ(t, kfi_connect(patient.ep, peer, NULL, 0), 0);
		ep_failed(t, s->eq, &s->ep->fid, KFI_ETIMEDOUT, &err);
		expect_waited(t, start, limit);
	}
	if (patient.ep)
		EXPECT_EQ(t, kfi_close(&patient.ep->fid), 0);
}

/* A listener that says nothing, and an address that nobody has. */
void ep_unanswered_case(struct kfi_test *t)
{
	struct sockaddr_in nobody = ep_address();
	int i;

	nobody.sin_addr.s_addr ^= htonl(64);
	nobody.sin_port = htons(9);
	if (!needs_feature(t, F_CM_BOUNDS))
		return;
	for (i = 0; i < 2; i++) {
		struct ep_pair *p = ep_listening(t, NULL);

		if (!p)
			return;
		gives_up(t, p, i ? &nobody : NULL);
		ep_pair_close(t, p);
	}
}

/* A connection that is stuck is given up: here with messages that the peer has no receive for. */
void ep_stall_case(struct kfi_test *t)
{
	static const struct ep_wants none;
	struct kfi_cq_err_entry err;
	struct ep_event *e;
	struct ep_pair *p;
	struct ep_side *s;
	u8 *mem;
	int i;

	if (!needs_feature(t, F_CM_BOUNDS))
		return;
	p = ep_listening(t, NULL);
	e = kzalloc_obj(*e);
	mem = kzalloc(64, GFP_KERNEL);
	if (!p || !EXPECT(t, e && mem, "no memory"))
		goto out;
	s = &p->side[0];
	EXPECT_EQ(t, set(s->ep, KFI_OPT_STALL_TIMEOUT, 500), 0);
	EXPECT_EQ(t, kfi_connect(s->ep, NULL, NULL, 0), 0);
	if (!ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e))
		goto out;
	if (ep_open(t, &p->side[1], e->entry.info, &none))
		EXPECT_EQ(t, kfi_accept(p->side[1].ep, NULL, 0), 0);
	kfi_freeinfo(e->entry.info);
	if (!ep_event(t, s->eq, KFI_CONNECTED, &s->ep->fid, e) ||
	    !ep_event(t, p->side[1].eq, KFI_CONNECTED, &p->side[1].ep->fid, e))
		goto out;
	for (i = 0; i < 3; i++)
		EXPECT_EQ(t, kfi_send(s->ep, mem, 64, NULL, 0, mem + i), 0);
	for (i = 0; i < 2; i++)
		ep_event(t, p->side[i].eq, KFI_SHUTDOWN, &p->side[i].ep->fid, e);
	for (i = 0; i < 3; i++)
		ep_failed_op(t, s->tx, mem + i, KFI_ECANCELED, &err);
	ep_nothing(t, s->tx);
out:
	kfree(e);
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}
