/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The test peer: a remote side that reaches registered memory by its key.
 *
 * It is written on raw verbs and shares no code with the code under test. It takes only the
 * protection domain and removal callbacks from kfabric. A peer has a connected pair of queue pairs
 * of its own on the domain's device. The target is on the domain's protection domain, so that it
 * sees exactly the keys that were registered there. The initiator is on a protection domain of the
 * peer. Ordinary RDMA traffic goes between them.
 *
 * A refused access ends a reliable connection, so the peer connects anew after every failure; a
 * caller doesn't notice. One call runs at a time; several threads may share a peer and then wait
 * for each other.
 *
 * All calls return 0, or one of these, so that a broken peer is never taken for a refused access:
 *
 *   -EACCES     the target refused: wrong key, wrong rights, out of bounds, not registered
 *   -ENODEV     the device is gone, or going
 *   -EREMOTEIO  the work request failed in any other way (retries used up, flushed, ...)
 *   -ETIMEDOUT  the work request never completed
 *   other       the peer could not even post it (out of memory, a key of more than 32 bits, ...)
 */
#ifndef KFI_PEER_H
#define KFI_PEER_H

#include <linux/sizes.h>
#include <linux/types.h>

struct ib_pd;
struct kfid_domain;
struct kfi_peer;

/*
 * Maximum number of bytes of one work request; longer calls become several. It is large so that a
 * request takes long enough for something to happen meanwhile.
 */
#define KFI_PEER_CHUNK	SZ_1M

/**
 * kfi_peer_open() - Make a peer for the keys of a domain.
 * @domain: An open domain of the verbs provider.
 *
 * When the device goes away, the peer lets go of it by itself; it must still be closed. A peer is
 * closed before its domain.
 *
 * Context: May sleep.
 * Return: The peer, or an error pointer.
 */
struct kfi_peer *kfi_peer_open(struct kfid_domain *domain);

/**
 * kfi_peer_open_pd() - Make a peer for the keys of a protection domain.
 * @pd: The protection domain of the target.
 *
 * For use without kfabric, or by a consumer that has a removal callback of its own on the domain.
 * Nobody tells this peer that the device goes away: call kfi_peer_let_go() or kfi_peer_close()
 * before it does.
 *
 * Context: May sleep.
 * Return: The peer, or an error pointer.
 */
struct kfi_peer *kfi_peer_open_pd(struct ib_pd *pd);

/**
 * kfi_peer_let_go() - Give back all that a peer has at its device, because the device goes away.
 * @peer: The peer; afterwards every call on it returns -ENODEV, and it must still be closed.
 *
 * Waits for a call on @peer that is under way.
 *
 * Context: May sleep.
 */
void kfi_peer_let_go(struct kfi_peer *peer);

/**
 * kfi_peer_close() - Close a peer.
 * @peer: The result of an open call; NULL and error pointers are ignored.
 *
 * Context: May sleep. No other call on @peer may be running.
 */
void kfi_peer_close(struct kfi_peer *peer);

/**
 * kfi_peer_write() - RDMA WRITE: put bytes into a remote region.
 * @peer: The peer.
 * @addr: Where to, in the region's own addresses (&kfid_mr.iova plus an offset).
 * @key: The region's key.
 * @buf: The bytes.
 * @len: How many. From %KFI_PEER_CHUNK on, several requests are sent, in order of address.
 *
 * Context: May sleep.
 * Return: 0 when all bytes have arrived, else as above.
 */
int kfi_peer_write(struct kfi_peer *peer, u64 addr, u64 key, const void *buf, size_t len);

/**
 * kfi_peer_read() - RDMA READ: get bytes out of a remote region.
 * @peer: The peer.
 * @addr: Where from, as for kfi_peer_write().
 * @key: The region's key.
 * @buf: Where the bytes go; holds nothing useful after a failure.
 * @len: How many.
 *
 * Context: May sleep.
 * Return: 0, or as above.
 */
int kfi_peer_read(struct kfi_peer *peer, u64 addr, u64 key, void *buf, size_t len);

/**
 * kfi_peer_fetch_add() - Remote atomic: add to a 64-bit word of a region.
 * @peer: The peer.
 * @addr: Where, a multiple of 8.
 * @key: The region's key.
 * @add: The number to add.
 * @old: Gets the value from before. May be NULL.
 *
 * Context: May sleep.
 * Return: 0, -EOPNOTSUPP where the device has no atomics, or as above.
 */
int kfi_peer_fetch_add(struct kfi_peer *peer, u64 addr, u64 key, u64 add, u64 *old);

/**
 * kfi_peer_send_inv() - SEND WITH INVALIDATE: make a remote key invalid.
 * @peer: The peer. Its own target receives the (empty) message.
 * @key: The key to invalidate.
 *
 * Context: May sleep.
 * Return: 0 when the target has invalidated it, -EACCES when it could not, else as above.
 */
int kfi_peer_send_inv(struct kfi_peer *peer, u64 key);

/**
 * kfi_peer_connects() - How often a peer has connected: once when it was opened, and once more after
 *	each failure.
 * @peer: The peer.
 *
 * Context: May sleep.
 */
unsigned int kfi_peer_connects(struct kfi_peer *peer);

/**
 * enum kfi_peer_local - what the domain's side does with its own region
 * @KFI_PEER_LOCAL_SEND: Sends a message out of it.
 * @KFI_PEER_LOCAL_RECV: Receives a message into it.
 * @KFI_PEER_LOCAL_READ: Puts what it reads by RDMA into it.
 * @KFI_PEER_LOCAL_WRITE: Writes by RDMA what is in it.
 */
enum kfi_peer_local {
	KFI_PEER_LOCAL_SEND,
	KFI_PEER_LOCAL_RECV,
	KFI_PEER_LOCAL_READ,
	KFI_PEER_LOCAL_WRITE,
};

/**
 * kfi_peer_local() - Use a region as the local segment of a work request.
 * @peer: The peer. Its target, which is on the domain's protection domain, posts the request.
 * @op: The request.
 * @addr: Where in the region, as for kfi_peer_write().
 * @lkey: The region's local key.
 * @buf: The bytes of the other side: they are received or read, or replaced by those that were sent
 * or written.
 * @len: How many bytes; %KFI_PEER_CHUNK at most.
 *
 * Context: May sleep.
 * Return: 0, -EACCES when the device refused the region, or as above.
 */
int kfi_peer_local(struct kfi_peer *peer, enum kfi_peer_local op, u64 addr, u32 lkey, void *buf,
		   size_t len);

#endif /* KFI_PEER_H */
