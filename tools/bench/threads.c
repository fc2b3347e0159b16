// SPDX-License-Identifier: GPL-2.0
/*
 * The work of two threads together, each on a CPU of its own, beside the work of one alone. In wall
 * time: it means something only if two CPUs really run at a time, which the control shows.
 */
#include <linux/completion.h>
#include <linux/jhash.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "bench.h"

#define THREADS		2
#define ROUND_MS	200

/**
 * struct thread - a thread that goes a way again and again
 * @b: The bench that it uses.
 * @way: The way.
 * @go: Completed when all threads are there.
 * @ended: Completed by it.
 * @rate: How many times it has gone the way, in a second.
 * @ret: The first errno.
 */
struct thread {
	struct bench *b;
	bench_way way;
	struct completion *go;
	struct completion ended;
	u64 rate;
	int ret;
};

static int work(void *arg)
{
	struct thread *t = arg;
	u64 start, took, times = 0;

	wait_for_completion(t->go);
	start = ktime_get_ns();
	do {
		t->ret = t->way(t->b, LINEAR, 1);
		times++;
		cond_resched();
		took = ktime_get_ns() - start;
	} while (!t->ret && took < ROUND_MS * NSEC_PER_MSEC);
	t->rate = div64_u64(times * NSEC_PER_SEC, took);
	/* Nothing of the module runs behind this. */
	kthread_complete_and_exit(&t->ended, 0);
}

static int start(struct thread *t, unsigned int cpu)
{
	struct task_struct *task = kthread_create(work, t, "kfi_bench/%u", cpu);

	if (IS_ERR(task))
		return PTR_ERR(task);
	kthread_bind(task, cpu);
	wake_up_process(task);
	return 0;
}

/* @count threads, on the first CPUs; @b has what each of them uses. */
static int together(struct bench *b[], bench_way way, unsigned int count, u64 *rate)
{
	struct thread t[THREADS] = { };
	DECLARE_COMPLETION_ONSTACK(go);
	unsigned int i, cpu = 0, started;
	int ret = 0;

	for (started = 0; started < count; started++, cpu = cpumask_next(cpu, cpu_online_mask)) {
		t[started].b = b[started];
		t[started].way = way;
		t[started].go = &go;
		init_completion(&t[started].ended);
		ret = start(&t[started], cpu);
		if (ret)
			break;
	}
	complete_all(&go);
	*rate = 0;
	for (i = 0; i < started; i++) {
		wait_for_completion(&t[i].ended);
		ret = ret ?: t[i].ret;
		*rate += t[i].rate;
	}
	return ret;
}

/* The control: what two CPUs do when they have nothing in common. */
static int compute(struct bench *b, enum bench_form form, unsigned int pages)
{
	static const u32 words[256];
	u32 hash = 0;
	int i;

	for (i = 0; i < 16; i++)
		hash = jhash2(words, ARRAY_SIZE(words), hash);
	OPTIMIZER_HIDE_VAR(hash);
	return 0;
}

static int measure(struct bench *b[], const struct bench_options *o, const char *name,
		   bench_way way, unsigned int goal)
{
	u64 *one = kcalloc(2 * o->rounds, sizeof(*one), GFP_KERNEL), *two = one + o->rounds;
	unsigned int round;
	int ret = 0;

	if (!one)
		return -ENOMEM;
	for (round = 0; round < o->rounds && !ret; round++) {
		ret = together(b, way, 1, &one[round]);
		if (!ret)
			ret = together(b, way, THREADS, &two[round]);
	}
	if (ret)
		pr_err("bench: %s: errno %d\n", name, ret);
	else
		bench_print(name, bench_median(two, o->rounds), "one",
			    bench_median(one, o->rounds), goal);
	kfree(one);
	return ret;
}

/**
 * bench_threads() - Measure two threads beside one, and print it.
 * @b: The benchmark.
 * @o: How.
 *
 * Context: May sleep.
 * Return: 0, -ENODEV if there is only one CPU, or the errno of the first call that fails.
 */
int bench_threads(struct bench *b, const struct bench_options *o)
{
	/* The other thread shares the domain; in C it has a protection domain of its own. */
	struct bench *other = kmemdup(b, sizeof(*b), GFP_KERNEL);
	struct bench *both[THREADS] = { b, other };
	int ret;

	if (!other)
		return -ENOMEM;
	memset(&other->dev, 0, sizeof(other->dev));
	ret = num_online_cpus() < THREADS ? -ENODEV : c_open(&other->dev, b->dev.ib);
	if (!ret)
		ret = measure(both, o, "threads.compute", compute, 0);
	if (!ret)
		ret = measure(both, o, "threads.D", c_dereg, 0);
	if (!ret)
		ret = measure(both, o, "threads.S", c_pooled, 0);
	if (!ret)
		ret = measure(both, o, "threads.kfabric", kfi_one, 180);
	c_close(&other->dev);
	kfree(other);
	return ret;
}
