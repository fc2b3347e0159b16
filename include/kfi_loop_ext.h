/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: the loopback provider's extension of a domain. It is the peer: it does what a peer would
 * do to the regions of a domain, in the same machine and without a network.
 */
#ifndef _KFI_LOOP_EXT_H_
#define _KFI_LOOP_EXT_H_

#include <linux/types.h>

#include "kfabric.h"

/* The extension's name, for kfi_open_ops() on the fid of a domain of the provider "loop". */
#define KFI_LOOP_OPS_1	"kfi_loop_ops_v1"

/**
 * struct kfi_loop_ops - Be a peer of a domain of the loopback provider.
 * @size: Size of this table in bytes, as its provider was built.
 * @write: RMA write: put the @len bytes at @buf where @key and @addr lead to.
 *	@target is a domain of this provider, or an endpoint opened in one. A region that is bound to
 *	an endpoint is reached through that endpoint only, all others through both.
 *	@initiator says who the peer is: an endpoint or a domain of this provider, whose authorization
 *	key it uses, and whose mapped raw keys @key can be one of. NULL is somebody without any.
 *	@addr counts from the region's iova under KFI_MR_VIRT_ADDR, otherwise from 0.
 *	When it returns 0 all bytes are there, and the region's counter has counted. It is one access,
 *	but no atomic one: others may see a part of it.
 *	Process context; may sleep.
 *	Returns 0, or with no byte changed, unless a region of several pieces was closed or refreshed
 *	in the middle of it:
 *	-KFI_EINVAL (@target or @initiator is no object of this provider, or @buf is NULL and
 *	@len isn't 0);
 *	-KFI_EACCES (the peer may not: there is no such key, the region isn't enabled or is being
 *	refreshed, it was registered without KFI_REMOTE_WRITE or with another authorization key, it
 *	is bound to another endpoint, or the bytes are not all in it).
 *	A peer is not told which; the event kfi:kfi_refused is.
 * @read: RMA read: get the @len bytes that @key and @addr lead to into @buf. All else is as for
 *	@write, with KFI_REMOTE_READ; reads are not counted.
 */
struct kfi_loop_ops {
	size_t	size;
	int	(*write)(struct kfid *target, struct kfid *initiator, u64 addr, u64 key,
			 const void *buf, size_t len);
	int	(*read)(struct kfid *target, struct kfid *initiator, u64 addr, u64 key,
			void *buf, size_t len);
};

#endif /* _KFI_LOOP_EXT_H_ */
