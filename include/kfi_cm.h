/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: connections and multicast groups.
 */
#ifndef _KFI_CM_H_
#define _KFI_CM_H_

#include "kfabric.h"
#include "kfi_endpoint.h"

/**
 * struct kfid_mc - A multicast group that an endpoint has joined.
 * @fid: The header that every object begins with.
 * @addr: The group's address, see kfi_mc_addr().
 */
struct kfid_mc {
	struct kfid		fid;
	kfi_addr_t		addr;
};

/**
 * struct kfi_ops_cm - The connection calls of an endpoint.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @setname: See kfi_setname().
 * @getname: See kfi_getname().
 * @getpeer: See kfi_getpeer().
 * @connect: See kfi_connect().
 * @listen: See kfi_listen().
 * @accept: See kfi_accept().
 * @reject: See kfi_reject().
 * @shutdown: See kfi_shutdown().
 * @join: See kfi_join().
 */
struct kfi_ops_cm {
	size_t	size;
	int	(*setname)(kfid_t fid, void *addr, size_t addrlen);
	int	(*getname)(struct kfid *fid, void *addr, size_t *addrlen);
	int	(*getpeer)(struct kfid_ep *ep, void *addr, size_t *addrlen);
	int	(*connect)(struct kfid_ep *ep, const void *addr, const void *param,
			   size_t paramlen);
	int	(*listen)(struct kfid_pep *pep);
	int	(*accept)(struct kfid_ep *ep, const void *param, size_t paramlen);
	int	(*reject)(struct kfid_pep *pep, kfid_t handle, const void *param, size_t paramlen);
	int	(*shutdown)(struct kfid_ep *ep, u64 flags);
	int	(*join)(struct kfid_ep *ep, const void *addr, u64 flags, struct kfid_mc **mc,
			void *context);
};

/**
 * kfi_setname() - Give a passive endpoint its local address.
 * @fid: Fid of the passive endpoint, which doesn't listen yet.
 * @addr: The address: a struct sockaddr_in or sockaddr_in6.
 * @addrlen: Its length, in bytes.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @fid or @ep is NULL, or no endpoint's.
 * * -KFI_ENOSYS: a bare endpoint; kfi_setname() of an endpoint; kfi_getpeer() of a passive
 *   endpoint.
 * * -KFI_EINVAL: no address, or too short, or neither IPv4 nor IPv6.
 * * -KFI_EOPBADSTATE: the endpoint listens.
 */
static inline int kfi_setname(struct kfid *fid, void *addr, size_t addrlen)
{
	return __kfi_call_of("not an endpoint", __kfi_to_ep(fid), cm, setname, fid, addr, addrlen);
}

/**
 * kfi_getname() - Get the local address of an endpoint.
 * @fid: Fid of the endpoint or passive endpoint.
 * @addr: Where to put the address.
 * @addrlen: In: room at @addr, in bytes. Out: length of the address.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @fid or @ep is NULL, or no endpoint's.
 * * -KFI_ENOSYS: a bare endpoint; kfi_setname() of an endpoint; kfi_getpeer() of a passive
 *   endpoint.
 * * -KFI_EADDRNOTAVAIL: the endpoint has no address.
 * * -KFI_EINVAL: @addrlen is NULL, or @addr is NULL and *@addrlen isn't 0.
 * * -KFI_ETOOSMALL: the address was cut off.
 */
static inline int kfi_getname(struct kfid *fid, void *addr, size_t *addrlen)
{
	return __kfi_call_of("not an endpoint", __kfi_to_ep(fid), cm, getname, fid, addr, addrlen);
}

/**
 * kfi_getpeer() - Get the address that an endpoint is connected to.
 * @ep: The endpoint.
 * @addr: Where to put the address.
 * @addrlen: In: room at @addr, in bytes. Out: length of the address.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @fid or @ep is NULL, or no endpoint's.
 * * -KFI_ENOSYS: a bare endpoint; kfi_setname() of an endpoint; kfi_getpeer() of a passive
 *   endpoint.
 * * -KFI_ENOTCONN: there is no connection.
 * * -KFI_EINVAL: @addrlen is NULL, or @addr is NULL and *@addrlen isn't 0.
 * * -KFI_ETOOSMALL: the address was cut off.
 */
static inline int kfi_getpeer(struct kfid_ep *ep, void *addr, size_t *addrlen)
{
	return __kfi_call(ep, cm, getpeer, ep, addr, addrlen);
}

/**
 * kfi_listen() - Begin to listen for connections, which come as KFI_CONNREQ events.
 * @pep: The passive endpoint.
 *
 * The info of the event is the reader's. It is what to open the endpoint with that answers, by
 * kfi_accept(); kfi_reject() takes its handle. An address with port 0 gets a port, which
 * kfi_getname() tells.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @pep is NULL or an error pointer.
 * * -KFI_ENOEQ: no event queue is bound, or it was closed.
 * * -KFI_EOPBADSTATE: the endpoint listens.
 * * -KFI_EADDRINUSE: the address, or the port of the unspecified address, is in use; or all ports
 *   are.
 * * -KFI_EADDRNOTAVAIL: over "verbs": the address isn't the device's.
 * * -KFI_ENODEV: the device is gone.
 * * -KFI_ENOMEM: out of memory.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_listen(struct kfid_pep *pep)
{
	return __kfi_call(pep, cm, listen, pep);
}

/**
 * kfi_connect() - Begin to connect an endpoint; a KFI_CONNECTED event tells the end.
 * @ep: The endpoint; it is enabled if it isn't yet.
 * @addr: The peer's address: a struct sockaddr_in or sockaddr_in6. NULL for the dest_addr of the
 *	info that the endpoint was opened with.
 * @param: Private data for the peer, or NULL.
 * @paramlen: Its length, in bytes; at most 56.
 *
 * If there won't be a connection, an error event tells why (KFI_ECONNREFUSED), with the private
 * data of a peer who has rejected. An endpoint is connected once.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @ep is NULL or an error pointer.
 * * -KFI_ENOSYS: a bare endpoint.
 * * -KFI_EOPBADSTATE: the endpoint answers a request.
 * * -KFI_EINVAL: no address, or neither IPv4 nor IPv6.
 * * -KFI_EINVAL: @param is NULL and @paramlen isn't 0, or @paramlen is more than 1024.
 * * The errors of kfi_enable(): the endpoint can't be enabled.
 * * -KFI_EINVAL: @paramlen exceeds the maximum.
 * * -KFI_EISCONN: there is a connection.
 * * -KFI_EOPBADSTATE: an attempt was made.
 * * -KFI_ENODEV: the device is gone.
 * * -KFI_EINVAL: over "verbs": @addr and src_addr are of different families.
 * * -KFI_EHOSTUNREACH: over "verbs": no route.
 * * -KFI_EADDRINUSE: over "verbs": the local address is in use.
 * * -KFI_EADDRNOTAVAIL: over "verbs": the local address isn't this machine's.
 * * -KFI_ENOMEM: out of memory.
 */
static inline int kfi_connect(struct kfid_ep *ep, const void *addr, const void *param,
			      size_t paramlen)
{
	return __kfi_call(ep, cm, connect, ep, addr, param, paramlen);
}

/**
 * kfi_accept() - Accept a connection; a KFI_CONNECTED event tells the end.
 * @ep: The endpoint, opened with the info of the KFI_CONNREQ event; it is enabled if it isn't yet.
 * @param: Private data for the peer, or NULL.
 * @paramlen: Its length, in bytes; at most 196.
 *
 * If the peer has gone meanwhile, an error event or this call reports KFI_ECONNRESET.
 *
 * Context: Process context; may sleep. It may be called in the handler of an event queue.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @ep is NULL or an error pointer.
 * * -KFI_EINVAL: @param is NULL and @paramlen isn't 0, or @paramlen is more than 1024.
 * * -KFI_ENOSYS: a bare endpoint.
 * * The errors of kfi_enable(): the endpoint can't be enabled.
 * * -KFI_EINVAL: @paramlen exceeds the maximum.
 * * -KFI_EISCONN: there is a connection.
 * * -KFI_EOPBADSTATE: an attempt was made.
 * * -KFI_EOPBADSTATE: the endpoint has no request.
 * * -KFI_ENODEV: the device is gone.
 * * -KFI_ECONNRESET: over "verbs": the peer is gone.
 * * -KFI_EHOSTUNREACH: over "verbs": the device or its driver fails.
 * * -KFI_ENOMEM: out of memory.
 */
static inline int kfi_accept(struct kfid_ep *ep, const void *param, size_t paramlen)
{
	return __kfi_call(ep, cm, accept, ep, param, paramlen);
}

/**
 * kfi_reject() - Refuse a connection.
 * @pep: The passive endpoint.
 * @connreq: The handle in the info of the KFI_CONNREQ event.
 * @param: Private data for the peer, or NULL.
 * @paramlen: Its length, in bytes; at most 148.
 *
 * Context: Process context; may sleep. It may be called in the handler of an event queue.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @pep is NULL or an error pointer.
 * * -KFI_EINVAL: @param is NULL and @paramlen isn't 0, or @paramlen exceeds the maximum.
 * * -KFI_EINVAL: @connreq is no request that waits at @pep.
 * * -KFI_ENODEV: over "verbs": the device is gone.
 * * -KFI_ENOMEM: over "verbs": out of memory. The request is forgotten, and the peer asks again.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_reject(struct kfid_pep *pep, kfid_t connreq, const void *param,
			     size_t paramlen)
{
	return __kfi_call(pep, cm, reject, pep, connreq, param, paramlen);
}

/**
 * kfi_shutdown() - Take a connection down; both sides get a KFI_SHUTDOWN event.
 * @ep: The endpoint.
 * @flags: None yet, 0.
 *
 * All that is under way fails with KFI_ECANCELED.
 *
 * Context: Process context; may sleep. May call handlers of completion queues.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @ep is NULL or an error pointer.
 * * -KFI_ENOSYS: a bare endpoint.
 * * -KFI_EBADFLAGS: @flags is not 0.
 * * -KFI_ENOTCONN: there is no connection.
 */
static inline int kfi_shutdown(struct kfid_ep *ep, u64 flags)
{
	return __kfi_call(ep, cm, shutdown, ep, flags);
}

/**
 * kfi_join() - Begin to join a multicast group; a KFI_JOIN_COMPLETE event tells the end.
 * @ep: The endpoint.
 * @addr: The group's address, in the domain's format.
 * @flags: KFI_SEND to send only, KFI_RECV to receive only, or 0.
 * @mc: Where to put the group; leave it with kfi_close().
 * @context: Given back with the event.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@mc NULL: -KFI_EINVAL if @ep or @mc is NULL, -KFI_ENOMEM, or -KFI_ENOSYS.
 */
static inline int kfi_join(struct kfid_ep *ep, const void *addr, u64 flags, struct kfid_mc **mc,
			   void *context)
{
	return __kfi_open(mc, ep, cm, join, ep, addr, flags, mc, context);
}

/**
 * kfi_mc_addr() - The address to send to a multicast group with.
 * @mc: The group, its joining complete.
 *
 * Context: Any.
 * Return: The address; KFI_ADDR_NOTAVAIL if @mc is NULL.
 */
static inline kfi_addr_t kfi_mc_addr(struct kfid_mc *mc)
{
	return IS_ERR_OR_NULL(mc) ? KFI_ADDR_NOTAVAIL : mc->addr;
}

#endif /* _KFI_CM_H_ */
