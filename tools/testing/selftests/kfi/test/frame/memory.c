// SPDX-License-Identifier: GPL-2.0
/*
 * Memory to register, patterns in it, and the check that all tests come down to: a peer reaches
 * these bytes by that key, and no others.
 */
#include "env.h"

/* A prime just below a page: a page taken for another one never goes unnoticed. */
#define PERIOD	4093

static u8 table[PERIOD];

void pattern_init(void)
{
	struct rnd_state rnd;

	prandom_seed_state(&rnd, kfi_seed);
	prandom_bytes_state(&rnd, table, sizeof(table));
}

int arenas_alloc(struct kfi_env *env)
{
	env->arena_size = (env->max_pages + 3) * PAGE_SIZE;
	env->arena[MEM_KMALLOC] = kmalloc(env->arena_size, GFP_KERNEL);
	env->arena[MEM_PAGES] = alloc_pages_exact(env->arena_size, GFP_KERNEL);
	env->arena[MEM_VMALLOC] = vmalloc(env->arena_size);
	env->scratch = vmalloc(env->arena_size);
	if (!env->arena[MEM_KMALLOC] || !env->arena[MEM_PAGES] || !env->arena[MEM_VMALLOC] ||
	    !env->scratch)
		return -ENOMEM;
	return 0;
}

void arenas_free(struct kfi_env *env)
{
	kfree(env->arena[MEM_KMALLOC]);
	if (env->arena[MEM_PAGES])
		free_pages_exact(env->arena[MEM_PAGES], env->arena_size);
	vfree(env->arena[MEM_VMALLOC]);
	vfree(env->scratch);
}

/* Fill @buf with the pattern number @shift. */
void pattern(void *buf, size_t len, unsigned int shift)
{
	size_t n, at = shift % PERIOD;

	for (; len; buf += n, len -= n, at = 0) {
		n = min_t(size_t, len, PERIOD - at);
		memcpy(buf, table + at, n);
	}
}

bool pattern_is(const void *buf, size_t len, unsigned int shift)
{
	size_t n, at = shift % PERIOD;

	for (; len; buf += n, len -= n, at = 0) {
		n = min_t(size_t, len, PERIOD - at);
		if (memcmp(buf, table + at, n))
			return false;
	}
	return true;
}

static unsigned int next_shift(void)
{
	static atomic_t last;

	return atomic_add_return(37, &last);
}

int peer_read(struct kfi_env *env, u64 addr, u64 key, void *buf, size_t len)
{
	if (env->loop)
		return env->loop->read(&env->domain->fid, NULL, addr, key, buf, len);
	return kfi_peer_read(env->peer, addr, key, buf, len);
}

int peer_write(struct kfi_env *env, u64 addr, u64 key, const void *buf, size_t len)
{
	if (env->loop)
		return env->loop->write(&env->domain->fid, NULL, addr, key, buf, len);
	return kfi_peer_write(env->peer, addr, key, buf, len);
}

/*
 * The peer reads @len bytes by the region's key and address, and writes them, and neither less nor
 * more than [@mem, @mem + @len) takes part. Around the region there must be GUARD bytes.
 */
bool check_region(struct kfi_test *t, struct kfid_mr *mr, u8 *mem, size_t len)
{
	struct kfi_env *env = t->env;
	unsigned int before = next_shift(), after = next_shift(), failures = t->failures;

	pattern(mem - GUARD, len + 2 * GUARD, before);
	memset(env->scratch, 0, len);
	EXPECT_EQ(t, peer_read(env, mr->iova, mr->key, env->scratch, len), 0);
	EXPECT(t, pattern_is(env->scratch, len, before + GUARD), "the peer read other bytes");

	pattern(env->scratch, len, after);
	EXPECT_EQ(t, peer_write(env, mr->iova, mr->key, env->scratch, len), 0);
	EXPECT(t, pattern_is(mem, len, after), "the peer wrote other bytes");
	EXPECT(t, pattern_is(mem - GUARD, GUARD, before), "bytes before the region changed");
	EXPECT(t, pattern_is(mem + len, GUARD, before + GUARD + len),
	       "bytes behind the region changed");
	return t->failures == failures;
}

/* The peer can neither read nor write [@iova, @iova + @len), and @mem is as it was. */
bool check_refused(struct kfi_test *t, u64 iova, u64 key, u8 *mem, size_t len)
{
	struct kfi_env *env = t->env;
	unsigned int before = next_shift(), failures = t->failures;

	pattern(mem - GUARD, len + 2 * GUARD, before);
	EXPECT_EQ(t, peer_read(env, iova, key, env->scratch, len), -EACCES);
	memset(env->scratch, 0xee, len);
	EXPECT_EQ(t, peer_write(env, iova, key, env->scratch, len), -EACCES);
	EXPECT(t, pattern_is(mem - GUARD, len + 2 * GUARD, before),
	       "a refused write changed bytes");
	return t->failures == failures;
}
