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
		EXPECT(t, !i->domain_attr->domain, "with a domain");
		if (i->fabric_attr->name)
			EXPECT(t, !strcmp(i->fabric_attr->name, t->env->info->fabric_attr->name),
			       "an offer of %s", i->fabric_attr->name);
	}
	kfi_freeinfo(list);

	hints = any();
	EXPECT(t, ask(t, hints, &list) > 0, "no offer");
	for (i = list; i; i = i->next)
		EXPECT(t, !i->fabric_attr->fabric, "a fabric that nobody has named");
	kfi_freeinfo(list);
	shared_deregister(t);
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

/* What is of one can't be of another. */
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
