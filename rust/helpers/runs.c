// SPDX-License-Identifier: GPL-2.0
/*
 * From a list of segments to runs of memory: as much as possible at once, without a look at a page
 * that is not one of a kind with its neighbours. What stops here is judged by the core (memory.rs).
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/uio.h>

#include "quick.h"

static __always_inline struct quick quick_begin(const struct kfi_helper_walk *walk,
						const struct out *out)
{
	const struct kfi_helper_run *last = &out->runs[out->count - 1];
	struct quick quick = {
		.run = out->runs + out->count,
		.run_end = out->runs + out->max,
		.behind = out->count ? last->phys + last->len : NOWHERE,
	};

	quick_see(&quick, &walk->around.seen, false);
	return quick;
}

/* Takes what can be taken in few steps of @pages page frames. Returns how many that were. */
static u64 take_frames(struct kfi_helper_walk *walk, struct out *out, const u64 *pfns, u64 pages)
{
	struct quick quick = quick_begin(walk, out);
	u64 taken = quick_frames(&quick, pfns, min(pages, walk->limit >> PAGE_SHIFT), false);

	out->count = quick.run - out->runs;
	walk->limit -= taken << PAGE_SHIFT;
	return taken;
}

/* Walks through what is left of a kvec. Returns false to stop there. */
static bool walk_kvec(struct kfi_helper_walk *walk, struct out *out)
{
	const struct kvec *kvec = &walk->kvecs[walk->index];
	unsigned long base = (unsigned long)kvec->iov_base;
	u64 pfns[FRAMES] UNFILLED;
	bool row;

	if (!walk->done) {
		walk->value = base;
		if (!base)
			walk->stop = KFI_STOP_NULL;
		else if (kfi_helper_on_stack(kvec->iov_base, kvec->iov_len))
			walk->stop = KFI_STOP_STACK;
		if (walk->stop)
			return false;
	}
	while (walk->done < kvec->iov_len && walk->limit) {
		unsigned long addr = base + walk->done;
		u64 left = min(kvec->iov_len - walk->done, walk->limit);
		u64 n = kfi_frames_at(walk, addr, pages_of(addr, left), pfns, &row);
		u64 i = 0, next, before;

		if (!n) {
			walk->stop = KFI_STOP_NO_MEMORY;
			walk->value = addr;
			return false;
		}
		if (!row && !offset_in_page(addr)) {
			i = take_frames(walk, out, pfns, min(n, left >> PAGE_SHIFT));
			walk->done += i << PAGE_SHIFT;
			left -= i << PAGE_SHIFT;
		}
		for (; i < n && left; i = next) {
			next = row ? n : i + 1;
			while (next < n && pfns[next] == pfns[next - 1] + 1 &&
			       pfns[next] % KFI_MAP_PAGES)
				next++;
			before = walk->done;
			if (!take(walk, out, pfns[i], next - i, base + before, left))
				return false;
			left -= walk->done - before;
		}
	}
	return walk->done == kvec->iov_len;
}

/* The page frame where a bio_vec starts, as kfi_helper_bvec_pfn(), if it is one of @seen. */
static __always_inline bool seen_pfn(const struct kfi_helper_seen *seen, const struct bio_vec *bvec,
				     u64 *pfn)
{
	u64 first;

	if (!kfi_page_pfn(bvec->bv_page, &first) || !kfi_is_seen(seen, first))
		return false;
	*pfn = first + (bvec->bv_offset >> PAGE_SHIFT);
	return true;
}

/* Walks through what is left of a bio_vec. Returns false to stop there. */
static bool walk_bvec(struct kfi_helper_walk *walk, struct out *out)
{
	const struct bio_vec *bvec = &walk->bvecs[walk->index];
	u64 start, phys, left;

	if (!seen_pfn(&walk->around.seen, bvec, &start) && !kfi_helper_bvec_pfn(bvec, &start)) {
		walk->stop = KFI_STOP_NO_PAGE;
		walk->value = (unsigned long)bvec->bv_page;
		return false;
	}
	start = PFN_PHYS(start) + offset_in_page(bvec->bv_offset);
	while (walk->done < bvec->bv_len && walk->limit) {
		phys = start + walk->done;
		left = min(bvec->bv_len - walk->done, walk->limit);
		if (!take(walk, out, PHYS_PFN(phys),
			  pages_here(PHYS_PFN(phys), pages_of(phys, left)), phys, left))
			return false;
	}
	return walk->done == bvec->bv_len;
}

bool kfi_linear_pfn(struct kfi_helper_around *around, u64 addr, u64 *pfn)
{
	void *page = (void *)(unsigned long)(addr & PAGE_MASK);
	u64 before;

	if (addr - around->linear >= around->linear_len) {
		/*
		 * The image has a mapping of its own that virt_addr_valid() accepts on some
		 * architectures; going through the physical address and back tells the two.
		 */
		if (addr > ULONG_MAX || !virt_addr_valid(page) || __va(__pa(page)) != page)
			return false;
		/* Valid is what the memory map has, so all of the same part of it. */
		around->linear_pfn = ALIGN_DOWN(PHYS_PFN((u64)__pa(page)), KFI_MAP_PAGES);
		before = PHYS_PFN((u64)__pa(page)) - around->linear_pfn;
		around->linear = (addr & PAGE_MASK) - (before << PAGE_SHIFT);
		around->linear_len = (u64)KFI_MAP_PAGES << PAGE_SHIFT;
	}
	*pfn = around->linear_pfn + ((addr - around->linear) >> PAGE_SHIFT);
	return true;
}

/* Are all of @len bytes from @addr on in the linear map? They are not none, and don't wrap. */
static bool is_linear(struct kfi_helper_walk *walk, u64 addr, u64 len)
{
	u64 last = addr + len - 1;
	u64 pfn;

	while (kfi_linear_pfn(&walk->around, addr, &pfn)) {
		if (last - walk->around.linear < walk->around.linear_len)
			return true;
		addr = walk->around.linear + walk->around.linear_len;
	}
	return false;
}

/* Walks through what is left of a scatterlist's entry. Returns false to stop there. */
static bool walk_sg(struct kfi_helper_walk *walk, struct out *out)
{
	u64 start = sg_dma_address(walk->sgl);
	u64 len = sg_dma_len(walk->sgl);
	u64 pfn;

	if (!walk->done && !is_linear(walk, start, len)) {
		walk->stop = KFI_STOP_NOT_LINEAR;
		walk->value = start;
		return false;
	}
	while (walk->done < len && walk->limit) {
		u64 addr = start + walk->done;
		u64 left = min(len - walk->done, walk->limit);

		kfi_linear_pfn(&walk->around, addr, &pfn);
		if (!take(walk, out, pfn, pages_here(pfn, pages_of(addr, left)), addr, left)) {
			/* As far into its page as the entry begins. */
			walk->value = start + (walk->value & PAGE_MASK) - (start & PAGE_MASK);
			return false;
		}
	}
	return walk->done == len;
}

/* Takes segments that are whole pages, in few steps each. */
static void take_segments(struct kfi_helper_walk *walk, struct out *out)
{
	struct quick quick = quick_begin(walk, out);

	if (walk->bvecs)
		quick_bvecs(walk, &quick, false);
	else if (walk->sgl)
		quick_entries(walk, &quick, false);
	out->count = quick.run - out->runs;
}

/* Walks through what is left of a segment. Returns false to stop there. */
static bool walk_segment(struct kfi_helper_walk *walk, struct out *out)
{
	if (walk->kvecs)
		return walk_kvec(walk, out);
	if (walk->bvecs)
		return walk_bvec(walk, out);
	if (!walk_sg(walk, out))
		return false;
	if (walk->index + 1 < walk->count)
		walk->sgl = sg_next(walk->sgl);
	return true;
}

/*
 * Where in memory bio_vecs start; KFI_NO_START for one that has no page of this machine. Any
 * context.
 */
void kfi_helper_bvec_starts(const struct bio_vec *bvecs, u32 count, u64 *starts)
{
	/* Page frames that there are: the last one found, and those that come and go with it. */
	struct kfi_helper_seen valid = {};
	u64 pfn;
	u32 i;

	for (i = 0; i < count; i++) {
		if (!seen_pfn(&valid, &bvecs[i], &pfn)) {
			if (!kfi_helper_bvec_pfn(&bvecs[i], &pfn)) {
				starts[i] = KFI_NO_START;
				continue;
			}
			valid.first = ALIGN_DOWN(page_to_pfn(bvecs[i].bv_page), KFI_MAP_PAGES);
			valid.end = valid.first + KFI_MAP_PAGES;
		}
		starts[i] = PFN_PHYS(pfn) + offset_in_page(bvecs[i].bv_offset);
	}
}

/**
 * kfi_helper_walk() - Go on through a list of segments, and find the next runs of memory.
 * @walk: The list, and how far it was walked through; goes on.
 * @runs: Where the runs go, which follow each other in the region.
 * @max: How many there may be, at least 1.
 *
 * There are no more bytes than @walk->limit, which goes down.
 *
 * It stops at the first thing that is remarkable, which is then in @walk: if it is a page about
 * which there are facts, it may be taken after all by adding the length of @walk->page to
 * @walk->done. Otherwise the walk is over. May sleep.
 *
 * Returns how many runs there are before that; fewer than @max only there, at the limit or at the end.
 * The first of those that are found next may follow the last.
 */
u32 kfi_helper_walk(struct kfi_helper_walk *walk, struct kfi_helper_run *runs, u32 max)
{
	struct out out = { .runs = runs, .max = max };

	walk->stop = KFI_STOP_NONE;
	while (out.count < max && walk->index < walk->count && walk->limit) {
		if (!walk->done && !walk->kvecs)
			take_segments(walk, &out);
		if (out.count == max || walk->index == walk->count || !walk->limit)
			break;
		if (!walk_segment(walk, &out))
			break;
		walk->index++;
		walk->done = 0;
	}
	return out.count;
}
