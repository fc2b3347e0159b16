/* SPDX-License-Identifier: GPL-2.0 */
/* The declarations that the files of the test peer share. */
#ifndef KFI_PEER_INTERNAL_H
#define KFI_PEER_INTERNAL_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

#include "kfi_peer.h"

/**
 * struct kfi_peer - a test peer
 * @lock: Held for the length of one call, and while the device is let go.
 * @watch: Told when the device goes away; NULL for a peer without a domain.
 * @in_watch: In the watch's list.
 * @gone: Set when the device is let go, for good.
 * @dev: The device; NULL before it is taken and once it is gone, and with it all that follows.
 * @target_pd: The protection domain under test. Not ours.
 * @pd: The initiator's protection domain; it has a key to all memory once local.c needs one.
 * @cq: Completions of both queue pairs. Polled by the caller itself, so that no completion ever
 *      arrives in another context.
 * @initiator: Sends; NULL while not connected.
 * @target: Receives; NULL while not connected.
 * @cqe: The one work request under way at the initiator.
 * @recv_cqe: A receive at the target.
 * @done: Whether @cqe has completed.
 * @status: How it did.
 * @connects: How often it has connected.
 * @received: Whether @recv_cqe has completed.
 * @recv_status: How it did.
 * @port: The port that the traffic uses.
 * @port_attr: The attributes of that port when the peer was opened.
 * @bounce: The peer's own memory that all data goes through, of KFI_PEER_CHUNK bytes.
 * @dma: Its address for the device.
 */
struct kfi_peer {
	struct mutex lock;	/* one call at a time */
	struct peer_watch *watch;
	struct list_head in_watch;
	bool gone;
	struct ib_device *dev;
	struct ib_pd *target_pd;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *initiator;
	struct ib_qp *target;
	struct ib_cqe cqe;
	struct ib_cqe recv_cqe;
	bool done;
	enum ib_wc_status status;
	unsigned int connects;
	bool received;
	enum ib_wc_status recv_status;
	u32 port;
	struct ib_port_attr port_attr;
	void *bounce;
	u64 dma;
};

/* connect.c */
int peer_connect(struct kfi_peer *peer);
void peer_disconnect(struct kfi_peer *peer);
int peer_find_port(struct kfi_peer *peer, struct ib_device *dev);

/* io.c */
void peer_send_done(struct ib_cq *cq, struct ib_wc *wc);
void peer_recv_done(struct ib_cq *cq, struct ib_wc *wc);
int peer_post_and_wait(struct kfi_peer *peer, struct ib_qp *qp, struct ib_send_wr *wr);
int peer_wait_received(struct kfi_peer *peer);

/* watch.c */
int peer_watch_domain(struct kfi_peer *peer, struct kfid_domain *domain, struct ib_pd **pd);
void peer_unwatch(struct kfi_peer *peer);

#endif /* KFI_PEER_INTERNAL_H */
