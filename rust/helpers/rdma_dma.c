// SPDX-License-Identifier: GPL-2.0
/* Mappings, for the `rdma` crate. */
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/iommu-dma.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/swiotlb.h>

#include "rdma_helpers.h"

/*
 * A peer may write at any time while a region is registered. A mapping that needs copying or cache
 * maintenance would lose data: the attribute makes it fail.
 */
#ifndef DMA_ATTR_REQUIRE_COHERENT
#error "This kernel can't be told that a mapping must not be bounced"
#endif
#define MAP_ATTRS	DMA_ATTR_REQUIRE_COHERENT

/* Returns the facts about the mappings of a device. */
u32 rdma_helper_dma_facts(const struct ib_device *dev)
{
	struct device *dma = dev->dma_device;
	u32 facts = 0;

	if (!dma)
		return RDMA_HELPER_DMA_VIRTUAL;
	if (!dev_is_dma_coherent(dma))
		facts |= RDMA_HELPER_DMA_INCOHERENT;
	if (use_dma_iommu(dma))
		facts |= RDMA_HELPER_DMA_IOMMU;
	if (get_dma_ops(dma))
		facts |= RDMA_HELPER_DMA_OWN_OPS;
	if (is_swiotlb_force_bounce(dma))
		facts |= RDMA_HELPER_DMA_BOUNCES;
	return facts;
}

bool rdma_helper_peer_to_peer(struct ib_device *dev)
{
	return ib_dma_pci_p2p_dma_supported(dev);
}

int rdma_helper_dma_map_sg(struct ib_device *dev, struct scatterlist *sgl, int nents, u32 dir)
{
	return ib_dma_map_sg_attrs(dev, sgl, nents, dir, MAP_ATTRS);
}

void rdma_helper_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sgl, int nents,
			      u32 dir)
{
	ib_dma_unmap_sg_attrs(dev, sgl, nents, dir, MAP_ATTRS);
}

/*
 * Contiguous memory with pages, for as long as a request has it: nobody looks at it meanwhile, so it
 * may be bounced. Any context.
 */
bool rdma_helper_dma_map(struct ib_device *dev, u64 phys, size_t len, u32 dir, u64 *address)
{
	*address = ib_dma_map_page(dev, pfn_to_page(PHYS_PFN(phys)), offset_in_page(phys), len, dir);
	return !ib_dma_mapping_error(dev, *address);
}

void rdma_helper_dma_unmap(struct ib_device *dev, u64 address, size_t len, u32 dir)
{
	ib_dma_unmap_page(dev, address, len, dir);
}

/* Of memory in the linear map. */
u64 rdma_helper_physical_address(void *addr)
{
	return virt_to_phys(addr);
}

void rdma_helper_dma_sync_for_cpu(struct ib_device *dev, struct scatterlist *sgl, int nents,
				  u32 dir)
{
	if (!ib_uses_virt_dma(dev))
		dma_sync_sg_for_cpu(dev->dma_device, sgl, nents, dir);
}

void rdma_helper_dma_sync_for_device(struct ib_device *dev, struct scatterlist *sgl, int nents,
				     u32 dir)
{
	if (!ib_uses_virt_dma(dev))
		dma_sync_sg_for_device(dev->dma_device, sgl, nents, dir);
}
