// SPDX-License-Identifier: GPL-2.0
/*
 * The test peer's connection: two reliable queue pairs of one port, each the other's remote side.
 */
#include <linux/etherdevice.h>
#include <linux/random.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "peer.h"

/*
 * About 0.25 s between retries and 6 of them: more than even a busy emulated machine needs. Not 7,
 * which stands for "for ever" in some drivers.
 */
#define PEER_ACK_TIMEOUT	16
#define PEER_RETRIES		6

/**
 * peer_find_port() - Find a port that can carry traffic, and what it is like.
 * @peer: The peer.
 * @dev: The device.
 *
 * Return: 0, -ENETDOWN when none is up, -EOPNOTSUPP for iWARP.
 */
int peer_find_port(struct kfi_peer *peer, struct ib_device *dev)
{
	int ret = -EOPNOTSUPP;
	u32 port;

	rdma_for_each_port(dev, port) {
		if (!rdma_protocol_ib(dev, port) && !rdma_protocol_roce(dev, port))
			continue;
		ret = ib_query_port(dev, port, &peer->port_attr);
		if (!ret && peer->port_attr.state == IB_PORT_ACTIVE) {
			peer->port = port;
			return 0;
		}
		ret = -ENETDOWN;
	}
	return ret;
}

/* How well packets to a GID will find their way: IPv4-mapped best, link-local worst. */
static int gid_rank(const struct ib_gid_attr *attr)
{
	const struct in6_addr *ip = (const struct in6_addr *)attr->gid.raw;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return 1;
	if (ipv6_addr_v4mapped(ip))
		return 4;
	return ipv6_addr_type(ip) & IPV6_ADDR_LINKLOCAL ? 2 : 3;
}

static int best_gid(struct ib_device *dev, u32 port, int len)
{
	const struct ib_gid_attr *attr;
	int i, rank, best = -ENETDOWN, best_rank = 0;

	for (i = 0; i < len && best_rank < 4; i++) {
		attr = rdma_get_gid_attr(dev, port, i);
		if (IS_ERR(attr))
			continue;
		rank = gid_rank(attr);
		if (rank > best_rank) {
			best_rank = rank;
			best = i;
		}
		rdma_put_gid_attr(attr);
	}
	return best;
}

/* The way back to ourselves on a RoCE port: a GID that routes, and that netdev's own MAC. */
static int roce_path_to_self(struct kfi_peer *peer, struct rdma_ah_attr *ah)
{
	const struct ib_gid_attr *attr;
	struct net_device *ndev;
	union ib_gid gid;
	int index, ret = 0;

	index = best_gid(peer->dev, peer->port, peer->port_attr.gid_tbl_len);
	if (index < 0)
		return index;
	attr = rdma_get_gid_attr(peer->dev, peer->port, index);
	if (IS_ERR(attr))
		return PTR_ERR(attr);
	gid = attr->gid;
	rdma_ah_set_grh(ah, &gid, 0, index, 1, 0);

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (IS_ERR(ndev))
		ret = PTR_ERR(ndev);
	else
		ether_addr_copy(ah->roce.dmac, ndev->dev_addr);
	rcu_read_unlock();

	rdma_put_gid_attr(attr);
	return ret;
}

static int path_to_self(struct kfi_peer *peer, struct ib_qp_attr *rtr)
{
	struct rdma_ah_attr *ah = &rtr->ah_attr;

	rtr->path_mtu = peer->port_attr.active_mtu;
	ah->type = rdma_ah_find_type(peer->dev, peer->port);
	rdma_ah_set_port_num(ah, peer->port);
	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE)
		return roce_path_to_self(peer, ah);
	rdma_ah_set_dlid(ah, peer->port_attr.lid);
	return 0;
}

static struct ib_qp *new_qp(struct kfi_peer *peer, struct ib_pd *pd, int access)
{
	struct ib_qp_init_attr init = {
		.send_cq = peer->cq,
		.recv_cq = peer->cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = peer->port,
		.qp_access_flags = access,
	};
	struct ib_qp *qp;
	int ret;

	qp = ib_create_qp(pd, &init);
	if (IS_ERR(qp))
		return qp;
	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (ret) {
		ib_destroy_qp(qp);
		return ERR_PTR(ret);
	}
	return qp;
}

static int qp_to_rts(struct ib_qp *qp, u32 remote_qpn, u32 psn, struct ib_qp_attr *rtr)
{
	struct ib_qp_attr rts = {
		.qp_state = IB_QPS_RTS,
		.timeout = PEER_ACK_TIMEOUT,
		.retry_cnt = PEER_RETRIES,
		.rnr_retry = PEER_RETRIES,
		.sq_psn = psn,
		.max_rd_atomic = 1,
	};
	int ret;

	rtr->qp_state = IB_QPS_RTR;
	rtr->dest_qp_num = remote_qpn;
	rtr->rq_psn = psn;
	rtr->max_dest_rd_atomic = 1;
	rtr->min_rnr_timer = IB_RNR_TIMER_001_28;
	ret = ib_modify_qp(qp, rtr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (ret)
		return ret;
	return ib_modify_qp(qp, &rts, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static int connect_pair(struct kfi_peer *peer)
{
	u32 psn = get_random_u32() & 0xffffff;
	struct ib_qp_attr rtr = {};
	int ret;

	ret = path_to_self(peer, &rtr);
	if (ret)
		return ret;
	ret = qp_to_rts(peer->target, peer->initiator->qp_num, psn, &rtr);
	if (ret)
		return ret;
	return qp_to_rts(peer->initiator, peer->target->qp_num, psn, &rtr);
}

/**
 * peer_connect() - Make the pair of queue pairs, ready to send.
 * @peer: A peer that has none.
 *
 * Return: 0 or an errno; then there is still none.
 */
int peer_connect(struct kfi_peer *peer)
{
	int access = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	int ret;

	if (peer->dev->attrs.atomic_cap != IB_ATOMIC_NONE)
		access |= IB_ACCESS_REMOTE_ATOMIC;

	peer->target = new_qp(peer, peer->target_pd, access);
	if (IS_ERR(peer->target)) {
		ret = PTR_ERR(peer->target);
		peer->target = NULL;
		return ret;
	}
	/* The target reaches back only in local.c. */
	if (!(peer->pd->flags & IB_PD_UNSAFE_GLOBAL_RKEY))
		access = 0;
	peer->initiator = new_qp(peer, peer->pd, access);
	if (IS_ERR(peer->initiator)) {
		ret = PTR_ERR(peer->initiator);
		peer->initiator = NULL;
		goto err;
	}
	ret = connect_pair(peer);
	if (ret)
		goto err;
	peer->connects++;
	return 0;
err:
	peer_disconnect(peer);
	return ret;
}

/**
 * peer_disconnect() - Destroy what queue pairs there are.
 * @peer: The peer; nothing of it is under way at the device afterwards.
 */
void peer_disconnect(struct kfi_peer *peer)
{
	if (peer->initiator)
		ib_destroy_qp(peer->initiator);
	if (peer->target)
		ib_destroy_qp(peer->target);
	peer->initiator = NULL;
	peer->target = NULL;
	/* Completions that the two left in the queue must not be taken for a later request's. */
	while (ib_process_cq_direct(peer->cq, -1) > 0)
		;
}

void kfi_peer_let_go(struct kfi_peer *peer)
{
	struct ib_device *dev;

	mutex_lock(&peer->lock);
	dev = peer->dev;
	peer->dev = NULL;
	peer->gone = true;
	if (dev) {
		peer_disconnect(peer);
		ib_dma_unmap_single(dev, peer->dma, KFI_PEER_CHUNK, DMA_BIDIRECTIONAL);
		ib_free_cq(peer->cq);
		ib_dealloc_pd(peer->pd);
	}
	mutex_unlock(&peer->lock);
}
EXPORT_SYMBOL_GPL(kfi_peer_let_go);
