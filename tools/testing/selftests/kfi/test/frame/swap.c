// SPDX-License-Identifier: GPL-2.0
/* An area of addresses whose pages are exchanged in place: see swap.h. */
#include <linux/kprobes.h>
#include <linux/pgtable.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "env.h"
#include "swap.h"

#define BYTES	(SWAP_PAGES * PAGE_SIZE)

static bool alloc_sets(struct swap_area *a)
{
	u8 *sets[] = { alloc_pages_exact(BYTES, GFP_KERNEL | __GFP_ZERO),
		       alloc_pages_exact(BYTES, GFP_KERNEL | __GFP_ZERO) };
	int i;

	for (i = 0; i < SWAP_PAGES; i++) {
		if (sets[0])
			a->pages[0][i] = virt_to_page(sets[0] + i * PAGE_SIZE);
		if (sets[1])
			a->pages[1][SWAP_PAGES - 1 - i] = virt_to_page(sets[1] + i * PAGE_SIZE);
	}
	return sets[0] && sets[1];
}

/* Set 0 is there. Returns NULL after a failure. */
struct swap_area *swap_open(struct kfi_test *t)
{
	struct swap_area *a = kzalloc_obj(*a);

	if (!EXPECT(t, a, "no memory"))
		return NULL;
	if (EXPECT(t, alloc_sets(a), "no memory")) {
		a->addr = vmap(a->pages[0], SWAP_PAGES, VM_MAP, PAGE_KERNEL);
		if (EXPECT(t, a->addr, "no mapping"))
			return a;
	}
	swap_close(a);
	return NULL;
}

void swap_close(struct swap_area *a)
{
	int i;

	vunmap(a->addr);
	for (i = 0; i < 2 * SWAP_PAGES; i++)
		if (a->pages[i / SWAP_PAGES][i % SWAP_PAGES])
			__free_page(a->pages[i / SWAP_PAGES][i % SWAP_PAGES]);
	kfree(a);
}

#ifdef CONFIG_X86_64
/* Returns the page table entry of an address of the area; NULL if there is none. */
static pte_t *find_entry(unsigned long addr)
{
	unsigned int level;
	pte_t *entry = lookup_address(addr, &level);

	return entry && level == PG_LEVEL_4K ? entry : NULL;
}
#else
static int take_entry(pte_t *pte, unsigned long addr, void *entry)
{
	*(pte_t **)entry = pte;
	return 0;
}

/* Finds init_mm by its name, since it is not exported. */
static struct mm_struct *kernel_space(void)
{
	static struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	unsigned long (*lookup)(const char *name);

	if (register_kprobe(&probe))
		return NULL;
	lookup = (void *)probe.addr;
	unregister_kprobe(&probe);
	return (struct mm_struct *)lookup("init_mm");
}

static pte_t *find_entry(unsigned long addr)
{
	static struct mm_struct *space;
	pte_t *entry = NULL;

	if (!space)
		space = kernel_space();
	return space && !apply_to_page_range(space, addr, PAGE_SIZE, take_entry, &entry) ? entry : NULL;
}
#endif

/* Puts these pages behind the addresses, or nothing. */
static bool put(struct kfi_test *t, struct swap_area *a, struct page **pages)
{
	pte_t *pte;
	int i;

	for (i = 0; i < SWAP_PAGES; i++) {
		pte = find_entry((unsigned long)a->addr + i * PAGE_SIZE);
		if (!EXPECT(t, pte, "no page table entry"))
			return false;
		set_pte(pte, pages ? mk_pte(pages[i], PAGE_KERNEL) : __pte(0));
		EXPECT(t, vmalloc_to_page(a->addr + i * PAGE_SIZE) == (pages ? pages[i] : NULL),
		       "another page is there");
	}
	return true;
}

bool swap_put(struct kfi_test *t, struct swap_area *a, int set)
{
	return put(t, a, a->pages[set]);
}

/* Nothing is behind the addresses, which stay the area's. */
bool swap_take_away(struct kfi_test *t, struct swap_area *a)
{
	return put(t, a, NULL);
}

void swap_fill(struct swap_area *a, int set, unsigned int shift)
{
	int i;

	for (i = 0; i < SWAP_PAGES; i++)
		pattern(page_address(a->pages[set][i]), PAGE_SIZE, shift + i * PAGE_SIZE);
}

/* Whether [@offset, @offset + @len) of a set holds the pattern that begins with @shift there. */
bool swap_is(struct swap_area *a, int set, size_t offset, size_t len, unsigned int shift)
{
	size_t n, done;
	u8 *at;

	for (done = 0; done < len; done += n, offset += n) {
		n = min_t(size_t, len - done, PAGE_SIZE - offset % PAGE_SIZE);
		at = page_address(a->pages[set][offset / PAGE_SIZE]);
		if (!pattern_is(at + offset % PAGE_SIZE, n, shift + done))
			return false;
	}
	return true;
}
