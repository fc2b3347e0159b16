// SPDX-License-Identifier: GPL-2.0
/* The queries of a device, protection domains, address handles and GIDs. */
#include <linux/etherdevice.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "nic.h"

/* Locally administered, and different for each device and port; port 0 is the device itself. */
u64 nic_guid(struct nic_device *nic, u32 port)
{
	return 0x02006b6e69630000ULL | nic->index << 8 | port;
}

static int nic_query_device(struct ib_device *ib, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	struct nic_device *nic = to_nic(ib);
	const struct nic_persona *persona = nic->persona;

	*attr = (struct ib_device_attr) {
		.sys_image_guid = ib->node_guid,
		.max_mr_size = U64_MAX,
		.page_size_cap = persona->page_sizes,
		.vendor_id = nic->pdev->vendor,
		.vendor_part_id = nic->pdev->device,
		.max_qp = 4096,
		.max_qp_wr = 4096,
		.device_cap_flags = persona->fast_reg ? IB_DEVICE_MEM_MGT_EXTENSIONS : 0,
		.kernel_cap_flags = (persona->all_memory_key ? IBK_LOCAL_DMA_LKEY : 0) |
				    (persona->gaps ? IBK_SG_GAPS_REG : 0),
		.max_send_sge = persona->max_send_sge,
		.max_recv_sge = persona->max_recv_sge,
		.max_sge_rd = persona->max_read_sge,
		.max_cq = 4096,
		.max_cqe = SZ_64K,
		.max_mr = SZ_64K,
		.max_pd = 1024,
		.max_qp_rd_atom = 16,
		.max_res_rd_atom = 16 * 4096,
		.max_qp_init_rd_atom = 16,
		.atomic_cap = persona->iwarp ? IB_ATOMIC_NONE : IB_ATOMIC_HCA,
		.max_mcast_grp = persona->ib ? 64 : 0,
		.max_mcast_qp_attach = persona->ib ? 64 : 0,
		.max_total_mcast_qp_attach = persona->ib ? 64 * 64 : 0,
		.max_ah = 4096,
		.max_srq = persona->srq ? 1024 : 0,
		.max_srq_wr = persona->srq ? 4096 : 0,
		.max_srq_sge = persona->srq ? persona->max_recv_sge : 0,
		.max_fast_reg_page_list_len = persona->max_pages,
		.max_pkeys = 1,
		.local_ca_ack_delay = 15,
	};
	return 0;
}

/* Tell consumers of an event of a port. May sleep. */
void nic_port_event(struct nic_port *port, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &port->nic->ib,
		.element.port_num = port->number,
		.event = type,
	};

	ib_dispatch_event(&event);
}

/* Can a port send and receive? Any context. */
bool nic_port_active(struct nic_port *port)
{
	struct net_device *netdev;

	if (READ_ONCE(port->down))
		return false;
	if (port->nic->persona->ib)
		return true;
	/* The network device may be going: it is freed a grace period after the port has forgotten it. */
	guard(rcu)();
	netdev = READ_ONCE(port->netdev);
	return netdev && netif_running(netdev) && netif_carrier_ok(netdev);
}

static int nic_query_port(struct ib_device *ib, u32 number, struct ib_port_attr *attr)
{
	struct nic_device *nic = to_nic(ib);
	const struct nic_persona *persona = nic->persona;
	struct nic_port *port = &nic->ports[number - 1];
	bool active = nic_port_active(port);

	attr->state = active ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = active ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->phys_mtu = 4096;
	attr->gid_tbl_len = persona->iwarp || persona->ib ? 1 : NIC_GIDS;
	attr->ip_gids = !persona->iwarp && !persona->ib;
	attr->port_cap_flags = persona->iwarp ? 0 : IB_PORT_CM_SUP;
	attr->max_msg_sz = NIC_MAX_MSG;
	attr->pkey_tbl_len = persona->iwarp ? 0 : 1;
	attr->max_vl_num = 1;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	if (persona->ib) {
		attr->lid = port->lid;
		attr->sm_lid = nic->ports[0].lid;
	}
	return 0;
}

/* The connection manager of InfiniBand tells the port that it is there, and gives up otherwise. */
static int nic_modify_port(struct ib_device *ib, u32 number, int mask, struct ib_port_modify *modify)
{
	return 0;
}

static int nic_port_immutable(struct ib_device *ib, u32 number, struct ib_port_immutable *immutable)
{
	const struct nic_persona *persona = to_nic(ib)->persona;
	struct ib_port_attr attr = {};
	int err;

	if (persona->iwarp)
		immutable->core_cap_flags = RDMA_CORE_PORT_IWARP;
	else if (persona->ib)
		immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	else
		immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	err = ib_query_port(ib, number, &attr);
	if (err)
		return err;
	immutable->gid_tbl_len = attr.gid_tbl_len;
	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	immutable->max_mad_size = persona->iwarp ? 0 : IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer nic_link_layer(struct ib_device *ib, u32 number)
{
	return to_nic(ib)->persona->ib ? IB_LINK_LAYER_INFINIBAND : IB_LINK_LAYER_ETHERNET;
}

/* The one GID of a port of InfiniBand or iWARP; those of RoCE are kept by the core. */
static int nic_query_gid(struct ib_device *ib, u32 number, int index, union ib_gid *gid)
{
	struct nic_device *nic = to_nic(ib);
	struct nic_port *port = &nic->ports[number - 1];
	struct net_device *netdev;

	memset(gid, 0, sizeof(*gid));
	guard(rcu)();
	netdev = READ_ONCE(port->netdev);
	if (nic->persona->ib) {
		gid->global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL | READ_ONCE(port->subnet));
		gid->global.interface_id = cpu_to_be64(nic_guid(nic, number));
	} else if (netdev) {
		memcpy(gid->raw, netdev->dev_addr, ETH_ALEN);
	}
	return 0;
}

static int nic_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct nic_device *nic = to_nic(attr->device);

	if (attr->index >= NIC_GIDS)
		return -EINVAL;
	nic->ports[attr->port_num - 1].gids[attr->index] = attr->gid;
	return 0;
}

static int nic_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct nic_device *nic = to_nic(attr->device);

	memset(&nic->ports[attr->port_num - 1].gids[attr->index], 0, sizeof(union ib_gid));
	return 0;
}

static int nic_query_pkey(struct ib_device *ib, u32 number, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static bool nic_has_gid(struct nic_port *port, const union ib_gid *gid)
{
	union ib_gid own;
	unsigned int i;

	if (port->nic->persona->ib) {
		nic_query_gid(&port->nic->ib, port->number, 0, &own);
		return !memcmp(&own, gid, sizeof(own));
	}
	for (i = 0; i < NIC_GIDS; i++)
		if (!memcmp(&port->gids[i], gid, sizeof(*gid)))
			return true;
	return false;
}

/*
 * Returns the active port that an address leads to, from a device, or NULL. The port stays while the caller is in a read
 * section of nic_srcu. Any context.
 */
struct nic_port *nic_find_port(struct nic_device *from, const struct rdma_ah_attr *to)
{
	bool by_lid = from->persona->ib && !(rdma_ah_get_ah_flags(to) & IB_AH_GRH);
	struct nic_port *source = &from->ports[rdma_ah_get_port_num(to) - 1], *found = NULL;
	struct nic_device *nic;
	unsigned long flags;
	unsigned int i;

	if (!nic_port_active(source))
		return NULL;
	spin_lock_irqsave(&nic_list_lock, flags);
	list_for_each_entry(nic, &nic_list, node) {
		for (i = 0; i < nic->ib.phys_port_cnt && !found; i++) {
			struct nic_port *port = &nic->ports[i];

			if (by_lid ? port->lid == rdma_ah_get_dlid(to) :
				     nic_has_gid(port, &rdma_ah_read_grh(to)->dgid))
				found = port;
		}
	}
	spin_unlock_irqrestore(&nic_list_lock, flags);
	return found && nic_port_active(found) ? found : NULL;
}

static int nic_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	struct nic_device *nic = to_nic(pd->device);

	if (nic_fault(nic, NIC_FAULT_ALLOC_PD))
		return nic_errno(nic);
	nic_count(nic, NIC_STAT_PDS, 1);
	return 0;
}

static int nic_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	nic_count(to_nic(pd->device), NIC_STAT_PDS, -1);
	return 0;
}

static int nic_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct nic_ah *ah = to_nic_ah(ibah);
	struct nic_device *nic = to_nic(ibah->device);

	ah->attr = *init->ah_attr;
	if (rdma_ah_get_ah_flags(&ah->attr) & IB_AH_GRH)
		ah->sgid = ah->attr.grh.sgid_attr->gid;
	nic_count(nic, NIC_STAT_AHS, 1);
	return 0;
}

/* The core needs it to send to a subnet administrator. The reference to the GID is the address handle's. */
static int nic_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = to_nic_ah(ibah)->attr;
	attr->grh.sgid_attr = NULL;
	return 0;
}

static int nic_destroy_ah(struct ib_ah *ah, u32 flags)
{
	nic_count(to_nic(ah->device), NIC_STAT_AHS, -1);
	return 0;
}

const struct ib_device_ops nic_device_ops = {
	.owner = THIS_MODULE,
	.query_device = nic_query_device,
	.query_port = nic_query_port,
	.modify_port = nic_modify_port,
	.get_port_immutable = nic_port_immutable,
	.get_link_layer = nic_link_layer,
	.query_gid = nic_query_gid,
	.add_gid = nic_add_gid,
	.del_gid = nic_del_gid,
	.query_pkey = nic_query_pkey,
	.alloc_pd = nic_alloc_pd,
	.dealloc_pd = nic_dealloc_pd,
	.create_ah = nic_create_ah,
	.query_ah = nic_query_ah,
	.destroy_ah = nic_destroy_ah,
	INIT_RDMA_OBJ_SIZE(ib_pd, nic_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_ah, nic_ah, ib),
};
