// SPDX-License-Identifier: GPL-2.0
/* Regions whose registration is behind what takes its time (KFI_MR_ENDPOINT). */
#include <linux/delay.h>

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
 * Whoever closes it has to post something behind it, that tells when it has been carried out: that waits
 * until there is room, and the connection goes on.
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

/* One of the second side's messages has ended; false if it has failed, as cancelled. */
static bool ended_well(struct kfi_test *t, struct kfid_cq *cq, void *context)
{
	struct kfi_cq_data_entry entry = {};
	struct kfi_cq_err_entry err = {};
	ssize_t n = kfi_cq_sread(cq, &entry, 1, NULL, EP_WAIT_MS);

	if (n == -KFI_EAVAIL) {
		EXPECT_EQ(t, kfi_cq_readerr(cq, &err, 0), 1);
		EXPECT_EQ(t, err.err, KFI_ECANCELED);
		entry.op_context = err.op_context;
	} else {
		EXPECT_EQ(t, n, 1);
	}
	EXPECT(t, entry.op_context == context, "something else has ended");
	return n == 1;
}

/*
 * What is before it has to be repeated, since the peer has no receives.  A device may not take that well, as
 * rxe doesn't, but what was posted ends once, and the region can be closed.
 */
void ep_regions_repeated_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT };
	struct ep_pair *p = ep_connected(t, &wants);
	u8 *mem = kzalloc(LEN, GFP_KERNEL);
	struct kfid_mr *mr = NULL;
	struct ep_side *s;
	int i, posted, well = 0, came = 0;

	if (!p || !EXPECT(t, mem, "no memory"))
		goto out;
	s = p->side;
	for (i = 0; i < 3; i++)
		EXPECT_EQ(t, kfi_send(s[1].ep, mem, 8, NULL, 0, ctx(i)), 0);
	if (!enabled(t, &s[1], mem, KFI_REMOTE_WRITE, 2, &mr))
		goto out;
	msleep(20);
	for (posted = 0; posted < 3; posted++)
		if (kfi_recv(s[0].ep, mem + 64, 8, NULL, 0, ctx(10 + posted)))
			break;
	for (i = 0; i < 3; i++)
		well += ended_well(t, s[1].tx, ctx(i));
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	mr = NULL;
	EXPECT_EQ(t, kfi_close(&s[1].ep->fid), 0);
	s[1].ep = NULL;
	/* A message may have come of which its sender doesn't know. */
	for (i = 0; i < posted; i++)
		came += ended_well(t, s[0].rx, ctx(10 + i));
	EXPECT(t, came >= well, "%d have come of %d", came, well);
	ep_nothing(t, s[1].tx);
	ep_nothing(t, s[0].rx);
	ktap_note("%d of 3 have ended well", well);
out:
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}
