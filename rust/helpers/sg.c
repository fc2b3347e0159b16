// SPDX-License-Identifier: GPL-2.0
/* Helpers of the `rdma` crate: scatterlists. */
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include "rdma_helpers.h"
#include "stash.h"

u64 rdma_helper_page_phys(struct page *page)
{
	return page_to_phys(page);
}

/* Number of entries of a chunk that is a page long, besides the one for the link, and the minimum. */
#define MAX_CHUNK	((PAGE_SIZE - sizeof(struct rdma_helper_sg_chunk)) / \
			 sizeof(struct scatterlist) - 1)
#define MIN_CHUNK	3

/* Lists that are there for a moment only are made of chunks of either size. */
static struct stash min_chunks, max_chunks;

static size_t size_of(u32 entries)
{
	return struct_size_t(struct rdma_helper_sg_chunk, entries, (size_t)entries + 1);
}

/* Once, before any list is made. Returns 0 or -ENOMEM. May sleep. */
int rdma_helper_sg_init(void)
{
	if (!stash_init(&min_chunks, "kfi_verbs_sg_min", size_of(MIN_CHUNK), STASH_BATCH) &&
	    !stash_init(&max_chunks, "kfi_verbs_sg_max", size_of(MAX_CHUNK), 4))
		return 0;
	rdma_helper_sg_exit();
	return -ENOMEM;
}

/* Once, when there is no list any more. Sleeps. */
void rdma_helper_sg_exit(void)
{
	stash_exit(&min_chunks);
	stash_exit(&max_chunks);
}

static struct rdma_helper_sg_chunk *begin_chunk(void *memory, u32 entries, bool cached)
{
	struct rdma_helper_sg_chunk *chunk = memory;

	if (chunk) {
		chunk->next = NULL;
		chunk->room = entries;
		chunk->cached = cached;
		chunk->virt = false;
		chunk->used = 0;
		chunk->mapped = 0;
		chunk->dir = 0;
		chunk->lender = NULL;
		chunk->device = NULL;
	}
	return chunk;
}

static struct rdma_helper_sg_chunk *alloc_min(void)
{
	return begin_chunk(stash_alloc(&min_chunks, GFP_KERNEL), MIN_CHUNK, true);
}

static struct rdma_helper_sg_chunk *alloc_max(void)
{
	return begin_chunk(stash_alloc(&max_chunks, GFP_KERNEL), MAX_CHUNK, true);
}

/* Returns a chunk with space for @entries entries, or NULL. */
struct rdma_helper_sg_chunk *rdma_helper_sg_alloc(u32 entries)
{
	return begin_chunk(kvmalloc(size_of(entries), GFP_KERNEL), entries, false);
}

/*
 * Room for a list that may become as long as it likes, but has about @expected entries. One that is
 * there for a moment only may have more.
 */
struct rdma_helper_sg_chunk *rdma_helper_sg_begin(u32 expected, bool brief)
{
	if (brief)
		return expected > MIN_CHUNK ? alloc_max() : alloc_min();
	return rdma_helper_sg_alloc(clamp_t(u32, expected, MIN_CHUNK, MAX_CHUNK));
}

/* Frees @chunk and those that follow it. */
void rdma_helper_sg_free(struct rdma_helper_sg_chunk *chunk)
{
	while (chunk) {
		struct rdma_helper_sg_chunk *next = chunk->next;

		if (!chunk->cached)
			kvfree(chunk);
		else
			stash_free(chunk->room == MIN_CHUNK ? &min_chunks : &max_chunks, chunk);
		chunk = next;
	}
}

/* Goes on in another chunk. Returns false without memory for that. */
static noinline bool extend(struct rdma_helper_sg_cursor *cur)
{
	struct rdma_helper_sg_chunk *chunk = cur->chunk;

	cond_resched();
	chunk->next = cur->virt ? alloc_max() : rdma_helper_sg_alloc(MAX_CHUNK);
	if (!chunk->next)
		return false;
	sg_chain(chunk->entries, chunk->room + 1, chunk->next->entries);
	cur->chunk = chunk->next;
	cur->filled = 0;
	return true;
}

/* The next entry, in another chunk if this one is full; NULL without memory for that. */
static __always_inline struct scatterlist *next(struct rdma_helper_sg_cursor *cur)
{
	if (unlikely(cur->filled == cur->chunk->room) && !extend(cur))
		return NULL;
	cur->last = &cur->chunk->entries[cur->filled++];
	cur->count++;
	return cur->last;
}

static __always_inline void fill(struct scatterlist *sg, u64 phys, u32 len, bool virt)
{
	struct scatterlist entry = {};

	sg_set_page(&entry, pfn_to_page(PHYS_PFN(phys)), len, offset_in_page(phys));
	/* As ib_dma_map_sg() would. */
	if (virt) {
		sg_dma_address(&entry) = (uintptr_t)phys_to_virt(phys);
		sg_dma_len(&entry) = len;
	}
	*sg = entry;
}

/* Adds an entry for memory that has pages. Returns 0 or -ENOMEM. May sleep. */
int rdma_helper_sg_push(struct rdma_helper_sg_cursor *cur, u64 phys, u32 len)
{
	struct scatterlist *sg = next(cur);

	if (!sg)
		return -ENOMEM;
	fill(sg, phys, len, cur->virt);
	return 0;
}

/*
 * Room for entries that somebody else fills, as rdma_helper_sg_filled() is told then: how many that may be, or 0
 * without memory for any. May sleep.
 */
u32 rdma_helper_sg_room(struct rdma_helper_sg_cursor *cur, struct scatterlist **room)
{
	if (cur->filled == cur->chunk->room && !extend(cur))
		return 0;
	*room = &cur->chunk->entries[cur->filled];
	return cur->chunk->room - cur->filled;
}

/* Counts @count entries that the caller filled there. */
void rdma_helper_sg_filled(struct rdma_helper_sg_cursor *cur, u32 count)
{
	if (!count)
		return;
	cur->filled += count;
	cur->count += count;
	cur->last = &cur->chunk->entries[cur->filled - 1];
}

/* Adds an entry without a page. Returns false without memory for that. */
static __always_inline bool add_dma(struct rdma_helper_sg_cursor *cur, u64 address, u32 len)
{
	struct scatterlist *sg = next(cur);
	struct scatterlist entry = {};

	if (!sg)
		return false;
	sg_dma_address(&entry) = address;
	sg_dma_len(&entry) = len;
	*sg = entry;
	return true;
}

/* Adds addresses of a device, without pages. Returns 0 or -ENOMEM. May sleep. */
int rdma_helper_sg_append_dma(struct rdma_helper_sg_cursor *cur, u64 address, u32 len)
{
	return add_dma(cur, address, len) ? 0 : -ENOMEM;
}

/*
 * Adds the next @bytes bytes of a list that is mapped, which goes on there. May sleep.
 *
 * Returns 0, -ENOMEM, or -EINVAL if fewer bytes are left or an empty entry is among them.
 */
int rdma_helper_sg_copy(struct rdma_helper_sg_cursor *cur, struct rdma_helper_sg_source *from,
			u64 bytes)
{
	while (bytes) {
		u32 len, here;

		len = from->left ? sg_dma_len(from->next) - from->done : 0;
		if (!len)
			return -EINVAL;
		here = min_t(u64, len, bytes);
		if (!add_dma(cur, sg_dma_address(from->next) + from->done, here))
			return -ENOMEM;
		bytes -= here;
		from->done += here;
		if (here < len)
			continue;
		from->done = 0;
		from->left--;
		/* Not beyond the last that counts, which may be where the caller's memory ends. */
		if (from->left)
			from->next = sg_next(from->next);
		if (!from->next)
			from->left = 0;
	}
	return 0;
}

/* The list ends here, although there may be room for more entries. */
void rdma_helper_sg_end(struct scatterlist *last)
{
	sg_mark_end(last);
}
