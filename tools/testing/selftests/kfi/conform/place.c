// SPDX-License-Identifier: GPL-2.0
/* Opening and closing what cases work in: see conform.h. */
#include "conform.h"

/* The tests use regions of this many pages, and lists of this many segments and some. */
#define PAGES	24
#define SEGMENTS	64

/* The hints of the consumer. Freed with kfi_freeinfo(). */
struct kfi_info *hints_for(int mode)
{
	struct kfi_info *hints = kfi_allocinfo();

	if (!hints)
		return NULL;
	hints->domain_attr->mr_mode = mode;
	hints->fabric_attr->prov_name = kstrdup(under_test->name, GFP_KERNEL);
	if (!hints->fabric_attr->prov_name) {
		kfi_freeinfo(hints);
		return NULL;
	}
	return hints;
}

int ask(struct kfi_info *hints, struct kfi_info **info)
{
	return kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, info);
}

/* All that the provider has, in any mode. */
static int all_offers(struct kfi_info **info)
{
	struct kfi_info *hints = hints_for(~0);
	int ret;

	if (!hints)
		return -ENOMEM;
	ret = ask(hints, info);
	kfi_freeinfo(hints);
	return ret;
}

/*
 * A copy of the offer with exactly this mr_mode, of the suite's fabric; NULL if there is none. No
 * place, no verdict: a case decides what that means.
 */
struct kfi_info *offer_of(struct kfi_test *t, int mode)
{
	struct kfi_info *i, *copy;

	for (i = t->env->info; i; i = i->next) {
		if (i->domain_attr->mr_mode != mode ||
		    strcmp(i->fabric_attr->name, t->env->info->fabric_attr->name))
			continue;
		copy = kfi_dupinfo(i);
		EXPECT(t, copy, "no memory");
		return copy;
	}
	return NULL;
}

bool has_offer(struct kfi_test *t, int mode)
{
	struct kfi_info *info = offer_of(t, mode);

	kfi_freeinfo(info);
	return info;
}

/* The mr_mode of the first offer that has this bit; one that nobody has if there is none. */
int mode_with(struct kfi_test *t, int bit)
{
	struct kfi_info *i;

	for (i = t->env->info; i; i = i->next)
		if (i->domain_attr->mr_mode & bit)
			return i->domain_attr->mr_mode;
	return -1;
}

static int attach(struct place *p)
{
	void *ops;
	int ret;

	ret = kfi_open_ops(&p->env.domain->fid, KFI_DMA_OPS_1, 0, &ops, NULL);
	if (ret)
		return ret;
	p->env.dma = ops;
	p->target = &p->env.domain->fid;
	return under_test->attach(p);
}

/* Ends with place_close(); NULL if it can't be opened. */
struct place *place_open_info(struct kfi_test *t, const struct kfi_info *info)
{
	struct place *p = kzalloc_obj(*p);

	if (!EXPECT(t, p, "no memory"))
		return NULL;
	p->env = *t->env;
	p->info = kfi_dupinfo(info);
	if (!EXPECT(t, p->info, "no memory"))
		goto err_place;
	p->mode = info->domain_attr->mr_mode;
	if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, p->info, &p->env.domain, NULL), 0))
		goto err_info;
	if (EXPECT_EQ(t, attach(p), 0))
		return p;
	kfi_close(&p->env.domain->fid);
err_info:
	kfi_freeinfo(p->info);
err_place:
	kfree(p);
	return NULL;
}

struct place *place_open(struct kfi_test *t, int mode)
{
	struct kfi_info *info = offer_of(t, mode);
	struct place *p;

	if (!EXPECT(t, info, "no offer with mr_mode %#x", mode))
		return NULL;
	p = place_open_info(t, info);
	kfi_freeinfo(info);
	return p;
}

/* Also tells whether anything that was opened in the domain is still open. */
void place_close(struct kfi_test *t, struct place *p)
{
	under_test->detach(p);
	EXPECT_EQ(t, kfi_close(&p->env.domain->fid), 0);
	kfi_freeinfo(p->info);
	kfree(p);
}

/* In each mode of the provider in which a region is good at once and is one piece. */
void in_each_mode(struct kfi_test *t, void (*run)(struct kfi_test *t, struct place *p))
{
	static const struct {
		enum feature feature;
		int mode;
	} modes[] = {
		{ F_BASIC, MODE_BASIC },
		{ F_DEFAULT, MODE_DEFAULT },
	};
	unsigned int i, failures, ran = 0;
	struct place *p;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		if (!has_feature(modes[i].feature))
			continue;
		ran++;
		failures = t->failures;
		p = place_open(t, modes[i].mode);
		if (p) {
			run(t, p);
			place_close(t, p);
		}
		if (t->failures > failures)
			ktap_note("%s: above: mr_mode %#x", t->c->name, modes[i].mode);
	}
	EXPECT(t, ran, "no mode to run in");
}

static int alloc_lists(struct kfi_env *env)
{
	env->max_pages = PAGES;
	env->max_segs = SEGMENTS;
	env->room = max(PAGES, SEGMENTS) + 2;
	env->kv = kvcalloc(env->room, sizeof(*env->kv), GFP_KERNEL);
	env->bv = kvcalloc(env->room, sizeof(*env->bv), GFP_KERNEL);
	env->sg = kvcalloc(env->room, sizeof(*env->sg), GFP_KERNEL);
	env->sg_copy = kvcalloc(env->room, sizeof(*env->sg_copy), GFP_KERNEL);
	return env->kv && env->bv && env->sg && env->sg_copy ? arenas_alloc(env) : -ENOMEM;
}

static void free_lists(struct kfi_env *env)
{
	arenas_free(env);
	kvfree(env->kv);
	kvfree(env->bv);
	kvfree(env->sg);
	kvfree(env->sg_copy);
	kfi_freeinfo(env->info);
	kfree(env);
}

/* Selects the column of features.def by the provider and the device of the first offer. */
static int select_column(const struct kfi_env *env)
{
	struct kfid_domain *domain;
	int ret = kfi_domain(env->fabric, env->info, &domain, NULL);

	if (ret)
		return ret;
	feature_column(under_test->name, false, under_test->device(domain));
	return kfi_close(&domain->fid);
}

/* The objects that the cases share: all offers, the fabric of the first one, memory. No domain. */
struct kfi_env *env_open(void)
{
	struct kfi_env *env = kzalloc_obj(*env);
	int ret;

	if (!env)
		return ERR_PTR(-ENOMEM);
	ret = all_offers(&env->info);
	if (!ret)
		ret = alloc_lists(env);
	if (!ret)
		ret = kfi_fabric(env->info->fabric_attr, &env->fabric, NULL);
	if (!ret)
		ret = select_column(env);
	if (!ret)
		return env;
	if (env->fabric)
		kfi_close(&env->fabric->fid);
	free_lists(env);
	return ERR_PTR(ret);
}

int env_close(struct kfi_env *env)
{
	int ret = kfi_close(&env->fabric->fid);

	free_lists(env);
	return ret;
}
