/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations of an RDMA device that fail, wait, get lost or come late when a test wants them to.
 *
 * Drivers hardly ever fail, and their work takes its time. To test a failure, or an event during
 * the work, wrappers replace the operations of one device. They do what the test has planned, and
 * then call the driver. It works on any kernel and relies on &ib_device.ops only.
 *
 * One device at a time is wrapped. Each operation has a plan of its own; kfi_inject_start() clears
 * all. A call is counted first; it then waits, if the operation is held; then, by what is planned
 * at that time, it fails, gets lost, or goes to the driver, at once or later. So a test can hold a call and say
 * afterwards how it is to end.
 */
#ifndef KFI_INJECT_H
#define KFI_INJECT_H

#include <linux/types.h>

#include <rdma/ib_user_ioctl_verbs.h>

struct ib_device;

/**
 * enum kfi_inject_op - what can be made to fail or to wait
 * @KFI_INJECT_POST_REG: ib_post_send() of a list whose first request is an IB_WR_REG_MR.
 * @KFI_INJECT_POST_INV: The same with IB_WR_LOCAL_INV.
 * @KFI_INJECT_POST_NEXT: A request behind the first one of a list that one of the above begins. Each is
 *	a call; the driver gets those before one that fails.
 * @KFI_INJECT_POST_TO_PEER: ib_post_send() of anything else: messages, reads, writes, atomics, and
 *	the request that a drain posts. Each request of a list is a call; those before one that fails
 *	are posted. Not what the connection manager posts.
 * @KFI_INJECT_POST_RECV: ib_post_recv().
 * @KFI_INJECT_POST_SRQ_RECV: ib_post_srq_recv().
 * @KFI_INJECT_ALLOC_MR: ib_alloc_mr().
 * @KFI_INJECT_DEREG_MR: ib_dereg_mr().
 * @KFI_INJECT_MAP_MR_SG: ib_map_mr_sg().
 * @KFI_INJECT_CREATE_QP: ib_create_qp().
 * @KFI_INJECT_MODIFY_QP: ib_modify_qp().
 * @KFI_INJECT_DESTROY_QP: ib_destroy_qp().
 * @KFI_INJECT_CREATE_CQ: ib_alloc_cq() and ib_create_cq().
 * @KFI_INJECT_CREATE_SRQ: ib_create_srq().
 * @KFI_INJECT_ALLOC_PD: ib_alloc_pd().
 * @KFI_INJECT_DEALLOC_PD: ib_dealloc_pd().
 * @KFI_INJECT_POLL_CQ: ib_poll_cq(), but that of softirq.
 * @KFI_INJECT_NOTIFY_CQ: ib_req_notify_cq() of softirq, after it has polled; it doesn't fail.
 * @KFI_INJECT_DESTROY_CQ: ib_free_cq() and ib_destroy_cq(); which is not to fail, either.
 * @KFI_INJECT_DRAIN: The driver's own part of ib_drain_sq() and ib_drain_rq(), if it has one, or after
 *	kfi_inject_own_drain(). One that fails has drained nothing, and says nothing of it, as drivers do.
 * @KFI_INJECT_OPS: How many there are.
 */
enum kfi_inject_op {
	KFI_INJECT_POST_REG,
	KFI_INJECT_POST_INV,
	KFI_INJECT_POST_NEXT,
	KFI_INJECT_POST_TO_PEER,
	KFI_INJECT_POST_RECV,
	KFI_INJECT_POST_SRQ_RECV,
	KFI_INJECT_ALLOC_MR,
	KFI_INJECT_DEREG_MR,
	KFI_INJECT_MAP_MR_SG,
	KFI_INJECT_CREATE_QP,
	KFI_INJECT_MODIFY_QP,
	KFI_INJECT_DESTROY_QP,
	KFI_INJECT_CREATE_CQ,
	KFI_INJECT_CREATE_SRQ,
	KFI_INJECT_ALLOC_PD,
	KFI_INJECT_DEALLOC_PD,
	KFI_INJECT_POLL_CQ,
	KFI_INJECT_NOTIFY_CQ,
	KFI_INJECT_DESTROY_CQ,
	KFI_INJECT_DRAIN,
	KFI_INJECT_OPS
};

/**
 * kfi_inject_start() - Wrap the operations of a device.
 * @dev: The device.
 *
 * This module can't be unloaded until kfi_inject_stop(). The device may go away meanwhile; what it
 * is in memory stays until then.
 *
 * Context: May sleep.
 * Return: 0, or -EBUSY if a device is wrapped already.
 */
int kfi_inject_start(struct ib_device *dev);

/**
 * kfi_inject_stop() - Give a device its own operations back.
 * @dev: The device. Nothing happens if it isn't wrapped.
 *
 * Lets go what is held, and waits until no wrapper is running.
 *
 * Context: May sleep.
 */
void kfi_inject_stop(struct ib_device *dev);

/**
 * kfi_inject_driver() - Let the device be of another driver.
 * @id: The value of &ib_device_ops.driver_id until kfi_inject_stop().
 *
 * For consumers that ask. The wrapped driver does what it does. rxe takes no packets from a network meanwhile, since
 * its receive path looks for a device by this number; packets of a device to itself go another way.
 *
 * Context: May sleep.
 */
void kfi_inject_driver(enum rdma_driver_id id);

/**
 * kfi_inject_pages() - Let the device allow longer regions.
 * @pages: The value of &ib_device_attr.max_fast_reg_page_list_len until kfi_inject_stop(). It must
 *	be no more than the driver's: rxe takes any number.
 *
 * Context: May sleep.
 */
void kfi_inject_pages(u32 pages);

/**
 * kfi_inject_fail() - Let calls fail.
 * @op: The operation.
 * @err: The negative errno that they return.
 * @skip: The next @skip calls are spared.
 * @count: The @count calls after them fail; UINT_MAX: all. 0: none fails any more.
 *
 * The driver gets to know nothing of a call that fails.
 *
 * Context: Any.
 */
void kfi_inject_fail(enum kfi_inject_op op, int err, unsigned int skip, unsigned int count);

/**
 * kfi_inject_lose() - Let posted requests get lost.
 * @op: KFI_INJECT_POST_REG or KFI_INJECT_POST_INV; or KFI_INJECT_POST_TO_PEER, if the requests are posted one by one;
 * or KFI_INJECT_POLL_CQ, whose calls find nothing then.
 * @skip: The next @skip calls are spared.
 * @count: The requests of the @count calls after them get lost; UINT_MAX: of all. 0: of none any
 * more.
 *
 * The call succeeds, and that is all: the request is neither carried out nor completed, also not by
 * a queue pair that is put into error. Nothing of it is referred to when the call has returned.
 * Completions that polls don't find stay there for others.
 *
 * Context: Any.
 */
void kfi_inject_lose(enum kfi_inject_op op, unsigned int skip, unsigned int count);

/**
 * kfi_inject_spoil() - Let the device fail posted requests.
 * @op: KFI_INJECT_POST_REG or KFI_INJECT_POST_INV.
 * @skip: The next @skip calls are spared.
 * @count: The first requests of the @count calls after them fail; UINT_MAX: of all. 0: of none any
 * more.
 *
 * The driver accepts the request. The device fails it, because it names a key that no region has.
 *
 * Context: Any.
 */
void kfi_inject_spoil(enum kfi_inject_op op, unsigned int skip, unsigned int count);

/**
 * kfi_inject_defer() - Let posted requests reach the driver late.
 * @op: KFI_INJECT_POST_REG or KFI_INJECT_POST_INV.
 * @skip: The next @skip calls are spared.
 * @count: The requests of the @count calls after them are late; UINT_MAX: of all. 0: of none any
 * more.
 *
 * The call succeeds. The driver gets the requests with the next successful ib_modify_qp() of their queue
 * pair, before that returns: if it is the transition to the error state, they are flushed, in their order.
 * They are gone if the queue pair is destroyed before that, or at kfi_inject_stop().
 *
 * Context: Any.
 */
void kfi_inject_defer(enum kfi_inject_op op, unsigned int skip, unsigned int count);

/**
 * kfi_inject_own_drain() - Give the device a drain of its own.
 *
 * It drains nothing, and only does what is planned for KFI_INJECT_DRAIN. To be called after
 * kfi_inject_start(), which ends with kfi_inject_stop().
 *
 * Context: May sleep.
 */
void kfi_inject_own_drain(void);

/**
 * kfi_inject_hold() - Let calls wait until kfi_inject_release().
 * @op: The operation.
 *
 * A call waits for %KFI_INJECT_SECONDS at most, so that a test that went wrong ends. One that must
 * not sleep can't be held; it warns and goes on.
 *
 * Context: Any.
 */
void kfi_inject_hold(enum kfi_inject_op op);

/* How long a call is held at most, and how long a test waits for one at most. */
#define KFI_INJECT_SECONDS	600

/**
 * kfi_inject_wait_held() - Wait until a call is held.
 * @op: The operation.
 *
 * Context: May sleep.
 * Return: Whether one is; false if none came for %KFI_INJECT_SECONDS.
 */
bool kfi_inject_wait_held(enum kfi_inject_op op);

/**
 * kfi_inject_release() - Let all calls go that are held, and hold none any more.
 * @op: The operation.
 *
 * Context: Any.
 */
void kfi_inject_release(enum kfi_inject_op op);

/**
 * kfi_inject_calls() - How many calls there were since kfi_inject_start().
 * @op: The operation.
 *
 * Context: Any.
 */
unsigned int kfi_inject_calls(enum kfi_inject_op op);

/**
 * struct kfi_inject_device - how another device takes queue pairs and requests
 * @max_inline: It refuses (-EINVAL) a queue pair with more bytes of inline data, as irdma does.
 * @gives_inline: It writes back at most this number of bytes of inline data, as mlx4 and pvrdma do.
 * @counts_receives: It refuses (-EINVAL) a queue pair with a receive queue of no requests or no
 *	segments, as hns, erdma and ionic do. It also refuses one that asks for a receive queue
 *	although it shares one, as mlx4 does.
 * @remote_sinks: It reads into regions only that peers may write to, as iWARP hardware does.
 */
struct kfi_inject_device {
	u32 max_inline;
	u32 gives_inline;
	bool counts_receives;
	bool remote_sinks;
};

/**
 * kfi_inject_device() - Have queue pairs and requests taken as another device does.
 * @as: How; NULL: as the driver does.
 *
 * Existing queue pairs keep their attributes.
 *
 * Context: Any.
 */
void kfi_inject_device(const struct kfi_inject_device *as);

/**
 * kfi_inject_misread() - Count the requests that the device would have misread since kfi_inject_start().
 *
 * A request with more inline data than the device copies counts: the device would take the address
 * of the data for a DMA address. So does a read into memory that no peer may write to. So does a
 * registration by a key that a region had before: a late peer can write by it. The driver gets them
 * all.
 *
 * Context: Any.
 */
unsigned int kfi_inject_misread(void);

/**
 * kfi_inject_writable() - How many regions peers may write to.
 *
 * The regions that were registered, and not invalidated, while @kfi_inject_device.remote_sinks was
 * set.
 *
 * Context: Any.
 */
unsigned int kfi_inject_writable(void);

/**
 * kfi_inject_linger() - Let softirq take its time when it has polled a completion queue.
 * @ms: How many milliseconds pass before it asks for the next interrupt; 0: none any more.
 *
 * The RDMA core counts its poll as over then, but uses the queue once more.
 *
 * Context: Any.
 */
void kfi_inject_linger(unsigned int ms);

/**
 * kfi_inject_destroyed() - How many completion queues were destroyed before softirq was done.
 *
 * The regions that were destroyed while it lingered since kfi_inject_linger().
 *
 * Context: Any.
 */
unsigned int kfi_inject_destroyed(void);

/**
 * kfi_inject_mend() - Give back what was given up because its destruction was made to fail.
 *
 * Destroys the leaked objects: the regions, and the queue pairs with their completion queues, whose
 * destruction has failed since kfi_inject_start() and not been tried again with success. It also
 * destroys the protection domains that they were on, if nothing else is on them. A region whose
 * registration got lost counts as one of these, until it is destroyed: so that must not be after
 * kfi_inject_stop(). For callers that leak all of that when it fails. Nothing is wrapped, or is to
 * fail, at that time, and the device is still registered.
 *
 * Context: May sleep.
 */
void kfi_inject_mend(void);

/**
 * kfi_inject_wait_returned() - Wait until calls have returned.
 * @op: The operation.
 * @count: How many, since kfi_inject_start().
 *
 * Context: May sleep.
 * Return: Whether they have; false if they hadn't after %KFI_INJECT_SECONDS.
 */
bool kfi_inject_wait_returned(enum kfi_inject_op op, unsigned int count);

#endif /* KFI_INJECT_H */
