// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations fail, one after the other: the first one that a call makes, then the second one, and
 * so on. Each time the call succeeds or says that it can't, and leaves nothing behind.
 *
 * Needs a kernel with fault injection, switched on for slabs and pages as faults.sh does it. Only
 * allocations of this task fail, and only during the call under test.
 */
#include <linux/delay.h>

#include "failing.h"
#include "refusal/errors.h"
#include "suites.h"

#ifdef CONFIG_FAULT_INJECTION

static void expect_fault_errno(struct kfi_test *t, int ret, unsigned int nth)
{
	EXPECT(t, ret == -KFI_ENOMEM || ret == -KFI_EIO, "error %d when allocation %u fails", ret,
	       nth);
}

static void register_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, ROW_ALIGN);
	unsigned int nth, refused = 0;
	struct reg_req req;
	struct kfid_mr *mr;
	bool failed = true;
	int ret;

	for (nth = 1; failed && nth < MAX_NTH && !t->failures; nth++) {
		if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, ROW_LEN, PAGE_SIZE),
			       0))
			return;
		mr = (void *)0x5a5a;
		arm(nth);
		ret = reg_submit(&req, &mr);
		failed = disarm();
		if (!ret) {
			check_region(t, mr, mem, ROW_LEN);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		} else {
			refused++;
			EXPECT(t, failed, "error %d without a failed allocation", ret);
			expect_fault_errno(t, ret, nth);
			EXPECT(t, !mr, "*mr is not NULL");
		}
		reg_finish(t->env, &req);
	}
	EXPECT(t, nth < MAX_NTH, "more than %d allocations", MAX_NTH);
	EXPECT(t, refused, "no allocation has failed: fault injection is not switched on");
	ktap_note("%s: %u refusals", reg_call_name(t->variant), refused);
	expect_works(t, t->variant);
}

/* A close has no way to fail for want of memory. */
static void close_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, ROW_ALIGN);
	bool failed = true;
	unsigned int nth;
	struct kfid_mr *mr;
	u64 key, iova;
	int ret;

	for (nth = 1; failed && nth < MAX_NTH && !t->failures; nth++) {
		if (!EXPECT_EQ(t, reg_simple(t->env, mem, ROW_LEN, KFI_REMOTE, &mr), 0))
			return;
		key = mr->key;
		iova = mr->iova;
		arm(nth);
		ret = kfi_close(&mr->fid);
		failed = disarm();
		EXPECT_EQ(t, ret, 0);
		check_refused(t, iova, key, mem, ROW_LEN);
	}
	EXPECT(t, nth < MAX_NTH, "more than %d allocations", MAX_NTH);
	expect_works(t, REG);
}

static void domain_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, ROW_ALIGN);
	unsigned int nth, refused = 0;
	struct kfid_domain *domain;
	bool failed = true;
	struct kfid_mr *mr;
	int ret;

	for (nth = 1; failed && nth < MAX_NTH && !t->failures; nth++) {
		arm(nth);
		ret = kfi_domain(t->env->fabric, t->env->info, &domain, NULL);
		failed = disarm();
		if (ret) {
			refused++;
			expect_fault_errno(t, ret, nth);
			EXPECT(t, !domain, "*domain is not NULL");
			continue;
		}
		if (EXPECT_EQ(t, kfi_mr_reg(domain, mem, ROW_LEN, KFI_REMOTE, 0, 0, 0, &mr, NULL),
			      0))
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		if (!EXPECT_EQ(t, kfi_close(&domain->fid), 0)) {
			/* Give it time, so that only this test fails. */
			msleep(500);
			EXPECT_EQ(t, kfi_close(&domain->fid), 0);
		}
	}
	EXPECT(t, nth < MAX_NTH, "more than %d allocations", MAX_NTH);
	EXPECT(t, refused, "no allocation has failed: fault injection is not switched on");
}

static void info_case(struct kfi_test *t)
{
	bool failed = true;
	unsigned int nth;
	struct kfi_info *info, *copy;
	int ret;

	for (nth = 1; failed && nth < MAX_NTH && !t->failures; nth++) {
		arm(nth);
		ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, NULL, &info);
		failed = disarm();
		if (ret) {
			EXPECT_EQ(t, ret, -KFI_ENOMEM);
			EXPECT(t, !info, "*info is not NULL");
		} else {
			kfi_freeinfo(info);
		}
	}
	EXPECT(t, nth < MAX_NTH, "more than %d allocations", MAX_NTH);
	for (nth = 1, failed = true; failed && nth < MAX_NTH; nth++) {
		arm(nth);
		copy = kfi_dupinfo(t->env->info);
		failed = disarm();
		EXPECT(t, copy || failed, "no copy, though there is memory");
		kfi_freeinfo(copy);
	}
}

#else

static void register_case(struct kfi_test *t)
{
	ktap_skip(t, "the kernel has no fault injection");
}

#define close_case	register_case
#define domain_case	register_case
#define info_case	register_case

#endif /* CONFIG_FAULT_INJECTION */

static const struct kfi_case cases[] = {
	{ "register", register_case, ALL_CALLS },
	{ "close", close_case },
	{ "domain", domain_case },
	{ "info", info_case },
	{ "batch", batch_faults_case },
	{ "pieces", pieces_faults_case },
	{ "reserved", reserve_faults_case, ALL_CALLS },
};

const struct kfi_suite suite_faults = {
	.name = "faults",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
};
