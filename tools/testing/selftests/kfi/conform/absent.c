// SPDX-License-Identifier: GPL-2.0
/*
 * What a provider doesn't have says so by a documented errno, does nothing else, and what it has goes
 * on working. Each returns the errno that a consumer learns it by.
 */
#include <kfi_endpoint.h>

#include "conform.h"

#define LEN	(2 * PAGE_SIZE + 9)

/* A region in the provider's best mode, to try things on. */
struct trial {
	struct place *p;
	struct kfid_mr *mr;
	u8 *mem;
};

static bool trial_begin(struct kfi_test *t, struct trial *trial)
{
	trial->p = place_open(t, offers(F_BASIC) ? MODE_BASIC : MODE_DEFAULT);
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

/* Hints that nobody can meet: changed by @change out of such that are met. */
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

/* A registration with this flag is refused, by each call. */
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

int refused_default(struct kfi_test *t)
{
	expect_no_offer(t, count_from_zero);
	expect_no_offer(t, choose_keys);
	expect_no_offer(t, nothing_agreed);
	return -KFI_ENODATA;
}

int refused_event_queues(struct kfi_test *t)
{
	struct kfi_eq_attr attr = {};
	struct kfid_eq *eq = ERR_PTR(-1);

	EXPECT_EQ(t, kfi_eq_open(t->env->fabric, &attr, &eq, NULL, NULL), -KFI_ENOSYS);
	EXPECT(t, !eq, "*eq is not NULL");
	return -KFI_ENOSYS;
}

int refused_async(struct kfi_test *t)
{
	struct kfid fid = { .fclass = KFI_CLASS_EQ };
	struct trial trial;

	if (trial_begin(t, &trial)) {
		EXPECT_EQ(t, kfi_domain_bind(trial.p->env.domain, &fid, KFI_REG_MR), -KFI_ENOSYS);
		trial_end(t, &trial);
	}
	return -KFI_ENOSYS;
}

int refused_counters(struct kfi_test *t)
{
	struct kfi_cntr_attr attr = {};
	struct kfid_cntr *cntr = ERR_PTR(-1);
	struct trial trial;

	if (trial_begin(t, &trial)) {
		EXPECT_EQ(t, kfi_cntr_open(trial.p->env.domain, &attr, &cntr, NULL), -KFI_ENOSYS);
		EXPECT(t, !cntr, "*cntr is not NULL");
		trial_end(t, &trial);
	}
	return -KFI_ENOSYS;
}

int refused_completion_queues(struct kfi_test *t)
{
	struct kfi_cq_attr attr = {};
	struct kfid_cq *cq = ERR_PTR(-1);
	struct trial trial;

	if (trial_begin(t, &trial)) {
		EXPECT_EQ(t, kfi_cq_open(trial.p->env.domain, &attr, &cq, NULL, NULL),
			  -KFI_ENOSYS);
		EXPECT(t, !cq, "*cq is not NULL");
		trial_end(t, &trial);
	}
	return -KFI_ENOSYS;
}

int refused_rma_events(struct kfi_test *t)
{
	struct kfid fid = { .fclass = KFI_CLASS_CNTR };
	struct trial trial;

	expect_no_offer(t, want_rma_events);
	EXPECT(t, !has_offer(t, KFI_MR_RMA_EVENT), "an offer with KFI_MR_RMA_EVENT");
	if (trial_begin(t, &trial)) {
		expect_no_flag(t, &trial, KFI_RMA_EVENT);
		EXPECT_EQ(t, kfi_mr_bind(trial.mr, &fid, KFI_REMOTE_WRITE), -KFI_ENOSYS);
		EXPECT_EQ(t, kfi_mr_enable(trial.mr), -KFI_EOPBADSTATE);
		trial_end(t, &trial);
	}
	return -KFI_ENOSYS;
}

int refused_endpoints(struct kfi_test *t)
{
	struct kfid fid = { .fclass = KFI_CLASS_EP };
	struct kfid_ep *ep = ERR_PTR(-1);
	struct trial trial;

	if (trial_begin(t, &trial)) {
		EXPECT_EQ(t, kfi_endpoint(trial.p->env.domain, trial.p->info, &ep, NULL),
			  -KFI_ENOSYS);
		EXPECT(t, !ep, "*ep is not NULL");
		EXPECT_EQ(t, kfi_mr_bind(trial.mr, &fid, 0), -KFI_ENOSYS);
		trial_end(t, &trial);
	}
	return -KFI_ENOSYS;
}

int refused_raw_keys(struct kfi_test *t)
{
	u64 base = 0, key = 0;
	struct trial trial;
	u8 raw[64] = {};
	size_t size = sizeof(raw);

	if (trial_begin(t, &trial)) {
		struct kfid_domain *domain = trial.p->env.domain;

		EXPECT_EQ(t, kfi_mr_raw_attr(trial.mr, &base, raw, &size, 0), -KFI_ENOSYS);
		EXPECT_EQ(t, kfi_mr_map_raw(domain, 0, raw, size, &key, 0), -KFI_ENOSYS);
		EXPECT_EQ(t, kfi_mr_unmap_key(domain, 1), -KFI_ENOSYS);
		trial_end(t, &trial);
	}
	return -KFI_ENOSYS;
}

/* No offer needs raw keys, and then a gap in a list is one too many. */
int refused_raw_mode(struct kfi_test *t)
{
	struct reg_req req;
	struct kfid_mr *mr;
	struct trial trial;

	EXPECT(t, !has_offer(t, MODE_RAW), "an offer with KFI_MR_RAW");
	if (!trial_begin(t, &trial))
		return -KFI_EINVAL;
	if (EXPECT_EQ(t, reg_prepare(&trial.p->env, &req, REGV, trial.mem, LEN, PAGE_SIZE), 0)) {
		req.kv[0].iov_len--;
		if (!EXPECT_EQ(t, reg_submit(&req, &mr), -KFI_EINVAL) && mr)
			close_mr(t, mr);
		reg_finish(&trial.p->env, &req);
	}
	trial_end(t, &trial);
	return -KFI_EINVAL;
}

int refused_refresh(struct kfi_test *t)
{
	/* A provider that could says that the device can't. */
	int want = offers(F_REFRESH) ? -KFI_EOPNOTSUPP : -KFI_ENOSYS;
	struct trial trial;
	struct kvec iov;

	if (trial_begin(t, &trial)) {
		iov = (struct kvec) { .iov_base = trial.mem, .iov_len = LEN };
		EXPECT_EQ(t, kfi_mr_refresh(trial.mr, &iov, 1, 0), want);
		EXPECT_EQ(t, kfi_mr_refresh(trial.mr, NULL, 0, 0), want);
		trial_end(t, &trial);
	}
	return want;
}

int refused_auth_keys(struct kfi_test *t)
{
	u8 auth_key[8] = { 1, 2, 3 };
	struct reg_req req;
	struct trial trial;
	struct kfid_mr *mr;
	enum reg_call call;

	expect_no_offer(t, want_auth_key);
	if (!trial_begin(t, &trial))
		return -KFI_EOPNOTSUPP;
	for (call = ATTR_KVEC; call < REG_CALLS; call++) {
		if (!EXPECT_EQ(t, reg_prepare(&trial.p->env, &req, call, trial.mem, LEN, PAGE_SIZE),
			       0))
			break;
		req.auth_key = auth_key;
		req.auth_key_size = sizeof(auth_key);
		if (!EXPECT_EQ(t, reg_submit(&req, &mr), -KFI_EOPNOTSUPP) && mr)
			close_mr(t, mr);
		reg_finish(&trial.p->env, &req);
	}
	trial_end(t, &trial);
	return -KFI_EOPNOTSUPP;
}

static int refused_pmem(struct kfi_test *t)
{
	struct trial trial;

	expect_no_offer(t, want_pmem);
	if (trial_begin(t, &trial)) {
		expect_no_flag(t, &trial, KFI_RMA_PMEM);
		trial_end(t, &trial);
	}
	return -KFI_EBADFLAGS;
}

/* What nobody has: a provider that does needs cases of its own. */
static void untested(struct kfi_test *t)
{
	EXPECT(t, false, "there is no case for this");
}

static const struct kfi_case cases[] = {
	CHECK("pmem", 0, F_PMEM, untested, refused_pmem),
};

SECTION(section_absent);
