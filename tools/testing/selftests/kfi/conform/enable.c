// SPDX-License-Identifier: GPL-2.0
/*
 * Enabling, further: a region that must be bound to both a counter and an endpoint, calls that a
 * disabled region refuses, and enabling that an event reports.
 */
#include <kfi_endpoint.h>

#include "conform.h"

#define LEN	(2 * PAGE_SIZE + 3)
#define INTO_PAGE	88
#define KEY	12

/* A place whose regions need both, and one of these regions. */
struct both {
	struct place *p;
	struct kfid_cntr *cntr;
	struct kfid_ep *ep;
	struct kfid_mr *mr;
	u8 *mem;
};

static struct place *open_place(struct kfi_test *t)
{
	struct kfi_info *info = offer_of(t, mode_with(t, KFI_MR_ENDPOINT));
	struct place *p;

	if (!EXPECT(t, info, "no offer"))
		return NULL;
	info->domain_attr->mr_mode |= KFI_MR_RMA_EVENT;
	p = place_open_info(t, info);
	kfi_freeinfo(info);
	return p;
}

static void both_end(struct kfi_test *t, struct both *b)
{
	if (b->cntr)
		EXPECT_EQ(t, kfi_close(&b->cntr->fid), 0);
	if (b->mr)
		close_mr(t, b->mr);
	if (b->ep)
		EXPECT_EQ(t, kfi_close(&b->ep->fid), 0);
	b->p->target = &b->p->env.domain->fid;
	place_close(t, b->p);
}

static bool both_begin(struct kfi_test *t, struct both *b, struct kfid_eq *eq, void *context)
{
	struct kfi_cntr_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };

	*b = (struct both) { .p = open_place(t) };
	if (!b->p)
		return false;
	b->mem = arena_at(&b->p->env, MEM_KMALLOC, INTO_PAGE);
	if (eq)
		EXPECT_EQ(t, kfi_domain_bind(b->p->env.domain, &eq->fid, KFI_REG_MR), 0);
	EXPECT_EQ(t, kfi_cntr_open(b->p->env.domain, &attr, &b->cntr, NULL), 0);
	EXPECT_EQ(t, kfi_endpoint(b->p->env.domain, b->p->info, &b->ep, NULL), 0);
	if (b->cntr && b->ep && EXPECT_EQ(t, kfi_enable(b->ep), 0) &&
	    EXPECT_EQ(t, kfi_mr_reg(b->p->env.domain, b->mem, LEN, KFI_REMOTE, 0, KEY,
				    KFI_RMA_EVENT, &b->mr, context), 0))
		return true;
	both_end(t, b);
	return false;
}

/* Neither bound nor reachable: what needs a key waits until there is one. */
static void check_disabled(struct kfi_test *t, struct both *b)
{
	size_t size = 0;
	u64 base;

	EXPECT(t, kfi_mr_key(b->mr) == KFI_KEY_NOTAVAIL, "a disabled region has a key");
	EXPECT_EQ(t, kfi_mr_raw_attr(b->mr, &base, NULL, &size, 0), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, kfi_mr_refresh(b->mr, NULL, 0, 0), -KFI_EOPBADSTATE);
	b->p->target = &b->ep->fid;
	refuses(t, b->p, 0, KEY, b->mem, LEN);
}

/* Through its endpoint, and counted there. */
static void check_enabled(struct kfi_test *t, struct both *b)
{
	u64 before = kfi_cntr_read(b->cntr);

	EXPECT_EQ(t, kfi_mr_key(b->mr), KEY);
	b->p->target = &b->ep->fid;
	good(t, b->p, b->mr, b->mem, LEN);
	EXPECT_EQ(t, kfi_cntr_read(b->cntr), before + 1);
	b->p->target = &b->p->env.domain->fid;
	refuses(t, b->p, b->mr->iova, KEY, b->mem, LEN);
	EXPECT_EQ(t, kfi_cntr_read(b->cntr), before + 1);
}

/* Both have to be there, in any order, each once. */
static void both_case(struct kfi_test *t)
{
	struct both b;
	int first;

	for (first = 0; first < 2; first++) {
		if (!both_begin(t, &b, NULL, NULL))
			return;
		check_disabled(t, &b);
		EXPECT_EQ(t, kfi_mr_enable(b.mr), -KFI_EINVAL);
		EXPECT_EQ(t, first ? kfi_mr_bind(b.mr, &b.ep->fid, 0) :
			  kfi_mr_bind(b.mr, &b.cntr->fid, KFI_REMOTE_WRITE), 0);
		EXPECT_EQ(t, first ? kfi_mr_bind(b.mr, &b.ep->fid, 0) :
			  kfi_mr_bind(b.mr, &b.cntr->fid, KFI_REMOTE_WRITE), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_mr_enable(b.mr), -KFI_EINVAL);
		check_disabled(t, &b);
		EXPECT_EQ(t, first ? kfi_mr_bind(b.mr, &b.cntr->fid, KFI_REMOTE_WRITE) :
			  kfi_mr_bind(b.mr, &b.ep->fid, 0), 0);
		check_disabled(t, &b);
		if (EXPECT_EQ(t, kfi_mr_enable(b.mr), 0))
			check_enabled(t, &b);
		EXPECT_EQ(t, kfi_mr_enable(b.mr), -KFI_EOPBADSTATE);
		both_end(t, &b);
	}
}

/* The registration has no event of its own: it's the enabling that is complete. */
static void event_case(struct kfi_test *t)
{
	struct kfi_eq_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_eq_entry entry = {};
	struct kfid_eq *eq;
	struct both b;
	u32 event = 0;
	int context;

	if (!EXPECT_EQ(t, kfi_eq_open(t->env->fabric, &attr, &eq, NULL, NULL), 0))
		return;
	if (both_begin(t, &b, eq, &context)) {
		EXPECT_EQ(t, kfi_eq_sread(eq, &event, &entry, sizeof(entry), 20, 0), -KFI_EAGAIN);
		check_disabled(t, &b);
		EXPECT_EQ(t, kfi_mr_bind(b.mr, &b.ep->fid, 0), 0);
		EXPECT_EQ(t, kfi_mr_bind(b.mr, &b.cntr->fid, KFI_REMOTE_WRITE), 0);
		EXPECT_EQ(t, kfi_mr_enable(b.mr), 0);
		if (EXPECT_EQ(t, kfi_eq_sread(eq, &event, &entry, sizeof(entry), 10000, 0),
			      sizeof(entry))) {
			EXPECT_EQ(t, event, KFI_MR_COMPLETE);
			EXPECT(t, entry.fid == &b.mr->fid && entry.context == &context,
			       "the event is about something else");
			check_enabled(t, &b);
		}
		EXPECT_EQ(t, kfi_eq_read(eq, &event, &entry, sizeof(entry), 0), -KFI_EAGAIN);
		both_end(t, &b);
	}
	EXPECT_EQ(t, kfi_close(&eq->fid), 0);
}

/* Closed before it was ever enabled: its key is free again, and nobody ever reached it. */
static void never_case(struct kfi_test *t)
{
	struct both b;
	int i;

	for (i = 0; i < 2; i++) {
		if (!both_begin(t, &b, NULL, NULL))
			return;
		if (i)
			EXPECT_EQ(t, kfi_mr_bind(b.mr, &b.ep->fid, 0), 0);
		check_disabled(t, &b);
		close_mr(t, b.mr);
		EXPECT_EQ(t, kfi_mr_reg(b.p->env.domain, b.mem, LEN, KFI_REMOTE, 0, KEY,
					KFI_RMA_EVENT, &b.mr, NULL), 0);
		both_end(t, &b);
	}
}

static const struct kfi_case cases[] = {
	CHECK("enable_both", 0, F_PLAIN_ENDPOINTS, both_case, refused_endpoints),
	CHECK("enable_event", 0, F_PLAIN_ENDPOINTS, event_case, refused_endpoints),
	CHECK("enable_never", 0, F_PLAIN_ENDPOINTS, never_case, refused_endpoints),
};

SECTION(section_enable);
