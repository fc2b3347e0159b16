// SPDX-License-Identifier: GPL-2.0
/* The offers of kfi_getinfo() for addresses, and the fields of endpoints. */
#include <linux/in6.h>

#include "ep.h"

/* Addresses by node and service, as kfi_getinfo() takes them. */
void ep_named_case(struct kfi_test *t)
{
	struct kfi_info *hints = kfi_allocinfo(), *info = NULL;
	struct sockaddr_in *in;

	if (!EXPECT(t, hints, "no memory"))
		return;
	hints->fabric_attr->prov_name = kstrdup(kfi_provider_name, GFP_KERNEL);
	hints->domain_attr->mr_mode = EP_MODE;
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), kfi_address, "4420",
				 KFI_SOURCE | KFI_NUMERICHOST, hints, &info), 0);
	if (info) {
		in = info->src_addr;
		EXPECT_EQ(t, info->addr_format, KFI_SOCKADDR_IN);
		if (EXPECT(t, in && info->src_addrlen == sizeof(*in), "no source"))
			EXPECT(t, in->sin_port == htons(4420) &&
				  in->sin_addr.s_addr == ep_address().sin_addr.s_addr,
			       "another source");
		EXPECT(t, !info->dest_addr, "a peer that nobody named");
		kfi_freeinfo(info);
	}
	info = NULL;
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), kfi_address, "4420", 0, hints, &info), 0);
	if (info) {
		in = info->dest_addr;
		if (EXPECT(t, in && info->dest_addrlen == sizeof(*in), "no peer"))
			EXPECT(t, in->sin_port == htons(4420), "another peer");
		kfi_freeinfo(info);
	}
	info = NULL;
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), "not.a.number", "4420", 0, hints, &info),
		  -KFI_ENODATA);
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), kfi_address, "no port", 0, hints, &info),
		  -KFI_ENODATA);
	kfi_freeinfo(hints);
}

/* Asks by an address in hints, and no flag; gives what is offered. */
static int by_address(struct kfi_test *t, const void *address, size_t len, u32 format, bool own,
		      struct kfi_info **info)
{
	struct kfi_info *hints = kfi_allocinfo();
	int ret = -KFI_ENOMEM;

	*info = NULL;
	if (!EXPECT(t, hints, "no memory"))
		return ret;
	hints->fabric_attr->prov_name = kstrdup(kfi_provider_name, GFP_KERNEL);
	hints->domain_attr->mr_mode = EP_MODE;
	hints->addr_format = format;
	if (own) {
		hints->src_addr = kmemdup(address, len, GFP_KERNEL);
		hints->src_addrlen = len;
	} else {
		hints->dest_addr = kmemdup(address, len, GFP_KERNEL);
		hints->dest_addrlen = len;
	}
	ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, info);
	kfi_freeinfo(hints);
	return ret;
}

/* Is offered in these formats, as the address that it is, and in no other. */
static void in_formats(struct kfi_test *t, const void *address, size_t len, u32 its, bool own)
{
	const u32 formats[] = { KFI_FORMAT_UNSPEC, KFI_SOCKADDR, its };
	struct kfi_info *info;
	int i;

	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		const void *told = NULL;
		size_t told_len = 0;

		EXPECT_EQ(t, by_address(t, address, len, formats[i], own, &info), 0);
		if (info) {
			told = own ? info->src_addr : info->dest_addr;
			told_len = own ? info->src_addrlen : info->dest_addrlen;
			EXPECT_EQ(t, info->ep_attr->type, KFI_EP_MSG);
			EXPECT_EQ(t, info->addr_format, its);
			EXPECT(t, !own || !info->dest_addr, "a peer that nobody named");
		}
		EXPECT(t, told && told_len == len && !memcmp(told, address, len), "another address");
		kfi_freeinfo(info);
	}
	EXPECT_EQ(t, by_address(t, address, len, KFI_SOCKADDR_IB, own, &info), -KFI_ENODATA);
	EXPECT_EQ(t, by_address(t, address, len - 1, its, own, &info), -KFI_EINVAL);
}

/* Addresses in hints: an own one needs no flag; who listens at all that there are is asked at each. */
void ep_hints_case(struct kfi_test *t)
{
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6 }, own6;
	struct sockaddr_in own = ep_address(), any = { .sin_family = AF_INET };
	struct ep_pair *p = ep_listening(t, NULL);
	struct ep_event *e = kzalloc_obj(*e);
	struct kfi_info *info = NULL;
	struct kfid_pep *pep = NULL;
	size_t len = sizeof(any);

	own.sin_port = htons(4420);
	in_formats(t, &own, sizeof(own), KFI_SOCKADDR_IN, true);
	in_formats(t, &own, sizeof(own), KFI_SOCKADDR_IN, false);
	in_formats(t, &any6, sizeof(any6), KFI_SOCKADDR_IN6, true);
	own6 = any6;
	own6.sin6_family = AF_UNIX;
	EXPECT_EQ(t, by_address(t, &own6, sizeof(own6), KFI_FORMAT_UNSPEC, true, &info), -KFI_EINVAL);
	if (!p || !EXPECT(t, e, "no memory") ||
	    !EXPECT_EQ(t, by_address(t, &any, sizeof(any), KFI_SOCKADDR_IN, true, &info), 0) ||
	    !EXPECT_EQ(t, kfi_passive_ep(p->side[1].fabric, info, &pep, NULL), 0) ||
	    !EXPECT_EQ(t, kfi_pep_bind(pep, &p->side[1].eq->fid, 0), 0) ||
	    !EXPECT_EQ(t, kfi_listen(pep), 0) ||
	    !EXPECT_EQ(t, kfi_getname(&pep->fid, &any, &len), 0))
		goto out;
	own.sin_port = any.sin_port;
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, &own, NULL, 0), 0);
	if (ep_event(t, p->side[1].eq, KFI_CONNREQ, &pep->fid, e)) {
		const struct sockaddr_in *to = e->entry.info->src_addr;

		EXPECT(t, to && to->sin_addr.s_addr == own.sin_addr.s_addr &&
			  to->sin_port == own.sin_port, "asked at another address");
		EXPECT(t, !strcmp(e->entry.info->domain_attr->name, p->info->domain_attr->name),
		       "to be answered in %s", e->entry.info->domain_attr->name);
		EXPECT_EQ(t, kfi_reject(pep, e->entry.info->handle, NULL, 0), 0);
		kfi_freeinfo(e->entry.info);
	}
out:
	if (pep)
		EXPECT_EQ(t, kfi_close(&pep->fid), 0);
	kfi_freeinfo(info);
	if (p)
		ep_pair_close(t, p);
	kfree(e);
}

/* Hints that ask for nothing are offered all that there is, each with its limits. */
void ep_everything_case(struct kfi_test *t)
{
	struct kfi_info *bare = kzalloc_obj(*bare), *list = NULL, *i;
	unsigned int connected = 0, binding = 0, raw = 0, plain = 0;
	int asks;

	if (!EXPECT(t, bare, "no memory"))
		return;
	for (asks = 0; asks < 2; asks++) {
		EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, asks ? bare : NULL, &list),
			  0);
		for (i = list; i; i = i->next) {
			if (strcmp(i->fabric_attr->prov_name, kfi_provider_name))
				continue;
			raw += !!(i->domain_attr->mr_mode & KFI_MR_RAW);
			if (i->ep_attr->type != KFI_EP_MSG) {
				plain++;
				continue;
			}
			connected++;
			binding += !!(i->domain_attr->mr_mode & KFI_MR_ENDPOINT);
			EXPECT(t, (i->caps & (KFI_MSG | KFI_RMA | KFI_ATOMIC)) ==
				  (KFI_MSG | KFI_RMA | KFI_ATOMIC), "caps %#llx", i->caps);
			EXPECT(t, i->tx_attr->size && i->tx_attr->iov_limit &&
				  i->tx_attr->rma_iov_limit && i->tx_attr->inject_size &&
				  i->rx_attr->size && i->rx_attr->iov_limit &&
				  i->ep_attr->max_msg_size && i->domain_attr->cq_data_size,
			       "an offer without limits");
		}
		kfi_freeinfo(list);
	}
	EXPECT(t, connected && binding && raw && plain, "%u, %u, %u and %u offers", connected, binding,
	       raw, plain);
	kfree(bare);
}
