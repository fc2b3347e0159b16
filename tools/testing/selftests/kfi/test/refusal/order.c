// SPDX-License-Identifier: GPL-2.0
/*
 * Refusals of requests that are wrong in two ways: what is checked first decides. The order is that
 * of the table in kfi_mr(3). Each row is tried with each later one, in each call that both can be
 * wrong in; pairs that give the same errno are refused by it, the others also say which row it was.
 */
#include <rdma/ib_verbs.h>

#include "kfi_inject.h"
#include "errors.h"
#include "suites.h"

/* The steps of the table. */
enum step {
	OUTPUT,
	DOMAIN,
	WHAT,
	FLAGS,
	ACCESS,
	OFFSET,
	SEGMENTS,
	LIMITS,
	MEMORY,
	DEVICE,
};

/**
 * struct wrong - a row
 * @name: Its name.
 * @step: Its step.
 * @calls: The calls that can be wrong so.
 * @want: The errno, negative.
 * @spoil: Makes a request wrong.
 * @too_long: The request is made of more pages than a region can have.
 * @full: It is for a domain that has as many regions as it may.
 * @fails: The device refuses the registration.
 * @virt: Only the addresses of a software device can be judged.
 * @gap: Wrong only where regions have no gaps.
 */
struct wrong {
	const char *name;
	enum step step;
	u32 calls;
	int want;
	void (*spoil)(struct reg_req *req);
	bool too_long;
	bool full;
	bool fails;
	bool virt;
	bool gap;
};

#define SPOIL(_name, statement)	\
static void _name(struct reg_req *req) { statement; }

SPOIL(no_output, req->no_mr = true)
SPOIL(no_domain, req->domain = NULL)
SPOIL(error_domain, req->domain = ERR_PTR(-ENODEV))
SPOIL(no_attr, req->no_attr = true)
SPOIL(no_type, req->type = 0)
SPOIL(no_count, req->count = 0)
SPOIL(no_auth_key, req->auth_key = NULL; req->auth_key_size = 8)
SPOIL(auth_key, req->auth_key = (u8 *)"secrets"; req->auth_key_size = 8)
SPOIL(known_flag, req->flags = KFI_MORE)
SPOIL(unknown_flag, req->flags = BIT_ULL(63))
SPOIL(unknown_access, req->access = KFI_REMOTE | BIT_ULL(62))
SPOIL(an_offset, req->offset = 1)

/* The purpose of the request is mistake enough. */
static void nothing(struct reg_req *req)
{
}

static void no_list(struct reg_req *req)
{
	req->buf = NULL;
	req->kv = NULL;
	req->bv = NULL;
	req->sg = NULL;
}

/* Bad memory comes first in the list, and the bad segment behind it: against the order. */
/* The third entry of a scatterlist, or the last one, as an IOMMU joins entries. */
static size_t last_sg(const struct reg_req *req)
{
	return min(req->count - 1, 2);
}

static void empty(struct reg_req *req)
{
	if (req->call == REG)
		req->len = 0;
	else if (reg_call_in(req->call, KVEC_CALLS))
		req->kv[2].iov_len = 0;
	else if (reg_call_in(req->call, BVEC_CALLS))
		req->bv[2].bv_len = 0;
	else
		sg_dma_len(&req->sg[last_sg(req)]) = 0;
}

static void wraps(struct reg_req *req)
{
	if (req->call == REG)
		req->len = SIZE_MAX;
	else
		req->kv[2].iov_len = SIZE_MAX;
}

/* Each segment is possible by itself. */
static void overflows(struct reg_req *req)
{
	int i;

	for (i = 0; i < ROW_SEGMENTS; i++) {
		req->kv[i].iov_base = (void *)PAGE_SIZE;
		req->kv[i].iov_len = BIT_ULL(62);
	}
}

static void ends_early(struct reg_req *req)
{
	size_t last = last_sg(req);

	sg_mark_end(&req->sg[last]);
	req->count = max(req->count, last + 2);
}

static void gap(struct reg_req *req)
{
	if (reg_call_in(req->call, KVEC_CALLS))
		req->kv[1].iov_len -= 8;
	else if (reg_call_in(req->call, BVEC_CALLS))
		req->bv[1].bv_len -= 8;
	else
		sg_dma_len(&req->sg[1]) -= 8;
}

static void bad_memory(struct reg_req *req)
{
	if (req->call == REG)
		req->buf = (void *)PAGE_SIZE;
	else if (reg_call_in(req->call, KVEC_CALLS))
		req->kv[0].iov_base = (void *)PAGE_SIZE;
	else
		req->bv[0].bv_page = ERR_PTR(-ENOMEM);
}

static void no_memory(struct reg_req *req)
{
	if (reg_call_in(req->call, KVEC_CALLS))
		req->kv[0].iov_base = NULL;
	else
		req->bv[0].bv_page = NULL;
}

/* As no mapping for a software device gives it, and aligned as it was. */
static void foreign(struct reg_req *req)
{
	sg_dma_address(&req->sg[0]) = 0;
}

/* A scatterlist's memory isn't looked at: its addresses are. */
#define MEM_CALLS	(ALL_CALLS & ~SGL_CALLS)

static const struct wrong table[] = {
	{ "no_output", OUTPUT, ALL_CALLS, -KFI_EINVAL, no_output },
	{ "no_domain", DOMAIN, ALL_CALLS, -KFI_EINVAL, no_domain },
	{ "error_domain", DOMAIN, ALL_CALLS, -KFI_EINVAL, error_domain },
	{ "no_attr", WHAT, ATTR_CALLS, -KFI_EINVAL, no_attr },
	{ "no_type", WHAT, ATTR_CALLS, -KFI_EINVAL, no_type },
	{ "no_list", WHAT, ALL_CALLS, -KFI_EINVAL, no_list },
	{ "no_count", WHAT, LIST_CALLS, -KFI_EINVAL, no_count },
	{ "no_auth_key", WHAT, ATTR_CALLS, -KFI_EINVAL, no_auth_key },
	{ "auth_key", WHAT, ATTR_CALLS, -KFI_EOPNOTSUPP, auth_key },
	{ "known_flag", FLAGS, ALL_CALLS, -KFI_EBADFLAGS, known_flag },
	{ "unknown_flag", FLAGS, ALL_CALLS, -KFI_EBADFLAGS, unknown_flag },
	{ "unknown_access", ACCESS, ALL_CALLS, -KFI_EINVAL, unknown_access },
	{ "an_offset", OFFSET, ALL_CALLS, -KFI_EINVAL, an_offset },
	{ "empty", SEGMENTS, ALL_CALLS, -KFI_EINVAL, empty },
	{ "wraps", SEGMENTS, BUF_CALLS | KVEC_CALLS, -KFI_EINVAL, wraps },
	{ "overflows", SEGMENTS, KVEC_CALLS, -KFI_EINVAL, overflows },
	{ "ends_early", SEGMENTS, SGL_CALLS, -KFI_EINVAL, ends_early },
	{ "gap", SEGMENTS, LIST_CALLS, -KFI_EINVAL, gap, .gap = true },
	{ "too_long", LIMITS, ALL_CALLS, -KFI_E2BIG, nothing, .too_long = true },
	{ "full", LIMITS, ALL_CALLS, -KFI_ENOSPC, nothing, .full = true },
	{ "bad_memory", MEMORY, MEM_CALLS, -KFI_EFAULT, bad_memory },
	{ "no_memory", MEMORY, KVEC_CALLS | BVEC_CALLS, -KFI_EFAULT, no_memory },
	{ "foreign", MEMORY, SGL_CALLS, -KFI_EINVAL, foreign, .virt = true },
	{ "fails", DEVICE, ALL_CALLS, -KFI_EIO, nothing, .fails = true },
};

/* The request without its mistakes is in a domain with space for one region. */
struct full {
	struct kfid_domain *domain;
	struct kfid_mr *mr;
};

static bool full_open(struct kfi_test *t, struct full *f)
{
	struct kfi_info *info = kfi_dupinfo(t->env->info);
	int ret;

	if (!EXPECT(t, info, "no memory"))
		return false;
	info->domain_attr->mr_cnt = 1;
	ret = kfi_domain(t->env->fabric, info, &f->domain, NULL);
	kfi_freeinfo(info);
	if (!EXPECT_EQ(t, ret, 0))
		return false;
	ret = kfi_mr_reg(f->domain, t->env->arena[MEM_PAGES], PAGE_SIZE, KFI_REMOTE, 0, 0, 0,
			 &f->mr, NULL);
	if (EXPECT_EQ(t, ret, 0))
		return true;
	kfi_close(&f->domain->fid);
	return false;
}

static void full_close(struct kfi_test *t, struct full *f)
{
	EXPECT_EQ(t, kfi_close(&f->mr->fid), 0);
	EXPECT_EQ(t, kfi_close(&f->domain->fid), 0);
}

static void try_pair(struct kfi_test *t, struct full *f, const struct wrong *first,
		     const struct wrong *second)
{
	bool too_long = first->too_long || second->too_long;
	size_t pages = too_long ? t->env->max_pages + 1 : ROW_SEGMENTS;
	u8 *mem = t->env->arena[MEM_PAGES];
	unsigned int failures = t->failures;
	struct reg_req req;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, pages * PAGE_SIZE, PAGE_SIZE),
		       0))
		return;
	if (first->full || second->full)
		req.domain = f->domain;
	second->spoil(&req);
	first->spoil(&req);
	kfi_inject_fail(KFI_INJECT_POST_REG, -EIO, 0, second->fails ? UINT_MAX : 0);
	expect_refused(t, &req, first->want);
	kfi_inject_fail(KFI_INJECT_POST_REG, 0, 0, 0);
	if (t->failures > failures)
		ktap_note("above: %s before %s", first->name, second->name);
	reg_finish(t->env, &req);
}

static bool can_try(struct kfi_test *t, const struct wrong *row)
{
	return reg_call_in(t->variant, row->calls) && (!row->too_long || t->env->at_limit) &&
	       (!row->virt || ib_uses_virt_dma(t->env->dev)) &&
	       !(row->gap && (t->env->dev->attrs.kernel_cap_flags & IBK_SG_GAPS_REG));
}

static void pairs_case(struct kfi_test *t)
{
	const struct wrong *first, *second;
	unsigned int pairs = 0;
	struct full f;

	if (!full_open(t, &f))
		return;
	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0)) {
		full_close(t, &f);
		return;
	}
	for (first = table; first < table + ARRAY_SIZE(table); first++) {
		/* With itself, too: it is refused at all. */
		for (second = first; second < table + ARRAY_SIZE(table); second++) {
			if (!can_try(t, first) || !can_try(t, second))
				continue;
			/* Segments are checked one after the other: which row is first depends. */
			if (first != second && first->step == SEGMENTS && second->step == SEGMENTS)
				continue;
			try_pair(t, &f, first, second);
			pairs++;
		}
		cond_resched();
	}
	kfi_inject_stop(t->env->dev);
	full_close(t, &f);
	ktap_note("%s: %u pairs", reg_call_name(t->variant), pairs);
	EXPECT(t, pairs > 30, "hardly any pair was tried");
	expect_works(t, t->variant);
}

static const struct kfi_case cases[] = {
	{ "pairs", pairs_case, ALL_CALLS },
};

const struct kfi_suite suite_order = {
	.name = "order",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
	.end = end_refusals,
};
