// SPDX-License-Identifier: GPL-2.0
/*
 * The test peer: opening and closing.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "peer.h"

/* Take what the peer needs at the device, all but its connection. */
static int take_hold(struct kfi_peer *peer, struct ib_device *dev)
{
	int ret;

	ret = peer_find_port(peer, dev);
	if (ret)
		return ret;

	peer->pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(peer->pd))
		return PTR_ERR(peer->pd);

	peer->cq = ib_alloc_cq(dev, NULL, 16, 0, IB_POLL_DIRECT);
	if (IS_ERR(peer->cq)) {
		ret = PTR_ERR(peer->cq);
		goto err_pd;
	}

	peer->dma = ib_dma_map_single(dev, peer->bounce, KFI_PEER_CHUNK, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(dev, peer->dma)) {
		ret = -EIO;
		goto err_cq;
	}
	peer->dev = dev;
	return 0;
err_cq:
	ib_free_cq(peer->cq);
err_pd:
	ib_dealloc_pd(peer->pd);
	return ret;
}

/* Connect at once, so that a peer which can't work is no peer. */
static int start(struct kfi_peer *peer, struct ib_pd *target_pd)
{
	int ret;

	mutex_lock(&peer->lock);
	peer->target_pd = target_pd;
	ret = peer->gone ? -ENODEV : take_hold(peer, target_pd->device);
	if (!ret)
		ret = peer_connect(peer);
	mutex_unlock(&peer->lock);
	if (ret)
		kfi_peer_let_go(peer);
	return ret;
}

static struct kfi_peer *new_peer(void)
{
	struct kfi_peer *peer;

	peer = kzalloc_obj(*peer);
	if (!peer)
		return NULL;
	peer->bounce = kmalloc(KFI_PEER_CHUNK, GFP_KERNEL);
	if (!peer->bounce) {
		kfree(peer);
		return NULL;
	}
	mutex_init(&peer->lock);
	peer->cqe.done = peer_send_done;
	peer->recv_cqe.done = peer_recv_done;
	return peer;
}

static void free_peer(struct kfi_peer *peer)
{
	mutex_destroy(&peer->lock);
	kfree(peer->bounce);
	kfree(peer);
}

struct kfi_peer *kfi_peer_open_pd(struct ib_pd *pd)
{
	struct kfi_peer *peer = new_peer();
	int ret;

	if (!peer)
		return ERR_PTR(-ENOMEM);
	ret = start(peer, pd);
	if (ret) {
		free_peer(peer);
		return ERR_PTR(ret);
	}
	return peer;
}
EXPORT_SYMBOL_GPL(kfi_peer_open_pd);

struct kfi_peer *kfi_peer_open(struct kfid_domain *domain)
{
	struct kfi_peer *peer = new_peer();
	struct ib_pd *pd;
	int ret;

	if (!peer)
		return ERR_PTR(-ENOMEM);
	ret = peer_watch_domain(peer, domain, &pd);
	if (ret)
		goto err_free;
	ret = start(peer, pd);
	if (ret)
		goto err_unwatch;
	return peer;
err_unwatch:
	peer_unwatch(peer);
err_free:
	free_peer(peer);
	return ERR_PTR(ret);
}
EXPORT_SYMBOL_GPL(kfi_peer_open);

unsigned int kfi_peer_connects(struct kfi_peer *peer)
{
	guard(mutex)(&peer->lock);
	return peer->connects;
}
EXPORT_SYMBOL_GPL(kfi_peer_connects);

void kfi_peer_close(struct kfi_peer *peer)
{
	if (IS_ERR_OR_NULL(peer))
		return;
	peer_unwatch(peer);
	kfi_peer_let_go(peer);
	free_peer(peer);
}
EXPORT_SYMBOL_GPL(kfi_peer_close);

MODULE_DESCRIPTION("Test peer: reaches registered memory by its key, on raw verbs");
MODULE_LICENSE("GPL");
