// SPDX-License-Identifier: GPL-2.0
/* Opening a domain of the loopback provider, and what a peer can and can't reach there. */
#include "loop.h"

#define PAGES	40

/* The offer of exactly this mode, alone; NULL is a failure that has been reported. */
struct kfi_info *loop_info(struct kfi_test *t, int mr_mode)
{
	struct kfi_info *hints = kfi_allocinfo(), *list = NULL, *i, *found = NULL;

	if (!EXPECT(t, hints, "no memory"))
		return NULL;
	hints->domain_attr->mr_mode = mr_mode;
	hints->fabric_attr->prov_name = kstrdup("loop", GFP_KERNEL);
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, &list), 0);
	for (i = list; i && !found; i = i->next)
		if (i->domain_attr->mr_mode == mr_mode)
			found = kfi_dupinfo(i);
	/* Others are for who changes an offer's mode. */
	if (list && !found) {
		found = kfi_dupinfo(list);
		if (found)
			found->domain_attr->mr_mode = mr_mode;
	}
	EXPECT(t, found, "no offer");
	kfi_freeinfo(list);
	kfi_freeinfo(hints);
	return found;
}

static int open_extensions(struct loop *l)
{
	void *ops;
	int ret;

	ret = kfi_open_ops(&l->env.domain->fid, KFI_DMA_OPS_1, 0, &ops, NULL);
	if (ret)
		return ret;
	l->env.dma = ops;
	ret = kfi_open_ops(&l->env.domain->fid, KFI_LOOP_OPS_1, 0, &ops, NULL);
	l->ops = ops;
	return ret;
}

/* Takes @info over. NULL is a failure that has been reported. */
struct loop *loop_open_info(struct kfi_test *t, struct kfi_info *info)
{
	struct loop *l = kzalloc_obj(*l);

	if (!EXPECT(t, l && info, "no memory or no info"))
		goto err;
	l->env.info = info;
	l->env.max_pages = PAGES;
	l->env.max_segs = PAGES;
	if (!EXPECT_EQ(t, lists_alloc(&l->env), 0) || !EXPECT_EQ(t, arenas_alloc(&l->env), 0))
		goto err_lists;
	if (!EXPECT_EQ(t, env_open_domain(info, &l->env.fabric, &l->env.domain), 0))
		goto err_lists;
	l->target = &l->env.domain->fid;
	if (EXPECT_EQ(t, open_extensions(l), 0))
		return l;
	kfi_close(&l->env.domain->fid);
	kfi_close(&l->env.fabric->fid);
err_lists:
	arenas_free(&l->env);
	lists_free(&l->env);
err:
	kfree(l);
	kfi_freeinfo(info);
	return NULL;
}

struct loop *loop_open(struct kfi_test *t, int mr_mode)
{
	struct kfi_info *info = loop_info(t, mr_mode);

	return info ? loop_open_info(t, info) : NULL;
}

void loop_close(struct kfi_test *t, struct loop *l)
{
	EXPECT_EQ(t, kfi_close(&l->env.domain->fid), 0);
	EXPECT_EQ(t, kfi_close(&l->env.fabric->fid), 0);
	arenas_free(&l->env);
	lists_free(&l->env);
	kfi_freeinfo(l->env.info);
	kfree(l);
}

int loop_reg(struct loop *l, void *buf, size_t len, u64 access, u64 key, struct kfid_mr **mr)
{
	return kfi_mr_reg(l->env.domain, buf, len, access, 0, key, 0, mr, NULL);
}

int loop_write(struct loop *l, u64 addr, u64 key, const void *buf, size_t len)
{
	return l->ops->write(l->target, l->initiator, addr, key, buf, len);
}

int loop_read(struct loop *l, u64 addr, u64 key, void *buf, size_t len)
{
	return l->ops->read(l->target, l->initiator, addr, key, buf, len);
}

static unsigned int next_shift(void)
{
	static atomic_t last;

	return atomic_add_return(41, &last);
}

/*
 * The peer reads and writes @len bytes at @addr by @key, and neither less nor more than [@mem,
 * @mem + @len) takes part. Around it there must be GUARD bytes.
 */
bool loop_reaches(struct kfi_test *t, struct loop *l, u64 addr, u64 key, u8 *mem, size_t len)
{
	unsigned int before = next_shift(), after = next_shift(), failures = t->failures;
	u8 *scratch = l->env.scratch;

	pattern(mem - GUARD, len + 2 * GUARD, before);
	memset(scratch, 0, len);
	EXPECT_EQ(t, loop_read(l, addr, key, scratch, len), 0);
	EXPECT(t, pattern_is(scratch, len, before + GUARD), "the peer read other bytes");

	pattern(scratch, len, after);
	EXPECT_EQ(t, loop_write(l, addr, key, scratch, len), 0);
	EXPECT(t, pattern_is(mem, len, after), "the peer wrote other bytes");
	EXPECT(t, pattern_is(mem - GUARD, GUARD, before), "bytes before the region changed");
	EXPECT(t, pattern_is(mem + len, GUARD, before + GUARD + len),
	       "bytes behind the region changed");
	return t->failures == failures;
}

/* The peer can neither read nor write, and neither @mem nor its own bytes change. */
bool loop_denied(struct kfi_test *t, struct loop *l, u64 addr, u64 key, u8 *mem, size_t len)
{
	unsigned int before = next_shift(), failures = t->failures;
	u8 *scratch = l->env.scratch;

	pattern(mem - GUARD, len + 2 * GUARD, before);
	memset(scratch, 0xee, len);
	EXPECT_EQ(t, loop_read(l, addr, key, scratch, len), -KFI_EACCES);
	EXPECT(t, !memchr_inv(scratch, 0xee, len), "a refused read changed the peer's bytes");
	EXPECT_EQ(t, loop_write(l, addr, key, scratch, len), -KFI_EACCES);
	EXPECT(t, pattern_is(mem - GUARD, len + 2 * GUARD, before),
	       "a refused write changed bytes");
	return t->failures == failures;
}
