/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that work on one domain at a time, each with a peer, lists and memory of its own. */
#ifndef KFI_TEST_WORKERS_H
#define KFI_TEST_WORKERS_H

#include <linux/kthread.h>

#include "env.h"

#define MAX_WORKERS	8

/**
 * struct worker - a thread
 * @t: Its own view of the test: an environment of its own, on the test's domain.
 * @rnd: Its own random numbers, made from the seed.
 * @task: The thread.
 * @run: Its function, called again and again until @stop.
 * @rounds: How often that was.
 * @shared: The data that the workers share.
 */
struct worker {
	struct kfi_test t;
	struct rnd_state rnd;
	struct task_struct *task;
	void (*run)(struct worker *w);
	unsigned int rounds;
	struct workers *shared;
};

/**
 * struct workers - threads of one test
 * @max_rounds: After this number of rounds a thread waits for its end; 0: never.
 * @data: The test's own.
 * @count: How many threads there are.
 * @worker: The threads.
 */
struct workers {
	unsigned int max_rounds;
	void *data;
	int count;
	struct worker worker[MAX_WORKERS];
};

/* Pages of memory of each kind that a thread has, for most tests. */
#define WORKER_PAGES	40

struct workers *workers_start(struct kfi_test *t, int count, size_t pages, unsigned int max_rounds,
			      void (*run)(struct worker *w), void *data);
unsigned int workers_rounds(const struct workers *ws);
void workers_wait(struct workers *ws);
unsigned int workers_stop(struct kfi_test *t, struct workers *ws);

/* A register-check-close round with random call, memory, place and size. */
void worker_register(struct worker *w);

#endif /* KFI_TEST_WORKERS_H */
