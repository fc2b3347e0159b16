// SPDX-License-Identifier: GPL-2.0
/* The generic netlink family "kfi", which shows offers and open objects to user space. */
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/kallsyms.h>
#include <linux/stacktrace.h>
#include <net/genetlink.h>

#include <kfabric.h>

#include "kfabric_helpers.h"
#include "netlink.h"

static struct genl_family family;

/* Adds a message with the attributes of @put. Returns -EMSGSIZE if there is no space. */
static int put_message(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd,
		       int (*put)(struct sk_buff *skb, const void *of, bool admin), const void *of, bool admin)
{
	void *message = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &family,
				    NLM_F_MULTI, cmd);

	if (!message)
		return -EMSGSIZE;
	if (put(skb, of, admin)) {
		genlmsg_cancel(skb, message);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, message);
	return 0;
}

static int put_string(struct sk_buff *skb, int type, const char *string)
{
	return string ? nla_put_string(skb, type, string) : 0;
}

static int put_info(struct sk_buff *skb, const void *of, bool admin)
{
	const struct kfi_info *info = of;
	const struct kfi_fabric_attr *fabric = info->fabric_attr;
	const struct kfi_domain_attr *domain = info->domain_attr;
	const struct kfi_ep_attr *ep = info->ep_attr;

	if (nla_put_uint(skb, KFI_A_INFO_CAPS, info->caps) ||
	    nla_put_uint(skb, KFI_A_INFO_MODE, info->mode))
		return -EMSGSIZE;
	if (fabric && (put_string(skb, KFI_A_INFO_PROVIDER, fabric->prov_name) ||
		       put_string(skb, KFI_A_INFO_FABRIC, fabric->name) ||
		       nla_put_u32(skb, KFI_A_INFO_API_VERSION, fabric->prov_version)))
		return -EMSGSIZE;
	if (domain && (put_string(skb, KFI_A_INFO_DOMAIN, domain->name) ||
		       nla_put_u32(skb, KFI_A_INFO_MR_MODE, domain->mr_mode) ||
		       nla_put_uint(skb, KFI_A_INFO_MR_KEY_SIZE, domain->mr_key_size) ||
		       nla_put_uint(skb, KFI_A_INFO_MR_IOV_LIMIT, domain->mr_iov_limit) ||
		       nla_put_uint(skb, KFI_A_INFO_MR_CNT, domain->mr_cnt)))
		return -EMSGSIZE;
	if (ep && (nla_put_u32(skb, KFI_A_INFO_EP_TYPE, ep->type) ||
		   nla_put_uint(skb, KFI_A_INFO_MAX_MSG_SIZE, ep->max_msg_size)))
		return -EMSGSIZE;
	if (info->tx_attr && (nla_put_uint(skb, KFI_A_INFO_INJECT_SIZE, info->tx_attr->inject_size) ||
			      nla_put_uint(skb, KFI_A_INFO_TX_SIZE, info->tx_attr->size) ||
			      nla_put_uint(skb, KFI_A_INFO_TX_IOV_LIMIT, info->tx_attr->iov_limit) ||
			      nla_put_uint(skb, KFI_A_INFO_RMA_IOV_LIMIT, info->tx_attr->rma_iov_limit)))
		return -EMSGSIZE;
	if (info->rx_attr && nla_put_uint(skb, KFI_A_INFO_RX_SIZE, info->rx_attr->size))
		return -EMSGSIZE;
	return 0;
}

/* args: the offers, and the next one. */
static int info_start(struct netlink_callback *cb)
{
	struct kfi_info *info = NULL;
	int ret = kfi_getinfo(0, NULL, NULL, 0, NULL, &info);

	/* Without an offer the list is empty. */
	if (ret && ret != -KFI_ENODATA)
		return ret;
	cb->args[0] = cb->args[1] = (long)info;
	return 0;
}

static int info_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct kfi_info *info;

	while ((info = (const struct kfi_info *)cb->args[1])) {
		if (put_message(skb, cb, KFI_CMD_INFO_GET, put_info, info, false))
			return skb->len ?: -EMSGSIZE;
		cb->args[1] = (long)info->next;
	}
	return skb->len;
}

static int info_done(struct netlink_callback *cb)
{
	kfi_freeinfo((struct kfi_info *)cb->args[0]);
	return 0;
}

#define FOLLOWS(first, counter, attribute) static_assert(KFI_A_OBJECT_##first + (counter) == KFI_A_OBJECT_##attribute)

FOLLOWS(OPENED, KFI_COUNTER_OPENED, OPENED);
FOLLOWS(OPENED, KFI_COUNTER_OPEN, OPEN);
FOLLOWS(OPENED, KFI_COUNTER_POOL_HITS, POOL_HITS);
FOLLOWS(OPENED, KFI_COUNTER_POOL_MISSES, POOL_MISSES);
FOLLOWS(SENDS, KFI_COUNTER_SENDS, SENDS);
FOLLOWS(SENDS, KFI_COUNTER_SEND_BYTES, SEND_BYTES);
FOLLOWS(SENDS, KFI_COUNTER_RECEIVES, RECEIVES);
FOLLOWS(SENDS, KFI_COUNTER_READS, READS);
FOLLOWS(SENDS, KFI_COUNTER_READ_BYTES, READ_BYTES);
FOLLOWS(SENDS, KFI_COUNTER_WRITES, WRITES);
FOLLOWS(SENDS, KFI_COUNTER_WRITE_BYTES, WRITE_BYTES);
FOLLOWS(SENDS, KFI_COUNTER_ATOMICS, ATOMICS);
FOLLOWS(COMPLETIONS, KFI_COUNTER_COMPLETIONS, COMPLETIONS);
FOLLOWS(COMPLETIONS, KFI_COUNTER_FAILURES, FAILURES);
FOLLOWS(COMPLETIONS, KFI_COUNTER_RECEIVED_BYTES, RECEIVED_BYTES);

static_assert(KFI_COUNTER_CALL_RETRIES + 1 == KFI_DOMAIN_COUNTERS);
static_assert(KFI_COUNTER_POST_RETRIES + 1 == KFI_EP_COUNTERS);

/*
 * Puts the counters of an object. The attributes of a class have the order of its counters, except retries, which are
 * the last counter of their classes.
 */
static int put_counters(struct sk_buff *skb, const struct kfi_helper_object *object)
{
	int first, count, retries = -1;

	switch (object->class) {
	case KFI_CLASS_DOMAIN:
		first = KFI_A_OBJECT_OPENED;
		count = retries = KFI_COUNTER_CALL_RETRIES;
		break;
	case KFI_CLASS_EP:
	case KFI_CLASS_SRX_CTX:
		first = KFI_A_OBJECT_SENDS;
		count = retries = KFI_COUNTER_POST_RETRIES;
		break;
	case KFI_CLASS_CQ:
		first = KFI_A_OBJECT_COMPLETIONS;
		count = KFI_CQ_COUNTERS;
		break;
	default:
		return 0;
	}
	for (int i = 0; i < count; i++)
		if (nla_put_uint(skb, first + i, object->counters[i]))
			return -EMSGSIZE;
	return retries >= 0 ? nla_put_uint(skb, KFI_A_OBJECT_RETRIES, object->counters[retries]) : 0;
}

/* Puts one attribute for each errno. */
static int put_refusals(struct sk_buff *skb, const struct kfi_helper_object *object)
{
	for (size_t i = 0; i < object->refusal_count; i++) {
		struct nlattr *nest = nla_nest_start(skb, KFI_A_OBJECT_REFUSALS);

		if (!nest || nla_put_u32(skb, KFI_A_REFUSAL_ERRNO, object->refusals[i].err) ||
		    nla_put_uint(skb, KFI_A_REFUSAL_COUNT, object->refusals[i].count))
			return -EMSGSIZE;
		nla_nest_end(skb, nest);
	}
	return 0;
}

static int put_object(struct sk_buff *skb, const void *of, bool admin)
{
	const struct kfi_helper_object *object = of;

	if (nla_put_u32(skb, KFI_A_OBJECT_CLASS, object->class) ||
	    nla_put_uint(skb, KFI_A_OBJECT_ID, object->id) ||
	    (object->parent && nla_put_uint(skb, KFI_A_OBJECT_PARENT, object->parent)) ||
	    put_string(skb, KFI_A_OBJECT_PROVIDER, object->provider) ||
	    put_string(skb, KFI_A_OBJECT_FABRIC, object->fabric) ||
	    put_string(skb, KFI_A_OBJECT_DOMAIN, object->domain) ||
	    put_string(skb, KFI_A_OBJECT_OWNER, object->owner) ||
	    nla_put_u32(skb, KFI_A_OBJECT_AGE, object->age) ||
	    nla_put_u32(skb, KFI_A_OBJECT_STATE, object->state) ||
	    (object->length && nla_put_uint(skb, KFI_A_OBJECT_LENGTH, object->length)) ||
	    put_counters(skb, object) || put_refusals(skb, object))
		return -EMSGSIZE;
	if (object->class != KFI_CLASS_MR)
		return 0;
	if (nla_put_uint(skb, KFI_A_OBJECT_ACCESS, object->access))
		return -EMSGSIZE;
	/* A peer that has the key of a region can reach its memory. */
	if (admin && object->key != KFI_KEY_NOTAVAIL && nla_put_uint(skb, KFI_A_OBJECT_KEY, object->key))
		return -EMSGSIZE;
	return 0;
}

static int validate_class(const struct nlattr *class, struct netlink_ext_ack *extack)
{
	switch (nla_get_u32(class)) {
	case KFI_CLASS_FABRIC:
	case KFI_CLASS_DOMAIN:
	case KFI_CLASS_EP:
	case KFI_CLASS_SRX_CTX:
	case KFI_CLASS_PEP:
	case KFI_CLASS_MR:
	case KFI_CLASS_EQ:
	case KFI_CLASS_CQ:
	case KFI_CLASS_CNTR:
		return 0;
	default:
		NL_SET_ERR_MSG_ATTR(extack, class, "unknown class");
		return -EINVAL;
	}
}

/* Generic netlink itself refuses attributes of the other call, which has no policy. */
static const struct nla_policy object_policy[] = {
	[KFI_A_OBJECT_CLASS] = NLA_POLICY_VALIDATE_FN(NLA_U32, validate_class),
};

/* args: the listing. */
static int object_start(struct netlink_callback *cb)
{
	const struct nlattr *class = genl_info_dump(cb)->attrs[KFI_A_OBJECT_CLASS];
	void *listing = kfi_core_listing(class ? nla_get_u32(class) : KFI_CLASS_UNSPEC);

	if (IS_ERR(listing))
		return PTR_ERR(listing);
	cb->args[0] = (long)listing;
	return 0;
}

static int object_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	void *listing = (void *)cb->args[0];
	bool admin = netlink_capable(cb->skb, CAP_NET_ADMIN);
	struct kfi_helper_object object;

	while (kfi_core_listing_get(listing, &object)) {
		if (put_message(skb, cb, KFI_CMD_OBJECT_GET, put_object, &object, admin))
			return skb->len ?: -EMSGSIZE;
		kfi_core_listing_next(listing);
	}
	return skb->len;
}

static int object_done(struct netlink_callback *cb)
{
	kfi_core_listing_free((void *)cb->args[0]);
	return 0;
}

static const struct genl_ops ops[] = {
	{
		.cmd = KFI_CMD_INFO_GET,
		.start = info_start,
		.dumpit = info_dump,
		.done = info_done,
	},
	{
		.cmd = KFI_CMD_OBJECT_GET,
		.start = object_start,
		.dumpit = object_dump,
		.done = object_done,
		.policy = object_policy,
		.maxattr = ARRAY_SIZE(object_policy) - 1,
	},
};

static struct genl_family family __ro_after_init = {
	.name = KFI_FAMILY_NAME,
	.version = KFI_FAMILY_VERSION,
	.module = THIS_MODULE,
	/* A dump has its own state. Other families need not wait for a query of all devices. */
	.parallel_ops = true,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
};

/* May sleep. */
int kfi_helper_netlink_register(void)
{
	return genl_register_family(&family);
}

/* Sleeps until nobody is in a call of the family. */
void kfi_helper_netlink_unregister(void)
{
	genl_unregister_family(&family);
}

/*
 * Writes the name of the module that has called into this one, or an empty string if it was the kernel
 * itself. Only the stack shows the module: inline functions of the caller call the slots. Task context.
 */
void kfi_helper_calling_module(char *name, size_t size)
{
	unsigned long entries[32];
	unsigned int count = stack_trace_save(entries, ARRAY_SIZE(entries), 0);
	char symbol[KSYM_SYMBOL_LEN];

	*name = 0;
	for (unsigned int i = 0; i < count; i++) {
		char *module, *end;

		if (within_module(entries[i], THIS_MODULE))
			continue;
		/* "symbol [module]" or "symbol [module build]" */
		scnprintf(symbol, sizeof(symbol), "%ps", (void *)entries[i]);
		module = strrchr(symbol, '[');
		if (!module)
			continue;
		end = strpbrk(++module, " ]");
		if (end)
			*end = 0;
		strscpy(name, module, size);
		return;
	}
}
