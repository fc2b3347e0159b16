// SPDX-License-Identifier: GPL-2.0
/*
 * Addresses and lists: the pages that they mean, if any. Whether those may be registered is another
 * question, see page_check.h.
 */
#include <linux/bvec.h>
#include <linux/kmemleak.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/task_stack.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>

#include "kfabric_helpers.h"
#include "page_check.h"

/* The kernel image and, on x86, modules: mapped outside of the linear map. */
static bool in_kernel_image(const void *addr)
{
#ifdef CONFIG_X86_64
	return (unsigned long)addr >= __START_KERNEL_map;
#else
	return !is_vmalloc_addr(addr) && is_vmalloc_or_module_addr(addr);
#endif
}

/*
 * The page frame behind a kernel address of the linear map or of a vmalloc area; false for any
 * other address. Any context.
 */
bool kfi_helper_virt_pfn(const void *addr, u64 *pfn)
{
	if (is_vmalloc_addr(addr)) {
		struct page *page = vmalloc_to_page(addr);

		if (page)
			*pfn = page_to_pfn(page);
		return page;
	}
	if (in_kernel_image(addr) || !virt_addr_valid(addr))
		return false;
	*pfn = PHYS_PFN((u64)__pa(addr));
	return true;
}

/* Does [addr, addr + len) touch the stack of the calling task? The range must not wrap. */
bool kfi_helper_on_stack(const void *addr, size_t len)
{
	unsigned long start = (unsigned long)addr;
	unsigned long stack = (unsigned long)task_stack_page(current);

	return start < stack + THREAD_SIZE && start + len > stack;
}

/*
 * The page frame where the data of a bio_vec starts; false if bv_page is no page of this machine. A
 * bogus bv_page is not read. Any context.
 */
bool kfi_helper_bvec_pfn(const struct bio_vec *bv, u64 *pfn)
{
	u64 first = page_frame(bv->bv_page);

	if (first >= NO_FRAME || !pfn_valid(first))
		return false;
	/* Later pages follow the first one physically. */
	*pfn = first + (bv->bv_offset >> PAGE_SHIFT);
	return true;
}

/* Where in memory bio_vecs start; KFI_NO_START for one that has no page of this machine. Any context. */
void kfi_helper_bvec_starts(const struct bio_vec *bvecs, u32 count, u64 *starts)
{
	u64 pfn;
	u32 i;

	for (i = 0; i < count; i++)
		starts[i] = kfi_helper_bvec_pfn(&bvecs[i], &pfn) ?
			PFN_PHYS(pfn) + offset_in_page(bvecs[i].bv_offset) : KFI_NO_START;
}

/* The kernel address where the data of a bio_vec starts; NULL if it has none of its own. Any context. */
void *kfi_helper_bvec_address(const struct bio_vec *bv)
{
	const struct page *page = bv->bv_page + (bv->bv_offset >> PAGE_SHIFT);

	return PageHighMem(page) ? NULL : page_address(page) + offset_in_page(bv->bv_offset);
}

/*
 * Where the device finds the data of up to @max entries from *@next on, which goes on; @left entries
 * count. Returns how many there are: fewer if the list ends, and then *@next is NULL.
 */
u32 kfi_helper_sg_spans(struct scatterlist **next, u64 left, struct kfi_helper_sg_span *spans,
			u32 max)
{
	struct scatterlist *sg = *next;
	u32 i;

	for (i = 0; sg && left && i < max; i++) {
		spans[i].addr = sg_dma_address(sg);
		spans[i].len = sg_dma_len(sg);
		/* Not beyond the last that counts, which may be where the caller's memory ends. */
		if (--left)
			sg = sg_next(sg);
	}
	*next = sg;
	return i;
}

/* The same of one entry. */
struct kfi_helper_sg_span kfi_helper_sg_first(struct scatterlist *sg)
{
	return (struct kfi_helper_sg_span){ .addr = sg_dma_address(sg), .len = sg_dma_len(sg) };
}

/* Does an entry start and end where pages do? */
static bool is_whole(struct scatterlist *sg)
{
	u64 addr = sg_dma_address(sg), len = sg_dma_len(sg);

	return len && !offset_in_page(addr | len) && addr + len > addr;
}

/*
 * Finds out how many of the next entries, from *@next on, start and end where pages do; @left entries
 * count. *@next goes on behind them; it is NULL if the list ends there, but not @left.
 */
void kfi_helper_sg_whole(struct scatterlist **next, u64 left, struct kfi_helper_sg_whole *whole)
{
	struct scatterlist *sg = *next, *last = NULL;
	u32 most = min(left, U32_MAX), count = 0;
	u64 bytes = 0;

	while (sg && most && is_whole(sg)) {
		bytes += sg_dma_len(sg);
		last = sg;
		/* Not beyond the last that counts, which may be where the caller's memory ends. */
		if (++count == most && most == left)
			break;
		sg = sg_is_last(sg) ? NULL : sg + 1;
		if (sg && unlikely(sg_is_chain(sg)))
			sg = sg_chain_ptr(sg);
		if (count == most)
			break;
	}
	if (count) {
		whole->first = kfi_helper_sg_first(*next);
		whole->last = kfi_helper_sg_first(last);
	}
	whole->count = count;
	whole->bytes = bytes;
	*next = sg;
}

/* For an allocation that safe code may forget. */
void kfi_helper_not_leak(const void *object)
{
	kmemleak_not_leak(object);
}
