/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: atomic operations on a peer's memory.
 */
#ifndef _KFI_ATOMIC_H_
#define _KFI_ATOMIC_H_

#include "kfabric.h"
#include "kfi_domain.h"
#include "kfi_endpoint.h"

/* Which family of calls kfi_query_atomic() asks about, if not that of kfi_atomic(). */
#define KFI_FETCH_ATOMIC	(1ULL << 58)
#define KFI_COMPARE_ATOMIC	(1ULL << 59)

/**
 * struct kfi_ioc - A piece of local memory, in elements.
 * @addr: Where it begins.
 * @count: How many elements.
 */
struct kfi_ioc {
	void			*addr;
	size_t			count;
};

/**
 * struct kfi_rma_ioc - A piece of a peer's memory, in elements.
 * @addr: Where it begins: counted from 0, or from the region's iova under KFI_MR_VIRT_ADDR.
 * @count: How many elements.
 * @key: The key of the peer's region.
 */
struct kfi_rma_ioc {
	u64			addr;
	size_t			count;
	u64			key;
};

/**
 * struct kfi_atomic_attr - How much of an atomic operation can be done at once.
 * @count: Elements.
 * @size: Size of an element, in bytes.
 */
struct kfi_atomic_attr {
	size_t			count;
	size_t			size;
};

/**
 * struct kfi_msg_atomic - An atomic operation, for kfi_atomicmsg() and its like.
 * @msg_iov: The operands.
 * @desc: Descriptors of the operands' memory, one for each entry; or NULL.
 * @iov_count: Length of @msg_iov.
 * @addr: The peer.
 * @rma_iov: The pieces of the peer's memory.
 * @rma_iov_count: How many there are.
 * @datatype: Type of the elements.
 * @op: The operation.
 * @context: Given back with the completion.
 * @data: Remote CQ data, for KFI_REMOTE_CQ_DATA.
 */
struct kfi_msg_atomic {
	const struct kfi_ioc		*msg_iov;
	void				**desc;
	size_t				iov_count;
	kfi_addr_t			addr;
	const struct kfi_rma_ioc	*rma_iov;
	size_t				rma_iov_count;
	enum kfi_datatype		datatype;
	enum kfi_op			op;
	void				*context;
	u64				data;
};

/**
 * struct kfi_msg_fetch - Where an atomic operation puts what was there before.
 * @msg_iov: The memory.
 * @desc: Its descriptors, one for each entry; or NULL.
 * @iov_count: Length of @msg_iov.
 */
struct kfi_msg_fetch {
	struct kfi_ioc			*msg_iov;
	void				**desc;
	size_t				iov_count;
};

/**
 * struct kfi_msg_compare - What an atomic operation compares with.
 * @msg_iov: The memory.
 * @desc: Its descriptors, one for each entry; or NULL.
 * @iov_count: Length of @msg_iov.
 */
struct kfi_msg_compare {
	const struct kfi_ioc		*msg_iov;
	void				**desc;
	size_t				iov_count;
};

/**
 * struct kfi_ops_atomic - The atomic calls of an endpoint.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @write: See kfi_atomic().
 * @writev: See kfi_atomicv().
 * @writemsg: See kfi_atomicmsg().
 * @inject: See kfi_inject_atomic().
 * @readwrite: See kfi_fetch_atomic().
 * @readwritev: See kfi_fetch_atomicv().
 * @readwritemsg: See kfi_fetch_atomicmsg().
 * @compwrite: See kfi_compare_atomic().
 * @compwritev: See kfi_compare_atomicv().
 * @compwritemsg: See kfi_compare_atomicmsg().
 * @writevalid: See kfi_atomicvalid().
 * @readwritevalid: See kfi_fetch_atomicvalid().
 * @compwritevalid: See kfi_compare_atomicvalid().
 */
struct kfi_ops_atomic {
	size_t	size;
	ssize_t	(*write)(struct kfid_ep *ep, const void *buf, size_t count, void *desc,
			 kfi_addr_t dest_addr, u64 addr, u64 key, enum kfi_datatype datatype,
			 enum kfi_op op, void *context);
	ssize_t	(*writev)(struct kfid_ep *ep, const struct kfi_ioc *iov, void **desc, size_t count,
			  kfi_addr_t dest_addr, u64 addr, u64 key, enum kfi_datatype datatype,
			  enum kfi_op op, void *context);
	ssize_t	(*writemsg)(struct kfid_ep *ep, const struct kfi_msg_atomic *msg, u64 flags);
	ssize_t	(*inject)(struct kfid_ep *ep, const void *buf, size_t count, kfi_addr_t dest_addr,
			  u64 addr, u64 key, enum kfi_datatype datatype, enum kfi_op op);
	ssize_t	(*readwrite)(struct kfid_ep *ep, const void *buf, size_t count, void *desc,
			     void *result, void *result_desc, kfi_addr_t dest_addr, u64 addr,
			     u64 key, enum kfi_datatype datatype, enum kfi_op op, void *context);
	ssize_t	(*readwritev)(struct kfid_ep *ep, const struct kfi_ioc *iov, void **desc,
			      size_t count, struct kfi_ioc *resultv, void **result_desc,
			      size_t result_count, kfi_addr_t dest_addr, u64 addr, u64 key,
			      enum kfi_datatype datatype, enum kfi_op op, void *context);
	ssize_t	(*readwritemsg)(struct kfid_ep *ep, const struct kfi_msg_atomic *msg,
				struct kfi_ioc *resultv, void **result_desc, size_t result_count,
				u64 flags);
	ssize_t	(*compwrite)(struct kfid_ep *ep, const void *buf, size_t count, void *desc,
			     const void *compare, void *compare_desc, void *result,
			     void *result_desc, kfi_addr_t dest_addr, u64 addr, u64 key,
			     enum kfi_datatype datatype, enum kfi_op op, void *context);
	ssize_t	(*compwritev)(struct kfid_ep *ep, const struct kfi_ioc *iov, void **desc,
			      size_t count, const struct kfi_ioc *comparev, void **compare_desc,
			      size_t compare_count, struct kfi_ioc *resultv, void **result_desc,
			      size_t result_count, kfi_addr_t dest_addr, u64 addr, u64 key,
			      enum kfi_datatype datatype, enum kfi_op op, void *context);
	ssize_t	(*compwritemsg)(struct kfid_ep *ep, const struct kfi_msg_atomic *msg,
				const struct kfi_ioc *comparev, void **compare_desc,
				size_t compare_count, struct kfi_ioc *resultv, void **result_desc,
				size_t result_count, u64 flags);
	int	(*writevalid)(struct kfid_ep *ep, enum kfi_datatype datatype, enum kfi_op op,
			      size_t *count);
	int	(*readwritevalid)(struct kfid_ep *ep, enum kfi_datatype datatype, enum kfi_op op,
				  size_t *count);
	int	(*compwritevalid)(struct kfid_ep *ep, enum kfi_datatype datatype, enum kfi_op op,
				  size_t *count);
};

/**
 * kfi_atomic() - Change a peer's memory atomically.
 * @ep: The endpoint.
 * @buf: The operands.
 * @count: How many elements there are.
 * @desc: Descriptor of the operands' memory, or NULL.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @datatype: Type of the elements.
 * @op: The operation.
 * @context: Given back with the completion.
 *
 * Each element is atomic by itself.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @ep is NULL, an error pointer or no endpoint.
 * * -KFI_ENOSYS: a bare endpoint.
 * * -KFI_EINVAL: @msg is NULL, or rma_iov_count is 0.
 * * -KFI_E2BIG: rma_iov_count is above 1.
 * * -KFI_EINVAL: rma_iov is NULL.
 * * -KFI_EOPNOTSUPP: the provider has no operation of that kind, or the domain has no KFI_ATOMIC.
 * * -KFI_EINVAL: a count is 0.
 * * -KFI_E2BIG: a count is above 1.
 * * -KFI_EINVAL: an operand is NULL.
 * * -KFI_EFAULT: no memory at the address of an operand.
 * * -KFI_EINVAL: @result is NULL or unaligned.
 * * -KFI_EOPBADSTATE: the endpoint isn't enabled.
 * * -KFI_ENOTCONN: there is no connection.
 * * -KFI_EBADFLAGS: an unknown flag.
 * * -KFI_EINVAL: @result_desc is no region's of the domain, or @result is outside.
 * * -KFI_EACCES: its region may not be written to.
 * * -KFI_EFAULT: @result may not be registered.
 * * -KFI_EINVAL: @addr plus eight wraps.
 * * -KFI_ENOKEY: @key has bit 63 set and isn't mapped; over "verbs": more than 32 bits.
 * * -KFI_EINVAL: @addr is unaligned, or not in one piece of a mapped key's region.
 * * -KFI_EAGAIN: the endpoint's queue or the completion queue is full.
 * * -KFI_ENOMEM: out of memory.
 * * -KFI_EIO: the device refuses the request.
 */
static inline ssize_t kfi_atomic(struct kfid_ep *ep, const void *buf, size_t count, void *desc,
				 kfi_addr_t dest_addr, u64 addr, u64 key,
				 enum kfi_datatype datatype, enum kfi_op op, void *context)
{
	return __kfi_call(ep, atomic, write, ep, buf, count, desc, dest_addr, addr, key, datatype,
			  op, context);
}

/**
 * kfi_atomicv() - Change a peer's memory atomically, with a list of operands.
 * @ep: The endpoint.
 * @iov: The operands, as a list.
 * @desc: Descriptors of the operands' memory, one for each entry; or NULL.
 * @count: Length of the list.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @datatype: Type of the elements.
 * @op: The operation.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_atomic().
 */
static inline ssize_t kfi_atomicv(struct kfid_ep *ep, const struct kfi_ioc *iov, void **desc,
				  size_t count, kfi_addr_t dest_addr, u64 addr, u64 key,
				  enum kfi_datatype datatype, enum kfi_op op, void *context)
{
	return __kfi_call(ep, atomic, writev, ep, iov, desc, count, dest_addr, addr, key, datatype,
			  op, context);
}

/**
 * kfi_atomicmsg() - Change a peer's memory atomically, described by a structure.
 * @ep: The endpoint.
 * @msg: The operation.
 * @flags: Operation flags, KFI_COMPLETION and so on.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_atomic().
 */
static inline ssize_t kfi_atomicmsg(struct kfid_ep *ep, const struct kfi_msg_atomic *msg, u64 flags)
{
	return __kfi_call(ep, atomic, writemsg, ep, msg, flags);
}

/**
 * kfi_inject_atomic() - Change a peer's memory atomically, without a completion.
 * @ep: The endpoint.
 * @buf: The operands.
 * @count: How many elements there are.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @datatype: Type of the elements.
 * @op: The operation.
 *
 * The operands' memory is the caller's again on return.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_atomic().
 */
static inline ssize_t kfi_inject_atomic(struct kfid_ep *ep, const void *buf, size_t count,
					kfi_addr_t dest_addr, u64 addr, u64 key,
					enum kfi_datatype datatype, enum kfi_op op)
{
	return __kfi_call(ep, atomic, inject, ep, buf, count, dest_addr, addr, key, datatype, op);
}

/**
 * kfi_fetch_atomic() - Change a peer's memory atomically and fetch what was there.
 * @ep: The endpoint.
 * @buf: The operands.
 * @count: How many elements there are.
 * @desc: Descriptor of the operands' memory, or NULL.
 * @result: Where to put what was there before.
 * @result_desc: Descriptor of that memory, or NULL.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @datatype: Type of the elements.
 * @op: The operation.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_atomic().
 */
static inline ssize_t kfi_fetch_atomic(struct kfid_ep *ep, const void *buf, size_t count,
				       void *desc, void *result, void *result_desc,
				       kfi_addr_t dest_addr, u64 addr, u64 key,
				       enum kfi_datatype datatype, enum kfi_op op, void *context)
{
	return __kfi_call(ep, atomic, readwrite, ep, buf, count, desc, result, result_desc,
			  dest_addr, addr, key, datatype, op, context);
}

/**
 * kfi_fetch_atomicv() - Like kfi_fetch_atomic(), with lists.
 * @ep: The endpoint.
 * @iov: The operands, as a list.
 * @desc: Descriptors of the operands' memory, one for each entry; or NULL.
 * @count: Length of the list.
 * @resultv: Where to put what was there before, as a list.
 * @result_desc: Descriptors of that memory, one for each entry; or NULL.
 * @result_count: Length of that list.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @datatype: Type of the elements.
 * @op: The operation.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_atomic().
 */
static inline ssize_t kfi_fetch_atomicv(struct kfid_ep *ep, const struct kfi_ioc *iov, void **desc,
					size_t count, struct kfi_ioc *resultv, void **result_desc,
					size_t result_count, kfi_addr_t dest_addr, u64 addr,
					u64 key, enum kfi_datatype datatype, enum kfi_op op,
					void *context)
{
	return __kfi_call(ep, atomic, readwritev, ep, iov, desc, count, resultv, result_desc,
			  result_count, dest_addr, addr, key, datatype, op, context);
}

/**
 * kfi_fetch_atomicmsg() - Like kfi_fetch_atomic(), described by a structure.
 * @ep: The endpoint.
 * @msg: The operation.
 * @resultv: Where to put what was there before, as a list.
 * @result_desc: Descriptors of that memory, one for each entry; or NULL.
 * @result_count: Length of that list.
 * @flags: Operation flags, KFI_COMPLETION and so on.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_atomic().
 */
static inline ssize_t kfi_fetch_atomicmsg(struct kfid_ep *ep, const struct kfi_msg_atomic *msg,
					  struct kfi_ioc *resultv, void **result_desc,
					  size_t result_count, u64 flags)
{
	return __kfi_call(ep, atomic, readwritemsg, ep, msg, resultv, result_desc, result_count,
			  flags);
}

/**
 * kfi_compare_atomic() - Change a peer's memory atomically if it compares, and fetch.
 * @ep: The endpoint.
 * @buf: The operands.
 * @count: How many elements there are.
 * @desc: Descriptor of the operands' memory, or NULL.
 * @compare: The values to compare with.
 * @compare_desc: Descriptor of that memory, or NULL.
 * @result: Where to put what was there before.
 * @result_desc: Descriptor of that memory, or NULL.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @datatype: Type of the elements.
 * @op: The operation.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_atomic().
 */
static inline ssize_t kfi_compare_atomic(struct kfid_ep *ep, const void *buf, size_t count,
					 void *desc, const void *compare, void *compare_desc,
					 void *result, void *result_desc, kfi_addr_t dest_addr,
					 u64 addr, u64 key, enum kfi_datatype datatype,
					 enum kfi_op op, void *context)
{
	return __kfi_call(ep, atomic, compwrite, ep, buf, count, desc, compare, compare_desc,
			  result, result_desc, dest_addr, addr, key, datatype, op, context);
}

/**
 * kfi_compare_atomicv() - Like kfi_compare_atomic(), with lists.
 * @ep: The endpoint.
 * @iov: The operands, as a list.
 * @desc: Descriptors of the operands' memory, one for each entry; or NULL.
 * @count: Length of the list.
 * @comparev: The values to compare with, as a list.
 * @compare_desc: Descriptors of that memory, one for each entry; or NULL.
 * @compare_count: Length of that list.
 * @resultv: Where to put what was there before, as a list.
 * @result_desc: Descriptors of that memory, one for each entry; or NULL.
 * @result_count: Length of that list.
 * @dest_addr: The peer; ignored by a connected endpoint.
 * @addr: Where in the peer's region: counted from 0, or from the region's iova under
 *	KFI_MR_VIRT_ADDR.
 * @key: The key of the peer's region.
 * @datatype: Type of the elements.
 * @op: The operation.
 * @context: Given back with the completion.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_atomic().
 */
static inline ssize_t kfi_compare_atomicv(struct kfid_ep *ep, const struct kfi_ioc *iov,
					  void **desc, size_t count, const struct kfi_ioc *comparev,
					  void **compare_desc, size_t compare_count,
					  struct kfi_ioc *resultv, void **result_desc,
					  size_t result_count, kfi_addr_t dest_addr, u64 addr,
					  u64 key, enum kfi_datatype datatype, enum kfi_op op,
					  void *context)
{
	return __kfi_call(ep, atomic, compwritev, ep, iov, desc, count, comparev, compare_desc,
			  compare_count, resultv, result_desc, result_count, dest_addr, addr, key,
			  datatype, op, context);
}

/**
 * kfi_compare_atomicmsg() - Like kfi_compare_atomic(), described by a structure.
 * @ep: The endpoint.
 * @msg: The operation.
 * @comparev: The values to compare with, as a list.
 * @compare_desc: Descriptors of that memory, one for each entry; or NULL.
 * @compare_count: Length of that list.
 * @resultv: Where to put what was there before, as a list.
 * @result_desc: Descriptors of that memory, one for each entry; or NULL.
 * @result_count: Length of that list.
 * @flags: Operation flags, KFI_COMPLETION and so on.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0 or an errno, see kfi_atomic().
 */
static inline ssize_t kfi_compare_atomicmsg(struct kfid_ep *ep, const struct kfi_msg_atomic *msg,
					    const struct kfi_ioc *comparev, void **compare_desc,
					    size_t compare_count, struct kfi_ioc *resultv,
					    void **result_desc, size_t result_count, u64 flags)
{
	return __kfi_call(ep, atomic, compwritemsg, ep, msg, comparev, compare_desc, compare_count,
			  resultv, result_desc, result_count, flags);
}

/**
 * kfi_atomicvalid() - Whether kfi_atomic() can do an operation.
 * @ep: The endpoint.
 * @datatype: Type of the elements.
 * @op: The operation.
 * @count: Where to put how many elements it can do at once.
 *
 * Context: Any; doesn't sleep.
 * Return: 0 if it can, or:
 *
 * * -KFI_EINVAL: @ep is NULL, an error pointer or no endpoint.
 * * -KFI_ENOSYS: a bare endpoint.
 * * -KFI_EOPNOTSUPP: the provider has no operation of that kind, or the domain has no KFI_ATOMIC.
 * * -KFI_EINVAL: @count is NULL.
 */
static inline int kfi_atomicvalid(struct kfid_ep *ep, enum kfi_datatype datatype, enum kfi_op op,
				  size_t *count)
{
	return __kfi_call(ep, atomic, writevalid, ep, datatype, op, count);
}

/**
 * kfi_fetch_atomicvalid() - Whether kfi_fetch_atomic() can do an operation.
 * @ep: The endpoint.
 * @datatype: Type of the elements.
 * @op: The operation.
 * @count: Where to put how many elements it can do at once.
 *
 * Context: Any; doesn't sleep.
 * Return: 0 if it can, or:
 *
 * * -KFI_EINVAL: @ep is NULL, an error pointer or no endpoint.
 * * -KFI_ENOSYS: a bare endpoint.
 * * -KFI_EOPNOTSUPP: the provider has no operation of that kind, or the domain has no KFI_ATOMIC.
 * * -KFI_EINVAL: @count is NULL.
 */
static inline int kfi_fetch_atomicvalid(struct kfid_ep *ep, enum kfi_datatype datatype,
					enum kfi_op op, size_t *count)
{
	return __kfi_call(ep, atomic, readwritevalid, ep, datatype, op, count);
}

/**
 * kfi_compare_atomicvalid() - Whether kfi_compare_atomic() can do an operation.
 * @ep: The endpoint.
 * @datatype: Type of the elements.
 * @op: The operation.
 * @count: Where to put how many elements it can do at once.
 *
 * Context: Any; doesn't sleep.
 * Return: 0 if it can, or:
 *
 * * -KFI_EINVAL: @ep is NULL, an error pointer or no endpoint.
 * * -KFI_ENOSYS: a bare endpoint.
 * * -KFI_EOPNOTSUPP: the provider has no operation of that kind, or the domain has no KFI_ATOMIC.
 * * -KFI_EINVAL: @count is NULL.
 */
static inline int kfi_compare_atomicvalid(struct kfid_ep *ep, enum kfi_datatype datatype,
					  enum kfi_op op, size_t *count)
{
	return __kfi_call(ep, atomic, compwritevalid, ep, datatype, op, count);
}

/**
 * kfi_query_atomic() - Whether a domain can do an atomic operation.
 * @domain: The domain.
 * @datatype: Type of the elements.
 * @op: The operation.
 * @attr: Where to put how much of it can be done at once.
 * @flags: KFI_FETCH_ATOMIC for kfi_fetch_atomic() and its like, KFI_COMPARE_ATOMIC for
 *	kfi_compare_atomic(), or 0.
 *
 * A domain whose info doesn't have KFI_ATOMIC in its capabilities can do none.
 *
 * Context: Any; doesn't sleep.
 * Return: 0 if it can, or:
 *
 * * -KFI_EINVAL: @domain is NULL, an error pointer or no domain.
 * * -KFI_EBADFLAGS: @flags is not 0, KFI_FETCH_ATOMIC or KFI_COMPARE_ATOMIC.
 * * -KFI_ENOSYS: the provider has no connected endpoints.
 * * -KFI_EOPNOTSUPP: the provider has no operation of that kind, or the domain has no KFI_ATOMIC.
 * * -KFI_EINVAL: @attr is NULL.
 */
static inline int kfi_query_atomic(struct kfid_domain *domain, enum kfi_datatype datatype,
				   enum kfi_op op, struct kfi_atomic_attr *attr, u64 flags)
{
	return __kfi_call(domain, ops, query_atomic, domain, datatype, op, attr, flags);
}

#endif /* _KFI_ATOMIC_H_ */
