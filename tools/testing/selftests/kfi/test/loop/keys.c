// SPDX-License-Identifier: GPL-2.0
/* Keys of the loopback provider: whose they are, how long they last, and how many there can be. */
#include <linux/ktime.h>

#include "loop.h"

#define LEN	500
#define INTO_PAGE	100

/* The application's keys: what it asked for is what a peer uses, from 0, and only while it's open. */
void loop_application_key_case(struct kfi_test *t)
{
	static const u64 keys[] = { 0, 1, 0x1234, U32_MAX, 1ULL << 40, S64_MAX };
	struct kfid_mr *mr[ARRAY_SIZE(keys)], *other;
	struct loop *l = loop_open(t, 0);
	int i, n;
	u8 *mem;

	if (!l)
		return;
	mem = arena_at(&l->env, MEM_KMALLOC, INTO_PAGE);
	for (n = 0; n < ARRAY_SIZE(keys); n++)
		if (!EXPECT_EQ(t, loop_reg(l, mem, LEN + n, KFI_REMOTE, keys[n], &mr[n]), 0))
			break;
	for (i = 0; i < n; i++) {
		EXPECT(t, kfi_mr_key(mr[i]) == keys[i], "another key");
		loop_reaches(t, l, 0, keys[i], mem, LEN + i);
		/* In use, whatever else is asked for. */
		other = (void *)1;
		EXPECT_EQ(t, loop_reg(l, mem + 1, 1, KFI_SEND, keys[i], &other), -KFI_ENOKEY);
		EXPECT(t, !other, "*mr is not NULL");
	}
	for (i = 0; i < n; i++) {
		loop_denied(t, l, 1, keys[i], mem, LEN + i);
		EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
		loop_denied(t, l, 0, keys[i], mem, LEN);
		/* Free again. */
		if (EXPECT_EQ(t, loop_reg(l, mem, LEN, KFI_REMOTE, keys[i], &mr[i]), 0)) {
			loop_reaches(t, l, 0, keys[i], mem, LEN);
			EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
		}
	}
	loop_close(t, l);
}

/* Bit 63 is for mapped raw keys. After a refusal the domain works on, and has lost no key. */
void loop_key_range_case(struct kfi_test *t)
{
	static const u64 keys[] = { 1ULL << 63, (1ULL << 63) | 5, U64_MAX };
	struct loop *l = loop_open(t, 0);
	struct kfid_mr *mr;
	int i;
	u8 *mem;

	if (!l)
		return;
	mem = arena_at(&l->env, MEM_KMALLOC, INTO_PAGE);
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		mr = (void *)1;
		EXPECT_EQ(t, loop_reg(l, mem, LEN, KFI_REMOTE, keys[i], &mr), -KFI_EKEYREJECTED);
		EXPECT(t, !mr, "*mr is not NULL");
		loop_denied(t, l, 0, keys[i], mem, LEN);
		loop_denied(t, l, 0, keys[i] & S64_MAX, mem, LEN);
	}
	/* Memory that is refused leaves the key free. */
	EXPECT_EQ(t, loop_reg(l, (void *)PAGE_SIZE, LEN, KFI_REMOTE, 5, &mr), -KFI_EFAULT);
	if (EXPECT_EQ(t, loop_reg(l, mem, LEN, KFI_REMOTE, 5, &mr), 0)) {
		loop_reaches(t, l, 0, 5, mem, LEN);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	loop_close(t, l);
}

/* The provider's keys: what was asked for doesn't matter, and none comes back. */
void loop_provider_key_case(struct kfi_test *t)
{
	struct loop *l = loop_open(t, KFI_MR_PROV_KEY);
	unsigned int i, n = scaled(1000);
	struct kfid_mr *mr, *keep;
	u64 first = 0, key;
	u8 *mem;

	if (!l)
		return;
	mem = arena_at(&l->env, MEM_KMALLOC, INTO_PAGE);
	if (!EXPECT_EQ(t, loop_reg(l, mem, LEN, KFI_REMOTE, 3, &keep), 0))
		goto out;
	for (i = 0; i < n && !t->failures; i++) {
		if (!EXPECT_EQ(t, loop_reg(l, mem, LEN, KFI_REMOTE, i % 2 ? 3 : U64_MAX, &mr), 0))
			break;
		key = kfi_mr_key(mr);
		EXPECT(t, key != kfi_mr_key(keep), "a key was given twice");
		EXPECT(t, !(key >> 63), "key %#llx", key);
		EXPECT(t, !i || key != first, "the first key came back");
		if (!i)
			first = key;
		EXPECT_EQ(t, loop_read(l, 0, key, l->env.scratch, LEN), 0);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		EXPECT_EQ(t, loop_read(l, 0, key, l->env.scratch, LEN), -KFI_EACCES);
	}
	loop_reaches(t, l, 0, kfi_mr_key(keep), mem, LEN);
	EXPECT_EQ(t, kfi_close(&keep->fid), 0);
out:
	loop_close(t, l);
}

/*
 * How long a peer's access by a key takes, in ns: @keys keys that are @spread apart, in random order.
 * The best of many times, since others use the machine too.
 */
static u64 access_time(struct kfi_test *t, struct loop *l, unsigned int keys, u64 spread)
{
	unsigned int i, j, n = 500;
	struct rnd_state rnd;
	u64 best = U64_MAX;
	ktime_t start;
	u8 byte;

	prandom_seed_state(&rnd, kfi_seed);
	for (i = 0; i < 40 && !t->failures; i++) {
		start = ktime_get();
		for (j = 0; j < n; j++)
			EXPECT_EQ(t, loop_read(l, 0, prandom_u32_state(&rnd) % keys * spread,
					       &byte, 1), 0);
		best = min_t(u64, best, ktime_to_ns(ktime_sub(ktime_get(), start)) / n);
		cond_resched();
	}
	return best;
}

/*
 * A million regions at once, with keys of the application's, far apart or one after the other.
 * Fewer on a guest that has too little memory.
 */
static void many(struct kfi_test *t, unsigned int n, u64 spread)
{
	unsigned int i, most;
	struct loop *l = loop_open(t, 0);
	struct kfid_mr **mr;
	u64 few, lots;
	ktime_t start, end;
	long avail;
	u8 *mem;

	if (!l)
		return;
	/* Less than 1 KiB each. The debug kernel, with its red zones, takes a hundred times longer. */
	most = si_mem_available() * (PAGE_SIZE / SZ_1K);
	n = min(n, IS_ENABLED(CONFIG_KASAN) ? scaled(10000) : most - most / 4);
	mem = arena_at(&l->env, MEM_KMALLOC, INTO_PAGE);
	mr = kvcalloc(n, sizeof(*mr), GFP_KERNEL);
	if (!EXPECT(t, mr, "no memory"))
		goto out;
	avail = si_mem_available();
	start = ktime_get();
	few = lots = 0;
	for (i = 0; i < n; i++) {
		if (!EXPECT_EQ(t, loop_reg(l, mem, LEN, KFI_REMOTE, i * spread, &mr[i]), 0))
			break;
		if (i == 99)
			few = access_time(t, l, 100, spread);
		if (i % 1024 == 0)
			cond_resched();
	}
	end = ktime_get();
	if (i == n) {
		avail -= si_mem_available();
		lots = access_time(t, l, n, spread);
		ktap_note("%u keys, %llu apart: %ld bytes and %lld ns for a region, %llu ns to read (%llu with 100)",
			  n, spread, avail * (long)PAGE_SIZE / n,
			  ktime_to_ns(ktime_sub(end, start)) / n, lots, few);
		loop_reaches(t, l, 0, (n - 1) * spread, mem, LEN);
		loop_denied(t, l, 0, n * spread, mem, LEN);
	}
	while (i-- > 0) {
		EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
		if (i % 1024 == 0)
			cond_resched();
	}
	loop_denied(t, l, 0, 0, mem, LEN);
	kvfree(mr);
out:
	loop_close(t, l);
}

void loop_million_case(struct kfi_test *t)
{
	many(t, scaled(1000000), 1);
	/* Prime, so that the keys have nothing in common; the last is below 2^63. */
	many(t, scaled(200000), 8796093022151ULL);
}
