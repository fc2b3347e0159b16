// SPDX-License-Identifier: GPL-2.0
/* Threads that work on one domain at a time: see workers.h. */
#include <linux/delay.h>

#include "request.h"
#include "workers.h"

static int worker_main(void *arg)
{
	struct worker *w = arg;

	while (!kthread_should_stop()) {
		if ((w->shared->max_rounds && w->rounds >= w->shared->max_rounds) ||
		    w->t.failures) {
			usleep_range(1000, 2000);
			continue;
		}
		w->run(w);
		WRITE_ONCE(w->rounds, w->rounds + 1);
		cond_resched();
	}
	return 0;
}

static bool worker_start(struct kfi_test *t, struct workers *ws, size_t pages,
			 void (*run)(struct worker *w))
{
	struct worker *w = &ws->worker[ws->count];

	w->t = *t;
	w->t.failures = 0;
	w->run = run;
	w->shared = ws;
	prandom_seed_state(&w->rnd, kfi_seed + ws->count);
	w->t.env = env_share(t->env, pages);
	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(w->t.env), 0))
		return false;
	w->task = kthread_run(worker_main, w, "kfi_test/%d", ws->count);
	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(w->task), 0)) {
		env_unshare(w->t.env);
		return false;
	}
	ws->count++;
	return true;
}

/* Ends with workers_stop(), also where fewer threads than asked for were started. */
struct workers *workers_start(struct kfi_test *t, int count, size_t pages, unsigned int max_rounds,
			      void (*run)(struct worker *w), void *data)
{
	struct workers *ws = kzalloc_obj(*ws);

	if (!EXPECT(t, ws, "no memory"))
		return NULL;
	ws->max_rounds = max_rounds;
	ws->data = data;
	while (ws->count < count && worker_start(t, ws, pages, run))
		;
	return ws;
}

unsigned int workers_rounds(const struct workers *ws)
{
	unsigned int n = 0;
	int i;

	for (i = 0; i < ws->count; i++)
		n += READ_ONCE(ws->worker[i].rounds);
	return n;
}

/* Wait until all have done all of their rounds, or have failed. */
void workers_wait(struct workers *ws)
{
	int i;

	for (i = 0; i < ws->count; i++)
		while (READ_ONCE(ws->worker[i].rounds) < ws->max_rounds &&
		       !READ_ONCE(ws->worker[i].t.failures))
			usleep_range(1000, 5000);
}

/* Returns how many rounds there were. A failure in a thread is a failure of the test. */
unsigned int workers_stop(struct kfi_test *t, struct workers *ws)
{
	unsigned int rounds;
	int i;

	if (!ws)
		return 0;
	for (i = 0; i < ws->count; i++) {
		kthread_stop(ws->worker[i].task);
		t->failures += ws->worker[i].t.failures;
		env_unshare(ws->worker[i].t.env);
	}
	rounds = workers_rounds(ws);
	kfree(ws);
	return rounds;
}

void worker_register(struct worker *w)
{
	struct kfi_env *env = w->t.env;
	enum reg_call call = prandom_u32_state(&w->rnd) % REG_CALLS;
	enum mem_kind kind = prandom_u32_state(&w->rnd) % MEM_KINDS;
	size_t align = prandom_u32_state(&w->rnd) % PAGE_SIZE;
	size_t pages = 1 + prandom_u32_state(&w->rnd) % (env->max_pages - 1);
	size_t len = 1 + prandom_u32_state(&w->rnd) % (pages * PAGE_SIZE - 1);
	size_t split = prandom_u32_state(&w->rnd) % 2 ? PAGE_SIZE : SPLIT_NONE;
	u8 *mem = arena_at(env, kind, align);
	struct reg_req req;
	struct kfid_mr *mr;
	u64 key, iova;

	if (!EXPECT_EQ(&w->t, reg_prepare(env, &req, call, mem, len, split), 0))
		return;
	if (EXPECT_EQ(&w->t, reg_submit(&req, &mr), 0)) {
		check_region(&w->t, mr, mem, len);
		key = mr->key;
		iova = mr->iova;
		EXPECT_EQ(&w->t, kfi_close(&mr->fid), 0);
		if (prandom_u32_state(&w->rnd) % 4 == 0)
			check_refused(&w->t, iova, key, mem, len);
	}
	reg_finish(env, &req);
}
