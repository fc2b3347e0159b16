/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of one size, from a cache of its own, of which each CPU keeps a piece that was freed for who
 * asks next. That takes some instructions where the allocator takes more than a hundred.
 *
 * It isn't cleared when it is allocated, as kernels clear all other memory that are told to
 * (init_on_alloc): whoever has it writes all that is read of it.
 */
#ifndef KFI_STASH_H
#define KFI_STASH_H

#include <linux/percpu.h>
#include <linux/slab.h>

struct stash {
	struct kmem_cache *cache;
	/* What a CPU keeps, or NULL. */
	void * __percpu *kept;
};

/* KASAN is to see what is used after it was freed. */
#define STASH_KEEPS	!IS_ENABLED(CONFIG_KASAN)

/* Memory of a cache that has a constructor is left as that has left it. */
static inline void stash_leave(void *object)
{
}

/* When nothing of it is in use; also if it could not be made. Sleeps. */
static inline void stash_exit(struct stash *stash)
{
	int cpu;

	if (stash->kept)
		for_each_possible_cpu(cpu)
			if (*per_cpu_ptr(stash->kept, cpu))
				kmem_cache_free(stash->cache, *per_cpu_ptr(stash->kept, cpu));
	free_percpu(stash->kept);
	kmem_cache_destroy(stash->cache);
	*stash = (struct stash){};
}

/* Returns 0 or -ENOMEM. May sleep. */
static inline int stash_init(struct stash *stash, const char *name, size_t size)
{
	struct kmem_cache_args args = {
		.ctor = stash_leave,
		/* What is left of memory that is free is nobody's: the allocator may write there. */
		.use_freeptr_offset = true,
		.freeptr_offset = 0,
	};

	stash->cache = kmem_cache_create(name, size, &args, 0);
	stash->kept = alloc_percpu(void *);
	if (stash->cache && stash->kept)
		return 0;
	stash_exit(stash);
	return -ENOMEM;
}

/* Aligned to 8 bytes; NULL without memory. */
static inline void *stash_alloc(struct stash *stash, gfp_t gfp)
{
	void *memory = STASH_KEEPS ? this_cpu_xchg(*stash->kept, NULL) : NULL;

	return memory ?: kmem_cache_alloc(stash->cache, gfp);
}

/* Any context that kmem_cache_free() is for. */
static inline void stash_free(struct stash *stash, void *memory)
{
	if (!STASH_KEEPS || this_cpu_cmpxchg(*stash->kept, NULL, memory))
		kmem_cache_free(stash->cache, memory);
}

#endif /* KFI_STASH_H */
