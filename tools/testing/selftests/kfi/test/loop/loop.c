// SPDX-License-Identifier: GPL-2.0
/*
 * The loopback provider: every mode of registration, and every rule of an access, without a device
 * between.
 */
#include "refusal/list_end.h"
#include "loop.h"
#include "suites.h"

#define LEN	(PAGE_SIZE + 300)
#define INTO_PAGE	200

#define ANY_MODE	(KFI_MR_LOCAL | KFI_MR_RAW | KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY | \
			 KFI_MR_RMA_EVENT | KFI_MR_ENDPOINT)

static const int offered[] = {
	0,
	KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY,
	KFI_MR_RMA_EVENT,
	KFI_MR_ENDPOINT,
	KFI_MR_RAW | KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY,
};

/* The offers for a consumer that agrees to @mr_mode: those that ask for no more, in their order. */
static void offers(struct kfi_test *t, int mr_mode)
{
	struct kfi_info *hints = kfi_allocinfo(), *list = NULL, *i;
	int n = 0, connected = 0;

	if (!EXPECT(t, hints, "no memory"))
		return;
	hints->domain_attr->mr_mode = mr_mode;
	hints->domain_attr->name = kstrdup("loop0", GFP_KERNEL);
	hints->fabric_attr->prov_name = kstrdup("loop", GFP_KERNEL);
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, &list), 0);
	for (i = list; i; i = i->next) {
		/* Those with connected endpoints come behind those without. */
		if (i->ep_attr->type == KFI_EP_MSG) {
			EXPECT(t, !(i->domain_attr->mr_mode & ~mr_mode), "an offer that asks more");
			connected++;
			continue;
		}
		EXPECT(t, !connected, "an offer without endpoints behind one with some");
		while (n < ARRAY_SIZE(offered) && offered[n] & ~mr_mode)
			n++;
		if (!EXPECT(t, n < ARRAY_SIZE(offered), "too many offers"))
			break;
		EXPECT_EQ(t, i->domain_attr->mr_mode, offered[n++]);
		EXPECT(t, !strcmp(i->domain_attr->name, "loop0"), "domain %s",
		       i->domain_attr->name);
		EXPECT(t, !strcmp(i->fabric_attr->name, "loop"), "fabric %s",
		       i->fabric_attr->name);
		EXPECT(t, (i->caps & (KFI_RMA | KFI_REMOTE)) == (KFI_RMA | KFI_REMOTE),
		       "caps %#llx", i->caps);
	}
	EXPECT(t, connected, "no connected endpoints");
	kfi_freeinfo(list);
	kfi_freeinfo(hints);
}

static void offers_case(struct kfi_test *t)
{
	offers(t, 0);
	offers(t, BASIC_MODE);
	offers(t, BASIC_MODE | KFI_MR_RAW);
	offers(t, KFI_MR_RMA_EVENT | KFI_MR_ENDPOINT);
	offers(t, ANY_MODE);
	offers(t, -1);
}

/* A domain does what its info says, in every combination. */
static void modes_case(struct kfi_test *t)
{
	struct kfid_mr *mr;
	struct loop *l;
	int mode;
	u8 *mem;

	for (mode = 0; mode <= ANY_MODE && !t->failures; mode += KFI_MR_LOCAL) {
		l = loop_open(t, mode);
		if (!l)
			return;
		mem = arena_at(&l->env, MEM_KMALLOC, INTO_PAGE);
		if (!(mode & KFI_MR_ENDPOINT) &&
		    EXPECT_EQ(t, loop_reg(l, mem, LEN, KFI_REMOTE, 77, &mr), 0)) {
			if (mode & KFI_MR_RAW)
				EXPECT(t, kfi_mr_key(mr) == KFI_KEY_NOTAVAIL, "a key");
			else if (!(mode & KFI_MR_PROV_KEY))
				EXPECT_EQ(t, kfi_mr_key(mr), 77);
			EXPECT_EQ(t, !!mr->iova, !!(mode & KFI_MR_VIRT_ADDR));
			EXPECT_EQ(t, !!kfi_mr_desc(mr), !!(mode & KFI_MR_LOCAL));
			if (!(mode & KFI_MR_RAW))
				loop_reaches(t, l, mr->iova, kfi_mr_key(mr), mem, LEN);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
		if (t->failures)
			ktap_note("mode %#x", mode);
		loop_close(t, l);
	}
}

static void not_there_case(struct kfi_test *t)
{
	struct kfi_info *info = loop_info(t, 0);
	struct kfid_domain *domain = (void *)1;
	struct kfid_fabric *fabric;

	if (!info)
		return;
	if (EXPECT_EQ(t, kfi_fabric(info->fabric_attr, &fabric, NULL), 0)) {
		kfree(info->domain_attr->name);
		info->domain_attr->name = kstrdup("loop64", GFP_KERNEL);
		EXPECT_EQ(t, kfi_domain(fabric, info, &domain, NULL), -KFI_ENODEV);
		EXPECT(t, !domain, "*domain is not NULL");
		EXPECT_EQ(t, kfi_close(&fabric->fid), 0);
	}
	kfree(info->fabric_attr->name);
	info->fabric_attr->name = kstrdup("loop0", GFP_KERNEL);
	EXPECT_EQ(t, kfi_fabric(info->fabric_attr, &fabric, NULL), -KFI_ENODEV);
	kfi_freeinfo(info);
}

/* Each call, with segments that meet anywhere: there is no device to mind gaps. */
static void calls_case(struct kfi_test *t)
{
	static const size_t splits[] = { SPLIT_NONE, 8, 100, PAGE_SIZE };
	struct loop *l = loop_open(t, BASIC_MODE);
	struct reg_req req;
	struct kfid_mr *mr;
	enum mem_kind kind;
	u64 addr, key;
	u8 *mem;
	int i;

	if (!l)
		return;
	for (kind = 0; kind < MEM_KINDS; kind++) {
		for (i = 0; i < ARRAY_SIZE(splits); i++) {
			mem = arena_at(&l->env, kind, INTO_PAGE);
			/* As many segments as there is room for, at most. */
			if (reg_segments(t->variant, mem, LEN, splits[i]) > l->env.room)
				continue;
			if (!EXPECT_EQ(t, reg_prepare(&l->env, &req, t->variant, mem, LEN,
						      splits[i]), 0))
				break;
			if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
				addr = mr->iova;
				key = kfi_mr_key(mr);
				loop_reaches(t, l, addr, key, mem, LEN);
				loop_reaches(t, l, addr + 5, key, mem + 5, LEN - 5);
				loop_reaches(t, l, addr + LEN - 1, key, mem + LEN - 1, 1);
				EXPECT_EQ(t, kfi_close(&mr->fid), 0);
				loop_denied(t, l, addr, key, mem, LEN);
			}
			reg_finish(&l->env, &req);
		}
	}
	loop_close(t, l);
}

/* Pieces of a list in any order, one of them twice, with gaps everywhere. */
static void gaps_case(struct kfi_test *t)
{
	struct loop *l = loop_open(t, 0);
	struct kfid_mr *mr;
	struct kvec kv[4];
	u8 *mem, *out;

	if (!l)
		return;
	mem = arena_at(&l->env, MEM_VMALLOC, 0);
	out = l->env.scratch;
	kv[0] = (struct kvec) { mem + 2 * PAGE_SIZE - 1, 3 };
	kv[1] = (struct kvec) { mem + 10, 1 };
	kv[2] = (struct kvec) { mem + PAGE_SIZE, 2 };
	kv[3] = kv[1];
	memset(mem, 0, 4 * PAGE_SIZE);
	if (EXPECT_EQ(t, kfi_mr_regv(l->env.domain, kv, 4, KFI_REMOTE, 0, 1, 0, &mr, NULL), 0)) {
		EXPECT_EQ(t, loop_write(l, 0, 1, "abcdefg", 7), 0);
		EXPECT(t, !memcmp(mem + 2 * PAGE_SIZE - 1, "abc", 3), "first piece");
		EXPECT(t, mem[10] == 'g' && !mem[9] && !mem[11], "second and fourth piece");
		EXPECT(t, !memcmp(mem + PAGE_SIZE - 1, "\0ef", 4), "third piece");
		EXPECT_EQ(t, loop_read(l, 0, 1, out, 7), 0);
		EXPECT(t, !memcmp(out, "abcgefg", 7), "read %.7s", out);
		EXPECT_EQ(t, loop_read(l, 2, 1, out, 3), 0);
		EXPECT(t, !memcmp(out, "cge", 3), "read %.3s", out);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	loop_close(t, l);
}

static void loop_list_end_case(struct kfi_test *t)
{
	struct loop *l = loop_open(t, 0);

	if (!l)
		return;
	list_end(t, &l->env, true);
	loop_close(t, l);
}

static const struct kfi_case cases[] = {
	{ "offers", offers_case },
	{ "modes", modes_case },
	{ "not_there", not_there_case },
	{ "calls", calls_case, ALL_CALLS },
	{ "gaps", gaps_case },
	{ "list_end", loop_list_end_case },
	{ "application_key", loop_application_key_case },
	{ "provider_key", loop_provider_key_case },
	{ "key_range", loop_key_range_case },
	{ "counter", loop_counter_case },
	{ "endpoint", loop_endpoint_case },
	{ "auth_key", loop_auth_key_case },
	{ "extras", loop_extras_case },
	{ "close_race", loop_close_race_case },
	{ "refresh", loop_refresh_case },
	{ "refresh_pages", loop_refresh_pages_case },
	{ "pieces", loop_pieces_case },
	{ "million", loop_million_case },
};

const struct kfi_suite suite_loop = {
	.name = "loop",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
	.bare = true,
};
