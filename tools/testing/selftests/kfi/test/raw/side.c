// SPDX-License-Identifier: GPL-2.0
/* The common parts of the cases of the suite raw, see raw.h. */
#include "raw.h"

bool side_open(struct kfi_test *t, struct raw_side *side)
{
	void *ops;

	if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &side->domain, NULL), 0))
		return false;
	if (!EXPECT_EQ(t, kfi_open_ops(&side->domain->fid, KFI_RAW_OPS_1, 0, &ops, NULL), 0)) {
		EXPECT_EQ(t, kfi_close(&side->domain->fid), 0);
		return false;
	}
	side->ops = ops;
	return EXPECT(t, side->ops->size >= sizeof(*side->ops), "size %zu", side->ops->size);
}

/* Fails unless all keys have been unmapped. */
void side_close(struct kfi_test *t, struct raw_side *side)
{
	EXPECT_EQ(t, kfi_close(&side->domain->fid), 0);
}

/* A raw key of these pieces; free it by kvfree(). */
struct kfi_raw_key *raw_make(const struct kfi_rma_iov *iov, size_t count)
{
	struct kfi_raw_key *raw = kvzalloc(KFI_RAW_KEY_SIZE(count), GFP_KERNEL);
	u64 total = 0;
	size_t i;

	if (!raw)
		return NULL;
	memcpy(&raw->magic, "KFRK", 4);
	raw->version = cpu_to_le16(1);
	raw->count = cpu_to_le32(count);
	for (i = 0; i < count; i++) {
		raw->piece[i].rkey = cpu_to_le64(iov[i].key);
		raw->piece[i].base = cpu_to_le64(iov[i].addr);
		raw->piece[i].length = cpu_to_le64(iov[i].len);
		total += iov[i].len;
	}
	raw->total = cpu_to_le64(total);
	return raw;
}

int raw_resolve(const struct raw_side *side, u64 key, u64 addr, u64 len, struct kfi_rma_iov *iov,
		size_t *count)
{
	return side->ops->resolve(&side->domain->fid, key, addr, len, iov, count);
}

static int each_part(struct kfi_test *t, const struct raw_side *side, u64 key, u64 addr, size_t len,
		     bool write)
{
	struct kfi_rma_iov iov[FEW];
	size_t i, count = FEW, done = 0;
	int ret;

	ret = raw_resolve(side, key, addr, len, iov, &count);
	for (i = 0; !ret && i < count; done += iov[i++].len) {
		u8 *buf = t->env->scratch + done;

		if (!EXPECT(t, done + iov[i].len <= len, "the parts are longer than the access"))
			return -EINVAL;
		ret = write ? kfi_peer_write(t->env->peer, iov[i].addr, iov[i].key, buf, iov[i].len)
			    : kfi_peer_read(t->env->peer, iov[i].addr, iov[i].key, buf, iov[i].len);
	}
	EXPECT(t, ret || done == len, "the parts are shorter than the access");
	return ret;
}

/* The peer reads @len bytes by a mapped key into its scratch memory. */
int raw_read(struct kfi_test *t, const struct raw_side *side, u64 key, u64 addr, size_t len)
{
	return each_part(t, side, key, addr, len, false);
}

/* The peer writes @len bytes of its scratch memory by a mapped key. */
int raw_write(struct kfi_test *t, const struct raw_side *side, u64 key, u64 addr, size_t len)
{
	return each_part(t, side, key, addr, len, true);
}
