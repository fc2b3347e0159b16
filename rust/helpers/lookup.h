/* SPDX-License-Identifier: GPL-2.0 */
/* How the kernel has an address. */
#ifndef KFABRIC_LOOKUP_H
#define KFABRIC_LOOKUP_H

#ifdef CONFIG_X86_64

#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/sched.h>

/* Such an entry is a page, and not a table. */
#define KFI_PAGE	(_PAGE_PRESENT | _PAGE_PSE)

/*
 * As lookup_address(), of an address of the linear map or of a vmalloc area, and in fewer steps, as each process has
 * the kernel's part of the page tables from its own top level on. That may lack something: NULL then, and where there
 * is nothing. Interrupts are off.
 */
static __always_inline pte_t *kfi_quick_lookup(unsigned long addr, unsigned int *level)
{
	pgd_t *pgd = pgd_offset(current->active_mm, addr);
	pudval_t pud_has;
	pmdval_t pmd_has;
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;

	if (unlikely(pgd_none(*pgd)))
		return NULL;
	p4d = p4d_offset(pgd, addr);
	if (unlikely((p4d_flags(*p4d) & KFI_PAGE) != _PAGE_PRESENT))
		return NULL;
	pud = pud_offset(p4d, addr);
	pud_has = pud_flags(READ_ONCE(*pud)) & KFI_PAGE;
	*level = PG_LEVEL_1G;
	if (pud_has != _PAGE_PRESENT)
		return pud_has == KFI_PAGE ? (pte_t *)pud : NULL;
	pmd = pmd_offset(pud, addr);
	pmd_has = pmd_flags(READ_ONCE(*pmd)) & KFI_PAGE;
	*level = PG_LEVEL_2M;
	if (pmd_has != _PAGE_PRESENT)
		return pmd_has == KFI_PAGE ? (pte_t *)pmd : NULL;
	*level = PG_LEVEL_4K;
	return pte_offset_kernel(pmd, addr);
}

/* The same, and nothing is lacking. */
static __always_inline pte_t *kfi_lookup_address(unsigned long addr, unsigned int *level)
{
	return kfi_quick_lookup(addr, level) ?: lookup_address(addr, level);
}

/* Is it the entry of a page that is there, and may be written to? */
static __always_inline bool kfi_is_writable(const pte_t *pte)
{
	const pteval_t writable = _PAGE_PRESENT | _PAGE_RW;

	return (pte_flags(READ_ONCE(*pte)) & writable) == writable;
}

#endif

#endif /* KFABRIC_LOOKUP_H */
