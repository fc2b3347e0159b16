// SPDX-License-Identifier: GPL-2.0
/* Atomic operations on eight bytes of the peer's. */
#include <linux/kthread.h>

#include <kfi_atomic.h>

#include "ep.h"

#define ADDED	(KFI_ATOMIC | KFI_WRITE)
#define GOT	(KFI_ATOMIC | KFI_READ)
#define WORDS	8
#define BEFORE	0x1122334455667788ULL

static const struct ep_wants wants = {
	.mr_mode = EP_MODE,
	.caps = KFI_MSG | KFI_RMA | KFI_ATOMIC,
};

static void *ctx(unsigned long n)
{
	return (void *)(0xa70011c0 + n);
}

/* The passive side's words, and this side's for what comes back. */
struct words {
	u64 *mem;
	u64 *own;
	struct kfid_mr *mr;
	u64 key;
};

static bool words_open(struct kfi_test *t, struct ep_side *s, struct words *w, u64 access)
{
	w->mem = kcalloc(WORDS, sizeof(u64), GFP_KERNEL);
	w->own = kcalloc(WORDS, sizeof(u64), GFP_KERNEL);
	if (!EXPECT(t, w->mem && w->own, "no memory") ||
	    !EXPECT_EQ(t, kfi_mr_reg(s->domain, w->mem, WORDS * sizeof(u64), access, 0, 5, 0,
				     &w->mr, NULL), 0))
		return false;
	w->key = kfi_mr_key(w->mr);
	return true;
}

static void words_close(struct kfi_test *t, struct words *w)
{
	if (w->mr)
		EXPECT_EQ(t, kfi_close(&w->mr->fid), 0);
	kfree(w->mem);
	kfree(w->own);
}

/* All that one call of each kind is made with. */
struct request {
	u64 operand, compare;
	struct kfi_ioc operands, compares, results;
	struct kfi_rma_ioc remote;
	struct kfi_msg_atomic msg;
};

static void request_init(struct request *r, struct words *w, int at, enum kfi_op op)
{
	*r = (struct request) {
		.operand = 5,
		.compare = BEFORE,
		.operands = { &r->operand, 1 },
		.compares = { &r->compare, 1 },
		.results = { w->own + at, 1 },
		.remote = { w->mr->iova + at * sizeof(u64), 1, w->key },
		.msg = {
			.msg_iov = &r->operands,
			.iov_count = 1,
			.rma_iov = &r->remote,
			.rma_iov_count = 1,
			.datatype = KFI_UINT64,
			.op = op,
			.context = ctx(at),
		},
	};
}

/* By the family of calls: kfi_atomic(), kfi_fetch_atomic(), kfi_compare_atomic(). */
enum family { PLAIN, FETCH, COMPARE };

static ssize_t post(struct kfid_ep *ep, struct request *r, enum family calls, int form)
{
	u64 addr = r->remote.addr, key = r->remote.key;
	void *result = r->results.addr, *context = r->msg.context;
	enum kfi_op op = r->msg.op;

	switch (calls * 3 + form) {
	case 0:
		return kfi_atomic(ep, &r->operand, 1, NULL, 0, addr, key, KFI_UINT64, op, context);
	case 1:
		return kfi_atomicv(ep, &r->operands, NULL, 1, 0, addr, key, KFI_UINT64, op, context);
	case 2:
		return kfi_atomicmsg(ep, &r->msg, KFI_COMPLETION | KFI_INJECT);
	case 3:
		return kfi_fetch_atomic(ep, &r->operand, 1, NULL, result, NULL, 0, addr, key,
					KFI_UINT64, op, context);
	case 4:
		return kfi_fetch_atomicv(ep, &r->operands, NULL, 1, &r->results, NULL, 1, 0, addr,
					 key, KFI_UINT64, op, context);
	case 5:
		return kfi_fetch_atomicmsg(ep, &r->msg, &r->results, NULL, 1, KFI_COMPLETION);
	case 6:
		return kfi_compare_atomic(ep, &r->operand, 1, NULL, &r->compare, NULL, result, NULL,
					  0, addr, key, KFI_UINT64, op, context);
	case 7:
		return kfi_compare_atomicv(ep, &r->operands, NULL, 1, &r->compares, NULL, 1,
					   &r->results, NULL, 1, 0, addr, key, KFI_UINT64, op,
					   context);
	default:
		return kfi_compare_atomicmsg(ep, &r->msg, &r->compares, NULL, 1, &r->results, NULL,
					     1, KFI_COMPLETION);
	}
}

/* The operations, and the eight bytes after each. */
static const struct {
	enum feature feature;
	enum family calls;
	enum kfi_op op;
	u64 after;
} ops[] = {
	{ F_ATOMIC_WRITE, PLAIN, KFI_ATOMIC_WRITE, 5 },
	{ F_ATOMIC_SUM, PLAIN, KFI_SUM, BEFORE + 5 },
	{ F_FETCH_READ, FETCH, KFI_ATOMIC_READ, BEFORE },
	{ F_FETCH_SUM, FETCH, KFI_SUM, BEFORE + 5 },
	{ F_COMPARE_SWAP, COMPARE, KFI_CSWAP, 5 },
};

static int valid(struct kfid_ep *ep, int i, size_t *count)
{
	switch (ops[i].calls) {
	case PLAIN:
		return kfi_atomicvalid(ep, KFI_UINT64, ops[i].op, count);
	case FETCH:
		return kfi_fetch_atomicvalid(ep, KFI_UINT64, ops[i].op, count);
	default:
		return kfi_compare_atomicvalid(ep, KFI_UINT64, ops[i].op, count);
	}
}

/* Each operation by each call: what it does, what comes back, and that nothing else changes. */
void ep_atomics_case(struct kfi_test *t)
{
	static const u64 query[] = { 0, KFI_FETCH_ATOMIC, KFI_COMPARE_ATOMIC };
	struct ep_pair *p = ep_connected(t, &wants);
	struct request *r = kzalloc_obj(*r);
	struct words w = {};
	struct kfid_ep *ep;
	int i, form, j;

	if (!p || !EXPECT(t, r, "no memory") ||
	    !words_open(t, &p->side[1], &w, KFI_REMOTE_READ | KFI_REMOTE_WRITE))
		goto out;
	ep = p->side[0].ep;
	EXPECT(t, p->info->caps & KFI_ATOMIC, "caps %#llx", p->info->caps);
	for (i = 0; i < ARRAY_SIZE(ops) && !t->failures; i++) {
		u64 flags = query[ops[i].calls];
		struct kfi_atomic_attr attr = {};
		bool fetches = ops[i].calls != PLAIN;
		size_t count = 0;
		int want = feature_errno(ops[i].feature);

		EXPECT_EQ(t, valid(ep, i, &count), want);
		EXPECT_EQ(t, kfi_query_atomic(p->side[0].domain, KFI_UINT64, ops[i].op, &attr,
					      flags), want);
		attr = (struct kfi_atomic_attr) {};
		EXPECT_EQ(t, kfi_query_atomic(p->side[0].domain, KFI_INT64, ops[i].op, &attr, flags),
			  want);
		if (want) {
			request_init(r, &w, 0, ops[i].op);
			EXPECT_EQ(t, post(ep, r, ops[i].calls, 0), want);
			continue;
		}
		EXPECT_EQ(t, count, 1);
		EXPECT_EQ(t, attr.count, 1);
		EXPECT_EQ(t, attr.size, sizeof(u64));
		for (form = 0; form < 3 && !t->failures; form++) {
			int at = i % (WORDS - 2) + 1;

			for (j = 0; j < WORDS; j++) {
				w.mem[j] = BEFORE;
				w.own[j] = ~0ULL;
			}
			request_init(r, &w, at, ops[i].op);
			EXPECT_EQ(t, post(ep, r, ops[i].calls, form), 0);
			/* Operands are the caller's again. */
			r->operand = r->compare = 77;
			ep_completed(t, p->side[0].tx, ctx(at), fetches ? GOT : ADDED, NULL);
			for (j = 0; j < WORDS; j++) {
				EXPECT_EQ(t, w.mem[j], j == at ? ops[i].after : BEFORE);
				EXPECT_EQ(t, w.own[j], j == at && fetches ? BEFORE : ~0ULL);
			}
		}
	}
	/* One that doesn't compare changes nothing, and says what is there. */
	w.mem[0] = BEFORE + 1;
	request_init(r, &w, 0, KFI_CSWAP);
	EXPECT_EQ(t, post(ep, r, COMPARE, 0), 0);
	ep_completed(t, p->side[0].tx, ctx(0), GOT, NULL);
	EXPECT_EQ(t, w.mem[0], BEFORE + 1);
	EXPECT_EQ(t, w.own[0], BEFORE + 1);
	/* Each takes its place behind those that were posted before it, whatever they are. */
	w.mem[0] = BEFORE;
	for (i = 1; i <= 8; i++) {
		s64 one = -i;

		EXPECT_EQ(t, kfi_inject_atomic(ep, &one, 1, 0, w.mr->iova, w.key, KFI_INT64, KFI_SUM),
			  0);
		EXPECT_EQ(t, kfi_inject_atomic(ep, &one, 1, 0, w.mr->iova, w.key, KFI_INT64,
					       KFI_ATOMIC_WRITE), 0);
		EXPECT_EQ(t, kfi_inject_atomic(ep, &one, 1, 0, w.mr->iova, w.key, KFI_INT64, KFI_SUM),
			  0);
	}
	EXPECT_EQ(t, kfi_fetch_atomic(ep, NULL, 1, NULL, w.own, NULL, 0, w.mr->iova, w.key, KFI_INT64,
				      KFI_ATOMIC_READ, ctx(0)), 0);
	ep_completed(t, p->side[0].tx, ctx(0), GOT, NULL);
	EXPECT_EQ(t, w.own[0], -16);
	w.mem[0] = BEFORE + 1;
	/* An injected one says nothing; the one behind it says that it is done. */
	EXPECT_EQ(t, kfi_inject_atomic(ep, &r->operand, 1, 0, w.mr->iova, w.key, KFI_UINT64,
				       KFI_SUM), 0);
	request_init(r, &w, 0, KFI_ATOMIC_READ);
	EXPECT_EQ(t, kfi_fetch_atomic(ep, NULL, 1, NULL, w.own, NULL, 0, w.mr->iova, w.key,
				      KFI_UINT64, KFI_ATOMIC_READ, ctx(0)), 0);
	ep_completed(t, p->side[0].tx, ctx(0), GOT, NULL);
	EXPECT_EQ(t, w.own[0], BEFORE + 6);
	ep_nothing(t, p->side[0].tx);
out:
	words_close(t, &w);
	kfree(r);
	if (p)
		ep_pair_close(t, p);
}

/* Operations that are refused at once, and those that the peer refuses. */
void ep_atomics_refused_case(struct kfi_test *t)
{
	static const u64 rights[] = { KFI_REMOTE_READ, KFI_REMOTE_WRITE };
	struct request *r = kzalloc_obj(*r);
	struct kfi_cq_err_entry err;
	struct words w = {};
	struct ep_pair *p;
	struct kfid_ep *ep;
	struct kfi_atomic_attr attr;
	size_t count;
	int i;

	if (!EXPECT(t, r, "no memory"))
		return;
	for (i = 0; i < 6 && !t->failures; i++) {
		bool fetches = i < 3;

		p = ep_connected(t, &wants);
		if (!p)
			break;
		memset(&w, 0, sizeof(w));
		ep = p->side[0].ep;
		if (!words_open(t, &p->side[1], &w, rights[i % 3 > 0]))
			goto next;
		if (!i) {
			request_init(r, &w, 0, KFI_SUM);
			EXPECT_EQ(t, kfi_atomic(ep, &r->operand, 1, NULL, 0, r->remote.addr, w.key,
						KFI_UINT32, KFI_SUM, NULL), -KFI_EOPNOTSUPP);
			EXPECT_EQ(t, kfi_atomic(ep, &r->operand, 1, NULL, 0, r->remote.addr, w.key,
						KFI_UINT64, KFI_PROD, NULL), -KFI_EOPNOTSUPP);
			EXPECT_EQ(t, kfi_atomic(ep, &r->operand, 2, NULL, 0, r->remote.addr, w.key,
						KFI_UINT64, KFI_SUM, NULL), -KFI_E2BIG);
			EXPECT_EQ(t, kfi_atomic(ep, &r->operand, 0, NULL, 0, r->remote.addr, w.key,
						KFI_UINT64, KFI_SUM, NULL), -KFI_EINVAL);
			EXPECT_EQ(t, kfi_atomic(ep, NULL, 1, NULL, 0, r->remote.addr, w.key,
						KFI_UINT64, KFI_SUM, NULL), -KFI_EINVAL);
			EXPECT_EQ(t, kfi_atomic(ep, &r->operand, 1, NULL, 0, r->remote.addr + 4,
						w.key, KFI_UINT64, KFI_SUM, NULL), -KFI_EINVAL);
			EXPECT_EQ(t, kfi_atomicmsg(ep, NULL, 0), -KFI_EINVAL);
			EXPECT_EQ(t, kfi_atomicmsg(ep, &r->msg, KFI_REMOTE_CQ_DATA), -KFI_EBADFLAGS);
			r->results.addr = (u8 *)w.own + 1;
			EXPECT_EQ(t, post(ep, r, FETCH, 0), -KFI_EINVAL);
			r->results.addr = NULL;
			EXPECT_EQ(t, post(ep, r, FETCH, 0), -KFI_EINVAL);
			r->results.addr = ep_atomics_refused_case;
			r->results.addr = PTR_ALIGN(r->results.addr, 8);
			EXPECT_EQ(t, post(ep, r, FETCH, 0), -KFI_EFAULT);
			EXPECT_EQ(t, kfi_atomic(ep, &r->operand, 1, NULL, 0, r->remote.addr, w.key,
						KFI_INT32, KFI_ATOMIC_WRITE, NULL), -KFI_EOPNOTSUPP);
			EXPECT_EQ(t, kfi_atomic(ep, &r->operand, 2, NULL, 0, r->remote.addr, w.key,
						KFI_UINT64, KFI_ATOMIC_WRITE, NULL), -KFI_E2BIG);
			EXPECT_EQ(t, kfi_atomic(ep, &r->operand, 1, NULL, 0, r->remote.addr + 4,
						w.key, KFI_UINT64, KFI_ATOMIC_WRITE, NULL),
				  -KFI_EINVAL);
			EXPECT_EQ(t, kfi_fetch_atomicvalid(ep, KFI_UINT64, KFI_ATOMIC_WRITE, &count),
				  -KFI_EOPNOTSUPP);
			EXPECT_EQ(t, kfi_query_atomic(p->side[0].domain, KFI_UINT64, KFI_SUM, &attr,
						      1), -KFI_EBADFLAGS);
			EXPECT_EQ(t, kfi_query_atomic(p->side[0].domain, KFI_DOUBLE, KFI_SUM, &attr,
						      0), -KFI_EOPNOTSUPP);
			ep_nothing(t, p->side[0].tx);
		}
		/* Without the right; beyond the region; by another key. */
		request_init(r, &w, 0, fetches ? KFI_SUM : KFI_ATOMIC_WRITE);
		w.own[0] = ~0ULL;
		if (i % 3 == 1)
			r->remote.addr += WORDS * sizeof(u64);
		if (i % 3 == 2)
			r->remote.key ^= NO_KEY;
		EXPECT_EQ(t, post(ep, r, fetches ? FETCH : PLAIN, 0), 0);
		ep_failed_op(t, p->side[0].tx, ctx(0), KFI_EACCES, &err);
		EXPECT_EQ(t, err.flags, fetches ? GOT : ADDED);
		ep_nothing(t, p->side[0].tx);
		EXPECT(t, !memchr_inv(w.mem, 0, WORDS * sizeof(u64)), "the peer's bytes changed");
		EXPECT_EQ(t, w.own[0], ~0ULL);
next:
		words_close(t, &w);
		ep_pair_close(t, p);
	}
	kfree(r);
}

/* A consumer that doesn't ask for atomic operations has none, nor have the peers. */
void ep_atomics_absent_case(struct kfi_test *t)
{
	static const struct ep_wants none = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &none), *q = NULL;
	struct request *r = kzalloc_obj(*r);
	struct kfi_atomic_attr attr;
	struct words w = {};
	struct kfi_info *hints, *info;
	size_t count;

	if (!p || !EXPECT(t, r, "no memory") ||
	    !words_open(t, &p->side[1], &w, KFI_REMOTE_READ | KFI_REMOTE_WRITE))
		goto out;
	EXPECT(t, !(p->info->caps & KFI_ATOMIC), "caps %#llx", p->info->caps);
	request_init(r, &w, 0, KFI_SUM);
	EXPECT_EQ(t, post(p->side[0].ep, r, PLAIN, 0), -KFI_EOPNOTSUPP);
	EXPECT_EQ(t, kfi_atomicvalid(p->side[0].ep, KFI_UINT64, KFI_SUM, &count), -KFI_EOPNOTSUPP);
	EXPECT_EQ(t, kfi_query_atomic(p->side[0].domain, KFI_UINT64, KFI_SUM, &attr, 0),
		  -KFI_EOPNOTSUPP);
	/* An open domain that has none isn't offered to who wants some. */
	hints = kfi_allocinfo();
	if (EXPECT(t, hints, "no memory")) {
		hints->fabric_attr->prov_name = kstrdup(kfi_provider_name, GFP_KERNEL);
		hints->caps = KFI_ATOMIC;
		hints->domain_attr->mr_mode = EP_MODE;
		hints->domain_attr->domain = p->side[0].domain;
		EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, &info),
			  -KFI_ENODATA);
		hints->domain_attr->domain = NULL;
		kfi_freeinfo(hints);
	}
	words_close(t, &w);
	memset(&w, 0, sizeof(w));
	ep_pair_close(t, p);
	/* The region's domain decides: this one's peer has been opened without. */
	p = ep_connected(t, &wants);
	q = ep_listening(t, &none);
	if (!p || !q || !ep_join(t, p, q) ||
	    !words_open(t, &q->side[1], &w, KFI_REMOTE_READ | KFI_REMOTE_WRITE))
		goto out;
	request_init(r, &w, 0, KFI_SUM);
	EXPECT_EQ(t, post(p->side[0].ep, r, PLAIN, 0), 0);
	ep_failed_op(t, p->side[0].tx, ctx(0), KFI_EACCES, NULL);
	EXPECT_EQ(t, w.mem[0], 0);
out:
	words_close(t, &w);
	kfree(r);
	if (p)
		ep_pair_close(t, p);
	if (q)
		ep_pair_close(t, q);
}

#define ADDS	500

/* A thread that adds to a word as fast as it can. */
struct adder {
	struct task_struct *task;
	atomic64_t *word;
	u64 count;
};

static int add(void *data)
{
	struct adder *a = data;
	int i;

	while (!kthread_should_stop()) {
		for (i = 0; i < 256; i++)
			atomic64_inc(a->word);
		WRITE_ONCE(a->count, a->count + 256);
		cond_resched();
	}
	return 0;
}

/* On another processor than this task, which stays where it is; NULL if there is none. */
static struct task_struct *add_elsewhere(struct kfi_test *t, struct adder *own)
{
	unsigned int cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	struct task_struct *task;

	if (cpu >= nr_cpu_ids)
		return NULL;
	task = kthread_create_on_cpu(add, own, cpu, "kfi-adds/%u");
	if (!EXPECT(t, !IS_ERR(task), "no thread"))
		return NULL;
	wake_up_process(task);
	return task;
}

/* Two add to one word, one after the other; each gets another value back, and a larger one each time. */
static void both_add(struct kfi_test *t, struct ep_pair *p[2], struct kfid_mr *mr[2], u64 *before)
{
	struct kfi_cq_data_entry entry;
	u64 one = 1;
	int i, n;

	for (n = 0; n < 2 * ADDS; n++)
		EXPECT_EQ(t, kfi_fetch_atomic(p[n % 2]->side[0].ep, &one, 1, NULL, before + n, NULL,
					      0, mr[n % 2]->iova, kfi_mr_key(mr[n % 2]), KFI_UINT64,
					      KFI_SUM, ctx(n)), 0);
	for (n = 0; n < 2 * ADDS && !t->failures; n++)
		ep_completed(t, p[n % 2]->side[0].tx, ctx(n), GOT, &entry);
	for (n = 2; n < 2 * ADDS && !t->failures; n++)
		EXPECT(t, before[n - 2] < before[n], "%llu came before %llu", before[n - 2], before[n]);
	for (i = 0, n = 1; i < 2 * ADDS && n < 2 * ADDS && !t->failures;)
		if (EXPECT(t, before[i] != before[n], "%llu has come back twice", before[i]))
			*(before[i] < before[n] ? &i : &n) += 2;
}

/*
 * Two add to one word at a time: nothing is lost, and each gets another value back.  Over loop a thread
 * adds to it meanwhile, on another processor: what isn't one operation loses something.  That is done
 * until it has added some while the two did, however seldom both processors are there.
 */
void ep_atomics_both_case(struct kfi_test *t)
{
	struct ep_wants many = wants;
	struct ep_pair *p[2] = {};
	struct kfid_mr *mr[2] = {};
	u64 *word = kzalloc(sizeof(*word), GFP_KERNEL);
	u64 *before = kcalloc(2 * ADDS, sizeof(*before), GFP_KERNEL);
	struct adder own = { .word = (atomic64_t *)word };
	u64 here, added = 0, meanwhile = 0;
	int i;

	many.tx_size = ADDS;
	many.cq_size = 2 * ADDS;
	if (!EXPECT(t, word && before, "no memory"))
		goto out;
	for (i = 0; i < 2; i++) {
		p[i] = ep_connected(t, &many);
		if (!p[i] || !EXPECT_EQ(t, kfi_mr_reg(p[i]->side[1].domain, word, sizeof(*word),
						      KFI_REMOTE_WRITE, 0, 1, 0, &mr[i], NULL), 0))
			goto out;
	}
	migrate_disable();
	if (!has_feature(F_DEVICE))
		own.task = add_elsewhere(t, &own);
	do {
		here = READ_ONCE(own.count);
		both_add(t, p, mr, before);
		added += 2 * ADDS;
		meanwhile += READ_ONCE(own.count) - here;
	} while (own.task && meanwhile < 100 * ADDS && added < 1000 * ADDS && !t->failures);
	migrate_enable();
	if (own.task)
		kthread_stop(own.task);
	EXPECT_EQ(t, *word, own.count + added);
out:
	for (i = 0; i < 2; i++) {
		if (mr[i])
			EXPECT_EQ(t, kfi_close(&mr[i]->fid), 0);
		if (p[i])
			ep_pair_close(t, p[i]);
	}
	kfree(word);
	kfree(before);
}
