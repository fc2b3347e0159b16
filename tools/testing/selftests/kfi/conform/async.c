// SPDX-License-Identifier: GPL-2.0
/* Event queues, and registrations that are completed by an event (KFI_REG_MR). */
#include <linux/delay.h>

#include "conform.h"

#define LEN	(2 * PAGE_SIZE + 31)
#define INTO_PAGE	40
#define TIMEOUT	60000
#define MANY	32

static struct kfid_eq *open_eq(struct kfi_test *t, size_t size)
{
	struct kfi_eq_attr attr = {
		.size = size, .flags = KFI_WRITE, .wait_obj = KFI_WAIT_UNSPEC,
	};
	struct kfid_eq *eq = NULL;

	EXPECT_EQ(t, kfi_eq_open(t->env->fabric, &attr, &eq, NULL, NULL), 0);
	return eq;
}

/* Reads give events in order and their length in bytes; too little room, or a peek, leaves them. */
static void eq_case(struct kfi_test *t)
{
	struct kfi_eq_entry in = {}, out;
	struct kfid_eq *eq = open_eq(t, 4);
	u32 event;
	long i;

	if (!eq)
		return;
	EXPECT_EQ(t, kfi_eq_read(eq, &event, &out, sizeof(out), 0), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_eq_sread(eq, &event, &out, sizeof(out), 10, 0), -KFI_EAGAIN);
	for (i = 0; i < 4; i++) {
		in.data = i;
		EXPECT_EQ(t, kfi_eq_write(eq, KFI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
	}
	EXPECT_EQ(t, kfi_eq_write(eq, KFI_NOTIFY, &in, sizeof(in), 0), -KFI_EAGAIN);
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(t, kfi_eq_read(eq, &event, &out, sizeof(out) - 1, 0), -KFI_ETOOSMALL);
		EXPECT_EQ(t, kfi_eq_read(eq, &event, &out, sizeof(out), KFI_PEEK), sizeof(out));
		EXPECT_EQ(t, kfi_eq_read(eq, &event, &out, sizeof(out), 0), sizeof(out));
		EXPECT(t, event == KFI_NOTIFY && out.data == i, "event %u, data %llu", event,
		       out.data);
	}
	EXPECT_EQ(t, kfi_eq_read(eq, &event, &out, sizeof(out), 0), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_eq_read(NULL, &event, &out, sizeof(out), 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_close(&eq->fid), 0);
}

/* A place whose registrations report to a queue. */
struct async {
	struct place *p;
	struct kfid_eq *eq;
};

static bool async_begin(struct kfi_test *t, struct async *a, int mode)
{
	a->eq = open_eq(t, 2 * MANY);
	if (!a->eq)
		return false;
	a->p = place_open(t, mode);
	if (a->p && EXPECT_EQ(t, kfi_domain_bind(a->p->env.domain, &a->eq->fid, KFI_REG_MR), 0))
		return true;
	if (a->p)
		place_close(t, a->p);
	EXPECT_EQ(t, kfi_close(&a->eq->fid), 0);
	return false;
}

/* Queue and domain can be closed in either order. */
static void async_end(struct kfi_test *t, struct async *a, bool queue_first)
{
	struct kfi_eq_entry entry;
	u32 event;

	EXPECT_EQ(t, kfi_eq_read(a->eq, &event, &entry, sizeof(entry), 0), -KFI_EAGAIN);
	if (queue_first)
		EXPECT_EQ(t, kfi_close(&a->eq->fid), 0);
	place_close(t, a->p);
	if (!queue_first)
		EXPECT_EQ(t, kfi_close(&a->eq->fid), 0);
}

static void in_async(struct kfi_test *t, void (*run)(struct kfi_test *t, struct async *a))
{
	struct async a;

	if (async_begin(t, &a, MODE_BASIC)) {
		run(t, &a);
		async_end(t, &a, true);
	}
	if (has_feature(F_DEFAULT) && async_begin(t, &a, MODE_DEFAULT)) {
		run(t, &a);
		async_end(t, &a, false);
	}
}

/* The next event is that this region is complete. */
static bool is_complete(struct kfi_test *t, struct async *a, struct kfid_mr *mr, void *context)
{
	struct kfi_eq_entry entry = {};
	unsigned int failures = t->failures;
	u32 event = 0;

	EXPECT_EQ(t, kfi_eq_sread(a->eq, &event, &entry, sizeof(entry), TIMEOUT, 0),
		  sizeof(entry));
	EXPECT_EQ(t, event, KFI_MR_COMPLETE);
	EXPECT(t, entry.fid == &mr->fid, "the event is about another region");
	EXPECT(t, entry.context == context, "the event has another context");
	EXPECT(t, kfi_mr_key(mr) != KFI_KEY_NOTAVAIL, "an event, but no key");
	return t->failures == failures;
}

static void region_in(struct kfi_test *t, struct async *a)
{
	u8 *mem = arena_at(&a->p->env, MEM_KMALLOC, INTO_PAGE);
	struct kfid_mr *mr = NULL;
	struct reg_req req;
	u64 key, iova;
	int context;

	if (!EXPECT_EQ(t, reg_prepare(&a->p->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return;
	req.context = &context;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0) && EXPECT(t, mr, "*mr was not written")) {
		EXPECT(t, mr->fid.context == &context, "the context is another one");
		if (is_complete(t, a, mr, &context))
			good(t, a->p, mr, mem, LEN);
		key = mr->key;
		iova = mr->iova;
		close_mr(t, mr);
		refuses(t, a->p, iova, key, mem, LEN);
	}
	reg_finish(&a->p->env, &req);
}

static void region_case(struct kfi_test *t)
{
	in_async(t, region_in);
}

/* The call refuses every error that it can find. Then there is no event. */
static void refused_in(struct kfi_test *t, struct async *a)
{
	u8 *mem = arena_at(&a->p->env, MEM_KMALLOC, INTO_PAGE);
	static const struct {
		int want;
		u64 access;
		u64 offset;
		u64 flags;
	} rows[] = {
		{ -KFI_EINVAL, KFI_MSG, 0, 0 },
		{ -KFI_EINVAL, KFI_REMOTE, 1, 0 },
		{ -KFI_EBADFLAGS, KFI_REMOTE, 0, KFI_MORE },
	};
	struct kfid_mr *mr = ERR_PTR(-1);
	struct kfi_eq_entry entry;
	struct reg_req req;
	unsigned int i;
	u32 event;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!EXPECT_EQ(t, reg_prepare(&a->p->env, &req, t->variant, mem, LEN, PAGE_SIZE),
			       0))
			return;
		req.access = rows[i].access;
		req.offset = rows[i].offset;
		req.flags = rows[i].flags;
		EXPECT_EQ(t, reg_submit(&req, &mr), rows[i].want);
		EXPECT(t, !mr, "*mr after a refusal");
		reg_finish(&a->p->env, &req);
	}
	EXPECT_EQ(t, kfi_mr_reg(a->p->env.domain, (void *)PAGE_SIZE, 64, KFI_REMOTE, 0, 0, 0, &mr,
				NULL), -KFI_EFAULT);
	EXPECT_EQ(t, kfi_eq_sread(a->eq, &event, &entry, sizeof(entry), 20, 0), -KFI_EAGAIN);
}

static void refused_case(struct kfi_test *t)
{
	in_async(t, refused_in);
}

/* Many at once: each has its event, with its own context, and no event comes twice. */
static void many_in(struct kfi_test *t, struct async *a)
{
	u8 *mem = arena_at(&a->p->env, MEM_KMALLOC, INTO_PAGE);
	struct kfid_mr *mrs[MANY] = {};
	struct kfi_eq_entry entry;
	u32 event, seen = 0;
	unsigned long i, n;

	for (n = 0; n < MANY; n++)
		if (!EXPECT_EQ(t, kfi_mr_reg(a->p->env.domain, mem, LEN, KFI_REMOTE, 0, n, 0,
					     &mrs[n], (void *)n), 0))
			break;
	for (i = 0; i < n; i++) {
		unsigned long which;

		if (!EXPECT_EQ(t, kfi_eq_sread(a->eq, &event, &entry, sizeof(entry), TIMEOUT, 0),
			       sizeof(entry)))
			break;
		which = (unsigned long)entry.context;
		if (!EXPECT(t, which < n && entry.fid == &mrs[which]->fid, "an unknown region"))
			continue;
		EXPECT(t, !(seen & BIT(which)), "an event came twice");
		seen |= BIT(which);
	}
	for (i = 0; i < n; i++) {
		if (i % 8 == 0)
			good(t, a->p, mrs[i], mem, LEN);
		close_mr(t, mrs[i]);
	}
}

static void many_case(struct kfi_test *t)
{
	in_async(t, many_in);
}

/* A region is closed while its event is under way, or unread: then nobody reads of it any more. */
static void close_in(struct kfi_test *t, struct async *a)
{
	u8 *mem = arena_at(&a->p->env, MEM_KMALLOC, INTO_PAGE);
	struct kfid_mr *mr, *stays;
	unsigned int i;
	int context;

	for (i = 0; i < scaled(20) && !t->failures; i++) {
		if (!EXPECT_EQ(t, kfi_mr_reg(a->p->env.domain, mem, LEN, KFI_REMOTE, 0, 1, 0, &mr,
					     NULL), 0))
			return;
		if (!EXPECT_EQ(t, kfi_mr_reg(a->p->env.domain, mem, LEN, KFI_REMOTE, 0, 2, 0,
					     &stays, &context), 0))
			return close_mr(t, mr);
		if (i % 2)
			msleep(2);
		close_mr(t, mr);
		if (is_complete(t, a, stays, &context))
			good(t, a->p, stays, mem, LEN);
		close_mr(t, stays);
	}
}

static void close_case(struct kfi_test *t)
{
	in_async(t, close_in);
}

/*
 * The object that can be bound to a domain: an event queue of its fabric, for registrations, once.
 */
static void bind_in(struct kfi_test *t, struct place *p)
{
	struct kfid_domain *domain = p->env.domain;
	struct kfid_eq *eq = open_eq(t, 0);

	if (!eq)
		return;
	EXPECT_EQ(t, kfi_domain_bind(domain, NULL, KFI_REG_MR), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_domain_bind(NULL, &eq->fid, KFI_REG_MR), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_domain_bind(domain, &t->env->fabric->fid, KFI_REG_MR), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_domain_bind(domain, &eq->fid, 0), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_domain_bind(domain, &eq->fid, KFI_REG_MR | KFI_MORE), -KFI_EBADFLAGS);
	/* Nothing of it has bound it. */
	EXPECT_EQ(t, kfi_close(&eq->fid), 0);
}

static void bind_case(struct kfi_test *t)
{
	in_each_mode(t, bind_in);
}

static const struct kfi_case cases[] = {
	ALWAYS("event_queue", 0, F_EVENT_QUEUES, eq_case),
	ALWAYS("async", ALL_CALLS, F_ASYNC, region_case),
	ALWAYS("async_refused", ALL_CALLS, F_ASYNC, refused_case),
	ALWAYS("async_many", 0, F_ASYNC, many_case),
	ALWAYS("async_close", 0, F_ASYNC, close_case),
	ALWAYS("async_bind", 0, F_ASYNC, bind_case),
};

SECTION(section_async);
