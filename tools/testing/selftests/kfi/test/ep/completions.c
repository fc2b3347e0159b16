// SPDX-License-Identifier: GPL-2.0
/* The completions and the failures of each kind of transfer, field by field. */
#include "kinds.h"

/* Shorter than a message of any kind. */
#define SHORT	4

/* The memory of ep_kind_post() that isn't received into or registered, and what it is full of. */
#define OWN_LEN	(EP_KINDS_LEN / 4)
#define OWN	0x3c

static const struct ep_wants wants = {
	.mr_mode = EP_MODE,
	.caps = KFI_MSG | KFI_RMA | KFI_ATOMIC,
};

/* A connection, and the memory and the region of ep_kind_post(). */
static bool kinds_open(struct kfi_test *t, struct ep_memory *m)
{
	memset(m, 0, sizeof(*m));
	if (!ep_memory_open(t, m, &wants, EP_KINDS_LEN))
		return false;
	memset(m->there, OWN, OWN_LEN);
	return EXPECT_EQ(t, ep_kinds_region(m->p, m->there, &m->mr), 0);
}

/* Nothing has been transferred. */
static void untouched(struct kfi_test *t, struct ep_memory *m, unsigned int kind)
{
	EXPECT(t, !memchr_inv(m->there, OWN, OWN_LEN), "kind %u: own bytes have changed", kind);
	EXPECT(t, !memchr_inv(m->there + OWN_LEN, 0, EP_KINDS_LEN - OWN_LEN),
	       "kind %u: the peer's bytes have changed", kind);
}

/* Each kind completes, whatever its call gives as the peer's address. */
void ep_kinds_case(struct kfi_test *t)
{
	static const kfi_addr_t addrs[] = { 0, 1, KFI_ADDR_NOTAVAIL };
	struct ep_memory m;
	unsigned int i, kind;

	if (!kinds_open(t, &m))
		goto out;
	for (i = 0; i < ARRAY_SIZE(addrs); i++) {
		m.p->addr = addrs[i];
		for (kind = 0; kind < EP_KINDS && !t->failures; kind++) {
			ssize_t ret;

			if (ep_kind_needs_receive(kind))
				EXPECT_EQ(t, ep_kind_post(m.p, m.there, m.mr, 0), 0);
			ret = ep_kind_post(m.p, m.there, m.mr, kind);
			if (EXPECT(t, !ret, "kind %u to address %llu is %zd", kind, addrs[i], ret))
				ep_kind_ends(t, m.p, m.there, m.mr, kind);
		}
	}
	ep_nothing(t, m.p->side[0].tx);
	ep_nothing(t, m.p->side[1].rx);
out:
	ep_memory_close(t, &m);
}

/* A transfer of this kind has failed. */
static void failed(struct kfi_test *t, struct ep_pair *p, unsigned int kind, int err)
{
	struct kfi_cq_err_entry entry;

	if (ep_failed_op(t, p->side[0].tx, ep_kind_failed_context(kind), err, &entry))
		EXPECT(t, entry.flags == ep_kinds[kind].flags, "kind %u has failed with flags %#llx",
		       kind, entry.flags);
}

/* The receive of ep_kind_post() has failed: it is @excess bytes too short. */
static void receive_failed(struct kfi_test *t, struct ep_pair *p, int err, size_t excess)
{
	struct kfi_cq_err_entry entry;

	if (ep_failed_op(t, p->side[1].rx, ep_kind_context(0), err, &entry)) {
		EXPECT_EQ(t, entry.flags, ep_kinds[0].flags);
		EXPECT_EQ(t, entry.olen, excess);
	}
}

/* A message without a receive holds up all that is posted behind it, until the connection ends. */
void ep_kinds_cancelled_case(struct kfi_test *t)
{
	struct kfi_cq_err_entry entry;
	struct ep_memory m;
	unsigned int kind;

	if (!kinds_open(t, &m))
		goto out;
	EXPECT_EQ(t, kfi_recv(m.p->side[0].ep, m.here, 8, NULL, 0, &m), 0);
	EXPECT_EQ(t, ep_kind_post(m.p, m.there, m.mr, EP_KIND_SEND), 0);
	for (kind = 1; kind < EP_KINDS; kind++)
		EXPECT_EQ(t, ep_kind_post(m.p, m.there, m.mr, kind), 0);
	ep_nothing(t, m.p->side[0].tx);
	EXPECT_EQ(t, kfi_shutdown(m.p->side[0].ep, 0), 0);
	failed(t, m.p, EP_KIND_SEND, KFI_ECANCELED);
	for (kind = 1; kind < EP_KINDS && !t->failures; kind++)
		failed(t, m.p, kind, KFI_ECANCELED);
	if (ep_failed_op(t, m.p->side[0].rx, &m, KFI_ECANCELED, &entry))
		EXPECT_EQ(t, entry.flags, ep_kinds[0].flags);
	ep_lost(t, m.p);
	untouched(t, &m, kind);
out:
	ep_memory_close(t, &m);
}

/* By a key that there is not, each kind of access fails, with the receive that it would have taken. */
void ep_kinds_refused_case(struct kfi_test *t)
{
	struct ep_memory m;
	unsigned int kind;

	for (kind = 1; kind < EP_KINDS && !t->failures; kind++) {
		struct kfid_mr nobody;

		if (ep_kinds[kind].flags & KFI_MSG)
			continue;
		if (!kinds_open(t, &m)) {
			ep_memory_close(t, &m);
			return;
		}
		nobody = (struct kfid_mr) { .iova = m.mr->iova, .key = m.mr->key ^ NO_KEY };
		if (ep_kind_needs_receive(kind))
			EXPECT_EQ(t, ep_kind_post(m.p, m.there, m.mr, 0), 0);
		EXPECT_EQ(t, ep_kind_post(m.p, m.there, &nobody, kind), 0);
		failed(t, m.p, kind, KFI_EACCES);
		if (ep_kind_needs_receive(kind))
			receive_failed(t, m.p, KFI_ECANCELED, 0);
		ep_lost(t, m.p);
		untouched(t, &m, kind);
		ep_memory_close(t, &m);
	}
}

/* A message of each kind that is longer than the receive fails at both sides. */
void ep_kinds_truncated_case(struct kfi_test *t)
{
	struct ep_memory m;
	unsigned int kind;

	for (kind = 1; kind < EP_KINDS && !t->failures; kind++) {
		size_t excess = ep_kinds[kind].len - SHORT;

		if (!(ep_kinds[kind].flags & KFI_MSG))
			continue;
		if (kinds_open(t, &m)) {
			EXPECT_EQ(t, kfi_recv(m.p->side[1].ep, m.here, SHORT, NULL, 0,
					      ep_kind_context(0)), 0);
			EXPECT_EQ(t, ep_kind_post(m.p, m.there, m.mr, kind), 0);
			receive_failed(t, m.p, KFI_ETRUNC, has_feature(F_OLEN) ? excess : 0);
			failed(t, m.p, kind, KFI_EREMOTEIO);
			ep_lost(t, m.p);
			EXPECT(t, !memchr_inv(m.here + SHORT, 0, EP_KINDS_LEN - SHORT),
			       "kind %u: bytes behind the buffer have changed", kind);
		}
		ep_memory_close(t, &m);
	}
}
