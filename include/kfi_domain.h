/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: domains, memory regions and address vectors.
 *
 * A domain is the part of a device that objects are opened in. A memory region makes kernel memory
 * reachable by a peer that has its key; kfi_mr_reg() describes what all five registration calls
 * have in common.
 */
#ifndef _KFI_DOMAIN_H_
#define _KFI_DOMAIN_H_

#include <linux/bvec.h>
#include <linux/scatterlist.h>
#include <linux/uio.h>

#include "kfabric.h"
#include "kfi_eq.h"

/* For opening an address vector. */
#define KFI_SYMMETRIC		(1ULL << 59)

/* For inserting into an address vector. */
#define KFI_SYNC_ERR		(1ULL << 58)

/* For kfi_domain_bind(): report registrations to this event queue, and make them asynchronous. */
#define KFI_REG_MR		(1ULL << 59)

/**
 * struct kfi_av_attr - What an address vector should be.
 * @type: How peers are named.
 * @rx_ctx_bits: How many high bits of an address name a receive context, see kfi_rx_addr().
 * @count: How many addresses to expect.
 * @ep_per_node: How many endpoints a node has; 0 if not known.
 * @name: A name to share it by, or NULL.
 * @map_addr: Where the shared one should be mapped, or NULL.
 * @flags: KFI_EVENT, KFI_READ, KFI_SYMMETRIC.
 */
struct kfi_av_attr {
	enum kfi_av_type	type;
	int			rx_ctx_bits;
	size_t			count;
	size_t			ep_per_node;
	const char		*name;
	void			*map_addr;
	u64			flags;
};

/**
 * struct kfi_ops_av - The operations of an address vector.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @insert: See kfi_av_insert().
 * @insertsvc: See kfi_av_insertsvc().
 * @insertsym: See kfi_av_insertsym().
 * @remove: See kfi_av_remove().
 * @lookup: See kfi_av_lookup().
 * @straddr: See kfi_av_straddr().
 */
struct kfi_ops_av {
	size_t	size;
	int	(*insert)(struct kfid_av *av, const void *addr, size_t count,
			  kfi_addr_t *kfi_addr, u64 flags, void *context);
	int	(*insertsvc)(struct kfid_av *av, const char *node, const char *service,
			     kfi_addr_t *kfi_addr, u64 flags, void *context);
	int	(*insertsym)(struct kfid_av *av, const char *node, size_t nodecnt,
			     const char *service, size_t svccnt, kfi_addr_t *kfi_addr,
			     u64 flags, void *context);
	int	(*remove)(struct kfid_av *av, kfi_addr_t *kfi_addr, size_t count, u64 flags);
	int	(*lookup)(struct kfid_av *av, kfi_addr_t kfi_addr, void *addr, size_t *addrlen);
	const char *(*straddr)(struct kfid_av *av, const void *addr, char *buf, size_t *len);
};

/**
 * struct kfid_av - An address vector.
 * @fid: The header that every object begins with.
 * @ops: Operations of an address vector.
 */
struct kfid_av {
	struct kfid		fid;
	struct kfi_ops_av	*ops;
};

/**
 * struct kfid_mr - A memory region.
 * @fid: The header that every object begins with.
 * @mem_desc: Descriptor for local operations, see kfi_mr_desc().
 * @key: The key that a peer needs, see kfi_mr_key().
 * @iova: The address of the region's first byte for a peer, under KFI_MR_VIRT_ADDR. It is no
 *	address of the kernel's. Without that mode a peer counts from 0, and so does this field.
 */
struct kfid_mr {
	struct kfid		fid;
	void			*mem_desc;
	u64			key;
	u64			iova;
};

/**
 * struct kfi_mr_attr - A registration, for kfi_mr_regattr().
 * @type: The type of the list.
 * @mr_iov: The list, for KFI_KVEC.
 * @mr_biov: The list, for KFI_BVEC.
 * @mr_sgl: The list, for KFI_SGL; DMA-mapped for the domain's device.
 * @iov_count: Length of the list, in segments.
 * @access: The access rights, as for kfi_mr_reg().
 * @offset: Reserved, 0.
 * @requested_key: The key to have, where the provider doesn't choose keys.
 * @context: The consumer's own, kept in the region's fid.
 * @auth_key_size: Length of @auth_key, in bytes; 0 for none.
 * @auth_key: Authorization key, or NULL.
 */
struct kfi_mr_attr {
	enum kfi_iov_type	type;
	union {
		const struct kvec		*mr_iov;
		const struct bio_vec		*mr_biov;
		const struct scatterlist	*mr_sgl;
	};
	size_t			iov_count;
	u64			access;
	u64			offset;
	u64			requested_key;
	void			*context;
	size_t			auth_key_size;
	u8			*auth_key;
};

/**
 * struct kfi_mr_modify - The argument of KFI_REFRESH, see kfi_mr_refresh().
 * @flags: None yet, 0.
 * @attr: Which parts of the region: type, list and count; the rest is 0.
 */
struct kfi_mr_modify {
	u64			flags;
	struct kfi_mr_attr	attr;
};

/* Types of data for atomic operations. */
enum kfi_datatype {
	KFI_INT8,
	KFI_UINT8,
	KFI_INT16,
	KFI_UINT16,
	KFI_INT32,
	KFI_UINT32,
	KFI_INT64,
	KFI_UINT64,
	KFI_FLOAT,
	KFI_DOUBLE,
	KFI_FLOAT_COMPLEX,
	KFI_DOUBLE_COMPLEX,
	KFI_LONG_DOUBLE,
	KFI_LONG_DOUBLE_COMPLEX,
	KFI_DATATYPE_LAST
};

/* Atomic operations. */
enum kfi_op {
	KFI_MIN,
	KFI_MAX,
	KFI_SUM,
	KFI_PROD,
	KFI_LOR,
	KFI_LAND,
	KFI_BOR,
	KFI_BAND,
	KFI_LXOR,
	KFI_BXOR,
	KFI_ATOMIC_READ,
	KFI_ATOMIC_WRITE,
	KFI_CSWAP,
	KFI_CSWAP_NE,
	KFI_CSWAP_LE,
	KFI_CSWAP_LT,
	KFI_CSWAP_GE,
	KFI_CSWAP_GT,
	KFI_MSWAP,
	KFI_ATOMIC_OP_LAST
};

struct kfi_atomic_attr;

/**
 * struct kfi_ops_domain - The operations of a domain.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @av_open: See kfi_av_open().
 * @cq_open: See kfi_cq_open().
 * @endpoint: See kfi_endpoint().
 * @scalable_ep: See kfi_scalable_ep().
 * @cntr_open: See kfi_cntr_open().
 * @poll_open: See kfi_poll_open().
 * @stx_ctx: See kfi_stx_context().
 * @srx_ctx: See kfi_srx_context().
 * @query_atomic: See kfi_query_atomic().
 */
struct kfi_ops_domain {
	size_t	size;
	int	(*av_open)(struct kfid_domain *domain, struct kfi_av_attr *attr,
			   struct kfid_av **av, void *context);
	int	(*cq_open)(struct kfid_domain *domain, struct kfi_cq_attr *attr,
			   struct kfid_cq **cq, kfi_comp_handler comp_handler, void *context);
	int	(*endpoint)(struct kfid_domain *domain, struct kfi_info *info,
			    struct kfid_ep **ep, void *context);
	int	(*scalable_ep)(struct kfid_domain *domain, struct kfi_info *info,
			       struct kfid_ep **sep, void *context);
	int	(*cntr_open)(struct kfid_domain *domain, struct kfi_cntr_attr *attr,
			     struct kfid_cntr **cntr, void *context);
	int	(*poll_open)(struct kfid_domain *domain, struct kfi_poll_attr *attr,
			     struct kfid_poll **pollset);
	int	(*stx_ctx)(struct kfid_domain *domain, struct kfi_tx_attr *attr,
			   struct kfid_stx **stx, void *context);
	int	(*srx_ctx)(struct kfid_domain *domain, struct kfi_rx_attr *attr,
			   struct kfid_ep **rx_ep, void *context);
	int	(*query_atomic)(struct kfid_domain *domain, enum kfi_datatype datatype,
				enum kfi_op op, struct kfi_atomic_attr *attr, u64 flags);
};

/**
 * struct kfi_ops_mr - The registration calls of a domain.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @reg: See kfi_mr_reg().
 * @regv: See kfi_mr_regv().
 * @regbv: See kfi_mr_regbv().
 * @regattr: See kfi_mr_regattr().
 * @regsgl: See kfi_mr_regsgl().
 *
 * The first argument of each is the domain's fid. The inlines have checked that it is one, and that
 * mr isn't NULL; the rest is left to the operation.
 */
struct kfi_ops_mr {
	size_t	size;
	int	(*reg)(struct kfid *fid, const void *buf, size_t len, u64 access, u64 offset,
		       u64 requested_key, u64 flags, struct kfid_mr **mr, void *context);
	int	(*regv)(struct kfid *fid, const struct kvec *iov, size_t count, u64 access,
			u64 offset, u64 requested_key, u64 flags, struct kfid_mr **mr,
			void *context);
	int	(*regbv)(struct kfid *fid, const struct bio_vec *biov, size_t count, u64 access,
			 u64 offset, u64 requested_key, u64 flags, struct kfid_mr **mr,
			 void *context);
	int	(*regattr)(struct kfid *fid, const struct kfi_mr_attr *attr, u64 flags,
			   struct kfid_mr **mr);
	int	(*regsgl)(struct kfid *fid, const struct scatterlist *sgl, size_t count,
			  u64 access, u64 offset, u64 requested_key, u64 flags,
			  struct kfid_mr **mr, void *context);
};

/**
 * struct kfid_domain - A domain.
 * @fid: The header that every object begins with.
 * @ops: Operations of a domain.
 * @mr: Registration calls.
 */
struct kfid_domain {
	struct kfid		fid;
	struct kfi_ops_domain	*ops;
	struct kfi_ops_mr	*mr;
};

/**
 * kfi_domain() - Open a domain.
 * @fabric: The fabric that it belongs to.
 * @info: Which domain, and how: one that kfi_getinfo() gave.
 * @domain: Where to put the domain; close it with kfi_close().
 * @context: The consumer's own, kept in the domain's fid.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@domain NULL:
 *
 * * -KFI_EINVAL: @fabric is NULL or not a fabric; @info, its domain_attr or @domain is NULL.
 * * -KFI_EINVAL: domain_attr->auth_key_size isn't 0 and auth_key is NULL, or it is more than 256.
 * * -KFI_ENODATA: domain_attr->mr_mode lacks a bit that the provider requires, or mr_cnt or
 *   mr_iov_limit exceeds the limit of the domain.
 * * -KFI_EOPNOTSUPP: the provider does not support authorization keys.
 * * -KFI_ENODEV: domain_attr->name isn't a domain of this fabric, or the device is gone.
 * * -KFI_ENETDOWN: no port of the device is active.
 * * -KFI_EIO: the device refuses what the domain needs, or the test registration.
 * * -KFI_ENOMEM: out of memory.
 * * -KFI_ENOSYS: the provider is written in C and has no domains.
 */
static inline int kfi_domain(struct kfid_fabric *fabric, struct kfi_info *info,
			     struct kfid_domain **domain, void *context)
{
	return __kfi_open(domain, fabric, ops, domain, fabric, info, domain, context);
}

/**
 * kfi_domain_bind() - Bind an event queue to a domain.
 * @domain: The domain.
 * @fid: The event queue's fid.
 * @flags: KFI_REG_MR: from now on registrations are asynchronous and report to this queue.
 *
 * The binding lasts until the domain or the queue is closed. kfi_close() of the queue unbinds it.
 * After that, registrations are synchronous, and no other queue can be bound.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @domain or @fid is NULL; @fid is no event queue, or one of another fabric; a queue
 *   is, or was, bound to the domain.
 * * -KFI_EBADFLAGS: @flags is not KFI_REG_MR.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_domain_bind(struct kfid_domain *domain, struct kfid *fid, u64 flags)
{
	return __kfi_call(domain, fid.ops, bind, &domain->fid, fid, flags);
}

/**
 * kfi_cq_open() - Open a completion queue.
 * @domain: The domain, which can't be closed before it.
 * @attr: Its attributes; NULL stands for a structure of zeroes. Not needed after the call.
 * @cq: Where to put the queue; close it with kfi_close().
 * @comp_handler: Called when a completion comes after a read found the queue empty, or NULL.
 * @context: The consumer's own, kept in the queue's fid and given to @comp_handler.
 *
 * @comp_handler is called for the first completion, and for the next one after a call that reads has
 * returned -KFI_EAGAIN. Within @comp_handler, a read that returns fewer completions than it had room
 * for is enough. Other readers must go on until -KFI_EAGAIN, since a failure may follow. The handler
 * must read until the queue is empty, or have somebody read. Failures count as completions. The code
 * that completes the operation calls it: mostly in softirq, but also in an interrupt handler or in
 * a thread, for instance one that closes an endpoint. No call that posts ever calls it. It must not
 * sleep. There is one call at a time for each queue. Completions that come meanwhile are reported
 * by another call after it.
 *
 * It can't close its own queue (-KFI_EOPBADSTATE) and must not close anything else. When
 * kfi_close() of the queue has returned 0, it doesn't run and never will.
 *
 * The queue can't be closed (-KFI_EBUSY) while somebody waits for it. kfi_close() unbinds it from endpoints
 * and shared receive contexts: they stay open, and their completions are discarded.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@cq NULL:
 *
 * * -KFI_EINVAL: @cq or @domain is NULL, @domain is no domain, @attr is an error pointer, or size
 *   is above 65536.
 * * -KFI_EBADFLAGS: flags has a flag other than KFI_AFFINITY.
 * * -KFI_EINVAL: KFI_AFFINITY with a negative signaling_vector, or format is unknown.
 * * -KFI_ENOSYS: wait_obj is KFI_WAIT_SET.
 * * -KFI_EINVAL: wait_obj is unknown, or wait_cond is unknown without KFI_WAIT_NONE.
 * * -KFI_ENOSYS: the provider is written in C and has no completion queues.
 * * -KFI_ENOMEM: out of memory.
 */
static inline int kfi_cq_open(struct kfid_domain *domain, struct kfi_cq_attr *attr,
			      struct kfid_cq **cq, kfi_comp_handler comp_handler, void *context)
{
	return __kfi_open(cq, domain, ops, cq_open, domain, attr, cq, comp_handler, context);
}

/**
 * kfi_cntr_open() - Open a counter.
 * @domain: The domain.
 * @attr: Its attributes; NULL stands for a structure of zeroes.
 * @cntr: Where to put the counter; close it with kfi_close().
 * @context: The consumer's own, kept in the counter's fid.
 *
 * Both of its numbers begin at 0. The domain can't be closed before it.
 *
 * kfi_close() of a counter unbinds it from memory regions, endpoints and shared receive contexts.
 * They go on without it. While a kfi_cntr_wait() is under way, kfi_close() returns -KFI_EBUSY; a
 * kfi_cntr_adderr() ends the wait.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@cntr NULL:
 *
 * * -KFI_EINVAL: @domain or @cntr is NULL, or @domain is no domain.
 * * -KFI_EINVAL: @attr is an error pointer.
 * * -KFI_EINVAL: events is not KFI_CNTR_EVENTS_COMP.
 * * -KFI_EBADFLAGS: flags isn't 0.
 * * -KFI_ENOSYS: wait_obj is KFI_WAIT_SET.
 * * -KFI_EINVAL: wait_obj is unknown.
 * * -KFI_ENOSYS: the provider is written in C and has no counters.
 * * -KFI_ENOMEM: out of memory.
 */
static inline int kfi_cntr_open(struct kfid_domain *domain, struct kfi_cntr_attr *attr,
				struct kfid_cntr **cntr, void *context)
{
	return __kfi_open(cntr, domain, ops, cntr_open, domain, attr, cntr, context);
}

/**
 * kfi_wait_open() - Open a wait set.
 * @fabric: The fabric.
 * @attr: Its attributes.
 * @waitset: Where to put the wait set; close it with kfi_close().
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@waitset NULL: -KFI_EINVAL if @fabric or @waitset is NULL, -KFI_ENOMEM, or
 * -KFI_ENOSYS.
 */
static inline int kfi_wait_open(struct kfid_fabric *fabric, struct kfi_wait_attr *attr,
				struct kfid_wait **waitset)
{
	return __kfi_open(waitset, fabric, ops, wait_open, fabric, attr, waitset);
}

/**
 * kfi_poll_open() - Open a poll set.
 * @domain: The domain.
 * @attr: Its attributes.
 * @pollset: Where to put the poll set; close it with kfi_close().
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@pollset NULL: -KFI_EINVAL if @domain or @pollset is NULL, -KFI_ENOMEM, or
 * -KFI_ENOSYS.
 */
static inline int kfi_poll_open(struct kfid_domain *domain, struct kfi_poll_attr *attr,
				struct kfid_poll **pollset)
{
	return __kfi_open(pollset, domain, ops, poll_open, domain, attr, pollset);
}

/* @domain if it is one, otherwise NULL. */
static inline struct kfid_domain *__kfi_to_domain(struct kfid_domain *domain)
{
	if (IS_ERR_OR_NULL(domain) || domain->fid.fclass != KFI_CLASS_DOMAIN)
		return NULL;
	return domain;
}

/* How the registration calls dispatch. */
#define __kfi_register(out, domain, op, ...)					\
	__kfi_open_of("not a domain", out, __kfi_to_domain(domain), mr, op, __VA_ARGS__)

/**
 * kfi_mr_reg() - Register a buffer, so that a peer or the local device can reach it.
 * @domain: The domain.
 * @buf: The buffer: memory of the linear map (kmalloc(), pages) or of vmalloc(), at any alignment.
 *	Not user memory, not the stack, not the image of the kernel or of a module.
 * @len: Its length, in bytes; at least 1.
 * @access: The access rights; 0 for all that this side may do, or a combination of: KFI_REMOTE_READ
 *	(a peer may read it); KFI_REMOTE_WRITE (a peer may write it or, where the domain has
 *	KFI_ATOMIC, do atomic operations on it); KFI_SEND and KFI_RECV (messages are sent from it
 *	and received in it); KFI_WRITE and KFI_READ (it is the local side of RMA writes and reads).
 * @offset: Reserved, 0.
 * @requested_key: The key to have. Ignored under KFI_MR_PROV_KEY: kfi_mr_key() has the real one.
 * @flags: Flags that the provider supports; otherwise 0.
 * @mr: Where to put the memory region; close it with kfi_close().
 * @context: The consumer's own, kept in the region's fid and given back with its event.
 *
 * The key is valid when this call has returned, or when the event of an asynchronous registration
 * has come, and stays so until kfi_close(). Meanwhile the memory must stay where it is. Memory that
 * is freed while it is registered is the caller's bug and can't always be told from other memory.
 *
 * The following holds for all five calls: this one, kfi_mr_regv(), kfi_mr_regbv(), kfi_mr_regsgl()
 * and kfi_mr_regattr(). Arguments are checked in this order: output pointer, domain, attributes,
 * list and count, flags, access, offset, segments (by index), limits, memory, device. A failed call
 * leaves nothing behind, and the domain works on.
 *
 * Context: Process context; may sleep. Safe on the I/O path: memory is allocated without I/O, as
 * under memalloc_noio_save().
 * Return: 0, or with *@mr NULL, unless @mr is:
 *
 * * -KFI_EINVAL: @mr is NULL.
 * * -KFI_EINVAL: @domain is NULL, an error pointer, or not a domain.
 * * -KFI_EINVAL: attr is NULL or an error pointer; attr->type is none of the three.
 * * -KFI_EINVAL: @buf or the list is NULL; the list is an error pointer.
 * * -KFI_EINVAL: @count is 0.
 * * -KFI_EINVAL: auth_key_size is not 0 and auth_key is NULL, or the provider supports keys and it
 *   is more than 256.
 * * -KFI_EOPNOTSUPP: auth_key_size is not 0, and the provider does not support keys.
 * * -KFI_EBADFLAGS: a flag that the provider does not support.
 * * -KFI_EINVAL: a bit of @access that is not a right.
 * * -KFI_EINVAL: @offset is not 0.
 * * -KFI_EINVAL: a segment of length 0.
 * * -KFI_EINVAL: address + length wraps.
 * * -KFI_EINVAL: the sum of the lengths overflows.
 * * -KFI_EINVAL: a scatterlist ends before @count, or an entry is not mapped (sg_dma_len() is 0).
 * * -KFI_EINVAL: a gap, on a device that can't bridge it.
 * * -KFI_E2BIG: more segments than mr_iov_limit.
 * * -KFI_E2BIG: more pages or bytes than one region of the device can hold.
 * * -KFI_ENOSPC: mr_cnt regions are open in the domain.
 * * -KFI_EKEYREJECTED: @requested_key is out of range; not under KFI_MR_PROV_KEY.
 * * -KFI_EFAULT: memory that can't be registered.
 * * -KFI_EINVAL: a scatterlist address that is none of this device (software devices only).
 * * -KFI_ENOKEY: @requested_key is in use; not under KFI_MR_PROV_KEY.
 * * -KFI_EIO: the memory can't be mapped for DMA, or not coherently.
 * * -KFI_ENOSPC: the device has no region left.
 * * -KFI_EIO: the device refuses or fails the registration, or does not complete it in time.
 * * -KFI_ENOTRECOVERABLE: the registration failed, and the device does not let go of the memory,
 *   which must never be freed.
 * * -KFI_ENODEV: the device is gone.
 * * -KFI_ENETDOWN: the registration queue has failed, and no port is active for a new one.
 * * -KFI_ENOMEM: out of memory; found at any step after the segments.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_mr_reg(struct kfid_domain *domain, const void *buf, size_t len, u64 access,
			     u64 offset, u64 requested_key, u64 flags, struct kfid_mr **mr,
			     void *context)
{
	return __kfi_register(mr, domain, reg, &domain->fid, buf, len, access, offset,
			      requested_key, flags, mr, context);
}

/**
 * kfi_mr_regv() - Register a list of buffers as one region.
 * @domain: The domain.
 * @iov: The list; each buffer as for kfi_mr_reg(). Needed during the call only.
 * @count: How many there are, 1 to the domain's mr_iov_limit.
 * @access: The access rights, see kfi_mr_reg().
 * @offset: Reserved, 0.
 * @requested_key: The key to have, see kfi_mr_reg().
 * @flags: See kfi_mr_reg().
 * @mr: Where to put the memory region; close it with kfi_close().
 * @context: The consumer's own, kept in the region's fid and given back with its event.
 *
 * The buffers follow each other in the region without gaps, in the order of the list.
 *
 * Context: Process context; may sleep. Safe on the I/O path, see kfi_mr_reg().
 * Return: 0 or an errno, see kfi_mr_reg().
 */
static inline int kfi_mr_regv(struct kfid_domain *domain, const struct kvec *iov, size_t count,
			      u64 access, u64 offset, u64 requested_key, u64 flags,
			      struct kfid_mr **mr, void *context)
{
	return __kfi_register(mr, domain, regv, &domain->fid, iov, count, access, offset,
			      requested_key, flags, mr, context);
}

/**
 * kfi_mr_regbv() - Register a list of pieces of pages as one region.
 * @domain: The domain.
 * @biov: The list; a piece may span several physically contiguous pages. Needed during the call
 *	only.
 * @count: How many there are, 1 to the domain's mr_iov_limit.
 * @access: The access rights, see kfi_mr_reg().
 * @offset: Reserved, 0.
 * @requested_key: The key to have, see kfi_mr_reg().
 * @flags: See kfi_mr_reg().
 * @mr: Where to put the memory region; close it with kfi_close().
 * @context: The consumer's own, kept in the region's fid and given back with its event.
 *
 * The pieces follow each other in the region without gaps, in the order of the list.
 *
 * Context: Process context; may sleep. Safe on the I/O path, see kfi_mr_reg().
 * Return: 0 or an errno, see kfi_mr_reg().
 */
static inline int kfi_mr_regbv(struct kfid_domain *domain, const struct bio_vec *biov,
			       size_t count, u64 access, u64 offset, u64 requested_key, u64 flags,
			       struct kfid_mr **mr, void *context)
{
	return __kfi_register(mr, domain, regbv, &domain->fid, biov, count, access, offset,
			      requested_key, flags, mr, context);
}

/**
 * kfi_mr_regsgl() - Register a DMA-mapped scatterlist as one region.
 * @domain: The domain.
 * @sgl: The list, mapped for the domain's device (by KFI_DMA_OPS_1 for instance) in a direction
 *	that goes with @access. Only its DMA addresses and DMA lengths count. The mapping must
 *	outlive the region, the list itself is needed during the call only, and stays as it is then.
 * @count: How many entries the mapping has, which may be fewer than were mapped.
 * @access: The access rights, see kfi_mr_reg().
 * @offset: Reserved, 0.
 * @requested_key: The key to have, see kfi_mr_reg().
 * @flags: See kfi_mr_reg().
 * @mr: Where to put the memory region; close it with kfi_close().
 * @context: The consumer's own, kept in the region's fid and given back with its event.
 *
 * Context: Process context; may sleep. Safe on the I/O path, see kfi_mr_reg().
 * Return: 0 or an errno, see kfi_mr_reg().
 */
static inline int kfi_mr_regsgl(struct kfid_domain *domain, const struct scatterlist *sgl,
				size_t count, u64 access, u64 offset, u64 requested_key,
				u64 flags, struct kfid_mr **mr, void *context)
{
	return __kfi_register(mr, domain, regsgl, &domain->fid, sgl, count, access, offset,
			      requested_key, flags, mr, context);
}

/**
 * kfi_mr_regattr() - Register memory of any kind, described by a structure.
 * @domain: The domain.
 * @attr: The memory and its attributes. Needed during the call only.
 * @flags: See kfi_mr_reg().
 * @mr: Where to put the memory region; close it with kfi_close().
 *
 * Context: Process context; may sleep. Safe on the I/O path, see kfi_mr_reg().
 * Return: 0 or an errno, see kfi_mr_reg().
 */
static inline int kfi_mr_regattr(struct kfid_domain *domain, const struct kfi_mr_attr *attr,
				 u64 flags, struct kfid_mr **mr)
{
	return __kfi_register(mr, domain, regattr, &domain->fid, attr, flags, mr);
}

/**
 * kfi_mr_desc() - The descriptor of a region for local operations.
 * @mr: The region, its registration complete.
 *
 * Context: Any; doesn't sleep.
 * Return: The desc for data transfer calls; NULL if @mr is NULL or needs none.
 */
static inline void *kfi_mr_desc(struct kfid_mr *mr)
{
	return IS_ERR_OR_NULL(mr) ? NULL : mr->mem_desc;
}

/**
 * kfi_mr_key() - The key that a peer needs to reach a region.
 * @mr: The region, its registration complete.
 *
 * Context: Any; doesn't sleep.
 * Return: The key; KFI_KEY_NOTAVAIL if @mr is NULL, while an asynchronous registration is under
 * way, and under KFI_MR_RAW, where kfi_mr_raw_attr() has it.
 */
static inline u64 kfi_mr_key(struct kfid_mr *mr)
{
	/* A reader that sees the key of an asynchronous registration sees the other fields, too. */
	return IS_ERR_OR_NULL(mr) ? KFI_KEY_NOTAVAIL : smp_load_acquire(&mr->key);
}

/**
 * kfi_mr_raw_attr() - The raw key of a region, to be sent to a peer.
 * @mr: The region. It needn't be one of a KFI_MR_RAW domain.
 * @base_addr: Where to put the address of the region's first byte for a peer.
 * @raw_key: Where to put the raw key (kfi_raw_ext.h says what is in it); NULL if there is no room.
 * @key_size: In: room at @raw_key, in bytes. Out: length of the raw key, also where that is more.
 * @flags: None yet, 0.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with nothing written but *@key_size where it says so:
 *
 * * -KFI_EINVAL: @mr is NULL.
 * * -KFI_EBADFLAGS: @flags is not 0.
 * * -KFI_EINVAL: @base_addr or @key_size is NULL, or @raw_key is and *@key_size isn't 0.
 * * -KFI_EOPBADSTATE: the region is not enabled.
 * * -KFI_ENODEV: the device is gone.
 * * -KFI_EIO: a failed refresh has put the region out of reach.
 * * -KFI_ETOOSMALL: too little space; *@key_size is the length needed.
 * * -KFI_ENOMEM: out of memory.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_mr_raw_attr(struct kfid_mr *mr, u64 *base_addr, u8 *raw_key,
				  size_t *key_size, u64 flags)
{
	struct kfi_mr_raw_attr attr = {
		.flags = flags,
		.base_addr = base_addr,
		.raw_key = raw_key,
		.key_size = key_size,
	};

	return __kfi_call(mr, fid.ops, control, &mr->fid, KFI_GET_RAW_MR, &attr);
}

/**
 * kfi_mr_map_raw() - Make a peer's raw key usable in RMA calls.
 * @domain: The domain to use it in. It needn't be one of KFI_MR_RAW.
 * @base_addr: The peer's base address. Accesses count from it, whatever it is.
 * @raw_key: The peer's raw key. Needed during the call only.
 * @key_size: Its length, in bytes.
 * @key: Where to put the key to use for it, until kfi_mr_unmap_key(); KFI_KEY_NOTAVAIL on failure.
 * @flags: None yet, 0.
 *
 * Nothing is asked of the peer. A raw key that is well-formed but false, or of a region that was
 * closed, can be mapped; then the peer's side refuses each access. The domain can't be closed before
 * all of its mapped keys have been given back (-KFI_EBUSY).
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @domain or @key is NULL.
 * * -KFI_EBADFLAGS: @flags is not 0.
 * * -KFI_EINVAL: @raw_key is NULL.
 * * -KFI_EINVAL: @key_size is over mr_key_size under KFI_MR_RAW, else over that of 4096 parts.
 * * -KFI_EINVAL: the raw key is not as kfi_raw_ext.h demands.
 * * -KFI_EINVAL: @base_addr and the length wrap.
 * * -KFI_ENOMEM: out of memory.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_mr_map_raw(struct kfid_domain *domain, u64 base_addr, u8 *raw_key,
				 size_t key_size, u64 *key, u64 flags)
{
	struct kfi_mr_map_raw map = {
		.flags = flags,
		.base_addr = base_addr,
		.raw_key = raw_key,
		.key_size = key_size,
		.key = key,
	};

	return __kfi_call(domain, fid.ops, control, &domain->fid, KFI_MAP_RAW_MR, &map);
}

/**
 * kfi_mr_unmap_key() - Give back a key of kfi_mr_map_raw().
 * @domain: The domain that it was mapped in.
 * @key: The key. Its number doesn't come back.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @domain is NULL, or the key is not mapped in it.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_mr_unmap_key(struct kfid_domain *domain, u64 key)
{
	return __kfi_call(domain, fid.ops, control, &domain->fid, KFI_UNMAP_KEY, &key);
}

/**
 * kfi_mr_bind() - Bind a counter or an endpoint to a region.
 * @mr: The region, not enabled yet.
 * @bfid: Fid of the counter or endpoint, of the same domain.
 * @flags: KFI_REMOTE_WRITE to count remote writes and atomic operations; 0 for an endpoint.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @mr or @bfid is NULL.
 * * -KFI_ENOSYS: the provider can't count accesses, and the domain has no KFI_MR_ENDPOINT.
 * * -KFI_EINVAL: @bfid is neither a counter nor an endpoint.
 * * -KFI_ENOSYS: @bfid is a counter, and the provider can't count accesses.
 * * -KFI_EBADFLAGS: other @flags.
 * * -KFI_EINVAL: @bfid is of another domain, or is being closed.
 * * -KFI_EOPBADSTATE: the region is not disabled.
 * * -KFI_EINVAL: the region was not registered for this binding, or has it.
 */
static inline int kfi_mr_bind(struct kfid_mr *mr, struct kfid *bfid, u64 flags)
{
	return __kfi_call(mr, fid.ops, bind, &mr->fid, bfid, flags);
}

/**
 * kfi_mr_refresh() - Tell the device that the pages behind a region have changed.
 * @mr: The region.
 * @iov: Which parts of it, as virtual addresses; NULL for all of it.
 * @count: How many parts there are; 0 if @iov is NULL.
 * @flags: None yet, 0.
 *
 * The caller keeps peers away meanwhile. The old pages may be freed when this has returned 0; after
 * an error, old and new pages when kfi_close() of the region has returned 0, and after
 * -KFI_ENOTRECOVERABLE never.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @mr is NULL or an error pointer.
 * * -KFI_ENOSYS: the provider or the device can't refresh.
 * * -KFI_EOPNOTSUPP: the provider can, but not on this device.
 * * -KFI_EOPBADSTATE: the region is not enabled.
 * * -KFI_ENOSYS: the region does not consist of kvecs.
 * * -KFI_EBADFLAGS: @flags is not 0.
 * * -KFI_EINVAL: a part is empty or outside the region; only one of @iov and @count is set.
 * * -KFI_EFAULT: memory that can't be registered (region unchanged).
 * * -KFI_EIO: the pages can't be mapped (region unchanged), or the device failed (region out of
 *   reach).
 * * -KFI_ENETDOWN: the registration queue has failed, and no port is active (region unchanged).
 * * -KFI_EAGAIN: no request after the registration on the endpoint has completed (region
 *   unchanged).
 * * -KFI_ENOMEM: out of memory; the region is unchanged or out of reach.
 * * -KFI_ENOTRECOVERABLE: the device failed and does not let go of the region: never free old or
 *   new pages.
 * * -KFI_ENODEV: the device is gone.
 */
static inline int kfi_mr_refresh(struct kfid_mr *mr, const struct kvec *iov, size_t count,
				 u64 flags)
{
	struct kfi_mr_modify modify = {
		.flags = flags,
		.attr = {
			.type = KFI_KVEC,
			.mr_iov = iov,
			.iov_count = count,
		},
	};

	return __kfi_call(mr, fid.ops, control, &mr->fid, KFI_REFRESH, &modify);
}

/**
 * kfi_mr_enable() - Enable a region under KFI_MR_ENDPOINT or KFI_MR_RMA_EVENT, when it is bound.
 * @mr: The region.
 *
 * Under KFI_MR_ENDPOINT the provider may have the region registered by a request on the endpoint's own
 * queue, for which nobody waits: then the key is good for a peer that got it by something that was
 * posted on this endpoint afterwards. kfi_mr_bind(3) says more.
 *
 * Context: Any, if an event queue is bound to the domain. Also any, if @mr is one region of its device,
 * and bound to an endpoint that has been connected. Otherwise process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @mr is NULL or an error pointer.
 * * -KFI_EBADFLAGS: flags of kfi_control() other than KFI_MORE.
 * * -KFI_EOPBADSTATE: the region is not disabled.
 * * -KFI_ENODEV: the device is being removed.
 * * -KFI_ENOTCONN: the endpoint is down.
 * * -KFI_EINVAL: a binding is missing.
 * * -KFI_EAGAIN: the endpoint's queue is full or, over iWARP, not connected; the region stays
 *   disabled.
 * * The errors of kfi_mr_reg(): the registration fails; the region can only be closed.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_mr_enable(struct kfid_mr *mr)
{
	return __kfi_call(mr, fid.ops, control, &mr->fid, KFI_ENABLE, NULL);
}

/**
 * kfi_mr_enable_more() - As kfi_mr_enable(), with something to come that is posted on the endpoint.
 * @mr: The region, bound to an endpoint (KFI_MR_ENDPOINT).
 *
 * The provider may leave it to the next transfer to be posted on the endpoint to have the region
 * registered, in one go with that. An extension; a provider that doesn't know it does the same as by
 * kfi_mr_enable().
 *
 * Context: As kfi_mr_enable().
 * Return: As kfi_mr_enable().
 */
static inline int kfi_mr_enable_more(struct kfid_mr *mr)
{
	u64 flags = KFI_MORE;

	return __kfi_call(mr, fid.ops, control, &mr->fid, KFI_ENABLE, &flags);
}

/**
 * kfi_av_open() - Open an address vector.
 * @domain: The domain.
 * @attr: Its attributes.
 * @av: Where to put it; close it with kfi_close().
 * @context: The consumer's own, kept in its fid.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@av NULL: -KFI_EINVAL if @domain or @av is NULL, -KFI_ENOMEM, or -KFI_ENOSYS.
 */
static inline int kfi_av_open(struct kfid_domain *domain, struct kfi_av_attr *attr,
			      struct kfid_av **av, void *context)
{
	return __kfi_open(av, domain, ops, av_open, domain, attr, av, context);
}

/**
 * kfi_av_bind() - Bind an event queue to an address vector.
 * @av: The address vector.
 * @fid: The event queue's fid.
 * @flags: None yet, 0.
 *
 * Context: Process context; may sleep.
 * Return: 0, -KFI_EINVAL if @av is NULL, or -KFI_ENOSYS.
 */
static inline int kfi_av_bind(struct kfid_av *av, struct kfid *fid, u64 flags)
{
	return __kfi_call(av, fid.ops, bind, &av->fid, fid, flags);
}

/**
 * kfi_av_insert() - Insert addresses into an address vector.
 * @av: The address vector.
 * @addr: The addresses, one behind the other, in the domain's format.
 * @count: How many there are.
 * @kfi_addr: Where to put as many names for them, or NULL; KFI_ADDR_NOTAVAIL for a failed one.
 * @flags: KFI_MORE, KFI_SYNC_ERR, or 0.
 * @context: For KFI_SYNC_ERR @count ints, one error for each; otherwise given back with the event.
 *
 * Context: Process context; may sleep.
 * Return: How many were inserted; 0 if an event will tell; -KFI_EINVAL if @av is NULL, or
 * -KFI_ENOSYS.
 */
static inline int kfi_av_insert(struct kfid_av *av, const void *addr, size_t count,
				kfi_addr_t *kfi_addr, u64 flags, void *context)
{
	return __kfi_call(av, ops, insert, av, addr, count, kfi_addr, flags, context);
}

/**
 * kfi_av_insertsvc() - Insert the address of a node and service into an address vector.
 * @av: The address vector.
 * @node: The node's name or address.
 * @service: The service's name or number.
 * @kfi_addr: Where to put a name for it, or NULL.
 * @flags: See kfi_av_insert().
 * @context: See kfi_av_insert().
 *
 * Context: Process context; may sleep.
 * Return: As kfi_av_insert().
 */
static inline int kfi_av_insertsvc(struct kfid_av *av, const char *node, const char *service,
				   kfi_addr_t *kfi_addr, u64 flags, void *context)
{
	return __kfi_call(av, ops, insertsvc, av, node, service, kfi_addr, flags, context);
}

/**
 * kfi_av_insertsym() - Insert a range of nodes and services into an address vector.
 * @av: The address vector.
 * @node: The first node's name or address.
 * @nodecnt: How many nodes.
 * @service: The first service's name or number.
 * @svccnt: How many services each node has.
 * @kfi_addr: Where to put @nodecnt times @svccnt names for them, or NULL.
 * @flags: See kfi_av_insert().
 * @context: See kfi_av_insert().
 *
 * Context: Process context; may sleep.
 * Return: As kfi_av_insert().
 */
static inline int kfi_av_insertsym(struct kfid_av *av, const char *node, size_t nodecnt,
				   const char *service, size_t svccnt, kfi_addr_t *kfi_addr,
				   u64 flags, void *context)
{
	return __kfi_call(av, ops, insertsym, av, node, nodecnt, service, svccnt, kfi_addr, flags,
			  context);
}

/**
 * kfi_av_remove() - Take addresses out of an address vector.
 * @av: The address vector.
 * @kfi_addr: Their names.
 * @count: How many there are.
 * @flags: None yet, 0.
 *
 * Context: Process context; may sleep.
 * Return: 0, -KFI_EINVAL if @av is NULL, or -KFI_ENOSYS.
 */
static inline int kfi_av_remove(struct kfid_av *av, kfi_addr_t *kfi_addr, size_t count, u64 flags)
{
	return __kfi_call(av, ops, remove, av, kfi_addr, count, flags);
}

/**
 * kfi_av_lookup() - The address behind a name.
 * @av: The address vector.
 * @kfi_addr: The name.
 * @addr: Where to put the address.
 * @addrlen: In: room at @addr, in bytes. Out: length of the address.
 *
 * Context: Process context; may sleep.
 * Return: 0, -KFI_EINVAL if @av is NULL, -KFI_ETOOSMALL if the address was cut off, or -KFI_ENOSYS.
 */
static inline int kfi_av_lookup(struct kfid_av *av, kfi_addr_t kfi_addr, void *addr,
				size_t *addrlen)
{
	return __kfi_call(av, ops, lookup, av, kfi_addr, addr, addrlen);
}

/**
 * kfi_av_straddr() - Write an address as text.
 * @av: The address vector.
 * @addr: The address.
 * @buf: Where to put the text.
 * @len: In: room at @buf, in bytes. Out: what the whole text needs.
 *
 * Context: Any; doesn't sleep.
 * Return: The text; an empty one if the provider has none.
 */
static inline const char *kfi_av_straddr(struct kfid_av *av, const void *addr, char *buf,
					 size_t *len)
{
	return __kfi_call_else("", "", av, ops, straddr, av, addr, buf, len);
}

/**
 * kfi_rx_addr() - Name one receive context of a peer.
 * @kfi_addr: The peer.
 * @rx_index: Which of its receive contexts.
 * @rx_ctx_bits: The address vector's rx_ctx_bits.
 *
 * Context: Any.
 * Return: The name.
 */
static inline kfi_addr_t kfi_rx_addr(kfi_addr_t kfi_addr, int rx_index, int rx_ctx_bits)
{
	return rx_ctx_bits ? (u64)rx_index << (64 - rx_ctx_bits) | kfi_addr : kfi_addr;
}

#endif /* _KFI_DOMAIN_H_ */
