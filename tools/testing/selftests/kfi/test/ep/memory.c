// SPDX-License-Identifier: GPL-2.0
/* A connection, and memory at both sides. */
#include "ep.h"

bool ep_memory_open(struct kfi_test *t, struct ep_memory *m, const struct ep_wants *wants, size_t len)
{
	m->p = ep_connected(t, wants);
	m->there = kzalloc(len, GFP_KERNEL);
	m->here = kzalloc(len, GFP_KERNEL);
	return m->p && EXPECT(t, m->there && m->here, "no memory");
}

void ep_memory_close(struct kfi_test *t, struct ep_memory *m)
{
	if (m->mr)
		EXPECT_EQ(t, kfi_close(&m->mr->fid), 0);
	if (m->p)
		ep_pair_close(t, m->p);
	kfree(m->there);
	kfree(m->here);
}
