// SPDX-License-Identifier: GPL-2.0
/* Endpoints without a connection: regions that are bound to one (KFI_MR_ENDPOINT), and authorization keys. */
#include <kfi_endpoint.h>

#include "conform.h"

#define LEN	(PAGE_SIZE + 13)
#define INTO_PAGE	96

/* An endpoint with an authorization key of @size bytes, all @fill. */
static struct kfid_ep *open_ep(struct kfi_test *t, struct place *p, u8 fill, size_t size)
{
	struct kfi_info *info = kfi_dupinfo(p->info);
	struct kfid_ep *ep = NULL;

	if (!EXPECT(t, info, "no memory"))
		return NULL;
	if (size) {
		info->ep_attr->auth_key = kmalloc(size, GFP_KERNEL);
		info->ep_attr->auth_key_size = size;
		if (EXPECT(t, info->ep_attr->auth_key, "no memory"))
			memset(info->ep_attr->auth_key, fill, size);
	}
	if (EXPECT_EQ(t, kfi_endpoint(p->env.domain, info, &ep, NULL), 0) &&
	    !EXPECT_EQ(t, kfi_enable(ep), 0)) {
		EXPECT_EQ(t, kfi_close(&ep->fid), 0);
		ep = NULL;
	}
	kfi_freeinfo(info);
	return ep;
}

/* A place with two endpoints, and a region that belongs to none yet. */
struct ends {
	struct place *p;
	struct kfid_ep *ep;
	struct kfid_ep *other;
	struct kfid_mr *mr;
	u8 *mem;
};

static void ends_end(struct kfi_test *t, struct ends *e)
{
	if (e->mr)
		close_mr(t, e->mr);
	if (e->ep)
		EXPECT_EQ(t, kfi_close(&e->ep->fid), 0);
	if (e->other)
		EXPECT_EQ(t, kfi_close(&e->other->fid), 0);
	place_close(t, e->p);
}

static bool ends_begin(struct kfi_test *t, struct ends *e)
{
	*e = (struct ends) { .p = place_open(t, mode_with(t, KFI_MR_ENDPOINT)) };
	if (!e->p)
		return false;
	e->mem = arena_at(&e->p->env, MEM_KMALLOC, INTO_PAGE);
	e->ep = open_ep(t, e->p, 0, 0);
	e->other = open_ep(t, e->p, 0, 0);
	if (e->ep && e->other &&
	    EXPECT_EQ(t, kfi_mr_reg(e->p->env.domain, e->mem, LEN, KFI_REMOTE, 0, 3, 0, &e->mr,
				    NULL), 0))
		return true;
	ends_end(t, e);
	return false;
}

/* Not reachable through anything there is. */
static void not_reachable(struct kfi_test *t, struct ends *e)
{
	struct kfid *ways[] = { &e->p->env.domain->fid, &e->other->fid, e->ep ? &e->ep->fid : NULL };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		e->p->target = ways[i];
		if (ways[i])
			refuses(t, e->p, e->mr->iova, 3, e->mem, LEN);
	}
	e->p->target = &e->p->env.domain->fid;
}

/* Bound and enabled, a region is reachable through its endpoint only, and as long as that is open. */
static void endpoint_case(struct kfi_test *t)
{
	struct ends e;

	if (!ends_begin(t, &e))
		return;
	not_reachable(t, &e);
	EXPECT_EQ(t, kfi_mr_bind(e.mr, &e.ep->fid, 0), 0);
	not_reachable(t, &e);
	EXPECT_EQ(t, kfi_mr_enable(e.mr), 0);
	e.p->target = &e.ep->fid;
	good(t, e.p, e.mr, e.mem, LEN);
	e.p->target = &e.other->fid;
	refuses(t, e.p, e.mr->iova, e.mr->key, e.mem, LEN);
	e.p->target = &e.p->env.domain->fid;
	refuses(t, e.p, e.mr->iova, e.mr->key, e.mem, LEN);
	/* The region doesn't keep its endpoint open, and is closed after it all the same. */
	EXPECT_EQ(t, kfi_close(&e.ep->fid), 0);
	e.ep = NULL;
	not_reachable(t, &e);
	ends_end(t, &e);
}

/* An endpoint that is bound to a region doesn't keep the region from being closed. */
static void not_busy_case(struct kfi_test *t)
{
	struct ends e;
	u64 key, iova;

	if (!ends_begin(t, &e))
		return;
	EXPECT_EQ(t, kfi_mr_bind(e.mr, &e.ep->fid, 0), 0);
	EXPECT_EQ(t, kfi_mr_enable(e.mr), 0);
	e.p->target = &e.ep->fid;
	good(t, e.p, e.mr, e.mem, LEN);
	key = e.mr->key;
	iova = e.mr->iova;
	close_mr(t, e.mr);
	e.mr = NULL;
	refuses(t, e.p, iova, key, e.mem, LEN);
	e.p->target = &e.p->env.domain->fid;
	ends_end(t, &e);
}

static void states_case(struct kfi_test *t)
{
	struct ends e, far;

	if (!ends_begin(t, &e))
		return;
	EXPECT_EQ(t, kfi_mr_enable(e.mr), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_bind(e.mr, NULL, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_bind(e.mr, &e.p->env.domain->fid, 0), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_bind(e.mr, &e.ep->fid, KFI_REMOTE_WRITE), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_mr_bind(e.mr, &e.ep->fid, KFI_MORE), -KFI_EBADFLAGS);
	if (ends_begin(t, &far)) {
		EXPECT_EQ(t, kfi_mr_bind(e.mr, &far.ep->fid, 0), -KFI_EINVAL);
		ends_end(t, &far);
	}
	EXPECT_EQ(t, kfi_mr_bind(e.mr, &e.ep->fid, 0), 0);
	EXPECT_EQ(t, kfi_mr_enable(e.mr), 0);
	EXPECT_EQ(t, kfi_mr_enable(e.mr), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, kfi_mr_bind(e.mr, &e.other->fid, 0), -KFI_EOPBADSTATE);
	e.p->target = &e.ep->fid;
	good(t, e.p, e.mr, e.mem, LEN);
	e.p->target = &e.p->env.domain->fid;
	ends_end(t, &e);
}

#define AUTH_LEN	8

/* The endpoints that can reach the region: those with the key of all @fill, and nobody else. */
static void only(struct kfi_test *t, struct place *p, struct kfid_mr *mr, u8 *mem, u8 fill)
{
	struct kfid_ep *same = open_ep(t, p, fill, AUTH_LEN);
	struct kfid_ep *different = open_ep(t, p, fill + 1, AUTH_LEN);
	struct kfid_ep *shorter = open_ep(t, p, fill, AUTH_LEN - 1);

	if (same && different && shorter) {
		p->initiator = &same->fid;
		good(t, p, mr, mem, LEN);
		p->initiator = &different->fid;
		refuses(t, p, mr->iova, mr->key, mem, LEN);
		p->initiator = &shorter->fid;
		refuses(t, p, mr->iova, mr->key, mem, LEN);
		p->initiator = NULL;
		refuses(t, p, mr->iova, mr->key, mem, LEN);
	}
	if (same)
		EXPECT_EQ(t, kfi_close(&same->fid), 0);
	if (different)
		EXPECT_EQ(t, kfi_close(&different->fid), 0);
	if (shorter)
		EXPECT_EQ(t, kfi_close(&shorter->fid), 0);
}

static void auth_key_in(struct kfi_test *t, struct place *p)
{
	u8 *mem = arena_at(&p->env, MEM_KMALLOC, INTO_PAGE);
	u8 auth_key[AUTH_LEN];
	struct reg_req req;
	struct kfid_mr *mr;

	memset(auth_key, 7, sizeof(auth_key));
	if (!EXPECT_EQ(t, reg_prepare(&p->env, &req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return;
	req.auth_key = auth_key;
	req.auth_key_size = sizeof(auth_key);
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		/* It is the bytes that count, and they are needed for the call only. */
		memset(auth_key, 0, sizeof(auth_key));
		only(t, p, mr, mem, 7);
		close_mr(t, mr);
	}
	/* A size of 0 is no key, whatever is at the pointer: then the domain's counts, here none. */
	req.auth_key_size = 0;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		good(t, p, mr, mem, LEN);
		close_mr(t, mr);
	}
	reg_finish(&p->env, &req);
}

static void auth_key_case(struct kfi_test *t)
{
	in_each_mode(t, auth_key_in);
}

/* The domain's key is that of its regions, and of its endpoints, that were given none. */
static void domain_key_in(struct kfi_test *t, struct place *p)
{
	struct kfi_domain_attr *attr = p->info->domain_attr;
	struct place *keyed;
	struct kfid_mr *mr;
	struct kfid_ep *ep;
	u8 *mem;

	kfree(attr->auth_key);
	attr->auth_key = kmalloc(AUTH_LEN, GFP_KERNEL);
	attr->auth_key_size = AUTH_LEN;
	if (!EXPECT(t, attr->auth_key, "no memory"))
		return;
	memset(attr->auth_key, 9, AUTH_LEN);
	keyed = place_open_info(t, p->info);
	if (!keyed)
		return;
	mem = arena_at(&keyed->env, MEM_KMALLOC, INTO_PAGE);
	if (EXPECT_EQ(t, register_buf(keyed, mem, LEN, KFI_REMOTE, &mr), 0)) {
		only(t, keyed, mr, mem, 9);
		ep = open_ep(t, keyed, 0, 0);
		if (ep) {
			keyed->initiator = &ep->fid;
			good(t, keyed, mr, mem, LEN);
			EXPECT_EQ(t, kfi_close(&ep->fid), 0);
		}
		keyed->initiator = NULL;
		close_mr(t, mr);
	}
	place_close(t, keyed);
}

static void domain_key_case(struct kfi_test *t)
{
	in_each_mode(t, domain_key_in);
}

static const struct kfi_case cases[] = {
	CHECK("endpoint", 0, F_PLAIN_ENDPOINTS, endpoint_case, refused_endpoints),
	CHECK("endpoint_not_busy", 0, F_PLAIN_ENDPOINTS, not_busy_case, refused_endpoints),
	CHECK("endpoint_states", 0, F_PLAIN_ENDPOINTS, states_case, refused_endpoints),
	CHECK("auth_key", ATTR_CALLS, F_AUTH_KEYS, auth_key_case, refused_auth_keys),
	CHECK("auth_key_of_domain", 0, F_AUTH_KEYS, domain_key_case, refused_auth_keys),
};

SECTION(section_endpoints);
