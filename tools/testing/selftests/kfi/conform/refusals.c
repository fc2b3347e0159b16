// SPDX-License-Identifier: GPL-2.0
/*
 * Documented errnos. Each row spoils a request that is right in one way; the call must say so by
 * that errno, leave nothing behind, and the domain must work on.
 */
#include "conform.h"

#define LEN	(3 * PAGE_SIZE)
#define INTO_PAGE	100
#define UNTOUCHED	((struct kfid_mr *)0x5a5a5a5a)

/**
 * struct spoil - what is wrong
 * @name: In words.
 * @calls: Which calls can be spoiled so.
 * @want: The errno, negative.
 * @spoil: Spoils it.
 * @value: For that.
 */
struct spoil {
	const char *name;
	u32 calls;
	int want;
	void (*spoil)(struct reg_req *req, u64 value);
	u64 value;
};

#define SPOIL(_name, statement)	\
static void _name(struct reg_req *req, u64 value) { statement; }

SPOIL(no_output, req->no_mr = true)
SPOIL(no_domain, req->domain = value ? ERR_PTR(-ENODEV) : NULL)
SPOIL(no_attr, req->no_attr = true)
SPOIL(type, req->type = value)
SPOIL(flags, req->flags = value)
SPOIL(access, req->access = value)
SPOIL(offset, req->offset = value)
SPOIL(count, req->count = value)
SPOIL(length, req->len = value)
SPOIL(address, req->buf = (void *)(uintptr_t)value)
SPOIL(auth_size, req->auth_key_size = value)

static void no_list(struct reg_req *req, u64 value)
{
	req->buf = NULL;
	req->kv = NULL;
	req->bv = NULL;
	req->sg = NULL;
}

/*
 * Segment @value has no bytes; in a scatterlist: it isn't DMA-mapped. The IOMMU may have joined the segments of a
 * scatterlist to fewer.
 */
static void empty(struct reg_req *req, u64 value)
{
	value = min(value, req->count - 1);
	if (reg_call_in(req->call, KVEC_CALLS))
		req->kv[value].iov_len = 0;
	else if (reg_call_in(req->call, BVEC_CALLS))
		req->bv[value].bv_len = 0;
	else
		sg_dma_len(&req->sg[value]) = 0;
}

static void nowhere(struct reg_req *req, u64 value)
{
	if (reg_call_in(req->call, KVEC_CALLS))
		req->kv[value].iov_base = NULL;
	else
		req->bv[value].bv_page = NULL;
}

static void user_segment(struct reg_req *req, u64 value)
{
	req->kv[value].iov_base = (void *)PAGE_SIZE;
}

static void own_code(struct reg_req *req, u64 value)
{
	req->buf = PTR_ALIGN_DOWN((void *)own_code, 64);
	req->len = 64;
}

static void overflow(struct reg_req *req, u64 value)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		req->kv[i].iov_base = (void *)PAGE_SIZE;
		req->kv[i].iov_len = SIZE_MAX / 2;
	}
}

static const struct spoil spoils[] = {
	{ "no output pointer", ALL_CALLS, -KFI_EINVAL, no_output },
	{ "no domain", ALL_CALLS, -KFI_EINVAL, no_domain },
	{ "an error pointer for the domain", ALL_CALLS, -KFI_EINVAL, no_domain, 1 },
	{ "no attributes", ATTR_CALLS, -KFI_EINVAL, no_attr },
	{ "type 0", ATTR_CALLS, -KFI_EINVAL, type, 0 },
	{ "an unknown type", ATTR_CALLS, -KFI_EINVAL, type, KFI_SGL + 1 },
	{ "no list or buffer", ALL_CALLS, -KFI_EINVAL, no_list },
	{ "a count of 0", LIST_CALLS, -KFI_EINVAL, count, 0 },
	{ "a size and no authorization key", ATTR_CALLS, -KFI_EINVAL, auth_size, 4 },
	{ "KFI_MORE", ALL_CALLS, -KFI_EBADFLAGS, flags, KFI_MORE },
	{ "flag bit 0", ALL_CALLS, -KFI_EBADFLAGS, flags, BIT_ULL(0) },
	{ "all flags", ALL_CALLS, -KFI_EBADFLAGS, flags, ~0ULL },
	{ "an access that is none", ALL_CALLS, -KFI_EINVAL, access, KFI_MSG },
	{ "one access too many", ALL_CALLS, -KFI_EINVAL, access, KFI_REMOTE | BIT_ULL(0) },
	{ "offset 1", ALL_CALLS, -KFI_EINVAL, offset, 1 },
	{ "offset of a page", ALL_CALLS, -KFI_EINVAL, offset, PAGE_SIZE },
	{ "no bytes", BUF_CALLS, -KFI_EINVAL, length, 0 },
	{ "bytes to the end of all addresses", BUF_CALLS, -KFI_EINVAL, length, SIZE_MAX },
	{ "an empty segment", LIST_CALLS, -KFI_EINVAL, empty, 1 },
	{ "lengths that overflow", KVEC_CALLS, -KFI_EINVAL, overflow },
	{ "user memory", BUF_CALLS, -KFI_EFAULT, address, PAGE_SIZE },
	{ "user memory in a list", KVEC_CALLS, -KFI_EFAULT, user_segment, 2 },
	{ "a segment without memory", KVEC_CALLS | BVEC_CALLS, -KFI_EFAULT, nowhere, 2 },
	{ "code", BUF_CALLS, -KFI_EFAULT, own_code },
};

static void one_row(struct kfi_test *t, struct place *p, const struct spoil *row)
{
	u8 *mem = arena_at(&p->env, MEM_KMALLOC, INTO_PAGE);
	unsigned int failures = t->failures;
	struct kfid_mr *mr = UNTOUCHED;
	struct reg_req req;
	int ret;

	if (!EXPECT_EQ(t, reg_prepare(&p->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return;
	pattern(mem, LEN, 7);
	row->spoil(&req, row->value);
	ret = reg_submit(&req, &mr);
	EXPECT_EQ(t, ret, row->want);
	if (ret)
		EXPECT(t, mr == (req.no_mr ? UNTOUCHED : NULL), "*mr after a refusal");
	else if (!IS_ERR_OR_NULL(mr) && mr != UNTOUCHED)
		close_mr(t, mr);
	EXPECT(t, pattern_is(mem, LEN, 7), "the memory was changed");
	reg_finish(&p->env, &req);
	if (t->failures > failures)
		ktap_note("refusals: above: %s", row->name);
}

static void rows_in(struct kfi_test *t, struct place *p)
{
	u8 *mem = arena_at(&p->env, MEM_KMALLOC, INTO_PAGE);
	struct reg_req req;
	struct kfid_mr *mr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(spoils); i++)
		if (reg_call_in(t->variant, spoils[i].calls))
			one_row(t, p, &spoils[i]);
	/* None of it has left anything behind. */
	if (!EXPECT_EQ(t, reg_prepare(&p->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		good(t, p, mr, mem, LEN);
		close_mr(t, mr);
	}
	reg_finish(&p->env, &req);
}

static void rows_case(struct kfi_test *t)
{
	in_each_mode(t, rows_in);
}

static const struct kfi_case cases[] = {
	ALWAYS("refusals", ALL_CALLS, F_REFUSALS, rows_case),
};

SECTION(section_refusals);
