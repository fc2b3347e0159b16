// SPDX-License-Identifier: GPL-2.0
/*
 * Closing regions that peers are busy with: when kfi_close() has returned, the memory is the
 * caller's alone. It is freed, or used for something else, at once.
 */
#include <linux/delay.h>

#include "request.h"
#include "suites.h"
#include "workers.h"

/* One work request of the peer, of many packets: most closes come in the middle of one. */
#define LEN	KFI_PEER_CHUNK
#define PAGES	(LEN / PAGE_SIZE)

/**
 * struct target - what the hammers hit
 * @lock: Protects the next three.
 * @open: Whether the region is open.
 * @key: Its key, or that of the last one.
 * @iova: Its address.
 * @hits: Accesses that went through.
 */
struct target {
	spinlock_t lock;	/* the next three */
	bool open;
	u64 key;
	u64 iova;
	atomic_t hits;
};

/*
 * One access. An access that begins when the region has been closed must be refused; one that began
 * before that may go either way.
 */
static void hit(struct worker *w, int (*access)(struct kfi_test *t, u64 iova, u64 key))
{
	struct target *target = w->shared->data;
	u64 key, iova;
	bool open;
	int ret;

	spin_lock(&target->lock);
	open = target->open;
	key = target->key;
	iova = target->iova;
	spin_unlock(&target->lock);
	if (!key)
		return;

	ret = access(&w->t, iova, key);
	if (!ret && open)
		atomic_inc(&target->hits);
	else
		EXPECT(&w->t, ret == -EACCES, "an access to %s region gave %d",
		       open ? "an open" : "a closed", ret);
}

static int write_or_read(struct kfi_test *t, u64 iova, u64 key)
{
	static atomic_t turn;

	if (atomic_inc_return(&turn) % 3)
		return kfi_peer_write(t->env->peer, iova, key, t->env->scratch, LEN);
	return kfi_peer_read(t->env->peer, iova, key, t->env->scratch, LEN);
}

static void hammer(struct worker *w)
{
	hit(w, write_or_read);
}

static int invalidate(struct kfi_test *t, u64 iova, u64 key)
{
	usleep_range(1, 200);
	return kfi_peer_send_inv(t->env->peer, key);
}

static void invalidator(struct worker *w)
{
	hit(w, invalidate);
}

/* Wait until something has gone through, so that the close comes in the middle of it. */
static bool wait_for_hits(struct kfi_test *t, struct target *target, int before)
{
	unsigned long end = jiffies + 120 * HZ;

	while (atomic_read(&target->hits) == before && time_before(jiffies, end))
		usleep_range(10, 50);
	return EXPECT(t, atomic_read(&target->hits) != before, "no peer reaches the region");
}

static bool one_region(struct kfi_test *t, struct target *target, u8 *mem, bool wait)
{
	int hits = atomic_read(&target->hits);
	struct kfid_mr *mr;

	if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr), 0))
		return false;
	spin_lock(&target->lock);
	target->open = true;
	target->key = mr->key;
	target->iova = mr->iova;
	spin_unlock(&target->lock);
	if (wait)
		wait_for_hits(t, target, hits);
	else
		usleep_range(10, 300);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	spin_lock(&target->lock);
	target->open = false;
	spin_unlock(&target->lock);
	return true;
}

static void *get_memory(int round)
{
	return round % 2 ? vmalloc(LEN) : kmalloc(LEN, GFP_KERNEL);
}

/* In every @wait-th round the close waits for an access that went through; else it comes soon. */
static void rounds(struct kfi_test *t, struct target *target, unsigned int n, int wait)
{
	int round;
	u8 *mem;

	for (round = 0; round < n && !t->failures; round++) {
		mem = get_memory(round);
		if (!EXPECT(t, mem, "no memory"))
			break;
		if (one_region(t, target, mem, round % wait == 0) && round % 4 < 2) {
			/* Keep it: nothing of a peer's may appear in it any more. */
			memset(mem, 0x77, LEN);
			usleep_range(500, 3000);
			EXPECT(t, !memchr_inv(mem, 0x77, LEN), "written after the close");
		}
		/* Otherwise it goes at once, and whoever gets it next has the damage. */
		kvfree(mem);
	}
}

static void close_case(struct kfi_test *t)
{
	struct target target = {};
	struct workers *ws;

	spin_lock_init(&target.lock);
	ws = workers_start(t, 2, PAGES, 0, hammer, &target);
	if (!ws)
		return;
	rounds(t, &target, scaled(40), 1);
	ktap_note("%d accesses went through", atomic_read(&target.hits));
	workers_stop(t, ws);
}

/* Both sides invalidate the key at the same time. */
static void invalidate_case(struct kfi_test *t)
{
	struct target target = {};
	struct workers *ws;
	struct kfid_mr *mr;
	u8 *mem;

	spin_lock_init(&target.lock);
	ws = workers_start(t, 2, PAGES, 0, invalidator, &target);
	if (!ws)
		return;
	rounds(t, &target, scaled(40), 2);
	ktap_note("%d keys were invalidated by the peer", atomic_read(&target.hits));
	workers_stop(t, ws);

	mem = arena_at(t->env, MEM_PAGES, 0);
	if (EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr), 0)) {
		check_region(t, mr, mem, LEN);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
}

static const struct kfi_case cases[] = {
	{ "close", close_case },
	{ "invalidate", invalidate_case },
};

const struct kfi_suite suite_hammer = {
	.name = "hammer",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
