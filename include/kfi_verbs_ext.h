/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: the verbs provider's extension of a domain, for consumers that use RDMA verbs of their
 * own next to kfabric: queue pairs on the domain's protection domain, and the lkeys of its regions.
 */
#ifndef _KFI_VERBS_EXT_H_
#define _KFI_VERBS_EXT_H_

#include <linux/types.h>

#include "kfabric.h"

struct ib_device;
struct ib_pd;

/*
 * The prov_errno of a connection that a peer or its connection manager has rejected is this and the
 * connection manager's reason (enum ib_cm_rej_reason); over iWARP it is the negative of an errno.
 */
#define KFI_VERBS_REJECTED	0x10000

/* The extension's name, for kfi_open_ops() on the fid of a domain of the provider "verbs". */
#define KFI_VERBS_DOM_OPS_1	"verbs_dom_ops_v1"

/**
 * struct kfi_verbs_dom_ops - What lies beneath a domain of the verbs provider.
 * @get_ib_device: The domain's RDMA device. Process context; may sleep. Returns NULL if the fid
 *	isn't a domain of this provider or the device is gone. Valid until the domain is closed or
 *	the removal callback has returned, whichever comes first.
 * @get_pd: The domain's protection domain. Process context; may sleep.
 *	Returns NULL and is valid as for @get_ib_device. A consumer that uses it must have
 *	registered a callback with @on_removal before; one that hasn't is warned about in the log,
 *	and device removal waits for it.
 * @on_removal: Register what to do when the device goes away: call cb(arg). A domain can have
 *	several callbacks, known by @arg; cb NULL takes back the one that was registered with @arg.
 *	Process context; may sleep. Taking it back waits for a callback that is running, except in a
 *	removal callback, where that is -KFI_EBUSY.
 *	Returns 0; or
 *	-KFI_EINVAL (@fid is not a domain of this provider),
 *	-KFI_EBUSY (a callback with this @arg is registered; or the callback to remove is running,
 *	and the caller is in a removal callback),
 *	-KFI_ENODEV (the device is gone or going; the callback is not registered, and will not be
 *	called), or
 *	-KFI_ENOMEM (out of memory).
 * @get_lkey: The lkey of a region. The consumer may use it in local segments of its own work
 *	requests, as long as the region is open and its device there. Any context; doesn't sleep.
 *	Returns 0 if the region isn't one of this provider, or consists of several regions of the
 *	device.
 *
 * Each callback runs at most once, in process context, and may sleep. By then all domains on the
 * device refuse new work with -KFI_ENODEV, and all that was under way on them has ended. Callbacks
 * of a domain are called in the order in which they were registered, and those of a device one
 * after the other. Before a callback returns, it must destroy every queue pair and memory region
 * that the consumer has on the protection domain. It must also unmap the lists that the consumer
 * has mapped for the device, after a kfi_close() of the kfabric regions on them. Nothing of the
 * device may be used afterwards. Other kfabric regions may be closed there or at any time later. So
 * may other domains, whose callbacks are not called then.
 *
 * Nothing that is called in a removal callback waits for a removal callback: kfi_close() of a domain
 * whose callbacks are being called, so of its own too, is -KFI_EBUSY there, and is for later.
 * Elsewhere it waits until they have returned. A callback must not wait for someone who does.
 */
struct kfi_verbs_dom_ops {
	struct ib_device *(*get_ib_device)(struct kfid *fid);
	struct ib_pd *(*get_pd)(struct kfid *fid);
	int	(*on_removal)(struct kfid *fid, void (*cb)(void *arg), void *arg);
	u32	(*get_lkey)(struct kfid_mr *mr);
};

#endif /* _KFI_VERBS_EXT_H_ */
