// SPDX-License-Identifier: GPL-2.0
/* Regions whose registration is behind what takes its time (KFI_MR_ENDPOINT). */
#include "ep.h"

#define PLACES	8
#define LEN	65536
#define ROUNDS	4
#define FETCHED		(KFI_RMA | KFI_READ)
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)

static void *ctx(unsigned long n)
{
	return (void *)(0xbe410000 + n);
}

static bool enabled(struct kfi_test *t, struct ep_side *s, u8 *mem, u64 access, u64 key,
		    struct kfid_mr **mr)
{
	return EXPECT_EQ(t, kfi_mr_reg(s->domain, mem, LEN, access, 0, key, 0, mr, NULL), 0) &&
	       EXPECT_EQ(t, kfi_mr_bind(*mr, &s->ep->fid, 0), 0) &&
	       EXPECT_EQ(t, kfi_mr_enable(*mr), 0);
}

/* A message of @i's, behind which its regions are good. */
static bool message(struct kfi_test *t, struct ep_pair *p, int i, u8 *mem)
{
	struct ep_side *from = &p->side[i], *to = &p->side[!i];

	return EXPECT_EQ(t, kfi_recv(to->ep, mem, 8, NULL, 0, ctx(100)), 0) &&
	       EXPECT_EQ(t, kfi_send(from->ep, mem + 8, 8, NULL, 0, ctx(101)), 0) &&
	       ep_completed(t, to->rx, ctx(100), RECEIVED, NULL) &&
	       ep_completed(t, from->tx, ctx(101), SENT, NULL);
}

/* All before it reads from the peer, and nothing is behind it. */
static void closes(struct kfi_test *t, struct ep_pair *p, u8 *here, const struct kfid_mr *far)
{
	struct ep_side *s = &p->side[1];
	struct kfid_mr *mr = NULL;
	int i;

	memset(here, 0, LEN);
	for (i = 0; i < PLACES - 1; i++)
		EXPECT_EQ(t, kfi_read(s->ep, here, LEN, NULL, 0, far->iova, far->key, ctx(i)), 0);
	enabled(t, s, here, KFI_REMOTE_WRITE, 2, &mr);
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	for (i = 0; i < PLACES - 1 && !t->failures; i++)
		ep_completed(t, s->tx, ctx(i), FETCHED, NULL);
}

/*
 * Closing must post a request behind it that tells when it has been carried out. That waits until
 * there is space, and the connection goes on.
 */
void ep_regions_behind_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT, .tx_size = PLACES };
	struct ep_pair *p = ep_connected(t, &wants);
	u8 *here = kzalloc(LEN, GFP_KERNEL), *there = kzalloc(LEN, GFP_KERNEL);
	struct kfid_mr *far = NULL;
	int i;

	if (p && EXPECT(t, here && there, "no memory") &&
	    enabled(t, &p->side[0], there, KFI_REMOTE_READ, 1, &far) && message(t, p, 0, here)) {
		for (i = 0; i < ROUNDS && !t->failures; i++) {
			pattern(there, LEN, i);
			closes(t, p, here, far);
			EXPECT(t, pattern_is(here, LEN, i), "round %d: other bytes", i);
		}
		message(t, p, 1, here);
	}
	if (far)
		EXPECT_EQ(t, kfi_close(&far->fid), 0);
	if (p)
		ep_pair_close(t, p);
	kfree(here);
	kfree(there);
}

#define MESSAGES	3

/* The second side's messages, for which the peer has no receives, and a region behind them. */
struct repeated {
	struct ep_pair *p;
	struct kfid_mr *mr;
	u8 *mem;
};

static void repeated_end(struct kfi_test *t, struct repeated *r)
{
	if (r->mr)
		EXPECT_EQ(t, kfi_close(&r->mr->fid), 0);
	if (r->p)
		ep_pair_close(t, r->p);
	kfree(r->mem);
}

static bool repeated_begin(struct kfi_test *t, struct repeated *r)
{
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT };
	struct ep_side *s;
	int i;

	*r = (struct repeated) { .p = ep_connected(t, &wants), .mem = kzalloc(LEN, GFP_KERNEL) };
	if (!r->p || !EXPECT(t, r->mem, "no memory"))
		return false;
	s = r->p->side;
	for (i = 0; i < MESSAGES; i++)
		EXPECT_EQ(t, kfi_send(s[1].ep, r->mem, 8, NULL, 0, ctx(i)), 0);
	return enabled(t, &s[1], r->mem, KFI_REMOTE_WRITE, 2, &r->mr);
}

/* The peer has no receives at first, so the messages before the registration are repeated: all arrive. */
void ep_regions_repeated_case(struct kfi_test *t)
{
	struct repeated r;
	struct ep_side *s;
	int i;

	if (!needs_feature(t, F_REPEATED_REG))
		return;
	if (!repeated_begin(t, &r))
		goto out;
	s = r.p->side;
	for (i = 0; i < MESSAGES; i++)
		EXPECT_EQ(t, kfi_recv(s[0].ep, r.mem + 64, 8, NULL, 0, ctx(10 + i)), 0);
	for (i = 0; i < MESSAGES; i++) {
		ep_completed(t, s[0].rx, ctx(10 + i), RECEIVED, NULL);
		ep_completed(t, s[1].tx, ctx(i), SENT, NULL);
	}
	EXPECT_EQ(t, kfi_close(&r.mr->fid), 0);
	r.mr = NULL;
	/* The connection goes on. */
	message(t, r.p, 1, r.mem);
out:
	repeated_end(t, &r);
}

/*
 * A device that repeats the messages before a registration may repeat the registration, as rxe does. That fails,
 * and so does the connection: each message ends once, and the region can be closed.
 */
void ep_regions_repeated_twice_case(struct kfi_test *t)
{
	struct kfi_cq_err_entry err;
	struct repeated r = {};
	struct ep_event *e;
	int i;

	if (has_feature(F_REPEATED_REG))
		return ktap_skip(t, "registrations are not repeated");
	e = kzalloc_obj(*e);
	if (!repeated_begin(t, &r) || !EXPECT(t, e, "no memory"))
		goto out;
	for (i = 0; i < MESSAGES; i++)
		ep_failed_op(t, r.p->side[1].tx, ctx(i), KFI_ECANCELED, &err);
	for (i = 0; i < 2; i++)
		ep_event(t, r.p->side[i].eq, KFI_SHUTDOWN, &r.p->side[i].ep->fid, e);
	EXPECT_EQ(t, kfi_close(&r.mr->fid), 0);
	r.mr = NULL;
	ep_nothing(t, r.p->side[1].tx);
	ep_nothing(t, r.p->side[0].rx);
out:
	repeated_end(t, &r);
	kfree(e);
}
