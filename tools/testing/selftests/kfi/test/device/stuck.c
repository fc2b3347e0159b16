// SPDX-License-Identifier: GPL-2.0
/*
 * A device that won't let go of a region: what each call says then, that the memory must stay, and
 * that the domain can be closed all the same.
 */
#include "job.h"
#include "kfi_inject.h"
#include "request.h"
#include "suites.h"

#define LEN	(2 * PAGE_SIZE)

/* A domain of its own, over a driver that does as it is told. */
static struct kfid_domain *stuck_open(struct kfi_test *t)
{
	struct kfid_domain *domain;

	if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &domain, NULL), 0))
		return NULL;
	if (!EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0)) {
		EXPECT_EQ(t, kfi_close(&domain->fid), 0);
		return NULL;
	}
	return domain;
}

static int reg(struct kfi_test *t, struct kfid_domain *domain, struct kfid_mr **mr)
{
	*mr = ERR_PTR(-ENODATA);
	return kfi_mr_reg(domain, arena_at(t->env, MEM_VMALLOC, 0), LEN, KFI_REMOTE, 0, 0, 0, mr,
			  NULL);
}

static void let_go(bool yes)
{
	kfi_inject_fail(KFI_INJECT_POST_INV, -EINVAL, 0, yes ? 0 : UINT_MAX);
	kfi_inject_fail(KFI_INJECT_DEREG_MR, -EIO, 0, yes ? 0 : UINT_MAX);
}

/* The domain goes on, and goes; then the driver gets back what it wouldn't take. */
static void stuck_close(struct kfi_test *t, struct kfid_domain *domain)
{
	struct kfid_mr *mr;

	/* The memory of regions that were leaked stays mapped. */
	t->leaves_open = true;
	let_go(true);
	kfi_inject_fail(KFI_INJECT_POST_REG, 0, 0, 0);
	if (EXPECT_EQ(t, reg(t, domain, &mr), 0))
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	EXPECT_EQ(t, kfi_close(&domain->fid), 0);
	kfi_inject_stop(t->env->dev);
	kfi_inject_mend();
}

/* Memory that the device would not take, and won't give back: only the errno tells. */
static void register_case(struct kfi_test *t)
{
	struct kfid_domain *domain = stuck_open(t);
	struct kfid_mr *mr;

	if (!domain)
		return;
	/* With the region given back it is the reason why it was not taken. */
	kfi_inject_fail(KFI_INJECT_POST_REG, -EINVAL, 0, UINT_MAX);
	EXPECT_EQ(t, reg(t, domain, &mr), -KFI_EIO);
	EXPECT(t, !mr, "a region");
	let_go(false);
	EXPECT_EQ(t, reg(t, domain, &mr), -KFI_ENOTRECOVERABLE);
	EXPECT(t, !mr, "a region");
	stuck_close(t, domain);
}

static void close_case(struct kfi_test *t)
{
	struct kfid_domain *domain = stuck_open(t);
	struct kfid_mr *mr, *other;

	if (!domain)
		return;
	if (EXPECT_EQ(t, reg(t, domain, &mr), 0) && EXPECT_EQ(t, reg(t, domain, &other), 0)) {
		let_go(false);
		EXPECT_EQ(t, kfi_close(&mr->fid), -KFI_EIO);
		let_go(true);
		EXPECT_EQ(t, kfi_close(&other->fid), 0);
	}
	stuck_close(t, domain);
}

/* Either no peer reaches any memory, or the device may still reach the old pages. */
static void refresh_case(struct kfi_test *t)
{
	struct kfid_domain *domain;
	struct kfid_mr *mr;

	if (!needs_feature(t, F_REFRESH))
		return;
	domain = stuck_open(t);
	if (!domain)
		return;
	if (EXPECT_EQ(t, reg(t, domain, &mr), 0)) {
		kfi_inject_fail(KFI_INJECT_POST_INV, -EINVAL, 0, UINT_MAX);
		EXPECT_EQ(t, kfi_mr_refresh(mr, NULL, 0, 0), -KFI_EIO);
		EXPECT_EQ(t, kfi_mr_refresh(mr, NULL, 0, 0), -KFI_EIO);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	let_go(true);
	if (EXPECT_EQ(t, reg(t, domain, &mr), 0)) {
		let_go(false);
		EXPECT_EQ(t, kfi_mr_refresh(mr, NULL, 0, 0), -KFI_ENOTRECOVERABLE);
		let_go(true);
		EXPECT_EQ(t, kfi_close(&mr->fid), -KFI_EIO);
	}
	stuck_close(t, domain);
}

static int close_one(void *fid)
{
	return kfi_close(fid);
}

/* Closes an object while the driver blocks in @op, and lets @op continue when observe.sh has found the log message. */
static void close_held(struct kfi_test *t, struct kfid *fid, enum kfi_inject_op op)
{
	struct job closer;

	WRITE_ONCE(kfi_go, false);
	kfi_inject_hold(op);
	job_start(t, &closer, close_one, fid);
	if (EXPECT(t, kfi_inject_wait_held(op), "the driver isn't called"))
		wait_for_observer(t);
	kfi_inject_release(op);
	EXPECT_EQ(t, job_end(t, &closer), 0);
}

static void held_case(struct kfi_test *t)
{
	struct kfid_domain *domain = stuck_open(t);
	struct kfid_mr *mr;

	if (!domain)
		return;
	/* A close of hardware's regions invalidates. */
	if (EXPECT_EQ(t, reg(t, domain, &mr), 0))
		close_held(t, &mr->fid, ib_uses_virt_dma(t->env->dev) ? KFI_INJECT_DEREG_MR : KFI_INJECT_POST_INV);
	close_held(t, &domain->fid, KFI_INJECT_DEALLOC_PD);
	kfi_inject_stop(t->env->dev);
}

static const struct kfi_case held_cases[] = {
	{ "held", held_case },
};

/* For observe.sh. */
const struct kfi_suite suite_stuck_close = {
	.name = "stuck_close",
	.cases = held_cases,
	.count = ARRAY_SIZE(held_cases),
};

static const struct kfi_case cases[] = {
	{ "register", register_case },
	{ "close", close_case },
	{ "refresh", refresh_case },
};

const struct kfi_suite suite_stuck = {
	.name = "stuck",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
};
