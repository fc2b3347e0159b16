// SPDX-License-Identifier: GPL-2.0
/* kfi_noio.ko: see kfi_noio.h. */
#include <linux/debug_locks.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/tracepoint.h>
#include <trace/events/kmem.h>

#include "kfi_noio.h"

/* Enough to find the culprit by. */
#define MAX_NOTES	4

/* Taken on the way of freeing memory, as lockdep is told. */
static DEFINE_MUTEX(reclaim);

static struct task_struct *watched;
static unsigned int seen;
static bool locks_watched;

/*
 * The flags of allocations that debugging makes for an allocation, which is looked at itself: see
 * gfp_nested_mask().
 */
#define NESTED	(__GFP_NORETRY | __GFP_NOMEMALLOC | __GFP_NOWARN | __GFP_NOLOCKDEP)

static void look(unsigned long call_site, gfp_t gfp)
{
	if (READ_ONCE(watched) != current || !in_task() || (gfp & NESTED) == NESTED)
		return;
	if (!(gfp & __GFP_DIRECT_RECLAIM) || !(current_gfp_context(gfp) & (__GFP_IO | __GFP_FS)))
		return;
	if (seen++ < MAX_NOTES)
		pr_info("kfi_noio: an allocation may wait for I/O: %pS, %pGg\n",
			(void *)call_site, &gfp);
}

static void look_kmalloc(void *data, unsigned long call_site, const void *ptr, size_t asked,
			 size_t got, gfp_t gfp, int node)
{
	look(call_site, gfp);
}

static void look_cache(void *data, unsigned long call_site, const void *ptr,
		       struct kmem_cache *cache, gfp_t gfp, int node)
{
	look(call_site, gfp);
}

int kfi_noio_begin(void)
{
	int ret;

	ret = register_trace_kmalloc(look_kmalloc, NULL);
	if (ret)
		return ret;
	ret = register_trace_kmem_cache_alloc(look_cache, NULL);
	if (ret) {
		unregister_trace_kmalloc(look_kmalloc, NULL);
		return ret;
	}
	/* A file system that is asked for memory does this. */
	fs_reclaim_acquire(GFP_KERNEL);
	mutex_lock(&reclaim);
	mutex_unlock(&reclaim);
	fs_reclaim_release(GFP_KERNEL);

	locks_watched = debug_locks;
	mutex_lock(&reclaim);
	seen = 0;
	WRITE_ONCE(watched, current);
	return 0;
}
EXPORT_SYMBOL_GPL(kfi_noio_begin);

unsigned int kfi_noio_end(void)
{
	unsigned int found;

	WRITE_ONCE(watched, NULL);
	found = seen;
	/* Having found something, lockdep is off. */
	if (locks_watched && !debug_locks)
		found++;
	mutex_unlock(&reclaim);
	unregister_trace_kmem_cache_alloc(look_cache, NULL);
	unregister_trace_kmalloc(look_kmalloc, NULL);
	tracepoint_synchronize_unregister();
	return found;
}
EXPORT_SYMBOL_GPL(kfi_noio_end);

MODULE_DESCRIPTION("Watches the allocations of a task for the kfabric selftests");
MODULE_LICENSE("GPL");
