/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: the DMA extension, of every provider whose device does DMA.
 *
 * kfi_mr_regsgl() takes a scatterlist that is mapped for the domain's device. This extension maps
 * one without the consumer knowing the device:
 *
 *	void *p;
 *
 *	rc = kfi_open_ops(&domain->fid, KFI_DMA_OPS_1, 0, &p, NULL);
 *	ops = p;
 *	n = ops->map_sg(&domain->fid, sgl, nents, DMA_BIDIRECTIONAL);
 *	rc = kfi_mr_regsgl(domain, sgl, n, access, 0, 0, 0, &mr, NULL);
 *	...
 *	kfi_close(&mr->fid);
 *	ops->unmap_sg(&domain->fid, sgl, nents, DMA_BIDIRECTIONAL);
 */
#ifndef _KFI_DMA_EXT_H_
#define _KFI_DMA_EXT_H_

#include <linux/dma-direction.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

#include "kfabric.h"

/* The extension's name, for kfi_open_ops() on a domain's fid. */
#define KFI_DMA_OPS_1	"kfi_dma_ops_v1"

/**
 * struct kfi_dma_ops - Map scatterlists for a domain's device.
 * @size: Size of this table in bytes, as its provider was built.
 * @map_sg: Map the @nents entries of @sgl for DMA in direction @dir. The direction must go with
 *	the later registration: DMA_TO_DEVICE for memory that is only read (KFI_REMOTE_READ,
 *	KFI_SEND, KFI_WRITE), DMA_FROM_DEVICE for memory that is only written (KFI_REMOTE_WRITE,
 *	KFI_RECV, KFI_READ), otherwise DMA_BIDIRECTIONAL.
 *	Process context; may sleep.
 *	Returns how many entries the mapping has, 1 to @nents, which is the count for
 *	kfi_mr_regsgl(); or
 *	-KFI_EINVAL (@domain_fid isn't a domain, @sgl is NULL, @nents is below 1, or @dir is
 *	unknown),
 *	-KFI_EIO (the memory can't be mapped, or not coherently; or out of memory),
 *	-KFI_ENODEV (the device is gone), or
 *	-KFI_ENOSYS (the provider has no device that does DMA; then the extension can't be
 *	opened).
 * @unmap_sg: Undo @map_sg, with its arguments: @nents is what was mapped, not what was returned.
 *	The regions on the list must be closed before. Does nothing once the device is gone and its
 *	removal callbacks have returned, so that clean-up code needn't ask.
 *	Process context; may sleep.
 * @sync_sg_for_cpu: Hand the mapped memory to the CPU, before it reads what the device has written.
 *	Arguments as for @unmap_sg. Process context; may sleep.
 * @sync_sg_for_device: Hand the mapped memory back to the device, after the CPU has written to it.
 *	Arguments as for @unmap_sg. Process context; may sleep.
 */
struct kfi_dma_ops {
	size_t	size;
	int	(*map_sg)(struct kfid *domain_fid, struct scatterlist *sgl, int nents,
			  enum dma_data_direction dir);
	void	(*unmap_sg)(struct kfid *domain_fid, struct scatterlist *sgl, int nents,
			    enum dma_data_direction dir);
	void	(*sync_sg_for_cpu)(struct kfid *domain_fid, struct scatterlist *sgl, int nents,
				   enum dma_data_direction dir);
	void	(*sync_sg_for_device)(struct kfid *domain_fid, struct scatterlist *sgl, int nents,
				      enum dma_data_direction dir);
};

#endif /* _KFI_DMA_EXT_H_ */
