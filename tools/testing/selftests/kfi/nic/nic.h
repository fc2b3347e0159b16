/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfi_nic: a model of RDMA hardware. It binds to QEMU's edu PCI device and offers an ib_device whose
 * DMA addresses it resolves as a device would: through the IOMMU, at the moment of each access.
 *
 * Files:
 *	main.c		the PCI driver, network devices, registration with the RDMA core
 *	persona.c	what each personality can do, and how it differs from the others
 *	device.c	queries, protection domains, address handles, GIDs
 *	memory.c	memory regions and every access to memory
 *	cq.c		completion queues
 *	qp.c		queue pairs and shared receive queues: their making, states and end
 *	post.c		posting requests
 *	rc.c		carrying out requests of reliable connections
 *	ud.c		datagrams, which the connection manager's messages are
 *	iwarp.c		connections of iWARP
 *	sa.c		the answers of a subnet administrator, for InfiniBand
 *	swiotlb.c	a swiotlb that is full
 *	debugfs.c	faults and statistics
 *
 * Lock order: nic_srcu; the locks of iwarp.c and sa.c; nic_list_lock; qp->lock or srq->lock; cq->lock. A region's
 * rwsem is taken in process context, under nic->atomic or no other lock.
 */
#ifndef KFI_NIC_H
#define KFI_NIC_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

/* No personality has more segments in a request, or more inline data. */
#define NIC_MAX_SGE	16
#define NIC_MAX_INLINE	128
#define NIC_MAX_PORTS	2
#define NIC_GIDS	16
/* Maximum number of bytes that one access moves; an invalidation waits for one access at a time. */
#define NIC_CHUNK	PAGE_SIZE
#define NIC_MAX_MSG	SZ_1G
/* The key for all memory, where the personality has one. No region has it. */
#define NIC_ALL_MEMORY	0xffffff00

/* How create_qp treats a request for more inline data than the device has. */
enum nic_inline {
	NIC_INLINE_REFUSED,	/* create_qp fails with -EINVAL */
	NIC_INLINE_REDUCED,	/* it gets what there is, and is told in cap.max_inline_data */
	NIC_INLINE_IGNORED,	/* the same, and IB_SEND_INLINE is not looked at when posting */
};

/**
 * struct nic_persona - how a kind of device behaves
 * @name: the driver that it is modelled on
 * @driver_id: the identifier of that driver
 * @iwarp: connections are of iWARP, else RoCE or InfiniBand
 * @ib: the link layer is InfiniBand
 * @fast_reg: regions can be registered by IB_WR_REG_MR
 * @local_inv: they can be invalidated; if not, posting an invalidation fails under a warning
 * @inv_unchecked: invalidating what is not valid succeeds
 * @gaps: there are regions with gaps, IB_MR_TYPE_SG_GAPS
 * @all_memory_key: there is a reserved key for all memory
 * @own_drain: the driver drains queues itself
 * @last_wqe: IB_EVENT_QP_LAST_WQE_REACHED is reported
 * @srq: there are shared receive queues
 * @inline_over: what happens if more inline data is asked for than there is
 * @max_inline: bytes of inline data
 * @max_pages: pages of a region
 * @page_sizes: sizes of pages, as ib_device_attr.page_size_cap
 * @max_send_sge: segments of a send request
 * @max_recv_sge: segments of a receive request
 * @max_read_sge: segments of a read request
 * @min_recv: minimum number of receive requests, and of segments of each, of a queue pair
 */
struct nic_persona {
	const char *name;
	enum rdma_driver_id driver_id;
	bool iwarp, ib;
	bool fast_reg, local_inv, inv_unchecked, gaps, all_memory_key;
	bool own_drain, last_wqe, srq;
	enum nic_inline inline_over;
	u32 max_inline;
	u32 max_pages;
	u64 page_sizes;
	u32 max_send_sge, max_recv_sge, max_read_sge;
	u32 min_recv;
};

/* Faults: a file in debugfs each. Those above NIC_FAULTS_COUNTED count down: the next N are hit. */
enum nic_fault {
	NIC_FAULT_POST,		/* post_send, post_recv and post_srq_recv fail */
	NIC_FAULT_CREATE_QP,
	NIC_FAULT_MODIFY_QP,
	NIC_FAULT_MODIFY_ERR,	/* only changes to the state ERR */
	NIC_FAULT_DESTROY_QP,
	NIC_FAULT_CREATE_CQ,
	NIC_FAULT_ALLOC_PD,
	NIC_FAULT_ALLOC_MR,
	NIC_FAULT_MAP_MR,
	NIC_FAULT_DEREG_MR,
	NIC_FAULT_CONNECT,	/* iw_connect fails */
	NIC_FAULT_REG,		/* IB_WR_REG_MR completes with an error */
	NIC_FAULT_INV,		/* IB_WR_LOCAL_INV completes with an error */
	NIC_FAULT_COMPLETE,	/* any request completes with an error */
	NIC_FAULT_LOSE,		/* a completion never comes */
	NIC_FAULT_LATE,		/* a completion comes delay_ms later */
	NIC_FAULTS_COUNTED,
	/* These are values that hold until they are changed. */
	NIC_VALUE_ERRNO = NIC_FAULTS_COUNTED,	/* what a refused call returns, positive */
	NIC_VALUE_DELAY_MS,	/* of late completions */
	NIC_VALUE_ACCESS_US,	/* between looking up a region and accessing memory */
	NIC_VALUE_WEAK_INV,	/* an invalidation does not wait for accesses under way */
	NIC_VALUES,
};

/* Statistics: a line each in the file "stats". */
enum nic_stat {
	NIC_STAT_POSTS,		/* calls of post_send */
	NIC_STAT_SEND_OPS,	/* requests of send queues that were carried out */
	NIC_STAT_RECV_OPS,	/* receive requests that were used */
	NIC_STAT_REG_MR,
	NIC_STAT_LOCAL_INV,
	NIC_STAT_BYTES,
	NIC_STAT_DMA_FAULTS,	/* accesses to an address that is not mapped */
	NIC_STAT_FREED,		/* accesses to a page that nobody holds */
	NIC_STAT_UNDER_WAY,	/* accesses to registered regions that have begun and not ended */
	NIC_STAT_UNMAPPED,	/* regions that were valid while their memory was not mapped */
	NIC_STAT_KEYS_AGAIN,	/* registrations by a key that the region had before its last one */
	NIC_STAT_OVERFLOWS,	/* completions that had no room in their queue */
	NIC_STAT_PDS,
	NIC_STAT_CQS,
	NIC_STAT_QPS,
	NIC_STAT_SRQS,
	NIC_STAT_AHS,
	NIC_STAT_MRS,
	NIC_STATS,
};

struct nic_device;
struct nic_bounce;

/**
 * struct nic_port - a port
 * @nic: whose
 * @number: from 1
 * @netdev: its network device; NULL with InfiniBand, or once it has gone
 * @gids: RoCE's GIDs; zero where there is none
 * @lid: InfiniBand's address
 * @subnet: InfiniBand's subnet: the lowest bits of its GID's prefix
 * @down: it was taken down by a fault
 * @gsi: the queue pair 1; under nic_list_lock
 * @smi: the queue pair 0; under nic_list_lock
 */
struct nic_port {
	struct nic_device *nic;
	u32 number;
	struct net_device *netdev;
	union ib_gid gids[NIC_GIDS];
	u16 lid, subnet;
	bool down;
	struct nic_qp *gsi, *smi;
};

/**
 * struct nic_device - a device
 * @ib: what the RDMA core sees
 * @pdev: what maps memory
 * @persona: how it behaves
 * @early_places: a send queue's place is free once its request has been carried out
 * @wq: where requests are carried out
 * @node: in the list of all devices
 * @index: its number
 * @mrs: regions, by the upper 24 bits of their keys
 * @next_mr: where the search for a number of a region begins
 * @seen: DMA addresses that it was given, by page; to tell which are still mapped
 * @atomic: serializes atomic operations
 * @ports: from 0
 * @stats: by enum nic_stat
 * @faults: by enum nic_fault
 * @mcast: groups and who is attached to them; under nic_list_lock
 * @bounce: mappings that fill swiotlb, or NULL
 * @dir: its directory in debugfs
 */
struct nic_device {
	struct ib_device ib;
	struct pci_dev *pdev;
	const struct nic_persona *persona;
	bool early_places;
	struct workqueue_struct *wq;
	struct list_head node;
	u32 index;
	struct xarray mrs;
	u32 next_mr;
	struct xarray seen;
	struct mutex atomic;
	struct nic_port ports[NIC_MAX_PORTS];
	atomic64_t stats[NIC_STATS];
	atomic_t faults[NIC_VALUES];
	struct list_head mcast;
	struct nic_bounce *bounce;
	struct dentry *dir;
};

struct nic_pd {
	struct ib_pd ib;
};

struct nic_ah {
	struct ib_ah ib;
	struct rdma_ah_attr attr;
	union ib_gid sgid;
};

enum nic_mr_state {
	NIC_MR_FREE,
	NIC_MR_VALID,
	NIC_MR_DEAD,
};

/* A piece of a region with gaps. */
struct nic_piece {
	u64 addr;
	u64 len;
};

/**
 * struct nic_mr - a memory region
 * @ib: what the RDMA core sees
 * @refs: references; @freed completes with the last
 * @freed: see @refs
 * @sem: held for reading by each access, for writing by what ends or changes the region
 * @state: whether it can be accessed
 * @all_memory: it is all of memory, of get_dma_mr()
 * @access: rights, IB_ACCESS_*
 * @key: its key now
 * @keys: the lowest 8 bits of the keys that it was registered by
 * @iova: where it begins for who uses its key
 * @len: its length in bytes
 * @mapped: what map_mr_sg() has made, and IB_WR_REG_MR takes over
 * @used: what IB_WR_REG_MR has taken over
 * @n_mapped: entries of @mapped
 * @n_used: entries of @used
 * @max: room in either
 */
struct nic_mr {
	struct ib_mr ib;
	refcount_t refs;
	struct completion freed;
	struct rw_semaphore sem;
	enum nic_mr_state state;
	bool all_memory;
	int access;
	u32 key;
	DECLARE_BITMAP(keys, 256);
	u64 iova, len;
	struct nic_piece *mapped, *used;
	u32 n_mapped, n_used, max;
};

/* A completion; of a send queue also how far the queue is free again once it has been polled. */
struct nic_cqe {
	struct ib_wc wc;
	struct nic_qp *qp;
	bool send, solicited;
	u32 upto;
};

struct nic_cq {
	struct ib_cq ib;
	spinlock_t lock;
	struct nic_cqe *ring;
	u32 size, head, tail;
	bool armed, solicited_only;
	struct irq_work irq;
};

struct nic_recv {
	u64 wr_id;
	u32 n;
	struct ib_sge sge[NIC_MAX_SGE];
};

/* A ring of receive requests, of a queue pair or shared; the last place is for the drain's own request. */
struct nic_rq {
	struct nic_recv *ring;
	u32 size, head, tail, max_sge;
};

struct nic_srq {
	struct ib_srq ib;
	spinlock_t lock;
	struct nic_rq rq;
	u32 limit;
};

/**
 * struct nic_wqe - a request of a send queue, copied when it was posted
 * @wr: opcode, flags, wr_id and immediate data; no pointers of it are used
 * @sge: its segments
 * @n: how many
 * @data: a copy of inline data
 * @len: bytes of the message
 * @is_inline: @data is the message
 * @signaled: it completes even if it succeeds
 * @remote_addr: of what is read or written
 * @rkey: its key
 * @operand: of atomic operations
 * @swap: of IB_WR_ATOMIC_CMP_AND_SWP
 * @mr: of IB_WR_REG_MR, with a reference
 * @key: the new key, of IB_WR_REG_MR
 * @access: the new rights, of IB_WR_REG_MR
 * @ah: of datagrams
 * @remote_qpn: of datagrams
 * @remote_qkey: of datagrams
 */
struct nic_wqe {
	struct ib_send_wr wr;
	struct ib_sge sge[NIC_MAX_SGE];
	u32 n;
	u8 *data;
	u32 len;
	bool is_inline, signaled;
	u64 remote_addr;
	u32 rkey;
	u64 operand, swap;
	struct nic_mr *mr;
	u32 key;
	int access;
	struct nic_ah *ah;
	u32 remote_qpn, remote_qkey;
};

/**
 * struct nic_qp - a queue pair
 * @ib: what the RDMA core sees
 * @nic: whose
 * @refs: references; @freed completes with the last
 * @freed: see @refs
 * @lock: protects the rings' heads and the state
 * @state: as the consumer has set it, or ERR after a failure
 * @attr: as the consumer has set it
 * @init: what it was made with, with what it has
 * @flush_rq: the receive queue must be flushed; by @work
 * @receiving: receive requests that a sender has taken and not completed; under @lock
 * @last_wqe_told: IB_EVENT_QP_LAST_WQE_REACHED was reported
 * @dying: it is being destroyed: delays end
 * @sq: the ring of the send queue; requests from @sq_tail to @sq_exec await that a completion is polled,
 *	those from @sq_exec to @sq_head are to be carried out
 * @sq_data: inline data, persona->max_inline for each place
 * @sq_size: places; the last one is for the drain's own request
 * @sq_head: see @sq
 * @sq_exec: see @sq; @work alone changes it
 * @sq_tail: see @sq; whoever polls changes it, under the completion queue's lock. With early places, @work does,
 *	under @lock
 * @rq: its own receive queue
 * @wait: for changes of @receiving and @dying
 * @work: carries out requests
 * @tries: how often the first request was tried without an answer
 * @rnr_tries: how often there was no receive request
 * @chunk: NIC_CHUNK bytes on the way from one memory to another; used by @work
 */
struct nic_qp {
	struct ib_qp ib;
	struct nic_device *nic;
	refcount_t refs;
	struct completion freed;
	spinlock_t lock;
	enum ib_qp_state state;
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
	bool flush_rq, last_wqe_told, dying;
	u32 receiving;
	struct nic_wqe *sq;
	u8 *sq_data;
	u32 sq_size, sq_head, sq_exec, sq_tail;
	struct nic_rq rq;
	wait_queue_head_t wait;
	struct delayed_work work;
	u32 tries, rnr_tries;
	u8 *chunk;
};

#define to_nic(device)	container_of(device, struct nic_device, ib)
#define to_nic_pd(pd)	container_of(pd, struct nic_pd, ib)
#define to_nic_ah(ah)	container_of(ah, struct nic_ah, ib)
#define to_nic_mr(mr)	container_of(mr, struct nic_mr, ib)
#define to_nic_cq(cq)	container_of(cq, struct nic_cq, ib)
#define to_nic_srq(srq)	container_of(srq, struct nic_srq, ib)
#define to_nic_qp(qp)	container_of(qp, struct nic_qp, ib)

/* All devices, and what connects them. */
extern struct list_head nic_list;
extern spinlock_t nic_list_lock;
/* A reader of the list keeps the devices that it has found in it. */
extern struct srcu_struct nic_srcu;

static inline void nic_count(struct nic_device *nic, enum nic_stat stat, s64 n)
{
	atomic64_add(n, &nic->stats[stat]);
}

/* Is this call or request one of the next N that are hit? Any context. */
static inline bool nic_fault(struct nic_device *nic, enum nic_fault fault)
{
	return atomic_dec_if_positive(&nic->faults[fault]) >= 0;
}

static inline int nic_value(struct nic_device *nic, enum nic_fault value)
{
	return atomic_read(&nic->faults[value]);
}

/* Returns the errno of a call that a fault refuses. */
static inline int nic_errno(struct nic_device *nic)
{
	return -nic_value(nic, NIC_VALUE_ERRNO);
}

/* persona.c */
const struct nic_persona *nic_persona_find(const char *name);

/* main.c */
void nic_port_event(struct nic_port *port, enum ib_event_type type);
int nic_netdev_add(struct nic_port *port);
void nic_netdev_remove(struct nic_port *port);

/* device.c */
extern const struct ib_device_ops nic_device_ops;
bool nic_port_active(struct nic_port *port);
struct nic_port *nic_find_port(struct nic_device *from, const struct rdma_ah_attr *to);
u64 nic_guid(struct nic_device *nic, u32 port);

/* memory.c */
extern const struct ib_device_ops nic_memory_ops;

/**
 * struct nic_end - one end of a transfer: segments of memory, or bytes
 * @qp: the queue pair whose protection domain must hold the regions
 * @sge: its segments
 * @n: how many
 * @access: IB_ACCESS_* that is needed of each; 0 for local reading
 * @read_sink: it is the sink of a read, for which iWARP needs more
 * @data: the bytes, if it is not segments
 */
struct nic_end {
	struct nic_qp *qp;
	const struct ib_sge *sge;
	u32 n;
	int access;
	bool read_sink;
	u8 *data;
};

int nic_end_check(const struct nic_end *end, u64 len);
int nic_end_copy(const struct nic_end *end, u64 at, void *buf, u32 len, bool write);
u64 nic_sge_len(const struct ib_sge *sge, u32 n);
int nic_mr_register(struct nic_qp *qp, struct nic_wqe *wqe);
int nic_mr_invalidate(struct nic_qp *qp, u32 key, bool remote);
void nic_mr_put(struct nic_mr *mr);
u64 nic_mapped(struct nic_device *nic);

/* cq.c */
extern const struct ib_device_ops nic_cq_ops;
void nic_complete(struct nic_cq *cq, const struct nic_cqe *cqe);
void nic_cq_forget(struct nic_cq *cq, struct nic_qp *qp);

/* qp.c */
extern const struct ib_device_ops nic_qp_ops;
extern const struct ib_device_ops nic_srq_ops;
extern const struct ib_device_ops nic_drain_ops;
struct nic_qp *nic_qp_get(u32 number);
void nic_qp_put(struct nic_qp *qp);
bool nic_qp_fail(struct nic_qp *qp, enum ib_event_type event);
void nic_qp_event(struct nic_qp *qp, enum ib_event_type type);
bool nic_take_recv(struct nic_qp *qp, struct nic_recv *recv);
void nic_complete_recv(struct nic_qp *qp, const struct nic_recv *recv, const struct ib_wc *wc,
		       bool solicited);

/* post.c */
void nic_post_drain(struct nic_qp *qp, struct ib_cqe *cqe, bool send);
int nic_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
int nic_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
int nic_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad);

/* rc.c: what becomes of a request, besides an enum ib_wc_status. */
#define NIC_NO_RECEIVE	(-1)	/* the peer has no receive request */
#define NIC_NO_ANSWER	(-2)	/* there is no such peer, or not yet */

int nic_rc_execute(struct nic_qp *qp, struct nic_wqe *wqe);
unsigned long nic_rnr_delay(struct nic_qp *qp);

/* ud.c */
extern const struct ib_device_ops nic_mcast_ops;

/**
 * struct nic_datagram - a datagram on its way
 * @to: the address that it is sent to
 * @dest_qp: the number of the queue pair that it is sent to
 * @qkey: the Q_Key that this queue pair must have
 * @sgid: its source
 * @dgid: its destination
 * @slid: its source, of InfiniBand
 * @src_qp: the sender's number
 * @pkey_index: of the receiver's table
 * @sl: service level
 * @grh: it has a GRH
 * @imm: it has immediate data
 * @imm_data: that
 * @data: the payload
 * @len: bytes of it
 */
struct nic_datagram {
	struct rdma_ah_attr to;
	u32 dest_qp, qkey;
	union ib_gid sgid, dgid;
	u16 slid;
	u32 src_qp;
	u16 pkey_index;
	u8 sl;
	bool grh, imm;
	__be32 imm_data;
	const void *data;
	u32 len;
};

int nic_ud_prepare(struct nic_qp *qp, struct nic_wqe *wqe, struct nic_datagram *gram);
void nic_ud_send(struct nic_qp *qp, const struct nic_datagram *gram);
void nic_ud_deliver(struct nic_qp *qp, struct nic_port *port, const struct nic_datagram *gram);

/* iwarp.c */
extern const struct ib_device_ops nic_iwarp_ops;
/* A queue pair of iWARP has left RTS: its connection ends. May sleep. */
void nic_iwarp_closed(struct nic_qp *qp, bool abrupt);

/*
 * sa.c: is this datagram one that a subnet administrator answers? Then its answer is delivered to the
 * sender. May sleep.
 */
bool nic_sa_answer(struct nic_qp *from, struct nic_port *port, const struct nic_datagram *gram);

/* swiotlb.c */
int nic_swiotlb_fill(struct nic_device *nic, u32 count);
void nic_swiotlb_release(struct nic_device *nic);
u32 nic_swiotlb_left(struct nic_device *nic);

/* debugfs.c */
void nic_debugfs_init(void);
void nic_debugfs_exit(void);
void nic_debugfs_add(struct nic_device *nic);
void nic_debugfs_remove(struct nic_device *nic);

#endif
