// SPDX-License-Identifier: GPL-2.0
/* Helpers of the `rdma` crate; see the header for what belongs here. */
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/iommu-dma.h>
#include <linux/irq_poll.h>
#include <linux/kmemleak.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/swiotlb.h>
#include "rdma_helpers.h"

/* --- The device and its ports --- */

/* @name has room for IB_DEVICE_NAME_MAX bytes. A rename may run meanwhile. */
void rdma_helper_device_name(const struct ib_device *dev, char *name)
{
	strscpy(name, dev->name, IB_DEVICE_NAME_MAX);
}

u32 rdma_helper_max_seg_size(struct ib_device *dev)
{
	return ib_dma_max_seg_size(dev);
}

u32 rdma_helper_first_port(const struct ib_device *dev)
{
	return rdma_start_port(dev);
}

u32 rdma_helper_last_port(const struct ib_device *dev)
{
	return rdma_end_port(dev);
}

enum rdma_helper_protocol rdma_helper_protocol(const struct ib_device *dev, u32 port)
{
	if (!rdma_is_port_valid(dev, port))
		return RDMA_HELPER_OTHER;
	if (rdma_protocol_ib(dev, port))
		return RDMA_HELPER_INFINIBAND;
	if (rdma_protocol_roce(dev, port))
		return RDMA_HELPER_ROCE;
	if (rdma_protocol_iwarp(dev, port))
		return RDMA_HELPER_IWARP;
	return RDMA_HELPER_OTHER;
}

enum rdma_ah_attr_type rdma_helper_ah_type(struct ib_device *dev, u32 port)
{
	return rdma_ah_find_type(dev, port);
}

bool rdma_helper_grh_required(const struct ib_device *dev, u32 port)
{
	return rdma_is_grh_required(dev, port);
}

void rdma_helper_set_dlid(struct rdma_ah_attr *attr, u32 dlid)
{
	rdma_ah_set_dlid(attr, dlid);
}

/* How many places of a RoCE port's GID table, the first ones, are kept for default GIDs. */
u32 rdma_helper_default_gids(const struct ib_device *dev, u32 port)
{
	return rdma_protocol_roce_eth_encap(dev, port) + rdma_protocol_roce_udp_encap(dev, port);
}

/* --- Objects --- */

struct ib_pd *rdma_helper_alloc_pd(struct ib_device *dev)
{
	return ib_alloc_pd(dev, 0);
}

/* Quiet. */
struct ib_cq *rdma_helper_alloc_cq(struct ib_device *dev, u32 nr_cqe)
{
	struct ib_cq *cq = ib_alloc_cq_any(dev, NULL, nr_cqe, IB_POLL_SOFTIRQ);

	if (!IS_ERR(cq))
		irq_poll_disable(&cq->iop);
	return cq;
}

/*
 * A completion queue is quiet while softirq doesn't poll it, whatever the driver tells: whoever made
 * it so may. What irq_poll_disable() does, but at once: fails while softirq polls or is about to. No
 * callback is running when this succeeds.
 */
bool rdma_helper_quiet_cq(struct ib_cq *cq)
{
	return !test_and_set_bit(IRQ_POLL_F_SCHED, &cq->iop.state);
}

/*
 * Has softirq poll a quiet completion queue again, now if something has come meanwhile: drivers that
 * don't tell that interrupt at once. From here on the RDMA core asks for the next interrupt after
 * each poll.
 */
void rdma_helper_listen_cq(struct ib_cq *cq)
{
	irq_poll_enable(&cq->iop);
	if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
		irq_poll_sched(&cq->iop);
}

/*
 * Nothing polls a completion queue any more that can't be freed: its callbacks have returned when
 * this does, and none is called again. Sleeps. This is what ib_free_cq() begins with.
 */
void rdma_helper_silence_cq(struct ib_cq *cq, bool quiet)
{
	if (!quiet)
		irq_poll_disable(&cq->iop);
}

/* Its callbacks have returned when this does. Sleeps. */
void rdma_helper_free_cq(struct ib_cq *cq, bool quiet)
{
	/* Which ib_free_cq() disables, once. */
	if (quiet)
		irq_poll_enable(&cq->iop);
	ib_free_cq(cq);
}

struct ib_qp *rdma_helper_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *attr)
{
	return ib_create_qp(pd, attr);
}

/*
 * An object that is leaked stays in the list of resources that user space can read, but the name
 * of its owner there is a string of this module, which can go. The device's own name stays.
 */
void rdma_helper_disown(struct ib_device *dev, struct rdma_restrack_entry *res)
{
	WRITE_ONCE(res->kern_name, dev->name);
}

/* --- Work requests --- */

/* What is posted most: nothing is filled that it doesn't have. */
static void fill_reg(struct ib_reg_wr *reg, const struct rdma_helper_wr *w)
{
	*reg = (struct ib_reg_wr) {
		.wr = {
			.wr_cqe = w->cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED | w->flags,
		},
		.mr = w->mr,
		.key = w->mr->rkey,
		.access = w->access,
	};
}

static int post_reg(struct ib_qp *qp, const struct rdma_helper_wr *w)
{
	struct ib_reg_wr reg;

	fill_reg(&reg, w);
	return ib_post_send(qp, &reg.wr, NULL);
}

/* All others. */
static void fill_other(union rdma_helper_room *room, const struct rdma_helper_wr *w)
{
	struct ib_send_wr send = {
		.wr_cqe = w->cqe,
		.sg_list = (struct ib_sge *)w->sges,
		.num_sge = w->num_sge,
		.opcode = w->opcode,
		.send_flags = IB_SEND_SIGNALED | w->flags,
	};

	switch (w->opcode) {
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		send.ex.imm_data = (__force __be32)w->ex;
		break;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		send.ex.invalidate_rkey = w->ex;
		break;
	default:
		break;
	}

	switch (w->opcode) {
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		room->rdma = (struct ib_rdma_wr) {
			.wr = send, .remote_addr = w->remote_addr, .rkey = w->rkey,
		};
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		room->atomic = (struct ib_atomic_wr) {
			.wr = send, .remote_addr = w->remote_addr, .rkey = w->rkey,
			.compare_add = w->compare_add, .swap = w->swap,
		};
		break;
	default:
		room->send = send;
	}
}

static int post_other(struct ib_qp *qp, const struct rdma_helper_wr *w)
{
	union rdma_helper_room room;
	struct ib_recv_wr recv = {
		.wr_cqe = w->cqe,
		.sg_list = (struct ib_sge *)w->sges,
		.num_sge = w->num_sge,
	};

	if (w->receive)
		return ib_post_recv(qp, &recv, NULL);
	fill_other(&room, w);
	return ib_post_send(qp, &room.send, NULL);
}

/* Posts one request, signalled. Any context. */
int rdma_helper_post(struct ib_qp *qp, const struct rdma_helper_wr *w)
{
	if (!w->receive && w->opcode == IB_WR_REG_MR)
		return post_reg(qp, w);
	return post_other(qp, w);
}

/* --- Several in one go, each in room of its own --- */

/* What @w refers to stays until the request has been posted. */
void rdma_helper_fill(union rdma_helper_room *room, const struct rdma_helper_wr *w)
{
	if (w->opcode == IB_WR_REG_MR)
		fill_reg(&room->reg, w);
	else
		fill_other(room, w);
}

void rdma_helper_link(union rdma_helper_room *room, union rdma_helper_room *next)
{
	room->send.next = &next->send;
}

union rdma_helper_room *rdma_helper_next(union rdma_helper_room *room)
{
	/* Each begins with that. */
	return (union rdma_helper_room *)room->send.next;
}

struct ib_cqe *rdma_helper_cqe(const union rdma_helper_room *room)
{
	return room->send.wr_cqe;
}

/* Whether it completes also if it doesn't fail; as filled it does. */
void rdma_helper_signal(union rdma_helper_room *room, bool signal)
{
	if (signal)
		room->send.send_flags |= IB_SEND_SIGNALED;
	else
		room->send.send_flags &= ~IB_SEND_SIGNALED;
}

/* How many are copied at a time, to the stack. */
#define CHAIN_PART	8

/*
 * On an error those before *bad have been posted. Any context.
 *
 * A request can complete, and its room go, as soon as the device knows of it, while the driver is still
 * on its way to the next one: rxe looks for that afterwards. So drivers get copies.
 */
int rdma_helper_post_chain(struct ib_qp *qp, union rdma_helper_room *first,
			   union rdma_helper_room **bad)
{
	union rdma_helper_room *from[CHAIN_PART], copies[CHAIN_PART], *next = first;

	while (next) {
		const struct ib_send_wr *bad_wr = NULL;
		int i, n, ret;

		for (n = 0; next && n < CHAIN_PART; n++) {
			from[n] = next;
			copies[n] = *next;
			next = rdma_helper_next(next);
			copies[n].send.next = NULL;
			if (n)
				copies[n - 1].send.next = &copies[n].send;
		}
		ret = ib_post_send(qp, &copies[0].send, &bad_wr);
		if (ret) {
			/* Not all drivers say which, if it is the first. */
			for (i = n - 1; i > 0 && bad_wr != &copies[i].send; i--)
				;
			*bad = from[i];
			return ret;
		}
	}
	return 0;
}

/*
 * Posts requests about regions with one word to the device. The last one tells when it has completed,
 * and so have those before it then: they tell only of an error, to @quiet. On an error @posted
 * of them have been posted. Any context.
 */
int rdma_helper_post_together(struct ib_qp *qp, enum ib_wr_opcode opcode,
			      const struct rdma_helper_region_wr *regions, u32 count,
			      struct ib_cqe *quiet, struct ib_cqe *last, u32 *posted)
{
	struct ib_reg_wr wrs[RDMA_HELPER_MAX_TOGETHER];
	const struct ib_send_wr *bad = NULL;
	u32 i;
	int ret;

	for (i = 0; i < count; i++) {
		struct ib_mr *mr = regions[i].mr;
		bool ends = i + 1 == count;

		/* Drivers read no more of a request than its kind has. */
		wrs[i] = (struct ib_reg_wr) {
			.wr = {
				.next = ends ? NULL : &wrs[i + 1].wr,
				.wr_cqe = ends ? last : quiet,
				.opcode = opcode,
				.send_flags = ends ? IB_SEND_SIGNALED : 0,
				.ex.invalidate_rkey = regions[i].key,
			},
			.mr = mr,
			.key = mr ? mr->rkey : 0,
			.access = regions[i].access,
		};
	}
	ret = ib_post_send(qp, &wrs[0].wr, &bad);
	/* Not all drivers say which, if it is the first. */
	*posted = !ret ? count : bad ? reg_wr(bad) - wrs : 0;
	return ret;
}

/*
 * Drivers that can be reset have their own way to drain a queue pair, which completes what the
 * device will never know of. Not ib_drain_sq(): on other devices that waits without a bound.
 */
bool rdma_helper_drain_sq(struct ib_qp *qp)
{
	if (!qp->device->ops.drain_sq)
		return false;
	ib_drain_sq(qp);
	return true;
}

/* As above, for receives. */
bool rdma_helper_drain_rq(struct ib_qp *qp)
{
	if (!qp->device->ops.drain_rq)
		return false;
	ib_drain_rq(qp);
	return true;
}

void rdma_helper_next_key(struct ib_mr *mr)
{
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
}

/* --- Events --- */

void rdma_helper_register_events(struct ib_event_handler *handler, struct ib_device *dev,
				 void (*callback)(struct ib_event_handler *, struct ib_event *))
{
	INIT_IB_EVENT_HANDLER(handler, dev, callback);
	ib_register_event_handler(handler);
}

void rdma_helper_rescan_port(struct ib_device *dev, u32 port)
{
	rdma_roce_rescan_port(dev, port);
}

/* For an allocation that is kept for good, on purpose. */
void rdma_helper_not_leak(const void *object)
{
	kmemleak_not_leak(object);
}

/* --- DMA --- */

/*
 * A peer may write at any time while a region is registered, so a mapping that needs copying or
 * cache maintenance can't work: the attribute makes such a mapping fail instead of losing data.
 */
#ifndef DMA_ATTR_REQUIRE_COHERENT
#error "This kernel can't be told that a mapping must not be bounced"
#endif
#define MAP_ATTRS	DMA_ATTR_REQUIRE_COHERENT

/* What there is to know about how a device's mappings are made. */
u32 rdma_helper_dma_facts(const struct ib_device *dev)
{
	struct device *dma = dev->dma_device;
	u32 facts = 0;

	if (!dma)
		return RDMA_HELPER_DMA_VIRTUAL;
	if (!dev_is_dma_coherent(dma))
		facts |= RDMA_HELPER_DMA_INCOHERENT;
	if (use_dma_iommu(dma))
		facts |= RDMA_HELPER_DMA_IOMMU;
	if (get_dma_ops(dma))
		facts |= RDMA_HELPER_DMA_OWN_OPS;
	if (is_swiotlb_force_bounce(dma))
		facts |= RDMA_HELPER_DMA_BOUNCES;
	return facts;
}

bool rdma_helper_peer_to_peer(struct ib_device *dev)
{
	return ib_dma_pci_p2p_dma_supported(dev);
}

int rdma_helper_dma_map_sg(struct ib_device *dev, struct scatterlist *sgl, int nents, u32 dir)
{
	return ib_dma_map_sg_attrs(dev, sgl, nents, dir, MAP_ATTRS);
}

void rdma_helper_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sgl, int nents,
			      u32 dir)
{
	ib_dma_unmap_sg_attrs(dev, sgl, nents, dir, MAP_ATTRS);
}

/*
 * Contiguous memory with pages, for as long as a request has it: nobody looks at it meanwhile, so it
 * may be bounced. Any context.
 */
bool rdma_helper_dma_map(struct ib_device *dev, u64 phys, size_t len, u32 dir, u64 *address)
{
	*address = ib_dma_map_page(dev, pfn_to_page(PHYS_PFN(phys)), offset_in_page(phys), len, dir);
	return !ib_dma_mapping_error(dev, *address);
}

void rdma_helper_dma_unmap(struct ib_device *dev, u64 address, size_t len, u32 dir)
{
	ib_dma_unmap_page(dev, address, len, dir);
}

/* What a device that takes the kernel's addresses is told of memory with pages. */
u64 rdma_helper_virtual_address(u64 phys)
{
	return (uintptr_t)phys_to_virt(phys);
}

/* Of memory in the linear map. */
u64 rdma_helper_physical_address(void *addr)
{
	return virt_to_phys(addr);
}

void rdma_helper_dma_sync_for_cpu(struct ib_device *dev, struct scatterlist *sgl, int nents,
				  u32 dir)
{
	if (!ib_uses_virt_dma(dev))
		dma_sync_sg_for_cpu(dev->dma_device, sgl, nents, dir);
}

void rdma_helper_dma_sync_for_device(struct ib_device *dev, struct scatterlist *sgl, int nents,
				     u32 dir)
{
	if (!ib_uses_virt_dma(dev))
		dma_sync_sg_for_device(dev->dma_device, sgl, nents, dir);
}

void rdma_helper_sema_init(struct semaphore *sem, int val)
{
	sema_init(sem, val);
}
