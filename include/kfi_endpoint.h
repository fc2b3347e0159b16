/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: endpoints and messages.
 *
 * Data transfer calls, here and in kfi_rma.h, kfi_tagged.h and kfi_atomic.h, queue an operation and
 * return; that it has ended is told by the completion queue or counter bound to the endpoint. One
 * for which the call has returned 0 ends exactly once; of any other nothing is told.
 */
#ifndef _KFI_ENDPOINT_H_
#define _KFI_ENDPOINT_H_

#include "kfabric.h"
#include "kfi_domain.h"

/**
 * struct kfi_msg - A message, for kfi_sendmsg() and kfi_recvmsg().
 * @type: The type of the list.
 * @msg_iov: The list, for KFI_KVEC.
 * @msg_biov: The list, for KFI_BVEC.
 * @msg_sgl: The list, for KFI_SGL; DMA-mapped for the domain's device.
 * @desc: Descriptors of the local memory, one for each segment; or NULL.
 * @iov_count: Length of the list, in segments.
 * @addr: The peer; ignored by a connected endpoint.
 * @context: Given back with the completion.
 * @data: Remote CQ data, for KFI_REMOTE_CQ_DATA; no more bytes than cq_data_size.
 */
struct kfi_msg {
	enum kfi_iov_type	type;
	union {
		const struct kvec		*msg_iov;
		const struct bio_vec		*msg_biov;
		const struct scatterlist	*msg_sgl;
	};
	void			**desc;
	size_t			iov_count;
	kfi_addr_t		addr;
	void			*context;
	u64			data;
};

/* Levels of options. */
enum {
	KFI_OPT_ENDPOINT
};

/* Options of KFI_OPT_ENDPOINT. */
enum {
	KFI_OPT_MIN_MULTI_RECV,		/* size_t: when a KFI_MULTI_RECV buffer counts as full */
	KFI_OPT_CM_DATA_SIZE,		/* size_t: room for private data when connecting */

	/* This project's own: unsigned int, to be set before connecting. */
	KFI_OPT_CONNECT_TIMEOUT = 0x10000,	/* ms: until connecting is given up */
	KFI_OPT_STALL_TIMEOUT,			/* ms: until a connection that is stuck is; 0: never */
	KFI_OPT_RNR_DELAY			/* us: until a message without a receive is repeated */
};

/**
 * struct kfi_ops_ep - The operations of an endpoint.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @cancel: See kfi_cancel().
 * @getopt: See kfi_getopt().
 * @setopt: See kfi_setopt().
 * @tx_ctx: See kfi_tx_context().
 * @rx_ctx: See kfi_rx_context().
 * @rx_size_left: See kfi_rx_size_left().
 * @tx_size_left: See kfi_tx_size_left().
 */
struct kfi_ops_ep {
	size_t	size;
	ssize_t	(*cancel)(struct kfid *fid, void *context);
	int	(*getopt)(struct kfid *fid, int level, int optname, void *optval, size_t *optlen);
	int	(*setopt)(struct kfid *fid, int level, int optname, const void *optval,
			  size_t optlen);
	int	(*tx_ctx)(struct kfid_ep *sep, int index, struct kfi_tx_attr *attr,
			  struct kfid_ep **tx_ep, void *context);
	int	(*rx_ctx)(struct kfid_ep *sep, int index, struct kfi_rx_attr *attr,
			  struct kfid_ep **rx_ep, void *context);
	ssize_t	(*rx_size_left)(struct kfid_ep *ep);
	ssize_t	(*tx_size_left)(struct kfid_ep *ep);
};

/**
 * struct kfi_ops_msg - The message calls of an endpoint.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @recv: See kfi_recv().
 * @recvv: See kfi_recvv().
 * @recvbv: See kfi_recvbv().
 * @recvmsg: See kfi_recvmsg().
 * @send: See kfi_send().
 * @sendv: See kfi_sendv().
 * @sendbv: See kfi_sendbv().
 * @sendmsg: See kfi_sendmsg().
 * @inject: See kfi_inject().
 * @senddata: See kfi_senddata().
 * @injectdata: See kfi_injectdata().
 * @recvsgl: See kfi_recvsgl().
 * @sendsgl: See kfi_sendsgl().
 */
struct kfi_ops_msg {
	size_t	size;
	ssize_t	(*recv)(struct kfid_ep *ep, void *buf, size_t len, void *desc, kfi_addr_t src_addr,
			void *context);
	ssize_t	(*recvv)(struct kfid_ep *ep, const struct kvec *iov, void **desc, size_t count,
			 kfi_addr_t src_addr, void *context);
	ssize_t	(*recvbv)(struct kfid_ep *ep, const struct bio_vec *biov, void **desc, size_t count,
			  kfi_addr_t src_addr, void *context);
	ssize_t	(*recvmsg)(struct kfid_ep *ep, const struct kfi_msg *msg, u64 flags);
	ssize_t	(*send)(struct kfid_ep *ep, const void *buf, size_t len, void *desc,
			kfi_addr_t dest_addr, void *context);
	ssize_t	(*sendv)(struct kfid_ep *ep, const struct kvec *iov, void **desc, size_t count,
			 kfi_addr_t dest_addr, void *context);
	ssize_t	(*sendbv)(struct kfid_ep *ep, const struct bio_vec *biov, void **desc, size_t count,
			  kfi_addr_t dest_addr, void *context);
	ssize_t	(*sendmsg)(struct kfid_ep *ep, const struct kfi_msg *msg, u64 flags);
	ssize_t	(*inject)(struct kfid_ep *ep, const void *buf, size_t len, kfi_addr_t dest_addr);
	ssize_t	(*senddata)(struct kfid_ep *ep, const void *buf, size_t len, void *desc, u64 data,
			    kfi_addr_t dest_addr, void *context);
	ssize_t	(*injectdata)(struct kfid_ep *ep, const void *buf, size_t len, u64 data,
			      kfi_addr_t dest_addr);
	ssize_t	(*recvsgl)(struct kfid_ep *ep, const struct scatterlist *sgl, void **desc,
			   size_t count, kfi_addr_t src_addr, void *context);
	ssize_t	(*sendsgl)(struct kfid_ep *ep, const struct scatterlist *sgl, void **desc,
			   size_t count, kfi_addr_t dest_addr, void *context);
};

struct kfi_ops_atomic;
struct kfi_ops_cm;
struct kfi_ops_rma;
struct kfi_ops_tagged;

/**
 * struct kfid_ep - An endpoint.
 * @fid: The header that every object begins with.
 * @ops: Operations of an endpoint.
 * @cm: Connection calls, or NULL.
 * @msg: Message calls, or NULL.
 * @rma: RMA calls, or NULL.
 * @tagged: Tagged message calls, or NULL.
 * @atomic: Atomic calls, or NULL.
 *
 * Binding, enabling and setting options may replace the tables, so callers keep them apart from all
 * other calls.
 */
struct kfid_ep {
	struct kfid		fid;
	struct kfi_ops_ep	*ops;
	struct kfi_ops_cm	*cm;
	struct kfi_ops_msg	*msg;
	struct kfi_ops_rma	*rma;
	struct kfi_ops_tagged	*tagged;
	struct kfi_ops_atomic	*atomic;
};

/**
 * struct kfid_pep - A passive endpoint.
 * @fid: The header that every object begins with.
 * @ops: Operations of an endpoint.
 * @cm: Connection calls, or NULL.
 */
struct kfid_pep {
	struct kfid		fid;
	struct kfi_ops_ep	*ops;
	struct kfi_ops_cm	*cm;
};

/**
 * struct kfid_stx - A transmit context that endpoints share.
 * @fid: The header that every object begins with.
 * @ops: Operations of an endpoint.
 */
struct kfid_stx {
	struct kfid		fid;
	struct kfi_ops_ep	*ops;
};

/**
 * kfi_passive_ep() - Open a passive endpoint, which listens for connections.
 * @fabric: The fabric.
 * @info: Its description: one that kfi_getinfo() gave, with a src_addr. A copy is made.
 * @pep: Where to put the endpoint; close it with kfi_close().
 * @context: The consumer's own, kept in the endpoint's fid.
 *
 * kfi_control() with KFI_BACKLOG, before kfi_listen(), sets how many requests may wait for an
 * answer: 1 to 1024, otherwise 64. kfi_close() rejects those that nobody has answered.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@pep NULL:
 *
 * * -KFI_EINVAL: @pep, @fabric or @info is NULL.
 * * -KFI_ENODATA: ep_attr->type is neither KFI_EP_MSG nor KFI_EP_UNSPEC.
 * * -KFI_EINVAL: src_addr is too short, or neither IPv4 nor IPv6.
 * * -KFI_ENOSYS: the provider has no passive endpoints.
 * * -KFI_ENODEV: the device is gone.
 * * -KFI_EINVAL: there is no src_addr.
 * * -KFI_ENOMEM: out of memory.
 */
static inline int kfi_passive_ep(struct kfid_fabric *fabric, struct kfi_info *info,
				 struct kfid_pep **pep, void *context)
{
	return __kfi_open(pep, fabric, ops, passive_ep, fabric, info, pep, context);
}

/**
 * kfi_endpoint() - Open an endpoint.
 * @domain: The domain.
 * @info: Its description: one that kfi_getinfo() gave.
 * @ep: Where to put the endpoint; close it with kfi_close().
 * @context: The consumer's own, kept in the endpoint's fid.
 *
 * An endpoint of type KFI_EP_MSG is connected to a peer, see kfi_cm.h. With the info of the event
 * KFI_CONNREQ, this call takes the request, and the endpoint is to answer it. An endpoint of type
 * KFI_EP_RDM transfers nothing with a provider written in Rust: all calls for that return
 * -KFI_ENOSYS. Memory regions can be bound to it (KFI_MR_ENDPOINT). Without a request to answer,
 * KFI_EP_UNSPEC is the same as KFI_EP_RDM, if the provider has any. The authorization key is that of
 * @info->ep_attr or else the domain's.
 *
 * kfi_close() of an endpoint ends its connection and waits until all that was posted has ended. It
 * shuts out peers from the regions that are bound to it, for good. The regions stay open.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@ep NULL:
 *
 * * -KFI_EINVAL: @ep, @domain or @info is NULL, or @domain is no domain.
 * * -KFI_ENOSYS: the provider has no endpoints, or no bare ones and ep_attr->type is unspecified.
 * * -KFI_ENODATA: the provider has none of that type.
 * * -KFI_EINVAL: auth_key_size isn't 0 and auth_key is NULL, or keys are known and it is above 256.
 * * -KFI_EOPNOTSUPP: there is a key, and the provider knows none.
 * * -KFI_EINVAL: a bare endpoint with a handle.
 * * -KFI_EBADFLAGS: op_flags that no transfer of that direction can have.
 * * -KFI_ENODATA: a limit or size is above the provider's; KFI_SHARED_CONTEXT without
 *   max_ep_srx_ctx; the provider has no such traffic class.
 * * -KFI_EINVAL: src_addr or dest_addr is too short, or neither IPv4 nor IPv6.
 * * -KFI_EINVAL: handle is no waiting request, or another provider's or (over "verbs") device's.
 * * -KFI_ENODEV: the provider is being unloaded, or the device is gone.
 * * -KFI_ENOSPC: the device has no region left.
 * * -KFI_ENOMEM: out of memory.
 */
static inline int kfi_endpoint(struct kfid_domain *domain, struct kfi_info *info,
			       struct kfid_ep **ep, void *context)
{
	return __kfi_open(ep, domain, ops, endpoint, domain, info, ep, context);
}

/**
 * kfi_scalable_ep() - Open a scalable endpoint, which has several contexts.
 * @domain: The domain.
 * @info: Its description: one that kfi_getinfo() gave.
 * @sep: Where to put the endpoint; close it with kfi_close().
 * @context: The consumer's own, kept in the endpoint's fid.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@sep NULL: -KFI_EINVAL if @domain or @sep is NULL, -KFI_ENOMEM, or
 * -KFI_ENOSYS.
 */
static inline int kfi_scalable_ep(struct kfid_domain *domain, struct kfi_info *info,
				  struct kfid_ep **sep, void *context)
{
	return __kfi_open(sep, domain, ops, scalable_ep, domain, info, sep, context);
}

/**
 * kfi_ep_bind() - Bind a queue, a counter or a shared receive context to an endpoint.
 * @ep: The endpoint, not enabled yet.
 * @bfid: Fid of what to bind.
 * @flags: Its use. For an event queue or a shared receive context: 0. For a completion queue:
 *	KFI_TRANSMIT, KFI_RECV or both, and KFI_SELECTIVE_COMPLETION if only requests with
 *	KFI_COMPLETION are to be reported. For a counter: one or more of KFI_TRANSMIT, KFI_RECV,
 *	KFI_READ and KFI_WRITE.
 *
 * kfi_close() of a queue or a counter unbinds it from the endpoint, which stays open. A shared
 * receive context can't be closed while an endpoint is bound to it (-KFI_EBUSY).
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @ep or @bfid is NULL.
 * * -KFI_ENOSYS: a bare endpoint.
 * * -KFI_EOPBADSTATE: the endpoint is enabled.
 * * -KFI_EINVAL: @bfid can't be bound to @ep; with KFI_SHARED_CONTEXT: a KFI_RECV counter; without
 *   it: a context.
 * * -KFI_EBADFLAGS: @flags are wrong for @bfid.
 * * -KFI_EINVAL: something is bound for that, or @bfid is of another domain or fabric.
 * * -KFI_ENODEV: a context: the device is gone.
 */
static inline int kfi_ep_bind(struct kfid_ep *ep, struct kfid *bfid, u64 flags)
{
	return __kfi_call(ep, fid.ops, bind, &ep->fid, bfid, flags);
}

/**
 * kfi_pep_bind() - Bind an event queue to a passive endpoint.
 * @pep: The endpoint, not listening yet.
 * @bfid: Fid of an event queue of the same fabric.
 * @flags: None yet, 0.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @pep or @bfid is NULL, or @bfid is no event queue.
 * * -KFI_EOPBADSTATE: the endpoint listens.
 * * -KFI_EBADFLAGS: @flags is not 0.
 * * -KFI_EINVAL: @bfid is of another fabric, or a queue is bound.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_pep_bind(struct kfid_pep *pep, struct kfid *bfid, u64 flags)
{
	return __kfi_call(pep, fid.ops, bind, &pep->fid, bfid, flags);
}

/**
 * kfi_scalable_ep_bind() - Bind an address vector to a scalable endpoint.
 * @sep: The endpoint, not enabled yet.
 * @bfid: Fid of what to bind.
 * @flags: None yet, 0.
 *
 * Context: Process context; may sleep.
 * Return: 0, -KFI_EINVAL if @sep is NULL or they can't be bound to each other, -KFI_EBADFLAGS, or
 * -KFI_ENOSYS.
 */
static inline int kfi_scalable_ep_bind(struct kfid_ep *sep, struct kfid *bfid, u64 flags)
{
	return __kfi_call(sep, fid.ops, bind, &sep->fid, bfid, flags);
}

/**
 * kfi_enable() - Make an endpoint ready for data transfers.
 * @ep: The endpoint, all that it needs bound to it: of a connected one an event queue, and a
 *	completion queue for each direction.
 *
 * From here on receives may be posted. No peer comes in by an endpoint that isn't enabled.
 * kfi_connect() and kfi_accept() enable an endpoint that isn't.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @ep is NULL.
 * * -KFI_ENOEQ: no event queue is bound, or it was closed.
 * * -KFI_ENOCQ: no completion queue is bound for a direction.
 * * -KFI_EINVAL: the endpoint shares, and has no context, or another queue than the context.
 * * -KFI_EOPBADSTATE: the endpoint is enabled.
 * * -KFI_ENODEV: the device is gone.
 * * -KFI_ENOSPC: the device has no queue pair left.
 * * -KFI_ENOMEM: out of memory.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_enable(struct kfid_ep *ep)
{
	return __kfi_call(ep, fid.ops, control, &ep->fid, KFI_ENABLE, NULL);
}

/*
 * The endpoint that @fid is the beginning of, or NULL if it is none. A passive endpoint counts
 * as one: it begins as one does, as far as its table of connection operations.
 */
static inline struct kfid_ep *__kfi_to_ep(struct kfid *fid)
{
	if (IS_ERR_OR_NULL(fid))
		return NULL;

	switch (fid->fclass) {
	case KFI_CLASS_EP:
	case KFI_CLASS_SEP:
	case KFI_CLASS_RX_CTX:
	case KFI_CLASS_SRX_CTX:
	case KFI_CLASS_TX_CTX:
	case KFI_CLASS_PEP:
		return container_of(fid, struct kfid_ep, fid);
	default:
		return NULL;
	}
}

/**
 * kfi_cancel() - Cancel a receive that no message has come for.
 * @fid: The endpoint's fid.
 * @context: The context given with the receive. Where several have it, the oldest one is cancelled.
 *
 * It ends with KFI_ECANCELED. That may call the handler of its completion queue before kfi_cancel()
 * has returned, so the caller must not hold a lock that the handler takes.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @fid is NULL or no endpoint's.
 * * -KFI_ENOSYS: a bare or passive endpoint, or the provider is "verbs".
 * * -KFI_ENOENT: no receive with @context waits for a message.
 */
static inline ssize_t kfi_cancel(struct kfid *fid, void *context)
{
	return __kfi_call_of("not an endpoint", __kfi_to_ep(fid), ops, cancel, fid, context);
}

/**
 * kfi_setopt() - Set an option of an endpoint.
 * @fid: The endpoint's fid.
 * @level: KFI_OPT_ENDPOINT.
 * @optname: Which option.
 * @optval: Its value.
 * @optlen: Length of the value, in bytes.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @fid is NULL or no endpoint's.
 * * -KFI_ENOSYS: a bare or passive endpoint.
 * * -KFI_ENOPROTOOPT: @level isn't KFI_OPT_ENDPOINT, or the provider hasn't got the option.
 * * -KFI_EINVAL: @optval is NULL, @optlen or the value is wrong, or the option is read-only.
 * * -KFI_EOPBADSTATE: a connection was tried.
 */
static inline int kfi_setopt(struct kfid *fid, int level, int optname, const void *optval,
			     size_t optlen)
{
	return __kfi_call_of("not an endpoint", __kfi_to_ep(fid), ops, setopt, fid, level, optname, optval, optlen);
}

/**
 * kfi_getopt() - Get an option of an endpoint.
 * @fid: The endpoint's fid.
 * @level: KFI_OPT_ENDPOINT.
 * @optname: Which option.
 * @optval: Where to put its value.
 * @optlen: In: room at @optval, in bytes. Out: length of the value.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @fid is NULL or no endpoint's.
 * * -KFI_ENOSYS: a bare or passive endpoint.
 * * -KFI_ENOPROTOOPT: @level isn't KFI_OPT_ENDPOINT, or the provider hasn't got the option.
 * * -KFI_EINVAL: @optlen is NULL, or @optval is and *@optlen suffices.
 * * -KFI_ETOOSMALL: *@optlen is too short; it becomes the length.
 */
static inline int kfi_getopt(struct kfid *fid, int level, int optname, void *optval, size_t *optlen)
{
	return __kfi_call_of("not an endpoint", __kfi_to_ep(fid), ops, getopt, fid, level, optname, optval, optlen);
}

/**
 * kfi_ep_alias() - Make a second handle of an endpoint, with operation flags of its own.
 * @ep: The endpoint.
 * @alias_ep: Where to put the alias; close it with kfi_close().
 * @flags: Operation flags of the alias.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@alias_ep NULL: -KFI_EINVAL if @ep or @alias_ep is NULL, or -KFI_ENOSYS.
 */
static inline int kfi_ep_alias(struct kfid_ep *ep, struct kfid_ep **alias_ep, u64 flags)
{
	struct kfid *fid;
	int rc;

	if (!alias_ep)
		return kfi_refuse(-KFI_EINVAL, "output pointer is NULL");

	rc = kfi_alias(IS_ERR_OR_NULL(ep) ? NULL : &ep->fid, &fid, flags);
	*alias_ep = rc ? NULL : container_of(fid, struct kfid_ep, fid);
	return rc;
}

/**
 * kfi_rx_size_left() - How many receives there is room for.
 * @ep: The endpoint.
 *
 * As many can be posted without -KFI_EAGAIN, if nobody else posts to this endpoint or to another of
 * its completion queue. The endpoint's queue and its completion queue have space for them. There
 * may be space for more.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: How many, or:
 *
 * * -KFI_EINVAL: @ep is NULL or no endpoint.
 * * -KFI_ENOSYS: a bare or passive endpoint; kfi_tx_size_left() of a context.
 * * -KFI_EOPBADSTATE: the endpoint isn't enabled.
 */
static inline ssize_t kfi_rx_size_left(struct kfid_ep *ep)
{
	return __kfi_call(ep, ops, rx_size_left, ep);
}

/**
 * kfi_tx_size_left() - How many transfers to the peer there is room for.
 * @ep: The endpoint.
 *
 * As kfi_rx_size_left(). A transfer with several pieces of the peer's memory takes a place for each.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: How many, or an errno, see kfi_rx_size_left().
 */
static inline ssize_t kfi_tx_size_left(struct kfid_ep *ep)
{
	return __kfi_call(ep, ops, tx_size_left, ep);
}

/**
 * kfi_tx_context() - Open a transmit context of a scalable endpoint.
 * @ep: The scalable endpoint.
 * @index: Which context, from 0.
 * @attr: Its attributes, or NULL.
 * @tx_ep: Where to put the context; close it with kfi_close().
 * @context: The consumer's own, kept in the context's fid.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@tx_ep NULL: -KFI_EINVAL if @ep or @tx_ep is NULL, -KFI_ENOMEM, or
 * -KFI_ENOSYS.
 */
static inline int kfi_tx_context(struct kfid_ep *ep, int index, struct kfi_tx_attr *attr,
				 struct kfid_ep **tx_ep, void *context)
{
	return __kfi_open(tx_ep, ep, ops, tx_ctx, ep, index, attr, tx_ep, context);
}

/**
 * kfi_rx_context() - Open a receive context of a scalable endpoint.
 * @ep: The scalable endpoint.
 * @index: Which context, from 0.
 * @attr: Its attributes, or NULL.
 * @rx_ep: Where to put the context; close it with kfi_close().
 * @context: The consumer's own, kept in the context's fid.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@rx_ep NULL: -KFI_EINVAL if @ep or @rx_ep is NULL, -KFI_ENOMEM, or
 * -KFI_ENOSYS.
 */
static inline int kfi_rx_context(struct kfid_ep *ep, int index, struct kfi_rx_attr *attr,
				 struct kfid_ep **rx_ep, void *context)
{
	return __kfi_open(rx_ep, ep, ops, rx_ctx, ep, index, attr, rx_ep, context);
}

/**
 * kfi_stx_context() - Open a transmit context that endpoints share.
 * @domain: The domain.
 * @attr: Its attributes, or NULL.
 * @stx: Where to put the context; close it with kfi_close().
 * @context: The consumer's own, kept in the context's fid.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@stx NULL: -KFI_EINVAL if @domain or @stx is NULL, -KFI_ENOMEM, or
 * -KFI_ENOSYS.
 */
static inline int kfi_stx_context(struct kfid_domain *domain, struct kfi_tx_attr *attr,
				  struct kfid_stx **stx, void *context)
{
	return __kfi_open(stx, domain, ops, stx_ctx, domain, attr, stx, context);
}

/**
 * kfi_srx_context() - Open a receive context that endpoints share.
 * @domain: The domain.
 * @attr: Its attributes: size, iov_limit, op_flags; or NULL.
 * @rx_ep: Where to put the context; close it with kfi_close().
 * @context: The consumer's own, kept in the context's fid.
 *
 * The caller binds a completion queue to it with KFI_RECV, by kfi_ep_bind(). Then it posts receives
 * on it as on an endpoint. An endpoint takes its receives from it if it was opened with
 * KFI_SHARED_CONTEXT as @rx_ctx_cnt of its struct kfi_ep_attr. The context must be bound to it
 * before it is enabled.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@rx_ep NULL:
 *
 * * -KFI_EINVAL: @rx_ep or @domain is NULL, or @domain is no domain.
 * * -KFI_ENOSYS: the provider has no shared receive contexts.
 * * -KFI_EBADFLAGS: op_flags that no receive can have.
 * * -KFI_ENODATA: iov_limit or size is above the provider's limit.
 * * -KFI_ENODEV: the device is gone.
 * * -KFI_ENOSPC: the device has no shared receive queue left.
 * * -KFI_ENOMEM: out of memory.
 */
static inline int kfi_srx_context(struct kfid_domain *domain, struct kfi_rx_attr *attr,
				  struct kfid_ep **rx_ep, void *context)
{
	return __kfi_open(rx_ep, domain, ops, srx_ctx, domain, attr, rx_ep, context);
}

/**
 * kfi_recv() - Wait for a message in a buffer.
 * @ep: The endpoint.
 * @buf: Where to put the message.
 * @len: Room there, in bytes.
 * @desc: Descriptor of the local memory, from kfi_mr_desc(); NULL if the provider needs none.
 * @src_addr: Only from this peer, KFI_ADDR_UNSPEC for any; ignored by a connected endpoint.
 * @context: Given back with the completion.
 *
 * The buffer belongs to the provider until the operation has ended.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @ep is NULL or an error pointer.
 * * -KFI_ENOSYS: a bare endpoint.
 * * -KFI_EINVAL: the buffer, the list or @msg is NULL and not empty; msg->type is unknown.
 * * -KFI_EOPNOTSUPP: the endpoint shares a context.
 * * -KFI_ENOCQ: a context without a completion queue.
 * * -KFI_ENODEV: the device of a context is gone.
 * * -KFI_EOPBADSTATE: the endpoint isn't enabled.
 * * -KFI_ENOTCONN: there is no connection; kfi_recv(): it has ended.
 * * -KFI_EBADFLAGS: an unknown flag.
 * * -KFI_EINVAL: more segments than iov_limit, an empty or unmapped one, or a sum that overflows.
 * * -KFI_EINVAL: a descriptor that is no region's of the domain.
 * * -KFI_EACCES: the region may not be written to.
 * * -KFI_EINVAL: a segment outside its region.
 * * -KFI_EMSGSIZE: more bytes than max_msg_size.
 * * -KFI_EFAULT: memory that may not be registered, or NULL.
 * * -KFI_E2BIG: too many pieces.
 * * -KFI_EAGAIN: the completion queue or the endpoint's queue is full.
 * * -KFI_ENOMEM: over "verbs": out of memory.
 * * -KFI_EIO: over "verbs": the device refuses the request.
 */
static inline ssize_t kfi_recv(struct kfid_ep *ep, void *buf, size_t len, void *desc,
			       kfi_addr_t src_addr, void *context)
{
	return __kfi_call(ep, msg, recv, ep, buf, len, desc, src_addr, context);
}

/**
 * kfi_recvv() - Wait for a message in a list of buffers.
 * @ep: The endpoint.
 * @iov: Where to put the message, as a list of buffers.
 * @desc: Their descriptors, as many as there are in the list; NULL if the provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit; 0 is an empty message.
 * @src_addr: Only from this peer, KFI_ADDR_UNSPEC for any; ignored by a connected endpoint.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_recv().
 */
static inline ssize_t kfi_recvv(struct kfid_ep *ep, const struct kvec *iov, void **desc,
				size_t count, kfi_addr_t src_addr, void *context)
{
	return __kfi_call(ep, msg, recvv, ep, iov, desc, count, src_addr, context);
}

/**
 * kfi_recvbv() - Wait for a message in a list of pieces of pages.
 * @ep: The endpoint.
 * @biov: Where to put the message, as a list of pieces of pages.
 * @desc: Their descriptors, as many as there are in the list; NULL if the provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit; 0 is an empty message.
 * @src_addr: Only from this peer, KFI_ADDR_UNSPEC for any; ignored by a connected endpoint.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_recv().
 */
static inline ssize_t kfi_recvbv(struct kfid_ep *ep, const struct bio_vec *biov, void **desc,
				 size_t count, kfi_addr_t src_addr, void *context)
{
	return __kfi_call(ep, msg, recvbv, ep, biov, desc, count, src_addr, context);
}

/**
 * kfi_recvsgl() - Wait for a message in a scatterlist.
 * @ep: The endpoint.
 * @sgl: Where to put the message, as a list that is DMA-mapped for the domain's device.
 * @desc: Their descriptors, as many as there are in the list; NULL if the provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit; 0 is an empty message.
 * @src_addr: Only from this peer, KFI_ADDR_UNSPEC for any; ignored by a connected endpoint.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_recv().
 */
static inline ssize_t kfi_recvsgl(struct kfid_ep *ep, const struct scatterlist *sgl, void **desc,
				  size_t count, kfi_addr_t src_addr, void *context)
{
	return __kfi_call(ep, msg, recvsgl, ep, sgl, desc, count, src_addr, context);
}

/**
 * kfi_recvmsg() - Wait for a message, described by a structure.
 * @ep: The endpoint.
 * @msg: Where to put the message.
 * @flags: KFI_COMPLETION, KFI_MORE, or 0.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_recv().
 */
static inline ssize_t kfi_recvmsg(struct kfid_ep *ep, const struct kfi_msg *msg, u64 flags)
{
	return __kfi_call(ep, msg, recvmsg, ep, msg, flags);
}

/**
 * kfi_send() - Send a message.
 * @ep: The endpoint.
 * @buf: The buffer.
 * @len: Its length, in bytes.
 * @desc: Descriptor of the local memory, from kfi_mr_desc(); NULL if the provider needs none.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @context: Given back with the completion.
 *
 * The buffer belongs to the provider until the operation has ended.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @ep is NULL or an error pointer.
 * * -KFI_ENOSYS: a bare endpoint.
 * * -KFI_EINVAL: the buffer, the list or @msg is NULL and not empty; msg->type is unknown.
 * * -KFI_ENOSYS: a shared receive context.
 * * -KFI_EOPBADSTATE: the endpoint isn't enabled.
 * * -KFI_ENOTCONN: there is no connection; kfi_recv(): it has ended.
 * * -KFI_EBADFLAGS: an unknown flag.
 * * -KFI_EINVAL: @data exceeds cq_data_size.
 * * -KFI_EINVAL: more segments than iov_limit, an empty or unmapped one, or a sum that overflows.
 * * -KFI_EINVAL: a descriptor that is no region's of the domain.
 * * -KFI_EINVAL: a segment outside its region.
 * * -KFI_EMSGSIZE: more bytes than max_msg_size.
 * * -KFI_EFAULT: memory that may not be registered, or NULL.
 * * -KFI_E2BIG: too many pieces.
 * * -KFI_EMSGSIZE: more injected bytes than inject_size.
 * * -KFI_EFAULT: no memory at injected bytes.
 * * -KFI_EOPNOTSUPP: an injected scatterlist that is mapped for hardware.
 * * -KFI_EAGAIN: the completion queue or the endpoint's queue is full.
 * * -KFI_ENOKEY: over "verbs": a key for KFI_INVALIDATE exceeds 32 bits.
 * * -KFI_ENOMEM: over "verbs": out of memory.
 * * -KFI_EIO: over "verbs": the device refuses the request.
 */
static inline ssize_t kfi_send(struct kfid_ep *ep, const void *buf, size_t len, void *desc,
			       kfi_addr_t dest_addr, void *context)
{
	return __kfi_call(ep, msg, send, ep, buf, len, desc, dest_addr, context);
}

/**
 * kfi_sendv() - Send a list of buffers as one message.
 * @ep: The endpoint.
 * @iov: The list of buffers.
 * @desc: Their descriptors, as many as there are in the list; NULL if the provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit; 0 is an empty message.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_send().
 */
static inline ssize_t kfi_sendv(struct kfid_ep *ep, const struct kvec *iov, void **desc,
				size_t count, kfi_addr_t dest_addr, void *context)
{
	return __kfi_call(ep, msg, sendv, ep, iov, desc, count, dest_addr, context);
}

/**
 * kfi_sendbv() - Send a list of pieces of pages as one message.
 * @ep: The endpoint.
 * @biov: The list of pieces of pages.
 * @desc: Their descriptors, as many as there are in the list; NULL if the provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit; 0 is an empty message.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_send().
 */
static inline ssize_t kfi_sendbv(struct kfid_ep *ep, const struct bio_vec *biov, void **desc,
				 size_t count, kfi_addr_t dest_addr, void *context)
{
	return __kfi_call(ep, msg, sendbv, ep, biov, desc, count, dest_addr, context);
}

/**
 * kfi_sendsgl() - Send a scatterlist as one message.
 * @ep: The endpoint.
 * @sgl: The list, DMA-mapped for the domain's device.
 * @desc: Their descriptors, as many as there are in the list; NULL if the provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit; 0 is an empty message.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_send().
 */
static inline ssize_t kfi_sendsgl(struct kfid_ep *ep, const struct scatterlist *sgl, void **desc,
				  size_t count, kfi_addr_t dest_addr, void *context)
{
	return __kfi_call(ep, msg, sendsgl, ep, sgl, desc, count, dest_addr, context);
}

/**
 * kfi_sendmsg() - Send a message, described by a structure.
 * @ep: The endpoint.
 * @msg: The message and where it goes.
 * @flags: KFI_COMPLETION, KFI_MORE, KFI_INJECT, KFI_FENCE, KFI_REMOTE_CQ_DATA or KFI_INVALIDATE,
 *	KFI_INJECT_COMPLETE, KFI_TRANSMIT_COMPLETE, KFI_DELIVERY_COMPLETE, or 0.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_send().
 */
static inline ssize_t kfi_sendmsg(struct kfid_ep *ep, const struct kfi_msg *msg, u64 flags)
{
	return __kfi_call(ep, msg, sendmsg, ep, msg, flags);
}

/**
 * kfi_inject() - Send a short message without a completion.
 * @ep: The endpoint.
 * @buf: The buffer.
 * @len: Its length, in bytes; at most the endpoint's inject_size.
 * @dest_addr: The peer; ignored by a connected endpoint.
 *
 * The buffer is the caller's again on return. Only a failure is reported, with the context NULL.
 * The buffer may be at any kernel address, on the stack too. The call copies it.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_send().
 */
static inline ssize_t kfi_inject(struct kfid_ep *ep, const void *buf, size_t len,
				 kfi_addr_t dest_addr)
{
	return __kfi_call(ep, msg, inject, ep, buf, len, dest_addr);
}

/**
 * kfi_senddata() - Send a message with remote CQ data.
 * @ep: The endpoint.
 * @buf: The buffer.
 * @len: Its length, in bytes.
 * @desc: Descriptor of the local memory, from kfi_mr_desc(); NULL if the provider needs none.
 * @data: Goes to the peer with its completion; no more bytes than cq_data_size.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_send().
 */
static inline ssize_t kfi_senddata(struct kfid_ep *ep, const void *buf, size_t len, void *desc,
				   u64 data, kfi_addr_t dest_addr, void *context)
{
	return __kfi_call(ep, msg, senddata, ep, buf, len, desc, data, dest_addr, context);
}

/**
 * kfi_injectdata() - Send a short message with remote CQ data and without a completion.
 * @ep: The endpoint.
 * @buf: The buffer.
 * @len: Its length, in bytes; at most the endpoint's inject_size.
 * @data: Goes to the peer with its completion; no more bytes than cq_data_size.
 * @dest_addr: The peer; ignored by a connected endpoint.
 *
 * The buffer is the caller's again on return. Only a failure is reported, with the context NULL.
 * The buffer may be at any kernel address, on the stack too. The call copies it.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_send().
 */
static inline ssize_t kfi_injectdata(struct kfid_ep *ep, const void *buf, size_t len, u64 data,
				     kfi_addr_t dest_addr)
{
	return __kfi_call(ep, msg, injectdata, ep, buf, len, data, dest_addr);
}

#endif /* _KFI_ENDPOINT_H_ */
