/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: registrations that don't fail for want of memory.
 *
 * Who registers memory in order to write dirty pages back can't wait for memory to become free: a
 * registration that needs some could be what has to happen first. Such a consumer reserves what its
 * regions need when it opens a domain, of its own:
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
 * @reserve: Reserve what @count regions of up to @pages pages each need, in as many segments at
 *	most. From then on such regions are made of what was reserved, whoever registers them, as
 *	long as fewer than @count of these are open; in a domain with KFI_MR_ENDPOINT only where the
 *	task is freeing memory (PF_MEMALLOC), or no other memory could be had. What was reserved is
 *	given back when the domain is closed.
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
