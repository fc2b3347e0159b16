// SPDX-License-Identifier: GPL-2.0
/*
 * The benchmark: it runs when the module is loaded, and prints a line for each figure.
 *
 * It judges nothing; loading fails only if a call does.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "bench.h"

static char *domain;
module_param(domain, charp, 0444);
MODULE_PARM_DESC(domain, "which domain of the provider verbs (default: the first)");

static char *only;
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "only works whose names begin so (default: all)");

static unsigned int rounds = 9;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "how many rounds; what counts is their median");

static bool threads;
module_param(threads, bool, 0444);
MODULE_PARM_DESC(threads, "two threads beside one, in wall time, instead of all else");

static bool weak;
module_param(weak, bool, 0444);
MODULE_PARM_DESC(weak, "kfi_verbs was loaded with weak_fence=1: compare with C that invalidates");

static int run(struct bench *b)
{
	struct bench_options o = {
		.rounds = clamp(rounds, 1, 1000),
		.only = only,
		.weak = weak,
	};
	int ret;

	b->mem = mem_alloc();
	if (!b->mem)
		return -ENOMEM;
	ret = kfi_open(b, domain);
	if (ret) {
		pr_err("bench: no domain to measure: errno %d\n", ret);
		return ret;
	}
	if (threads)
		return bench_threads(b, &o);
	ret = bench_measure(b, &o);
	return ret ?: bench_regions(b, &o);
}

static int __init bench_init(void)
{
	struct bench *b = kzalloc_obj(*b);
	int ret, shut;

	if (!b)
		return -ENOMEM;
	ret = run(b);
	shut = kfi_shut(b);
	mem_free(b->mem);
	kfree(b);
	return ret ?: shut;
}

static void __exit bench_exit(void)
{
}

module_init(bench_init);
module_exit(bench_exit);
MODULE_DESCRIPTION("What registering memory costs, by kfabric and by C on the RDMA core");
MODULE_LICENSE("GPL");
