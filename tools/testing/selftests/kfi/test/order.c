// SPDX-License-Identifier: GPL-2.0
/*
 * Refusals of requests that are wrong in two ways: what is checked first decides. The order is that
 * of kfi_mr(3): output pointer, domain, list and count, flags, access, offset, segments, limits,
 * memory. Only pairs whose errnos differ can tell.
 */
#include "errors.h"
#include "suites.h"

enum stage {
	OUTPUT,
	DOMAIN,
	LIST,
	FLAGS,
	ACCESS,
	OFFSET,
	SEGMENTS,
	LIMITS,
	MEMORY,
};

/* Bad memory comes first in the list, and the empty segment behind it: against the order. */
static void spoil_memory(struct reg_req *req)
{
	if (req->call == REG)
		req->buf = (void *)PAGE_SIZE;
	else if (reg_call_in(req->call, KVEC_CALLS))
		req->kv[0].iov_base = (void *)PAGE_SIZE;
	else
		req->bv[0].bv_page = NULL;
}

static void spoil_segments(struct reg_req *req)
{
	if (req->call == REG)
		req->len = 0;
	else if (reg_call_in(req->call, KVEC_CALLS))
		req->kv[2].iov_len = 0;
	else if (reg_call_in(req->call, BVEC_CALLS))
		req->bv[2].bv_len = 0;
	else
		sg_dma_len(&req->sg[2]) = 0;
}

static void spoil_list(struct reg_req *req)
{
	req->buf = NULL;
	req->kv = NULL;
	req->bv = NULL;
	req->sg = NULL;
}

/* LIMITS are spoiled by the list that the request is made of. */
static void spoil(struct reg_req *req, enum stage stage)
{
	switch (stage) {
	case OUTPUT:
		req->no_mr = true;
		break;
	case DOMAIN:
		req->domain = NULL;
		break;
	case LIST:
		spoil_list(req);
		break;
	case FLAGS:
		req->flags = KFI_MORE;
		break;
	case ACCESS:
		req->access = 0;
		break;
	case OFFSET:
		req->offset = 1;
		break;
	case SEGMENTS:
		spoil_segments(req);
		break;
	case MEMORY:
		spoil_memory(req);
		break;
	case LIMITS:
		break;
	}
}

struct pair {
	enum stage first;
	enum stage second;
	int want;
};

static int prepare(struct kfi_test *t, struct reg_req *req, bool too_long)
{
	u8 *mem = t->env->arena[MEM_PAGES];
	size_t pages = too_long ? t->env->max_pages + 1 : ROW_SEGMENTS;

	return reg_prepare(t->env, req, t->variant, mem, pages * PAGE_SIZE, PAGE_SIZE);
}

static void run_pair(struct kfi_test *t)
{
	const struct pair *pair = t->c->data;
	bool too_long = pair->first == LIMITS || pair->second == LIMITS;
	struct reg_req req;

	if (too_long && !t->env->at_limit)
		return ktap_skip(t, "the device's limit is beyond what is tested");
	if (!EXPECT_EQ(t, prepare(t, &req, too_long), 0))
		return;
	spoil(&req, pair->second);
	spoil(&req, pair->first);
	expect_refused(t, &req, pair->want);
	reg_finish(t->env, &req);
	expect_works(t, t->variant);
}

#define PAIR(_name, _calls, _first, _second, _want) {				\
	.name = _name,								\
	.run = run_pair,							\
	.variants = _calls,							\
	.data = &(const struct pair) { _first, _second, _want },		\
}

/* A scatterlist's memory isn't looked at: its addresses are. */
#define MEM_CALLS	(ALL_CALLS & ~SGL_CALLS)

static const struct kfi_case cases[] = {
	PAIR("output_flags", ALL_CALLS, OUTPUT, FLAGS, -KFI_EINVAL),
	PAIR("output_limits", ALL_CALLS, OUTPUT, LIMITS, -KFI_EINVAL),
	PAIR("domain_flags", ALL_CALLS, DOMAIN, FLAGS, -KFI_EINVAL),
	PAIR("domain_memory", MEM_CALLS, DOMAIN, MEMORY, -KFI_EINVAL),
	PAIR("list_flags", ALL_CALLS, LIST, FLAGS, -KFI_EINVAL),
	PAIR("flags_access", ALL_CALLS, FLAGS, ACCESS, -KFI_EBADFLAGS),
	PAIR("flags_offset", ALL_CALLS, FLAGS, OFFSET, -KFI_EBADFLAGS),
	PAIR("flags_segments", ALL_CALLS, FLAGS, SEGMENTS, -KFI_EBADFLAGS),
	PAIR("flags_limits", ALL_CALLS, FLAGS, LIMITS, -KFI_EBADFLAGS),
	PAIR("flags_memory", MEM_CALLS, FLAGS, MEMORY, -KFI_EBADFLAGS),
	PAIR("access_limits", ALL_CALLS, ACCESS, LIMITS, -KFI_EINVAL),
	PAIR("access_memory", MEM_CALLS, ACCESS, MEMORY, -KFI_EINVAL),
	PAIR("offset_limits", ALL_CALLS, OFFSET, LIMITS, -KFI_EINVAL),
	PAIR("offset_memory", MEM_CALLS, OFFSET, MEMORY, -KFI_EINVAL),
	PAIR("segments_limits", LIST_CALLS, SEGMENTS, LIMITS, -KFI_EINVAL),
	PAIR("segments_memory", MEM_CALLS, SEGMENTS, MEMORY, -KFI_EINVAL),
	PAIR("limits_memory", MEM_CALLS, LIMITS, MEMORY, -KFI_E2BIG),
};

const struct kfi_suite suite_order = {
	.name = "order",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
	.end = report_refused,
};
