// SPDX-License-Identifier: GPL-2.0
/*
 * Registrations of all kinds by four threads. From the second tenth of the rounds on, slabs must not grow. The
 * last tenth must not take twice the time of the second one.
 */
#include <linux/mm.h>

#include "random.h"
#include "request.h"
#include "workers.h"

#define THREADS	4
#define PAGES	8
/* Rounds of each thread. */
#define ROUNDS	12500
/* Fewer rounds are too few to judge memory and time. */
#define ENOUGH	100000

/* When the second tenth of the rounds begins and ends, and the last one. */
enum mark { SECOND, THIRD, LAST, END, MARKS };

/**
 * struct marks - the state of a thread
 * @time: Its time on a CPU, in nanoseconds.
 * @slab: Pages of slabs that can't be reclaimed.
 */
struct marks {
	u64 time[MARKS];
	unsigned long slab[MARKS];
};

static void take_marks(struct worker *w)
{
	struct marks *m = (struct marks *)w->shared->data + (w - w->shared->worker);
	unsigned int tenth = w->shared->max_rounds / 10;
	const unsigned int at[MARKS] = { tenth, 2 * tenth, 9 * tenth, w->shared->max_rounds - 1 };
	int i;

	for (i = 0; i < MARKS; i++)
		if (w->rounds == at[i]) {
			m->time[i] = current->se.sum_exec_runtime;
			m->slab[i] = global_node_page_state_pages(NR_SLAB_UNRECLAIMABLE_B);
		}
}

static void one_round(struct worker *w)
{
	struct kfi_env *env = w->t.env;
	enum reg_call call = prandom_u32_state(&w->rnd) % REG_CALLS;
	enum mem_kind kind = prandom_u32_state(&w->rnd) % MEM_KINDS;
	size_t len = 1 + prandom_u32_state(&w->rnd) % ((PAGES - 1) * PAGE_SIZE);
	size_t split = prandom_u32_state(&w->rnd) % 2 ? PAGE_SIZE : SPLIT_NONE;
	u8 *mem = arena_at(env, kind, prandom_u32_state(&w->rnd) % PAGE_SIZE);
	struct reg_req req;
	struct kfid_mr *mr;

	take_marks(w);
	/* tools/vm/watch ends a guest that prints nothing for minutes. */
	if (w->rounds && !(w->rounds % 32768))
		pr_info("kfi_selftest: %u rounds of one thread\n", w->rounds);
	if (!EXPECT_EQ(&w->t, reg_prepare(env, &req, call, mem, len, split), 0))
		return;
	if (EXPECT_EQ(&w->t, reg_submit(&req, &mr), 0))
		EXPECT_EQ(&w->t, kfi_close(&mr->fid), 0);
	reg_finish(env, &req);
}

static void compare(struct kfi_test *t, const struct marks *m, unsigned int rounds)
{
	u64 second = 0, last = 0, tenth = max(rounds / 10, 1U);
	long grown = (m->slab[END] - m->slab[SECOND]) * (long)(PAGE_SIZE / 1024);
	int i;

	for (i = 0; i < THREADS; i++) {
		second += m[i].time[THIRD] - m[i].time[SECOND];
		last += m[i].time[END] - m[i].time[LAST];
	}
	ktap_note("%u rounds, ns each in the second tenth %llu, in the last %llu; slabs %+ld KiB", rounds,
		  second / tenth, last / tenth, grown);
	if (rounds < ENOUGH || IS_ENABLED(CONFIG_KASAN))
		return;
	/* 2 MiB for caches, and a byte for each round. */
	EXPECT(t, grown < 2048 + rounds / 1024, "slabs have grown by %ld KiB", grown);
	EXPECT(t, last < 2 * second, "a round takes longer at the end");
}

void random_rounds_case(struct kfi_test *t)
{
	unsigned int rounds = scaled(ROUNDS), done;
	struct marks *m = kcalloc(THREADS, sizeof(*m), GFP_KERNEL);
	struct kfi_test own = *t;
	struct workers *ws;

	if (!EXPECT(t, m, "no memory"))
		return;
	own.env = env_open();
	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(own.env), 0))
		goto out;
	ws = workers_start(&own, THREADS, PAGES, rounds, one_round, m);
	if (ws) {
		workers_wait(ws);
		done = workers_stop(&own, ws);
		EXPECT_EQ(&own, done, THREADS * rounds);
		compare(&own, m, done);
	}
	EXPECT_EQ(&own, env_close(own.env), 0);
	t->failures += own.failures;
out:
	kfree(m);
}
