// SPDX-License-Identifier: GPL-2.0
/*
 * A peer with random keys, addresses and lengths. A model knows each open region, so it knows whether an
 * access must succeed, and what the memory must be afterwards: all of it, with the pages around the regions.
 */
#include "request.h"
#include "random.h"

#define REGIONS		8
#define AREA		MEM_VMALLOC
#define ACCESSES	1000
/* Pages that regions are in, behind the guard page. */
#define PAGES		6UL

/**
 * struct reached - a region of the case
 * @mr: The region, or NULL.
 * @mem: Its first byte.
 * @len: Its length.
 * @access: Its rights.
 * @closed: The key of the region that was here before it.
 */
struct reached {
	struct kfid_mr *mr;
	u8 *mem;
	size_t len;
	u64 access;
	u64 closed;
};

/**
 * struct accesses - the state of the case
 * @rnd: Random numbers.
 * @region: The regions.
 * @shadow: The bytes that the area must have.
 * @done: The number of accesses that succeeded.
 */
struct accesses {
	struct rnd_state rnd;
	struct reached region[REGIONS];
	u8 *shadow;
	unsigned int done;
};

static u32 any(struct accesses *x, u32 below)
{
	return prandom_u32_state(&x->rnd) % below;
}

static void end(struct kfi_test *t, struct reached *r)
{
	if (!r->mr)
		return;
	r->closed = r->mr->key;
	EXPECT_EQ(t, kfi_close(&r->mr->fid), 0);
	r->mr = NULL;
}

/* Regions may overlap. */
static void begin(struct kfi_test *t, struct accesses *x, struct reached *r)
{
	static const u64 rights[] = { KFI_REMOTE, KFI_REMOTE_READ, KFI_REMOTE_WRITE, KFI_SEND };
	size_t at = any(x, PAGES * PAGE_SIZE - 1);
	enum reg_call call = any(x, REG_CALLS);
	struct reg_req req;

	end(t, r);
	r->mem = t->env->arena[AREA] + PAGE_SIZE + at;
	r->len = 1 + any(x, PAGES * PAGE_SIZE - at);
	r->access = rights[any(x, ARRAY_SIZE(rights))];
	/* The mapping of a scatterlist would have to outlive the call. */
	if (reg_call_in(call, SGL_CALLS))
		call = REG;
	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, call, r->mem, r->len, PAGE_SIZE), 0))
		return;
	req.access = r->access;
	if (!EXPECT_EQ(t, reg_submit(&req, &r->mr), 0))
		r->mr = NULL;
}

/* The memory that the access may reach, or NULL. */
static u8 *allowed(struct accesses *x, u64 addr, u64 key, size_t len, u64 right)
{
	int i;

	for (i = 0; i < REGIONS; i++) {
		struct reached *r = &x->region[i];

		if (r->mr && r->mr->key == key && r->access & right && len <= r->len && addr >= r->mr->iova &&
		    addr - r->mr->iova <= r->len - len)
			return r->mem + (addr - r->mr->iova);
	}
	return NULL;
}

static void access(struct kfi_test *t, struct accesses *x)
{
	struct reached *r = &x->region[any(x, REGIONS)];
	struct kfi_env *env = t->env;
	u64 right = any(x, 2) ? KFI_REMOTE_READ : KFI_REMOTE_WRITE, key = prandom_u32_state(&x->rnd), addr = any(x, 2 * PAGE_SIZE);
	size_t len = 1 + any(x, any(x, 4) ? 64 : (PAGES + 1) * PAGE_SIZE);
	u8 *mem;
	int ret;

	if (r->mr) {
		addr = r->mr->iova + any(x, r->len);
		key = r->mr->key;
	}
	switch (any(x, 16)) {
	case 0:
		addr = ((u64)prandom_u32_state(&x->rnd) << 32) + prandom_u32_state(&x->rnd);
		break;
	case 1:
		addr = U64_MAX - any(x, 2 * PAGE_SIZE);
		break;
	case 2:
		addr -= any(x, 2 * PAGE_SIZE);
		break;
	case 3:
		key = r->closed;
		break;
	case 4:
		key ^= BIT(any(x, 32));
		break;
	case 5:
		key = prandom_u32_state(&x->rnd);
	}
	mem = allowed(x, addr, key, len, right);
	if (right == KFI_REMOTE_READ) {
		ret = peer_read(env, addr, key, env->scratch, len);
		if (mem && !ret)
			EXPECT(t, !memcmp(env->scratch, mem, len), "other bytes were read");
	} else {
		memset(env->scratch, any(x, 256), len);
		ret = peer_write(env, addr, key, env->scratch, len);
		if (mem)
			memcpy(x->shadow + (mem - env->arena[AREA]), env->scratch, len);
	}
	x->done += !ret;
	EXPECT(t, ret == (mem ? 0 : -EACCES), "right %#llx of %zu bytes at %#llx by key %#llx is %d", right, len,
	       addr, key, ret);
	EXPECT(t, !memcmp(x->shadow, env->arena[AREA], (PAGES + 2) * PAGE_SIZE), "bytes changed");
}

static void accesses(struct kfi_test *t, struct accesses *x)
{
	unsigned int i;

	memset(t->env->arena[AREA], 0xc5, t->env->arena_size);
	memset(x->shadow, 0xc5, (PAGES + 2) * PAGE_SIZE);
	for (i = 0; i < scaled(ACCESSES) && !t->failures; i++) {
		if (i % 8 == 0)
			begin(t, x, &x->region[any(x, REGIONS)]);
		access(t, x);
		cond_resched();
	}
	ktap_note("%u accesses, %u of them succeeded", i, x->done);
	for (i = 0; i < REGIONS; i++)
		end(t, &x->region[i]);
}

void random_accesses_case(struct kfi_test *t)
{
	struct accesses *x = kzalloc_obj(*x);
	struct kfi_test own = *t;

	if (!EXPECT(t, x, "no memory"))
		return;
	own.env = env_open();
	x->shadow = kzalloc((PAGES + 2) * PAGE_SIZE, GFP_KERNEL);
	prandom_seed_state(&x->rnd, kfi_seed);
	if (!IS_ERR(own.env)) {
		if (EXPECT(&own, x->shadow, "no memory"))
			accesses(&own, x);
		EXPECT_EQ(&own, env_close(own.env), 0);
		t->failures += own.failures;
	} else {
		EXPECT_EQ(t, PTR_ERR(own.env), 0);
	}
	kfree(x->shadow);
	kfree(x);
}
