/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: many regions in one go.
 *
 * Storage has many buffers to register for a request, and many regions to close after it.  Each
 * alone waits for the device; together they wait once:
 *
 *	struct kfi_batch_ops *ops;
 *	void *p;
 *
 *	rc = kfi_open_ops(&domain->fid, KFI_BATCH_OPS_1, 0, &p, NULL);
 *	ops = p;
 *	rc = ops->regattr_many(&domain->fid, attrs, 32, 0, KFI_BATCH_ALL_OR_NONE, mrs, NULL);
 *	...
 *	rc = ops->close_many(mrs, 32, NULL);
 *
 * kfi_mr_batch(3) describes the operations.
 */
#ifndef _KFI_BATCH_EXT_H_
#define _KFI_BATCH_EXT_H_

#include <linux/bits.h>
#include <linux/types.h>

#include "kfi_domain.h"

/* The extension's name, for kfi_open_ops() on a domain's fid. */
#define KFI_BATCH_OPS_1	"kfi_batch_ops_v1"

/* If one can't be registered, none is: those that were are closed again. */
#define KFI_BATCH_ALL_OR_NONE	(1ULL << 0)

/**
 * struct kfi_closing - The handler that is told when @close_later has closed a region.
 * @done: Called once, with what kfi_close() has to say: 0; or an errno, with which the region may still be
 *	open, as kfi_close() says. Process context, on a workqueue of the core: it may sleep, but others
 *	of the domain wait for it. The structure is the caller's again.
 * @mr: The core's.
 * @next: The core's.
 */
struct kfi_closing {
	void			(*done)(struct kfi_closing *closing, int err);
	struct kfid_mr		*mr;
	struct kfi_closing	*next;
};

/**
 * struct kfi_batch_ops - Register and close many regions in one go.
 * @size: Size of this table in bytes, as its provider was built.
 * @regattr_many: Register @count regions, each as kfi_mr_regattr() does with its element of @attrs
 *	and with @flags. @batch_flags is 0 or KFI_BATCH_ALL_OR_NONE. @mrs and @errs have room for
 *	@count; @errs may be NULL. For each registered region, @mrs gets the region and @errs
 *	gets 0. For each other one, @mrs gets NULL, and @errs gets the errno that
 *	kfi_mr_regattr() has for it. If none was to be registered because of another one's
 *	error, @errs gets -KFI_ECANCELED. It gets -KFI_ENOTRECOVERABLE if the device won't let
 *	go of the memory again, which must never be freed.
 *	Process context; sleeps until the device is done with all of them.
 *	Returns 0 if all are registered; else the first errno of the above that isn't
 *	-KFI_ECANCELED; or, with nothing registered:
 *	-KFI_EINVAL (@domain_fid isn't a domain of a provider written in Rust, @attrs or @mrs is NULL),
 *	-KFI_EBADFLAGS (@batch_flags), or
 *	-KFI_ENOMEM.
 * @close_many: Close @count regions, each as kfi_close() does; NULL is none. They needn't be of one
 *	domain. @errs has room for @count, or is NULL; for each that was closed it gets 0, for each
 *	other the errno that kfi_close() has for it. A region that is there several times is closed once;
 *	the other elements get -KFI_EINVAL.
 *	Process context; sleeps until no peer can reach the memory of any that was closed.
 *	Returns 0 if all are closed, else the first errno of the above; or, with nothing closed,
 *	-KFI_EINVAL (@mrs is NULL).
 * @close_later: Leave a region to be closed, together with others that are by then; @closing stays until its
 *	@done is called. Any context. Where the region isn't one, @done is called at once. kfi_close() of the
 *	domain waits until those that were called have returned, and so isn't for them to call; and so does the
 *	unloading of the module that they are in. Behind the end of tables of older providers.
 * @close_now: Close a region, if there is nothing to wait for: it is bound to an endpoint, and the
 *	invalidation of its key by the peer is enough there. Any context; for use in a handler that
 *	reports the invalidation.
 *	Returns 0: closed, as by kfi_close(). With the region open, to be closed by the others:
 *	-KFI_EAGAIN (there is something to be waited for), or
 *	-KFI_EINVAL (@mr isn't a region, or another call is closing it).
 *	Behind the end of tables of older providers.
 */
struct kfi_batch_ops {
	size_t	size;
	int	(*regattr_many)(struct kfid *domain_fid, const struct kfi_mr_attr *attrs,
				size_t count, u64 flags, u64 batch_flags, struct kfid_mr **mrs,
				int *errs);
	int	(*close_many)(struct kfid_mr *const *mrs, size_t count, int *errs);
	void	(*close_later)(struct kfid_mr *mr, struct kfi_closing *closing);
	int	(*close_now)(struct kfid_mr *mr);
};

#endif /* _KFI_BATCH_EXT_H_ */
