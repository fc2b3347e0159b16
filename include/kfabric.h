/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: one fabric API for kernel code over many providers.
 *
 * This header has what all objects share: versions, flags, attributes, struct kfid, and the calls
 * that find and open a fabric. kfi_domain.h has domains and memory registration.
 *
 * Most calls are inlines that dispatch through an object's table of operations. They check before
 * they jump: an object that is NULL or an error pointer gives -KFI_EINVAL, an operation that the
 * provider doesn't have gives -KFI_ENOSYS.
 */
#ifndef _KFABRIC_H_
#define _KFABRIC_H_

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/stddef.h>
#include <linux/types.h>

#include "kfi_errno.h"

#define KFI_DEFINE_HANDLE(name) struct name##_s { int dummy; }; typedef struct name##_s *name

/* The version of this API. */
#define KFI_MAJOR_VERSION	1
#define KFI_MINOR_VERSION	7

/* Sizes of buffers for names, in bytes, with the final NUL. */
enum {
	KFI_PATH_MAX		= 256,
	KFI_NAME_MAX		= 64,
	KFI_VERSION_MAX		= 64
};

/* A version is one number that can be compared as it is. */
#define KFI_VERSION(major, minor)	(((major) << 16) | (minor))
#define KFI_MAJOR(version)		((version) >> 16)
#define KFI_MINOR(version)		((version) & 0xFFFF)
#define KFI_VERSION_GE(v1, v2)		((v1) >= (v2))
#define KFI_VERSION_LT(v1, v2)		((v1) < (v2))

#ifndef UINT64_MAX
#define UINT64_MAX	((u64)~0ULL)
#endif

struct kfid;
struct kfid_av;
struct kfid_cntr;
struct kfid_cq;
struct kfid_domain;
struct kfid_ep;
struct kfid_eq;
struct kfid_fabric;
struct kfid_mr;
struct kfid_pep;
struct kfid_poll;
struct kfid_stx;
struct kfid_wait;
struct kfi_eq_attr;
struct kfi_wait_attr;

typedef struct kfid *kfid_t;

/* Set in a value (protocol, address format) that only one provider knows. */
#define KFI_PROV_SPECIFIC	(1U << 31)

/*
 * 64-bit flags: capabilities, access rights and operation flags. Bits that mean the same wherever
 * they are used count up from 1; bits whose meaning depends on the call count down from 59;
 * 60 to 63 are the provider's.
 */
#define KFI_MSG			(1ULL << 1)
#define KFI_RMA			(1ULL << 2)
#define KFI_TAGGED		(1ULL << 3)
#define KFI_ATOMIC		(1ULL << 4)
#define KFI_ATOMICS		KFI_ATOMIC
#define KFI_MULTICAST		(1ULL << 5)
#define KFI_TAGGED_RMA		(1ULL << 6)

/* The capabilities of an object, or its use; the access rights of a memory region. */
#define KFI_READ		(1ULL << 8)
#define KFI_WRITE		(1ULL << 9)
#define KFI_RECV		(1ULL << 10)
#define KFI_SEND		(1ULL << 11)
#define KFI_TRANSMIT		KFI_SEND
#define KFI_REMOTE_READ		(1ULL << 12)
#define KFI_REMOTE_WRITE	(1ULL << 13)

#define KFI_MULTI_RECV		(1ULL << 16)
#define KFI_REMOTE_CQ_DATA	(1ULL << 17)
#define KFI_MORE		(1ULL << 18)
#define KFI_PEEK		(1ULL << 19)
#define KFI_TRIGGER		(1ULL << 20)
#define KFI_FENCE		(1ULL << 21)

#define KFI_COMPLETION		(1ULL << 24)
#define KFI_EVENT		KFI_COMPLETION
#define KFI_INJECT		(1ULL << 25)
#define KFI_INJECT_COMPLETE	(1ULL << 26)
#define KFI_TRANSMIT_COMPLETE	(1ULL << 27)
#define KFI_DELIVERY_COMPLETE	(1ULL << 28)
#define KFI_AFFINITY		(1ULL << 29)
#define KFI_COMMIT_COMPLETE	(1ULL << 30)
#define KFI_TAGGED_MULTI_RECV	(1ULL << 31)

#define KFI_RMA_PMEM		(1ULL << 49)
#define KFI_SOURCE_ERR		(1ULL << 50)
#define KFI_LOCAL_COMM		(1ULL << 51)
#define KFI_REMOTE_COMM		(1ULL << 52)
#define KFI_SHARED_AV		(1ULL << 53)
#define KFI_PROV_ATTR_ONLY	(1ULL << 54)
#define KFI_NUMERICHOST		(1ULL << 55)
#define KFI_RMA_EVENT		(1ULL << 56)
#define KFI_SOURCE		(1ULL << 57)
#define KFI_NAMED_RX_CTX	(1ULL << 58)
#define KFI_DIRECTED_RECV	(1ULL << 59)

/*
 * An extension. With kfi_sendmsg(), kfi_msg.data is a key of the peer. The peer's device refuses
 * all accesses by that key from then on. The completion of the peer's receive has that key as data.
 */
#define KFI_INVALIDATE		(1ULL << 60)

/* For binding a completion queue to an endpoint. */
#define KFI_SELECTIVE_COMPLETION	(1ULL << 59)

/* Mode bits: what a provider asks its consumer to do. */
#define KFI_CONTEXT		(1ULL << 59)
#define KFI_MSG_PREFIX		(1ULL << 58)
#define KFI_ASYNC_IOV		(1ULL << 57)
#define KFI_RX_CQ_DATA		(1ULL << 56)
#define KFI_LOCAL_MR		(1ULL << 55)
#define KFI_NOTIFY_FLAGS_ONLY	(1ULL << 54)
#define KFI_RESTRICTED_COMP	(1ULL << 53)
#define KFI_CONTEXT2		(1ULL << 52)

/* How the addresses in struct kfi_info and in an address vector are written. */
enum {
	KFI_FORMAT_UNSPEC,	/* any */
	KFI_SOCKADDR,		/* struct sockaddr */
	KFI_SOCKADDR_IN,	/* struct sockaddr_in */
	KFI_SOCKADDR_IN6,	/* struct sockaddr_in6 */
	KFI_SOCKADDR_IB,	/* struct sockaddr_ib */
	KFI_ADDR_GNI,
	KFI_ADDR_CXI
};

typedef u64 kfi_addr_t;

/* No address, no key. Not macros, since bindgen would make -1 of these. */
enum {
	KFI_ADDR_UNSPEC		= UINT64_MAX,
	KFI_ADDR_NOTAVAIL	= UINT64_MAX,
	KFI_KEY_NOTAVAIL	= UINT64_MAX,
	KFI_SHARED_CONTEXT	= UINT64_MAX
};

/* Address vectors: peers are named by a handle of the provider's, or by their index. */
enum kfi_av_type {
	KFI_AV_UNSPEC,
	KFI_AV_MAP,
	KFI_AV_TABLE
};

/*
 * kfi_domain_attr.mr_mode: what a consumer takes upon itself to make registration work. In hints
 * it's what the consumer can do; in the info found it's what the provider needs.
 */
#define KFI_MR_LOCAL		(1 << 1)	/* register memory for local use, too */
#define KFI_MR_RAW		(1 << 2)	/* keys go as raw bytes, see kfi_mr_raw_attr() */
#define KFI_MR_VIRT_ADDR	(1 << 3)	/* a region starts at kfid_mr.iova, not 0 */
#define KFI_MR_PROV_KEY		(1 << 4)	/* the provider chooses keys */
#define KFI_MR_RMA_EVENT	(1 << 5)	/* bind and enable regions that count accesses */
#define KFI_MR_ENDPOINT		(1 << 6)	/* bind regions to an endpoint and enable them */

enum kfi_progress {
	KFI_PROGRESS_UNSPEC,
	KFI_PROGRESS_AUTO,
	KFI_PROGRESS_MANUAL
};

enum kfi_threading {
	KFI_THREAD_UNSPEC,
	KFI_THREAD_SAFE,
	KFI_THREAD_FID,
	KFI_THREAD_DOMAIN,
	KFI_THREAD_COMPLETION,
	KFI_THREAD_ENDPOINT
};

enum kfi_resource_mgmt {
	KFI_RM_UNSPEC,
	KFI_RM_DISABLED,
	KFI_RM_ENABLED
};

/* Ordering of two operations, the later one first: RAW is "read after write". */
#define KFI_ORDER_NONE		0
#define KFI_ORDER_RAR		(1 << 0)
#define KFI_ORDER_RAW		(1 << 1)
#define KFI_ORDER_RAS		(1 << 2)
#define KFI_ORDER_WAR		(1 << 3)
#define KFI_ORDER_WAW		(1 << 4)
#define KFI_ORDER_WAS		(1 << 5)
#define KFI_ORDER_SAR		(1 << 6)
#define KFI_ORDER_SAW		(1 << 7)
#define KFI_ORDER_SAS		(1 << 8)
#define KFI_ORDER_STRICT	0x1FF
#define KFI_ORDER_DATA		(1 << 16)

enum kfi_ep_type {
	KFI_EP_UNSPEC,
	KFI_EP_MSG,
	KFI_EP_DGRAM,
	KFI_EP_RDM,
	KFI_EP_SOCK_STREAM,
	KFI_EP_SOCK_DGRAM
};

/* kfi_ep_attr.protocol: providers with the same one can talk to each other. */
enum {
	KFI_PROTO_UNSPEC,
	KFI_PROTO_RDMA_CM_IB_RC,
	KFI_PROTO_IWARP,
	KFI_PROTO_IB_UD,
	KFI_PROTO_UDP,
	KFI_PROTO_SOCK_TCP,
	KFI_PROTO_IWARP_RDM,
	KFI_PROTO_IB_RDM,
	KFI_PROTO_GNI,
	KFI_PROTO_CXI
};

/* The type of a list of memory segments. 0 is none of them. */
enum kfi_iov_type {
	KFI_KVEC = 1,	/* struct kvec */
	KFI_BVEC,	/* struct bio_vec */
	KFI_SGL		/* struct scatterlist, DMA-mapped */
};

/* Traffic classes. */
enum {
	KFI_TC_UNSPEC		= 0,
	KFI_TC_DSCP		= 0x100,
	KFI_TC_LABEL		= 0x200,
	KFI_TC_BEST_EFFORT	= KFI_TC_LABEL,
	KFI_TC_LOW_LATENCY,
	KFI_TC_DEDICATED_ACCESS,
	KFI_TC_BULK_DATA,
	KFI_TC_SCAVENGER,
	KFI_TC_NETWORK_CTRL
};

/**
 * kfi_tc_dscp_set() - Make a traffic class of a DSCP value.
 * @dscp: The differentiated services code point.
 *
 * Context: Any.
 * Return: The traffic class.
 */
static inline u32 kfi_tc_dscp_set(u8 dscp)
{
	return dscp | KFI_TC_DSCP;
}

/**
 * kfi_tc_dscp_get() - Take the DSCP value out of a traffic class.
 * @tclass: The traffic class.
 *
 * Context: Any.
 * Return: The code point, or 0 if @tclass wasn't made of one.
 */
static inline u8 kfi_tc_dscp_get(u32 tclass)
{
	return tclass & KFI_TC_DSCP ? (u8)tclass : 0;
}

/**
 * struct kfi_tx_attr - What the sending side of an endpoint can do, or should.
 * @caps: Capabilities, KFI_MSG and so on.
 * @mode: Mode bits.
 * @op_flags: Flags that hold for calls without a flags argument.
 * @msg_order: Order of messages, KFI_ORDER_* bits.
 * @comp_order: Order of completions, KFI_ORDER_* bits.
 * @inject_size: Largest message for the inject calls, in bytes.
 * @size: Depth of the queue, in operations.
 * @iov_limit: Local segments of one operation.
 * @rma_iov_limit: Remote segments of one operation.
 * @tclass: Traffic class, KFI_TC_*.
 */
struct kfi_tx_attr {
	u64			caps;
	u64			mode;
	u64			op_flags;
	u64			msg_order;
	u64			comp_order;
	size_t			inject_size;
	size_t			size;
	size_t			iov_limit;
	size_t			rma_iov_limit;
	u32			tclass;
};

/**
 * struct kfi_rx_attr - What the receiving side of an endpoint can do, or should.
 * @caps: Capabilities, KFI_MSG and so on.
 * @mode: Mode bits.
 * @op_flags: Flags that hold for calls without a flags argument.
 * @msg_order: Order of messages, KFI_ORDER_* bits.
 * @comp_order: Order of completions, KFI_ORDER_* bits.
 * @total_buffered_recv: Buffer space for messages nobody waits for yet, in bytes.
 * @size: Depth of the queue, in operations.
 * @iov_limit: Local segments of one operation.
 */
struct kfi_rx_attr {
	u64			caps;
	u64			mode;
	u64			op_flags;
	u64			msg_order;
	u64			comp_order;
	size_t			total_buffered_recv;
	size_t			size;
	size_t			iov_limit;
};

/**
 * struct kfi_ep_attr - What an endpoint can do, or should.
 * @type: Kind of endpoint.
 * @protocol: KFI_PROTO_*, the protocol on the wire.
 * @protocol_version: The protocol's version.
 * @max_msg_size: Largest message, in bytes.
 * @msg_prefix_size: Bytes to leave in front of a message under KFI_MSG_PREFIX.
 * @max_order_raw_size: Up to how many bytes read after write is ordered.
 * @max_order_war_size: Up to how many bytes write after read is ordered.
 * @max_order_waw_size: Up to how many bytes write after write is ordered.
 * @mem_tag_format: Which bits of a tag can be used.
 * @tx_ctx_cnt: Transmit contexts of a scalable endpoint.
 * @rx_ctx_cnt: Receive contexts of a scalable endpoint.
 * @auth_key_size: Length of @auth_key, in bytes.
 * @auth_key: Authorization key, or NULL.
 */
struct kfi_ep_attr {
	enum kfi_ep_type	type;
	u32			protocol;
	u32			protocol_version;
	size_t			max_msg_size;
	size_t			msg_prefix_size;
	size_t			max_order_raw_size;
	size_t			max_order_war_size;
	size_t			max_order_waw_size;
	u64			mem_tag_format;
	size_t			tx_ctx_cnt;
	size_t			rx_ctx_cnt;
	size_t			auth_key_size;
	u8			*auth_key;
};

/**
 * struct kfi_domain_attr - What a domain can do, or should.
 * @domain: Hint: only this open domain; or NULL. In the info: the one that the hints named, or the
 *	first open domain that meets the offer, or NULL.
 * @name: The domain's name; for kfi_verbs the RDMA device's.
 * @threading: Which calls the consumer serializes by itself.
 * @control_progress: How control operations progress.
 * @data_progress: How data transfers progress. KFI_PROGRESS_MANUAL lets completion queues be polled.
 * @resource_mgmt: Whether the provider protects its queues from overruns.
 * @av_type: Kind of address vector.
 * @mr_mode: KFI_MR_* bits. In hints: those the consumer can live with. In the info: those that
 *	the provider needs.
 * @mr_key_size: Length of a memory key, in bytes; of the longest raw key under KFI_MR_RAW.
 * @cq_data_size: Bytes of remote CQ data.
 * @cq_cnt: Completion queues.
 * @ep_cnt: Endpoints.
 * @tx_ctx_cnt: Transmit contexts.
 * @rx_ctx_cnt: Receive contexts.
 * @max_ep_tx_ctx: Transmit contexts per endpoint.
 * @max_ep_rx_ctx: Receive contexts per endpoint.
 * @max_ep_stx_ctx: Shared transmit contexts per endpoint.
 * @max_ep_srx_ctx: Shared receive contexts per endpoint.
 * @cntr_cnt: Counters.
 * @mr_iov_limit: Segments in one memory region.
 * @caps: Capabilities of the domain as a whole.
 * @mode: Mode bits of the domain as a whole.
 * @auth_key: Authorization key, or NULL.
 * @auth_key_size: Length of @auth_key, in bytes.
 * @max_err_data: Longest err_data of an error entry, in bytes.
 * @mr_cnt: Memory regions that can be open at once.
 * @tclass: Traffic class, KFI_TC_*.
 *
 * In hints 0 and NULL ask for nothing in particular, except that an @mr_mode of 0 takes only offers
 * that need no mode. A count or a size is a minimum.
 */
struct kfi_domain_attr {
	struct kfid_domain	*domain;
	char			*name;
	enum kfi_threading	threading;
	enum kfi_progress	control_progress;
	enum kfi_progress	data_progress;
	enum kfi_resource_mgmt	resource_mgmt;
	enum kfi_av_type	av_type;
	int			mr_mode;
	size_t			mr_key_size;
	size_t			cq_data_size;
	size_t			cq_cnt;
	size_t			ep_cnt;
	size_t			tx_ctx_cnt;
	size_t			rx_ctx_cnt;
	size_t			max_ep_tx_ctx;
	size_t			max_ep_rx_ctx;
	size_t			max_ep_stx_ctx;
	size_t			max_ep_srx_ctx;
	size_t			cntr_cnt;
	size_t			mr_iov_limit;
	u64			caps;
	u64			mode;
	u8			*auth_key;
	size_t			auth_key_size;
	size_t			max_err_data;
	size_t			mr_cnt;
	u32			tclass;
};

/**
 * struct kfi_fabric_attr - The fabric, and its provider.
 * @fabric: Hint: only this open fabric; or NULL. In the info: the one that the hints named, or the
 *	first open fabric of this name, or NULL.
 * @name: The fabric's name.
 * @prov_name: The provider's name, "verbs" for instance.
 * @prov_version: Hint: the oldest version of the provider that will do. In the info: the provider's version.
 * @api_version: The version of this API that the consumer asked for.
 */
struct kfi_fabric_attr {
	struct kfid_fabric	*fabric;
	char			*name;
	char			*prov_name;
	u32			prov_version;
	u32			api_version;
};

/**
 * struct kfi_info - What a consumer wants, as hints, or what a provider offers.
 * @next: The next offer, in the order in which providers were registered and devices found.
 * @caps: Capabilities.
 * @mode: Mode bits.
 * @addr_format: KFI_SOCKADDR and so on: how the addresses are written.
 * @src_addrlen: Length of @src_addr, in bytes.
 * @dest_addrlen: Length of @dest_addr, in bytes.
 * @src_addr: The local address, or NULL.
 * @dest_addr: The peer's address, or NULL.
 * @handle: A connection request or a passive endpoint to make the endpoint of, or NULL.
 * @tx_attr: Sending side, or NULL.
 * @rx_attr: Receiving side, or NULL.
 * @ep_attr: Endpoint, or NULL.
 * @domain_attr: Domain, or NULL; NULL in hints takes any domain, whatever its mr_mode.
 * @fabric_attr: Fabric, or NULL.
 *
 * Comes from kfi_allocinfo(), kfi_dupinfo() or kfi_getinfo() and goes to kfi_freeinfo(), which
 * frees everything it points to, open objects excepted. Names, addresses and keys that a consumer
 * puts in must therefore be kmalloc() memory of their own, from kstrdup() for instance.
 */
struct kfi_info {
	struct kfi_info		*next;
	u64			caps;
	u64			mode;
	u32			addr_format;
	size_t			src_addrlen;
	size_t			dest_addrlen;
	void			*src_addr;
	void			*dest_addr;
	kfid_t			handle;
	struct kfi_tx_attr	*tx_attr;
	struct kfi_rx_attr	*rx_attr;
	struct kfi_ep_attr	*ep_attr;
	struct kfi_domain_attr	*domain_attr;
	struct kfi_fabric_attr	*fabric_attr;
};

/* kfid.fclass: what a struct kfid is the beginning of. */
enum {
	KFI_CLASS_UNSPEC,
	KFI_CLASS_FABRIC,
	KFI_CLASS_DOMAIN,
	KFI_CLASS_EP,
	KFI_CLASS_SEP,
	KFI_CLASS_RX_CTX,
	KFI_CLASS_SRX_CTX,
	KFI_CLASS_TX_CTX,
	KFI_CLASS_STX_CTX,
	KFI_CLASS_PEP,
	KFI_CLASS_INTERFACE,
	KFI_CLASS_AV,
	KFI_CLASS_MR,
	KFI_CLASS_EQ,
	KFI_CLASS_CQ,
	KFI_CLASS_CNTR,
	KFI_CLASS_WAIT,
	KFI_CLASS_POLL,
	KFI_CLASS_CONNREQ
};

/*
 * Called when a completion queue has something to read, see kfi_cq_open(). It runs in any context,
 * softirq mostly: it must not sleep, so it must not close anything either.
 */
typedef void (*kfi_comp_handler)(struct kfid_cq *cq, void *context);

/*
 * Called when an event queue has something to read, see kfi_eq_open(). It runs in process context
 * and may sleep, but must not close event queues.
 */
typedef void (*kfi_event_handler)(struct kfid_eq *eq, void *context);

/**
 * struct kfi_ops - The operations that every object has.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @close: See kfi_close().
 * @bind: See kfi_domain_bind(), kfi_mr_bind() and their like.
 * @control: See kfi_control().
 * @ops_open: See kfi_open_ops().
 */
struct kfi_ops {
	size_t	size;
	int	(*close)(struct kfid *fid);
	int	(*bind)(struct kfid *fid, struct kfid *bfid, u64 flags);
	int	(*control)(struct kfid *fid, int command, void *arg);
	int	(*ops_open)(struct kfid *fid, const char *name, u64 flags, void **ops,
			    void *context);
};

/**
 * struct kfid - The header that every object begins with.
 * @fclass: KFI_CLASS_*, the kind of object.
 * @context: The consumer's, as given when the object was opened.
 * @ops: Operations of every object.
 * @comp: The provider's: completed when @ref_cnt reaches 0.
 * @ref_cnt: The provider's: references to this object.
 */
struct kfid {
	size_t			fclass;
	void			*context;
	struct kfi_ops		*ops;
	struct completion	comp;
	atomic_t		ref_cnt;
};

/**
 * struct kfi_ops_fabric - The operations of a fabric.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @domain: See kfi_domain().
 * @passive_ep: See kfi_passive_ep().
 * @eq_open: See kfi_eq_open().
 * @wait_open: See kfi_wait_open().
 */
struct kfi_ops_fabric {
	size_t	size;
	int	(*domain)(struct kfid_fabric *fabric, struct kfi_info *info,
			  struct kfid_domain **dom, void *context);
	int	(*passive_ep)(struct kfid_fabric *fabric, struct kfi_info *info,
			      struct kfid_pep **pep, void *context);
	int	(*eq_open)(struct kfid_fabric *fabric, struct kfi_eq_attr *attr,
			   struct kfid_eq **eq, kfi_event_handler event_handler,
			   void *context);
	int	(*wait_open)(struct kfid_fabric *fabric, struct kfi_wait_attr *attr,
			     struct kfid_wait **waitset);
};

/**
 * struct kfid_fabric - An open fabric.
 * @fid: The header that every object begins with.
 * @ops: Operations of a fabric.
 * @api_version: The version of this API that the consumer asked for.
 */
struct kfid_fabric {
	struct kfid		fid;
	struct kfi_ops_fabric	*ops;
	u32			api_version;
};

/**
 * kfi_version() - The version of this API that the loaded core implements.
 *
 * Context: Any.
 * Return: The version, to be compared with KFI_VERSION().
 */
u32 kfi_version(void);

/**
 * kfi_getinfo() - Find the fabrics and domains that meet a consumer's needs.
 * @version: Version of this API that the consumer was written for, by KFI_VERSION(); 0 for any.
 * @node: Address of a node, in digits, or NULL.
 * @service: Number of a port at @node, or NULL.
 * @flags: KFI_SOURCE (@node and @service are local), KFI_NUMERICHOST, KFI_PROV_ATTR_ONLY, or 0.
 * @hints: The needs of the caller, or NULL for anything.
 * @info: Where to put the list of offers; free it with kfi_freeinfo().
 *
 * An offer has the true names and limits of its device, and in domain_attr->mr_mode the bits that
 * its provider needs. Hints with a domain_attr whose mr_mode lacks one of them don't get the offer.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@info NULL:
 *
 * * -KFI_EINVAL: @info is NULL, or @hints is an error pointer.
 * * -KFI_ENOSYS: @version is newer than this API.
 * * -KFI_EBADFLAGS: an unknown flag.
 * * -KFI_EINVAL: an address in the hints is too short, or neither IPv4 nor IPv6, and no provider in
 *   C makes an offer.
 * * -KFI_ENODATA: no offer meets the hints: no provider is loaded, none has a device, or none can
 *   do what the hints need; or @node and @service are no address and port.
 * * -KFI_ENOMEM: out of memory.
 */
int kfi_getinfo(u32 version, const char *node, const char *service, u64 flags,
		struct kfi_info *hints, struct kfi_info **info);

/**
 * kfi_freeinfo() - Free a list of struct kfi_info and all that it points to.
 * @info: The first of the list, or NULL.
 *
 * Context: Process context.
 */
void kfi_freeinfo(struct kfi_info *info);

/**
 * kfi_allocinfo() - Allocate one struct kfi_info with all its attributes, zeroed.
 *
 * Context: Process context; may sleep.
 * Return: The info, to be freed with kfi_freeinfo(), or NULL when out of memory.
 */
struct kfi_info *kfi_allocinfo(void);

/**
 * kfi_dupinfo() - Copy one struct kfi_info and all that it points to.
 * @info: The info to copy, its next excepted; NULL does what kfi_allocinfo() does.
 *
 * Context: Process context; may sleep.
 * Return: The copy, to be freed with kfi_freeinfo(), or NULL when out of memory.
 */
struct kfi_info *kfi_dupinfo(const struct kfi_info *info);

/**
 * kfi_fabric() - Open a fabric.
 * @attr: Which one: the fabric_attr of an info that kfi_getinfo() gave.
 * @fabric: Where to put the fabric; close it with kfi_close().
 * @context: The consumer's own, kept in the fabric's fid.
 *
 * An open fabric keeps its provider's module loaded.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@fabric NULL:
 *
 * * -KFI_EINVAL: @fabric, @attr, attr->prov_name or attr->name is NULL.
 * * -KFI_ENOSYS: attr->api_version is newer than this API.
 * * -KFI_ENODEV: no provider of that name is loaded, or it is being unloaded, or it has no fabric
 *   of that name.
 * * -KFI_ENODATA: attr->prov_version is newer than the provider.
 * * -KFI_EIO: the provider has opened an object that is not a fabric, or is another provider's.
 * * -KFI_ENOMEM: out of memory.
 */
int kfi_fabric(struct kfi_fabric_attr *attr, struct kfid_fabric **fabric, void *context);

/**
 * KFI_CHECK_OP() - Whether a table of operations has one of them.
 * @ops: Pointer to the table, or NULL.
 * @opstype: The table's type.
 * @op: Name of the operation.
 *
 * A table of size 0 comes from a provider that doesn't tell it and counts as complete.
 */
#define KFI_CHECK_OP(ops, opstype, op)						\
({										\
	const opstype *__tbl = (ops);						\
										\
	__tbl && (!__tbl->size || __tbl->size >= offsetofend(opstype, op)) && __tbl->op; \
})

/**
 * kfi_refuse() - Say why a call is refused, by the tracepoint kfi:kfi_refused.
 * @err: The return value of the call, a negative errno.
 * @why: The reason in words; a constant string.
 *
 * For the inlines of this API, and for providers in C.
 *
 * Context: Any; doesn't sleep.
 * Return: @err.
 */
#define kfi_refuse(err, why)	kfi_refuse_call(__func__, err, why)

/* The same, with the name of the call. */
int kfi_refuse_call(const char *call, int err, const char *why) __cold;

/*
 * How the inlines of this API dispatch: @obj->@tbl->@op(...), or @inval where @obj is NULL or an
 * error pointer, or @nosys where the operation is missing.
 */
#define __kfi_call_else(inval, nosys, obj, tbl, op, ...)			\
({										\
	typeof(obj) __obj = (obj);						\
	typeof(__obj->tbl) __ops = IS_ERR_OR_NULL(__obj) ? NULL : __obj->tbl;	\
										\
	IS_ERR_OR_NULL(__obj) ? (inval) :					\
		!KFI_CHECK_OP(__ops, typeof(*__ops), op) ? (nosys) :		\
		__ops->op(__VA_ARGS__);						\
})

/* For operations that return an errno; @what says what @obj must be. */
#define __kfi_call_of(what, obj, tbl, op, ...)					\
	__kfi_call_else(kfi_refuse(-KFI_EINVAL, what),				\
			kfi_refuse(-KFI_ENOSYS, "the provider doesn't have this call"), \
			obj, tbl, op, __VA_ARGS__)

#define __kfi_call(obj, tbl, op, ...)						\
	__kfi_call_of(#obj " is NULL or an error pointer", obj, tbl, op, __VA_ARGS__)

/* For operations that open something: @out must not be NULL, and *@out is NULL on failure. */
#define __kfi_open_of(what, out, obj, tbl, op, ...)				\
({										\
	typeof(out) __out = (out);						\
	int __rc;								\
										\
	if (__out) {								\
		__rc = __kfi_call_of(what, obj, tbl, op, __VA_ARGS__);		\
		if (__rc)							\
			*__out = NULL;						\
	} else {								\
		__rc = kfi_refuse(-KFI_EINVAL, "output pointer is NULL");	\
	}									\
	__rc;									\
})

#define __kfi_open(out, obj, tbl, op, ...)					\
	__kfi_open_of(#obj " is NULL or an error pointer", out, obj, tbl, op, __VA_ARGS__)

/**
 * kfi_close() - Close an object and free it.
 * @fid: The object's fid.
 *
 * For a memory region: on return its key is refused and its memory belongs to the caller alone.
 *
 * Context: Process context; may sleep. Not from a kfi_comp_handler.
 * Return: 0, or with the object still open, except after -KFI_EIO:
 *
 * * -KFI_EINVAL: @fid is NULL or an error pointer.
 * * -KFI_EINVAL: another call is closing the object.
 * * -KFI_EBUSY: other objects depend on this one: domains, event queues or passive endpoints on a
 *   fabric; queues, regions, counters, endpoints, receive contexts or mapped raw keys on a domain;
 *   a consumer's own objects on a domain's protection domain; a counter on the region that it is
 *   bound to; an endpoint on the receive context that it shares.
 * * -KFI_EBUSY: a task waits for the queue or counter.
 * * -KFI_EOPBADSTATE: the caller is the handler of the event queue or completion queue that it
 *   closes; or the handler of the event queue that will report the registration of the region that
 *   it closes.
 * * -KFI_EIO: the device does not let go of a memory region. The region is gone, and the caller
 *   must never free the memory: see kfi_mr(3).
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_close(struct kfid *fid)
{
	return __kfi_call(fid, ops, close, fid);
}

/**
 * struct kfi_alias - The argument of KFI_ALIAS.
 * @fid: Where to put the alias.
 * @flags: Operation flags of the alias.
 */
struct kfi_alias {
	struct kfid	**fid;
	u64		flags;
};

/**
 * struct kfi_mr_raw_attr - The argument of KFI_GET_RAW_MR, see kfi_mr_raw_attr().
 * @flags: None yet, 0.
 * @base_addr: Where to put the address of the region's first byte.
 * @raw_key: Where to put the raw key.
 * @key_size: In: space at @raw_key, in bytes. Out: length of the raw key.
 */
struct kfi_mr_raw_attr {
	u64		flags;
	u64		*base_addr;
	u8		*raw_key;
	size_t		*key_size;
};

/**
 * struct kfi_mr_map_raw - The argument of KFI_MAP_RAW_MR, see kfi_mr_map_raw().
 * @flags: None yet, 0.
 * @base_addr: The peer's base address.
 * @raw_key: The peer's raw key.
 * @key_size: Length of @raw_key, in bytes.
 * @key: Where to put the key to use for it.
 */
struct kfi_mr_map_raw {
	u64		flags;
	u64		base_addr;
	u8		*raw_key;
	size_t		key_size;
	u64		*key;
};

/* Commands for kfi_control(), and what the argument points to. */
enum {
	KFI_GETFIDFLAG,		/* u64: flags */
	KFI_SETFIDFLAG,		/* u64: flags */
	KFI_GETOPSFLAG,		/* u64: flags */
	KFI_SETOPSFLAG,		/* u64: flags */
	KFI_ALIAS,		/* struct kfi_alias */
	KFI_GETWAIT,		/* pointer to the wait object */
	KFI_ENABLE,		/* NULL; memory region: NULL, or u64: 0 or KFI_MORE */
	KFI_BACKLOG,		/* int */
	KFI_GET_RAW_MR,		/* struct kfi_mr_raw_attr */
	KFI_MAP_RAW_MR,		/* struct kfi_mr_map_raw */
	KFI_UNMAP_KEY,		/* u64: key */
	KFI_QUEUE_WORK,		/* struct kfi_deferred_work */
	KFI_CANCEL_WORK,	/* struct kfi_deferred_work */
	KFI_FLUSH_WORK,		/* NULL */
	KFI_REFRESH		/* memory region: struct kfi_mr_modify */
};

/**
 * kfi_control() - Do or ask something that depends on the kind of object.
 * @fid: The object's fid.
 * @command: KFI_ENABLE and so on.
 * @arg: The command's argument.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @fid is NULL or an error pointer.
 * * -KFI_ENOSYS: the object does not support the command. Fabrics, event queues, completion queues,
 *   counters and shared receive contexts support none; the others only those above. KFI_ALIAS,
 *   KFI_GETWAIT and the other commands are only declared.
 * * -KFI_EINVAL: @arg is NULL, and the command needs an argument.
 * * The errors of kfi_mr_enable(), kfi_mr_refresh(), kfi_mr_raw_attr(), kfi_mr_map_raw(),
 *   kfi_mr_unmap_key(), kfi_enable(): the command fails.
 * * -KFI_EOPBADSTATE: KFI_BACKLOG: the endpoint listens.
 */
static inline int kfi_control(struct kfid *fid, int command, void *arg)
{
	return __kfi_call(fid, ops, control, fid, command, arg);
}

/**
 * kfi_alias() - Make a second handle of an object, with operation flags of its own.
 * @fid: The object's fid.
 * @alias_fid: Where to put the alias; close it with kfi_close().
 * @flags: Operation flags of the alias.
 *
 * Context: Process context; may sleep.
 * Return: 0, -KFI_EINVAL if @fid is NULL, or -KFI_ENOSYS if the object can't have aliases.
 */
static inline int kfi_alias(struct kfid *fid, struct kfid **alias_fid, u64 flags)
{
	struct kfi_alias alias = {
		.fid = alias_fid,
		.flags = flags,
	};

	return kfi_control(fid, KFI_ALIAS, &alias);
}

/**
 * kfi_open_ops() - Get a provider's extension of an object.
 * @fid: The object's fid.
 * @name: Name of the extension, KFI_DMA_OPS_1 for instance.
 * @flags: None yet, 0.
 * @ops: Where to put the extension's table, of the type that goes with @name. The table is constant
 *	and lives as long as the object is open.
 * @context: The extension's own.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@ops NULL:
 *
 * * -KFI_EINVAL: @fid, @name or @ops is NULL.
 * * -KFI_EBADFLAGS: @flags is not 0.
 * * -KFI_ENOSYS: the object has no extension of that name.
 */
static inline int kfi_open_ops(struct kfid *fid, const char *name, u64 flags, void **ops,
			       void *context)
{
	return __kfi_open(ops, fid, ops, ops_open, fid, name, flags, ops, context);
}

/* The types that kfi_tostr() describes, and the targets of its data. */
enum kfi_type {
	KFI_TYPE_INFO,			/* struct kfi_info */
	KFI_TYPE_EP_TYPE,		/* enum kfi_ep_type */
	KFI_TYPE_CAPS,			/* u64 */
	KFI_TYPE_OP_FLAGS,		/* u64 */
	KFI_TYPE_ADDR_FORMAT,		/* u32 */
	KFI_TYPE_TX_ATTR,		/* struct kfi_tx_attr */
	KFI_TYPE_RX_ATTR,		/* struct kfi_rx_attr */
	KFI_TYPE_EP_ATTR,		/* struct kfi_ep_attr */
	KFI_TYPE_DOMAIN_ATTR,		/* struct kfi_domain_attr */
	KFI_TYPE_FABRIC_ATTR,		/* struct kfi_fabric_attr */
	KFI_TYPE_THREADING,		/* enum kfi_threading */
	KFI_TYPE_PROGRESS,		/* enum kfi_progress */
	KFI_TYPE_PROTOCOL,		/* u32 */
	KFI_TYPE_MSG_ORDER,		/* u64 */
	KFI_TYPE_MODE,			/* u64 */
	KFI_TYPE_AV_TYPE,		/* enum kfi_av_type */
	KFI_TYPE_ATOMIC_TYPE,		/* enum kfi_datatype */
	KFI_TYPE_ATOMIC_OP,		/* enum kfi_op */
	KFI_TYPE_VERSION,		/* nothing, NULL */
	KFI_TYPE_EQ_EVENT,		/* u32 */
	KFI_TYPE_CQ_EVENT_FLAGS,	/* u64 */
	KFI_TYPE_MR_MODE,		/* int */
	KFI_TYPE_OP_TYPE		/* enum kfi_op_type */
};

/**
 * kfi_tostr() - Describe a value of this API in words.
 * @data: Pointer to the value.
 * @datatype: The type of the target of @data.
 *
 * Context: Process context; may sleep.
 * Return: A string of its own that the caller frees with kfree(), or NULL when out of memory, if
 * @datatype is unknown, or if @data is NULL and shouldn't be.
 */
char *kfi_tostr(const void *data, enum kfi_type datatype);

enum kfi_param_type {
	KFI_PARAM_STRING,
	KFI_PARAM_INT,
	KFI_PARAM_BOOL
};

/**
 * struct kfi_param - A parameter of a provider.
 * @name: Its name.
 * @type: Its type.
 * @help_string: Its purpose.
 * @value: Its value as text.
 */
struct kfi_param {
	const char		*name;
	enum kfi_param_type	type;
	const char		*help_string;
	const char		*value;
};

/**
 * kfi_getparams() - List the parameters of all providers.
 * @params: Where to put the list; always NULL.
 * @count: Where to put its length; always 0.
 *
 * Providers in the kernel have module parameters instead, so this is here for its name only.
 *
 * Context: Any.
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_getparams(struct kfi_param **params, int *count)
{
	if (params)
		*params = NULL;
	if (count)
		*count = 0;
	return -KFI_ENOSYS;
}

/**
 * kfi_freeparams() - Free what kfi_getparams() gave, that is nothing.
 * @params: The list.
 *
 * Context: Any.
 */
static inline void kfi_freeparams(struct kfi_param *params)
{
}

/**
 * struct kfi_context - Room that a consumer lends to a provider under KFI_CONTEXT.
 * @internal: The provider's, from the posting of an operation to its completion.
 */
struct kfi_context {
	void	*internal[4];
};

/**
 * struct kfi_context2 - Room that a consumer lends to a provider under KFI_CONTEXT2.
 * @internal: The provider's, from the posting of an operation to its completion.
 */
struct kfi_context2 {
	void	*internal[8];
};

#endif /* _KFABRIC_H_ */
