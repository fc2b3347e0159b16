// SPDX-License-Identifier: GPL-2.0
/*
 * The test peer's traffic: one work request at a time, and how it ended.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/jiffies.h>

#include "peer.h"

/*
 * Longer than all retries of a work request together, so that the device speaks first, and longer
 * than any machine takes for one: it only ends tests of a device that never answers.
 */
#define PEER_PATIENCE	(60 * HZ)

void peer_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kfi_peer *peer = container_of(wc->wr_cqe, struct kfi_peer, cqe);

	peer->status = wc->status;
	peer->done = true;
}

void peer_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kfi_peer *peer = container_of(wc->wr_cqe, struct kfi_peer, recv_cqe);

	peer->recv_status = wc->status;
	peer->received = true;
}

static int status_to_errno(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
		return 0;
	case IB_WC_REM_ACCESS_ERR:
	case IB_WC_REM_INV_REQ_ERR:
	case IB_WC_REM_OP_ERR:
		return -EACCES;
	default:
		return -EREMOTEIO;
	}
}

static int wait_for(struct kfi_peer *peer, const bool *done, const enum ib_wc_status *status)
{
	unsigned long end = jiffies + PEER_PATIENCE;

	for (;;) {
		ib_process_cq_direct(peer->cq, -1);
		if (*done)
			return status_to_errno(*status);
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(5, 30);
	}
}

/* Posts to a queue pair of the peer's; how it completed is in @peer->status. */
int peer_post_and_wait(struct kfi_peer *peer, struct ib_qp *qp, struct ib_send_wr *wr)
{
	int ret;

	lockdep_assert_held(&peer->lock);
	wr->wr_cqe = &peer->cqe;
	wr->send_flags |= IB_SEND_SIGNALED;
	peer->done = false;
	ret = ib_post_send(qp, wr, NULL);
	if (ret)
		return ret;
	return wait_for(peer, &peer->done, &peer->status);
}

/* Waits for a receive that was posted with @peer->recv_cqe. */
int peer_wait_received(struct kfi_peer *peer)
{
	return wait_for(peer, &peer->received, &peer->recv_status);
}

static int post_and_wait(struct kfi_peer *peer, struct ib_send_wr *wr)
{
	return peer_post_and_wait(peer, peer->initiator, wr);
}

/* The work request ended so; after a failure there is no connection any more. */
static int outcome(struct kfi_peer *peer, const struct ib_send_wr *wr, int ret)
{
	if (!ret)
		return 0;
	if (ret != -EACCES)
		pr_warn("work request %d: error %d, status %s\n", wr->opcode, ret,
			peer->done ? ib_wc_status_msg(peer->status) : "none");
	peer_disconnect(peer);
	return ret;
}

static int run(struct kfi_peer *peer, struct ib_send_wr *wr)
{
	return outcome(peer, wr, post_and_wait(peer, wr));
}

/* Begin a call: the device is there, and so is a connection. Ends with end(). */
static int begin(struct kfi_peer *peer, u64 key)
{
	int ret = 0;

	if (key > U32_MAX)
		return -EINVAL;
	mutex_lock(&peer->lock);
	if (!peer->dev)
		ret = -ENODEV;
	else if (!peer->initiator)
		ret = peer_connect(peer);
	if (ret)
		mutex_unlock(&peer->lock);
	return ret;
}

static void end(struct kfi_peer *peer)
{
	mutex_unlock(&peer->lock);
}

static int rdma_chunk(struct kfi_peer *peer, enum ib_wr_opcode opcode, u64 addr, u32 key, u32 len)
{
	struct ib_sge sge = {
		.addr = peer->dma,
		.length = len,
		.lkey = peer->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = addr,
		.rkey = key,
	};

	return run(peer, &wr.wr);
}

int kfi_peer_write(struct kfi_peer *peer, u64 addr, u64 key, const void *buf, size_t len)
{
	size_t done, n;
	int ret = begin(peer, key);

	if (ret)
		return ret;
	for (done = 0; !ret && done < len; done += n) {
		n = min_t(size_t, len - done, KFI_PEER_CHUNK);
		ib_dma_sync_single_for_cpu(peer->dev, peer->dma, n, DMA_BIDIRECTIONAL);
		memcpy(peer->bounce, buf + done, n);
		ib_dma_sync_single_for_device(peer->dev, peer->dma, n, DMA_BIDIRECTIONAL);
		ret = rdma_chunk(peer, IB_WR_RDMA_WRITE, addr + done, key, n);
	}
	end(peer);
	return ret;
}
EXPORT_SYMBOL_GPL(kfi_peer_write);

int kfi_peer_read(struct kfi_peer *peer, u64 addr, u64 key, void *buf, size_t len)
{
	size_t done, n;
	int ret = begin(peer, key);

	if (ret)
		return ret;
	for (done = 0; !ret && done < len; done += n) {
		n = min_t(size_t, len - done, KFI_PEER_CHUNK);
		ret = rdma_chunk(peer, IB_WR_RDMA_READ, addr + done, key, n);
		if (ret)
			break;
		ib_dma_sync_single_for_cpu(peer->dev, peer->dma, n, DMA_BIDIRECTIONAL);
		memcpy(buf + done, peer->bounce, n);
		ib_dma_sync_single_for_device(peer->dev, peer->dma, n, DMA_BIDIRECTIONAL);
	}
	end(peer);
	return ret;
}
EXPORT_SYMBOL_GPL(kfi_peer_read);

static int fetch_add(struct kfi_peer *peer, u64 addr, u32 key, u64 add, u64 *old)
{
	struct ib_sge sge = {
		.addr = peer->dma,
		.length = sizeof(u64),
		.lkey = peer->pd->local_dma_lkey,
	};
	struct ib_atomic_wr wr = {
		.wr = { .opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = addr,
		.rkey = key,
		.compare_add = add,
	};
	int ret;

	if (peer->dev->attrs.atomic_cap == IB_ATOMIC_NONE)
		return -EOPNOTSUPP;
	ret = run(peer, &wr.wr);
	if (!ret && old) {
		ib_dma_sync_single_for_cpu(peer->dev, peer->dma, sizeof(u64), DMA_BIDIRECTIONAL);
		*old = *(u64 *)peer->bounce;
		ib_dma_sync_single_for_device(peer->dev, peer->dma, sizeof(u64),
					      DMA_BIDIRECTIONAL);
	}
	return ret;
}

int kfi_peer_fetch_add(struct kfi_peer *peer, u64 addr, u64 key, u64 add, u64 *old)
{
	int ret = begin(peer, key);

	if (ret)
		return ret;
	ret = fetch_add(peer, addr, key, add, old);
	end(peer);
	return ret;
}
EXPORT_SYMBOL_GPL(kfi_peer_fetch_add);

/* A sender may hear of success before the target has tried, so the target is asked as well. */
static int send_inv(struct kfi_peer *peer, struct ib_send_wr *wr)
{
	struct ib_recv_wr recv = { .wr_cqe = &peer->recv_cqe };
	int ret;

	peer->received = false;
	ret = ib_post_recv(peer->target, &recv, NULL);
	if (ret)
		return ret;
	ret = post_and_wait(peer, wr);
	if (ret)
		return ret;
	ret = peer_wait_received(peer);
	return ret == -EREMOTEIO ? -EACCES : ret;
}

int kfi_peer_send_inv(struct kfi_peer *peer, u64 key)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .ex.invalidate_rkey = key };
	int ret = begin(peer, key);

	if (ret)
		return ret;
	ret = outcome(peer, &wr, send_inv(peer, &wr));
	end(peer);
	return ret;
}
EXPORT_SYMBOL_GPL(kfi_peer_send_inv);
