// SPDX-License-Identifier: GPL-2.0
/* Many regions at once, many threads at once, and what happens at the limits. */
#include <linux/sort.h>

#include "request.h"
#include "suites.h"
#include "workers.h"

#define SMALL	96

static int compare_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static void expect_different_keys(struct kfi_test *t, struct kfid_mr **mrs, size_t n)
{
	u64 *keys = kvmalloc_array(n, sizeof(*keys), GFP_KERNEL);
	size_t i;

	if (!EXPECT(t, keys, "no memory"))
		return;
	for (i = 0; i < n; i++)
		keys[i] = mrs[i]->key;
	sort(keys, n, sizeof(*keys), compare_u64, NULL);
	for (i = 1; i < n; i++)
		EXPECT(t, keys[i] != keys[i - 1], "two open regions have the key %#llx", keys[i]);
	kvfree(keys);
}

static u8 *slice(struct kfi_env *env, size_t i)
{
	size_t slices = (env->arena_size - 2 * PAGE_SIZE) / SMALL;

	return arena_at(env, MEM_PAGES, i % slices * SMALL);
}

/* Close what is left open, in an order that is not that of the registrations. */
static void close_all(struct kfi_test *t, struct kfid_mr **mrs, size_t n, size_t checked)
{
	size_t i, step, iova;
	u64 key;

	for (step = 0; step < 2; step++) {
		for (i = step; i < n; i += 2) {
			key = mrs[i]->key;
			iova = mrs[i]->iova;
			EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0);
			if (i % checked == 0)
				check_refused(t, iova, key, slice(t->env, i), SMALL);
		}
		cond_resched();
	}
}

static void many_case(struct kfi_test *t)
{
	size_t want = min(scaled(10000), t->env->info->domain_attr->mr_cnt);
	size_t i, n, checked = max(want / 20, 1);
	struct kfid_mr **mrs;

	mrs = kvcalloc(want, sizeof(*mrs), GFP_KERNEL);
	if (!EXPECT(t, mrs, "no memory"))
		return;
	for (n = 0; n < want; n++) {
		if (!EXPECT_EQ(t, reg_simple(t->env, slice(t->env, n), SMALL, KFI_REMOTE, &mrs[n]),
			       0))
			break;
		cond_resched();
	}
	ktap_note("%zu regions at once", n);
	expect_different_keys(t, mrs, n);
	for (i = 0; i < n; i += checked)
		check_region(t, mrs[i], slice(t->env, i), SMALL);
	close_all(t, mrs, n, checked);
	kvfree(mrs);
}

/* Pools are filled and emptied in turns. */
static void waves_case(struct kfi_test *t)
{
	struct kfid_mr *mrs[64];
	size_t n, i, wave;

	for (wave = 0; wave < scaled(10) && !t->failures; wave++) {
		size_t len = wave % 2 ? SMALL : 9 * PAGE_SIZE;

		for (n = 0; n < ARRAY_SIZE(mrs); n++)
			if (!EXPECT_EQ(t, reg_simple(t->env, slice(t->env, n), len, KFI_REMOTE,
						     &mrs[n]), 0))
				break;
		for (i = 0; i < n; i += 16)
			check_region(t, mrs[i], slice(t->env, i), len);
		while (n-- > 0)
			EXPECT_EQ(t, kfi_close(&mrs[n]->fid), 0);
	}
}

#define FEW	8

/* The domain was opened for FEW regions: one more is refused, whatever the call. */
static void fill_and_overfill(struct kfi_test *t, struct kfid_domain *domain)
{
	u8 *mem = arena_at(t->env, MEM_PAGES, 0);
	struct kfid_mr *mrs[FEW], *mr;
	struct reg_req req;
	int n, call;

	for (n = 0; n < FEW; n++)
		if (!EXPECT_EQ(t, kfi_mr_reg(domain, mem, SMALL, KFI_REMOTE, 0, 0, 0, &mrs[n],
					     NULL), 0))
			goto out;
	for (call = 0; call < REG_CALLS; call++) {
		mr = (void *)0x5a5a;
		if (!EXPECT_EQ(t, reg_prepare(t->env, &req, call, mem, SMALL, PAGE_SIZE), 0))
			continue;
		req.domain = domain;
		if (EXPECT_EQ(t, reg_submit(&req, &mr), -KFI_ENOSPC))
			EXPECT(t, !mr, "*mr is not NULL");
		reg_finish(t->env, &req);
	}
	/* A close makes room for one, and only one. */
	EXPECT_EQ(t, kfi_close(&mrs[0]->fid), 0);
	if (EXPECT_EQ(t, kfi_mr_reg(domain, mem, SMALL, KFI_REMOTE, 0, 0, 0, &mrs[0], NULL), 0))
		EXPECT_EQ(t, kfi_mr_reg(domain, mem, SMALL, KFI_REMOTE, 0, 0, 0, &mr, NULL),
			  -KFI_ENOSPC);
	else
		mrs[0] = mrs[--n];
out:
	while (n-- > 0)
		EXPECT_EQ(t, kfi_close(&mrs[n]->fid), 0);
}

static void mr_cnt_case(struct kfi_test *t)
{
	struct kfi_info *info = kfi_dupinfo(t->env->info);
	struct kfid_domain *domain;

	if (!EXPECT(t, info, "no memory"))
		return;
	info->domain_attr->mr_cnt = FEW;
	if (EXPECT_EQ(t, kfi_domain(t->env->fabric, info, &domain, NULL), 0)) {
		fill_and_overfill(t, domain);
		EXPECT_EQ(t, kfi_close(&domain->fid), 0);
	}
	kfi_freeinfo(info);
}

static void parallel_case(struct kfi_test *t)
{
	unsigned int rounds = scaled(60);
	struct workers *ws = workers_start(t, 4, WORKER_PAGES, rounds, worker_register, NULL);

	if (!ws)
		return;
	workers_wait(ws);
	EXPECT_EQ(t, workers_stop(t, ws), 4 * rounds);
}

/* Domains come and go while others of the same device are in use. */
static void domains_case(struct kfi_test *t)
{
	struct workers *ws = workers_start(t, 2, WORKER_PAGES, 0, worker_register, NULL);
	u8 *mem = arena_at(t->env, MEM_PAGES, 0);
	struct kfid_domain *domain;
	struct kfid_mr *mr;
	int i;

	for (i = 0; i < scaled(20) && !t->failures; i++) {
		if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &domain, NULL), 0))
			break;
		if (EXPECT_EQ(t, kfi_mr_reg(domain, mem, SMALL, KFI_REMOTE, 0, 0, 0, &mr, NULL),
			      0)) {
			check_refused(t, mr->iova, mr->key, mem, SMALL);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
		EXPECT_EQ(t, kfi_close(&domain->fid), 0);
	}
	EXPECT(t, workers_stop(t, ws), "the threads did nothing");
}

static const struct kfi_case cases[] = {
	{ "many", many_case },
	{ "waves", waves_case },
	{ "mr_cnt", mr_cnt_case },
	{ "parallel", parallel_case },
	{ "domains", domains_case },
};

const struct kfi_suite suite_stress = {
	.name = "stress",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
