/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: registrations that don't fail for want of memory.
 *
 * A consumer that registers memory in order to write dirty pages back can't wait for memory to
 * become free. The registration itself could be what must happen first. So the consumer opens a
 * domain of its own, and reserves the needs of its regions:
 *
 *	struct kfi_reserve_ops *ops;
 *	void *p;
 *
 *	rc = kfi_open_ops(&domain->fid, KFI_RESERVE_OPS_1, 0, &p, NULL);
 *	ops = p;
 *	rc = ops->reserve(&domain->fid, 64, 256);
 *
 * kfi_domain(3) says what is promised then, and what isn't.
 */
#ifndef _KFI_RESERVE_EXT_H_
#define _KFI_RESERVE_EXT_H_

#include <linux/types.h>

#include "kfabric.h"

/* The extension's name, for kfi_open_ops() on a domain's fid. */
#define KFI_RESERVE_OPS_1	"kfi_reserve_ops_v1"

/**
 * struct kfi_reserve_ops - Reserve what regions are made of.
 * @size: Size of this table in bytes, as its provider was built.
 * @reserve: Reserve the needs of @count regions of up to @pages pages each, in as many segments at
 *	most. From then on the reserve serves every registration of up to that size without gaps,
 *	while fewer than @count of its regions are open. In a domain with KFI_MR_ENDPOINT, it does
 *	so only if the task is freeing memory (PF_MEMALLOC), or no other memory could be had. The
 *	reserve is given back when the domain is closed.
 *	Process context; may sleep.
 *	Returns 0, or
 *	-KFI_EINVAL (@domain_fid isn't a domain, or @count or @pages is 0),
 *	-KFI_E2BIG (no region of the domain can have @pages pages),
 *	-KFI_ENOSPC (mr_cnt of the domain is less than @count, or the device has fewer regions
 *	left),
 *	-KFI_EBUSY (the domain has a reserve),
 *	-KFI_ENOMEM (out of memory),
 *	-KFI_ENODEV (the device is gone), or
 *	-KFI_ENOSYS (the provider has no reserves, like loop).
 */
struct kfi_reserve_ops {
	size_t	size;
	int	(*reserve)(struct kfid *domain_fid, size_t count, size_t pages);
};

#endif /* _KFI_RESERVE_EXT_H_ */
