// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for what there is of each region, from caches of its own. It isn't cleared when it is
 * allocated, as kernels clear all other memory that are told to (init_on_alloc): whoever has it
 * writes all that is read of it.
 */
#include <linux/slab.h>

#include "kfabric_helpers.h"

static struct cache {
	const char *name;
	u32 size;
	struct kmem_cache *cache;
} caches[KFI_CACHES] = {
	[KFI_CACHE_OBJECT] = { .name = "kfabric_mr" },
	[KFI_CACHE_PART] = { .name = "kfabric_mr_part", .size = KFI_CACHE_PART_SIZE },
};

/* Memory of a cache that has a constructor is left as that has left it. */
static void leave(void *object)
{
}

void kfi_helper_caches_exit(void)
{
	u32 i;

	for (i = 0; i < KFI_CACHES; i++) {
		kmem_cache_destroy(caches[i].cache);
		caches[i].cache = NULL;
	}
}

/* Returns 0 or -ENOMEM. May sleep. */
int kfi_helper_caches_init(u32 object_size)
{
	struct kmem_cache_args args = {
		.ctor = leave,
		/* What is left of memory that is free is nobody's: the allocator may write there. */
		.use_freeptr_offset = true,
		.freeptr_offset = 0,
	};
	u32 i;

	caches[KFI_CACHE_OBJECT].size = object_size;
	for (i = 0; i < KFI_CACHES; i++) {
		struct cache *c = &caches[i];

		c->cache = kmem_cache_create(c->name, c->size, &args, 0);
		if (!c->cache) {
			kfi_helper_caches_exit();
			return -ENOMEM;
		}
	}
	return 0;
}

/* Aligned to 8 bytes. What is larger than the cache's is allocated elsewhere. */
void *kfi_helper_cache_alloc(enum kfi_helper_cache which, size_t size, bool wait)
{
	gfp_t gfp = wait ? GFP_KERNEL : GFP_NOWAIT;

	if (size > caches[which].size)
		return kmalloc(size, gfp);
	return kmem_cache_alloc(caches[which].cache, gfp);
}

/* @size is what it was allocated with. */
void kfi_helper_cache_free(enum kfi_helper_cache which, void *memory, size_t size)
{
	if (size > caches[which].size)
		kfree(memory);
	else
		kmem_cache_free(caches[which].cache, memory);
}
