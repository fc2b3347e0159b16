// SPDX-License-Identifier: GPL-2.0
/* Helpers of the `rdma` crate: scatterlists. */
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include "rdma_helpers.h"

u64 rdma_helper_page_phys(struct page *page)
{
	return page_to_phys(page);
}

/* So many entries a chunk has, and one for the link, where it is a page long; and at least. */
#define MAX_CHUNK	((PAGE_SIZE - sizeof(struct rdma_helper_sg_chunk)) / \
			 sizeof(struct scatterlist) - 1)
#define MIN_CHUNK	3

/* Room for so many entries in one chunk, or NULL. */
struct rdma_helper_sg_chunk *rdma_helper_sg_alloc(u32 entries)
{
	struct rdma_helper_sg_chunk *chunk;

	chunk = kvmalloc(struct_size(chunk, entries, (size_t)entries + 1), GFP_KERNEL);
	if (chunk) {
		chunk->next = NULL;
		chunk->count = entries;
	}
	return chunk;
}

/* Room for a list that may become as long as it likes, but has about @expected entries. */
struct rdma_helper_sg_chunk *rdma_helper_sg_begin(u32 expected)
{
	return rdma_helper_sg_alloc(clamp_t(u32, expected, MIN_CHUNK, MAX_CHUNK));
}

/* Frees @chunk and those that follow it. */
void rdma_helper_sg_free(struct rdma_helper_sg_chunk *chunk)
{
	while (chunk) {
		struct rdma_helper_sg_chunk *next = chunk->next;

		kvfree(chunk);
		chunk = next;
	}
}

/* Does the memory at @phys start where the cursor's last entry ends? */
static bool follows(const struct rdma_helper_sg_cursor *cur, u64 phys)
{
	return cur->last && cur->end == phys &&
	       (offset_in_page(phys) ||
		zone_device_pages_have_same_pgmap(pfn_to_page(PHYS_PFN(phys - 1)),
						  pfn_to_page(PHYS_PFN(phys))));
}

/* Begins an entry, in another chunk if this one is full. Returns NULL without memory for that. */
static struct scatterlist *begin(struct rdma_helper_sg_cursor *cur)
{
	struct rdma_helper_sg_chunk *chunk = cur->chunk;

	if (cur->filled == chunk->count) {
		cond_resched();
		chunk->next = rdma_helper_sg_alloc(MAX_CHUNK);
		if (!chunk->next)
			return NULL;
		sg_chain(chunk->entries, chunk->count + 1, chunk->next->entries);
		chunk = chunk->next;
		cur->chunk = chunk;
		cur->filled = 0;
	}
	cur->last = &chunk->entries[cur->filled++];
	*cur->last = (struct scatterlist){};
	cur->count++;
	return cur->last;
}

/* Begins an entry for the memory at @phys. */
static bool begin_at(struct rdma_helper_sg_cursor *cur, u64 phys)
{
	if (!begin(cur))
		return false;
	sg_set_page(cur->last, pfn_to_page(PHYS_PFN(phys)), 0, offset_in_page(phys));
	cur->start = phys;
	return true;
}

/*
 * An entry that would get too long is cut at a page boundary: an IOMMU maps each entry to pages of
 * its own, so what is cut elsewhere has a gap for the device. That boundary is inside of the entry,
 * since an entry may be a page long.
 */
static bool append(struct rdma_helper_sg_cursor *cur, u64 phys, u64 len)
{
	u64 end = phys + len;

	if (!follows(cur, phys) && !begin_at(cur, phys))
		return false;
	while (end - cur->start > cur->max_seg) {
		u64 cut = ALIGN_DOWN(cur->start + cur->max_seg, PAGE_SIZE);

		cur->last->length = cut - cur->start;
		if (!begin_at(cur, cut))
			return false;
	}
	cur->last->length = end - cur->start;
	cur->end = end;
	return true;
}

/* Adds memory that has pages, and joins what follows. Returns 0 or -ENOMEM. May sleep. */
int rdma_helper_sg_append(struct rdma_helper_sg_cursor *cur, const struct rdma_helper_run *runs,
			  size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (!append(cur, runs[i].phys, runs[i].len))
			return -ENOMEM;
	}
	return 0;
}

/* Adds addresses of a device, without pages. Returns 0 or -ENOMEM. May sleep. */
int rdma_helper_sg_append_dma(struct rdma_helper_sg_cursor *cur, u64 address, u32 len)
{
	if (!begin(cur))
		return -ENOMEM;
	sg_dma_address(cur->last) = address;
	sg_dma_len(cur->last) = len;
	return 0;
}

/*
 * Adds the next @bytes bytes of a list that is mapped, which goes on there. May sleep.
 *
 * Returns 0, -ENOMEM, or -EINVAL if there are not so many, or an entry of no length is in the way.
 */
int rdma_helper_sg_copy(struct rdma_helper_sg_cursor *cur, struct rdma_helper_sg_source *from,
			u64 bytes)
{
	while (bytes) {
		u32 len, here;
		int ret;

		len = from->left ? sg_dma_len(from->next) - from->done : 0;
		if (!len)
			return -EINVAL;
		here = min_t(u64, len, bytes);
		ret = rdma_helper_sg_append_dma(cur, sg_dma_address(from->next) + from->done, here);
		if (ret)
			return ret;
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

/* Larger pages have not been tried with any driver. Smaller regions would win nothing. */
#define MAX_PAGE_SIZE	SZ_2M
#define MIN_PAGES	8

/*
 * The largest page size of @sizes, larger than @base, that a region made of a mapped list can have:
 * between entries both sides are at its boundaries. Of small pages it would have to have @base; what
 * the large ones have beyond that, at both ends, is no more than an eighth. Any context.
 *
 * Returns 0 if there is none; otherwise @pages is how many there are.
 */
u32 rdma_helper_page_size(struct scatterlist *sg, u32 count, u64 sizes, u32 base, u32 *pages)
{
	u64 start = sg_dma_address(sg);
	u64 inner = MAX_PAGE_SIZE;
	u64 bytes = 0, small, size;
	u32 i;

	for (i = 0; i < count; i++) {
		u64 addr = sg_dma_address(sg);

		if (i)
			inner |= addr;
		bytes += sg_dma_len(sg);
		if (i + 1 < count) {
			inner |= addr + sg_dma_len(sg);
			sg = sg_next(sg);
		}
		/* As it is nearly at once where memory isn't contiguous. */
		if (inner & (2 * (u64)base - 1))
			return 0;
	}
	small = ALIGN((start & (base - 1)) + bytes, base);
	if (small < MIN_PAGES * (u64)base)
		return 0;
	for (size = inner & -inner; size > base; size >>= 1) {
		u64 all = ALIGN((start & (size - 1)) + bytes, size);

		if (!(sizes & size) || all - small > small / 8)
			continue;
		*pages = all / size;
		return size;
	}
	return 0;
}
