// SPDX-License-Identifier: GPL-2.0
/* Counters, and regions that count what peers write: created disabled, bound, enabled. */
#include "conform.h"

#define LEN	(PAGE_SIZE + 44)
#define INTO_PAGE	80

static struct kfid_cntr *open_cntr(struct kfi_test *t, struct kfid_domain *domain)
{
	struct kfi_cntr_attr attr = {
		.events = KFI_CNTR_EVENTS_COMP, .wait_obj = KFI_WAIT_UNSPEC,
	};
	struct kfid_cntr *cntr = NULL;

	EXPECT_EQ(t, kfi_cntr_open(domain, &attr, &cntr, NULL), 0);
	return cntr;
}

static void counter_in(struct kfi_test *t, struct place *p)
{
	struct kfid_cntr *cntr = open_cntr(t, p->env.domain);

	if (!cntr)
		return;
	EXPECT_EQ(t, cntr->fid.fclass, KFI_CLASS_CNTR);
	EXPECT_EQ(t, kfi_cntr_read(cntr), 0);
	EXPECT_EQ(t, kfi_cntr_readerr(cntr), 0);
	EXPECT_EQ(t, kfi_cntr_add(cntr, 5), 0);
	EXPECT_EQ(t, kfi_cntr_adderr(cntr, 2), 0);
	EXPECT_EQ(t, kfi_cntr_read(cntr), 5);
	EXPECT_EQ(t, kfi_cntr_readerr(cntr), 2);
	EXPECT_EQ(t, kfi_cntr_set(cntr, 9), 0);
	EXPECT_EQ(t, kfi_cntr_seterr(cntr, 0), 0);
	EXPECT_EQ(t, kfi_cntr_read(cntr), 9);
	EXPECT_EQ(t, kfi_cntr_readerr(cntr), 0);
	EXPECT_EQ(t, kfi_cntr_wait(cntr, 9, 1000), 0);
	EXPECT_EQ(t, kfi_cntr_wait(cntr, 10, 10), -KFI_ETIMEDOUT);
	EXPECT_EQ(t, kfi_close(&p->env.domain->fid), -KFI_EBUSY);
	EXPECT_EQ(t, kfi_close(&cntr->fid), 0);
}

static void counter_case(struct kfi_test *t)
{
	in_each_mode(t, counter_in);
}

static void no_completions(struct kfid_cq *cq, void *context)
{
}

/* Nothing transfers anything here, so nothing completes. */
static void cq_in(struct kfi_test *t, struct place *p)
{
	struct kfi_cq_attr attr = {
		.size = 8,
		.format = KFI_CQ_FORMAT_DATA,
		.wait_obj = KFI_WAIT_UNSPEC,
	};
	struct kfi_cq_data_entry entry;
	struct kfi_cq_err_entry err;
	struct kfid_cq *cq;

	if (!EXPECT_EQ(t, kfi_cq_open(p->env.domain, &attr, &cq, no_completions, p), 0))
		return;
	EXPECT_EQ(t, cq->fid.fclass, KFI_CLASS_CQ);
	EXPECT_EQ(t, kfi_cq_read(cq, &entry, 1), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_cq_readerr(cq, &err, 0), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_cq_sread(cq, &entry, 1, NULL, 1), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_cq_signal(cq), 0);
	EXPECT_EQ(t, kfi_cq_sread(cq, &entry, 1, NULL, -1), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_close(&p->env.domain->fid), -KFI_EBUSY);
	EXPECT_EQ(t, kfi_close(&cq->fid), 0);
}

static void cq_case(struct kfi_test *t)
{
	in_each_mode(t, cq_in);
}

/* A region that is going to count: where the mode asks for it, it isn't enabled yet. */
struct counted {
	struct place *p;
	struct kfid_cntr *cntr;
	struct kfid_mr *mr;
	u8 *mem;
};

static bool counted_begin(struct kfi_test *t, struct counted *c)
{
	c->p = place_open(t, mode_with(t, KFI_MR_RMA_EVENT));
	if (!c->p)
		return false;
	c->mem = arena_at(&c->p->env, MEM_KMALLOC, INTO_PAGE);
	c->cntr = open_cntr(t, c->p->env.domain);
	if (!c->cntr)
		goto err;
	if (EXPECT_EQ(t, kfi_mr_reg(c->p->env.domain, c->mem, LEN, KFI_REMOTE, 0, 3, KFI_RMA_EVENT,
				    &c->mr, NULL), 0))
		return true;
	EXPECT_EQ(t, kfi_close(&c->cntr->fid), 0);
err:
	place_close(t, c->p);
	return false;
}

static void counted_end(struct kfi_test *t, struct counted *c)
{
	if (c->cntr)
		EXPECT_EQ(t, kfi_close(&c->cntr->fid), 0);
	if (c->mr)
		close_mr(t, c->mr);
	place_close(t, c->p);
}

static int write_one(struct counted *c)
{
	return under_test->write(c->p, c->mr->iova, c->mr->key, c->p->env.scratch, 16);
}

/* Each remote write is one, a read and a refused write are none. */
static void counts_case(struct kfi_test *t)
{
	struct counted c;
	unsigned int i;

	if (!counted_begin(t, &c))
		return;
	refuses(t, c.p, c.p->mode & KFI_MR_VIRT_ADDR ? c.mr->iova : 0, 3, c.mem, LEN);
	EXPECT_EQ(t, kfi_mr_bind(c.mr, &c.cntr->fid, KFI_REMOTE_WRITE), 0);
	refuses(t, c.p, c.p->mode & KFI_MR_VIRT_ADDR ? c.mr->iova : 0, 3, c.mem, LEN);
	if (EXPECT_EQ(t, kfi_mr_enable(c.mr), 0)) {
		EXPECT_EQ(t, kfi_cntr_read(c.cntr), 0);
		for (i = 1; i <= 4; i++) {
			EXPECT_EQ(t, write_one(&c), 0);
			EXPECT_EQ(t, kfi_cntr_wait(c.cntr, i, 1000), 0);
			EXPECT_EQ(t, kfi_cntr_read(c.cntr), i);
		}
		EXPECT_EQ(t, under_test->read(c.p, c.mr->iova, c.mr->key, c.p->env.scratch, 16),
			  0);
		EXPECT_EQ(t, under_test->write(c.p, c.mr->iova + LEN, c.mr->key,
					       c.p->env.scratch, 1), -EACCES);
		EXPECT_EQ(t, kfi_cntr_read(c.cntr), 4);
		EXPECT_EQ(t, kfi_cntr_readerr(c.cntr), 0);
		good(t, c.p, c.mr, c.mem, LEN);
	}
	counted_end(t, &c);
}

/* The states: not enabled before it is bound, once only, and no binding afterwards. */
static void states_case(struct kfi_test *t)
{
	struct kfid_cntr *second;
	struct counted c;

	if (!counted_begin(t, &c))
		return;
	second = open_cntr(t, c.p->env.domain);
	EXPECT_EQ(t, kfi_mr_enable(c.mr), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_bind(c.mr, NULL, KFI_REMOTE_WRITE), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_bind(NULL, &c.cntr->fid, KFI_REMOTE_WRITE), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_bind(c.mr, &t->env->fabric->fid, KFI_REMOTE_WRITE), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_bind(c.mr, &c.cntr->fid, 0), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_mr_bind(c.mr, &c.cntr->fid, KFI_REMOTE_READ), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_mr_bind(c.mr, &c.cntr->fid, KFI_REMOTE), -KFI_EBADFLAGS);
	EXPECT_EQ(t, kfi_mr_enable(c.mr), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_mr_bind(c.mr, &c.cntr->fid, KFI_REMOTE_WRITE), 0);
	EXPECT_EQ(t, kfi_mr_enable(c.mr), 0);
	EXPECT_EQ(t, kfi_mr_enable(c.mr), -KFI_EOPBADSTATE);
	if (second) {
		EXPECT_EQ(t, kfi_mr_bind(c.mr, &second->fid, KFI_REMOTE_WRITE), -KFI_EOPBADSTATE);
		EXPECT_EQ(t, write_one(&c), 0);
		EXPECT_EQ(t, kfi_cntr_read(second), 0);
		EXPECT_EQ(t, kfi_close(&second->fid), 0);
	}
	EXPECT_EQ(t, kfi_cntr_read(c.cntr), 1);
	good(t, c.p, c.mr, c.mem, LEN);
	counted_end(t, &c);
}

/* An open counter keeps its region open; closing the counter takes it off. */
static void busy_case(struct kfi_test *t)
{
	struct counted c;

	if (!counted_begin(t, &c))
		return;
	EXPECT_EQ(t, kfi_mr_bind(c.mr, &c.cntr->fid, KFI_REMOTE_WRITE), 0);
	EXPECT_EQ(t, kfi_mr_enable(c.mr), 0);
	if (EXPECT_EQ(t, kfi_close(&c.mr->fid), -KFI_EBUSY)) {
		good(t, c.p, c.mr, c.mem, LEN);
		EXPECT_EQ(t, kfi_close(&c.cntr->fid), 0);
		c.cntr = NULL;
		good(t, c.p, c.mr, c.mem, LEN);
	} else {
		c.mr = NULL;
	}
	counted_end(t, &c);
}

/* Objects of another domain can't be bound. A region that is never enabled is closed as it is. */
static void foreign_case(struct kfi_test *t)
{
	struct counted c, other;

	if (!counted_begin(t, &c))
		return;
	if (counted_begin(t, &other)) {
		EXPECT_EQ(t, kfi_mr_bind(c.mr, &other.cntr->fid, KFI_REMOTE_WRITE), -KFI_EINVAL);
		counted_end(t, &other);
	}
	EXPECT_EQ(t, kfi_mr_enable(c.mr), -KFI_EINVAL);
	counted_end(t, &c);
}

/* Without the flag a region is enabled at once, and nothing can be bound to it. */
static void plain_case(struct kfi_test *t)
{
	struct kfid_mr *mr;
	struct counted c;

	if (!counted_begin(t, &c))
		return;
	if (EXPECT_EQ(t, kfi_mr_reg(c.p->env.domain, c.mem, LEN, KFI_REMOTE, 0, 4, 0, &mr, NULL),
		      0)) {
		good(t, c.p, mr, c.mem, LEN);
		EXPECT_EQ(t, kfi_mr_bind(mr, &c.cntr->fid, KFI_REMOTE_WRITE), -KFI_EOPBADSTATE);
		EXPECT_EQ(t, kfi_mr_enable(mr), -KFI_EOPBADSTATE);
		good(t, c.p, mr, c.mem, LEN);
		close_mr(t, mr);
	}
	counted_end(t, &c);
}

static const struct kfi_case cases[] = {
	ALWAYS("counter", 0, F_COUNTERS, counter_case),
	ALWAYS("completion_queue", 0, F_COMPLETION_QUEUES, cq_case),
	CHECK("rma_event", 0, F_RMA_EVENTS, counts_case, refused_rma_events),
	CHECK("rma_event_states", 0, F_RMA_EVENTS, states_case, refused_rma_events),
	CHECK("rma_event_busy", 0, F_RMA_EVENTS, busy_case, refused_rma_events),
	CHECK("rma_event_foreign", 0, F_RMA_EVENTS, foreign_case, refused_rma_events),
	CHECK("rma_event_plain", 0, F_RMA_EVENTS, plain_case, refused_rma_events),
};

SECTION(section_bind);
