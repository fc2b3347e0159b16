// SPDX-License-Identifier: GPL-2.0
/* The obstacles between a peer and a region of the loopback provider: counters, endpoints, keys. */
#include <kfi_endpoint.h>

#include "loop.h"

#define LEN	(PAGE_SIZE + 77)
#define INTO_PAGE	100

static struct kfid_cntr *open_cntr(struct kfi_test *t, struct loop *l)
{
	struct kfi_cntr_attr attr = { .events = KFI_CNTR_EVENTS_COMP };
	struct kfid_cntr *cntr = NULL;

	EXPECT_EQ(t, kfi_cntr_open(l->env.domain, &attr, &cntr, NULL), 0);
	return cntr;
}

/* An endpoint that uses @size bytes of @key, 0 for the domain's. */
static struct kfid_ep *open_ep(struct kfi_test *t, struct loop *l, const char *key, size_t size)
{
	struct kfi_info *info = kfi_dupinfo(l->env.info);
	struct kfid_ep *ep = NULL;

	if (!EXPECT(t, info, "no memory"))
		return NULL;
	info->ep_attr->auth_key = kmemdup(key, size, GFP_KERNEL);
	info->ep_attr->auth_key_size = size;
	EXPECT_EQ(t, kfi_endpoint(l->env.domain, info, &ep, NULL), 0);
	kfi_freeinfo(info);
	return ep;
}

/* Every write that was done is counted, once, and nothing else. */
void loop_counter_case(struct kfi_test *t)
{
	struct loop *l = loop_open(t, KFI_MR_RMA_EVENT);
	struct kfid_cntr *cntr;
	struct kfid_mr *mr;
	u8 *mem;

	if (!l)
		return;
	mem = arena_at(&l->env, MEM_KMALLOC, INTO_PAGE);
	cntr = open_cntr(t, l);
	if (!cntr)
		goto out;
	if (!EXPECT_EQ(t, kfi_mr_reg(l->env.domain, mem, LEN, KFI_REMOTE, 0, 9, KFI_RMA_EVENT, &mr,
				     NULL), 0))
		goto out_cntr;
	loop_denied(t, l, 0, 9, mem, LEN);
	EXPECT_EQ(t, kfi_mr_bind(mr, &cntr->fid, KFI_REMOTE_WRITE), 0);
	loop_denied(t, l, 0, 9, mem, LEN);
	EXPECT_EQ(t, kfi_mr_enable(mr), 0);
	EXPECT_EQ(t, kfi_cntr_read(cntr), 0);
	loop_reaches(t, l, 0, 9, mem, LEN);
	EXPECT_EQ(t, kfi_cntr_read(cntr), 1);
	loop_denied(t, l, 1, 9, mem, LEN);
	EXPECT_EQ(t, loop_write(l, 5, 9, NULL, 0), 0);
	EXPECT_EQ(t, kfi_cntr_read(cntr), 1);
	EXPECT_EQ(t, loop_write(l, LEN - 1, 9, "x", 1), 0);
	EXPECT_EQ(t, kfi_cntr_read(cntr), 2);
	EXPECT_EQ(t, kfi_cntr_readerr(cntr), 0);
	EXPECT_EQ(t, kfi_mr_refresh(mr, NULL, 0, 0), 0);
	EXPECT_EQ(t, loop_write(l, 0, 9, "x", 1), 0);
	EXPECT_EQ(t, kfi_cntr_read(cntr), 3);
	EXPECT_EQ(t, kfi_close(&mr->fid), -KFI_EBUSY);
	EXPECT_EQ(t, kfi_close(&cntr->fid), 0);
	cntr = NULL;
	loop_reaches(t, l, 0, 9, mem, LEN);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
out_cntr:
	if (cntr)
		EXPECT_EQ(t, kfi_close(&cntr->fid), 0);
out:
	loop_close(t, l);
}

/* A region of an endpoint is reached through that endpoint, as long as it's open. */
void loop_endpoint_case(struct kfi_test *t)
{
	struct loop *l = loop_open(t, KFI_MR_ENDPOINT);
	struct kfid_ep *ep, *other;
	struct kfid_mr *mr;
	u8 *mem;

	if (!l)
		return;
	mem = arena_at(&l->env, MEM_KMALLOC, INTO_PAGE);
	ep = open_ep(t, l, "", 0);
	other = open_ep(t, l, "", 0);
	if (!ep || !other || !EXPECT_EQ(t, loop_reg(l, mem, LEN, KFI_REMOTE, 9, &mr), 0))
		goto out;
	l->target = &ep->fid;
	loop_denied(t, l, 0, 9, mem, LEN);
	EXPECT_EQ(t, kfi_mr_bind(mr, &ep->fid, 0), 0);
	EXPECT_EQ(t, kfi_mr_enable(mr), 0);
	loop_denied(t, l, 0, 9, mem, LEN);
	EXPECT_EQ(t, kfi_enable(ep), 0);
	EXPECT_EQ(t, kfi_enable(other), 0);
	loop_reaches(t, l, 0, 9, mem, LEN);
	l->initiator = &other->fid;
	loop_reaches(t, l, 0, 9, mem, LEN);
	l->target = &other->fid;
	loop_denied(t, l, 0, 9, mem, LEN);
	l->target = &l->env.domain->fid;
	loop_denied(t, l, 0, 9, mem, LEN);
	EXPECT_EQ(t, kfi_close(&ep->fid), 0);
	ep = NULL;
	loop_denied(t, l, 0, 9, mem, LEN);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
out:
	if (ep)
		EXPECT_EQ(t, kfi_close(&ep->fid), 0);
	if (other)
		EXPECT_EQ(t, kfi_close(&other->fid), 0);
	l->target = &l->env.domain->fid;
	loop_close(t, l);
}

/* A domain whose objects all use the authorization key "domain", if nothing else is said. */
static struct loop *open_keyed(struct kfi_test *t)
{
	struct kfi_info *info = loop_info(t, 0);

	if (!info)
		return NULL;
	info->domain_attr->auth_key = kmemdup("domain", 6, GFP_KERNEL);
	info->domain_attr->auth_key_size = 6;
	return loop_open_info(t, info);
}

static int reg_keyed(struct loop *l, u8 *mem, u64 key, const char *auth, struct kfid_mr **mr)
{
	struct kvec kv = { mem, LEN };
	struct kfi_mr_attr attr = {
		.type = KFI_KVEC,
		.mr_iov = &kv,
		.iov_count = 1,
		.access = KFI_REMOTE,
		.requested_key = key,
		.auth_key = (u8 *)auth,
		.auth_key_size = strlen(auth),
	};

	return kfi_mr_regattr(l->env.domain, &attr, 0, mr);
}

/* The authorization keys of region and peer must be the same ones, whoever they have them from. */
void loop_auth_key_case(struct kfi_test *t)
{
	static const char *const region[] = { "domain", "own", "owl" };
	struct loop *l = open_keyed(t), *plain = loop_open(t, 0);
	struct kfid_mr *mr[ARRAY_SIZE(region)] = {}, *open;
	struct kfid_ep *ep[ARRAY_SIZE(region)] = {};
	int i, j;
	u8 *mem;

	if (!l || !plain)
		goto out;
	mem = arena_at(&l->env, MEM_KMALLOC, INTO_PAGE);
	for (i = 0; i < ARRAY_SIZE(region); i++) {
		ep[i] = open_ep(t, l, region[i], i ? strlen(region[i]) : 0);
		EXPECT_EQ(t, reg_keyed(l, mem, i, i ? region[i] : "", &mr[i]), 0);
		if (!ep[i] || !mr[i])
			goto close;
	}
	for (i = 0; i < ARRAY_SIZE(region); i++) {
		for (j = 0; j < ARRAY_SIZE(region); j++) {
			l->initiator = &ep[j]->fid;
			(i == j ? loop_reaches : loop_denied)(t, l, 0, i, mem, LEN);
		}
		l->initiator = &l->env.domain->fid;
		(i ? loop_denied : loop_reaches)(t, l, 0, i, mem, LEN);
		/* A peer without a key, and a peer from a domain that has none. */
		l->initiator = NULL;
		loop_denied(t, l, 0, i, mem, LEN);
		l->initiator = &plain->env.domain->fid;
		loop_denied(t, l, 0, i, mem, LEN);
	}
	/* And the other way round. */
	if (EXPECT_EQ(t, loop_reg(plain, mem, LEN, KFI_REMOTE, 4, &open), 0)) {
		loop_reaches(t, plain, 0, 4, mem, LEN);
		plain->initiator = &plain->env.domain->fid;
		loop_reaches(t, plain, 0, 4, mem, LEN);
		plain->initiator = &ep[1]->fid;
		loop_denied(t, plain, 0, 4, mem, LEN);
		EXPECT_EQ(t, kfi_close(&open->fid), 0);
	}
close:
	for (i = 0; i < ARRAY_SIZE(region); i++) {
		if (mr[i])
			EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
		if (ep[i])
			EXPECT_EQ(t, kfi_close(&ep[i]->fid), 0);
	}
out:
	if (plain)
		loop_close(t, plain);
	if (l)
		loop_close(t, l);
}

/* Authorization keys, endpoints and counters can be asked for, as far as there are any. */
void loop_extras_case(struct kfi_test *t)
{
	struct kfi_info *info = loop_info(t, 0), *got = NULL;
	struct kfi_domain_attr *d;

	if (!info)
		return;
	d = info->domain_attr;
	info->caps = KFI_RMA | KFI_RMA_EVENT | KFI_REMOTE;
	info->ep_attr->type = KFI_EP_RDM;
	d->auth_key = kmemdup("secret", 6, GFP_KERNEL);
	d->auth_key_size = 6;
	d->cntr_cnt = 3;
	d->ep_cnt = 3;
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, info, &got), 0);
	if (got) {
		EXPECT_EQ(t, got->domain_attr->auth_key_size, 6);
		EXPECT(t, got->domain_attr->auth_key &&
		       !memcmp(got->domain_attr->auth_key, "secret", 6), "another key");
		EXPECT_EQ(t, got->ep_attr->type, KFI_EP_RDM);
		EXPECT(t, got->domain_attr->cntr_cnt >= 3, "too few counters");
		EXPECT(t, got->caps & KFI_RMA_EVENT, "caps %#llx", got->caps);
		kfi_freeinfo(got);
	}
	d->auth_key_size = 257;
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, info, &got), -KFI_ENODATA);
	d->auth_key_size = 6;
	info->ep_attr->type = KFI_EP_DGRAM;
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, info, &got), -KFI_ENODATA);
	info->ep_attr->type = KFI_EP_UNSPEC;
	d->cntr_cnt = SIZE_MAX;
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, info, &got), -KFI_ENODATA);
	kfi_freeinfo(info);
}
