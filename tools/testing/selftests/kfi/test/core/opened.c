// SPDX-License-Identifier: GPL-2.0
/* Hints that name an open fabric or domain: what is offered is of that, and of no other. */
#include "env.h"
#include "shared.h"

/* Takes @hints over. Returns how many offers there are, or the error. */
static int ask(struct kfi_test *t, struct kfi_info *hints, struct kfi_info **list)
{
	struct kfi_info *i;
	int ret, n = 0;

	*list = NULL;
	if (!EXPECT(t, hints, "no memory"))
		return -KFI_ENOMEM;
	ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, list);
	kfi_freeinfo(hints);
	for (i = *list; i; i = i->next)
		n++;
	return ret ?: n;
}

/* Hints that any offer meets. */
static struct kfi_info *any(void)
{
	struct kfi_info *hints = kfi_allocinfo();

	if (hints)
		hints->domain_attr->mr_mode = -1;
	return hints;
}

/* The domain of the suite is named where it will do. */
static void expect_domain(struct kfi_test *t, const struct kfi_info *offer)
{
	const struct kfi_domain_attr *d = offer->domain_attr, *own = t->env->info->domain_attr;
	bool open = d->name && !strcmp(d->name, own->name) && !(d->mr_mode & ~own->mr_mode) &&
		    !(offer->caps & KFI_ATOMIC);

	EXPECT(t, d->domain == (open ? t->env->domain : NULL), "another domain than %s of mode %#x",
	       d->name, d->mr_mode);
}

void opened_fabric_case(struct kfi_test *t)
{
	struct kfi_info *hints, *list, *i;

	if (!shared_register(t))
		return;
	hints = any();
	if (hints)
		hints->fabric_attr->fabric = t->env->fabric;
	EXPECT(t, ask(t, hints, &list) > 0, "no offer");
	for (i = list; i; i = i->next) {
		EXPECT(t, !strcmp(i->fabric_attr->prov_name, "verbs"), "an offer of %s",
		       i->fabric_attr->prov_name);
		EXPECT(t, i->fabric_attr->fabric == t->env->fabric, "without the fabric");
		expect_domain(t, i);
		if (i->fabric_attr->name)
			EXPECT(t, !strcmp(i->fabric_attr->name, t->env->info->fabric_attr->name),
			       "an offer of %s", i->fabric_attr->name);
	}
	kfi_freeinfo(list);

	shared_deregister(t);
}

/*
 * Offers name the first fabric that is open, and the first domain in it that will do. The domain of
 * the suite has no KFI_ATOMIC. The domains that are opened here have it.
 */
void opened_instance_case(struct kfi_test *t)
{
	struct kfi_info *info = t->env->info, *atomic = kfi_dupinfo(info), *list, *i;
	struct kfid_fabric *fabric = NULL;
	struct kfid_domain *domain[2] = {};
	int round, n;

	if (!EXPECT(t, atomic, "no memory"))
		return;
	atomic->caps |= KFI_ATOMIC;
	for (round = 0; round < 5; round++) {
		if (round == 1)
			EXPECT_EQ(t, kfi_fabric(info->fabric_attr, &fabric, NULL), 0);
		if (round == 2)
			EXPECT_EQ(t, kfi_domain(t->env->fabric, atomic, &domain[0], NULL), 0);
		if (round == 3)
			EXPECT_EQ(t, kfi_domain(t->env->fabric, atomic, &domain[1], NULL), 0);
		if (round == 4 && domain[0]) {
			EXPECT_EQ(t, kfi_close(&domain[0]->fid), 0);
			domain[0] = NULL;
		}
		EXPECT(t, ask(t, any(), &list) > 0, "no offer");
		for (i = list, n = 0; i; i = i->next) {
			if (strcmp(i->fabric_attr->prov_name, "verbs") ||
			    strcmp(i->fabric_attr->name, info->fabric_attr->name)) {
				EXPECT(t, !i->fabric_attr->fabric && !i->domain_attr->domain,
				       "something open of %s", i->fabric_attr->name);
				continue;
			}
			EXPECT(t, i->fabric_attr->fabric == t->env->fabric, "another fabric");
			if (!(i->caps & KFI_ATOMIC))
				expect_domain(t, i);
			else if (i->domain_attr->mr_mode == info->domain_attr->mr_mode)
				EXPECT(t, i->domain_attr->domain == (domain[0] ?: domain[1]),
				       "another domain with KFI_ATOMIC, in round %d", round);
			n++;
		}
		EXPECT(t, n, "no offer of the open fabric");
		kfi_freeinfo(list);
	}
	if (domain[1])
		EXPECT_EQ(t, kfi_close(&domain[1]->fid), 0);
	if (fabric)
		EXPECT_EQ(t, kfi_close(&fabric->fid), 0);
	kfi_freeinfo(atomic);
}

/* A provider that is older than what is asked for opens no fabric. */
void opened_version_case(struct kfi_test *t)
{
	struct kfi_fabric_attr attr = *t->env->info->fabric_attr;
	struct kfid_fabric *fabric;

	attr.prov_version = KFI_VERSION(1, 1);
	EXPECT_EQ(t, kfi_fabric(&attr, &fabric, NULL), -KFI_ENODATA);
	EXPECT(t, !fabric, "there is a fabric");
	attr.prov_version = 0;
	if (EXPECT_EQ(t, kfi_fabric(&attr, &fabric, NULL), 0))
		EXPECT_EQ(t, kfi_close(&fabric->fid), 0);
}

/*
 * The domain was opened for plain keys, so that what is offered to those who take raw keys is
 * nothing of this domain.
 */
void opened_domain_case(struct kfi_test *t)
{
	struct kfi_info *hints, *list, *i;

	hints = any();
	if (hints)
		hints->domain_attr->domain = t->env->domain;
	EXPECT(t, ask(t, hints, &list) > 0, "no offer");
	for (i = list; i; i = i->next) {
		EXPECT(t, i->domain_attr->domain == t->env->domain, "without the domain");
		EXPECT(t, i->domain_attr->name &&
		       !strcmp(i->domain_attr->name, t->env->info->domain_attr->name),
		       "an offer of %s", i->domain_attr->name);
		EXPECT_EQ(t, i->domain_attr->mr_mode, t->env->info->domain_attr->mr_mode);
	}
	kfi_freeinfo(list);
}

/* Hints with nothing but the pointers to an open fabric and an open domain. */
static void expect_offers(struct kfi_test *t, void *fabric, void *domain, int want)
{
	struct kfi_info *hints = any(), *list;

	if (hints) {
		hints->fabric_attr->fabric = fabric;
		hints->domain_attr->domain = domain;
	}
	EXPECT_EQ(t, ask(t, hints, &list), want);
	kfi_freeinfo(list);
}

/* Pointers to what is no open object, or not any more, find nothing, and are not followed. */
void opened_stale_case(struct kfi_test *t)
{
	struct kfi_info *info = t->env->info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	unsigned int i;
	void *none[] = {
		(void *)0x1234, (void *)1, (void *)-1, ERR_PTR(-EIO), (void *)(1UL << 63),
		info, t->env->dev, &none,
	};

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		expect_offers(t, none[i], NULL, -KFI_ENODATA);
		expect_offers(t, NULL, none[i], -KFI_ENODATA);
		expect_offers(t, t->env->fabric, none[i], -KFI_ENODATA);
	}
	expect_offers(t, t->env->domain, NULL, -KFI_ENODATA);
	expect_offers(t, NULL, t->env->fabric, -KFI_ENODATA);
	/* Pointers to closed objects, whose memory may have another owner. */
	if (!EXPECT_EQ(t, kfi_fabric(info->fabric_attr, &fabric, NULL), 0))
		return;
	if (EXPECT_EQ(t, kfi_domain(fabric, info, &domain, NULL), 0)) {
		EXPECT_EQ(t, kfi_close(&domain->fid), 0);
		expect_offers(t, fabric, domain, -KFI_ENODATA);
		expect_offers(t, NULL, domain, -KFI_ENODATA);
	}
	EXPECT_EQ(t, kfi_close(&fabric->fid), 0);
	expect_offers(t, fabric, NULL, -KFI_ENODATA);
}

/* An object of one can't be used with another. */
void opened_other_case(struct kfi_test *t)
{
	struct kfi_fabric_attr attr = { .name = "shared", .prov_name = SHARED_NAME };
	struct kfid_fabric *other;
	struct kfi_info *hints, *list;

	if (!shared_register(t))
		return;
	hints = any();
	if (hints) {
		hints->fabric_attr->fabric = t->env->fabric;
		hints->fabric_attr->prov_name = kstrdup(SHARED_NAME, GFP_KERNEL);
	}
	EXPECT_EQ(t, ask(t, hints, &list), -KFI_ENODATA);
	hints = any();
	if (hints) {
		hints->domain_attr->domain = t->env->domain;
		hints->domain_attr->name = kstrdup("nowhere", GFP_KERNEL);
	}
	EXPECT_EQ(t, ask(t, hints, &list), -KFI_ENODATA);
	hints = any();
	if (hints)	/* no fabric at all */
		hints->fabric_attr->fabric = (void *)t->env->domain;
	EXPECT_EQ(t, ask(t, hints, &list), -KFI_ENODATA);
	if (EXPECT_EQ(t, kfi_fabric(&attr, &other, NULL), 0)) {
		hints = any();
		if (hints) {
			hints->fabric_attr->fabric = other;
			hints->domain_attr->domain = t->env->domain;
			hints->fabric_attr->prov_name = kstrdup("verbs", GFP_KERNEL);
		}
		EXPECT_EQ(t, ask(t, hints, &list), -KFI_ENODATA);
		/* Of a provider in C, whose own the fabric is. */
		hints = any();
		if (hints)
			hints->fabric_attr->fabric = other;
		EXPECT_EQ(t, ask(t, hints, &list), 1);
		kfi_freeinfo(list);
		EXPECT_EQ(t, kfi_close(&other->fid), 0);
	}
	shared_deregister(t);
}
