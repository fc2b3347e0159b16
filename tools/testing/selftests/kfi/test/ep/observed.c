// SPDX-License-Identifier: GPL-2.0
/*
 * A fixed number of registrations, refusals and transfers, which observe.sh finds in events and counters. The objects
 * stay open until observe.sh has looked.
 */
#include <linux/delay.h>

#include <kfi_atomic.h>
#include <kfi_batch_ext.h>
#include <kfi_prov.h>

#include "reuse.h"
#include "suites.h"

#define REGIONS		5
#define CLOSED		2
#define REFUSED		2
#define SENDS		3
/* Receives for which the queue has no space. */
#define RETRIES		2
#define SENT		1000
#define WRITES		2
#define WRITTEN		500
#define FETCHED		700
#define FLUSHED		600

static void *ctx(unsigned long n)
{
	return (void *)(0x0b5e0000 + n);
}

/* Registers regions of a page at the first side, closes some, and has others refused. */
static bool regions(struct kfi_test *t, struct kfid_domain *domain, void *mem, struct kfid_mr **mrs)
{
	struct kfid_mr *none;
	int i;

	for (i = 0; i < REGIONS; i++)
		if (!EXPECT_EQ(t, kfi_mr_reg(domain, mem, PAGE_SIZE, KFI_REMOTE_READ, 0, i, 0, &mrs[i], NULL), 0))
			return false;
	for (i = 0; i < CLOSED; i++) {
		EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0);
		mrs[i] = NULL;
	}
	for (i = 0; i < REFUSED; i++)
		EXPECT_EQ(t, kfi_mr_reg(domain, mem, 0, KFI_REMOTE_READ, 0, 0, 0, &none, NULL), -KFI_EINVAL);
	return true;
}

/* Tries to close a region in a way that must not wait, and registers a batch with one empty segment. */
static void batches(struct kfi_test *t, struct kfid_domain *domain, void *mem)
{
	struct kvec kv[] = { { mem, PAGE_SIZE }, { mem, 0 } };
	struct kfi_mr_attr attr[2] = {};
	struct kfi_batch_ops *ops;
	struct kfid_mr *mr[2];
	void *table;
	int i;

	if (!EXPECT_EQ(t, kfi_open_ops(&domain->fid, KFI_BATCH_OPS_1, 0, &table, NULL), 0) ||
	    !EXPECT_EQ(t, kfi_mr_reg(domain, mem, PAGE_SIZE, KFI_REMOTE_READ, 0, 50, 0, &mr[0], NULL), 0))
		return;
	ops = table;
	EXPECT_EQ(t, ops->close_now(mr[0]), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_close(&mr[0]->fid), 0);
	for (i = 0; i < 2; i++) {
		attr[i].type = KFI_KVEC;
		attr[i].mr_iov = &kv[i];
		attr[i].iov_count = 1;
		attr[i].access = KFI_REMOTE_READ;
		attr[i].requested_key = 60 + i;
	}
	EXPECT_EQ(t, ops->regattr_many(&domain->fid, attr, 2, 0, KFI_BATCH_ALL_OR_NONE, mr, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, ops->regattr_many(&domain->fid, attr, 2, 0, ~0ULL, mr, NULL), -KFI_EBADFLAGS);
}

/* Makes one refused call of each kind on the objects of the first side, and one without an object. */
static void refusals(struct kfi_test *t, struct ep_side *s, struct kfid_mr *mr)
{
	struct kfi_cntr_attr cntr_attr = { .wait_obj = KFI_WAIT_NONE };
	struct kfi_cq_attr cq_attr = { .wait_obj = KFI_WAIT_NONE };
	struct sockaddr_in to = ep_address();
	struct kfi_atomic_attr atomic;
	struct kfid_cntr *cntr;
	struct kfid_mr *none;
	struct kfid_cq *cq;
	void *table;

	/* No memory is mapped at the address, so the registration begins and fails. */
	EXPECT_EQ(t, kfi_mr_reg(s->domain, (void *)(1UL << 62), PAGE_SIZE, KFI_REMOTE_READ, 0, 51, 0, &none, NULL),
		  -KFI_EFAULT);
	EXPECT_EQ(t, kfi_mr_enable(mr), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, kfi_close(&s->domain->fid), -KFI_EBUSY);
	EXPECT_EQ(t, kfi_open_ops(&s->domain->fid, "none of that name", 0, &table, NULL), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_query_atomic(s->domain, KFI_UINT64, KFI_SUM, &atomic, ~0ULL), -KFI_EBADFLAGS);
	if (EXPECT_EQ(t, kfi_cq_open(s->domain, &cq_attr, &cq, NULL, NULL), 0)) {
		EXPECT_EQ(t, kfi_cq_signal(cq), -KFI_ENOSYS);
		/* No object of this class has the slot. */
		EXPECT_EQ(t, kfi_control(&cq->fid, KFI_ENABLE, NULL), -KFI_ENOSYS);
		EXPECT_EQ(t, kfi_close(&cq->fid), 0);
	}
	if (EXPECT_EQ(t, kfi_cntr_open(s->domain, &cntr_attr, &cntr, NULL), 0)) {
		EXPECT_EQ(t, kfi_cntr_wait(cntr, 1, 0), -KFI_ENOSYS);
		EXPECT_EQ(t, kfi_close(&cntr->fid), 0);
	}
	EXPECT_EQ(t, kfi_control(&s->ep->fid, -1, NULL), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_setname(&s->ep->fid, &to, sizeof(to)), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_provider_deregister(NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_cancel(&s->ep->fid, ctx(40)), has_feature(F_CANCEL) ? -KFI_ENOENT : -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_connect(s->ep, &to, NULL, 0), -KFI_EISCONN);
	/* Longer private data than any endpoint accepts. */
	EXPECT_EQ(t, kfi_connect(s->ep, &to, mr, SZ_64K), -KFI_EINVAL);
}

/* The first side sends, writes and reads. The second side fills its queue of receives. */
static void transfers(struct kfi_test *t, struct ep_memory *m)
{
	struct ep_side *s = m->p->side;
	struct kfi_cq_data_entry entry;
	u64 key = kfi_mr_key(m->mr);
	int i;

	for (i = 0; i < SENDS; i++)
		EXPECT_EQ(t, kfi_recv(s[1].ep, m->there + PAGE_SIZE, PAGE_SIZE, NULL, 0, ctx(10 + i)), 0);
	for (i = 0; i < RETRIES; i++)
		EXPECT_EQ(t, kfi_recv(s[1].ep, m->there + PAGE_SIZE, PAGE_SIZE, NULL, 0, ctx(60 + i)), -KFI_EAGAIN);
	for (i = 0; i < SENDS; i++)
		EXPECT_EQ(t, kfi_send(s[0].ep, m->here, SENT, NULL, 0, ctx(i)), 0);
	for (i = 0; i < SENDS; i++)
		if (!ep_completed(t, s[0].tx, ctx(i), KFI_MSG | KFI_SEND, NULL) ||
		    !ep_completed(t, s[1].rx, ctx(10 + i), KFI_MSG | KFI_RECV, &entry) ||
		    !EXPECT_EQ(t, entry.len, SENT))
			return;
	for (i = 0; i < WRITES; i++)
		if (!EXPECT_EQ(t, kfi_write(s[0].ep, m->here, WRITTEN, NULL, 0, m->mr->iova, key, ctx(20)), 0) ||
		    !ep_completed(t, s[0].tx, ctx(20), KFI_RMA | KFI_WRITE, NULL))
			return;
	if (EXPECT_EQ(t, kfi_read(s[0].ep, m->here, FETCHED, NULL, 0, m->mr->iova, key, ctx(30)), 0))
		ep_completed(t, s[0].tx, ctx(30), KFI_RMA | KFI_READ, NULL);
}

void wait_for_observer(struct kfi_test *t)
{
	int i;

	ktap_note("ready to be observed");
	for (i = 0; i < EP_WAIT_MS / 20 && !READ_ONCE(kfi_go); i++)
		msleep(20);
	EXPECT(t, READ_ONCE(kfi_go), "nobody has looked");
}

/* Waits with the classes of objects open that the case does not use. */
static void wait_with_all_classes(struct kfi_test *t, struct kfid_domain *domain)
{
	struct kfi_cntr_attr attr = { .wait_obj = KFI_WAIT_NONE };
	struct kfid_cntr *cntr;
	struct kfid_ep *srx;

	if (!EXPECT_EQ(t, kfi_cntr_open(domain, &attr, &cntr, NULL), 0))
		return;
	if (EXPECT_EQ(t, kfi_srx_context(domain, NULL, &srx, NULL), 0)) {
		wait_for_observer(t);
		EXPECT_EQ(t, kfi_close(&srx->fid), 0);
	}
	EXPECT_EQ(t, kfi_close(&cntr->fid), 0);
}

static void all_case(struct kfi_test *t)
{
	static const struct ep_wants wants = { .rx_size = SENDS };
	struct kfid_mr *mrs[REGIONS] = {};
	struct ep_memory m = {};
	int i;

	if (!ep_memory_open(t, &m, &wants, 2 * PAGE_SIZE) ||
	    !EXPECT_EQ(t, kfi_mr_reg(m.p->side[1].domain, m.there, PAGE_SIZE, KFI_REMOTE_READ | KFI_REMOTE_WRITE,
				     0, 99, 0, &m.mr, NULL), 0) ||
	    !regions(t, m.p->side[0].domain, m.here, mrs))
		goto out;
	transfers(t, &m);
	batches(t, m.p->side[0].domain, m.here);
	refusals(t, &m.p->side[0], mrs[CLOSED]);
	/* The receive fails when the connection ends. */
	EXPECT_EQ(t, kfi_recv(m.p->side[0].ep, m.here, FLUSHED, NULL, 0, ctx(50)), 0);
	EXPECT_EQ(t, kfi_shutdown(m.p->side[0].ep, 0), 0);
	ep_failed_op(t, m.p->side[0].rx, ctx(50), KFI_ECANCELED, NULL);
	wait_with_all_classes(t, m.p->side[0].domain);
out:
	for (i = 0; i < REGIONS; i++)
		if (mrs[i])
			EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0);
	ep_memory_close(t, &m);
}

/* Fills a reusable region twice, and empties it once. The region is closed with its second memory. */
static void reuse_case(struct kfi_test *t)
{
	struct reuse *r = reuse_open(t, NULL);
	struct kfid_ep *ep;

	if (!r)
		return;
	ep = r->p->side[1].ep;
	EXPECT_EQ(t, r->ops->fill(r->mr, r->bv, REUSE_PAGES, KFI_REMOTE_READ, 0), 0);
	EXPECT_EQ(t, r->ops->fill(r->mr, r->bv, REUSE_PAGES, KFI_REMOTE_READ, 0), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, r->ops->fill(r->mr, r->bv, REUSE_PAGES, KFI_REMOTE_READ, ~0ULL), -KFI_EBADFLAGS);
	EXPECT_EQ(t, r->ops->empty_now(r->mr), -KFI_EAGAIN);
	EXPECT_EQ(t, r->ops->empty(r->mr), 0);
	EXPECT_EQ(t, r->ops->empty(r->mr), 0);
	EXPECT_EQ(t, r->ops->fill(r->mr, r->bv, REUSE_PAGES, KFI_REMOTE_READ, 0), 0);
	EXPECT_EQ(t, r->ops->flush(ep), 0);
	EXPECT_EQ(t, kfi_shutdown(ep, 0), 0);
	EXPECT_EQ(t, r->ops->flush(ep), -KFI_ENOTCONN);
	wait_for_observer(t);
	reuse_close(t, r);
}

static const struct kfi_case cases[] = {
	{ "all", all_case },
};

static const struct kfi_case reuse_cases[] = {
	{ "all", reuse_case },
};

const struct kfi_suite suite_ep_observed = {
	.name = "ep_observed",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
	.connects = true,
};

const struct kfi_suite suite_ep_observed_reuse = {
	.name = "ep_observed_reuse",
	.cases = reuse_cases,
	.count = ARRAY_SIZE(reuse_cases),
	.bare = true,
	.connects = true,
};
