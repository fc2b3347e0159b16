// SPDX-License-Identifier: GPL-2.0
/* From addresses to page frames. */
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "lookup.h"
#include "runs.h"

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
	pte = kfi_lookup_address(addr, &level);
	if (pte && level == PG_LEVEL_4K) {
		pages = min3(pages, (u64)FRAMES, (u64)(PTRS_PER_PTE - pte_index(addr)));
		for (; n < pages; n++) {
			u64 bits = pte_val(READ_ONCE(pte[n]));

			if (!(bits & _PAGE_PRESENT))
				break;
			pfns[n] = (bits & PTE_PFN_MASK) >> PAGE_SHIFT;
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

u64 kfi_frames_at(struct kfi_helper_walk *walk, unsigned long addr, u64 pages, u64 *pfns, bool *row)
{
	u64 n;

	*row = false;
	if (is_vmalloc_addr((void *)addr)) {
		n = vmalloc_frames(addr, pages, pfns, row);
	} else {
		*row = true;
		/* Valid is what the memory map has, so all of the same part of it. */
		n = kfi_linear_pfn(&walk->around, addr, pfns) ? pages : 0;
	}
	return *row && n ? pages_here(pfns[0], n) : n;
}
