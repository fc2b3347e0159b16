// SPDX-License-Identifier: GPL-2.0
/* A raw key on its way to a peer: see mapped.h. */
#include "mapped.h"

/* The region's raw key; the room that it needs is told when there is none. */
bool take_key(struct kfi_test *t, struct mapped *m, struct place *p, struct kfid_mr *mr)
{
	m->size = 0;
	EXPECT_EQ(t, kfi_mr_raw_attr(mr, &m->base, m->raw, &m->size, 0), -KFI_ETOOSMALL);
	if (!EXPECT(t, m->size && m->size <= MAPPED_ROOM, "%zu bytes are needed", m->size))
		return false;
	EXPECT(t, m->size <= p->info->domain_attr->mr_key_size || !(p->mode & KFI_MR_RAW),
	       "%zu bytes are more than mr_key_size", m->size);
	return EXPECT_EQ(t, kfi_mr_raw_attr(mr, &m->base, m->raw, &m->size, 0), 0);
}

/* The peer's side: another domain, which needn't know anything but the bytes. */
bool map_begin(struct kfi_test *t, struct mapped *m, struct place *p)
{
	void *ops;

	*m = (struct mapped) {};
	m->peer = place_open_info(t, p->info);
	if (!m->peer)
		return false;
	m->raw = kmalloc(MAPPED_ROOM, GFP_KERNEL);
	if (EXPECT(t, m->raw, "no memory") &&
	    EXPECT_EQ(t, kfi_open_ops(&m->peer->env.domain->fid, KFI_RAW_OPS_1, 0, &ops, NULL), 0)) {
		m->ops = ops;
		return true;
	}
	kfree(m->raw);
	place_close(t, m->peer);
	return false;
}

bool map_key(struct kfi_test *t, struct mapped *m)
{
	m->open = EXPECT_EQ(t, kfi_mr_map_raw(m->peer->env.domain, m->base, m->raw, m->size,
					      &m->key, 0), 0);
	if (m->open)
		EXPECT(t, m->key != KFI_KEY_NOTAVAIL, "no key");
	return m->open;
}

/* All mapped keys are given back before their domain is closed. */
void map_end(struct kfi_test *t, struct mapped *m)
{
	struct kfid_domain *domain = m->peer->env.domain;

	if (m->open) {
		EXPECT_EQ(t, kfi_mr_unmap_key(domain, m->key), 0);
		EXPECT_EQ(t, kfi_mr_unmap_key(domain, m->key), -KFI_EINVAL);
	}
	kfree(m->raw);
	place_close(t, m->peer);
}

/* Do one access by a mapped key: in the parts that the extension says, each by its own key. */
int access_by(struct place *p, struct mapped *m, u64 offset, u8 *buf, size_t len, bool write)
{
	struct kfi_rma_iov iov[16];
	size_t i, count = ARRAY_SIZE(iov);
	int ret;

	ret = m->ops->resolve(&m->peer->env.domain->fid, m->key, m->base + offset, len, iov,
			      &count);
	for (i = 0; !ret && i < count; i++) {
		ret = write ? under_test->write(p, iov[i].addr, iov[i].key, buf, iov[i].len) :
			      under_test->read(p, iov[i].addr, iov[i].key, buf, iov[i].len);
		buf += iov[i].len;
	}
	return ret;
}

/* By the mapped key all of the region can be read and written, which is @total bytes. */
void whole_region(struct kfi_test *t, struct place *p, struct mapped *m, size_t total)
{
	u8 *scratch = p->env.scratch;

	pattern(scratch, total, 11);
	EXPECT_EQ(t, access_by(p, m, 0, scratch, total, true), 0);
	memset(scratch, 0, total);
	EXPECT_EQ(t, access_by(p, m, 0, scratch, total, false), 0);
	EXPECT(t, pattern_is(scratch, total, 11), "other bytes came back");
	/* Across every place where a piece might end, and nowhere beyond. */
	EXPECT_EQ(t, access_by(p, m, 1, scratch, total - 1, false), 0);
	EXPECT(t, pattern_is(scratch, total - 1, 12), "other bytes came back from 1 on");
	EXPECT_EQ(t, access_by(p, m, 1, scratch, total, false), -KFI_EINVAL);
	EXPECT_EQ(t, access_by(p, m, total, scratch, 1, false), -KFI_EINVAL);
	EXPECT_EQ(t, access_by(p, m, -1ULL, scratch, 1, false), -KFI_EINVAL);
}
