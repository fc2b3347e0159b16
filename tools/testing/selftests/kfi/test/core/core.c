// SPDX-License-Identifier: GPL-2.0
/* The core's own calls: infos, opening of fabrics and domains, texts. */
#include <kfi_cm.h>
#include <kfi_endpoint.h>
#include <kfi_eq.h>

#include "env.h"
#include "shared.h"
#include "suites.h"

/* Two infos are equal in what they say, and share nothing. */
static void check_copy(struct kfi_test *t, const struct kfi_info *a, const struct kfi_info *b)
{
	if (!EXPECT(t, b->domain_attr && b->fabric_attr, "attributes are missing"))
		return;
	EXPECT(t, a->caps == b->caps && a->mode == b->mode && a->addr_format == b->addr_format,
	       "caps, mode or format differ");
	EXPECT(t, !b->next, "the copy has a next");
	EXPECT(t, a->domain_attr != b->domain_attr && a->fabric_attr != b->fabric_attr,
	       "attributes are shared");
	EXPECT(t, a->domain_attr->name != b->domain_attr->name, "the domain's name is shared");
	EXPECT(t, !strcmp(a->domain_attr->name, b->domain_attr->name), "the domain's name differs");
	EXPECT(t, a->fabric_attr->name != b->fabric_attr->name, "the fabric's name is shared");
	EXPECT(t, !strcmp(a->fabric_attr->name, b->fabric_attr->name), "the fabric's name differs");
	EXPECT(t, a->fabric_attr->prov_name != b->fabric_attr->prov_name,
	       "the provider's name is shared");
	EXPECT(t, !strcmp(a->fabric_attr->prov_name, b->fabric_attr->prov_name),
	       "the provider's name differs");
	EXPECT_EQ(t, b->domain_attr->mr_mode, a->domain_attr->mr_mode);
	EXPECT_EQ(t, b->domain_attr->mr_key_size, a->domain_attr->mr_key_size);
	EXPECT_EQ(t, b->domain_attr->mr_iov_limit, a->domain_attr->mr_iov_limit);
	EXPECT_EQ(t, b->domain_attr->mr_cnt, a->domain_attr->mr_cnt);
}

static void dupinfo_case(struct kfi_test *t)
{
	struct kfi_info *copy, *keys;

	copy = kfi_dupinfo(t->env->info);
	if (!EXPECT(t, copy, "no copy"))
		return;
	check_copy(t, t->env->info, copy);

	/* Addresses and keys are copied, too. */
	copy->src_addr = kmemdup("source", 7, GFP_KERNEL);
	copy->src_addrlen = 7;
	copy->domain_attr->auth_key = kmemdup("key", 4, GFP_KERNEL);
	copy->domain_attr->auth_key_size = 4;
	keys = kfi_dupinfo(copy);
	if (EXPECT(t, keys, "no copy")) {
		EXPECT(t, keys->src_addr && keys->src_addr != copy->src_addr &&
		       keys->src_addrlen == 7 && !memcmp(keys->src_addr, "source", 7),
		       "the address is not copied");
		EXPECT(t, keys->domain_attr->auth_key &&
		       keys->domain_attr->auth_key != copy->domain_attr->auth_key &&
		       !memcmp(keys->domain_attr->auth_key, "key", 4), "the key is not copied");
		kfi_freeinfo(keys);
	}
	kfi_freeinfo(copy);
}

static void allocinfo_case(struct kfi_test *t)
{
	struct kfi_info *info[2] = { kfi_allocinfo(), kfi_dupinfo(NULL) };
	int i;

	for (i = 0; i < ARRAY_SIZE(info); i++) {
		if (!EXPECT(t, info[i], "no info"))
			continue;
		EXPECT(t, info[i]->tx_attr && info[i]->rx_attr && info[i]->ep_attr &&
		       info[i]->domain_attr && info[i]->fabric_attr, "attributes are missing");
		EXPECT(t, !info[i]->caps && !info[i]->next && !info[i]->domain_attr->mr_mode &&
		       !info[i]->fabric_attr->prov_name, "not zeroed");
		kfi_freeinfo(info[i]);
	}
	kfi_freeinfo(NULL);
}

static void expect_no_fabric(struct kfi_test *t, struct kfi_fabric_attr *attr, int want)
{
	struct kfid_fabric *fabric = (void *)0x5a5a;

	if (EXPECT_EQ(t, kfi_fabric(attr, &fabric, NULL), want))
		EXPECT(t, !fabric, "*fabric is not NULL");
}

static void fabric_case(struct kfi_test *t)
{
	struct kfi_fabric_attr attr, good = *t->env->info->fabric_attr;
	struct kfid_fabric *fabric;
	int context;

	EXPECT_EQ(t, kfi_fabric(&good, NULL, NULL), -KFI_EINVAL);
	expect_no_fabric(t, NULL, -KFI_EINVAL);
	attr = good;
	attr.name = NULL;
	expect_no_fabric(t, &attr, -KFI_EINVAL);
	attr = good;
	attr.prov_name = NULL;
	expect_no_fabric(t, &attr, -KFI_EINVAL);
	attr = good;
	attr.prov_name = "nobody";
	expect_no_fabric(t, &attr, -KFI_ENODEV);
	attr = good;
	attr.name = "nowhere";
	expect_no_fabric(t, &attr, -KFI_ENODEV);
	attr = good;
	attr.api_version = KFI_VERSION(1, 8);
	expect_no_fabric(t, &attr, -KFI_ENOSYS);

	good.api_version = KFI_VERSION(1, 3);
	if (EXPECT_EQ(t, kfi_fabric(&good, &fabric, &context), 0)) {
		EXPECT_EQ(t, fabric->api_version, KFI_VERSION(1, 3));
		EXPECT_EQ(t, fabric->fid.fclass, KFI_CLASS_FABRIC);
		EXPECT(t, fabric->fid.context == &context, "another context");
		EXPECT_EQ(t, kfi_close(&fabric->fid), 0);
	}
}

static void expect_no_domain(struct kfi_test *t, struct kfid_fabric *fabric, struct kfi_info *info,
			     int want)
{
	struct kfid_domain *domain = (void *)0x5a5a;

	if (EXPECT_EQ(t, kfi_domain(fabric, info, &domain, NULL), want))
		EXPECT(t, !domain, "*domain is not NULL");
	else if (!IS_ERR_OR_NULL(domain) && domain != (void *)0x5a5a)
		kfi_close(&domain->fid);
}

static void domain_case(struct kfi_test *t)
{
	struct kfi_info *info = kfi_dupinfo(t->env->info);
	struct kfid_fabric *fabric = t->env->fabric;
	struct kfi_domain_attr *attr;
	struct kfid_domain *domain;
	int context;

	if (!EXPECT(t, info, "no memory"))
		return;
	attr = info->domain_attr;
	EXPECT_EQ(t, kfi_domain(fabric, info, NULL, NULL), -KFI_EINVAL);
	expect_no_domain(t, NULL, info, -KFI_EINVAL);
	expect_no_domain(t, fabric, NULL, -KFI_EINVAL);
	info->domain_attr = NULL;
	expect_no_domain(t, fabric, info, -KFI_EINVAL);
	info->domain_attr = attr;

	swap(attr->name, t->env->info->fabric_attr->prov_name);
	expect_no_domain(t, fabric, info, -KFI_ENODEV);
	swap(attr->name, t->env->info->fabric_attr->prov_name);
	attr->mr_cnt = SIZE_MAX;
	expect_no_domain(t, fabric, info, -KFI_ENODATA);
	attr->mr_cnt = t->env->info->domain_attr->mr_cnt;

	if (EXPECT_EQ(t, kfi_domain(fabric, info, &domain, &context), 0)) {
		EXPECT_EQ(t, domain->fid.fclass, KFI_CLASS_DOMAIN);
		EXPECT(t, domain->fid.context == &context, "another context");
		EXPECT_EQ(t, kfi_close(&domain->fid), 0);
	}
	kfi_freeinfo(info);
}

static void strerror_case(struct kfi_test *t)
{
	const char *unknown = kfi_strerror(99999);
	int i;

	EXPECT(t, unknown && *unknown, "no text for an unknown number");
	for (i = 0; i < KFI_ERRNO_MAX + 5; i++) {
		const char *text = kfi_strerror(i);

		if (!EXPECT(t, text && *text, "no text for %d", i))
			continue;
		EXPECT(t, !strcmp(text, kfi_strerror(-i)), "%d and %d differ", i, -i);
		if (i >= KFI_ERRNO_OFFSET && i < KFI_ERRNO_MAX)
			EXPECT(t, strcmp(text, unknown), "%d is unknown", i);
	}
	EXPECT(t, strcmp(kfi_strerror(KFI_EINVAL), unknown), "EINVAL is unknown");
	EXPECT(t, strcmp(kfi_strerror(KFI_EFAULT), unknown), "EFAULT is unknown");
	EXPECT(t, kfi_strerror(INT_MIN) && kfi_strerror(INT_MAX), "no text");
}

static void expect_text(struct kfi_test *t, const void *data, enum kfi_type type, const char *part)
{
	char *text = kfi_tostr(data, type);

	if (EXPECT(t, text, "no text for type %d", type))
		EXPECT(t, strstr(text, part), "type %d: '%.60s' has no '%s'", type, text, part);
	kfree(text);
}

static void tostr_case(struct kfi_test *t)
{
	u64 caps = KFI_RMA | KFI_REMOTE_READ;
	int mode = KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY;
	enum kfi_ep_type ep_type = KFI_EP_RDM;
	u32 event = KFI_MR_COMPLETE;
	struct kfi_info empty = {};

	expect_text(t, &caps, KFI_TYPE_CAPS, "KFI_RMA");
	expect_text(t, &caps, KFI_TYPE_CAPS, "KFI_REMOTE_READ");
	expect_text(t, &mode, KFI_TYPE_MR_MODE, "KFI_MR_VIRT_ADDR");
	expect_text(t, &mode, KFI_TYPE_MR_MODE, "KFI_MR_PROV_KEY");
	expect_text(t, &ep_type, KFI_TYPE_EP_TYPE, "KFI_EP_RDM");
	expect_text(t, &event, KFI_TYPE_EQ_EVENT, "KFI_MR_COMPLETE");
	expect_text(t, NULL, KFI_TYPE_VERSION, "1.7");
	expect_text(t, t->env->info, KFI_TYPE_INFO, t->env->info->domain_attr->name);
	expect_text(t, t->env->info, KFI_TYPE_INFO, "KFI_MR_PROV_KEY");
	expect_text(t, t->env->info->domain_attr, KFI_TYPE_DOMAIN_ATTR, "KFI_MR_PROV_KEY");
	expect_text(t, t->env->info->fabric_attr, KFI_TYPE_FABRIC_ATTR, "verbs");
	expect_text(t, &empty, KFI_TYPE_INFO, "");
	EXPECT(t, !kfi_tostr(&caps, 9999), "text for an unknown type");
	EXPECT(t, !kfi_tostr(&caps, -1), "text for an unknown type");
}

static void params_case(struct kfi_test *t)
{
	struct kfi_param *params = (void *)0x5a5a;
	int count = 5;

	EXPECT_EQ(t, kfi_getparams(&params, &count), -KFI_ENOSYS);
	EXPECT(t, !params && !count, "there are parameters");
	kfi_freeparams(params);
}

/* So are those of an info. */
static void error_attributes(struct kfi_test *t)
{
	struct kfi_info *info = kfi_dupinfo(t->env->info), *found;
	struct kfid_domain *domain;
	struct kfid_pep *pep;
	struct kfid_ep *ep;
	unsigned int i;

	if (!EXPECT(t, info, "no memory"))
		return;
	void **attr[] = {
		(void **)&info->tx_attr, (void **)&info->rx_attr, (void **)&info->ep_attr,
		(void **)&info->domain_attr, (void **)&info->fabric_attr,
	};

	for (i = 0; i < ARRAY_SIZE(attr); i++) {
		void *was = *attr[i];

		*attr[i] = ERR_PTR(-ENOMEM);
		EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, info, &found), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_domain(t->env->fabric, info, &domain, NULL), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_endpoint(t->env->domain, info, &ep, NULL), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_passive_ep(t->env->fabric, info, &pep, NULL), -KFI_EINVAL);
		*attr[i] = was;
	}
	kfi_freeinfo(info);
}

/* Error pointers in the place of infos, attributes and other objects are refused, and not followed. */
static void error_pointers_case(struct kfi_test *t)
{
	struct kfid_domain *domain = t->env->domain;
	struct kfid_fabric *fabric = t->env->fabric;
	struct kfi_eq_attr attr = { .wait_obj = KFI_WAIT_NONE };
	struct kfi_info *info = (void *)0x5a5a;
	void *error = ERR_PTR(-ENOMEM);
	struct kfid_cntr *cntr;
	struct kfid_pep *pep;
	struct kfid_eq *eq;
	struct kfid_cq *cq;
	struct kfid_ep *ep;

	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, error, &info), -KFI_EINVAL);
	EXPECT(t, !info, "*info is not NULL");
	EXPECT(t, !kfi_dupinfo(error), "a copy of an error pointer");
	kfi_freeinfo(error);
	error_attributes(t);
	EXPECT(t, !kfi_tostr(error, KFI_TYPE_INFO), "a text of an error pointer");
	expect_no_fabric(t, error, -KFI_EINVAL);
	expect_no_domain(t, fabric, error, -KFI_EINVAL);
	EXPECT_EQ(t, kfi_endpoint(domain, error, &ep, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_passive_ep(fabric, error, &pep, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_eq_open(fabric, error, &eq, NULL, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_cq_open(domain, error, &cq, NULL, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_cntr_open(domain, error, &cntr, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_domain_bind(domain, error, KFI_REG_MR), -KFI_EINVAL);
	if (EXPECT_EQ(t, kfi_eq_open(fabric, &attr, &eq, NULL, NULL), 0))
		EXPECT_EQ(t, kfi_close(&eq->fid), 0);
}

static const struct kfi_case cases[] = {
	{ "error_pointers", error_pointers_case },
	{ "dupinfo", dupinfo_case },
	{ "allocinfo", allocinfo_case },
	{ "fabric", fabric_case },
	{ "domain", domain_case },
	{ "strerror", strerror_case },
	{ "tostr", tostr_case },
	{ "params", params_case },
	{ "netlink", netlink_case },
	{ "opened_fabric", opened_fabric_case },
	{ "opened_domain", opened_domain_case },
	{ "opened_other", opened_other_case },
	{ "opened_instance", opened_instance_case },
	{ "opened_version", opened_version_case },
	{ "opened_stale", opened_stale_case },
	{ "fabric_twice", shared_twice_case },
	{ "fabric_race", shared_race_case },
	{ "fabric_foreign", shared_foreign_case },
};

const struct kfi_suite suite_core = {
	.name = "core",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
