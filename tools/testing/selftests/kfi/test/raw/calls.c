// SPDX-License-Identifier: GPL-2.0
/* The calls about raw keys: what they want, what they write, and what they refuse. */
#include "raw.h"
#include "request.h"

#define SIZE	KFI_RAW_KEY_SIZE(1)

static const struct kfi_rma_iov good = { 0x1000, 0x100, 0x11 };

void raw_arguments_case(struct kfi_test *t)
{
	struct kfid_domain *domain;
	struct kfi_rma_iov part;
	size_t count = 1;
	struct raw_side side;
	u64 key = 0;
	u8 *raw = NULL;

	if (!side_open(t, &side))
		return;
	domain = side.domain;
	raw = (u8 *)raw_make(&good, 1);
	if (!EXPECT(t, raw, "out of memory"))
		goto out;
	EXPECT_EQ(t, kfi_mr_map_raw(NULL, 0, raw, SIZE, &key, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_map_raw(domain, 0, NULL, SIZE, &key, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_map_raw(domain, 0, raw, SIZE, NULL, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_map_raw(domain, 0, raw, SIZE, &key, 1), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_mr_map_raw(domain, 0, raw, SIZE, &key, 1ULL << 63), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_control(&domain->fid, KFI_MAP_RAW_MR, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_control(&domain->fid, KFI_UNMAP_KEY, NULL), -KFI_EINVAL);
	if (!EXPECT_EQ(t, kfi_mr_map_raw(domain, 0x7000, raw, SIZE, &key, 0), 0))
		goto out;
	EXPECT_EQ(t, side.ops->resolve(NULL, key, 0x7000, 1, &part, &count), -KFI_EINVAL);
	EXPECT_EQ(t, side.ops->resolve(&t->env->fabric->fid, key, 0x7000, 1, &part, &count),
		  -KFI_EINVAL);
	EXPECT_EQ(t, side.ops->resolve(&t->env->domain->fid, key, 0x7000, 1, &part, &count),
		  -KFI_ENOKEY);
	EXPECT_EQ(t, raw_resolve(&side, key, 0x7000, 1, &part, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, raw_resolve(&side, key, 0x7000, 1, NULL, &count), -KFI_EINVAL);
	EXPECT_EQ(t, raw_resolve(&side, key, 0x7000, 0, &part, &count), -KFI_EINVAL);
	EXPECT_EQ(t, raw_resolve(&side, key, 0x6fff, 1, &part, &count), -KFI_EINVAL);
	EXPECT_EQ(t, raw_resolve(&side, key, 0x7100, 1, &part, &count), -KFI_EINVAL);
	EXPECT_EQ(t, raw_resolve(&side, key, 0x7001, U64_MAX, &part, &count), -KFI_EINVAL);
	EXPECT_EQ(t, raw_resolve(&side, 0x11, 0x7000, 1, &part, &count), -KFI_ENOKEY);
	EXPECT_EQ(t, raw_resolve(&side, key + 1, 0x7000, 1, &part, &count), -KFI_ENOKEY);
	EXPECT_EQ(t, raw_resolve(&side, key, 0x7000, 1, &part, &count), 0);
	EXPECT_EQ(t, kfi_mr_unmap_key(domain, key), 0);
out:
	kvfree(raw);
	side_close(t, &side);
}

/* Only what is mapped can be unmapped, once, and a domain is closed after that. */
void raw_unmap_case(struct kfi_test *t)
{
	struct raw_side side;
	u64 key, other;
	u8 *raw;

	if (!side_open(t, &side))
		return;
	raw = (u8 *)raw_make(&good, 1);
	if (EXPECT_EQ(t, kfi_mr_map_raw(side.domain, 0, raw, SIZE, &key, 0), 0)) {
		EXPECT_EQ(t, kfi_mr_unmap_key(t->env->domain, key), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_mr_unmap_key(side.domain, 0), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_mr_unmap_key(side.domain, 0x11), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_mr_unmap_key(side.domain, KFI_KEY_NOTAVAIL), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_mr_unmap_key(side.domain, key + 1), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_close(&side.domain->fid), -KFI_EBUSY);
		EXPECT_EQ(t, kfi_mr_unmap_key(side.domain, key), 0);
		EXPECT_EQ(t, kfi_mr_unmap_key(side.domain, key), -KFI_EINVAL);
		/* The refused close has left the domain as it was. */
		EXPECT_EQ(t, kfi_mr_map_raw(side.domain, 0, raw, SIZE, &other, 0), 0);
		EXPECT(t, other != key, "the key came back");
		EXPECT_EQ(t, kfi_mr_unmap_key(side.domain, other), 0);
	}
	kvfree(raw);
	side_close(t, &side);
}

/* The fields that kfi_mr_raw_attr() writes, and with how much space. */
void raw_fields_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, 72);
	u8 raw[SIZE + 8];
	struct kfi_raw_key *want;
	struct kfi_rma_iov iov;
	struct kfid_mr *mr;
	size_t size;
	u64 base;

	if (!EXPECT_EQ(t, reg_simple(t->env, mem, PAGE_SIZE, KFI_REMOTE, &mr), 0))
		return;
	iov = (struct kfi_rma_iov){ mr->iova, PAGE_SIZE, kfi_mr_key(mr) };
	want = raw_make(&iov, 1);
	for (size = 0; want && size <= sizeof(raw); size++) {
		size_t asked = size;

		memset(raw, 0x5a, sizeof(raw));
		base = 0x5a;
		EXPECT_EQ(t, kfi_mr_raw_attr(mr, &base, raw, &asked, 0),
			  size < SIZE ? -KFI_ETOOSMALL : 0);
		EXPECT_EQ(t, asked, SIZE);
		if (size < SIZE) {
			EXPECT(t, !memchr_inv(raw, 0x5a, sizeof(raw)), "a part was written");
			continue;
		}
		EXPECT(t, base == mr->iova, "another base address");
		EXPECT(t, !memcmp(raw, want, SIZE), "other bytes");
		EXPECT(t, !memchr_inv(raw + SIZE, 0x5a, 8), "more was written");
	}
	size = 0;
	EXPECT_EQ(t, kfi_mr_raw_attr(mr, &base, NULL, &size, 0), -KFI_ETOOSMALL);
	EXPECT_EQ(t, size, SIZE);
	EXPECT_EQ(t, kfi_mr_raw_attr(mr, &base, NULL, &size, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_raw_attr(mr, NULL, raw, &size, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_raw_attr(mr, &base, raw, NULL, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_raw_attr(NULL, &base, raw, &size, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_raw_attr(mr, &base, raw, &size, 1), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_control(&mr->fid, KFI_GET_RAW_MR, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, size, SIZE);
	kvfree(want);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
}
