// SPDX-License-Identifier: GPL-2.0
/* The offers of kfi_getinfo() for different hints. */
#include "env.h"
#include "suites.h"

#define NEEDED	(KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY)

/*
 * Hints that are right, changed in one way, and what kfi_getinfo() must say to them.
 */
struct hint {
	int want;
	void (*change)(struct kfi_info *hints);
};

static int ask(struct kfi_info *hints, struct kfi_info **info)
{
	*info = (void *)0x5a5a;
	return kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, info);
}

/* The fields that every offer of the verbs provider must have; @msg: with connected endpoints. */
static void check_offer(struct kfi_test *t, const struct kfi_info *info, bool msg)
{
	const struct kfi_domain_attr *d = info->domain_attr;

	if (!EXPECT(t, info->fabric_attr && info->domain_attr, "an offer without attributes"))
		return;
	EXPECT(t, !strcmp(info->fabric_attr->prov_name, "verbs"), "provider %s",
	       info->fabric_attr->prov_name);
	EXPECT(t, info->fabric_attr->name && *info->fabric_attr->name, "no fabric name");
	EXPECT(t, d->name && *d->name, "no domain name");
	EXPECT_EQ(t, d->mr_mode, NEEDED);
	EXPECT(t, d->mr_key_size >= 1 && d->mr_key_size <= 8, "keys of %zu bytes", d->mr_key_size);
	EXPECT(t, d->mr_iov_limit, "no mr_iov_limit");
	EXPECT(t, d->mr_cnt, "no mr_cnt");
	EXPECT(t, d->cq_cnt, "no cq_cnt");
	EXPECT_EQ(t, info->fabric_attr->prov_version, KFI_VERSION(1, 0));
	EXPECT(t, (info->caps & (KFI_RMA | KFI_REMOTE)) == (KFI_RMA | KFI_REMOTE), "caps %#llx",
	       info->caps);
	EXPECT(t, !(info->caps & KFI_TAGGED), "caps %#llx", info->caps);
	EXPECT(t, msg || !(info->caps & KFI_ATOMIC), "caps %#llx", info->caps);
	EXPECT(t, !(info->caps & KFI_MSG) == !msg, "caps %#llx", info->caps);
	if (!EXPECT(t, info->ep_attr && info->tx_attr && info->rx_attr, "no endpoint attributes"))
		return;
	EXPECT_EQ(t, info->ep_attr->type, msg ? KFI_EP_MSG : KFI_EP_UNSPEC);
	EXPECT(t, !info->tx_attr->size == !msg && !info->rx_attr->size == !msg, "queues of %zu, %zu",
	       info->tx_attr->size, info->rx_attr->size);
}

static void hint_case(struct kfi_test *t)
{
	const struct hint *hint = t->c->data;
	struct kfi_info *hints = env_hints(), *info;

	if (!EXPECT(t, hints, "no memory"))
		return;
	hint->change(hints);
	EXPECT_EQ(t, ask(hints, &info), hint->want);
	if (hint->want)
		EXPECT(t, !info, "*info is not NULL");
	else if (info && info != (void *)0x5a5a)
		check_offer(t, info, (hints->caps & (KFI_MSG | KFI_ATOMIC)) ||
			    (hints->ep_attr && hints->ep_attr->type == KFI_EP_MSG));
	if (info != (void *)0x5a5a)
		kfi_freeinfo(info);
	kfi_freeinfo(hints);
}

#define HINT(_name, statement)							\
static void _name(struct kfi_info *h)						\
{										\
	statement;								\
}

static void as_it_is(struct kfi_info *h)
{
}

static void rename(char **name)
{
	kfree(*name);
	*name = kstrdup("nowhere", GFP_KERNEL);
}

static void drop_domain_attr(struct kfi_info *h)
{
	kfree(h->domain_attr->name);
	kfree(h->domain_attr);
	h->domain_attr = NULL;
}

static void drop_others(struct kfi_info *h)
{
	kfree(h->tx_attr);
	kfree(h->rx_attr);
	kfree(h->ep_attr);
	h->tx_attr = NULL;
	h->rx_attr = NULL;
	h->ep_attr = NULL;
}

static void drop_provider(struct kfi_info *h)
{
	kfree(h->fabric_attr->prov_name);
	h->fabric_attr->prov_name = NULL;
}

HINT(unknown_provider, rename(&h->fabric_attr->prov_name))
HINT(unknown_fabric, rename(&h->fabric_attr->name))
HINT(unknown_domain, rename(&h->domain_attr->name))
HINT(caps_none, h->caps = 0)
HINT(caps_rma, h->caps = KFI_RMA)
HINT(caps_msg, h->caps |= KFI_MSG)
HINT(caps_tagged, h->caps |= KFI_TAGGED)
HINT(caps_atomic, h->caps |= KFI_ATOMIC)
HINT(caps_unknown, h->caps |= BIT_ULL(40))
HINT(ep_msg, h->ep_attr->type = KFI_EP_MSG)
HINT(ep_rdm, h->ep_attr->type = KFI_EP_RDM)
HINT(ep_dgram, h->ep_attr->type = KFI_EP_DGRAM)
HINT(mode_none, h->domain_attr->mr_mode = 0)
HINT(mode_virt_addr, h->domain_attr->mr_mode = KFI_MR_VIRT_ADDR)
HINT(mode_prov_key, h->domain_attr->mr_mode = KFI_MR_PROV_KEY)
HINT(mode_others, h->domain_attr->mr_mode = KFI_MR_RAW | KFI_MR_LOCAL | KFI_MR_ENDPOINT)
HINT(mode_more, h->domain_attr->mr_mode = NEEDED | KFI_MR_LOCAL | KFI_MR_RMA_EVENT)
HINT(mode_any, drop_domain_attr(h))
HINT(no_attrs, drop_others(h))
HINT(any_provider, drop_provider(h))
HINT(key_size_4, h->domain_attr->mr_key_size = 4)
HINT(key_size_64, h->domain_attr->mr_key_size = 64)
HINT(iov_limit_1, h->domain_attr->mr_iov_limit = 1)
HINT(iov_limit_max, h->domain_attr->mr_iov_limit = SIZE_MAX)
HINT(cnt_1, h->domain_attr->mr_cnt = 1)
HINT(cnt_max, h->domain_attr->mr_cnt = SIZE_MAX)
HINT(queues_2, h->domain_attr->cq_cnt = 2)
HINT(queues_max, h->domain_attr->cq_cnt = SIZE_MAX)
HINT(older_provider, h->fabric_attr->prov_version = KFI_VERSION(0, 9))
HINT(this_provider, h->fabric_attr->prov_version = KFI_VERSION(1, 0))
HINT(newer_provider, h->fabric_attr->prov_version = KFI_VERSION(1, 1))
HINT(newest_provider, h->fabric_attr->prov_version = U32_MAX)

#define ROW(_name, _want)	\
	{ #_name, hint_case, 0, &(const struct hint) { .want = _want, .change = _name } }

static void null_info_case(struct kfi_test *t)
{
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, NULL, NULL), -KFI_EINVAL);
}

static void null_hints_case(struct kfi_test *t)
{
	struct kfi_info *info, *i;
	bool verbs = false;

	if (!EXPECT_EQ(t, ask(NULL, &info), 0))
		return;
	for (i = info; i; i = i->next)
		if (!strcmp(i->fabric_attr->prov_name, "verbs"))
			verbs = true;
	EXPECT(t, verbs, "the verbs provider is not on the list");
	kfi_freeinfo(info);
}

static void version_case(struct kfi_test *t)
{
	static const struct {
		u32 version;
		int want;
		u32 told;
	} rows[] = {
		{ 0, 0, KFI_VERSION(1, 7) },
		{ KFI_VERSION(1, 0), 0, KFI_VERSION(1, 0) },
		{ KFI_VERSION(1, 1), 0, KFI_VERSION(1, 1) },
		{ KFI_VERSION(1, 7), 0, KFI_VERSION(1, 7) },
		{ KFI_VERSION(1, 8), -KFI_ENOSYS },
		{ KFI_VERSION(2, 0), -KFI_ENOSYS },
		{ U32_MAX, -KFI_ENOSYS },
	};
	struct kfi_info *info, *one;
	int i;

	EXPECT_EQ(t, kfi_version(), KFI_VERSION(1, 7));
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		info = (void *)0x5a5a;
		EXPECT_EQ(t, kfi_getinfo(rows[i].version, NULL, NULL, 0, NULL, &info),
			  rows[i].want);
		if (rows[i].want) {
			EXPECT(t, !info, "*info is not NULL");
		} else if (info != (void *)0x5a5a) {
			for (one = info; one; one = one->next)
				EXPECT_EQ(t, one->fabric_attr->api_version, rows[i].told);
			kfi_freeinfo(info);
		}
	}
}

static const struct kfi_case cases[] = {
	{ "null_info", null_info_case },
	{ "null_hints", null_hints_case },
	{ "version", version_case },
	ROW(as_it_is, 0),
	ROW(unknown_provider, -KFI_ENODATA),
	ROW(unknown_fabric, -KFI_ENODATA),
	ROW(unknown_domain, -KFI_ENODATA),
	ROW(caps_none, 0),
	ROW(caps_rma, 0),
	ROW(caps_msg, 0),
	ROW(caps_tagged, -KFI_ENODATA),
	ROW(caps_atomic, 0),
	ROW(caps_unknown, -KFI_ENODATA),
	ROW(ep_msg, 0),
	ROW(ep_rdm, -KFI_ENODATA),
	ROW(ep_dgram, -KFI_ENODATA),
	ROW(mode_none, -KFI_ENODATA),
	ROW(mode_virt_addr, -KFI_ENODATA),
	ROW(mode_prov_key, -KFI_ENODATA),
	ROW(mode_others, -KFI_ENODATA),
	ROW(mode_more, 0),
	ROW(mode_any, 0),
	ROW(no_attrs, 0),
	ROW(any_provider, 0),
	ROW(key_size_4, 0),
	ROW(key_size_64, -KFI_ENODATA),
	ROW(iov_limit_1, 0),
	ROW(iov_limit_max, -KFI_ENODATA),
	ROW(cnt_1, 0),
	ROW(cnt_max, -KFI_ENODATA),
	ROW(queues_2, 0),
	ROW(queues_max, -KFI_ENODATA),
	ROW(older_provider, 0),
	ROW(this_provider, 0),
	ROW(newer_provider, -KFI_ENODATA),
	ROW(newest_provider, -KFI_ENODATA),
};

const struct kfi_suite suite_negotiate = {
	.name = "negotiate",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
};
