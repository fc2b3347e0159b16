// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous registration: an event queue is bound to the domain, and tells when a region is
 * there.
 *
 * Each case opens a domain of its own, since an event queue stays bound to its domain.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kprobes.h>

#include <kfi_batch_ext.h>

#include "kfi_inject.h"
#include "refusal/errors.h"
#include "request.h"
#include "suites.h"

#define TIMEOUT	60000
#define LEN	(2 * PAGE_SIZE + 100)
#define INTO_PAGE	40
#define MANY	64

/**
 * struct bound - a domain with an event queue
 * @shared: The environment that the cases share.
 * @env: The same but for the domain and the peer; the case's until bound_close().
 * @eq: The queue.
 * @events: How often the handler was called.
 * @called: Completed by the handler.
 * @handle: The other work of the handler, or NULL.
 * @data: For that.
 */
struct bound {
	struct kfi_env *shared;
	struct kfi_env env;
	struct kfid_eq *eq;
	atomic_t events;
	struct completion called;
	void (*handle)(struct bound *b);
	void *data;
};

static void handler(struct kfid_eq *eq, void *context)
{
	struct bound *b = context;

	might_sleep();
	atomic_inc(&b->events);
	if (b->handle)
		b->handle(b);
	complete(&b->called);
}

/* Returns NULL after a failure. */
static struct bound *bound_open(struct kfi_test *t, size_t size)
{
	struct bound *b = kzalloc_obj(*b);
	struct kfi_eq_attr attr = {
		.size = size,
		.wait_obj = KFI_WAIT_QUEUE,
	};
	int ret;

	if (!EXPECT(t, b, "out of memory"))
		return NULL;
	b->shared = t->env;
	b->env = *t->env;
	init_completion(&b->called);
	b->env.peer = NULL;
	if (!EXPECT_EQ(t, kfi_domain(t->env->fabric, t->env->info, &b->env.domain, NULL), 0))
		goto no_domain;
	ret = kfi_eq_open(t->env->fabric, &attr, &b->eq, handler, b);
	if (!EXPECT_EQ(t, ret, 0))
		goto no_eq;
	ret = kfi_domain_bind(b->env.domain, &b->eq->fid, KFI_REG_MR);
	if (!EXPECT_EQ(t, ret, 0))
		goto no_peer;
	b->env.peer = kfi_peer_open(b->env.domain);
	if (EXPECT(t, !IS_ERR(b->env.peer), "no peer: %ld", PTR_ERR(b->env.peer))) {
		t->env = &b->env;
		return b;
	}
no_peer:
	kfi_close(&b->env.domain->fid);
	kfi_close(&b->eq->fid);
	goto no_domain;
no_eq:
	kfi_close(&b->env.domain->fid);
no_domain:
	kfree(b);
	return NULL;
}

static void bound_close(struct kfi_test *t, struct bound *b)
{
	kfi_peer_close(b->env.peer);
	EXPECT_EQ(t, kfi_close(&b->env.domain->fid), 0);
	if (b->eq)
		EXPECT_EQ(t, kfi_close(&b->eq->fid), 0);
	t->env = b->shared;
	kfree(b);
}

/* The next event is the one that @mr is there. */
static bool expect_complete(struct kfi_test *t, struct bound *b, struct kfid_mr *mr)
{
	struct kfi_eq_entry entry = { };
	u32 event = ~0;

	return EXPECT_EQ(t, kfi_eq_sread(b->eq, &event, &entry, sizeof(entry), TIMEOUT, 0),
			 sizeof(entry)) &&
	       EXPECT_EQ(t, event, KFI_MR_COMPLETE) &&
	       EXPECT(t, entry.fid == &mr->fid, "the event is about another object") &&
	       EXPECT(t, entry.context == mr->fid.context, "the event has another context");
}

static bool expect_empty(struct kfi_test *t, struct bound *b)
{
	struct kfi_eq_entry entry;
	u32 event;

	return EXPECT_EQ(t, kfi_eq_read(b->eq, &event, &entry, sizeof(entry), 0), -KFI_EAGAIN);
}

/* Prepare @t's call in the bound domain. */
static bool prepare(struct kfi_test *t, struct bound *b, struct reg_req *req)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);

	if (!EXPECT_EQ(t, reg_prepare(t->env, req, t->variant, mem, LEN, PAGE_SIZE), 0))
		return false;
	req->context = req;
	return true;
}

/* A registration returns, its event comes, and the peer reaches the region. */
static void complete_case(struct kfi_test *t)
{
	struct reg_req req;
	struct kfid_mr *mr;
	struct bound *b;

	b = bound_open(t, 0);
	if (!b)
		return;
	if (prepare(t, b, &req)) {
		if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
			expect_complete(t, b, mr);
			EXPECT(t, kfi_mr_key(mr) != KFI_KEY_NOTAVAIL, "no key after the event");
			check_region(t, mr, arena_at(t->env, MEM_KMALLOC, INTO_PAGE), LEN);
			expect_empty(t, b);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
		reg_finish(t->env, &req);
	}
	bound_close(t, b);
}

/* Bad input is refused at once, and no event comes of it. */
static void refused_case(struct kfi_test *t)
{
	struct reg_req req;
	struct kfid_mr *mr;
	struct bound *b;

	b = bound_open(t, 0);
	if (!b)
		return;
	if (prepare(t, b, &req)) {
		req.access = BIT_ULL(0);
		mr = (void *)0x5a5a;
		EXPECT_EQ(t, reg_submit(&req, &mr), -KFI_EINVAL);
		EXPECT(t, !mr, "*mr is not NULL");
		req.access = KFI_REMOTE;
		req.flags = BIT_ULL(63);
		EXPECT_EQ(t, reg_submit(&req, &mr), -KFI_EBADFLAGS);
		msleep(20);
		expect_empty(t, b);
		EXPECT_EQ(t, atomic_read(&b->events), 0);
		reg_finish(t->env, &req);
	}
	bound_close(t, b);
}

/* Memory is looked at in the call, too. */
static void bad_memory_case(struct kfi_test *t)
{
	struct kfid_mr *mr = (void *)0x5a5a;
	struct bound *b;

	b = bound_open(t, 0);
	if (!b)
		return;
	EXPECT_EQ(t, kfi_mr_reg(b->env.domain, &mr, sizeof(mr), KFI_REMOTE, 0, 0, 0, &mr, NULL),
		  -KFI_EFAULT);
	expect_empty(t, b);
	bound_close(t, b);
}

/* Many at once: each has one event, and only one. */
static void many_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 0);
	unsigned int i, n, open = 0, seen = 0;
	struct kfi_eq_entry entry;
	struct kfid_mr **mr;
	struct bound *b;
	u32 event;

	mr = kcalloc(MANY, sizeof(*mr), GFP_KERNEL);
	if (!EXPECT(t, mr, "out of memory"))
		return;
	b = bound_open(t, MANY);
	if (!b)
		goto out;
	for (n = 0; n < MANY; n++) {
		if (!EXPECT_EQ(t, kfi_mr_reg(b->env.domain, mem, PAGE_SIZE, KFI_REMOTE, 0, 0, 0,
					     &mr[n], (void *)(unsigned long)(n + 1)), 0))
			break;
		open++;
	}
	for (i = 0; i < open; i++) {
		if (!EXPECT_EQ(t, kfi_eq_sread(b->eq, &event, &entry, sizeof(entry), TIMEOUT, 0),
			       sizeof(entry)))
			break;
		n = (unsigned long)entry.context - 1;
		if (!EXPECT(t, n < open && entry.fid == &mr[n]->fid, "an event about nothing"))
			break;
		EXPECT(t, mr[n]->key != KFI_KEY_NOTAVAIL, "no key after the event");
		/* Seen: the context isn't that of an event any more. */
		mr[n]->fid.context = NULL;
		seen++;
	}
	EXPECT_EQ(t, seen, open);
	for (i = 0; i < open; i++) {
		EXPECT(t, !mr[i]->fid.context, "region %u had no event", i);
		EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
	}
	expect_empty(t, b);
	/* A reader may be done with all of them before the handler's task gets a processor. */
	EXPECT(t, wait_for_completion_timeout(&b->called, msecs_to_jiffies(TIMEOUT)),
	       "the handler was never called");
	bound_close(t, b);
out:
	kfree(mr);
}

/* Closing a region right away waits for it, and takes its event out of the queue. */
static void close_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_PAGES, INTO_PAGE);
	struct kfid_mr *mr, *kept;
	struct bound *b;
	int i;

	b = bound_open(t, 0);
	if (!b)
		return;
	if (!EXPECT_EQ(t, kfi_mr_reg(b->env.domain, mem, LEN, KFI_REMOTE, 0, 0, 0, &kept, b), 0))
		goto out;
	for (i = 0; i < scaled(100) && !t->failures; i++) {
		if (!EXPECT_EQ(t, kfi_mr_reg(b->env.domain, mem, LEN, KFI_REMOTE, 0, 0, 0, &mr,
					     NULL), 0))
			break;
		if (i % 3 == 1)
			udelay(i);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	/* Nobody has read anything so far: what is left is the event of the first. */
	expect_complete(t, b, kept);
	expect_empty(t, b);
	EXPECT_EQ(t, kfi_close(&kept->fid), 0);
out:
	bound_close(t, b);
}

/* More events than the queue holds are lost, but not silently. */
static void overrun_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_PAGES, 0);
	struct kfi_eq_entry entry;
	struct kfid_mr *mr[5];
	ssize_t ret, events = 0, lost = 0;
	struct bound *b;
	u32 event;
	int i, j;

	b = bound_open(t, 2);
	if (!b)
		return;
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		if (!EXPECT_EQ(t, kfi_mr_reg(b->env.domain, mem, LEN, KFI_REMOTE, 0, 0, 0, &mr[i],
					     NULL), 0))
			break;
	/* All are there, with or without an event. */
	for (j = 0; j < i; j++) {
		int n = 0;

		while (READ_ONCE(mr[j]->key) == KFI_KEY_NOTAVAIL && n++ < TIMEOUT)
			msleep(1);
		EXPECT(t, mr[j]->key != KFI_KEY_NOTAVAIL, "region %d never got a key", j);
	}
	/* A task that can see the state of a region sees that its event is there, or was lost. */
	for (j = 0; j < i; j++)
		EXPECT_EQ(t, kfi_mr_enable(mr[j]), -KFI_EOPBADSTATE);
	for (j = 0; j < 10; j++) {
		ret = kfi_eq_read(b->eq, &event, &entry, sizeof(entry), 0);
		if (ret == -KFI_EAGAIN)
			break;
		if (ret == -KFI_EOVERRUN)
			lost++;
		else if (EXPECT_EQ(t, ret, sizeof(entry)))
			events++;
	}
	EXPECT_EQ(t, events, 2);
	EXPECT_EQ(t, lost, 1);
	while (i--)
		EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
	bound_close(t, b);
}

/**
 * struct in_handler - what a handler tries
 * @t: The test.
 * @mem: The memory that it registers.
 * @mr: The registered region, or the error.
 * @tried: Whether it has.
 */
struct in_handler {
	struct kfi_test *t;
	u8 *mem;
	struct kfid_mr *mr;
	bool tried;
};

/* Registers a region, whose registration is held up, and closes it. */
static void close_in_handler(struct bound *b)
{
	struct in_handler *h = b->data;
	struct kfi_test *t = h->t;

	if (h->tried)
		return;
	h->tried = true;
	kfi_inject_hold(KFI_INJECT_POST_REG);
	if (EXPECT_EQ(t, kfi_mr_reg(b->env.domain, h->mem, LEN, KFI_REMOTE, 0, 0, 0, &h->mr, NULL),
		      0))
		EXPECT_EQ(t, kfi_close(&h->mr->fid), -KFI_EOPBADSTATE);
	kfi_inject_release(KFI_INJECT_POST_REG);
}

/* A region whose registration is under way can't be closed in a handler, which could wait for ever. */
static void handler_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_PAGES, 0);
	struct in_handler h = { .t = t, .mem = mem };
	struct kfid_mr *mr;
	struct bound *b;

	b = bound_open(t, 0);
	if (!b)
		return;
	b->data = &h;
	b->handle = close_in_handler;
	if (EXPECT_EQ(t, kfi_inject_start(b->env.dev), 0)) {
		if (EXPECT_EQ(t, kfi_mr_reg(b->env.domain, mem, LEN, KFI_REMOTE, 0, 0, 0, &mr, NULL),
			      0)) {
			EXPECT(t, wait_for_completion_timeout(&b->called, msecs_to_jiffies(TIMEOUT)),
			       "the handler was not called");
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
			/* It stays open, and can be closed elsewhere. */
			if (h.mr)
				EXPECT_EQ(t, kfi_close(&h.mr->fid), 0);
		}
		kfi_inject_stop(b->env.dev);
	}
	bound_close(t, b);
}

/*
 * The queue is closed first, with registrations under way.  Their regions can be closed.  Without a queue,
 * registration is synchronous.
 */
static void queue_first_case(struct kfi_test *t)
{
	struct kfid_mr *mr[4] = {};
	struct bound *b;
	u8 *mem;
	int i;

	b = bound_open(t, 0);
	if (!b)
		return;
	mem = arena_at(t->env, MEM_KMALLOC, INTO_PAGE);
	if (EXPECT_EQ(t, kfi_inject_start(b->env.dev), 0)) {
		kfi_inject_hold(KFI_INJECT_POST_REG);
		for (i = 0; i < 3; i++)
			EXPECT_EQ(t, kfi_mr_reg(b->env.domain, mem, LEN, KFI_REMOTE, 0, 0, 0, &mr[i],
						NULL), 0);
		EXPECT_EQ(t, kfi_close(&b->eq->fid), 0);
		b->eq = NULL;
		kfi_inject_release(KFI_INJECT_POST_REG);
		kfi_inject_stop(b->env.dev);
	}
	if (EXPECT_EQ(t, kfi_mr_reg(b->env.domain, mem, LEN, KFI_REMOTE, 0, 0, 0, &mr[3], NULL), 0)) {
		EXPECT(t, kfi_mr_key(mr[3]) != KFI_KEY_NOTAVAIL, "no key");
		check_region(t, mr[3], mem, LEN);
	}
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		if (mr[i])
			EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
	bound_close(t, b);
}

/* Objects that can't be bound. */
static void bind_case(struct kfi_test *t)
{
	struct kfi_eq_attr attr = { .wait_obj = KFI_WAIT_NONE };
	struct kfid_fabric *fabric;
	struct kfid_eq *eq;
	struct bound *b;

	b = bound_open(t, 0);
	if (!b)
		return;
	EXPECT_EQ(t, kfi_domain_bind(b->env.domain, &b->eq->fid, KFI_REG_MR), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_domain_bind(b->env.domain, &b->env.domain->fid, KFI_REG_MR), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_domain_bind(b->shared->domain, NULL, KFI_REG_MR), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_domain_bind(b->shared->domain, &b->eq->fid, 0), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_domain_bind(b->shared->domain, &b->eq->fid, KFI_REG_MR | KFI_WRITE),
		  -KFI_EBADFLAGS);
	if (EXPECT_EQ(t, kfi_fabric(t->env->info->fabric_attr, &fabric, NULL), 0)) {
		if (EXPECT_EQ(t, kfi_eq_open(fabric, &attr, &eq, NULL, NULL), 0)) {
			EXPECT_EQ(t, kfi_domain_bind(b->shared->domain, &eq->fid, KFI_REG_MR),
				  -KFI_EINVAL);
			EXPECT_EQ(t, kfi_close(&eq->fid), 0);
		}
		EXPECT_EQ(t, kfi_close(&fabric->fid), 0);
	}
	bound_close(t, b);
	/* The refusals have bound nothing: registration is synchronous there. */
	expect_works(t, REG);
}

#ifdef CONFIG_KPROBES

/**
 * struct watch - what a call has stored by the time it queues work
 * @task: The task that calls.
 * @mr: Where the call is to store the region.
 * @stored: The content when @task queued work last.
 * @queued: How often it has queued work.
 */
static struct watch {
	struct task_struct *task;
	struct kfid_mr **mr;
	struct kfid_mr *stored;
	unsigned int queued;
} watch;

static int queues_work(struct kprobe *probe, struct pt_regs *regs)
{
	if (current == watch.task) {
		watch.stored = READ_ONCE(*watch.mr);
		watch.queued++;
	}
	return 0;
}

/* Calls @submit under watch, which is to store a region in @mr. Returns whether it did so in time. */
static bool stores_first(struct kfi_test *t, struct kfid_mr **mr, int (*submit)(void *), void *arg)
{
	struct kprobe probe = { .symbol_name = "queue_work_on", .pre_handler = queues_work };
	int ret;

	*mr = NULL;
	watch = (struct watch) { .task = current, .mr = mr };
	if (!EXPECT_EQ(t, register_kprobe(&probe), 0))
		return false;
	ret = submit(arg);
	unregister_kprobe(&probe);
	if (!EXPECT_EQ(t, ret, 0))
		return false;
	EXPECT(t, watch.queued, "the call has left nothing to a workqueue");
	EXPECT(t, *mr && watch.stored == *mr, "*mr was %p when the registration was queued, and is %p",
	       watch.stored, *mr);
	return true;
}

struct submission {
	struct reg_req req;
	struct kfid_mr *mr;
};

static int submit_one(void *arg)
{
	struct submission *s = arg;

	return reg_submit(&s->req, &s->mr);
}

/* A call stores the region before it leaves the rest to a workqueue, which may tell of it at once. */
static void stored_case(struct kfi_test *t)
{
	struct bound *b = bound_open(t, 0);
	struct submission s;

	if (!b)
		return;
	if (prepare(t, b, &s.req)) {
		if (stores_first(t, &s.mr, submit_one, &s)) {
			expect_complete(t, b, s.mr);
			EXPECT_EQ(t, kfi_close(&s.mr->fid), 0);
		}
		reg_finish(t->env, &s.req);
	}
	bound_close(t, b);
}

#define SEVERAL	3

struct several {
	struct kfi_batch_ops *ops;
	struct kfid *domain;
	struct kvec kv;
	struct kfi_mr_attr attrs[SEVERAL];
	struct kfid_mr *mrs[SEVERAL];
	int errs[SEVERAL];
};

static int submit_several(void *arg)
{
	struct several *s = arg;

	return s->ops->regattr_many(s->domain, s->attrs, SEVERAL, 0, 0, s->mrs, s->errs);
}

/* So does a call that registers several: the last one is stored before the last one is left. */
static void stored_several_case(struct kfi_test *t)
{
	struct several *s = kzalloc_obj(*s);
	struct bound *b = bound_open(t, 0);
	void *ops;
	int i;

	if (!b || !EXPECT(t, s, "out of memory"))
		goto out;
	s->domain = &b->env.domain->fid;
	s->kv = (struct kvec) { arena_at(t->env, MEM_KMALLOC, INTO_PAGE), LEN };
	for (i = 0; i < SEVERAL; i++)
		s->attrs[i] = (struct kfi_mr_attr) {
			.type = KFI_KVEC,
			.mr_iov = &s->kv,
			.iov_count = 1,
			.access = KFI_REMOTE,
		};
	if (!EXPECT_EQ(t, kfi_open_ops(s->domain, KFI_BATCH_OPS_1, 0, &ops, NULL), 0))
		goto out;
	s->ops = ops;
	if (stores_first(t, &s->mrs[SEVERAL - 1], submit_several, s)) {
		for (i = 0; i < SEVERAL; i++)
			expect_complete(t, b, s->mrs[i]);
		for (i = 0; i < SEVERAL; i++)
			EXPECT_EQ(t, kfi_close(&s->mrs[i]->fid), 0);
	}
out:
	if (b)
		bound_close(t, b);
	kfree(s);
}

#else

static void stored_case(struct kfi_test *t)
{
	ktap_skip(t, "the kernel has no kprobes");
}

static void stored_several_case(struct kfi_test *t)
{
	ktap_skip(t, "the kernel has no kprobes");
}

#endif

static const struct kfi_case cases[] = {
	{ "complete", complete_case, ALL_CALLS },
	{ "stored", stored_case, ALL_CALLS },
	{ "stored_several", stored_several_case },
	{ "refused", refused_case, ALL_CALLS },
	{ "bad_memory", bad_memory_case },
	{ "many", many_case },
	{ "close", close_case },
	{ "overrun", overrun_case },
	{ "handler", handler_case },
	{ "queue_first", queue_first_case },
	{ "bind", bind_case },
};

const struct kfi_suite suite_async = {
	.name = "async",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
};
