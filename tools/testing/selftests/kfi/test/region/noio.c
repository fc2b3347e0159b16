// SPDX-License-Identifier: GPL-2.0
/*
 * Storage registers memory on the way of the write that has to be done before memory becomes free:
 * no call on that way may wait for I/O. See kfi_noio.h for how that is seen.
 */
#include <linux/completion.h>
#include <linux/sched.h>

#include <kfi_eq.h>
#include <kfi_noio.h>

#include "loop/loop.h"
#include "request.h"
#include "suites.h"

/* From one page to lists that fill pages of their own. */
static const size_t lengths[] = { 100, 3 * PAGE_SIZE, 300 * PAGE_SIZE };

static bool begin(struct kfi_test *t)
{
	return EXPECT_EQ(t, kfi_noio_begin(), 0);
}

static void end(struct kfi_test *t)
{
	unsigned int found = kfi_noio_end();

	EXPECT(t, !found, "%u allocations may wait for I/O", found);
}

/* The watch itself: what it is there for, it sees. Lockdep is spared: it would be off afterwards. */
static void watch(struct kfi_test *t)
{
	unsigned int found;
	void *p;

	if (!begin(t))
		return;
	p = kmalloc(100, GFP_KERNEL | __GFP_NOLOCKDEP);
	found = kfi_noio_end();
	EXPECT_EQ(t, found, 1);
	kfree(p);
	if (!begin(t))
		return;
	p = kmalloc(100, GFP_NOIO);
	end(t);
	kfree(p);
}

static void calls(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_PAGES, 100);
	struct kfid_mr *mr = NULL;
	struct reg_req req;
	int i, ret, ret2 = 0;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		if (lengths[i] > (t->env->max_pages - 1) * PAGE_SIZE)
			continue;
		ret = reg_prepare(t->env, &req, t->variant, mem, lengths[i], PAGE_SIZE);
		if (!EXPECT_EQ(t, ret, 0))
			return;
		if (begin(t)) {
			ret = reg_submit(&req, &mr);
			if (!ret)
				ret2 = kfi_close(&mr->fid);
			end(t);
			EXPECT_EQ(t, ret, 0);
			EXPECT_EQ(t, ret2, 0);
		}
		reg_finish(t->env, &req);
	}
}

/* A refused call has a way back, on which nothing may be allocated either. */
static void refused(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_PAGES, 100);
	struct reg_req req;
	struct kfid_mr *mr;
	int ret;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, 300, SPLIT_NONE), 0))
		return;
	req.offset = 1;
	if (begin(t)) {
		ret = reg_submit(&req, &mr);
		end(t);
		EXPECT_EQ(t, ret, -KFI_EINVAL);
	}
	reg_finish(t->env, &req);
}

static void mapping(struct kfi_test *t)
{
	struct kfi_env *env = t->env;
	struct scatterlist *sg = env->sg;
	int n;

	sg_init_one(sg, arena_at(env, MEM_PAGES, 0), PAGE_SIZE);
	if (!begin(t))
		return;
	n = env->dma->map_sg(&env->domain->fid, sg, 1, DMA_BIDIRECTIONAL);
	if (n > 0) {
		env->dma->sync_sg_for_cpu(&env->domain->fid, sg, 1, DMA_BIDIRECTIONAL);
		env->dma->sync_sg_for_device(&env->domain->fid, sg, 1, DMA_BIDIRECTIONAL);
		env->dma->unmap_sg(&env->domain->fid, sg, 1, DMA_BIDIRECTIONAL);
	}
	end(t);
	EXPECT_EQ(t, n, 1);
}

static void refresh(struct kfi_test *t)
{
	struct kvec kv = {
		.iov_base = arena_at(t->env, MEM_VMALLOC, 100),
		.iov_len = 5 * PAGE_SIZE,
	};
	struct kfid_mr *mr;
	int ret, ret2;

	ret = kfi_mr_regv(t->env->domain, &kv, 1, KFI_REMOTE, 0, 0, 0, &mr, NULL);
	if (!EXPECT_EQ(t, ret, 0) || !begin(t))
		return;
	ret = kfi_mr_refresh(mr, NULL, 0, 0);
	ret2 = kfi_close(&mr->fid);
	end(t);
	EXPECT_EQ(t, ret, feature_errno(F_REFRESH));
	EXPECT_EQ(t, ret2, 0);
}

/**
 * struct handled - what a handler has seen
 * @called: Completed by it.
 * @flags: Of its task.
 */
struct handled {
	struct completion called;
	unsigned int flags;
};

static void handler(struct kfid_eq *eq, void *context)
{
	struct handled *h = context;

	h->flags = current->flags;
	complete(&h->called);
}

/* Waits in the call that reads an event, and in the handler for it. */
static void async_in(struct kfi_test *t, struct kfid_domain *domain, struct kfid_eq *eq,
		     struct handled *h)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 100);
	struct kfi_eq_entry entry = { };
	struct kfid_mr *mr;
	int ret, closed = 0;
	ssize_t got = 0;
	u32 event;

	if (!begin(t))
		return;
	ret = kfi_mr_reg(domain, mem, 5 * PAGE_SIZE, KFI_REMOTE, 0, 0, 0, &mr, NULL);
	if (!ret) {
		got = kfi_eq_sread(eq, &event, &entry, sizeof(entry), 20000, 0);
		closed = kfi_close(&mr->fid);
	}
	end(t);
	EXPECT_EQ(t, ret, 0);
	EXPECT_EQ(t, got, sizeof(entry));
	EXPECT_EQ(t, closed, 0);
	/* The handler of the event may be one that the write waits for. */
	EXPECT(t, wait_for_completion_timeout(&h->called, 60 * HZ), "the handler was not called");
	EXPECT(t, h->flags & PF_MEMALLOC_NOIO, "the handler may wait for I/O");
}

static void async(struct kfi_test *t)
{
	struct kfi_eq_attr attr = {
		.size = 16,
		.wait_obj = KFI_WAIT_QUEUE,
	};
	struct kfid_domain *domain;
	struct handled h = { };
	struct kfid_eq *eq = NULL;
	int ret;

	init_completion(&h.called);
	if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &domain, NULL), 0))
		return;
	ret = kfi_eq_open(t->env->fabric, &attr, &eq, handler, &h);
	if (EXPECT_EQ(t, ret, 0)) {
		ret = kfi_domain_bind(domain, &eq->fid, KFI_REG_MR);
		if (EXPECT_EQ(t, ret, 0))
			async_in(t, domain, eq, &h);
	}
	EXPECT_EQ(t, kfi_close(&domain->fid), 0);
	if (eq)
		EXPECT_EQ(t, kfi_close(&eq->fid), 0);
}

static void enable_in(struct kfi_test *t, struct loop *l, struct kfid_cntr *cntr)
{
	u8 *mem = arena_at(&l->env, MEM_VMALLOC, 100);
	int ret, detached = 0, closed = 0;
	struct kfid_mr *mr;

	if (!begin(t))
		return;
	ret = kfi_mr_reg(l->env.domain, mem, 5 * PAGE_SIZE, KFI_REMOTE_WRITE, 0, 0, KFI_RMA_EVENT,
			 &mr, NULL);
	if (!ret) {
		ret = kfi_mr_bind(mr, &cntr->fid, KFI_REMOTE_WRITE) ?: kfi_mr_enable(mr);
		detached = kfi_close(&cntr->fid);
		closed = kfi_close(&mr->fid);
	}
	end(t);
	EXPECT_EQ(t, ret, 0);
	EXPECT_EQ(t, detached, 0);
	EXPECT_EQ(t, closed, 0);
}

/* The other provider, which has regions that are enabled by a call of their own. */
static void enable(struct kfi_test *t)
{
	struct kfi_cntr_attr attr = { .wait_obj = KFI_WAIT_NONE };
	struct kfi_info *info = loop_info(t, BASIC_MODE);
	struct kfid_cntr *cntr;
	struct loop *l;

	l = info ? loop_open_info(t, info) : NULL;
	if (!l)
		return;
	if (EXPECT_EQ(t, kfi_cntr_open(l->env.domain, &attr, &cntr, NULL), 0))
		enable_in(t, l, cntr);
	loop_close(t, l);
}

static const struct kfi_case cases[] = {
	{ .name = "watch", .run = watch },
	{ .name = "calls", .run = calls, .variants = ALL_CALLS },
	{ .name = "refused", .run = refused, .variants = ALL_CALLS },
	{ .name = "mapping", .run = mapping },
	{ .name = "refresh", .run = refresh },
	{ .name = "async", .run = async },
	{ .name = "enable", .run = enable },
};

const struct kfi_suite suite_noio = {
	.name = "noio",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
};
