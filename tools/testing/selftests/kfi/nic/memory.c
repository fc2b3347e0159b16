// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions, and every access to memory. A DMA address is resolved when memory is accessed, not before: an access
 * whose mapping has ended is a DMA fault, which is counted, and reported in the log.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/iommu.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "nic.h"

/* Returns the physical address of a DMA address, or 0 if it is not mapped. Any context. */
static phys_addr_t nic_resolve(struct nic_device *nic, dma_addr_t addr)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&nic->pdev->dev);

	return domain ? iommu_iova_to_phys(domain, addr) : addr;
}

/* Does an IOMMU tell what is mapped? */
static bool nic_translates(struct nic_device *nic)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&nic->pdev->dev);

	return domain && (domain->type & __IOMMU_DOMAIN_PAGING);
}

/*
 * Remember that the device was given these addresses, to tell later which of them are still mapped. Without memory for
 * that they are forgotten. May sleep.
 */
static void nic_see(struct nic_device *nic, dma_addr_t addr, u64 len)
{
	unsigned long frame, last;

	if (!len || !nic_translates(nic))
		return;
	last = (addr + len - 1) >> PAGE_SHIFT;
	for (frame = addr >> PAGE_SHIFT; frame <= last; frame++)
		if (!xa_load(&nic->seen, frame))
			xa_store(&nic->seen, frame, xa_mk_value(1), GFP_NOIO);
}

/* How many of the pages that consumers have ever given the device are mapped now. May sleep. */
u64 nic_mapped(struct nic_device *nic)
{
	unsigned long frame;
	u64 mapped = 0;
	void *entry;

	xa_for_each(&nic->seen, frame, entry) {
		if (nic_resolve(nic, (dma_addr_t)frame << PAGE_SHIFT)) {
			mapped++;
			continue;
		}
		xa_erase(&nic->seen, frame);
		/* If it was mapped again meanwhile, nic_see() may have relied on the entry. */
		if (nic_resolve(nic, (dma_addr_t)frame << PAGE_SHIFT)) {
			xa_store(&nic->seen, frame, xa_mk_value(1), GFP_NOIO);
			mapped++;
		}
	}
	return mapped;
}

/*
 * Does nobody hold this page? Free pages are the buddy allocator's, or wait in a list of a CPU. Tail pages that were
 * allocated without __GFP_COMP, and those of slabs, have no reference either. Any context.
 */
static bool nic_is_free(struct page *page)
{
	struct list_head *next = READ_ONCE(page->pcp_list.next), *prev;

	if (page_count(page))
		return false;
	if (is_free_buddy_page(page))
		return true;
	/* Of a page in use this may be no pointer. */
	return !page_has_type(compound_head(page)) && next != &page->pcp_list &&
	       !get_kernel_nofault(prev, &next->prev) && prev == &page->pcp_list;
}

/* Copy between a DMA address and a buffer. Any context. */
static int nic_dma_copy(struct nic_device *nic, dma_addr_t addr, void *buf, u32 len, bool write)
{
	while (len) {
		u32 in_page = offset_in_page(addr);
		u32 n = min_t(u32, len, PAGE_SIZE - in_page);
		phys_addr_t phys = nic_resolve(nic, addr);
		struct page *page;
		void *at;

		if (!phys || !pfn_valid(PHYS_PFN(phys))) {
			nic_count(nic, NIC_STAT_DMA_FAULTS, 1);
			dev_err_ratelimited(&nic->ib.dev, "DMA fault: %s %#llx\n",
					    write ? "write to" : "read from", (u64)addr);
			return -EFAULT;
		}
		page = pfn_to_page(PHYS_PFN(phys));
		if (nic_is_free(page)) {
			nic_count(nic, NIC_STAT_FREED, 1);
			dev_err_ratelimited(&nic->ib.dev, "%s a page that is free: %#llx\n",
					    write ? "write to" : "read from", (u64)addr);
			return -EFAULT;
		}
		at = kmap_local_page(page) + in_page;
		if (write)
			memcpy(at, buf, n);
		else
			memcpy(buf, at, n);
		kunmap_local(at);
		nic_count(nic, NIC_STAT_BYTES, n);
		addr += n;
		buf += n;
		len -= n;
	}
	return 0;
}

/* The region of a key, with a reference. Any context. */
static struct nic_mr *nic_mr_get(struct nic_device *nic, u32 key)
{
	struct nic_mr *mr;
	unsigned long flags;

	xa_lock_irqsave(&nic->mrs, flags);
	mr = xa_load(&nic->mrs, key >> 8);
	if (mr && !refcount_inc_not_zero(&mr->refs))
		mr = NULL;
	xa_unlock_irqrestore(&nic->mrs, flags);
	return mr;
}

void nic_mr_put(struct nic_mr *mr)
{
	if (refcount_dec_and_test(&mr->refs))
		complete(&mr->freed);
}

/* The segment that holds the byte @at of an end, and how far in it that is. */
static const struct ib_sge *nic_end_find(const struct nic_end *end, u64 *at)
{
	u32 i;

	for (i = 0; i < end->n; i++) {
		if (*at < end->sge[i].length)
			return &end->sge[i];
		*at -= end->sge[i].length;
	}
	return NULL;
}

u64 nic_sge_len(const struct ib_sge *sge, u32 n)
{
	u64 len = 0;

	while (n--)
		len += sge[n].length;
	return len;
}

/* No peer can use the reserved key: it is a local one. */
#define NIC_REMOTE (IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)

static bool nic_is_all_memory(const struct nic_end *end, u32 key)
{
	const struct nic_persona *persona = end->qp->nic->persona;

	return key == NIC_ALL_MEMORY && persona->all_memory_key &&
	       !(end->access & NIC_REMOTE) && !(end->read_sink && persona->iwarp);
}

/* May this end's queue pair access these bytes by this key? Under the region's rwsem. */
static int nic_mr_allows(struct nic_mr *mr, const struct nic_end *end, u32 key, u64 addr, u64 len)
{
	int need = end->access;

	if (end->read_sink)
		need = end->qp->nic->persona->iwarp ? IB_ACCESS_REMOTE_WRITE : IB_ACCESS_LOCAL_WRITE;
	if (READ_ONCE(mr->state) != NIC_MR_VALID || mr->key != key || mr->ib.pd != end->qp->ib.pd)
		return -EACCES;
	if ((mr->access & need) != need)
		return -EACCES;
	if (mr->all_memory)
		return end->read_sink && end->qp->nic->persona->iwarp ? -EACCES : 0;
	if (addr < mr->iova || addr - mr->iova > mr->len || len > mr->len - (addr - mr->iova))
		return -EACCES;
	return 0;
}

/*
 * Check that all of an end's first @len bytes may be accessed; -EACCES if not. A device checks a whole message before its
 * first byte. May sleep.
 */
int nic_end_check(const struct nic_end *end, u64 len)
{
	u32 i;

	if (end->data)
		return 0;
	for (i = 0; i < end->n && len; i++) {
		const struct ib_sge *sge = &end->sge[i];
		u64 n = min_t(u64, len, sge->length);
		struct nic_mr *mr;
		int err;

		len -= n;
		if (!n || nic_is_all_memory(end, sge->lkey))
			continue;
		mr = nic_mr_get(end->qp->nic, sge->lkey);
		if (!mr)
			return -EACCES;
		down_read(&mr->sem);
		err = nic_mr_allows(mr, end, sge->lkey, sge->addr, n);
		up_read(&mr->sem);
		nic_mr_put(mr);
		if (err)
			return err;
	}
	return len ? -EACCES : 0;
}

/* Copy between a region and a buffer. Under the region's rwsem. */
static int nic_mr_copy(struct nic_device *nic, struct nic_mr *mr, u64 addr, void *buf, u32 len,
		       bool write)
{
	u64 at;
	u32 i;
	int err;

	if (mr->all_memory)
		return nic_dma_copy(nic, addr, buf, len, write);
	at = addr - mr->iova;
	for (i = 0; i < mr->n_used && len; i++) {
		struct nic_piece *piece = &mr->used[i];
		u32 n;

		if (at >= piece->len) {
			at -= piece->len;
			continue;
		}
		n = min_t(u64, len, piece->len - at);
		err = nic_dma_copy(nic, piece->addr + at, buf, n, write);
		if (err)
			return err;
		at = 0;
		buf += n;
		len -= n;
	}
	return len ? -EFAULT : 0;
}

/* The RDMA core's own queue pairs keep memory mapped as long as there is a device: that is no consumer's. */
static void nic_see_sge(const struct nic_end *end, dma_addr_t addr, u64 len)
{
	if (end->qp->ib.qp_type != IB_QPT_GSI && end->qp->ib.qp_type != IB_QPT_SMI)
		nic_see(end->qp->nic, addr, len);
}

/*
 * One access to a segment. The region is looked up, then the memory is accessed, nic_value(ACCESS_US) later; what ends
 * the region waits for that.
 */
static int nic_sge_copy(const struct nic_end *end, u32 key, u64 addr, void *buf, u32 len, bool write)
{
	struct nic_device *nic = end->qp->nic;
	int wait = nic_value(nic, NIC_VALUE_ACCESS_US);
	struct nic_mr *mr;
	int err;

	if (nic_is_all_memory(end, key)) {
		if (wait)
			usleep_range(wait, wait + 1);
		nic_see_sge(end, addr, len);
		return nic_dma_copy(nic, addr, buf, len, write);
	}
	mr = nic_mr_get(nic, key);
	if (!mr)
		return -EACCES;
	down_read(&mr->sem);
	err = nic_mr_allows(mr, end, key, addr, len);
	if (!err) {
		nic_count(nic, NIC_STAT_UNDER_WAY, !mr->all_memory);
		if (wait)
			usleep_range(wait, wait + 1);
		if (mr->all_memory)
			nic_see_sge(end, addr, len);
		err = nic_mr_copy(nic, mr, addr, buf, len, write);
		nic_count(nic, NIC_STAT_UNDER_WAY, -(s64)!mr->all_memory);
	}
	up_read(&mr->sem);
	nic_mr_put(mr);
	return err;
}

/*
 * Copy @len bytes, NIC_CHUNK at most, between a buffer and the byte @at of an end. -EACCES if the key does not allow it,
 * -EFAULT if the memory is not there. May sleep.
 */
int nic_end_copy(const struct nic_end *end, u64 at, void *buf, u32 len, bool write)
{
	if (end->data) {
		memcpy(buf, end->data + at, len);
		return 0;
	}
	while (len) {
		u64 in_sge = at;
		const struct ib_sge *sge = nic_end_find(end, &in_sge);
		u32 n;
		int err;

		if (!sge)
			return -EACCES;
		n = min_t(u64, len, sge->length - in_sge);
		err = nic_sge_copy(end, sge->lkey, sge->addr + in_sge, buf, n, write);
		if (err)
			return err;
		at += n;
		buf += n;
		len -= n;
	}
	return 0;
}

/* Make a region known, under a key whose lowest 8 bits are the consumer's. */
static int nic_mr_add(struct nic_device *nic, struct nic_mr *mr)
{
	u32 index;
	int err;

	refcount_set(&mr->refs, 1);
	init_completion(&mr->freed);
	init_rwsem(&mr->sem);
	/* As late as possible does a key come again. */
	err = xa_alloc_cyclic_irq(&nic->mrs, &index, mr, XA_LIMIT(1, 0xfffff), &nic->next_mr,
				  GFP_KERNEL);
	if (err < 0)
		return err;
	mr->key = index << 8;
	mr->ib.lkey = mr->key;
	mr->ib.rkey = mr->key;
	nic_count(nic, NIC_STAT_MRS, 1);
	return 0;
}

static struct ib_mr *nic_get_dma_mr(struct ib_pd *pd, int access)
{
	struct nic_device *nic = to_nic(pd->device);
	struct nic_mr *mr;
	int err;

	if (nic_fault(nic, NIC_FAULT_ALLOC_MR))
		return ERR_PTR(nic_errno(nic));
	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->all_memory = true;
	mr->state = NIC_MR_VALID;
	mr->access = access;
	mr->ib.device = pd->device;
	mr->ib.pd = pd;
	err = nic_mr_add(nic, mr);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return &mr->ib;
}

/* There are no user space consumers, but the core wants the operation. */
static struct ib_mr *nic_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
				     int access, struct ib_dmah *dmah, struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static struct ib_mr *nic_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max)
{
	struct nic_device *nic = to_nic(pd->device);
	struct nic_mr *mr;
	int err = -ENOMEM;

	if (!nic->persona->fast_reg)
		return ERR_PTR(-EOPNOTSUPP);
	if (type != IB_MR_TYPE_MEM_REG && !(type == IB_MR_TYPE_SG_GAPS && nic->persona->gaps))
		return ERR_PTR(-EINVAL);
	if (!max || max > nic->persona->max_pages)
		return ERR_PTR(-EINVAL);
	if (nic_fault(nic, NIC_FAULT_ALLOC_MR))
		return ERR_PTR(nic_errno(nic));
	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->max = max;
	mr->mapped = kvcalloc(max, sizeof(*mr->mapped), GFP_KERNEL);
	mr->used = kvcalloc(max, sizeof(*mr->used), GFP_KERNEL);
	mr->ib.device = pd->device;
	mr->ib.pd = pd;
	mr->ib.type = type;
	if (mr->mapped && mr->used)
		err = nic_mr_add(nic, mr);
	if (err) {
		kvfree(mr->mapped);
		kvfree(mr->used);
		kfree(mr);
		return ERR_PTR(err);
	}
	return &mr->ib;
}

/*
 * Counts a valid region whose memory is not mapped: whoever has its key could have made the device access other
 * memory. To be called when it begins and when it ends to be valid. Any context.
 */
static void nic_mr_check_mapped(struct nic_device *nic, struct nic_mr *mr)
{
	u32 i;

	if (mr->state != NIC_MR_VALID || mr->all_memory || !nic_translates(nic))
		return;
	for (i = 0; i < mr->n_used; i++) {
		u64 end = mr->used[i].addr + mr->used[i].len, at;

		for (at = mr->used[i].addr; at < end; at = ALIGN_DOWN(at, PAGE_SIZE) + PAGE_SIZE) {
			if (nic_resolve(nic, at))
				continue;
			nic_count(nic, NIC_STAT_UNMAPPED, 1);
			dev_err_ratelimited(&nic->ib.dev, "the region %#x is valid, and %#llx is not mapped\n",
					    mr->key, at);
			return;
		}
	}
}

/* The region ends: waits for every access under way. May sleep. */
static int nic_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct nic_device *nic = to_nic(ibmr->device);
	struct nic_mr *mr = to_nic_mr(ibmr);

	if (nic_fault(nic, NIC_FAULT_DEREG_MR))
		return nic_errno(nic);
	xa_erase_irq(&nic->mrs, mr->key >> 8);
	down_write(&mr->sem);
	nic_mr_check_mapped(nic, mr);
	mr->state = NIC_MR_DEAD;
	up_write(&mr->sem);
	nic_mr_put(mr);
	wait_for_completion(&mr->freed);
	kvfree(mr->mapped);
	kvfree(mr->used);
	kfree(mr);
	nic_count(nic, NIC_STAT_MRS, -1);
	return 0;
}

static int nic_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct nic_mr *mr = to_nic_mr(ibmr);

	if (mr->n_mapped >= mr->max)
		return -ENOMEM;
	mr->mapped[mr->n_mapped++] = (struct nic_piece) { addr, ibmr->page_size };
	return 0;
}

/* A list with gaps: each entry is a piece of its own. */
static int nic_map_gaps(struct nic_mr *mr, struct scatterlist *list, int entries, unsigned int offset)
{
	struct scatterlist *sg;
	int i;

	mr->ib.iova = sg_dma_address(list) + offset;
	mr->ib.length = 0;
	for_each_sg(list, sg, entries, i) {
		struct nic_piece *piece = &mr->mapped[mr->n_mapped];

		if (mr->n_mapped >= mr->max)
			break;
		piece->addr = sg_dma_address(sg) + offset;
		piece->len = sg_dma_len(sg) - offset;
		mr->ib.length += piece->len;
		mr->n_mapped++;
		offset = 0;
	}
	return i;
}

static int nic_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int entries, unsigned int *offset)
{
	struct nic_device *nic = to_nic(ibmr->device);
	struct nic_mr *mr = to_nic_mr(ibmr);

	if (nic_fault(nic, NIC_FAULT_MAP_MR))
		return nic_errno(nic);
	if (!(ibmr->page_size & nic->persona->page_sizes))
		return -EINVAL;
	mr->n_mapped = 0;
	if (ibmr->type == IB_MR_TYPE_SG_GAPS)
		return nic_map_gaps(mr, sg, entries, offset ? *offset : 0);
	return ib_sg_to_pages(ibmr, sg, entries, offset, nic_set_page);
}

/*
 * Carry out IB_WR_REG_MR: the region takes over what is mapped at this moment. Its first byte may lie anywhere in the
 * first page: the lowest bits of the iova say where.
 */
int nic_mr_register(struct nic_qp *qp, struct nic_wqe *wqe)
{
	struct nic_device *nic = qp->nic;
	struct nic_mr *mr = wqe->mr;
	u64 skip = 0;
	int err = 0;
	u32 i;

	if (nic_fault(nic, NIC_FAULT_REG))
		return -EIO;
	down_write(&mr->sem);
	if (mr->state != NIC_MR_FREE || mr->ib.pd != qp->ib.pd || wqe->key >> 8 != mr->key >> 8 ||
	    !mr->n_mapped) {
		err = -EINVAL;
		goto out;
	}
	memcpy(mr->used, mr->mapped, mr->n_mapped * sizeof(*mr->used));
	mr->n_used = mr->n_mapped;
	if (mr->ib.type != IB_MR_TYPE_SG_GAPS)
		skip = mr->ib.iova & (mr->ib.page_size - 1);
	mr->used[0].addr += skip;
	mr->used[0].len -= skip;
	mr->iova = mr->ib.iova;
	mr->len = mr->ib.length;
	mr->access = wqe->access;
	if (__test_and_set_bit(wqe->key & 0xff, mr->keys) && wqe->key != mr->key) {
		nic_count(nic, NIC_STAT_KEYS_AGAIN, 1);
		dev_err_ratelimited(&nic->ib.dev, "the region had the key %#x before\n", wqe->key);
	}
	mr->key = wqe->key;
	WRITE_ONCE(mr->state, NIC_MR_VALID);
	nic_mr_check_mapped(nic, mr);
	for (i = 0; i < mr->n_used; i++)
		nic_see(nic, mr->used[i].addr, mr->used[i].len);
	nic_count(nic, NIC_STAT_REG_MR, 1);
out:
	up_write(&mr->sem);
	return err;
}

/*
 * Carry out an invalidation, local or of a peer: afterwards no access is under way. Not every device checks a local one,
 * all check that of a peer.
 */
int nic_mr_invalidate(struct nic_qp *qp, u32 key, bool remote)
{
	struct nic_device *nic = qp->nic;
	bool weak = nic_value(nic, NIC_VALUE_WEAK_INV);
	struct nic_mr *mr = nic_mr_get(nic, key);
	int err = 0;

	if (!mr)
		return -EINVAL;
	if (!weak)
		down_write(&mr->sem);
	if (mr->all_memory || mr->ib.pd != qp->ib.pd || mr->key != key ||
	    (mr->state != NIC_MR_VALID && (remote || !nic->persona->inv_unchecked))) {
		err = -EINVAL;
	} else {
		nic_mr_check_mapped(nic, mr);
		WRITE_ONCE(mr->state, NIC_MR_FREE);
	}
	if (!weak)
		up_write(&mr->sem);
	nic_mr_put(mr);
	if (!err)
		nic_count(nic, NIC_STAT_LOCAL_INV, 1);
	return err;
}

const struct ib_device_ops nic_memory_ops = {
	.get_dma_mr = nic_get_dma_mr,
	.reg_user_mr = nic_reg_user_mr,
	.alloc_mr = nic_alloc_mr,
	.map_mr_sg = nic_map_mr_sg,
	.dereg_mr = nic_dereg_mr,
};
