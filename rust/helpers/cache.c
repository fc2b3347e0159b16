// SPDX-License-Identifier: GPL-2.0
/* Memory for what there is of each region, and for lists of some. */
#include <linux/mm.h>
#include <linux/slab.h>

#include "kfabric_helpers.h"
#include "stash.h"

static struct cache {
	const char *name;
	u32 size;
	/* How many of them a CPU keeps. */
	u32 most;
	struct stash stash;
} caches[KFI_CACHES] = {
	[KFI_CACHE_OBJECT] = { .name = "kfabric_mr", .most = STASH_BATCH },
	[KFI_CACHE_RARE] = {
		.name = "kfabric_mr_rare", .size = KFI_CACHE_RARE_SIZE, .most = STASH_BATCH,
	},
	/* As many as are there at a time. */
	[KFI_CACHE_LIST] = {
		.name = "kfabric_mr_list", .size = KFI_CACHE_LIST_SIZE, .most = 4,
	},
};

void kfi_helper_caches_exit(void)
{
	u32 i;

	for (i = 0; i < KFI_CACHES; i++)
		stash_exit(&caches[i].stash);
}

/* Returns 0 or -ENOMEM. May sleep. */
int kfi_helper_caches_init(u32 object_size)
{
	u32 i;

	caches[KFI_CACHE_OBJECT].size = object_size;
	for (i = 0; i < KFI_CACHES; i++) {
		struct cache *c = &caches[i];

		if (stash_init(&c->stash, c->name, c->size, c->most)) {
			kfi_helper_caches_exit();
			return -ENOMEM;
		}
	}
	return 0;
}

/* Aligned to 8 bytes. Sizes above that of the cache are allocated elsewhere. */
void *kfi_helper_cache_alloc(enum kfi_helper_cache which, size_t size, bool wait)
{
	gfp_t gfp = wait ? GFP_KERNEL : GFP_NOWAIT;
	struct cache *c = &caches[which];

	if (size > c->size)
		return wait ? kvmalloc(size, gfp) : kmalloc(size, gfp);
	return stash_alloc(&c->stash, gfp);
}

/* @size is what it was allocated with. */
void kfi_helper_cache_free(enum kfi_helper_cache which, void *memory, size_t size)
{
	struct cache *c = &caches[which];

	if (size > c->size)
		kvfree(memory);
	else
		stash_free(&c->stash, memory);
}
