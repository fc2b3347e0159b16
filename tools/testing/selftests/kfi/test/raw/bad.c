// SPDX-License-Identifier: GPL-2.0
/*
 * Raw keys that are wrong. They lie at the very end of a vmalloc area here, so that reading beyond
 * one is noticed.
 */
#include "raw.h"
#include "request.h"

#define PIECES	3
#define SIZE	KFI_RAW_KEY_SIZE(PIECES)
#define AREA	(4 * PAGE_SIZE)

static const struct kfi_rma_iov good[PIECES] = {
	{ 0x1000, 0x100, 0x11 }, { 0x2000, 0x200, 0x22 }, { 0x3000, 0x300, 0x33 },
};

/**
 * struct bad - a field that is wrong
 * @at: Where it is.
 * @len: How many bytes it has.
 * @value: The value that is put in.
 */
struct bad {
	size_t at;
	size_t len;
	u64 value;
};

#define BAD(field, value)	\
	{ offsetof(struct kfi_raw_key, field), sizeof_field(struct kfi_raw_key, field), value }
#define BAD_PIECE(n, field, value)						\
	{ KFI_RAW_KEY_SIZE(n) + offsetof(struct kfi_raw_key_piece, field), 8, value }

static const struct bad bad[] = {
	BAD(magic, 0), BAD(magic, 0x4b46524b), BAD(magic, 0x4b52464a), BAD(magic, U32_MAX),
	BAD(version, 0), BAD(version, 2), BAD(version, 0x101), BAD(version, U16_MAX),
	BAD(reserved, 1), BAD(reserved, 0x8000), BAD(reserved2, 1), BAD(reserved2, 1U << 31),
	BAD(count, 0), BAD(count, 1), BAD(count, PIECES - 1), BAD(count, PIECES + 1),
	BAD(count, KFI_RAW_KEY_MOST), BAD(count, KFI_RAW_KEY_MOST + 1), BAD(count, U32_MAX),
	/* 24 times this is 72 again, in 32 bits. */
	BAD(count, 0x20000003), BAD(count, 0x40000003), BAD(count, 0xe0000003U),
	BAD(total, 0), BAD(total, 0x5ff), BAD(total, 0x601), BAD(total, U64_MAX),
	BAD_PIECE(0, rkey, 1ULL << 63), BAD_PIECE(2, rkey, KFI_KEY_NOTAVAIL),
	BAD_PIECE(0, base, U64_MAX), BAD_PIECE(1, base, U64_MAX - 0x1ff),
	BAD_PIECE(2, base, -(s64)0x2ff),
	BAD_PIECE(0, length, 0), BAD_PIECE(1, length, 0), BAD_PIECE(2, length, 0x2ff),
	BAD_PIECE(0, length, U64_MAX), BAD_PIECE(1, length, 1ULL << 63),
	BAD_PIECE(2, length, -(s64)0x3000),
};

/* Mapping it gives @want; if that is 0, it's unmapped again. */
static void expect_map(struct kfi_test *t, const struct raw_side *side, const void *raw,
		       size_t size, int want)
{
	u64 key = 0x5a5a;
	int ret = kfi_mr_map_raw(side->domain, 0x7000, (u8 *)raw, size, &key, 0);

	EXPECT_EQ(t, ret, want);
	if (ret)
		EXPECT(t, key == KFI_KEY_NOTAVAIL, "a key of a refused raw key: %#llx", key);
	else
		EXPECT_EQ(t, kfi_mr_unmap_key(side->domain, key), 0);
}

/* The resources of a case: a side, an area to end in, and a raw key. */
struct stage {
	struct raw_side side;
	u8 *area;
	struct kfi_raw_key *raw;
};

static bool stage_open(struct kfi_test *t, struct stage *s)
{
	if (!side_open(t, &s->side))
		return false;
	s->area = vmalloc(AREA);
	s->raw = raw_make(good, PIECES);
	return EXPECT(t, s->area && s->raw, "out of memory");
}

static void stage_close(struct kfi_test *t, struct stage *s)
{
	side_close(t, &s->side);
	vfree(s->area);
	kvfree(s->raw);
}

/* The raw key's first @size bytes, so that they end with the area. */
static u8 *at_end(struct stage *s, size_t size)
{
	u8 *at = s->area + AREA - size;

	memset(s->area, 0xa5, AREA);
	memcpy(at, s->raw, min(size, SIZE));
	return at;
}

void raw_malformed_case(struct kfi_test *t)
{
	struct stage s;
	size_t i, size;

	if (!stage_open(t, &s))
		return;
	expect_map(t, &s.side, at_end(&s, SIZE), SIZE, 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		u8 *at = at_end(&s, SIZE);
		__le64 value = cpu_to_le64(bad[i].value);
		unsigned int failures = t->failures;

		memcpy(at + bad[i].at, &value, bad[i].len);
		expect_map(t, &s.side, at, SIZE, -KFI_EINVAL);
		if (t->failures > failures)
			ktap_note("malformed: above: %#llx at %zu", bad[i].value, bad[i].at);
	}
	/* Cut off, or longer, wherever it may be. */
	for (size = 0; size < SIZE + 100; size++)
		expect_map(t, &s.side, at_end(&s, size), size, size == SIZE ? 0 : -KFI_EINVAL);
	stage_close(t, &s);
}

/* Any damage: refused, or mapped, but nothing else. */
void raw_fuzz_case(struct kfi_test *t)
{
	unsigned int round, mapped = 0, n = scaled(1000);
	struct rnd_state rnd;
	struct stage s;

	if (!stage_open(t, &s))
		return;
	prandom_seed_state(&rnd, kfi_seed);
	for (round = 0; round < n && !t->failures; round++) {
		size_t size = prandom_u32_state(&rnd) % 4 ? SIZE : prandom_u32_state(&rnd) % 200;
		u8 *at = at_end(&s, size);
		int ret, i = prandom_u32_state(&rnd) % 3;
		u64 key;

		while (size && i-- >= 0)
			at[prandom_u32_state(&rnd) % size] = prandom_u32_state(&rnd) >> 24;
		ret = kfi_mr_map_raw(s.side.domain, prandom_u32_state(&rnd), at, size, &key, 0);
		EXPECT(t, !ret || ret == -KFI_EINVAL, "round %u gave %d", round, ret);
		if (!ret)
			EXPECT_EQ(t, kfi_mr_unmap_key(s.side.domain, key), 0);
		mapped += !ret;
	}
	ktap_note("fuzz: %u of %u were well-formed", mapped, n);
	stage_close(t, &s);
}

/* As many pieces as there may be, one more, and sizes that no memory has. */
void raw_limits_case(struct kfi_test *t)
{
	size_t i, n = KFI_RAW_KEY_MOST, size = KFI_RAW_KEY_SIZE(n + 1);
	struct kfi_rma_iov *iov = kvcalloc(n + 1, sizeof(*iov), GFP_KERNEL);
	struct kfi_raw_key *most = NULL, *more = NULL;
	struct stage s;
	u64 key;

	if (!stage_open(t, &s))
		return;
	for (i = 0; iov && i <= n; i++)
		iov[i] = (struct kfi_rma_iov){ i << 20, i + 1, i };
	most = iov ? raw_make(iov, n) : NULL;
	more = iov ? raw_make(iov, n + 1) : NULL;
	if (!EXPECT(t, most && more, "out of memory"))
		goto out;
	expect_map(t, &s.side, more, size, -KFI_EINVAL);
	expect_map(t, &s.side, s.raw, SIZE_MAX, -KFI_EINVAL);
	expect_map(t, &s.side, s.raw, 1UL << 62, -KFI_EINVAL);
	size = KFI_RAW_KEY_SIZE(n);
	if (EXPECT_EQ(t, kfi_mr_map_raw(s.side.domain, 0, (u8 *)most, size, &key, 0), 0)) {
		struct kfi_rma_iov *all = iov + 1;
		u64 len = (u64)n * (n + 1) / 2;
		size_t count = n;

		EXPECT_EQ(t, raw_resolve(&s.side, key, 0, len, all, &count), 0);
		EXPECT_EQ(t, count, n);
		for (i = 0; i < n; i++)
			EXPECT(t, all[i].key == i && all[i].len == i + 1, "piece %zu", i);
		EXPECT_EQ(t, raw_resolve(&s.side, key, 0, len + 1, all, &count), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_mr_unmap_key(s.side.domain, key), 0);
	}
out:
	kvfree(most);
	kvfree(more);
	kvfree(iov);
	stage_close(t, &s);
}
