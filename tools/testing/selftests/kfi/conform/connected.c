// SPDX-License-Identifier: GPL-2.0
/*
 * Connected endpoints: a region is bound to one (KFI_MR_ENDPOINT), and the peer of that endpoint is the remote
 * side. A refused access ends the connection, so that each refusal has a connection of its own.
 */
#include "conform.h"
#include "ep.h"

#define LEN		(PAGE_SIZE + 13)
#define MODE		(EP_MODE | KFI_MR_ENDPOINT)
#define FETCHED		(KFI_RMA | KFI_READ)
#define WRITTEN		(KFI_RMA | KFI_WRITE)

static const struct ep_wants wants = { .mr_mode = MODE };

static void *ctx(unsigned long n)
{
	return (void *)(0xc0ef0000 + n);
}

/* Registers the second side's memory between two guards. */
static bool register_there(struct kfi_test *t, struct ep_memory *m, u64 access)
{
	return ep_memory_open(t, m, &wants, LEN + 2 * GUARD) &&
	       EXPECT_EQ(t, kfi_mr_reg(m->p->side[1].domain, m->there + GUARD, LEN, access, 0, 3, 0,
				       &m->mr, NULL), 0);
}

/* Binds and enables it. A message behind that tells the first side that the region can be used. */
static bool enable_there(struct kfi_test *t, struct ep_memory *m)
{
	struct ep_side *s = m->p->side;

	return EXPECT_EQ(t, kfi_mr_bind(m->mr, &s[1].ep->fid, 0), 0) &&
	       EXPECT_EQ(t, kfi_mr_enable(m->mr), 0) &&
	       EXPECT_EQ(t, kfi_recv(s[0].ep, m->here, 8, NULL, 0, ctx(0)), 0) &&
	       EXPECT_EQ(t, kfi_send(s[1].ep, m->there, 8, NULL, 0, ctx(1)), 0) &&
	       ep_completed(t, s[0].rx, ctx(0), KFI_MSG | KFI_RECV, NULL) &&
	       ep_completed(t, s[1].tx, ctx(1), KFI_MSG | KFI_SEND, NULL);
}

static ssize_t write_there(struct ep_memory *m, u64 addr, u64 key, size_t len)
{
	return kfi_write(m->p->side[0].ep, m->here, len, NULL, 0, addr, key, ctx(2));
}

static ssize_t read_there(struct ep_memory *m, u64 addr, u64 key, size_t len)
{
	return kfi_read(m->p->side[0].ep, m->here, len, NULL, 0, addr, key, ctx(3));
}

/* The peer writes and reads all of the region, and no byte beside it. */
static void connected_case(struct kfi_test *t)
{
	struct ep_memory m = {};
	struct kfid_cq *tx;

	if (!register_there(t, &m, KFI_REMOTE))
		goto out;
	EXPECT(t, kfi_mr_key(m.mr) == KFI_KEY_NOTAVAIL, "a disabled region has a key");
	if (!enable_there(t, &m))
		goto out;
	tx = m.p->side[0].tx;
	EXPECT(t, kfi_mr_key(m.mr) != KFI_KEY_NOTAVAIL, "an enabled region has no key");
	memset(m.there, 0x5a, LEN + 2 * GUARD);
	pattern(m.here, LEN, 1);
	EXPECT_EQ(t, write_there(&m, m.mr->iova, kfi_mr_key(m.mr), LEN), 0);
	ep_completed(t, tx, ctx(2), WRITTEN, NULL);
	EXPECT(t, pattern_is(m.there + GUARD, LEN, 1), "other bytes were written");
	EXPECT(t, !memchr_inv(m.there, 0x5a, GUARD), "bytes before the region changed");
	EXPECT(t, !memchr_inv(m.there + GUARD + LEN, 0x5a, GUARD), "bytes behind the region changed");
	pattern(m.there + GUARD, LEN, 2);
	EXPECT_EQ(t, read_there(&m, m.mr->iova, kfi_mr_key(m.mr), LEN), 0);
	ep_completed(t, tx, ctx(3), FETCHED, NULL);
	EXPECT(t, pattern_is(m.here, LEN, 2), "other bytes were read");
out:
	ep_memory_close(t, &m);
}

/* Accesses that the peer may not make. */
static const struct {
	const char *what;
	u64 access;
	bool writes;
	bool closed;
	size_t at;
} refused[] = {
	{ "a write without the right", KFI_REMOTE_READ, true, false, 0 },
	{ "a read without the right", KFI_REMOTE_WRITE, false, false, 0 },
	{ "a write beyond the end", KFI_REMOTE, true, false, LEN - 63 },
	{ "a read beyond the end", KFI_REMOTE, false, false, LEN - 63 },
	{ "a write after kfi_close", KFI_REMOTE, true, true, 0 },
	{ "a read after kfi_close", KFI_REMOTE, false, true, 0 },
};

static void refuse_one(struct kfi_test *t, unsigned int i)
{
	struct ep_memory m = {};
	u64 addr, key;

	if (!register_there(t, &m, refused[i].access) || !enable_there(t, &m))
		goto out;
	addr = m.mr->iova + refused[i].at;
	key = kfi_mr_key(m.mr);
	if (refused[i].closed) {
		close_mr(t, m.mr);
		m.mr = NULL;
	}
	memset(m.there, 0x5a, LEN + 2 * GUARD);
	memset(m.here, 0x77, LEN);
	EXPECT_EQ(t, refused[i].writes ? write_there(&m, addr, key, 64) :
					 read_there(&m, addr, key, 64), 0);
	ep_failed_op(t, m.p->side[0].tx, ctx(refused[i].writes ? 2 : 3), KFI_EACCES, NULL);
	EXPECT(t, !memchr_inv(m.there, 0x5a, LEN + 2 * GUARD), "the peer's bytes changed");
	EXPECT(t, !memchr_inv(m.here, 0x77, LEN), "own bytes changed");
	ep_lost(t, m.p);
out:
	ep_memory_close(t, &m);
}

static void connected_refused_case(struct kfi_test *t)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(refused) && !t->failures; i++) {
		refuse_one(t, i);
		if (t->failures)
			ktap_note("connected_refused: above: %s", refused[i].what);
	}
}

/* The states of a region, and what it can be bound to. */
static void connected_states_case(struct kfi_test *t)
{
	struct ep_memory m = {};
	struct kfid_ep *ep, *far;

	if (!register_there(t, &m, KFI_REMOTE))
		goto out;
	ep = m.p->side[1].ep;
	far = m.p->side[0].ep;
	EXPECT_EQ(t, kfi_mr_enable(m.mr), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_bind(m.mr, NULL, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_bind(m.mr, &m.p->side[1].domain->fid, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_bind(m.mr, &far->fid, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_bind(m.mr, &ep->fid, KFI_MORE), -KFI_EBADFLAGS);
	if (!enable_there(t, &m))
		goto out;
	EXPECT_EQ(t, kfi_mr_enable(m.mr), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, kfi_mr_bind(m.mr, &ep->fid, 0), -KFI_EOPBADSTATE);
	/* The region doesn't keep its endpoint open, and goes down with it. */
	EXPECT_EQ(t, kfi_close(&ep->fid), 0);
	m.p->side[1].ep = NULL;
	EXPECT(t, kfi_mr_key(m.mr) == KFI_KEY_NOTAVAIL, "a region without its endpoint has a key");
out:
	ep_memory_close(t, &m);
}

static const struct kfi_case cases[] = {
	ALWAYS("connected", 0, F_ENDPOINTS, connected_case),
	ALWAYS("connected_refused", 0, F_ENDPOINTS, connected_refused_case),
	ALWAYS("connected_states", 0, F_ENDPOINTS, connected_states_case),
};

SECTION(section_connected);
