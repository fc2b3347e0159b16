// SPDX-License-Identifier: GPL-2.0
/*
 * A provider without a feature returns a documented errno, does nothing else, and its other
 * features go on working. The errnos are those of the table (features.def).
 */
#include <kfi_endpoint.h>

#include "conform.h"

#define LEN	(2 * PAGE_SIZE + 9)

/* A region to try things on. */
struct trial {
	struct place *p;
	struct kfid_mr *mr;
	u8 *mem;
};

static bool trial_begin(struct kfi_test *t, struct trial *trial)
{
	trial->p = place_open(t, MODE_BASIC);
	if (!trial->p)
		return false;
	trial->mem = arena_at(&trial->p->env, MEM_KMALLOC, 10);
	if (EXPECT_EQ(t, register_buf(trial->p, trial->mem, LEN, KFI_REMOTE, &trial->mr), 0))
		return true;
	place_close(t, trial->p);
	return false;
}

static void trial_end(struct kfi_test *t, struct trial *trial)
{
	good(t, trial->p, trial->mr, trial->mem, LEN);
	close_mr(t, trial->mr);
	place_close(t, trial->p);
}

/* Hints that nobody can meet: changed by @change out of others that are met. */
static void expect_no_offer(struct kfi_test *t, void (*change)(struct kfi_info *hints))
{
	struct kfi_info *hints = hints_for(~0), *info = NULL;

	if (!EXPECT(t, hints, "no memory"))
		return;
	EXPECT_EQ(t, ask(hints, &info), 0);
	kfi_freeinfo(info);
	change(hints);
	EXPECT_EQ(t, ask(hints, &info), -KFI_ENODATA);
	EXPECT(t, !info, "*info is not NULL");
	kfi_freeinfo(info);
	kfi_freeinfo(hints);
}

/* Each call refuses a registration with this flag. */
static void expect_no_flag(struct kfi_test *t, struct trial *trial, u64 flag)
{
	struct kfi_env *env = &trial->p->env;
	struct reg_req req;
	struct kfid_mr *mr;
	enum reg_call call;

	for (call = 0; call < REG_CALLS; call++) {
		if (!EXPECT_EQ(t, reg_prepare(env, &req, call, trial->mem, LEN, PAGE_SIZE), 0))
			return;
		req.flags = flag;
		if (!EXPECT_EQ(t, reg_submit(&req, &mr), -KFI_EBADFLAGS) && mr)
			close_mr(t, mr);
		reg_finish(env, &req);
	}
}

#define HINT(_name, statement)	\
static void _name(struct kfi_info *h) { statement; }

HINT(count_from_zero, h->domain_attr->mr_mode = KFI_MR_PROV_KEY)
HINT(choose_keys, h->domain_attr->mr_mode = KFI_MR_VIRT_ADDR)
HINT(nothing_agreed, h->domain_attr->mr_mode = 0)
HINT(want_rma_events, h->caps = KFI_RMA_EVENT)
HINT(want_pmem, h->caps = KFI_RMA_PMEM)
HINT(want_auth_key, h->domain_attr->auth_key_size = 8)

void refused_default(struct kfi_test *t)
{
	EXPECT_EQ(t, feature_errno(F_DEFAULT), -KFI_ENODATA);
	expect_no_offer(t, count_from_zero);
	expect_no_offer(t, choose_keys);
	expect_no_offer(t, nothing_agreed);
}

void refused_rma_events(struct kfi_test *t)
{
	struct kfid fid = { .fclass = KFI_CLASS_CNTR };
	struct trial trial;

	expect_no_offer(t, want_rma_events);
	EXPECT(t, !has_offer(t, KFI_MR_RMA_EVENT), "an offer with KFI_MR_RMA_EVENT");
	if (trial_begin(t, &trial)) {
		expect_no_flag(t, &trial, KFI_RMA_EVENT);
		EXPECT_EQ(t, kfi_mr_bind(trial.mr, &fid, KFI_REMOTE_WRITE),
			  feature_errno(F_RMA_EVENTS));
		EXPECT_EQ(t, kfi_mr_enable(trial.mr), -KFI_EOPBADSTATE);
		trial_end(t, &trial);
	}
}

void refused_endpoints(struct kfi_test *t)
{
	struct kfid fid = { .fclass = KFI_CLASS_EP };
	struct kfid_ep *ep = ERR_PTR(-1);
	struct trial trial;

	if (trial_begin(t, &trial)) {
		EXPECT_EQ(t, kfi_endpoint(trial.p->env.domain, trial.p->info, &ep, NULL),
			  feature_errno(F_PLAIN_ENDPOINTS));
		EXPECT(t, !ep, "*ep is not NULL");
		EXPECT_EQ(t, kfi_mr_bind(trial.mr, &fid, 0), feature_errno(F_PLAIN_ENDPOINTS));
		trial_end(t, &trial);
	}
}

void refused_refresh(struct kfi_test *t)
{
	int want = feature_errno(F_REFRESH);
	struct trial trial;
	struct kvec iov;

	if (trial_begin(t, &trial)) {
		iov = (struct kvec) { .iov_base = trial.mem, .iov_len = LEN };
		EXPECT_EQ(t, kfi_mr_refresh(trial.mr, &iov, 1, 0), want);
		EXPECT_EQ(t, kfi_mr_refresh(trial.mr, NULL, 0, 0), want);
		trial_end(t, &trial);
	}
}

void refused_auth_keys(struct kfi_test *t)
{
	u8 auth_key[8] = { 1, 2, 3 };
	struct reg_req req;
	struct trial trial;
	struct kfid_mr *mr;
	enum reg_call call;

	expect_no_offer(t, want_auth_key);
	if (!trial_begin(t, &trial))
		return;
	for (call = ATTR_KVEC; call < REG_CALLS; call++) {
		if (!EXPECT_EQ(t, reg_prepare(&trial.p->env, &req, call, trial.mem, LEN, PAGE_SIZE),
			       0))
			break;
		req.auth_key = auth_key;
		req.auth_key_size = sizeof(auth_key);
		if (!EXPECT_EQ(t, reg_submit(&req, &mr), feature_errno(F_AUTH_KEYS)) && mr)
			close_mr(t, mr);
		reg_finish(&trial.p->env, &req);
	}
	trial_end(t, &trial);
}

static void refused_pmem(struct kfi_test *t)
{
	struct trial trial;

	EXPECT_EQ(t, feature_errno(F_PMEM), -KFI_EBADFLAGS);
	expect_no_offer(t, want_pmem);
	if (trial_begin(t, &trial)) {
		expect_no_flag(t, &trial, KFI_RMA_PMEM);
		trial_end(t, &trial);
	}
}

/* Features that no provider has: a provider with one needs cases of its own. */
static void untested(struct kfi_test *t)
{
	EXPECT(t, false, "there is no case for this");
}

static const struct kfi_case cases[] = {
	CHECK("pmem", 0, F_PMEM, untested, refused_pmem),
};

SECTION(section_absent);
