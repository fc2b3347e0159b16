// SPDX-License-Identifier: GPL-2.0
/*
 * From a list of segments to runs of memory: as much as possible at once, without a look at a page
 * that is not one of a kind with its neighbours. What stops here is judged by the core (memory.rs).
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include "kfabric_helpers.h"
#include "pages.h"

/* Runs that are being put together: no two of them follow each other. */
struct out {
	struct kfi_helper_run *runs;
	u32 count;
	u32 max;
};

/* So many page frames of vmalloc areas are looked up at once: as few as the stack doesn't feel. */
#define FRAMES	16

/* How many pages are touched by @len bytes that start at @addr? */
static u64 pages_of(u64 addr, u64 len)
{
	return (offset_in_page(addr) + len + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

/* How many pages of @pages from @pfn on are in one part of the memory map? */
static u64 pages_here(u64 pfn, u64 pages)
{
	return min_t(u64, pages, KFI_MAP_PAGES - pfn % KFI_MAP_PAGES);
}

/* Does the memory at @phys follow the last run? */
static bool follows(const struct out *out, u64 phys)
{
	const struct kfi_helper_run *last;

	if (!out->count)
		return false;
	last = &out->runs[out->count - 1];
	return last->phys + last->len == phys &&
	       (phys % (KFI_MAP_PAGES << PAGE_SHIFT) ||
		zone_device_pages_have_same_pgmap(pfn_to_page(PHYS_PFN(phys - 1)),
						  pfn_to_page(PHYS_PFN(phys))));
}

/* As kfi_helper_plain_pages(), which most pages that have no neighbours don't need. */
static __always_inline u64 plain_pages(struct kfi_helper_walk *walk, u64 pfn, u64 pages)
{
	if (pages == 1 && kfi_is_seen(&walk->seen, pfn) && kfi_is_plain(pfn_to_page(pfn)))
		return 1;
	return kfi_helper_plain_pages(pfn, pages, walk->writes, &walk->seen, &walk->facts);
}

/*
 * Takes @pages page frames from @pfn on, which are in one part of the memory map; they are at
 * @value, and the next @left bytes of the segment begin there. Returns false to stop there.
 */
static __always_inline bool take(struct kfi_helper_walk *walk, struct out *out, u64 pfn, u64 pages,
				 u64 value, u64 left)
{
	u64 offset = offset_in_page(value);
	u64 phys = PFN_PHYS(pfn) + offset;
	bool joins = follows(out, phys);
	u64 plain, bytes;

	if (!joins && out->count == out->max)
		return false;
	plain = plain_pages(walk, pfn, pages);
	bytes = plain ? min((plain << PAGE_SHIFT) - offset, left) : 0;
	if (joins)
		out->runs[out->count - 1].len += bytes;
	else if (bytes)
		out->runs[out->count++] = (struct kfi_helper_run){ .phys = phys, .len = bytes };
	walk->done += bytes;
	walk->limit -= bytes;
	if (likely(plain == pages))
		return true;
	walk->stop = KFI_STOP_FACTS;
	walk->value = value + bytes;
	walk->page.phys = phys + bytes;
	walk->page.len = min(PAGE_SIZE - offset_in_page(walk->page.phys), left - bytes);
	return false;
}

/*
 * The page frames behind at most @pages pages from @addr on, which is in the range of vmalloc areas.
 * Returns how many there are; if they are in a @row, only the first one is told.
 */
#ifdef CONFIG_X86_64
static u64 vmalloc_frames(unsigned long addr, u64 pages, u64 *pfns, bool *row)
{
	unsigned long flags;
	unsigned int level;
	pte_t *pte, entry;
	u64 n = 0;

	/* Whoever frees page tables waits until each processor has let interrupts in. */
	local_irq_save(flags);
	pte = lookup_address(addr, &level);
	if (pte && level == PG_LEVEL_4K) {
		pages = min3(pages, (u64)FRAMES, (u64)(PTRS_PER_PTE - pte_index(addr)));
		for (; n < pages; n++) {
			entry = READ_ONCE(pte[n]);
			if (!pte_present(entry))
				break;
			pfns[n] = pte_pfn(entry);
		}
	} else if (pte) {
		entry = READ_ONCE(*pte);
		if (pte_flags(entry) & _PAGE_PRESENT) {
			unsigned long size = page_level_size(level);
			u64 start = pte_val(entry) & PTE_PFN_MASK & page_level_mask(level);

			*row = true;
			pfns[0] = PHYS_PFN(start + (addr & (size - 1)));
			n = min(pages, (u64)(size - (addr & (size - 1) & PAGE_MASK)) >> PAGE_SHIFT);
		}
	}
	local_irq_restore(flags);
	return n;
}
#else
static u64 vmalloc_frames(unsigned long addr, u64 pages, u64 *pfns, bool *row)
{
	struct page *page = vmalloc_to_page((void *)addr);

	if (!page)
		return 0;
	pfns[0] = page_to_pfn(page);
	return 1;
}
#endif

/* The page frames behind addresses, as above. The linear map has them in rows. */
static u64 frames_at(unsigned long addr, u64 pages, u64 *pfns, bool *row)
{
	u64 n;

	*row = false;
	if (is_vmalloc_addr((void *)addr)) {
		n = vmalloc_frames(addr, pages, pfns, row);
	} else {
		*row = true;
		/* Valid is what the memory map has, so all of the same part of it. */
		n = kfi_helper_virt_pfn((void *)addr, pfns) ? pages : 0;
	}
	return *row && n ? pages_here(pfns[0], n) : n;
}

/*
 * Whole pages are taken here, in few steps each, as long as what holds for the surroundings of a page
 * holds for the next one too, and nothing is to be said of it. All else goes the long way.
 */
struct quick {
	struct kfi_helper_seen seen;
	/* Where the next run goes, and where there is no room any more. */
	struct kfi_helper_run *run;
	struct kfi_helper_run *end;
	/* How many pages there may be. */
	u64 left;
	/* Where the last run ends. */
	u64 behind;
};

static __always_inline struct quick quick_begin(const struct kfi_helper_walk *walk,
						const struct out *out)
{
	const struct kfi_helper_run *last = &out->runs[out->count - 1];

	return (struct quick){
		.seen = walk->seen,
		.run = out->runs + out->count,
		.end = out->runs + out->max,
		.left = walk->limit >> PAGE_SHIFT,
		/* No page begins at an odd address. */
		.behind = out->count ? last->phys + last->len : 1,
	};
}

static __always_inline bool quick_page(struct quick *quick, u64 pfn)
{
	u64 phys = PFN_PHYS(pfn);

	if (!quick->left || !kfi_is_seen(&quick->seen, pfn) || !kfi_is_plain(pfn_to_page(pfn)))
		return false;
	/* Where a part of the memory map begins there is more to be asked. */
	if (phys == quick->behind && pfn % KFI_MAP_PAGES) {
		quick->run[-1].len += PAGE_SIZE;
	} else {
		if (phys == quick->behind || quick->run == quick->end)
			return false;
		*quick->run++ = (struct kfi_helper_run){ .phys = phys, .len = PAGE_SIZE };
	}
	quick->behind = phys + PAGE_SIZE;
	quick->left--;
	return true;
}

/* Returns how many pages were taken. */
static __always_inline u64 quick_end(struct kfi_helper_walk *walk, struct out *out,
				     const struct quick *quick)
{
	u64 pages = (walk->limit >> PAGE_SHIFT) - quick->left;

	out->count = quick->run - out->runs;
	walk->limit -= pages << PAGE_SHIFT;
	return pages;
}

/* Takes what can be taken so of @pages page frames. Returns how many that were. */
static u64 quick_frames(struct kfi_helper_walk *walk, struct out *out, const u64 *pfns, u64 pages)
{
	struct quick quick = quick_begin(walk, out);
	u64 i;

	for (i = 0; i < pages && quick_page(&quick, pfns[i]); i++)
		;
	return quick_end(walk, out, &quick);
}

/* Takes bio_vecs that can be taken so. */
static void quick_bvecs(struct kfi_helper_walk *walk, struct out *out)
{
	const struct bio_vec *end = walk->bvecs + walk->count;
	const struct bio_vec *bvec = walk->bvecs + walk->index;
	struct quick quick = quick_begin(walk, out);

	for (; bvec < end; bvec++) {
		u64 pfn = page_to_pfn(bvec->bv_page);

		if (bvec->bv_offset || bvec->bv_len != PAGE_SIZE ||
		    pfn_to_page(pfn) != bvec->bv_page || !quick_page(&quick, pfn))
			break;
	}
	walk->index += quick_end(walk, out, &quick);
}

/* Takes entries of a scatterlist that can be taken so. */
static void quick_entries(struct kfi_helper_walk *walk, struct out *out)
{
	struct quick quick = quick_begin(walk, out);
	struct scatterlist *sg = walk->sgl;
	u64 left = walk->count - walk->index;

	while (left) {
		u64 at = sg_dma_address(sg) - walk->linear;

		if (sg_dma_len(sg) != PAGE_SIZE || at >= walk->linear_len || offset_in_page(at) ||
		    !quick_page(&quick, walk->linear_pfn + (at >> PAGE_SHIFT)))
			break;
		if (--left)
			sg = sg_next(sg);
	}
	walk->sgl = sg;
	walk->index += quick_end(walk, out, &quick);
}

/* Walks through what is left of a kvec. Returns false to stop there. */
static bool walk_kvec(struct kfi_helper_walk *walk, struct out *out)
{
	const struct kvec *kvec = &walk->kvecs[walk->index];
	unsigned long base = (unsigned long)kvec->iov_base;
	u64 pfns[FRAMES];
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
		u64 n = frames_at(addr, pages_of(addr, left), pfns, &row);
		u64 i = 0, next, before;

		if (!n) {
			walk->stop = KFI_STOP_NO_MEMORY;
			walk->value = addr;
			return false;
		}
		if (!row && !offset_in_page(addr)) {
			i = quick_frames(walk, out, pfns, min(n, left >> PAGE_SHIFT));
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
	u64 first = page_to_pfn(bvec->bv_page);

	*pfn = first + (bvec->bv_offset >> PAGE_SHIFT);
	return kfi_is_seen(seen, first) && pfn_to_page(first) == bvec->bv_page;
}

/* Walks through what is left of a bio_vec. Returns false to stop there. */
static bool walk_bvec(struct kfi_helper_walk *walk, struct out *out)
{
	const struct bio_vec *bvec = &walk->bvecs[walk->index];
	u64 start, phys, left;

	if (!seen_pfn(&walk->seen, bvec, &start) && !kfi_helper_bvec_pfn(bvec, &start)) {
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

/* The page frame behind an address of the linear map; false for any other, as of the kernel image. */
static __always_inline bool linear_pfn(struct kfi_helper_walk *walk, u64 addr, u64 *pfn)
{
	void *page = (void *)(unsigned long)(addr & PAGE_MASK);
	u64 before;

	if (addr - walk->linear >= walk->linear_len) {
		/*
		 * The image has a mapping of its own that virt_addr_valid() accepts on some
		 * architectures; going through the physical address and back tells the two.
		 */
		if (addr > ULONG_MAX || !virt_addr_valid(page) || __va(__pa(page)) != page)
			return false;
		/* Valid is what the memory map has, so all of the same part of it. */
		walk->linear_pfn = ALIGN_DOWN(PHYS_PFN((u64)__pa(page)), KFI_MAP_PAGES);
		before = PHYS_PFN((u64)__pa(page)) - walk->linear_pfn;
		walk->linear = (addr & PAGE_MASK) - (before << PAGE_SHIFT);
		walk->linear_len = (u64)KFI_MAP_PAGES << PAGE_SHIFT;
	}
	*pfn = walk->linear_pfn + ((addr - walk->linear) >> PAGE_SHIFT);
	return true;
}

/* Are all of @len bytes from @addr on in the linear map? They are not none, and don't wrap. */
static bool is_linear(struct kfi_helper_walk *walk, u64 addr, u64 len)
{
	u64 last = addr + len - 1;
	u64 pfn;

	while (linear_pfn(walk, addr, &pfn)) {
		if (last - walk->linear < walk->linear_len)
			return true;
		addr = walk->linear + walk->linear_len;
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

		linear_pfn(walk, addr, &pfn);
		if (!take(walk, out, pfn, pages_here(pfn, pages_of(addr, left)), addr, left)) {
			/* As far into its page as the entry begins. */
			walk->value = start + (walk->value & PAGE_MASK) - (start & PAGE_MASK);
			return false;
		}
	}
	return walk->done == len;
}

/* Takes segments that are whole pages, as above. */
static void quick_segments(struct kfi_helper_walk *walk, struct out *out)
{
	if (walk->bvecs)
		quick_bvecs(walk, out);
	else if (walk->sgl)
		quick_entries(walk, out);
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
		if (!walk->done)
			quick_segments(walk, &out);
		if (out.count == max || walk->index == walk->count || !walk->limit)
			break;
		if (!walk_segment(walk, &out))
			break;
		walk->index++;
		walk->done = 0;
	}
	return out.count;
}
