/* SPDX-License-Identifier: GPL-2.0 */
/* Asking for connected endpoints at an address, which is IPv4 or IPv6. */
#ifndef KFI_PAIR_INFO_H
#define KFI_PAIR_INFO_H

#include <linux/inet.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include <kfabric.h>
#include <kfi_domain.h>

/* With KFI_SOURCE it is an address of this machine, to listen at; with 0 it is a peer's. */
static inline int pair_getinfo(const char *provider, const char *address, const char *port,
			       u64 flags, struct kfi_info **info)
{
	struct kfi_info *hints = kfi_allocinfo();
	struct sockaddr_storage *addr = kzalloc(sizeof(*addr), GFP_KERNEL);
	size_t len;
	int ret = -ENOMEM;

	if (!hints || !addr)
		goto err;
	ret = inet_pton_with_scope(&init_net, AF_UNSPEC, address, port, addr);
	if (ret)
		goto err;
	len = addr->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	hints->fabric_attr->prov_name = kstrdup(provider, GFP_KERNEL);
	hints->ep_attr->type = KFI_EP_MSG;
	hints->caps = KFI_MSG | KFI_RMA | KFI_ATOMIC;
	hints->domain_attr->mr_mode = KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY;
	if (flags & KFI_SOURCE) {
		hints->src_addr = addr;
		hints->src_addrlen = len;
	} else {
		hints->dest_addr = addr;
		hints->dest_addrlen = len;
	}
	ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, flags, hints, info);
	kfi_freeinfo(hints);
	return ret;
err:
	kfree(addr);
	kfi_freeinfo(hints);
	return ret;
}

#endif /* KFI_PAIR_INFO_H */
