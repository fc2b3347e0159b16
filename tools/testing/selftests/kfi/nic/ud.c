// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams: the messages of the connection manager, and those of IPoIB. A datagram that does not
 * arrive is dropped.
 */
#include <linux/ip.h>
#include <linux/slab.h>
#include <net/ip.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pack.h>

#include "nic.h"

#define NIC_MULTICAST_LID	0xc000
/* Of the GRH of a message of InfiniBand, by its specification. */
#define NIC_NEXT_IBA	0x1b

/* A queue pair that gets the datagrams of a group. */
struct nic_member {
	struct list_head node;
	union ib_gid gid;
	struct nic_qp *qp;
};

/* The 40 bytes before a datagram: a GRH, or the IPv4 header in the last 20 bytes. */
static void nic_make_header(union rdma_network_hdr *header, struct nic_port *port,
			    const struct nic_datagram *gram)
{
	bool v4 = !port->nic->persona->ib && ipv6_addr_v4mapped((struct in6_addr *)&gram->sgid);

	memset(header, 0, sizeof(*header));
	if (v4) {
		struct iphdr *ip = &header->roce4grh;

		ip->version = 4;
		ip->ihl = 5;
		ip->ttl = 64;
		ip->protocol = IPPROTO_UDP;
		ip->tot_len = cpu_to_be16(sizeof(*ip) + gram->len);
		memcpy(&ip->saddr, gram->sgid.raw + 12, 4);
		memcpy(&ip->daddr, gram->dgid.raw + 12, 4);
		ip->check = ip_fast_csum((u8 *)ip, ip->ihl);
		return;
	}
	header->ibgrh.version_tclass_flow = cpu_to_be32(6 << 28);
	header->ibgrh.paylen = cpu_to_be16(gram->len);
	header->ibgrh.next_hdr = port->nic->persona->ib ? NIC_NEXT_IBA : IPPROTO_UDP;
	header->ibgrh.hop_limit = 64;
	header->ibgrh.sgid = gram->sgid;
	header->ibgrh.dgid = gram->dgid;
}

/* A datagram has come to a queue pair: into its next receive request, if there is one that is long enough. May sleep. */
void nic_ud_deliver(struct nic_qp *qp, struct nic_port *port, const struct nic_datagram *gram)
{
	struct ib_wc wc = {
		.opcode = IB_WC_RECV, .byte_len = sizeof(struct ib_grh) + gram->len,
		.src_qp = gram->src_qp, .slid = gram->slid, .sl = gram->sl,
		.pkey_index = gram->pkey_index, .port_num = port->number,
	};
	union rdma_network_hdr header;
	struct nic_recv recv;
	struct nic_end to;
	u8 *message;

	if (!nic_take_recv(qp, &recv))
		return;
	to = (struct nic_end) {
		.qp = qp, .sge = recv.sge, .n = recv.n, .access = IB_ACCESS_LOCAL_WRITE,
	};
	message = kmalloc(wc.byte_len, GFP_NOIO);
	if (!message || nic_sge_len(recv.sge, recv.n) < wc.byte_len) {
		kfree(message);
		wc.status = IB_WC_LOC_LEN_ERR;
		nic_complete_recv(qp, &recv, &wc, false);
		return;
	}
	memset(message, 0, sizeof(struct ib_grh));
	if (gram->grh) {
		nic_make_header(&header, port, gram);
		memcpy(message, &header, sizeof(header));
		wc.wc_flags |= IB_WC_GRH;
	}
	memcpy(message + sizeof(struct ib_grh), gram->data, gram->len);
	if (!port->nic->persona->ib) {
		wc.wc_flags |= IB_WC_WITH_NETWORK_HDR_TYPE;
		wc.network_hdr_type = ipv6_addr_v4mapped((struct in6_addr *)&gram->sgid) ?
				      RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	}
	if (gram->imm) {
		wc.wc_flags |= IB_WC_WITH_IMM;
		wc.ex.imm_data = gram->imm_data;
	}
	if (nic_end_check(&to, wc.byte_len))
		wc.status = IB_WC_LOC_PROT_ERR;
	else
		for (u32 at = 0, n; at < wc.byte_len && !wc.status; at += n) {
			n = min_t(u32, wc.byte_len - at, NIC_CHUNK);
			if (nic_end_copy(&to, at, message + at, n, true))
				wc.status = IB_WC_LOC_PROT_ERR;
		}
	kfree(message);
	nic_complete_recv(qp, &recv, &wc, true);
}

/* A management queue pair of a port, with a reference. */
static struct nic_qp *nic_management_qp_get(struct nic_port *port, u32 number)
{
	struct nic_qp *qp;

	spin_lock_irq(&nic_list_lock);
	qp = number ? port->gsi : port->smi;
	if (qp && !refcount_inc_not_zero(&qp->refs))
		qp = NULL;
	spin_unlock_irq(&nic_list_lock);
	return qp;
}

static void nic_ud_to_port(struct nic_qp *from, struct nic_port *port, const struct nic_datagram *gram)
{
	struct nic_qp *qp;

	if (port->nic->persona->ib && gram->dest_qp == 1 && nic_sa_answer(from, port, gram))
		return;
	if (gram->dest_qp <= 1)
		qp = nic_management_qp_get(port, gram->dest_qp);
	else
		qp = nic_qp_get(gram->dest_qp);
	if (!qp)
		return;
	if (qp->nic == port->nic && qp->ib.qp_type != IB_QPT_RC &&
	    (gram->dest_qp <= 1 || qp->attr.qkey == gram->qkey))
		nic_ud_deliver(qp, port, gram);
	nic_qp_put(qp);
}

/* To all members of a group but the sender. */
static void nic_ud_to_group(struct nic_qp *from, const struct nic_datagram *gram)
{
	struct nic_qp *to[16];
	struct nic_member *member;
	struct nic_device *nic;
	unsigned int n = 0, i;

	spin_lock_irq(&nic_list_lock);
	list_for_each_entry(nic, &nic_list, node)
		list_for_each_entry(member, &nic->mcast, node)
			if (n < ARRAY_SIZE(to) && member->qp != from &&
			    !memcmp(&member->gid, &gram->dgid, sizeof(member->gid)) &&
			    refcount_inc_not_zero(&member->qp->refs))
				to[n++] = member->qp;
	spin_unlock_irq(&nic_list_lock);
	for (i = 0; i < n; i++) {
		struct nic_port *port = &to[i]->nic->ports[to[i]->attr.port_num - 1];

		if (nic_port_active(port) && to[i]->attr.qkey == gram->qkey)
			nic_ud_deliver(to[i], port, gram);
		nic_qp_put(to[i]);
	}
}

/*
 * Fills in a datagram from its request, whose memory it copies to qp->chunk. Returns an enum ib_wc_status.
 * May sleep.
 */
int nic_ud_prepare(struct nic_qp *qp, struct nic_wqe *wqe, struct nic_datagram *gram)
{
	const struct rdma_ah_attr *attr = &wqe->ah->attr;
	struct nic_end from = {
		.qp = qp, .sge = wqe->sge, .n = wqe->n,
		.data = wqe->is_inline ? wqe->data : NULL,
	};

	*gram = (struct nic_datagram) {
		.to = *attr, .dest_qp = wqe->remote_qpn, .qkey = wqe->remote_qkey,
		.src_qp = qp->ib.qp_num, .len = wqe->len, .data = qp->chunk,
		.sl = rdma_ah_get_sl(attr), .slid = qp->nic->ports[attr->port_num - 1].lid,
		.grh = rdma_ah_get_ah_flags(attr) & IB_AH_GRH,
		.imm = wqe->wr.opcode == IB_WR_SEND_WITH_IMM, .imm_data = wqe->wr.ex.imm_data,
		.sgid = wqe->ah->sgid,
	};
	if (gram->grh)
		gram->dgid = rdma_ah_read_grh(attr)->dgid;
	/* The reference to the GID is the address handle's. */
	gram->to.grh.sgid_attr = NULL;
	if (wqe->len > NIC_CHUNK)
		return IB_WC_LOC_LEN_ERR;
	if (nic_end_check(&from, wqe->len) || nic_end_copy(&from, 0, qp->chunk, wqe->len, false))
		return IB_WC_LOC_PROT_ERR;
	return IB_WC_SUCCESS;
}

/* Brings a datagram to those it is addressed to. Its request and its address handle may be gone. May sleep. */
void nic_ud_send(struct nic_qp *qp, const struct nic_datagram *gram)
{
	struct nic_port *port;

	guard(srcu)(&nic_srcu);
	if (qp->nic->persona->ib && rdma_ah_get_dlid(&gram->to) >= NIC_MULTICAST_LID) {
		nic_ud_to_group(qp, gram);
		return;
	}
	port = nic_find_port(qp->nic, &gram->to);
	if (port)
		nic_ud_to_port(qp, port, gram);
}

static int nic_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct nic_member *member;

	/* It has none before it is INIT. */
	if (!to_nic_qp(ibqp)->attr.port_num)
		return -EINVAL;
	member = kzalloc_obj(*member);

	if (!member)
		return -ENOMEM;
	member->gid = *gid;
	member->qp = to_nic_qp(ibqp);
	spin_lock_irq(&nic_list_lock);
	list_add_tail(&member->node, &member->qp->nic->mcast);
	spin_unlock_irq(&nic_list_lock);
	return 0;
}

static int nic_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct nic_qp *qp = to_nic_qp(ibqp);
	struct nic_member *member, *found = NULL;

	spin_lock_irq(&nic_list_lock);
	list_for_each_entry(member, &qp->nic->mcast, node)
		if (member->qp == qp && !memcmp(&member->gid, gid, sizeof(*gid)))
			found = member;
	if (found)
		list_del(&found->node);
	spin_unlock_irq(&nic_list_lock);
	kfree(found);
	return found ? 0 : -EINVAL;
}

const struct ib_device_ops nic_mcast_ops = {
	.attach_mcast = nic_attach_mcast,
	.detach_mcast = nic_detach_mcast,
};
