/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A cache of objects of one size with a magazine of free objects for each CPU. Magazines of small objects suffice
 * for a batch of regions. An allocation from a magazine is much shorter than one from the slab allocator.
 *
 * It isn't cleared when it is allocated, as kernels clear all other memory that are told to
 * (init_on_alloc): whoever has it writes all that is read of it.
 */
#ifndef KFI_STASH_H
#define KFI_STASH_H

#include <linux/percpu.h>
#include <linux/slab.h>

/* The free objects of a CPU. Each begins with a pointer to the next one. */
struct stash_kept {
	void **first;
	u32 count;
};

struct stash {
	struct kmem_cache *cache;
	struct stash_kept __percpu *kept;
	/* How many a CPU keeps at most. */
	u32 most;
};

/* As many regions as a batch mostly has. */
#define STASH_BATCH	32

/* Memory of a cache that has a constructor is left as that has left it. */
static inline void stash_leave(void *object)
{
}

/* Takes what this CPU keeps, or returns NULL. Interrupts are off, or the CPU isn't used. */
static __always_inline void *stash_pop(struct stash_kept *kept)
{
	void **memory = kept->first;

	if (memory) {
		kept->first = *memory;
		kept->count--;
	}
	return memory;
}

/* When nothing of it is in use; also if it could not be made. Sleeps. */
static inline void stash_exit(struct stash *stash)
{
	void *memory;
	int cpu;

	if (stash->kept)
		for_each_possible_cpu(cpu)
			while ((memory = stash_pop(per_cpu_ptr(stash->kept, cpu))))
				kmem_cache_free(stash->cache, memory);
	free_percpu(stash->kept);
	kmem_cache_destroy(stash->cache);
	*stash = (struct stash){};
}

/* Of pieces of @size bytes a CPU keeps at most @most. Returns 0 or -ENOMEM. May sleep. */
static inline int stash_init(struct stash *stash, const char *name, size_t size, u32 most)
{
	struct kmem_cache_args args = {
		.ctor = stash_leave,
		/* Free objects have no content: the allocator may write there. */
		.use_freeptr_offset = true,
		.freeptr_offset = 0,
	};

	/* KASAN is to see what is used after it was freed. */
	stash->most = IS_ENABLED(CONFIG_KASAN) ? 0 : most;
	stash->cache = kmem_cache_create(name, size, &args, 0);
	stash->kept = alloc_percpu(struct stash_kept);
	if (stash->cache && stash->kept)
		return 0;
	stash_exit(stash);
	return -ENOMEM;
}

/* Aligned to 8 bytes; NULL without memory. */
static inline void *stash_alloc(struct stash *stash, gfp_t gfp)
{
	unsigned long flags;
	void *memory;

	local_irq_save(flags);
	memory = stash_pop(this_cpu_ptr(stash->kept));
	local_irq_restore(flags);
	return memory ?: kmem_cache_alloc(stash->cache, gfp);
}

/* Any context that kmem_cache_free() is for. */
static inline void stash_free(struct stash *stash, void *memory)
{
	struct stash_kept *kept;
	unsigned long flags;
	bool keep;

	local_irq_save(flags);
	kept = this_cpu_ptr(stash->kept);
	keep = kept->count < stash->most;
	if (keep) {
		*(void **)memory = kept->first;
		kept->first = memory;
		kept->count++;
	}
	local_irq_restore(flags);
	if (!keep)
		kmem_cache_free(stash->cache, memory);
}

#endif /* KFI_STASH_H */
