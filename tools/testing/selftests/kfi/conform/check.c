// SPDX-License-Identifier: GPL-2.0
/* The purpose of a region: a remote side reaches these bytes by that key, and no others. */
#include "conform.h"

static unsigned int next_shift(void)
{
	static unsigned int last;

	return last += 37;
}

/* [@mem, @mem + @len) can be read and written at @addr, and nothing around it changes. */
bool reaches(struct kfi_test *t, struct place *p, u64 addr, u64 key, u8 *mem, size_t len)
{
	unsigned int before = next_shift(), after = next_shift(), failures = t->failures;
	u8 *scratch = p->env.scratch;

	pattern(mem - GUARD, len + 2 * GUARD, before);
	memset(scratch, 0, len);
	EXPECT_EQ(t, under_test->read(p, addr, key, scratch, len), 0);
	EXPECT(t, pattern_is(scratch, len, before + GUARD), "other bytes were read");

	pattern(scratch, len, after);
	EXPECT_EQ(t, under_test->write(p, addr, key, scratch, len), 0);
	EXPECT(t, pattern_is(mem, len, after), "other bytes were written");
	EXPECT(t, pattern_is(mem - GUARD, GUARD, before), "bytes before the region changed");
	EXPECT(t, pattern_is(mem + len, GUARD, before + GUARD + len),
	       "bytes behind the region changed");
	return t->failures == failures;
}

/* Nothing can be read or written at @addr, and @mem stays as it is. */
bool refuses(struct kfi_test *t, struct place *p, u64 addr, u64 key, u8 *mem, size_t len)
{
	unsigned int before = next_shift(), failures = t->failures;
	u8 *scratch = p->env.scratch;

	pattern(mem - GUARD, len + 2 * GUARD, before);
	EXPECT_EQ(t, under_test->read(p, addr, key, scratch, len), -EACCES);
	memset(scratch, 0xee, len);
	EXPECT_EQ(t, under_test->write(p, addr, key, scratch, len), -EACCES);
	EXPECT(t, pattern_is(mem - GUARD, len + 2 * GUARD, before),
	       "a refused write changed bytes");
	return t->failures == failures;
}

/* The region is what was registered, by its own address and key. */
bool good(struct kfi_test *t, struct place *p, struct kfid_mr *mr, u8 *mem, size_t len)
{
	return reaches(t, p, mr->iova, kfi_mr_key(mr), mem, len);
}

void close_mr(struct kfi_test *t, struct kfid_mr *mr)
{
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
}
