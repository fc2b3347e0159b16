// SPDX-License-Identifier: GPL-2.0
/*
 * A swiotlb that is full. Where mappings of the device bounce, the model maps memory until no place is left. Mappings of
 * consumers then fail as they do on a machine whose other devices need all of swiotlb. The kernel's tracepoint
 * swiotlb_bounced tells of each mapping before swiotlb looks for a place, so the model can count them.
 */
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/slab.h>
#include <linux/swiotlb.h>
#include <linux/tracepoint.h>

#include "nic.h"

/* The longest and the shortest mapping that can be made. */
#define NIC_BOUNCE_MOST		(IO_TLB_SEGSIZE * IO_TLB_SIZE)
#define NIC_BOUNCE_LEAST	IO_TLB_SIZE
#define NIC_BOUNCES		8192
/* The memory behind these mappings is never accessed. */
#define NIC_BOUNCE_ATTRS	(DMA_ATTR_NO_WARN | DMA_ATTR_SKIP_CPU_SYNC)

/**
 * struct nic_bounce - mappings that fill swiotlb
 * @dev: the device that maps
 * @tp: the tracepoint swiotlb_bounced
 * @lock: protects the fields below; taken in any context
 * @filler: the task that holds @lock and maps, whose own mappings do not count
 * @left: the number of mappings that are still to fail
 * @mem: the memory that is mapped again and again
 * @n: the number of mappings
 * @mappings: the mappings
 */
struct nic_bounce {
	struct device *dev;
	struct tracepoint *tp;
	spinlock_t lock;
	struct task_struct *filler;
	u32 left;
	void *mem;
	u32 n;
	struct {
		dma_addr_t addr;
		u32 len;
	} mappings[NIC_BOUNCES];
};

/* Serializes writers of the file. */
static DEFINE_MUTEX(nic_bounce_lock);

/* Maps @len bytes. Returns 0, or an errno: -EOPNOTSUPP if the mapping does not bounce. Under @lock. */
static int nic_bounce_map(struct nic_bounce *bounce, u32 len)
{
	dma_addr_t addr;

	if (bounce->n == NIC_BOUNCES)
		return -ENOSPC;
	addr = dma_map_single_attrs(bounce->dev, bounce->mem, len, DMA_TO_DEVICE, NIC_BOUNCE_ATTRS);
	if (dma_mapping_error(bounce->dev, addr))
		return -ENOMEM;
	bounce->mappings[bounce->n].addr = addr;
	bounce->mappings[bounce->n++].len = len;
	return dma_to_phys(bounce->dev, addr) == virt_to_phys(bounce->mem) ? -EOPNOTSUPP : 0;
}

/* Maps until nothing can be mapped. Returns 0 then, or an errno. Under @lock. */
static int nic_bounce_fill(struct nic_bounce *bounce)
{
	int err = -ENOMEM;

	WRITE_ONCE(bounce->filler, current);
	for (u32 len = NIC_BOUNCE_MOST; len >= NIC_BOUNCE_LEAST && err == -ENOMEM; len /= 2)
		do
			err = nic_bounce_map(bounce, len);
		while (!err);
	WRITE_ONCE(bounce->filler, NULL);
	return err == -ENOMEM ? 0 : err;
}

/* Unmaps everything. Under @lock. */
static void nic_bounce_empty(struct nic_bounce *bounce)
{
	while (bounce->n) {
		bounce->n--;
		dma_unmap_single_attrs(bounce->dev, bounce->mappings[bounce->n].addr,
				       bounce->mappings[bounce->n].len, DMA_TO_DEVICE, NIC_BOUNCE_ATTRS);
	}
}

/*
 * A mapping is about to bounce. The next @left ones of the device find no place, also if a consumer has returned some;
 * the one after that finds swiotlb empty. Any context.
 */
static void nic_bounce_begins(void *data, struct device *dev, dma_addr_t addr, size_t size)
{
	struct nic_bounce *bounce = data;
	unsigned long flags;

	/* The filler runs with interrupts off, so this is its own mapping. */
	if (dev != bounce->dev || READ_ONCE(bounce->filler) == current)
		return;
	spin_lock_irqsave(&bounce->lock, flags);
	if (bounce->left && !nic_bounce_fill(bounce))
		bounce->left--;
	else
		nic_bounce_empty(bounce);
	spin_unlock_irqrestore(&bounce->lock, flags);
}

static void nic_bounce_find(struct tracepoint *tp, void *data)
{
	struct nic_bounce *bounce = data;

	if (!strcmp(tp->name, "swiotlb_bounced"))
		bounce->tp = tp;
}

static void nic_bounce_free(struct nic_bounce *bounce)
{
	kfree(bounce->mem);
	kvfree(bounce);
}

static int nic_bounce_start(struct nic_bounce *bounce)
{
	int err;

	for_each_kernel_tracepoint(nic_bounce_find, bounce);
	if (!bounce->tp)
		return -EOPNOTSUPP;
	spin_lock_irq(&bounce->lock);
	err = nic_bounce_fill(bounce);
	if (err)
		nic_bounce_empty(bounce);
	spin_unlock_irq(&bounce->lock);
	if (!err)
		err = tracepoint_probe_register(bounce->tp, nic_bounce_begins, bounce);
	return err;
}

/**
 * nic_swiotlb_fill() - Let the next mappings of a device that bounce fail.
 * @nic: The device.
 * @count: How many.
 *
 * Context: Process context, may sleep.
 * Return: 0; -EOPNOTSUPP if mappings of the device do not bounce; -EBUSY if mappings are still to fail.
 */
int nic_swiotlb_fill(struct nic_device *nic, u32 count)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&nic->pdev->dev);
	struct nic_bounce *bounce;
	int err;

	guard(mutex)(&nic_bounce_lock);
	if (domain && (domain->type & __IOMMU_DOMAIN_PAGING))
		return -EOPNOTSUPP;
	if (nic->bounce)
		return -EBUSY;
	bounce = kvzalloc_obj(*bounce);
	if (!bounce)
		return -ENOMEM;
	bounce->dev = &nic->pdev->dev;
	bounce->left = count;
	spin_lock_init(&bounce->lock);
	bounce->mem = kzalloc(NIC_BOUNCE_MOST, GFP_KERNEL);
	err = bounce->mem ? nic_bounce_start(bounce) : -ENOMEM;
	if (err)
		nic_bounce_free(bounce);
	else
		nic->bounce = bounce;
	return err;
}

/* Ends the fault, and returns what nic_swiotlb_fill() took. May sleep. */
void nic_swiotlb_release(struct nic_device *nic)
{
	struct nic_bounce *bounce;

	guard(mutex)(&nic_bounce_lock);
	bounce = nic->bounce;
	if (!bounce)
		return;
	nic->bounce = NULL;
	tracepoint_probe_unregister(bounce->tp, nic_bounce_begins, bounce);
	tracepoint_synchronize_unregister();
	spin_lock_irq(&bounce->lock);
	nic_bounce_empty(bounce);
	spin_unlock_irq(&bounce->lock);
	nic_bounce_free(bounce);
}

/* Returns how many mappings are still to fail. May sleep. */
u32 nic_swiotlb_left(struct nic_device *nic)
{
	guard(mutex)(&nic_bounce_lock);
	return nic->bounce ? READ_ONCE(nic->bounce->left) : 0;
}
