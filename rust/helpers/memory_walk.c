// SPDX-License-Identifier: GPL-2.0
/*
 * The memory walk. It goes through a list of segments once, checks the struct page of each page, and joins
 * physically contiguous pages. It reports extents or fills entries of a scatterlist.
 */
#include <linux/bvec.h>
#include <linux/kasan.h>
#include <linux/scatterlist.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include "kfabric_helpers.h"
#include "page_check.h"

/* No extent ends here: page frame 0 is reserved. */
#define NOWHERE	1

/*
 * Returns the number of pages from @page on, 1 to @pages, that are in one folio and have none of FLAGS. The
 * caller has checked @page. The function stops at the end of the pageblock: if the folio is freed meanwhile,
 * the memory map may end there.
 */
static u64 plain_pages_of_folio(const struct page *page, u64 pages)
{
	struct page *head = compound_head((struct page *)page);
	u64 before = page - head, all = BIT_ULL(min_t(unsigned int, compound_order(head), MAX_FOLIO_ORDER)), i;

	if (before >= all)
		return 1;
	pages = min3(pages, all - before, pageblock_nr_pages - page_to_pfn(page) % pageblock_nr_pages);
	for (i = 1; i < pages && !(READ_ONCE(page[i].flags.f) & FLAGS); i++)
		;
	return i;
}

/*
 * Checks @pages pages from @pfn on. Returns the number of good pages before the first bad one. If there
 * is a bad page, sets *@refused to the reason.
 */
static noinline u64 check_pages(struct use use, u64 pfn, u64 pages, u32 *refused)
{
	u64 frames = linear_frames(), i = 0;

	while (i < pages) {
		const struct page *page = pfn_to_page(pfn + i);
		/* Memory comes online and goes by whole blocks. */
		bool follows = i && (pfn + i) % pageblock_nr_pages;

		if (i && !(i % SZ_4K) && preemptible() && !rcu_preempt_depth())
			cond_resched();
		if (likely(is_plain(page, pfn + i, frames, follows))) {
			i += PageCompound(page) ? plain_pages_of_folio(page, pages - i) : 1;
			continue;
		}
		*refused = check_page(use, pfn + i, follows);
		if (*refused)
			break;
		i++;
	}
	return i;
}

/* The output format of the walk. */
enum form {
	/* struct kfi_helper_run */
	RUNS,
	/* Scatterlist entries with pages. */
	PAGES,
	/* Scatterlist entries with linear-map addresses in the DMA fields. */
	MAPPED,
};

/* Where extents go. There are @count of them, and room for @max. */
struct sink {
	struct kfi_helper_run *runs;
	struct scatterlist *sgl;
	enum form form;
	u32 count;
	u32 max;
	/* How long an entry may be. */
	u32 max_len;
	/* The address behind the last extent; NOWHERE if its last page is one of a device, and then device_end. */
	u64 end;
	u64 device_end;
	/* See linear_frames(). */
	u64 frames;
};

/* Writes the extent @i. @page is that of @phys. */
static __always_inline void put(const struct sink *sink, enum form form, u64 i, const struct page *page,
				u64 phys, u64 len)
{
	struct scatterlist entry = {};

	if (form == RUNS) {
		sink->runs[i] = (struct kfi_helper_run){ .phys = phys, .len = len };
		return;
	}
	if (form == MAPPED) {
		sg_dma_address(&entry) = (uintptr_t)phys_to_virt(phys);
		sg_dma_len(&entry) = len;
	} else {
		sg_set_page(&entry, (struct page *)page, len, offset_in_page(phys));
	}
	sink->sgl[i] = entry;
}

/* Returns the number of bytes, 0 to @len, by which the last extent may grow. The last extent ends at @end. */
static u64 room_of_last(const struct sink *sink, u64 end, u64 len)
{
	const struct scatterlist *last = sink->sgl + sink->count - 1;
	u64 begin = end;

	if (sink->form == RUNS)
		return len;
	begin -= sink->form == MAPPED ? sg_dma_len(last) : last->length;
	return min(len, ALIGN_DOWN(begin + sink->max_len, PAGE_SIZE) - end);
}

static void extend_last(struct sink *sink, u64 len)
{
	if (sink->form == RUNS)
		sink->runs[sink->count - 1].len += len;
	else if (sink->form == MAPPED)
		sg_dma_len(sink->sgl + sink->count - 1) += len;
	else
		sink->sgl[sink->count - 1].length += len;
}

/* Checks whether memory may join the last extent. The memory of a device joins only that of the same mapping. */
static bool joins(const struct sink *sink, u64 phys)
{
	if (!is_zone_device_page(phys_page(phys)))
		return phys == sink->end;
	return phys == sink->device_end && zone_device_pages_have_same_pgmap(phys_page(phys - 1), phys_page(phys));
}

/*
 * Adds memory, and joins it to what it follows. An entry that would get too long ends at a page boundary: an
 * IOMMU maps each entry to pages of its own, so elsewhere the device would see a gap. Returns how many bytes
 * there was room for.
 */
static u64 add(struct sink *sink, u64 phys, u64 len)
{
	u64 at = phys, end = phys + len, here;
	bool of_device;

	if (joins(sink, phys)) {
		here = room_of_last(sink, phys, len);
		extend_last(sink, here);
		at += here;
	}
	while (at < end && sink->count < sink->max) {
		here = end - at;
		if (sink->form != RUNS)
			here = min(here, ALIGN_DOWN(at + sink->max_len, PAGE_SIZE) - at);
		put(sink, sink->form, sink->count++, phys_page(at), at, here);
		at += here;
	}
	if (at == phys)
		return 0;
	of_device = is_zone_device_page(phys_page(at - 1));
	sink->end = of_device ? NOWHERE : at;
	sink->device_end = of_device ? at : NOWHERE;
	return at - phys;
}

/* Does the work of take() for any length and page. */
static noinline bool take_slowly(struct kfi_helper_walk *walk, struct sink *sink, u64 phys, u64 len, u64 value)
{
	struct use use = { walk->writes, walk->peer_to_peer };
	u64 offset = offset_in_page(phys), most = len, pages, good, taken;
	u32 refused = KFI_REFUSED_NONE;

	/* Check no more than the sink can hold. */
	if (sink->form != RUNS)
		most = min(len, (sink->max - sink->count + 1ULL) * sink->max_len);
	pages = check_pages(use, PHYS_PFN(phys), PHYS_PFN(offset + most + PAGE_SIZE - 1), &refused);
	good = pages ? min(most, PFN_PHYS(pages) - offset) : 0;
	taken = good ? add(sink, phys, good) : 0;
	walk->done += taken;
	walk->limit -= taken;
	/* If the sink is full, the next call finds the bad page again. */
	if (refused && taken == good) {
		walk->refused = refused;
		walk->value = value + good;
	}
	return taken == len;
}

/*
 * Checks and adds the next @len bytes of the current segment, which are at @phys and contiguous; @value
 * is what to report if they must not be registered. Returns false to stop the walk: there is no more
 * room, or @walk->refused says why.
 */
static __always_inline bool take(struct kfi_helper_walk *walk, struct sink *sink, u64 phys, u64 len, u64 value)
{
	const struct page *page = phys_page(phys);

	if (!len || offset_in_page(phys) + len > PAGE_SIZE || !is_plain(page, PHYS_PFN(phys), sink->frames, false))
		return take_slowly(walk, sink, phys, len, value);
	if (phys != sink->end && sink->count < sink->max)
		put(sink, sink->form, sink->count++, page, phys, len);
	else if (phys == sink->end && room_of_last(sink, phys, len) == len)
		extend_last(sink, len);
	else
		return take_slowly(walk, sink, phys, len, value);
	sink->end = phys + len;
	sink->device_end = NOWHERE;
	walk->done += len;
	walk->limit -= len;
	return true;
}

#ifdef CONFIG_X86_64
/*
 * Returns the physical address of a linear-map address. For another address, returns a number that is no valid
 * physical address.
 */
static __always_inline u64 linear_phys(u64 addr)
{
	return addr - PAGE_OFFSET;
}

/* Checks whether an address is between the start of the linear map and the vmalloc range. */
static __always_inline bool is_linear(u64 addr)
{
	return addr - PAGE_OFFSET < VMALLOC_START - PAGE_OFFSET;
}
#elif defined(CONFIG_ARM64)
/* Not virt_addr_valid(), which is false for the memory of devices. check_page() decides whether there is a page. */
static __always_inline bool is_linear(u64 addr)
{
	return __is_lm_address(__tag_reset(addr));
}

static __always_inline u64 linear_phys(u64 addr)
{
	return __lm_to_phys(__tag_reset(addr));
}
#else
static __always_inline bool is_linear(u64 addr)
{
	void *page = (void *)(unsigned long)(addr & PAGE_MASK);

	/* On some architectures the image has a mapping of its own that virt_addr_valid() accepts. */
	return addr <= ULONG_MAX && virt_addr_valid(page) && __va(__pa(page)) == kasan_reset_tag(page);
}

static __always_inline u64 linear_phys(u64 addr)
{
	return __pa((void *)(unsigned long)addr);
}
#endif

/* Where @pages pages of a vmalloc area are: what entries of a page table say, or from @start on. */
struct mapping {
	pte_t *entries;
	u64 start;
	u64 pages;
};

/* Looks up the page behind an address of a vmalloc area, and those that follow it in the same page table. */
static struct mapping find_mapping(unsigned long addr)
{
#ifdef CONFIG_X86_64
	unsigned int level;
	pte_t *entry = lookup_address(addr, &level);
	unsigned long into;

	if (entry && level == PG_LEVEL_4K)
		return (struct mapping){ .entries = entry, .pages = PTRS_PER_PTE - pte_index(addr) };
	if (!entry || !pte_present(*entry))
		return (struct mapping){};
	into = addr & ~page_level_mask(level) & PAGE_MASK;
	return (struct mapping){
		.start = (pte_val(*entry) & PTE_PFN_MASK & page_level_mask(level)) + into,
		.pages = PHYS_PFN(page_level_size(level) - into),
	};
#else
	struct page *page = vmalloc_to_page((void *)addr);

	return page ? (struct mapping){ .start = page_to_phys(page), .pages = 1 } : (struct mapping){};
#endif
}

/* Returns where the page @i of a mapping is, or NOWHERE. */
static __always_inline u64 mapped_phys(const struct mapping *m, u64 i)
{
	pte_t entry;

	if (!m->entries)
		return m->start + PFN_PHYS(i);
	entry = ptep_get(&m->entries[i]);
	return pte_present(entry) ? PFN_PHYS((u64)pte_pfn(entry)) : NOWHERE;
}

/* Goes on in the current segment, by what @m says. @left bytes of it count, from @addr on. */
static bool walk_mapping(struct kfi_helper_walk *walk, struct sink *sink, const struct mapping *m,
			 unsigned long addr, u64 left)
{
	u64 pages = min(m->pages, PHYS_PFN(offset_in_page(addr) + left + PAGE_SIZE - 1)), i, here;
	u64 phys = pages ? mapped_phys(m, 0) : NOWHERE;

	for (i = 0; i < pages && phys != NOWHERE; addr += here, left -= here) {
		u64 start = phys, end = phys;

		/* Joins contiguous pages. ZONE_DEVICE memory begins and ends at multiples of 2 MiB. */
		do {
			end += PAGE_SIZE;
			phys = ++i < pages ? mapped_phys(m, i) : NOWHERE;
		} while (phys == end && end % SZ_2M);
		here = min(left, end - start - offset_in_page(addr));
		if (!take(walk, sink, start + offset_in_page(addr), here, addr))
			return false;
	}
	if (i && i == pages)
		return true;
	walk->refused = KFI_REFUSED_ADDRESS;
	walk->value = addr;
	return false;
}

/* Goes on in the current segment, whose memory is a vmalloc area from @base on. */
static bool walk_vmalloc(struct kfi_helper_walk *walk, struct sink *sink, unsigned long base, u64 len)
{
	while (walk->done < len && walk->limit) {
		struct mapping m = find_mapping(base + walk->done);

		if (!walk_mapping(walk, sink, &m, base + walk->done, min(len - walk->done, walk->limit)))
			return false;
	}
	return true;
}

/* Goes on in the current kvec. Returns false to stop there, as the other two. */
static bool walk_kvec(struct kfi_helper_walk *walk, struct sink *sink)
{
	const struct kvec *kvec = &walk->kvecs[walk->index];
	unsigned long base = (unsigned long)kvec->iov_base;

	if (!walk->done) {
		walk->value = base;
		if (!base)
			walk->refused = KFI_REFUSED_NULL;
		else if (kfi_helper_on_stack(kvec->iov_base, kvec->iov_len))
			walk->refused = KFI_REFUSED_STACK;
		if (walk->refused)
			return false;
	}
	if (is_linear(base))
		return take(walk, sink, linear_phys(base) + walk->done,
			    min(kvec->iov_len - walk->done, walk->limit), base + walk->done);
	if (is_vmalloc_addr(kvec->iov_base))
		return walk_vmalloc(walk, sink, base, kvec->iov_len);
	walk->refused = KFI_REFUSED_ADDRESS;
	walk->value = base;
	return false;
}

static bool walk_bvec(struct kfi_helper_walk *walk, struct sink *sink)
{
	const struct bio_vec *bvec = &walk->bvecs[walk->index];
	u64 pfn = page_frame(bvec->bv_page), phys;

	if (unlikely(pfn >= NO_FRAME)) {
		walk->refused = KFI_REFUSED_PAGE_POINTER;
		walk->value = (unsigned long)bvec->bv_page;
		return false;
	}
	if (unlikely(walk->pages) && (bvec->bv_offset || bvec->bv_len != PAGE_SIZE)) {
		walk->refused = KFI_REFUSED_NOT_A_PAGE;
		return false;
	}
	phys = PFN_PHYS(pfn) + bvec->bv_offset + walk->done;
	if (take(walk, sink, phys, min(bvec->bv_len - walk->done, walk->limit), phys))
		return true;
	if (walk->refused == KFI_REFUSED_NO_PAGE && !pfn_valid(pfn)) {
		walk->refused = KFI_REFUSED_PAGE_POINTER;
		walk->value = (unsigned long)bvec->bv_page;
	}
	return false;
}

static bool walk_sg(struct kfi_helper_walk *walk, struct sink *sink)
{
	u64 start = sg_dma_address(walk->sgl), phys = start;

	if (walk->pages && (offset_in_page(start) || sg_dma_len(walk->sgl) != PAGE_SIZE)) {
		walk->refused = KFI_REFUSED_NOT_A_PAGE;
		return false;
	}
	if (!walk->physical) {
		if (unlikely(!is_linear(start))) {
			walk->refused = KFI_REFUSED_DEVICE_ADDRESS;
			walk->value = start;
			return false;
		}
		phys = linear_phys(start);
	}
	if (take(walk, sink, phys + walk->done,
		 min(sg_dma_len(walk->sgl) - walk->done, walk->limit), start + walk->done))
		return true;
	if (walk->refused == KFI_REFUSED_NO_PAGE)
		walk->refused = KFI_REFUSED_DEVICE_ADDRESS;
	return false;
}

/* Walks through the current segment. Returns false to stop there. */
static noinline bool walk_segment(struct kfi_helper_walk *walk, struct sink *sink)
{
	u64 len;

	if (walk->kvecs) {
		len = walk->kvecs[walk->index].iov_len;
		if (!walk_kvec(walk, sink))
			return false;
	} else if (walk->bvecs) {
		len = walk->bvecs[walk->index].bv_len;
		if (!walk_bvec(walk, sink))
			return false;
	} else {
		len = sg_dma_len(walk->sgl);
		if (!walk_sg(walk, sink))
			return false;
	}
	/* At the limit the walk ends inside of a segment. */
	if (walk->done < len)
		return false;
	walk->done = 0;
	/* Do not read behind the last entry: the caller's memory may end there. */
	if (++walk->index < walk->count && !walk->kvecs && !walk->bvecs) {
		walk->sgl = sg_next(walk->sgl);
		/* The core did not count a list of pages, so it may be too short. */
		if (!walk->sgl)
			walk->refused = KFI_REFUSED_NOT_A_PAGE;
	}
	return !walk->refused;
}

/*
 * Finds the page of segment @i. Returns false if the segment is not one whole page. If the address is unaligned
 * or outside the linear map, *@pfn is above every page frame.
 */
static __always_inline bool whole_page(const struct kfi_helper_walk *walk, bool is_kvec, u64 i,
				       const struct page **page, u64 *pfn)
{
	if (is_kvec) {
		*pfn = exact_frame(linear_phys((unsigned long)walk->kvecs[i].iov_base), PAGE_SHIFT);
		*page = pfn_to_page(*pfn);
		/* Else the stack may be in the linear map. */
		return IS_ENABLED(CONFIG_VMAP_STACK) && walk->kvecs[i].iov_len == PAGE_SIZE;
	}
	*page = walk->bvecs[i].bv_page;
	*pfn = page_frame(*page);
	return walk->bvecs[i].bv_len == PAGE_SIZE && !walk->bvecs[i].bv_offset;
}

/*
 * Walks through kvecs or bio_vecs. Stops at a segment that is no whole page, for which is_plain() is false,
 * or that follows the previous page in memory.
 */
static __always_inline void walk_pages(struct kfi_helper_walk *walk, struct sink *sink, bool is_kvec,
				       enum form form)
{
	const struct kfi_helper_walk from = *walk;
	const struct sink to = *sink;
	u64 most = min3(from.count - from.index, to.max - to.count, from.limit >> PAGE_SHIFT);
	u64 end = to.end, i;

	/* On this configuration is_plain() is always false. */
	if (!to.frames)
		return;
	for (i = 0; i < most; i++) {
		const struct page *page;
		u64 pfn, phys;

		if (!whole_page(&from, is_kvec, from.index + i, &page, &pfn) ||
		    !is_plain(page, pfn, to.frames, false))
			break;
		phys = PFN_PHYS(pfn);
		if (phys == end)
			break;
		put(&to, form, to.count + i, page, phys, PAGE_SIZE);
		end = phys + PAGE_SIZE;
	}
	if (i)
		sink->device_end = NOWHERE;
	sink->end = end;
	sink->count += i;
	walk->index += i;
	walk->limit -= PFN_PHYS(i);
}

static __always_inline void walk_pages_of(struct kfi_helper_walk *walk, struct sink *sink, enum form form)
{
	if (walk->bvecs)
		walk_pages(walk, sink, false, form);
	else
		walk_pages(walk, sink, true, form);
}

static u32 walk_list(struct kfi_helper_walk *walk, struct sink sink)
{
	sink.end = NOWHERE;
	sink.device_end = NOWHERE;
	sink.frames = linear_frames();
	while (walk->index < walk->count && walk->limit) {
		if (!walk->done && (walk->kvecs || walk->bvecs)) {
			if (sink.form == RUNS)
				walk_pages_of(walk, &sink, RUNS);
			else if (sink.form == PAGES)
				walk_pages_of(walk, &sink, PAGES);
			else
				walk_pages_of(walk, &sink, MAPPED);
			if (walk->index == walk->count || !walk->limit)
				break;
		}
		if (!walk_segment(walk, &sink))
			break;
	}
	return sink.count;
}

/**
 * kfi_helper_walk() - Go on through a list, and report its memory.
 * @walk: The list, and how far it was walked through. The walk goes on there, by at most
 *	@walk->limit bytes, which goes down.
 * @runs: Where extents go, in the order of the list. Contiguous memory is joined, except ZONE_DEVICE memory of
 *	different mappings.
 * @max: For how many there is room, at least 1.
 *
 * The walk stops at the end of the list or of the room, at the limit, and before memory that must not
 * be registered. In the last case @walk->refused says why, and @walk->value where; the walk is over then.
 *
 * Context: Any. May reschedule if preemptible.
 * Return: The number of extents, 0 to @max.
 */
u32 kfi_helper_walk(struct kfi_helper_walk *walk, struct kfi_helper_run *runs, u32 max)
{
	return walk_list(walk, (struct sink){ .runs = runs, .form = RUNS, .max = max });
}

/**
 * kfi_helper_walk_entries() - Go on through a list, and fill entries of a scatterlist.
 * @walk: As for kfi_helper_walk().
 * @sgl: Where entries go, one for each extent.
 * @max: For how many there is room, at least 1.
 * @max_len: How many bytes an entry may have, at least a page.
 * @virt: If true, entries hold linear-map addresses in the DMA fields, for a device with software DMA. If
 *	false, entries hold pages, and the caller must map them.
 *
 * Context: Any. May reschedule if preemptible.
 * Return: The number of entries, 0 to @max.
 */
u32 kfi_helper_walk_entries(struct kfi_helper_walk *walk, struct scatterlist *sgl, u32 max, u32 max_len,
			    bool virt)
{
	return walk_list(walk, (struct sink){ .sgl = sgl, .form = virt ? MAPPED : PAGES, .max = max,
					      .max_len = max_len });
}

/* Checks whether the memory of the next entry follows that of this one. One look tells most contiguous lists. */
static noinline bool is_followed(struct scatterlist *sg)
{
	struct scatterlist *next = sg_next(sg);

	return next && sg_dma_address(next) == sg_dma_address(sg) + PAGE_SIZE;
}

/* Returns the entry that a link leads to. NULL if the list ends there, and more than one entry is @left. */
static noinline struct scatterlist *follow(struct scatterlist *sg, u64 left)
{
	if (sg_is_chain(sg))
		sg = sg_chain_ptr(sg);
	return sg_is_last(sg) && left > 1 ? NULL : sg;
}

/**
 * kfi_helper_check_list() - Check whether a scatterlist may be handed on to a device.
 * @sg: The list, mapped for a device that takes addresses of the linear map.
 * @left: How many entries count, at least 1.
 *
 * Context: Any.
 * Return: True if each entry is a page that may be registered and the last one is marked as the last. It
 *	is false if the first two are neighbours, because joining the pages is better. If false, the list
 *	must be walked.
 */
bool kfi_helper_check_list(struct scatterlist *sg, u64 left)
{
	u64 frames = linear_frames();
	unsigned long all = 0, flags;

	if (left > 1 && is_followed(sg))
		return false;
	for (; left; sg++) {
		const struct page *page;
		u64 pfn;

		if (unlikely(sg->page_link & (SG_CHAIN | SG_END))) {
			sg = follow(sg, left);
			if (!sg)
				return false;
		}
		pfn = exact_frame(linear_phys(sg_dma_address(sg)), PAGE_SHIFT);
		page = pfn_to_page(pfn);
		if (unlikely(pfn >= frames) || !read_flags(page, &flags) || !is_in_use(page, false) ||
		    sg_dma_len(sg) != PAGE_SIZE)
			return false;
		all |= flags;
		if (!--left)
			return sg_is_last(sg) && !(all & FLAGS);
	}
	return false;
}

/**
 * kfi_helper_check_page() - Check one page by all that is known of it.
 * @pfn: Its page frame; any number.
 * @writes: Whether it is to be written to.
 * @peer_to_peer: Whether the memory of a PCI device will do.
 *
 * Context: Any.
 * Return: Why it must not be registered: enum kfi_helper_refused.
 */
u32 kfi_helper_check_page(u64 pfn, bool writes, bool peer_to_peer)
{
	return check_page((struct use){ writes, peer_to_peer }, pfn, false);
}
