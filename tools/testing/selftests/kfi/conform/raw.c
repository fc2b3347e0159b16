// SPDX-License-Identifier: GPL-2.0
/* Raw keys: the bytes that a region has for a key and that a peer maps, whatever the mode. */
#include "mapped.h"

#define LEN	(3 * PAGE_SIZE + 91)
#define INTO_PAGE	72

/* A remote side that knows the mapped key by itself, as it belongs to who has mapped it. */
static void by_mapped_key(struct kfi_test *t, struct place *p, struct mapped *m, u8 *mem)
{
	struct kfid *peer = &m->peer->env.domain->fid;

	if (!under_test->mapped_keys)
		return;
	refuses(t, p, m->base, m->key, mem, LEN);
	p->initiator = peer;
	reaches(t, p, m->base, m->key, mem, LEN);
	reaches(t, p, m->base + 1, m->key, mem + 1, LEN - 2);
	refuses(t, p, m->base + 1, m->key, mem, LEN);
	refuses(t, p, m->base, m->key ^ 1, mem, LEN);
	p->initiator = NULL;
}

static void key_in(struct kfi_test *t, struct place *p)
{
	u8 *mem = arena_at(&p->env, MEM_KMALLOC, INTO_PAGE);
	struct reg_req req;
	struct kfid_mr *mr;
	struct mapped m;

	if (!map_begin(t, &m, p))
		return;
	if (!EXPECT_EQ(t, reg_prepare(&p->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return map_end(t, &m);
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		if (take_key(t, &m, p, mr) && map_key(t, &m)) {
			EXPECT(t, m.base == mr->iova, "the base address is another one");
			whole_region(t, p, &m, LEN);
			EXPECT(t, pattern_is(mem, LEN, 11), "not what was written");
			by_mapped_key(t, p, &m, mem);
		}
		close_mr(t, mr);
		if (m.open) {
			/* A stale key still maps: it is the target that refuses. */
			EXPECT_EQ(t, access_by(p, &m, 0, p->env.scratch, 8, true), -EACCES);
			EXPECT_EQ(t, kfi_close(&m.peer->env.domain->fid), -KFI_EBUSY);
		}
	}
	reg_finish(&p->env, &req);
	map_end(t, &m);
}

static void key_case(struct kfi_test *t)
{
	in_each_mode(t, key_in);
}

/* A raw key that is no raw key. */
static void expect_malformed(struct kfi_test *t, struct mapped *m, size_t size, const char *what)
{
	u64 key = 5;

	if (!EXPECT_EQ(t, kfi_mr_map_raw(m->peer->env.domain, m->base, m->raw, size, &key, 0),
		       -KFI_EINVAL)) {
		ktap_note("malformed: above: %s", what);
		kfi_mr_unmap_key(m->peer->env.domain, key);
	}
}

static void malformed_keys(struct kfi_test *t, struct mapped *m)
{
	static const struct {
		const char *what;
		size_t at;
		u8 flip;
	} rows[] = {
		{ "magic", offsetof(struct kfi_raw_key, magic), 1 },
		{ "version", offsetof(struct kfi_raw_key, version), 3 },
		{ "reserved", offsetof(struct kfi_raw_key, reserved), 1 },
		{ "count", offsetof(struct kfi_raw_key, count), 1 },
		{ "a large count", offsetof(struct kfi_raw_key, count) + 3, 0x80 },
		{ "total", offsetof(struct kfi_raw_key, total), 1 },
		{ "a length", offsetof(struct kfi_raw_key, piece[0].length), 1 },
			};
	struct kfid_domain *domain = m->peer->env.domain;
	struct kfi_raw_key *key = (struct kfi_raw_key *)m->raw;
	unsigned int i;
	__le64 base;
	u64 mapped;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		m->raw[rows[i].at] ^= rows[i].flip;
		expect_malformed(t, m, m->size, rows[i].what);
		m->raw[rows[i].at] ^= rows[i].flip;
	}
	base = key->piece[0].base;
	key->piece[0].base = cpu_to_le64(U64_MAX);
	expect_malformed(t, m, m->size, "a base that wraps");
	key->piece[0].base = base;
	for (i = 0; i < m->size; i++)
		expect_malformed(t, m, i, "too short");
	expect_malformed(t, m, m->size + 1, "too long");
	expect_malformed(t, m, MAPPED_ROOM, "much too long");
	EXPECT_EQ(t, kfi_mr_map_raw(domain, 0, NULL, m->size, &mapped, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_map_raw(domain, 0, m->raw, m->size, NULL, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_map_raw(domain, 0, m->raw, m->size, &mapped, 1), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_mr_unmap_key(domain, 5), -KFI_EINVAL);
}

static void malformed_in(struct kfi_test *t, struct place *p)
{
	u8 *mem = arena_at(&p->env, MEM_KMALLOC, INTO_PAGE);
	struct kfid_mr *mr;
	struct mapped m;
	size_t room;

	if (!map_begin(t, &m, p))
		return;
	if (EXPECT_EQ(t, register_buf(p, mem, LEN, KFI_REMOTE, &mr), 0)) {
		if (take_key(t, &m, p, mr)) {
			room = MAPPED_ROOM;
			EXPECT_EQ(t, kfi_mr_raw_attr(mr, &m.base, m.raw, &room, 1), -KFI_EBADFLAGS);
			EXPECT_EQ(t, kfi_mr_raw_attr(mr, &m.base, NULL, &room, 0), -KFI_EINVAL);
			EXPECT_EQ(t, kfi_mr_raw_attr(mr, NULL, m.raw, &room, 0), -KFI_EINVAL);
			EXPECT_EQ(t, kfi_mr_raw_attr(mr, &m.base, m.raw, NULL, 0), -KFI_EINVAL);
			memset(m.raw + m.size, 0, MAPPED_ROOM - m.size);
			malformed_keys(t, &m);
		}
		good(t, p, mr, mem, LEN);
		close_mr(t, mr);
	}
	map_end(t, &m);
}

static void malformed_case(struct kfi_test *t)
{
	in_each_mode(t, malformed_in);
}

static const struct kfi_case cases[] = {
	ALWAYS("raw_key", ALL_CALLS, F_RAW_KEYS, key_case),
	ALWAYS("raw_malformed", 0, F_RAW_KEYS, malformed_case),
};

SECTION(section_raw);
