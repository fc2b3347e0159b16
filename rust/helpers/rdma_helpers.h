/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of the `rdma` crate for static inlines and macros of the RDMA core, the DMA API and the
 * memory model. One call for each operation, not one for each field.
 */
#ifndef RDMA_HELPERS_H
#define RDMA_HELPERS_H

#include <linux/scatterlist.h>
#include <linux/semaphore.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

/* The device and its ports. */
enum rdma_helper_protocol {
	RDMA_HELPER_OTHER,
	RDMA_HELPER_INFINIBAND,
	RDMA_HELPER_ROCE,
	RDMA_HELPER_IWARP,
};

void rdma_helper_device_name(const struct ib_device *dev, char *name);
u32 rdma_helper_max_seg_size(struct ib_device *dev);
u32 rdma_helper_first_port(const struct ib_device *dev);
u32 rdma_helper_last_port(const struct ib_device *dev);
enum rdma_helper_protocol rdma_helper_protocol(const struct ib_device *dev, u32 port);
enum rdma_ah_attr_type rdma_helper_ah_type(struct ib_device *dev, u32 port);
bool rdma_helper_grh_required(const struct ib_device *dev, u32 port);
void rdma_helper_set_dlid(struct rdma_ah_attr *attr, u32 dlid);
u32 rdma_helper_default_gids(const struct ib_device *dev, u32 port);

/* Objects that carry their owner's name (KBUILD_MODNAME) for resource tracking. */
struct ib_pd *rdma_helper_alloc_pd(struct ib_device *dev);
struct ib_cq *rdma_helper_alloc_cq(struct ib_device *dev, u32 nr_cqe, int cpu);
bool rdma_helper_quiet_cq(struct ib_cq *cq);
void rdma_helper_listen_cq(struct ib_cq *cq);
void rdma_helper_silence_cq(struct ib_cq *cq, bool quiet);
void rdma_helper_free_cq(struct ib_cq *cq, bool quiet);
void rdma_helper_reap_cq(struct ib_cq *cq, u32 budget);
void rdma_helper_schedule(void);
bool rdma_helper_turn_is_over(void);
struct ib_qp *rdma_helper_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *attr);
struct ib_srq *rdma_helper_create_srq(struct ib_pd *pd, u32 requests, u32 segments);
void rdma_helper_disown(struct ib_device *dev, struct rdma_restrack_entry *res);

/* A send request of any kind, as drivers have them. Each begins with a struct ib_send_wr. */
union rdma_helper_send_wr {
	struct ib_send_wr send;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
	struct ib_reg_wr reg;
};

int rdma_helper_post_send(struct ib_qp *qp, const struct ib_send_wr *wr);
int rdma_helper_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr);
int rdma_helper_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr);
int rdma_helper_post_reg(struct ib_qp *qp, struct ib_mr *mr, u32 access, struct ib_cqe *cqe);
int rdma_helper_post_inv(struct ib_qp *qp, u32 key, struct ib_cqe *cqe);
int rdma_helper_post_chain(struct ib_qp *qp, struct ib_send_wr *first, struct ib_send_wr **bad);

/* A request about a region. Several of the same kind are posted with one doorbell. */
struct rdma_helper_region_wr {
	/* The region to register. */
	struct ib_mr *mr;
	u32 access;
	/* The key that is invalidated. */
	u32 key;
};

/* Maximum number of them. */
#define RDMA_HELPER_MAX_TOGETHER	16

/* How many of several requests have been posted. */
enum rdma_helper_posted {
	RDMA_HELPER_POSTED_ALL,
	RDMA_HELPER_POSTED_NONE,
	/* Some, and behind them a request that tells when they have ended. */
	RDMA_HELPER_POSTED_SOME,
	/* Some, and nothing that tells. */
	RDMA_HELPER_POSTED_UNTOLD,
};

int rdma_helper_post_together(struct ib_qp *qp, enum ib_wr_opcode opcode,
			      const struct rdma_helper_region_wr *regions, u32 count,
			      struct ib_cqe *quiet, struct ib_cqe *last,
			      enum rdma_helper_posted *posted);
bool rdma_helper_has_local_inv(const struct ib_device *dev);
bool rdma_helper_reports_last_wqe(const struct ib_device *dev);
bool rdma_helper_await_last_wqe(struct ib_qp *qp, u32 seconds);
void rdma_helper_next_key(struct ib_mr *mr);

/* Counters of a device that tell of requests that it is to do again. */
struct rdma_helper_replays;

struct rdma_helper_replays *rdma_helper_find_replays(struct ib_device *dev);
void rdma_helper_free_replays(struct rdma_helper_replays *replays);
u64 rdma_helper_count_replays(struct ib_device *dev, struct rdma_helper_replays *replays);

/* Events of a device. */
void rdma_helper_register_events(struct ib_event_handler *handler, struct ib_device *dev,
				 void (*callback)(struct ib_event_handler *, struct ib_event *));
/* Has the port's GIDs looked for again. */
void rdma_helper_rescan_port(struct ib_device *dev, u32 port);

/* Building a scatterlist, merging what is contiguous. */
struct rdma_helper_run {
	u64 phys;
	u64 len;
};

/* The first chunk of a list is the list: what there is to be known of it is there. */
struct rdma_helper_sg_chunk {
	struct rdma_helper_sg_chunk *next;
	/* For how many entries, besides the last one, which may become the link. */
	u32 room;
	/* Of one of the caches. */
	bool cached;
	/* The list's: its entries are as if they had been mapped for a device that takes kernel addresses. */
	bool virt;
	/* How many entries it has, and how many when it is mapped, and in which direction that is. */
	u32 used;
	u32 mapped;
	u32 dir;
	/* Whose the chunk is that was lent to the list, or NULL. */
	void *lender;
	/* The device that the list is mapped for, or NULL. */
	void *device;
	struct scatterlist entries[];
};

struct rdma_helper_sg_cursor {
	/* The current chunk, the number of its filled entries, and the number of all filled entries. */
	struct rdma_helper_sg_chunk *chunk;
	u32 filled;
	u32 count;
	/* The entry filled last (NULL at first). */
	struct scatterlist *last;
	/* No entry gets longer than this, which is a page or more. */
	u32 max_seg;
	/* The device takes kernel addresses: entries are as if they had been mapped for it. */
	bool virt;
};

u64 rdma_helper_page_phys(struct page *page);
u64 rdma_helper_linear(u64 phys);
/* A place in a list that is mapped: the entry, how many bytes of it are done, entries left. */
struct rdma_helper_sg_source {
	struct scatterlist *next;
	u32 done;
	u32 left;
};

int rdma_helper_sg_init(void);
void rdma_helper_sg_exit(void);
struct rdma_helper_sg_chunk *rdma_helper_sg_alloc(u32 entries);
struct rdma_helper_sg_chunk *rdma_helper_sg_begin(u32 expected, bool brief);
void rdma_helper_sg_free(struct rdma_helper_sg_chunk *chunk);
int rdma_helper_sg_push(struct rdma_helper_sg_cursor *cur, u64 phys, u32 len);
u32 rdma_helper_sg_room(struct rdma_helper_sg_cursor *cur, struct scatterlist **room);
void rdma_helper_sg_filled(struct rdma_helper_sg_cursor *cur, u32 count);
int rdma_helper_sg_append_dma(struct rdma_helper_sg_cursor *cur, u64 address, u32 len);
int rdma_helper_sg_copy(struct rdma_helper_sg_cursor *cur, struct rdma_helper_sg_source *from,
			u64 bytes);
void rdma_helper_sg_single(struct scatterlist *sg, u64 address, u32 len);
void rdma_helper_sg_end(struct scatterlist *last);
void rdma_helper_sg_joints(struct scatterlist *sg, u32 count, u32 base, u64 *start, u64 *bytes,
			   u64 *joints);
void rdma_helper_not_leak(const void *object);

/* Mappings, always coherent ones. */
enum rdma_helper_dma_fact {
	/* There is no DMA: the device takes kernel addresses. */
	RDMA_HELPER_DMA_VIRTUAL		= 1 << 0,
	/* The processor's caches have to be flushed for the device. */
	RDMA_HELPER_DMA_INCOHERENT	= 1 << 1,
	/* By the DMA API's code for IOMMUs. */
	RDMA_HELPER_DMA_IOMMU		= 1 << 2,
	/* By operations of the device's or the platform's own. */
	RDMA_HELPER_DMA_OWN_OPS		= 1 << 3,
	/* All of what is mapped directly is bounced. */
	RDMA_HELPER_DMA_BOUNCES		= 1 << 4,
};

u32 rdma_helper_dma_facts(const struct ib_device *dev);
bool rdma_helper_peer_to_peer(struct ib_device *dev);
int rdma_helper_dma_map_sg(struct ib_device *dev, struct scatterlist *sgl, int nents, u32 dir);
void rdma_helper_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sgl, int nents,
			      u32 dir);
bool rdma_helper_dma_map(struct ib_device *dev, u64 phys, size_t len, u32 dir, u64 *address);
void rdma_helper_dma_unmap(struct ib_device *dev, u64 address, size_t len, u32 dir);
u64 rdma_helper_physical_address(void *addr);
void rdma_helper_dma_sync_for_cpu(struct ib_device *dev, struct scatterlist *sgl, int nents,
				  u32 dir);
void rdma_helper_dma_sync_for_device(struct ib_device *dev, struct scatterlist *sgl, int nents,
				     u32 dir);

void rdma_helper_sema_init(struct semaphore *sem, int val);

#endif /* RDMA_HELPERS_H */
