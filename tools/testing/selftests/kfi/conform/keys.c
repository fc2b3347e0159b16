// SPDX-License-Identifier: GPL-2.0
/* The chooser of keys: the provider (KFI_MR_PROV_KEY) or the consumer. */
#include "conform.h"

#define LEN	(PAGE_SIZE + 70)
#define INTO_PAGE	64

/* The provider chooses: the requested key is neither an error nor what comes out twice. */
static void prov_keys_case(struct kfi_test *t)
{
	static const u64 asked[] = { 0, 1, 1, U32_MAX, KFI_KEY_NOTAVAIL, BIT_ULL(63) };
	struct kfid_mr *mr[ARRAY_SIZE(asked)] = {};
	unsigned int i, j, n;
	struct reg_req req;
	struct place *p;
	u8 *mem;

	p = place_open(t, MODE_BASIC);
	if (!p)
		return;
	mem = arena_at(&p->env, MEM_KMALLOC, INTO_PAGE);
	if (EXPECT_EQ(t, reg_prepare(&p->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0)) {
		for (n = 0; n < ARRAY_SIZE(asked); n++) {
			req.key = asked[n];
			if (!EXPECT_EQ(t, reg_submit(&req, &mr[n]), 0))
				break;
			for (j = 0; j < n; j++)
				EXPECT(t, mr[j]->key != mr[n]->key, "a key was given twice");
			EXPECT(t, mr[n]->iova != (uintptr_t)mem, "an address of the kernel");
		}
		for (i = 0; i < n; i++)
			good(t, p, mr[i], mem, LEN);
		while (n-- > 0)
			close_mr(t, mr[n]);
		reg_finish(&p->env, &req);
	}
	place_close(t, p);
}

/* The consumer chooses: the region has that key, and its first byte is at 0. */
static void with_key(struct kfi_test *t, struct place *p, u64 key)
{
	u8 *mem = arena_at(&p->env, MEM_KMALLOC, INTO_PAGE);
	struct reg_req req;
	struct kfid_mr *mr;

	if (!EXPECT_EQ(t, reg_prepare(&p->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return;
	req.key = key;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		EXPECT(t, kfi_mr_key(mr) == key, "%#llx gives %#llx", key, kfi_mr_key(mr));
		reaches(t, p, 0, key, mem, LEN);
		refuses(t, p, LEN, key, mem, 1);
		close_mr(t, mr);
		refuses(t, p, 0, key, mem, LEN);
	}
	reg_finish(&p->env, &req);
}

static void chosen_keys_case(struct kfi_test *t)
{
	static const u64 keys[] = { 0, 1, 0x1234, 0x1234, U32_MAX, BIT_ULL(32), BIT_ULL(62) };
	unsigned int i;
	struct place *p;

	p = place_open(t, MODE_DEFAULT);
	if (!p)
		return;
	EXPECT_EQ(t, p->info->domain_attr->mr_key_size, 8);
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		with_key(t, p, keys[i]);
	place_close(t, p);
}

/* @want for a request of @key; nothing is left of it. */
static void expect_key(struct kfi_test *t, struct place *p, u64 key, int want)
{
	u8 *mem = arena_at(&p->env, MEM_PAGES, INTO_PAGE);
	struct kfid_mr *mr = ERR_PTR(-1);
	struct reg_req req;

	if (!EXPECT_EQ(t, reg_prepare(&p->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return;
	req.key = key;
	EXPECT_EQ(t, reg_submit(&req, &mr), want);
	if (want)
		EXPECT(t, !mr, "*mr after a refusal");
	else if (!IS_ERR_OR_NULL(mr))
		close_mr(t, mr);
	reg_finish(&p->env, &req);
}

/* In use: -KFI_ENOKEY, in this domain only, and until the close. */
static void key_in_use_case(struct kfi_test *t)
{
	struct place *p, *other;
	struct kfid_mr *mr;
	u8 *mem;

	p = place_open(t, MODE_DEFAULT);
	if (!p)
		return;
	mem = arena_at(&p->env, MEM_KMALLOC, INTO_PAGE);
	if (EXPECT_EQ(t, kfi_mr_reg(p->env.domain, mem, LEN, KFI_REMOTE, 0, 5, 0, &mr, NULL), 0)) {
		expect_key(t, p, 5, -KFI_ENOKEY);
		expect_key(t, p, 6, 0);
		other = place_open(t, MODE_DEFAULT);
		if (other) {
			expect_key(t, other, 5, 0);
			place_close(t, other);
		}
		good(t, p, mr, mem, LEN);
		close_mr(t, mr);
		expect_key(t, p, 5, 0);
	}
	place_close(t, p);
}

/* Out of range: -KFI_EKEYREJECTED. */
static void key_range_case(struct kfi_test *t)
{
	struct place *p;

	p = place_open(t, MODE_DEFAULT);
	if (!p)
		return;
	expect_key(t, p, KFI_KEY_NOTAVAIL, -KFI_EKEYREJECTED);
	expect_key(t, p, BIT_ULL(63), -KFI_EKEYREJECTED);
	expect_key(t, p, BIT_ULL(63) | 5, -KFI_EKEYREJECTED);
	expect_key(t, p, 5, 0);
	place_close(t, p);
}

static const struct kfi_case cases[] = {
	ALWAYS("prov_keys", ALL_CALLS, F_BASIC, prov_keys_case),
	CHECK("chosen_keys", ALL_CALLS, F_DEFAULT, chosen_keys_case, refused_default),
	CHECK("key_in_use", ALL_CALLS, F_DEFAULT, key_in_use_case, refused_default),
	CHECK("key_range", ALL_CALLS, F_DEFAULT, key_range_case, refused_default),
};

SECTION(section_keys);
