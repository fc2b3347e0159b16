// SPDX-License-Identifier: GPL-2.0
/*
 * mr_mode: in hints what the consumer is ready for, in an offer what the provider needs of that; and
 * the limits that offers and domains have.
 */
#include "conform.h"

#define LEN	(PAGE_SIZE + 9)

static const struct {
	int bit;
	const char *name;
} bits[] = {
	{ KFI_MR_LOCAL, "KFI_MR_LOCAL" },
	{ KFI_MR_RAW, "KFI_MR_RAW" },
	{ KFI_MR_VIRT_ADDR, "KFI_MR_VIRT_ADDR" },
	{ KFI_MR_PROV_KEY, "KFI_MR_PROV_KEY" },
	{ KFI_MR_RMA_EVENT, "KFI_MR_RMA_EVENT" },
	{ KFI_MR_ENDPOINT, "KFI_MR_ENDPOINT" },
};

#define ALL_MODES	(KFI_MR_LOCAL | KFI_MR_RAW | KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY | \
			 KFI_MR_RMA_EVENT | KFI_MR_ENDPOINT)

/* No offer needs what the consumer isn't ready for; bits that aren't needed are cleared. */
static void ready_for(struct kfi_test *t, int mode)
{
	struct kfi_info *hints = hints_for(mode), *info, *i;
	int ret;

	if (!EXPECT(t, hints, "no memory"))
		return;
	ret = ask(hints, &info);
	kfi_freeinfo(hints);
	EXPECT(t, !ret || ret == -KFI_ENODATA, "mr_mode %#x gives %d", mode, ret);
	for (i = info; i; i = i->next) {
		EXPECT(t, !(i->domain_attr->mr_mode & ~mode), "an offer needs %#x of %#x",
		       i->domain_attr->mr_mode, mode);
		EXPECT(t, !(i->domain_attr->mr_mode & ~ALL_MODES), "an offer with mr_mode %#x",
		       i->domain_attr->mr_mode);
	}
	kfi_freeinfo(info);
}

static void negotiation_case(struct kfi_test *t)
{
	int mode;

	for (mode = 0; mode <= ALL_MODES; mode++)
		if (!(mode & ~ALL_MODES))
			ready_for(t, mode);
	ready_for(t, ~0);
}

/* The fields of every offer. */
static void offers_case(struct kfi_test *t)
{
	const u64 caps = KFI_RMA | KFI_REMOTE_READ | KFI_REMOTE_WRITE;
	struct kfi_info *i;

	for (i = t->env->info; i; i = i->next) {
		const struct kfi_domain_attr *d = i->domain_attr;

		EXPECT(t, !strcmp(i->fabric_attr->prov_name, under_test->name), "provider %s",
		       i->fabric_attr->prov_name);
		EXPECT(t, (i->caps & caps) == caps, "caps %#llx", i->caps);
		EXPECT(t, d->mr_iov_limit && d->mr_cnt && d->mr_key_size, "a limit of 0");
		if (!(d->mr_mode & KFI_MR_RAW))
			EXPECT(t, d->mr_key_size <= 8, "keys of %zu bytes", d->mr_key_size);
		ktap_note("offer %s: mr_mode %#x, %zu regions, %zu segments, keys of %zu bytes",
			  d->name, d->mr_mode, d->mr_cnt, d->mr_iov_limit, d->mr_key_size);
	}
}

/* kfi_tostr() has each bit by its name. */
static void tostr_case(struct kfi_test *t)
{
	unsigned int i;
	char *text;

	for (i = 0; i < ARRAY_SIZE(bits); i++) {
		text = kfi_tostr(&bits[i].bit, KFI_TYPE_MR_MODE);
		EXPECT(t, text && !strcmp(text, bits[i].name), "%s is '%s'", bits[i].name, text);
		kfree(text);
	}
}

/* The domain opens, and regions in it are reached in whatever way it has come to. */
static void opens(struct kfi_test *t, struct place *p, const char *without)
{
	struct place *other = place_open_info(t, p->info);
	unsigned int failures = t->failures;
	u8 *mem = arena_at(&p->env, MEM_KMALLOC, 0);
	struct kfid_mr *mr;

	if (other) {
		if (EXPECT_EQ(t, register_buf(other, mem, LEN, KFI_REMOTE, &mr), 0)) {
			good(t, other, mr, mem, LEN);
			close_mr(t, mr);
		}
		place_close(t, other);
	}
	if (!other || t->failures > failures)
		ktap_note("above: without %s", without);
}

/*
 * A domain isn't opened for a consumer who isn't ready for what it needs. A provider that has the
 * mode without any bits needs none of them.
 */
static void lacking_in(struct kfi_test *t, struct place *p)
{
	struct kfid_domain *domain;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(bits); i++) {
		if (!(p->mode & bits[i].bit))
			continue;
		p->info->domain_attr->mr_mode = p->mode & ~bits[i].bit;
		if (has_feature(F_DEFAULT)) {
			opens(t, p, bits[i].name);
		} else {
			ret = kfi_domain(t->env->fabric, p->info, &domain, NULL);
			EXPECT(t, ret == -KFI_ENODATA, "without %s: %d", bits[i].name, ret);
			EXPECT(t, !domain, "*domain is not NULL");
			if (!ret)
				kfi_close(&domain->fid);
		}
		p->info->domain_attr->mr_mode = p->mode;
	}
}

static void lacking_case(struct kfi_test *t)
{
	in_each_mode(t, lacking_in);
}

/* Ready for local registration: whether it is needed or not, it works, and gives a descriptor. */
static void local_case(struct kfi_test *t)
{
	struct kfi_info *info = offer_of(t, has_feature(F_DEFAULT) ? MODE_DEFAULT : MODE_BASIC);
	struct kfid_mr *mr;
	struct place *p;
	u8 *mem;

	if (!EXPECT(t, info, "no offer"))
		return;
	info->domain_attr->mr_mode |= KFI_MR_LOCAL;
	p = place_open_info(t, info);
	if (p) {
		mem = arena_at(&p->env, MEM_KMALLOC, 0);
		if (EXPECT_EQ(t, register_buf(p, mem, LEN, KFI_SEND | KFI_RECV | KFI_READ |
					      KFI_WRITE, &mr), 0)) {
			EXPECT(t, kfi_mr_desc(mr), "no descriptor");
			refuses(t, p, mr->iova, mr->key, mem, LEN);
			close_mr(t, mr);
		}
		place_close(t, p);
	}
	kfi_freeinfo(info);
}

#define FEW	4

/* A domain has the limits that it was opened with. */
static void count_in(struct kfi_test *t, struct place *p)
{
	struct kfid_mr *mrs[FEW + 1] = {};
	struct kfi_info *info = p->info;
	struct place *few;
	unsigned int i;
	u8 *mem;

	info->domain_attr->mr_cnt = FEW;
	few = place_open_info(t, info);
	if (!few)
		return;
	mem = arena_at(&few->env, MEM_KMALLOC, 0);
	for (i = 0; i <= FEW; i++)
		EXPECT_EQ(t, kfi_mr_reg(few->env.domain, mem, LEN, KFI_REMOTE, 0, 100 + i, 0,
					&mrs[i], NULL), i < FEW ? 0 : -KFI_ENOSPC);
	EXPECT(t, !mrs[FEW], "*mr after a refusal");
	/* One goes, and there is room for one. */
	for (i = FEW; i-- > 0;)
		if (mrs[i] && EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0) &&
		    EXPECT_EQ(t, register_buf(few, mem, LEN, KFI_REMOTE, &mrs[i]), 0)) {
			good(t, few, mrs[i], mem, LEN);
			close_mr(t, mrs[i]);
		}
	place_close(t, few);
}

static void count_case(struct kfi_test *t)
{
	in_each_mode(t, count_in);
}

static void segments_in(struct kfi_test *t, struct place *p)
{
	struct kfi_info *info = p->info;
	struct reg_req req;
	struct kfid_mr *mr;
	struct place *few;
	unsigned int n;
	u8 *mem;

	info->domain_attr->mr_iov_limit = FEW;
	few = place_open_info(t, info);
	if (!few)
		return;
	mem = arena_at(&few->env, MEM_PAGES, 0);
	for (n = FEW; n <= FEW + 1; n++) {
		if (!EXPECT_EQ(t, reg_prepare(&few->env, &req, t->variant, mem, n * PAGE_SIZE,
					      PAGE_SIZE), 0))
			break;
		/* However a scatterlist was mapped: one entry for each page is what counts here. */
		EXPECT_EQ(t, reg_submit(&req, &mr), req.count <= FEW ? 0 : -KFI_E2BIG);
		if (mr) {
			good(t, few, mr, mem, n * PAGE_SIZE);
			close_mr(t, mr);
		}
		reg_finish(&few->env, &req);
	}
	place_close(t, few);
}

static void segments_case(struct kfi_test *t)
{
	in_each_mode(t, segments_in);
}

/* More than there is can't be asked for: neither in hints nor of a domain. */
static void too_much_in(struct kfi_test *t, struct place *p)
{
	struct kfi_domain_attr *attr = p->info->domain_attr;
	size_t *limits[] = { &attr->mr_cnt, &attr->mr_iov_limit };
	struct kfid_domain *domain;
	struct kfi_info *info;
	unsigned int i;
	size_t had;

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		had = *limits[i];
		*limits[i] = SIZE_MAX;
		EXPECT_EQ(t, kfi_domain(t->env->fabric, p->info, &domain, NULL), -KFI_ENODATA);
		EXPECT_EQ(t, ask(p->info, &info), -KFI_ENODATA);
		EXPECT(t, !domain && !info, "an object after a refusal");
		*limits[i] = had;
	}
}

static void too_much_case(struct kfi_test *t)
{
	in_each_mode(t, too_much_in);
}

static const struct kfi_case cases[] = {
	ALWAYS("negotiation", 0, F_MODES, negotiation_case),
	ALWAYS("offers", 0, F_MODES, offers_case),
	ALWAYS("tostr", 0, F_MODES, tostr_case),
	ALWAYS("lacking", 0, F_MODES, lacking_case),
	ALWAYS("local", 0, F_LOCAL, local_case),
	ALWAYS("mr_cnt", 0, F_LIMITS, count_case),
	ALWAYS("mr_iov_limit", LIST_CALLS, F_LIMITS, segments_case),
	ALWAYS("too_much", 0, F_LIMITS, too_much_case),
};

SECTION(section_modes);
