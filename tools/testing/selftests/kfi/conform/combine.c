// SPDX-License-Identifier: GPL-2.0
/*
 * Every combination of mr_mode bits that a consumer may be ready for: a bit that the provider doesn't
 * need changes nothing, the others mean what they say, whatever they are combined with.
 */
#include "conform.h"

#define LEN	(PAGE_SIZE + 77)
#define INTO_PAGE	66
#define KEY	3

#define ALL_MODES	(KFI_MR_LOCAL | KFI_MR_RAW | KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY | \
			 KFI_MR_RMA_EVENT | KFI_MR_ENDPOINT)

static void check_mode(struct kfi_test *t, struct place *p, struct kfid_mr *mr, u8 *mem)
{
	bool prov_key = !has_feature(F_DEFAULT) || (p->mode & KFI_MR_PROV_KEY);
	bool virt_addr = !has_feature(F_DEFAULT) || (p->mode & KFI_MR_VIRT_ADDR);
	u64 key = kfi_mr_key(mr);

	if ((p->mode & KFI_MR_ENDPOINT) && has_feature(F_PLAIN_ENDPOINTS)) {
		EXPECT(t, key == KFI_KEY_NOTAVAIL, "a disabled region has a key");
		refuses(t, p, mr->iova, KEY, mem, LEN);
		return;
	}
	EXPECT(t, !mr->iova == !virt_addr, "iova %#llx", mr->iova);
	if (p->mode & KFI_MR_RAW) {
		EXPECT(t, key == KFI_KEY_NOTAVAIL, "a key that needs no mapping");
		return;
	}
	EXPECT(t, prov_key || key == KEY, "key %#llx", key);
	good(t, p, mr, mem, LEN);
}

static void one_mode(struct kfi_test *t, struct kfi_info *info)
{
	struct kfid_mr *mr;
	struct place *p = place_open_info(t, info);
	u8 *mem;

	if (!p)
		return;
	mem = arena_at(&p->env, MEM_KMALLOC, INTO_PAGE);
	if (EXPECT_EQ(t, kfi_mr_reg(p->env.domain, mem, LEN, KFI_REMOTE, 0, KEY, 0, &mr, NULL),
		      0)) {
		check_mode(t, p, mr, mem);
		close_mr(t, mr);
	}
	place_close(t, p);
}

static void combinations_case(struct kfi_test *t)
{
	struct kfi_info *info = offer_of(t, MODE_BASIC);
	unsigned int failures;
	int mode;

	if (!EXPECT(t, info, "no offer"))
		return;
	for (mode = 0; mode <= ALL_MODES; mode++) {
		/* A provider that isn't there for everybody needs these two: another case's matter. */
		if ((mode & ~ALL_MODES) || (!has_feature(F_DEFAULT) && (~mode & MODE_BASIC)))
			continue;
		failures = t->failures;
		info->domain_attr->mr_mode = mode;
		one_mode(t, info);
		if (t->failures > failures)
			ktap_note("combinations: above: mr_mode %#x", mode);
	}
	kfi_freeinfo(info);
}

static const struct kfi_case cases[] = {
	ALWAYS("combinations", 0, F_MODES, combinations_case),
};

SECTION(section_combine);
