// SPDX-License-Identifier: GPL-2.0
/* Opening and closing what the cases of a suite share. */
#include <linux/moduleparam.h>

#include "env.h"
#include "request.h"

char *kfi_domain_name;
module_param_named(domain, kfi_domain_name, charp, 0444);
MODULE_PARM_DESC(domain, "name of the domain to test (default: the first one)");

bool kfi_srq = true;
module_param_named(srq, kfi_srq, bool, 0444);
MODULE_PARM_DESC(srq, "the device under test has shared receive queues");

bool kfi_transfers;
module_param_named(transfers, kfi_transfers, bool, 0444);
MODULE_PARM_DESC(transfers, "test the memory of transfers instead of registrations, where a suite can");

/* More than these are not tested even where the device can do more. */
#define MAX_PAGES	1000
#define MAX_SEGS	1000
/* Each provider takes as many parts of memory for a transfer. */
#define MAX_PARTS	8

/* Hints that each provider can meet. */
struct kfi_info *env_hints(void)
{
	struct kfi_info *hints = kfi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = KFI_RMA | KFI_REMOTE;
	hints->domain_attr->mr_mode = KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = kstrdup(kfi_provider_name, GFP_KERNEL);
	if (kfi_domain_name)
		hints->domain_attr->name = kstrdup(kfi_domain_name, GFP_KERNEL);
	if (!hints->fabric_attr->prov_name || (kfi_domain_name && !hints->domain_attr->name)) {
		kfi_freeinfo(hints);
		return NULL;
	}
	return hints;
}

int env_getinfo(struct kfi_info **info)
{
	struct kfi_info *hints = env_hints();
	int ret;

	if (!hints)
		return -ENOMEM;
	ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, info);
	/* The first offer of loop asks for less. */
	if (!ret)
		(*info)->domain_attr->mr_mode = hints->domain_attr->mr_mode;
	kfi_freeinfo(hints);
	return ret;
}

static int open_extensions(struct kfi_env *env)
{
	void *ops;
	int ret;

	ret = kfi_open_ops(&env->domain->fid, KFI_DMA_OPS_1, 0, &ops, NULL);
	if (ret)
		return ret;
	env->dma = ops;
	if (!strcmp(kfi_provider_name, "loop")) {
		ret = kfi_open_ops(&env->domain->fid, KFI_LOOP_OPS_1, 0, &ops, NULL);
		env->loop = ops;
		return ret;
	}
	ret = kfi_open_ops(&env->domain->fid, KFI_VERBS_DOM_OPS_1, 0, &ops, NULL);
	if (ret)
		return ret;
	env->verbs = ops;
	env->dev = env->verbs->get_ib_device(&env->domain->fid);
	if (!env->dev)
		return -ENODEV;
	feature_column("verbs", false, env->dev);
	return 0;
}

static void take_limits(struct kfi_env *env)
{
	size_t limit = env->dev ? env->dev->attrs.max_fast_reg_page_list_len : SIZE_MAX;

	env->max_pages = min(limit, kfi_transfers ? MAX_PARTS : MAX_PAGES);
	env->at_limit = env->max_pages == limit;
	env->max_segs = min(env->info->domain_attr->mr_iov_limit, kfi_transfers ? MAX_PARTS : MAX_SEGS);
	env->segs_at_limit = env->max_segs == env->info->domain_attr->mr_iov_limit;
}

int lists_alloc(struct kfi_env *env)
{
	/* One more than can be registered, and one more than that for an odd start. */
	env->room = max(env->max_segs, env->max_pages) + 2;
	env->kv = kvcalloc(env->room, sizeof(*env->kv), GFP_KERNEL);
	env->bv = kvcalloc(env->room, sizeof(*env->bv), GFP_KERNEL);
	env->sg = kvcalloc(env->room, sizeof(*env->sg), GFP_KERNEL);
	env->sg_copy = kvcalloc(env->room, sizeof(*env->sg_copy), GFP_KERNEL);
	return env->kv && env->bv && env->sg && env->sg_copy ? 0 : -ENOMEM;
}

void lists_free(struct kfi_env *env)
{
	kvfree(env->kv);
	kvfree(env->bv);
	kvfree(env->sg);
	kvfree(env->sg_copy);
}

/* Lists, memory and a peer. */
static int take_own(struct kfi_env *env)
{
	int ret;

	ret = lists_alloc(env);
	if (ret)
		goto err_lists;
	ret = arenas_alloc(env);
	if (ret)
		goto err_arenas;
	if (!env->dev)
		return 0;
	env->peer = kfi_peer_open(env->domain);
	if (!IS_ERR(env->peer))
		return 0;
	ret = PTR_ERR(env->peer);
err_arenas:
	arenas_free(env);
err_lists:
	lists_free(env);
	return ret;
}

static void drop_own(struct kfi_env *env)
{
	kfi_peer_close(env->peer);
	arenas_free(env);
	lists_free(env);
}

static int open_rest(struct kfi_env *env)
{
	int ret;

	ret = open_extensions(env);
	if (ret)
		return ret;
	take_limits(env);
	return take_own(env);
}

/*
 * The model counts the pages of the peer's memory as mapped once a transfer used them. So all of them are used before
 * the first case.
 */
static void use_peer(struct kfi_env *env)
{
	size_t len = min_t(size_t, KFI_PEER_CHUNK, env->max_pages * PAGE_SIZE);
	struct kfid_mr *mr;

	if (!env->peer || reg_simple(env, arena_at(env, MEM_PAGES, 0), len, KFI_REMOTE, &mr))
		return;
	peer_read(env, mr->iova, mr->key, env->scratch, len);
	kfi_close(&mr->fid);
}

struct kfi_env *env_open(void)
{
	struct kfi_env *env = kzalloc_obj(*env);
	int ret;

	if (!env)
		return ERR_PTR(-ENOMEM);
	ret = env_getinfo(&env->info);
	if (ret)
		goto err_env;
	ret = env_open_domain(env->info, &env->fabric, &env->domain);
	if (ret)
		goto err_info;
	ret = open_rest(env);
	if (ret)
		goto err_domain;
	if (kfi_hardware)
		use_peer(env);
	return env;
err_domain:
	kfi_close(&env->domain->fid);
	kfi_close(&env->fabric->fid);
err_info:
	kfi_freeinfo(env->info);
err_env:
	kfree(env);
	return ERR_PTR(ret);
}

/* Returns the first error of a close: something was left open, or the provider miscounts. */
int env_close(struct kfi_env *env)
{
	int ret, ret2;

	drop_own(env);
	ret = kfi_close(&env->domain->fid);
	ret2 = kfi_close(&env->fabric->fid);
	kfi_freeinfo(env->info);
	kfree(env);
	return ret ?: ret2;
}

/*
 * The same domain with lists, memory and a peer of its own, for another thread. Its regions hold
 * @max_pages at most.
 */
struct kfi_env *env_share(struct kfi_env *env, size_t max_pages)
{
	struct kfi_env *other = kmemdup(env, sizeof(*env), GFP_KERNEL);
	int ret;

	if (!other)
		return ERR_PTR(-ENOMEM);
	other->max_pages = min(env->max_pages, max_pages);
	other->at_limit = false;
	ret = take_own(other);
	if (ret) {
		kfree(other);
		return ERR_PTR(ret);
	}
	return other;
}

void env_unshare(struct kfi_env *env)
{
	drop_own(env);
	kfree(env);
}
