// SPDX-License-Identifier: GPL-2.0
/*
 * The other half of a key: the target itself works with a region, by naming its local key in work
 * requests of its own. The peer's bounce buffer is at the other end.
 */
#include "peer.h"

/*
 * The target reaches the bounce buffer by RDMA, for which the initiator's protection domain has to
 * have a key to all memory. That is taken when it is first needed. In a module that is not for
 * tests it would be a mistake.
 */
static int take_global_key(struct kfi_peer *peer)
{
	struct ib_pd *pd;

	if (peer->pd->flags & IB_PD_UNSAFE_GLOBAL_RKEY)
		return peer->initiator ? 0 : peer_connect(peer);
	pd = ib_alloc_pd(peer->dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	peer_disconnect(peer);
	ib_dealloc_pd(peer->pd);
	peer->pd = pd;
	return peer_connect(peer);
}

/*
 * How a request of the target's ended that names a region. Each of these means that the region was
 * refused: rxe puts its queue pair into error then, and that often flushes the very request before it
 * has completed by its own status. Nothing else is under way that could have broken the connection.
 */
static int verdict(int ret, enum ib_wc_status status)
{
	bool refused = status == IB_WC_LOC_PROT_ERR || status == IB_WC_LOC_QP_OP_ERR ||
		       status == IB_WC_WR_FLUSH_ERR;

	return ret == -EREMOTEIO && refused ? -EACCES : ret;
}

/* The target puts the region's bytes into the bounce buffer, or the other way round. */
static int rdma(struct kfi_peer *peer, enum ib_wr_opcode opcode, struct ib_sge *region)
{
	struct ib_rdma_wr wr = {
		.wr = { .opcode = opcode, .sg_list = region, .num_sge = 1 },
		.remote_addr = peer->dma,
		.rkey = peer->pd->unsafe_global_rkey,
	};
	int ret = peer_post_and_wait(peer, peer->target, &wr.wr);

	return verdict(ret, peer->status);
}

/* A message from one end to the other. */
static int message(struct kfi_peer *peer, struct ib_qp *from, struct ib_sge *source,
		   struct ib_qp *to, struct ib_sge *sink)
{
	struct ib_recv_wr recv = { .wr_cqe = &peer->recv_cqe, .sg_list = sink, .num_sge = 1 };
	struct ib_send_wr send = { .opcode = IB_WR_SEND, .sg_list = source, .num_sge = 1 };
	int ret;

	peer->received = false;
	ret = ib_post_recv(to, &recv, NULL);
	if (ret)
		return ret;
	ret = peer_post_and_wait(peer, from, &send);
	ret = verdict(ret, peer->status);
	return ret ?: peer_wait_received(peer);
}

static int run(struct kfi_peer *peer, enum kfi_peer_local op, u64 addr, u32 lkey, size_t len)
{
	struct ib_sge region = { .addr = addr, .length = len, .lkey = lkey };
	struct ib_sge bounce = {
		.addr = peer->dma,
		.length = len,
		.lkey = peer->pd->local_dma_lkey,
	};

	switch (op) {
	case KFI_PEER_LOCAL_SEND:
		return message(peer, peer->target, &region, peer->initiator, &bounce);
	case KFI_PEER_LOCAL_RECV:
		return message(peer, peer->initiator, &bounce, peer->target, &region);
	case KFI_PEER_LOCAL_READ:
		return rdma(peer, IB_WR_RDMA_READ, &region);
	case KFI_PEER_LOCAL_WRITE:
		return rdma(peer, IB_WR_RDMA_WRITE, &region);
	}
	return -EINVAL;
}

int kfi_peer_local(struct kfi_peer *peer, enum kfi_peer_local op, u64 addr, u32 lkey, void *buf,
		   size_t len)
{
	int ret;

	if (len > KFI_PEER_CHUNK)
		return -EINVAL;
	mutex_lock(&peer->lock);
	ret = peer->dev ? take_global_key(peer) : -ENODEV;
	if (!ret) {
		ib_dma_sync_single_for_cpu(peer->dev, peer->dma, len, DMA_BIDIRECTIONAL);
		memcpy(peer->bounce, buf, len);
		ib_dma_sync_single_for_device(peer->dev, peer->dma, len, DMA_BIDIRECTIONAL);
		ret = run(peer, op, addr, lkey, len);
		if (ret)
			peer_disconnect(peer);
		ib_dma_sync_single_for_cpu(peer->dev, peer->dma, len, DMA_BIDIRECTIONAL);
		memcpy(buf, peer->bounce, len);
		ib_dma_sync_single_for_device(peer->dev, peer->dma, len, DMA_BIDIRECTIONAL);
	}
	mutex_unlock(&peer->lock);
	return ret;
}
EXPORT_SYMBOL_GPL(kfi_peer_local);
