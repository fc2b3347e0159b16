// SPDX-License-Identifier: GPL-2.0
/*
 * The reserve of a domain: registrations that succeed while others fail for lack of memory, or
 * because the device has no region left.
 */
#include <linux/slab.h>

#include <kfi_reserve_ext.h>

#include "kfi_inject.h"
#include "request.h"
#include "suites.h"

#define COUNT	4
#define PAGES	16
#define LEN	(5 * PAGE_SIZE - 300)

/* A domain with a reserve, and a peer of its own. @env takes the place of the suite's. */
struct reserve {
	struct kfi_env env;
	struct kfi_env *shared;
	struct kfi_reserve_ops *ops;
};

static int reserve(struct reserve *r, size_t count, size_t pages)
{
	return r->ops->reserve(&r->env.domain->fid, count, pages);
}

/* Too large for the stack. */
static struct reserve *reserve_open(struct kfi_test *t)
{
	struct reserve *r = kzalloc_obj(*r);
	void *ops;

	if (!EXPECT(t, r, "out of memory"))
		return NULL;
	r->shared = t->env;
	r->env = *t->env;
	if (!EXPECT_EQ(t, kfi_domain(r->env.fabric, r->env.info, &r->env.domain, NULL), 0))
		goto err_free;
	if (!EXPECT_EQ(t, kfi_open_ops(&r->env.domain->fid, KFI_RESERVE_OPS_1, 0, &ops, NULL), 0))
		goto err;
	r->ops = ops;
	r->env.peer = kfi_peer_open(r->env.domain);
	if (!EXPECT(t, !IS_ERR(r->env.peer), "no peer"))
		goto err;
	t->env = &r->env;
	return r;
err:
	kfi_close(&r->env.domain->fid);
err_free:
	kfree(r);
	return NULL;
}

static void reserve_close(struct kfi_test *t, struct reserve *r)
{
	t->env = r->shared;
	kfi_peer_close(r->env.peer);
	EXPECT_EQ(t, kfi_close(&r->env.domain->fid), 0);
	kfree(r);
}

/* Reserves that are refused, and that there is one reserve. */
static void args_case(struct kfi_test *t)
{
	size_t mr_cnt = t->env->info->domain_attr->mr_cnt;
	struct kfid *fabric = &t->env->fabric->fid;
	struct reserve *r;

	r = reserve_open(t);
	if (!r)
		return;
	EXPECT(t, r->ops->size >= sizeof(*r->ops), "size %zu", r->ops->size);
	EXPECT_EQ(t, r->ops->reserve(NULL, COUNT, PAGES), -KFI_EINVAL);
	EXPECT_EQ(t, r->ops->reserve(fabric, COUNT, PAGES), -KFI_EINVAL);
	EXPECT_EQ(t, reserve(r, 0, PAGES), -KFI_EINVAL);
	EXPECT_EQ(t, reserve(r, COUNT, 0), -KFI_EINVAL);
	EXPECT_EQ(t, reserve(r, COUNT, SIZE_MAX), -KFI_E2BIG);
	EXPECT_EQ(t, reserve(r, COUNT, t->env->dev->attrs.max_fast_reg_page_list_len + 1),
		  -KFI_E2BIG);
	EXPECT_EQ(t, reserve(r, mr_cnt + 1, PAGES), -KFI_ENOSPC);
	EXPECT_EQ(t, reserve(r, COUNT, PAGES), 0);
	EXPECT_EQ(t, reserve(r, COUNT, PAGES), -KFI_EBUSY);
	reserve_close(t, r);
}

/* A reserve that fails leaves nothing, and another can be made. */
static void failing_case(struct kfi_test *t)
{
	unsigned int i;
	struct reserve *r;

	r = reserve_open(t);
	if (!r)
		return;
	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		goto out;
	for (i = 0; i < COUNT; i++) {
		kfi_inject_fail(KFI_INJECT_ALLOC_MR, -ENOSPC, i, 1);
		EXPECT_EQ(t, reserve(r, COUNT, PAGES), -KFI_ENOSPC);
	}
	kfi_inject_fail(KFI_INJECT_ALLOC_MR, 0, 0, 0);
	EXPECT_EQ(t, reserve(r, COUNT, PAGES), 0);
	kfi_inject_stop(t->env->dev);
out:
	reserve_close(t, r);
}

static int reg(struct kfi_test *t, size_t len, struct kfid_mr **mr)
{
	return reg_simple(t->env, arena_at(t->env, MEM_VMALLOC, 40), len, KFI_REMOTE, mr);
}

/*
 * The device makes no region any more. As many as were reserved succeed all the same, of that size;
 * others are refused, and so is one more. Closed ones can be registered again, where their device
 * region is used again; where it isn't, as soon as the device can again.
 */
static void no_region_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 40);
	struct kfid_mr *mr[COUNT] = {}, *other;
	unsigned int i, round;
	struct reserve *r;

	r = reserve_open(t);
	if (!r)
		return;
	if (!EXPECT_EQ(t, reserve(r, COUNT, PAGES), 0) ||
	    !EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		goto out;
	for (round = 0; round < 3; round++) {
		kfi_inject_fail(KFI_INJECT_ALLOC_MR, round & 1 ? -ENOMEM : -ENOSPC, 0, UINT_MAX);
		/* None of these takes anything from the reserve. */
		EXPECT_EQ(t, reg(t, (PAGES + 1) * PAGE_SIZE, &other),
			  round & 1 ? -KFI_ENOMEM : -KFI_ENOSPC);
		EXPECT_EQ(t, reg_simple(t->env, NULL, 1, KFI_REMOTE, &other), -KFI_EINVAL);
		EXPECT_EQ(t, reg_simple(t->env, (void *)PAGE_SIZE, 1, KFI_REMOTE, &other),
			  -KFI_EFAULT);
		for (i = 0; i < COUNT; i++)
			if (EXPECT_EQ(t, reg(t, LEN, &mr[i]), 0))
				check_region(t, mr[i], mem, LEN);
		EXPECT_EQ(t, reg(t, LEN, &other), round & 1 ? -KFI_ENOMEM : -KFI_ENOSPC);
		if (!has_feature(F_REFRESH))
			kfi_inject_fail(KFI_INJECT_ALLOC_MR, 0, 0, 0);
		for (i = 0; i < COUNT && mr[i]; i++)
			EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
		/* On a software device each is made anew, in the background. */
		if (!has_feature(F_REFRESH)) {
			for (i = 0; i < COUNT; i++)
				EXPECT_EQ(t, reg(t, LEN, &mr[i]), 0);
			for (i = 0; i < COUNT && mr[i]; i++)
				EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
			break;
		}
	}
	kfi_inject_fail(KFI_INJECT_ALLOC_MR, 0, 0, 0);
	EXPECT_EQ(t, reg(t, (PAGES + 1) * PAGE_SIZE, &other), 0);
	EXPECT_EQ(t, kfi_close(&other->fid), 0);
	kfi_inject_stop(t->env->dev);
out:
	reserve_close(t, r);
}

/* More often than a device region can be used: it is replaced, and each key is another one. */
static void often_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 40);
	struct kfid_mr *mr;
	unsigned int i;
	struct reserve *r;
	u64 last = 0;

	r = reserve_open(t);
	if (!r)
		return;
	if (EXPECT_EQ(t, reserve(r, 1, PAGES), 0)) {
		for (i = 0; i < 600 && !t->failures; i++) {
			if (!EXPECT_EQ(t, reg(t, LEN, &mr), 0))
				break;
			EXPECT(t, mr->key != last, "the key %#llx came again at once", last);
			last = mr->key;
			if (i % 50 == 0)
				check_region(t, mr, mem, LEN);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
	}
	reserve_close(t, r);
}

static const struct kfi_case cases[] = {
	{ "args", args_case },
	{ "failing", failing_case },
	{ "no_region", no_region_case },
	{ "often", often_case },
};

const struct kfi_suite suite_reserve = {
	.name = "reserve",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
};

#ifdef CONFIG_FAULT_INJECTION

/* From now on each allocation of this task fails. */
static void starve(bool yes)
{
	current->make_it_fail = yes;
}

/*
 * For the suite faults. No allocation succeeds: registrations that were reserved do, again and
 * again, by each call, and can be closed; others don't.
 */
void reserve_faults_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, 40);
	struct kfid_mr *mr[COUNT], *other;
	unsigned int i, round;
	struct reg_req req;
	struct reserve *r;
	int ret;

	r = reserve_open(t);
	if (!r)
		return;
	if (!EXPECT_EQ(t, reserve(r, COUNT, PAGES), 0))
		goto out;
	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		goto out;
	for (round = 0; round < 5 && !t->failures; round++) {
		for (i = 0; i < COUNT; i++) {
			mr[i] = NULL;
			starve(true);
			ret = reg_submit(&req, &mr[i]);
			starve(false);
			if (EXPECT_EQ(t, ret, 0))
				check_region(t, mr[i], mem, LEN);
		}
		/* One more has nothing to be made of. */
		starve(true);
		ret = reg_submit(&req, &other);
		starve(false);
		EXPECT(t, ret == -KFI_ENOMEM, "%d: is fault injection switched on?", ret);
		for (i = 0; i < COUNT && mr[i]; i++) {
			starve(true);
			ret = kfi_close(&mr[i]->fid);
			starve(false);
			EXPECT_EQ(t, ret, 0);
		}
	}
	reg_finish(t->env, &req);
out:
	reserve_close(t, r);
}

#else

void reserve_faults_case(struct kfi_test *t)
{
	ktap_skip(t, "the kernel has no fault injection");
}

#endif /* CONFIG_FAULT_INJECTION */
