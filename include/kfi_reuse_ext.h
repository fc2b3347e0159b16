/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: regions that are filled with memory in any context, without an allocation.
 *
 * A storage driver registers the memory of a request where it may neither sleep nor allocate.  So
 * the driver opens a region for each of its requests beforehand, and fills the region with the
 * memory of one request after the other:
 *
 *	struct kfi_reuse_ops *ops;
 *	struct kfid_mr *mr;
 *	void *p;
 *
 *	rc = kfi_open_ops(&domain->fid, KFI_REUSE_OPS_1, 0, &p, NULL);
 *	ops = p;
 *	rc = ops->open(&domain->fid, ep, 257, &mr, NULL);
 *	...
 *	rc = ops->fill(mr, bvecs, count, KFI_REMOTE_WRITE, KFI_MORE);
 *	rc = kfi_send(ep, command_with(kfi_mr_key(mr), mr->iova), ...);
 *	...
 *	rc = ops->empty_now(mr);
 *	if (rc == -KFI_EAGAIN)
 *		rc = ops->empty(mr);
 *	...
 *	rc = kfi_close(&mr->fid);
 *
 * kfi_mr_reuse(3) describes the operations.
 */
#ifndef _KFI_REUSE_EXT_H_
#define _KFI_REUSE_EXT_H_

#include <linux/bvec.h>
#include <linux/types.h>

#include "kfi_domain.h"
#include "kfi_endpoint.h"

/* The extension's name, for kfi_open_ops() on a domain's fid. */
#define KFI_REUSE_OPS_1	"kfi_reuse_ops_v1"

/**
 * struct kfi_reuse_ops - Regions that are filled with memory and emptied again and again.
 * @size: Size of this table in bytes, as its provider was built.
 * @open: Opens an empty region for at most @pages pages of memory, bound to @ep, which must be
 *	enabled. @mr gets the region, whose context is @context. The call allocates all that
 *	@fill needs. kfi_close() empties the region and closes it.
 *	Process context; may sleep.
 *	Returns 0, or
 *	-KFI_EINVAL (@domain_fid isn't a domain, @ep isn't an endpoint of it, @mr is NULL, or
 *	@pages is 0),
 *	-KFI_E2BIG (no region of the domain can have @pages pages),
 *	-KFI_ENOSPC (mr_cnt regions are open, or the device has no more),
 *	-KFI_ENOTCONN (@ep isn't enabled),
 *	-KFI_ENOMEM (out of memory),
 *	-KFI_ENODEV (the device is gone), or
 *	-KFI_ENOSYS (the provider has no regions of this kind, or the domain was opened without
 *	KFI_MR_ENDPOINT).
 * @fill: Registers the memory of @count bio_vecs as the memory of an empty region, with the rights
 *	@access. The key and the address of the first byte, kfi_mr_key() and iova, are valid when
 *	this returns. The peer may use the key once it has received a message that was posted on
 *	the endpoint after this call. @flags is 0 or KFI_MORE. With KFI_MORE, the caller must post
 *	something on the endpoint at once, or call @flush. The memory must stay until the region is
 *	empty, the bio_vecs until this returns.
 *	Any context; neither sleeps nor allocates. One call at a time for a region.
 *	Returns 0; or, with the region as it was,
 *	-KFI_EINVAL (@mr isn't a region of this kind; no memory; unknown rights; or a gap between
 *	bio_vecs: each but the first must begin, and each but the last must end, at a page boundary),
 *	-KFI_EBADFLAGS (@flags),
 *	-KFI_EFAULT (memory that may not be registered),
 *	-KFI_E2BIG (more pages than the region was opened for),
 *	-KFI_EOPBADSTATE (the region isn't empty, or another call uses it),
 *	-KFI_EAGAIN (the send queue is full, or a work item is replacing the region's keys, which are
 *	used up: try again),
 *	-KFI_ENOMEM (no memory for the mapping, or for the work request of the driver),
 *	-KFI_ENOTCONN (the endpoint isn't connected any more, or not yet),
 *	-KFI_EIO (the memory can't be mapped for the device, or the device refuses the request),
 *	-KFI_ENODEV (the device is gone), or
 *	-KFI_ENOTRECOVERABLE (the device keeps memory of an earlier @fill).
 * @empty_now: Empties a region if that needs no wait: a request that was posted after the
 *	registration has completed, and the peer has invalidated the key, which is enough on this
 *	device.
 *	Any context; for a handler that reports the invalidation.
 *	Returns 0: no peer can reach the memory, which is the caller's again; or, with the region
 *	as it was,
 *	-KFI_EAGAIN (the region needs a wait, or another call uses the region), or
 *	-KFI_EINVAL (@mr isn't a region of this kind).
 * @empty: Empties a region. If the peer has not invalidated the key, this ends the key. Does
 *	nothing to an empty region.
 *	Process context; sleeps until the device has let go of the memory.
 *	Returns 0: no peer can reach the memory, which is the caller's again; or
 *	-KFI_EINVAL (@mr isn't a region of this kind), or
 *	-KFI_ENOTRECOVERABLE (the device won't let go of the memory, which must never be freed; the
 *	region can only be closed).
 * @flush: Posts the requests of an endpoint that wait for more (KFI_MORE).
 *	Any context.
 *	Returns 0, or
 *	-KFI_EINVAL (@ep isn't an endpoint),
 *	-KFI_ENOSYS (the endpoint transfers no data), or
 *	-KFI_ENOTCONN (the endpoint isn't connected any more, or not yet).
 */
struct kfi_reuse_ops {
	size_t	size;
	int	(*open)(struct kfid *domain_fid, struct kfid_ep *ep, size_t pages,
			struct kfid_mr **mr, void *context);
	int	(*fill)(struct kfid_mr *mr, const struct bio_vec *bvecs, size_t count, u64 access,
			u64 flags);
	int	(*empty_now)(struct kfid_mr *mr);
	int	(*empty)(struct kfid_mr *mr);
	int	(*flush)(struct kfid_ep *ep);
};

#endif /* _KFI_REUSE_EXT_H_ */
