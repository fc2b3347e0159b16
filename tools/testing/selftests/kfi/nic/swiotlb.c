// SPDX-License-Identifier: GPL-2.0
/*
 * A swiotlb that is full. Where mappings of the device bounce, the model maps memory until no place is left. Mappings of
 * consumers then fail as they do on a machine whose other devices need all of swiotlb.
 */
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/slab.h>
#include <linux/swiotlb.h>

#include "nic.h"

/* The longest and the shortest mapping that can be made. */
#define NIC_BOUNCE_MOST		(IO_TLB_SEGSIZE * IO_TLB_SIZE)
#define NIC_BOUNCE_LEAST	IO_TLB_SIZE
#define NIC_BOUNCES		8192

/**
 * struct nic_bounce - mappings that fill swiotlb
 * @mem: the memory that is mapped again and again
 * @n: the number of mappings
 * @mappings: the mappings
 */
struct nic_bounce {
	void *mem;
	u32 n;
	struct {
		dma_addr_t addr;
		u32 len;
	} mappings[NIC_BOUNCES];
};

static DEFINE_MUTEX(nic_bounce_lock);

/* Maps @len bytes. Returns 0, or an errno: -EOPNOTSUPP if the mapping does not bounce. May sleep. */
static int nic_bounce_map(struct device *dev, struct nic_bounce *bounce, u32 len)
{
	dma_addr_t addr;

	if (bounce->n == NIC_BOUNCES)
		return -ENOSPC;
	addr = dma_map_single_attrs(dev, bounce->mem, len, DMA_TO_DEVICE, DMA_ATTR_NO_WARN);
	if (dma_mapping_error(dev, addr))
		return -ENOMEM;
	bounce->mappings[bounce->n].addr = addr;
	bounce->mappings[bounce->n++].len = len;
	return dma_to_phys(dev, addr) == virt_to_phys(bounce->mem) ? -EOPNOTSUPP : 0;
}

static void nic_bounce_free(struct device *dev, struct nic_bounce *bounce)
{
	while (bounce->n--)
		dma_unmap_single(dev, bounce->mappings[bounce->n].addr,
				 bounce->mappings[bounce->n].len, DMA_TO_DEVICE);
	kfree(bounce->mem);
	kvfree(bounce);
}

/* Fills swiotlb. Returns -EOPNOTSUPP if mappings of the device do not bounce. May sleep. */
int nic_swiotlb_fill(struct nic_device *nic)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&nic->pdev->dev);
	struct device *dev = &nic->pdev->dev;
	struct nic_bounce *bounce;
	int err = 0;
	u32 len;

	guard(mutex)(&nic_bounce_lock);
	if (nic->bounce)
		return 0;
	if (domain && (domain->type & __IOMMU_DOMAIN_PAGING))
		return -EOPNOTSUPP;
	bounce = kvzalloc_obj(*bounce);
	if (!bounce)
		return -ENOMEM;
	bounce->mem = kzalloc(NIC_BOUNCE_MOST, GFP_KERNEL);
	if (!bounce->mem)
		err = -ENOSPC;
	for (len = NIC_BOUNCE_MOST; len >= NIC_BOUNCE_LEAST && (!err || err == -ENOMEM); len /= 2)
		do
			err = nic_bounce_map(dev, bounce, len);
		while (!err);
	if (err == -ENOMEM) {
		nic->bounce = bounce;
		return 0;
	}
	nic_bounce_free(dev, bounce);
	return err;
}

/* Gives back what nic_swiotlb_fill() took. May sleep. */
void nic_swiotlb_release(struct nic_device *nic)
{
	guard(mutex)(&nic_bounce_lock);
	if (nic->bounce)
		nic_bounce_free(&nic->pdev->dev, nic->bounce);
	nic->bounce = NULL;
}

bool nic_swiotlb_filled(struct nic_device *nic)
{
	guard(mutex)(&nic_bounce_lock);
	return nic->bounce;
}
