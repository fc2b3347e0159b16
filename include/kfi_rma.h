/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: remote memory access.
 */
#ifndef _KFI_RMA_H_
#define _KFI_RMA_H_

#include "kfabric.h"
#include "kfi_endpoint.h"

/**
 * struct kfi_rma_iov - A piece of a peer's memory.
 * @addr: Where it begins: counted from 0, or from the region's iova under KFI_MR_VIRT_ADDR.
 * @len: Its length, in bytes.
 * @key: The key of the peer's region.
 */
struct kfi_rma_iov {
	u64			addr;
	size_t			len;
	u64			key;
};

/**
 * struct kfi_msg_rma - An access, for kfi_readmsg() and kfi_writemsg().
 * @type: The type of the local list.
 * @msg_iov: The local list, for KFI_KVEC.
 * @msg_biov: The local list, for KFI_BVEC.
 * @msg_sgl: The local list, for KFI_SGL; DMA-mapped for the domain's device.
 * @desc: Descriptors of the local memory, one for each segment; or NULL.
 * @iov_count: Length of the local list, in segments.
 * @addr: The peer; ignored by a connected endpoint.
 * @rma_iov: The pieces of the peer's memory, together as long as the local list.
 * @rma_iov_count: How many there are, at most the endpoint's rma_iov_limit; not 0.
 * @context: Given back with the completion.
 * @data: Remote CQ data, for KFI_REMOTE_CQ_DATA; no more bytes than cq_data_size.
 */
struct kfi_msg_rma {
	enum kfi_iov_type		type;
	union {
		const struct kvec		*msg_iov;
		const struct bio_vec		*msg_biov;
		const struct scatterlist	*msg_sgl;
	};
	void				**desc;
	size_t				iov_count;
	kfi_addr_t			addr;
	const struct kfi_rma_iov	*rma_iov;
	size_t				rma_iov_count;
	void				*context;
	u64				data;
};

/**
 * struct kfi_ops_rma - The RMA calls of an endpoint.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @read: See kfi_read().
 * @readv: See kfi_readv().
 * @readbv: See kfi_readbv().
 * @readmsg: See kfi_readmsg().
 * @write: See kfi_write().
 * @writev: See kfi_writev().
 * @writebv: See kfi_writebv().
 * @writemsg: See kfi_writemsg().
 * @inject: See kfi_inject_write().
 * @writedata: See kfi_writedata().
 * @injectdata: See kfi_inject_writedata().
 * @readsgl: See kfi_readsgl().
 * @writesgl: See kfi_writesgl().
 */
struct kfi_ops_rma {
	size_t	size;
	ssize_t	(*read)(struct kfid_ep *ep, void *buf, size_t len, void *desc, kfi_addr_t src_addr,
			u64 addr, u64 key, void *context);
	ssize_t	(*readv)(struct kfid_ep *ep, const struct kvec *iov, void **desc, size_t count,
			 kfi_addr_t src_addr, u64 addr, u64 key, void *context);
	ssize_t	(*readbv)(struct kfid_ep *ep, const struct bio_vec *biov, void **desc, size_t count,
			  kfi_addr_t src_addr, u64 addr, u64 key, void *context);
	ssize_t	(*readmsg)(struct kfid_ep *ep, const struct kfi_msg_rma *msg, u64 flags);
	ssize_t	(*write)(struct kfid_ep *ep, const void *buf, size_t len, void *desc,
			 kfi_addr_t dest_addr, u64 addr, u64 key, void *context);
	ssize_t	(*writev)(struct kfid_ep *ep, const struct kvec *iov, void **desc, size_t count,
			  kfi_addr_t dest_addr, u64 addr, u64 key, void *context);
	ssize_t	(*writebv)(struct kfid_ep *ep, const struct bio_vec *biov, void **desc,
			   size_t count, kfi_addr_t dest_addr, u64 addr, u64 key, void *context);
	ssize_t	(*writemsg)(struct kfid_ep *ep, const struct kfi_msg_rma *msg, u64 flags);
	ssize_t	(*inject)(struct kfid_ep *ep, const void *buf, size_t len, kfi_addr_t dest_addr,
			  u64 addr, u64 key);
	ssize_t	(*writedata)(struct kfid_ep *ep, const void *buf, size_t len, void *desc, u64 data,
			     kfi_addr_t dest_addr, u64 addr, u64 key, void *context);
	ssize_t	(*injectdata)(struct kfid_ep *ep, const void *buf, size_t len, u64 data,
			      kfi_addr_t dest_addr, u64 addr, u64 key);
	ssize_t	(*readsgl)(struct kfid_ep *ep, const struct scatterlist *sgl, void **desc,
			   size_t count, kfi_addr_t src_addr, u64 addr, u64 key, void *context);
	ssize_t	(*writesgl)(struct kfid_ep *ep, const struct scatterlist *sgl, void **desc,
			    size_t count, kfi_addr_t dest_addr, u64 addr, u64 key, void *context);
};

/**
 * kfi_read() - Read from a peer's memory.
 * @ep: The endpoint.
 * @buf: Where to put it.
 * @len: How much, in bytes.
 * @desc: Descriptor of the local memory, from kfi_mr_desc(); NULL if the provider needs none.
 * @src_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @context: Given back with the completion.
 *
 * The local memory belongs to the provider until the operation has ended.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0, or:
 *
 * * The errors of kfi_send(): a check of posting fails.
 * * -KFI_EACCES: a read, and the region of the descriptor may not be written to.
 * * -KFI_EINVAL: the lengths in rma_iov differ from the local memory's, or @addr and the length
 *   wrap.
 * * -KFI_ENOKEY: @key has bit 63 set and isn't mapped in the domain; over "verbs": it has more than
 *   32 bits.
 * * -KFI_EINVAL: the access exceeds the region of a mapped key.
 * * -KFI_E2BIG: more than 16 ranges and pieces, or more than the queue's size.
 * * -KFI_E2BIG: over iWARP, a read without a descriptor: more pieces than can be registered at
 *   once.
 * * -KFI_EMSGSIZE: the same: a piece is too long to be registered.
 * * -KFI_EAGAIN: the same: all regions for this purpose are in use.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline ssize_t kfi_read(struct kfid_ep *ep, void *buf, size_t len, void *desc,
			       kfi_addr_t src_addr, u64 addr, u64 key, void *context)
{
	return __kfi_call(ep, rma, read, ep, buf, len, desc, src_addr, addr, key, context);
}

/**
 * kfi_readv() - Read from a peer's memory into a list of buffers.
 * @ep: The endpoint.
 * @iov: Where to put it, as a list of buffers.
 * @desc: Descriptors of the local memory, as many as there are in the list; NULL if the
 *	provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit.
 * @src_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_read().
 */
static inline ssize_t kfi_readv(struct kfid_ep *ep, const struct kvec *iov, void **desc,
				size_t count, kfi_addr_t src_addr, u64 addr, u64 key, void *context)
{
	return __kfi_call(ep, rma, readv, ep, iov, desc, count, src_addr, addr, key, context);
}

/**
 * kfi_readbv() - Read from a peer's memory into a list of pieces of pages.
 * @ep: The endpoint.
 * @biov: Where to put it, as a list of pieces of pages.
 * @desc: Descriptors of the local memory, as many as there are in the list; NULL if the
 *	provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit.
 * @src_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_read().
 */
static inline ssize_t kfi_readbv(struct kfid_ep *ep, const struct bio_vec *biov, void **desc,
				 size_t count, kfi_addr_t src_addr, u64 addr, u64 key,
				 void *context)
{
	return __kfi_call(ep, rma, readbv, ep, biov, desc, count, src_addr, addr, key, context);
}

/**
 * kfi_readsgl() - Read from a peer's memory into a scatterlist.
 * @ep: The endpoint.
 * @sgl: Where to put it, as a list that is DMA-mapped for the domain's device.
 * @desc: Descriptors of the local memory, as many as there are in the list; NULL if the
 *	provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit.
 * @src_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_read().
 */
static inline ssize_t kfi_readsgl(struct kfid_ep *ep, const struct scatterlist *sgl, void **desc,
				  size_t count, kfi_addr_t src_addr, u64 addr, u64 key,
				  void *context)
{
	return __kfi_call(ep, rma, readsgl, ep, sgl, desc, count, src_addr, addr, key, context);
}

/**
 * kfi_readmsg() - Read from a peer's memory, described by a structure.
 * @ep: The endpoint.
 * @msg: The transfer.
 * @flags: KFI_COMPLETION, KFI_MORE, KFI_FENCE, KFI_DELIVERY_COMPLETE, or 0.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_read().
 */
static inline ssize_t kfi_readmsg(struct kfid_ep *ep, const struct kfi_msg_rma *msg, u64 flags)
{
	return __kfi_call(ep, rma, readmsg, ep, msg, flags);
}

/**
 * kfi_write() - Write to a peer's memory.
 * @ep: The endpoint.
 * @buf: The bytes to write.
 * @len: How much, in bytes.
 * @desc: Descriptor of the local memory, from kfi_mr_desc(); NULL if the provider needs none.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @context: Given back with the completion.
 *
 * The local memory belongs to the provider until the operation has ended.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_read().
 */
static inline ssize_t kfi_write(struct kfid_ep *ep, const void *buf, size_t len, void *desc,
				kfi_addr_t dest_addr, u64 addr, u64 key, void *context)
{
	return __kfi_call(ep, rma, write, ep, buf, len, desc, dest_addr, addr, key, context);
}

/**
 * kfi_writev() - Write a list of buffers to a peer's memory.
 * @ep: The endpoint.
 * @iov: The bytes to write, as a list of buffers.
 * @desc: Descriptors of the local memory, as many as there are in the list; NULL if the
 *	provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_read().
 */
static inline ssize_t kfi_writev(struct kfid_ep *ep, const struct kvec *iov, void **desc,
				 size_t count, kfi_addr_t dest_addr, u64 addr, u64 key,
				 void *context)
{
	return __kfi_call(ep, rma, writev, ep, iov, desc, count, dest_addr, addr, key, context);
}

/**
 * kfi_writebv() - Write a list of pieces of pages to a peer's memory.
 * @ep: The endpoint.
 * @biov: The bytes to write, as a list of pieces of pages.
 * @desc: Descriptors of the local memory, as many as there are in the list; NULL if the
 *	provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_read().
 */
static inline ssize_t kfi_writebv(struct kfid_ep *ep, const struct bio_vec *biov, void **desc,
				  size_t count, kfi_addr_t dest_addr, u64 addr, u64 key,
				  void *context)
{
	return __kfi_call(ep, rma, writebv, ep, biov, desc, count, dest_addr, addr, key, context);
}

/**
 * kfi_writesgl() - Write a scatterlist to a peer's memory.
 * @ep: The endpoint.
 * @sgl: The bytes to write, as a list that is DMA-mapped for the domain's device.
 * @desc: Descriptors of the local memory, as many as there are in the list; NULL if the
 *	provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_read().
 */
static inline ssize_t kfi_writesgl(struct kfid_ep *ep, const struct scatterlist *sgl, void **desc,
				   size_t count, kfi_addr_t dest_addr, u64 addr, u64 key,
				   void *context)
{
	return __kfi_call(ep, rma, writesgl, ep, sgl, desc, count, dest_addr, addr, key, context);
}

/**
 * kfi_writemsg() - Write to a peer's memory, described by a structure.
 * @ep: The endpoint.
 * @msg: The transfer.
 * @flags: KFI_COMPLETION, KFI_MORE, KFI_INJECT, KFI_FENCE, KFI_REMOTE_CQ_DATA, KFI_INJECT_COMPLETE,
 *	KFI_TRANSMIT_COMPLETE, KFI_DELIVERY_COMPLETE, or 0.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_read().
 */
static inline ssize_t kfi_writemsg(struct kfid_ep *ep, const struct kfi_msg_rma *msg, u64 flags)
{
	return __kfi_call(ep, rma, writemsg, ep, msg, flags);
}

/**
 * kfi_inject_write() - Write a little to a peer's memory, without a completion.
 * @ep: The endpoint.
 * @buf: The bytes to write.
 * @len: How much, in bytes; at most the endpoint's inject_size.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 *
 * The buffer is the caller's again on return. Only a failure is reported, with the context NULL.
 * The buffer may be at any kernel address, on the stack too. The call copies it.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_read().
 */
static inline ssize_t kfi_inject_write(struct kfid_ep *ep, const void *buf, size_t len,
				       kfi_addr_t dest_addr, u64 addr, u64 key)
{
	return __kfi_call(ep, rma, inject, ep, buf, len, dest_addr, addr, key);
}

/**
 * kfi_writedata() - Write to a peer's memory, with remote CQ data.
 * @ep: The endpoint.
 * @buf: The bytes to write.
 * @len: How much, in bytes.
 * @desc: Descriptor of the local memory, from kfi_mr_desc(); NULL if the provider needs none.
 * @data: Goes to the peer with its completion; no more bytes than cq_data_size.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @context: Given back with the completion.
 *
 * When the bytes are there, a receive of the peer's completes with the data. It is taken, though
 * nothing is put there; where none is posted, the write waits for one.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_read().
 */
static inline ssize_t kfi_writedata(struct kfid_ep *ep, const void *buf, size_t len, void *desc,
				    u64 data, kfi_addr_t dest_addr, u64 addr, u64 key,
				    void *context)
{
	return __kfi_call(ep, rma, writedata, ep, buf, len, desc, data, dest_addr, addr, key,
			  context);
}

/**
 * kfi_inject_writedata() - Write a little with remote CQ data and without a completion.
 * @ep: The endpoint.
 * @buf: The bytes to write.
 * @len: How much, in bytes; at most the endpoint's inject_size.
 * @data: Goes to the peer with its completion; no more bytes than cq_data_size.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 *
 * The buffer is the caller's again on return. Only a failure is reported, with the context NULL.
 * The buffer may be at any kernel address, on the stack too. The call copies it.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_read().
 */
static inline ssize_t kfi_inject_writedata(struct kfid_ep *ep, const void *buf, size_t len,
					   u64 data, kfi_addr_t dest_addr, u64 addr, u64 key)
{
	return __kfi_call(ep, rma, injectdata, ep, buf, len, data, dest_addr, addr, key);
}

#endif /* _KFI_RMA_H_ */
