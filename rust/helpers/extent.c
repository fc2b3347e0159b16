// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that a provider in software reaches by the processor: copies in and out, and the DMA
 * addresses of a device that isn't there.
 */
#include <linux/bvec.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>

#include "kfabric_helpers.h"

/*
 * Copy @len bytes between @buf and the physical addresses from @phys on, which are those of pages
 * of this machine. The two may overlap as little or as much as they like. Any context.
 */
void kfi_helper_copy(u64 phys, void *buf, size_t len, bool to_phys)
{
	while (len) {
		struct page *page = pfn_to_page(PHYS_PFN(phys));
		size_t offset = offset_in_page(phys);
		size_t n = min_t(size_t, len, PAGE_SIZE - offset);
		void *addr = kmap_local_page(page);

		if (to_phys) {
			memmove(addr + offset, buf, n);
			flush_dcache_page(page);
		} else {
			memmove(buf, addr + offset, n);
		}
		kunmap_local(addr);
		phys += n;
		buf += n;
		len -= n;
	}
}

/*
 * Copy @len bytes of the linear map, which others may be reading and changing at the same time, as a device
 * would. The two may overlap. Any context.
 */
void kfi_helper_move(void *to, const void *from, size_t len)
{
	memmove(to, from, len);
}

/* Eight bytes, aligned, that others may be changing; what they were before. */
u64 kfi_helper_atomic(u64 phys, enum kfi_helper_atomic_op op, u64 operand, u64 expected)
{
	struct page *page = pfn_to_page(PHYS_PFN(phys));
	void *addr = kmap_local_page(page);
	atomic64_t *word = addr + offset_in_page(phys);
	u64 before = 0;

	switch (op) {
	case KFI_HELPER_ATOMIC_WRITE:
		before = atomic64_xchg(word, operand);
		break;
	case KFI_HELPER_ATOMIC_ADD:
		before = atomic64_fetch_add(operand, word);
		break;
	case KFI_HELPER_ATOMIC_COMPARE_SWAP:
		before = atomic64_cmpxchg(word, expected, operand);
		break;
	}
	flush_dcache_page(page);
	kunmap_local(addr);
	return before;
}

/* Where memory of this machine is in the linear map, which on no machine with Rust is all there is. */
void *kfi_helper_linear_address(u64 phys)
{
	return phys_to_virt(phys);
}

/* Names memory of the linear map. */
void kfi_helper_bio_vec(struct bio_vec *to, void *start, u32 len)
{
	bvec_set_virt(to, start, len);
}

/* Maps a list for no device: the processor's addresses are good. False if an entry has no page. */
bool kfi_helper_sg_map_direct(struct scatterlist *sgl, int nents)
{
	struct scatterlist *sg = sgl;
	int i;

	for (i = 0; i < nents; i++) {
		/* Not beyond the last, which may be where the caller's memory ends. */
		if (i)
			sg = sg_next(sg);
		if (!sg || !sg_page(sg))
			return false;
		sg_dma_address(sg) = sg_phys(sg);
		sg_dma_len(sg) = sg->length;
	}
	return true;
}
