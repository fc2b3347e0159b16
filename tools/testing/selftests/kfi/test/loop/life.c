// SPDX-License-Identifier: GPL-2.0
/* Regions of the loopback provider from beginning to end, with peers in them; and in pieces. */
#include <linux/delay.h>
#include <linux/kthread.h>

#include "loop.h"
#include "swap.h"

#define LEN	(PAGE_SIZE + 77)
#define INTO_PAGE	100

/* The signals from one thread to another. */
struct busy {
	struct loop *l;
	u64 key;
	unsigned int done;
	unsigned int refused;
	unsigned int wrong;
};

static int keep_writing(void *data)
{
	struct busy *b = data;
	u8 bytes[64];

	memset(bytes, 0x77, sizeof(bytes));
	while (!kthread_should_stop()) {
		switch (loop_write(b->l, 3, READ_ONCE(b->key), bytes, sizeof(bytes))) {
		case 0:
			b->done++;
			break;
		case -KFI_EACCES:
			b->refused++;
			break;
		default:
			b->wrong++;
		}
		cond_resched();
	}
	return 0;
}

/* When a close has returned no byte changes any more, whoever is writing as fast as he can. */
void loop_close_race_case(struct kfi_test *t)
{
	struct busy b = { .l = loop_open(t, 0) };
	struct task_struct *task;
	unsigned int i, n = scaled(2000);
	struct kfid_mr *mr;
	u8 *mem;

	if (!b.l)
		return;
	mem = arena_at(&b.l->env, MEM_KMALLOC, INTO_PAGE);
	task = kthread_run(keep_writing, &b, "kfi_loop_busy");
	if (!EXPECT(t, !IS_ERR(task), "no thread"))
		goto out;
	for (i = 0; i < n && !t->failures; i++) {
		WRITE_ONCE(b.key, i);
		if (!EXPECT_EQ(t, loop_reg(b.l, mem, LEN, KFI_REMOTE, i, &mr), 0))
			break;
		if (i % 3 == 0)
			usleep_range(10, 50);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		memset(mem, 0, LEN);
		if (i % 2)
			usleep_range(10, 50);
		EXPECT(t, !memchr_inv(mem, 0, LEN), "round %u: written to after its close", i);
	}
	kthread_stop(task);
	EXPECT_EQ(t, b.wrong, 0);
	ktap_note("%u writes, %u refused", b.done, b.refused);
	EXPECT(t, b.done && b.refused, "%u writes, %u refused", b.done, b.refused);
out:
	loop_close(t, b.l);
}

/* Behind the same addresses there are other pages: a refresh finds them, by the same key. */
void loop_refresh_case(struct kfi_test *t)
{
	struct busy b = { .l = loop_open(t, BASIC_MODE) };
	struct kfid_mr *mr = NULL;
	struct kvec list[2];
	u8 *mem;
	u64 key;

	if (!b.l)
		return;
	mem = arena_at(&b.l->env, MEM_VMALLOC, INTO_PAGE);
	list[0] = (struct kvec) { mem + PAGE_SIZE, 100 };
	list[1] = (struct kvec) { mem, 50 };
	if (!EXPECT_EQ(t, kfi_mr_regv(b.l->env.domain, list, 2, KFI_REMOTE, 0, 0, 0, &mr, NULL), 0))
		goto out;
	key = kfi_mr_key(mr);
	EXPECT_EQ(t, kfi_mr_refresh(mr, list, 1, 0), 0);
	EXPECT(t, kfi_mr_key(mr) == key, "another key");
	memset(mem, 0, 2 * PAGE_SIZE);
	EXPECT_EQ(t, loop_write(b.l, mr->iova + 98, key, "abcd", 4), 0);
	EXPECT(t, !memcmp(mem + PAGE_SIZE + 98, "ab", 2) && !memcmp(mem, "cd", 2), "elsewhere");
	EXPECT_EQ(t, kfi_mr_refresh(mr, &(struct kvec) { mem + 40, 20 }, 1, 0), -KFI_EINVAL);
	EXPECT_EQ(t, loop_write(b.l, mr->iova, key, "x", 1), 0);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
out:
	loop_close(t, b.l);
}

/* Other pages come behind the addresses, again and again, while a peer writes to the region. */
void loop_refresh_pages_case(struct kfi_test *t)
{
	struct busy b = { .l = loop_open(t, 0), .key = 5 };
	struct task_struct *task = ERR_PTR(-ENOMEM);
	struct swap_area *a = swap_open(t);
	unsigned int i, n = scaled(100);
	struct kfid_mr *mr = NULL;
	u8 *here, *there;

	if (!b.l || !a)
		goto out;
	if (!EXPECT_EQ(t, loop_reg(b.l, a->addr, PAGE_SIZE, KFI_REMOTE, 5, &mr), 0))
		goto out;
	task = kthread_run(keep_writing, &b, "kfi_loop_busy");
	for (i = 1; i <= n && !t->failures; i++) {
		if (!swap_put(t, a, i % 2))
			break;
		here = page_address(a->pages[i % 2][0]);
		there = page_address(a->pages[!(i % 2)][0]);
		memset(here, 0, PAGE_SIZE);
		EXPECT_EQ(t, kfi_mr_refresh(mr, NULL, 0, 0), 0);
		EXPECT_EQ(t, loop_write(b.l, 0, 5, "new", 3), 0);
		EXPECT(t, !memcmp(here, "new", 3), "the old page");
		/* The other page is nobody's any more. */
		memset(there, 0, PAGE_SIZE);
		usleep_range(10, 50);
		EXPECT(t, !memchr_inv(there, 0, PAGE_SIZE), "the old page was written to");
	}
	if (!IS_ERR(task))
		kthread_stop(task);
	EXPECT_EQ(t, b.wrong, 0);
	ktap_note("%u writes", b.done);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
out:
	if (a)
		swap_close(a);
	if (b.l)
		loop_close(t, b.l);
}

/* A region in pieces is one to a peer that has mapped its raw key, and counts an access once. */
void loop_pieces_case(struct kfi_test *t)
{
	struct loop *l = loop_open(t, KFI_MR_RAW | BASIC_MODE), *from = loop_open(t, 0);
	size_t i, len = 0, size;
	struct kfid_mr *mr = NULL;
	u64 base = 0, key = 0;
	u8 *mem, *raw = NULL;

	if (!l || !from)
		goto out;
	mem = arena_at(&l->env, MEM_VMALLOC, 0);
	/* Backwards, so that no two are adjacent. */
	for (i = 0; i < 30; i++) {
		l->env.kv[i] = (struct kvec) { mem + (29 - i) * PAGE_SIZE + i, 100 + i };
		len += 100 + i;
	}
	if (!EXPECT_EQ(t, kfi_mr_regv(l->env.domain, l->env.kv, 30, KFI_REMOTE, 0, 0, 0, &mr, NULL),
		       0))
		goto out;
	size = l->env.info->domain_attr->mr_key_size;
	raw = kmalloc(size, GFP_KERNEL);
	if (!EXPECT(t, raw, "no memory") ||
	    !EXPECT_EQ(t, kfi_mr_raw_attr(mr, &base, raw, &size, 0), 0) ||
	    !EXPECT_EQ(t, kfi_mr_map_raw(l->env.domain, base, raw, size, &key, 0), 0))
		goto out;
	ktap_note("raw key of %zu bytes", size);
	EXPECT(t, size > l->env.info->domain_attr->mr_key_size / 2, "few pieces");
	l->initiator = &l->env.domain->fid;
	pattern(l->env.scratch, len, 17);
	memset(mem, 0, 30 * PAGE_SIZE);
	EXPECT_EQ(t, loop_write(l, base, key, l->env.scratch, len), 0);
	for (i = 0, len = 0; i < 30; len += 100 + i++)
		EXPECT(t, !memcmp(l->env.kv[i].iov_base, l->env.scratch + len, 100 + i),
		       "segment %zu", i);
	memset(l->env.scratch, 0, len);
	EXPECT_EQ(t, loop_read(l, base + 1, key, l->env.scratch, len - 1), 0);
	EXPECT(t, pattern_is(l->env.scratch, len - 1, 18), "other bytes");
	EXPECT_EQ(t, loop_read(l, base + 1, key, l->env.scratch, len), -KFI_EACCES);
	/* Mapped in one domain it is nothing in another, or to nobody. */
	l->initiator = NULL;
	EXPECT_EQ(t, loop_read(l, base, key, l->env.scratch, 1), -KFI_EACCES);
	l->initiator = &from->env.domain->fid;
	EXPECT_EQ(t, loop_read(l, base, key, l->env.scratch, 1), -KFI_EACCES);
	l->initiator = &l->env.domain->fid;
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	mr = NULL;
	EXPECT_EQ(t, loop_read(l, base, key, l->env.scratch, 1), -KFI_EACCES);
	EXPECT_EQ(t, kfi_mr_unmap_key(l->env.domain, key), 0);
out:
	kfree(raw);
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (from)
		loop_close(t, from);
	if (l)
		loop_close(t, l);
}
