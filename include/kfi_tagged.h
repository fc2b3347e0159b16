/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: tagged messages, which are received by the tag that they carry.
 */
#ifndef _KFI_TAGGED_H_
#define _KFI_TAGGED_H_

#include "kfabric.h"
#include "kfi_endpoint.h"

/* For kfi_trecvmsg(): take, or drop, a message that KFI_PEEK has found. */
#define KFI_CLAIM		(1ULL << 59)
#define KFI_DISCARD		(1ULL << 58)

/**
 * struct kfi_msg_tagged - A tagged message, for kfi_tsendmsg() and kfi_trecvmsg().
 * @type: The type of the list.
 * @msg_iov: The list, for KFI_KVEC.
 * @msg_biov: The list, for KFI_BVEC.
 * @msg_sgl: The list, for KFI_SGL; DMA-mapped for the domain's device.
 * @desc: Descriptors of the local memory, one for each segment; or NULL.
 * @iov_count: Length of the list, in segments.
 * @addr: The peer.
 * @tag: The tag.
 * @ignore: Bits of the tag that may differ, when receiving.
 * @context: Given back with the completion.
 * @data: Remote CQ data, for KFI_REMOTE_CQ_DATA.
 */
struct kfi_msg_tagged {
	enum kfi_iov_type	type;
	union {
		const struct kvec		*msg_iov;
		const struct bio_vec		*msg_biov;
		const struct scatterlist	*msg_sgl;
	};
	void			**desc;
	size_t			iov_count;
	kfi_addr_t		addr;
	u64			tag;
	u64			ignore;
	void			*context;
	u64			data;
};

/**
 * struct kfi_ops_tagged - The tagged message calls of an endpoint.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @recv: See kfi_trecv().
 * @recvv: See kfi_trecvv().
 * @recvbv: See kfi_trecvbv().
 * @recvmsg: See kfi_trecvmsg().
 * @send: See kfi_tsend().
 * @sendv: See kfi_tsendv().
 * @sendbv: See kfi_tsendbv().
 * @sendmsg: See kfi_tsendmsg().
 * @inject: See kfi_tinject().
 * @senddata: See kfi_tsenddata().
 * @injectdata: See kfi_tinjectdata().
 * @recvsgl: See kfi_trecvsgl().
 * @sendsgl: See kfi_tsendsgl().
 */
struct kfi_ops_tagged {
	size_t	size;
	ssize_t	(*recv)(struct kfid_ep *ep, void *buf, size_t len, void *desc, kfi_addr_t src_addr,
			u64 tag, u64 ignore, void *context);
	ssize_t	(*recvv)(struct kfid_ep *ep, const struct kvec *iov, void **desc, size_t count,
			 kfi_addr_t src_addr, u64 tag, u64 ignore, void *context);
	ssize_t	(*recvbv)(struct kfid_ep *ep, const struct bio_vec *biov, void **desc, size_t count,
			  kfi_addr_t src_addr, u64 tag, u64 ignore, void *context);
	ssize_t	(*recvmsg)(struct kfid_ep *ep, const struct kfi_msg_tagged *msg, u64 flags);
	ssize_t	(*send)(struct kfid_ep *ep, const void *buf, size_t len, void *desc,
			kfi_addr_t dest_addr, u64 tag, void *context);
	ssize_t	(*sendv)(struct kfid_ep *ep, const struct kvec *iov, void **desc, size_t count,
			 kfi_addr_t dest_addr, u64 tag, void *context);
	ssize_t	(*sendbv)(struct kfid_ep *ep, const struct bio_vec *biov, void **desc, size_t count,
			  kfi_addr_t dest_addr, u64 tag, void *context);
	ssize_t	(*sendmsg)(struct kfid_ep *ep, const struct kfi_msg_tagged *msg, u64 flags);
	ssize_t	(*inject)(struct kfid_ep *ep, const void *buf, size_t len, kfi_addr_t dest_addr,
			  u64 tag);
	ssize_t	(*senddata)(struct kfid_ep *ep, const void *buf, size_t len, void *desc, u64 data,
			    kfi_addr_t dest_addr, u64 tag, void *context);
	ssize_t	(*injectdata)(struct kfid_ep *ep, const void *buf, size_t len, u64 data,
			      kfi_addr_t dest_addr, u64 tag);
	ssize_t	(*recvsgl)(struct kfid_ep *ep, const struct scatterlist *sgl, void **desc,
			   size_t count, kfi_addr_t src_addr, u64 tag, u64 ignore, void *context);
	ssize_t	(*sendsgl)(struct kfid_ep *ep, const struct scatterlist *sgl, void **desc,
			   size_t count, kfi_addr_t dest_addr, u64 tag, void *context);
};

/**
 * kfi_trecv() - Wait for a tagged message in a buffer.
 * @ep: The endpoint.
 * @buf: Where to put the message.
 * @len: Room there, in bytes.
 * @desc: Descriptor of the local memory, from kfi_mr_desc(); NULL if the provider needs none.
 * @src_addr: Only from this peer; KFI_ADDR_UNSPEC for any.
 * @tag: The tag.
 * @ignore: Bits of the tag that may differ.
 * @context: Given back with the completion.
 *
 * The buffer belongs to the provider until the operation has ended.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @ep is NULL, or an argument is wrong.
 * * -KFI_EAGAIN: the queue is full; try again after reading completions.
 * * -KFI_EOPBADSTATE: the endpoint isn't enabled.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline ssize_t kfi_trecv(struct kfid_ep *ep, void *buf, size_t len, void *desc,
				kfi_addr_t src_addr, u64 tag, u64 ignore, void *context)
{
	return __kfi_call(ep, tagged, recv, ep, buf, len, desc, src_addr, tag, ignore, context);
}

/**
 * kfi_trecvv() - Wait for a tagged message in a list of buffers.
 * @ep: The endpoint.
 * @iov: Where to put the message, as a list of buffers.
 * @desc: Descriptors of the local memory, as many as there are in the list; NULL if the
 *	provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit.
 * @src_addr: Only from this peer; KFI_ADDR_UNSPEC for any.
 * @tag: The tag.
 * @ignore: Bits of the tag that may differ.
 * @context: Given back with the completion.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0 or an errno, see kfi_trecv().
 */
static inline ssize_t kfi_trecvv(struct kfid_ep *ep, const struct kvec *iov, void **desc,
				 size_t count, kfi_addr_t src_addr, u64 tag, u64 ignore,
				 void *context)
{
	return __kfi_call(ep, tagged, recvv, ep, iov, desc, count, src_addr, tag, ignore, context);
}

/**
 * kfi_trecvbv() - Wait for a tagged message in a list of pieces of pages.
 * @ep: The endpoint.
 * @biov: Where to put the message, as a list of pieces of pages.
 * @desc: Descriptors of the local memory, as many as there are in the list; NULL if the
 *	provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit.
 * @src_addr: Only from this peer; KFI_ADDR_UNSPEC for any.
 * @tag: The tag.
 * @ignore: Bits of the tag that may differ.
 * @context: Given back with the completion.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0 or an errno, see kfi_trecv().
 */
static inline ssize_t kfi_trecvbv(struct kfid_ep *ep, const struct bio_vec *biov, void **desc,
				  size_t count, kfi_addr_t src_addr, u64 tag, u64 ignore,
				  void *context)
{
	return __kfi_call(ep, tagged, recvbv, ep, biov, desc, count, src_addr, tag, ignore,
			  context);
}

/**
 * kfi_trecvsgl() - Wait for a tagged message in a scatterlist.
 * @ep: The endpoint.
 * @sgl: Where to put the message, as a list that is DMA-mapped for the domain's device.
 * @desc: Descriptors of the local memory, as many as there are in the list; NULL if the
 *	provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit.
 * @src_addr: Only from this peer; KFI_ADDR_UNSPEC for any.
 * @tag: The tag.
 * @ignore: Bits of the tag that may differ.
 * @context: Given back with the completion.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0 or an errno, see kfi_trecv().
 */
static inline ssize_t kfi_trecvsgl(struct kfid_ep *ep, const struct scatterlist *sgl, void **desc,
				   size_t count, kfi_addr_t src_addr, u64 tag, u64 ignore,
				   void *context)
{
	return __kfi_call(ep, tagged, recvsgl, ep, sgl, desc, count, src_addr, tag, ignore,
			  context);
}

/**
 * kfi_trecvmsg() - Wait for a tagged message, described by a structure.
 * @ep: The endpoint.
 * @msg: Where to put the message.
 * @flags: Operation flags; KFI_PEEK, KFI_CLAIM or KFI_DISCARD for a message that is here
 *	already.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0 or an errno, see kfi_trecv().
 */
static inline ssize_t kfi_trecvmsg(struct kfid_ep *ep, const struct kfi_msg_tagged *msg, u64 flags)
{
	return __kfi_call(ep, tagged, recvmsg, ep, msg, flags);
}

/**
 * kfi_tsend() - Send a tagged message.
 * @ep: The endpoint.
 * @buf: The message.
 * @len: Its length, in bytes.
 * @desc: Descriptor of the local memory, from kfi_mr_desc(); NULL if the provider needs none.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @tag: The tag.
 * @context: Given back with the completion.
 *
 * The buffer belongs to the provider until the operation has ended.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @ep is NULL, or an argument is wrong.
 * * -KFI_EAGAIN: the queue is full; try again after reading completions.
 * * -KFI_EOPBADSTATE: the endpoint isn't enabled.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline ssize_t kfi_tsend(struct kfid_ep *ep, const void *buf, size_t len, void *desc,
				kfi_addr_t dest_addr, u64 tag, void *context)
{
	return __kfi_call(ep, tagged, send, ep, buf, len, desc, dest_addr, tag, context);
}

/**
 * kfi_tsendv() - Send a list of buffers as one tagged message.
 * @ep: The endpoint.
 * @iov: The message, as a list of buffers.
 * @desc: Descriptors of the local memory, as many as there are in the list; NULL if the
 *	provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @tag: The tag.
 * @context: Given back with the completion.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0 or an errno, see kfi_tsend().
 */
static inline ssize_t kfi_tsendv(struct kfid_ep *ep, const struct kvec *iov, void **desc,
				 size_t count, kfi_addr_t dest_addr, u64 tag, void *context)
{
	return __kfi_call(ep, tagged, sendv, ep, iov, desc, count, dest_addr, tag, context);
}

/**
 * kfi_tsendbv() - Send a list of pieces of pages as one tagged message.
 * @ep: The endpoint.
 * @biov: The message, as a list of pieces of pages.
 * @desc: Descriptors of the local memory, as many as there are in the list; NULL if the
 *	provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @tag: The tag.
 * @context: Given back with the completion.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0 or an errno, see kfi_tsend().
 */
static inline ssize_t kfi_tsendbv(struct kfid_ep *ep, const struct bio_vec *biov, void **desc,
				  size_t count, kfi_addr_t dest_addr, u64 tag, void *context)
{
	return __kfi_call(ep, tagged, sendbv, ep, biov, desc, count, dest_addr, tag, context);
}

/**
 * kfi_tsendsgl() - Send a scatterlist as one tagged message.
 * @ep: The endpoint.
 * @sgl: The message, as a list that is DMA-mapped for the domain's device.
 * @desc: Descriptors of the local memory, as many as there are in the list; NULL if the
 *	provider needs none.
 * @count: How many there are, at most the endpoint's iov_limit.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @tag: The tag.
 * @context: Given back with the completion.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0 or an errno, see kfi_tsend().
 */
static inline ssize_t kfi_tsendsgl(struct kfid_ep *ep, const struct scatterlist *sgl, void **desc,
				   size_t count, kfi_addr_t dest_addr, u64 tag, void *context)
{
	return __kfi_call(ep, tagged, sendsgl, ep, sgl, desc, count, dest_addr, tag, context);
}

/**
 * kfi_tsendmsg() - Send a tagged message, described by a structure.
 * @ep: The endpoint.
 * @msg: The message and where it goes.
 * @flags: Operation flags, KFI_COMPLETION and so on.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0 or an errno, see kfi_tsend().
 */
static inline ssize_t kfi_tsendmsg(struct kfid_ep *ep, const struct kfi_msg_tagged *msg, u64 flags)
{
	return __kfi_call(ep, tagged, sendmsg, ep, msg, flags);
}

/**
 * kfi_tinject() - Send a short tagged message without a completion.
 * @ep: The endpoint.
 * @buf: The message.
 * @len: Its length, in bytes; at most the endpoint's inject_size.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @tag: The tag.
 *
 * The buffer is the caller's again on return.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0 or an errno, see kfi_tsend().
 */
static inline ssize_t kfi_tinject(struct kfid_ep *ep, const void *buf, size_t len,
				  kfi_addr_t dest_addr, u64 tag)
{
	return __kfi_call(ep, tagged, inject, ep, buf, len, dest_addr, tag);
}

/**
 * kfi_tsenddata() - Send a tagged message with remote CQ data.
 * @ep: The endpoint.
 * @buf: The message.
 * @len: Its length, in bytes.
 * @desc: Descriptor of the local memory, from kfi_mr_desc(); NULL if the provider needs none.
 * @data: Goes to the peer with its completion.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @tag: The tag.
 * @context: Given back with the completion.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0 or an errno, see kfi_tsend().
 */
static inline ssize_t kfi_tsenddata(struct kfid_ep *ep, const void *buf, size_t len, void *desc,
				    u64 data, kfi_addr_t dest_addr, u64 tag, void *context)
{
	return __kfi_call(ep, tagged, senddata, ep, buf, len, desc, data, dest_addr, tag, context);
}

/**
 * kfi_tinjectdata() - Send a short tagged message with remote CQ data, no completion.
 * @ep: The endpoint.
 * @buf: The message.
 * @len: Its length, in bytes; at most the endpoint's inject_size.
 * @data: Goes to the peer with its completion.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @tag: The tag.
 *
 * The buffer is the caller's again on return.
 *
 * Context: Process or softirq context; doesn't sleep.
 * Return: 0 or an errno, see kfi_tsend().
 */
static inline ssize_t kfi_tinjectdata(struct kfid_ep *ep, const void *buf, size_t len, u64 data,
				      kfi_addr_t dest_addr, u64 tag)
{
	return __kfi_call(ep, tagged, injectdata, ep, buf, len, data, dest_addr, tag);
}

#endif /* _KFI_TAGGED_H_ */
