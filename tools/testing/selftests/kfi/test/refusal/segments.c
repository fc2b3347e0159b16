// SPDX-License-Identifier: GPL-2.0
/* Refusals of lists: empty segments, sums that overflow, gaps, lists that are too long. */
#include "errors.h"
#include "list_end.h"
#include "suites.h"

/* Make segment @i empty; for a scatterlist that is: not DMA-mapped. */
static void empty(struct reg_req *req, size_t i)
{
	if (reg_call_in(req->call, KVEC_CALLS))
		req->kv[i].iov_len = 0;
	else if (reg_call_in(req->call, BVEC_CALLS))
		req->bv[i].bv_len = 0;
	else
		sg_dma_len(&req->sg[i]) = 0;
}

static const char *empty_only(struct kfi_env *env, struct reg_req *req)
{
	if (req->call == REG) {
		req->len = 0;
	} else {
		req->count = 1;
		empty(req, 0);
	}
	return NULL;
}

static const char *empty_first(struct kfi_env *env, struct reg_req *req)
{
	empty(req, 0);
	return NULL;
}

static const char *empty_middle(struct kfi_env *env, struct reg_req *req)
{
	empty(req, req->count / 2);
	return NULL;
}

static const char *empty_last(struct kfi_env *env, struct reg_req *req)
{
	empty(req, req->count - 1);
	return NULL;
}

static const char *empty_all(struct kfi_env *env, struct reg_req *req)
{
	size_t i;

	for (i = 0; i < req->count; i++)
		empty(req, i);
	return NULL;
}

/* Each segment by itself ends below the top of the address space, their sum doesn't. */
static const char *sum_overflow(struct kfi_env *env, struct reg_req *req)
{
	size_t i;

	for (i = 0; i < 4; i++) {
		req->kv[i].iov_base = (void *)PAGE_SIZE;
		req->kv[i].iov_len = SIZE_MAX / 2;
	}
	req->count = 4;
	return NULL;
}

static const char *wrap_to_zero(struct kfi_env *env, struct reg_req *req)
{
	req->buf = (void *)-PAGE_SIZE;
	req->len = PAGE_SIZE + 1;
	if (req->call != REG) {
		req->kv[0].iov_base = (void *)req->buf;
		req->kv[0].iov_len = req->len;
	}
	return NULL;
}

static const char *wrap_last(struct kfi_env *env, struct reg_req *req)
{
	req->kv[req->count - 1].iov_len = SIZE_MAX - PAGE_SIZE;
	return NULL;
}

static const char *length_max(struct kfi_env *env, struct reg_req *req)
{
	req->len = SIZE_MAX;
	req->kv[0].iov_len = SIZE_MAX;
	return NULL;
}

/* Take @n bytes off the end of segment @i, or off its beginning. */
static void shorten(struct reg_req *req, size_t i, size_t n, bool front)
{
	if (reg_call_in(req->call, KVEC_CALLS)) {
		req->kv[i].iov_len -= n;
		req->kv[i].iov_base += front ? n : 0;
	} else if (reg_call_in(req->call, BVEC_CALLS)) {
		req->bv[i].bv_len -= n;
		req->bv[i].bv_offset += front ? n : 0;
	} else {
		sg_dma_len(&req->sg[i]) -= n;
		sg_dma_address(&req->sg[i]) += front ? n : 0;
	}
}

static const char *can_have_gaps(struct kfi_env *env)
{
	if (env->dev->attrs.kernel_cap_flags & IBK_SG_GAPS_REG)
		return "the device takes lists with gaps";
	return NULL;
}

static const char *hole_first_end(struct kfi_env *env, struct reg_req *req)
{
	shorten(req, 0, 1, false);
	return can_have_gaps(env);
}

static const char *hole_middle_end(struct kfi_env *env, struct reg_req *req)
{
	shorten(req, 1, 512, false);
	return can_have_gaps(env);
}

static const char *hole_middle_start(struct kfi_env *env, struct reg_req *req)
{
	shorten(req, 1, 8, true);
	return can_have_gaps(env);
}

static const char *hole_last_start(struct kfi_env *env, struct reg_req *req)
{
	shorten(req, req->count - 1, 1, true);
	return can_have_gaps(env);
}

/* Another list. One that can't be made is left empty, and so gives another errno than expected. */
static const char *replace(struct kfi_env *env, struct reg_req *req, void *mem, size_t len,
			   size_t split)
{
	reg_finish(env, req);
	if (reg_prepare(env, req, req->call, mem, len, split))
		req->count = 0;
	return NULL;
}

/* A list of @n one-page segments. */
static const char *long_list(struct kfi_env *env, struct reg_req *req, size_t n)
{
	u8 *mem = env->arena[MEM_PAGES];

	if (!env->segs_at_limit)
		return "the domain's limit is beyond what is tested";
	if (n * PAGE_SIZE > env->arena_size)
		return "more than the test has memory for";
	return replace(env, req, mem, n * PAGE_SIZE, PAGE_SIZE);
}

static const char *too_many_segments(struct kfi_env *env, struct reg_req *req)
{
	return long_list(env, req, env->max_segs + 1);
}

/* Only max_segs + 1 segments are there: whoever believes the count runs off the list. */
static const char *count_max(struct kfi_env *env, struct reg_req *req)
{
	const char *why = long_list(env, req, env->max_segs + 1);

	req->count = SIZE_MAX;
	return why;
}

static const char *too_many_pages(struct kfi_env *env, struct reg_req *req)
{
	size_t len = (env->max_pages + 1) * PAGE_SIZE;

	if (!env->at_limit)
		return "the device's limit is beyond what is tested";
	return replace(env, req, env->arena[MEM_PAGES], len, SPLIT_NONE);
}

/* Few bytes, but they touch one page more than the region can hold. */
static const char *too_many_pages_by_offset(struct kfi_env *env, struct reg_req *req)
{
	size_t len = (env->max_pages - 1) * PAGE_SIZE + 2;
	u8 *mem = env->arena[MEM_PAGES] + PAGE_SIZE - 1;

	if (!env->at_limit)
		return "the device's limit is beyond what is tested";
	return replace(env, req, mem, len, SPLIT_NONE);
}

static const struct kfi_case cases[] = {
	ROW("empty_only", ALL_CALLS, -KFI_EINVAL, empty_only),
	ROW("empty_first", LIST_CALLS, -KFI_EINVAL, empty_first),
	ROW("empty_middle", LIST_CALLS, -KFI_EINVAL, empty_middle),
	ROW("empty_last", LIST_CALLS, -KFI_EINVAL, empty_last),
	ROW("empty_all", LIST_CALLS, -KFI_EINVAL, empty_all),
	ROW("sum_overflow", KVEC_CALLS, -KFI_EINVAL, sum_overflow),
	ROW("wrap_to_zero", BUF_CALLS | KVEC_CALLS, -KFI_EINVAL, wrap_to_zero),
	ROW("wrap_last", KVEC_CALLS, -KFI_EINVAL, wrap_last),
	ROW("length_max", BUF_CALLS | KVEC_CALLS, -KFI_EINVAL, length_max),
	ROW("hole_first_end", LIST_CALLS, -KFI_EINVAL, hole_first_end),
	ROW("hole_middle_end", LIST_CALLS, -KFI_EINVAL, hole_middle_end),
	ROW("hole_middle_start", LIST_CALLS, -KFI_EINVAL, hole_middle_start),
	ROW("hole_last_start", LIST_CALLS, -KFI_EINVAL, hole_last_start),
	ROW("too_many_segments", LIST_CALLS, -KFI_E2BIG, too_many_segments),
	ROW("count_max", LIST_CALLS, -KFI_E2BIG, count_max),
	ROW("too_many_pages", ALL_CALLS, -KFI_E2BIG, too_many_pages),
	ROW("too_many_pages_by_offset", ALL_CALLS, -KFI_E2BIG, too_many_pages_by_offset),
	{ "list_end", list_end_case, BIT(REGSGL) },
};

const struct kfi_suite suite_segments = {
	.name = "segments",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
	.end = end_refusals,
};
