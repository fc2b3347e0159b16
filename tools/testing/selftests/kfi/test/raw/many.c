// SPDX-License-Identifier: GPL-2.0
/* Many mapped keys, and many who map. */
#include <linux/ktime.h>

#include "raw.h"
#include "workers.h"

/* How long it takes to look up one of @n keys, in ns: the best of many tries. */
static s64 lookup_time(struct kfi_test *t, const struct raw_side *side, const u64 *keys,
		       unsigned int n)
{
	unsigned int try, i, at = 0;
	s64 best = S64_MAX;

	for (try = 0; try < 100; try++) {
		ktime_t start = ktime_get();

		for (i = 0; i < 100; i++, at = (at + 7919) % n) {
			struct kfi_rma_iov part;
			size_t count = 1;

			if (raw_resolve(side, keys[at], 0, 1, &part, &count))
				EXPECT(t, false, "mapped key %u isn't found", at);
		}
		best = min(best, ktime_to_ns(ktime_sub(ktime_get(), start)) / 100);
	}
	return best;
}

/* Many keys at a time; how long it takes to look one of them up is told, but no verdict. */
void raw_many_case(struct kfi_test *t)
{
	static const struct kfi_rma_iov one = { 0x1000, 0x1000, 0x1234 };
	unsigned int i, few = 100, many = max(scaled(10000), 1000u);
	u64 *keys = kvcalloc(many, sizeof(*keys), GFP_KERNEL);
	struct kfi_raw_key *raw = raw_make(&one, 1);
	s64 of_few = 0, of_many = 0;
	struct raw_side side;

	if (!EXPECT(t, keys && raw, "out of memory") || !side_open(t, &side))
		goto out;
	for (i = 0; i < many; i++) {
		if (!EXPECT_EQ(t, kfi_mr_map_raw(side.domain, 0, (u8 *)raw, KFI_RAW_KEY_SIZE(1),
						 &keys[i], 0), 0))
			break;
		EXPECT(t, !i || keys[i] != keys[i - 1], "a number was given twice");
		if (i + 1 == few)
			of_few = lookup_time(t, &side, keys, few);
	}
	if (i == many)
		of_many = lookup_time(t, &side, keys, many);
	ktap_note("raw: %lld ns to look up one of %u keys, %lld ns one of %u", of_few, few,
		  of_many, many);
	EXPECT_EQ(t, kfi_close(&side.domain->fid), -KFI_EBUSY);
	while (i-- > 0)
		EXPECT_EQ(t, kfi_mr_unmap_key(side.domain, keys[i]), 0);
	side_close(t, &side);
out:
	kvfree(keys);
	kvfree(raw);
}

/* Each thread maps, looks up and unmaps its own; it never sees another's. */
static void hustle(struct worker *w)
{
	struct raw_side *side = w->shared->data;
	struct kfi_rma_iov iov[2] = { { 0, 10, prandom_u32_state(&w->rnd) }, { 100, 20, 1 } };
	struct kfi_raw_key *raw = raw_make(iov, 2);
	struct kfi_rma_iov part[2];
	size_t count = 2;
	u64 key;

	if (!EXPECT(&w->t, raw, "out of memory"))
		return;
	if (EXPECT_EQ(&w->t, kfi_mr_map_raw(side->domain, 50, (u8 *)raw, KFI_RAW_KEY_SIZE(2), &key,
					    0), 0)) {
		EXPECT_EQ(&w->t, raw_resolve(side, key, 50, 30, part, &count), 0);
		EXPECT(&w->t, !memcmp(part, iov, sizeof(iov)), "another's pieces");
		EXPECT_EQ(&w->t, kfi_mr_unmap_key(side->domain, key), 0);
		EXPECT_EQ(&w->t, raw_resolve(side, key, 50, 30, part, &count), -KFI_ENOKEY);
	}
	kvfree(raw);
}

void raw_threads_case(struct kfi_test *t)
{
	struct raw_side side;
	struct workers *ws;

	if (!side_open(t, &side))
		return;
	ws = workers_start(t, 4, WORKER_PAGES, scaled(100), hustle, &side);
	if (ws) {
		workers_wait(ws);
		ktap_note("raw: %u rounds", workers_stop(t, ws));
	}
	side_close(t, &side);
}
