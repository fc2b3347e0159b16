// SPDX-License-Identifier: GPL-2.0
/*
 * Which memory may be registered, and the pages behind it.
 *
 * Memory is resolved page by page. Refused is what a peer must never reach or what may vanish
 * under it: user and error pointers, the kernel image and modules, the caller's stack, and
 * vmalloc addresses with no page behind them.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/task_stack.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>

#include "kfabric_helpers.h"

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
 * May peers reach this page? The kernel image is reserved, however it was found: by an alias in the
 * linear map, or by a bio_vec. So is the zero page, which storage writes from and nobody writes to.
 */
static bool may_register(struct page *page, bool writes)
{
	if (page == ZERO_PAGE(0))
		return !writes;
	return !PageReserved(page) || is_zone_device_page(page);
}

/*
 * The page behind a kernel address of the linear map or of a vmalloc area, NULL if there is none
 * that may be registered. Any context.
 */
struct page *kfi_helper_kvec_page(const void *addr, bool writes)
{
	struct page *page = NULL;

	if (is_vmalloc_addr(addr))
		page = vmalloc_to_page(addr);
	else if (!in_kernel_image(addr) && virt_addr_valid(addr))
		page = virt_to_page(addr);
	if (!page || !pfn_valid(page_to_pfn(page)))
		return NULL;
	return may_register(page, writes) ? page : NULL;
}

/* Does [addr, addr + len) touch the stack of the calling task? The range must not wrap. */
bool kfi_helper_on_stack(const void *addr, size_t len)
{
	unsigned long start = (unsigned long)addr;
	unsigned long stack = (unsigned long)task_stack_page(current);

	return start < stack + THREAD_SIZE && start + len > stack;
}

static struct page *page_at(unsigned long pfn, bool writes)
{
	return pfn_valid(pfn) && may_register(pfn_to_page(pfn), writes) ? pfn_to_page(pfn) : NULL;
}

/*
 * The first page of a bio_vec and the physical address where its data starts; NULL if bv_page is
 * no page of this machine, or none that may be registered (@writes: for the device to write to). A
 * bogus bv_page is found out without being read.
 */
struct page *kfi_helper_bvec_page(const struct bio_vec *bv, u64 *phys, bool writes)
{
	struct page *page = bv->bv_page;
	unsigned long pfn;

	if (!page || IS_ERR(page))
		return NULL;
	pfn = page_to_pfn(page);
	if (!pfn_valid(pfn) || pfn_to_page(pfn) != page)
		return NULL;
	*phys = PFN_PHYS((u64)pfn) + bv->bv_offset;

	/* Later pages follow the first one physically. */
	pfn += bv->bv_offset >> PAGE_SHIFT;
	return page_at(pfn, writes);
}

/* The page physically after @page, NULL if there is none that may be registered. */
struct page *kfi_helper_bvec_next_page(struct page *page, bool writes)
{
	return page_at(page_to_pfn(page) + 1, writes);
}

/* Is all of [phys, phys + len) memory that may be registered? The range must not wrap. */
bool kfi_helper_phys_ok(u64 phys, u64 len, bool writes)
{
	u64 pfn, last = PHYS_PFN(phys + len - 1);

	for (pfn = PHYS_PFN(phys); pfn <= last; pfn++)
		if (!page_at(pfn, writes))
			return false;
	return true;
}

/* Where the device finds the data of @sg; returns the entry after it, NULL at the end. */
struct scatterlist *kfi_helper_sg_next(struct scatterlist *sg, u64 *addr, u32 *len)
{
	*addr = sg_dma_address(sg);
	*len = sg_dma_len(sg);
	return sg_next(sg);
}

/* Allocations between save and restore don't wait for I/O, whatever their flags say. */
unsigned int kfi_helper_noio_save(void)
{
	return memalloc_noio_save();
}

void kfi_helper_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}
