// SPDX-License-Identifier: GPL-2.0
/*
 * The device goes while endpoints are connected, connecting and listening, and transfers under way. A
 * suite of its own: ep.sh takes the device away when it reads that everything is there.
 */
#include <linux/delay.h>

#include <kfi_reuse_ext.h>

#include "busy.h"
#include "kinds.h"
#include "suites.h"

#define RECEIVES	16
#define LEN		4096

static void *ctx(unsigned long n)
{
	return (void *)(0x60000000 + n);
}

/* All that was posted has ended once, as cancelled. */
static void all_ended(struct kfi_test *t, struct kfid_cq *rx)
{
	struct kfi_cq_err_entry err;
	unsigned long seen = 0;
	int i;

	for (i = 0; i < RECEIVES; i++) {
		struct kfi_cq_data_entry none;
		unsigned long n;

		memset(&err, 0, sizeof(err));
		if (!EXPECT_EQ(t, kfi_cq_sread(rx, &none, 1, NULL, EP_WAIT_MS), -KFI_EAVAIL) ||
		    !EXPECT_EQ(t, kfi_cq_readerr(rx, &err, 0), 1))
			return;
		EXPECT_EQ(t, err.err, KFI_ECANCELED);
		n = (unsigned long)err.op_context - (unsigned long)ctx(0);
		if (EXPECT(t, n < RECEIVES, "a completion of something else"))
			EXPECT(t, !__test_and_set_bit(n, &seen), "receive %lu has ended twice", n);
	}
	ep_nothing(t, rx);
}

/* Nothing can be done any more, and nothing is lost by trying. */
static void all_refused(struct kfi_test *t, struct ep_pair *p, u8 *mem, struct kfid_mr *mr)
{
	unsigned int kind;
	struct ep_side *s;

	for (kind = 0; kind < EP_KINDS; kind++)
		EXPECT_EQ(t, ep_kind_post(p, mem, mr, kind), -KFI_ENOTCONN);
	for (s = p->side; s < p->side + 2; s++) {
		EXPECT_EQ(t, kfi_send(s->ep, mem, 8, NULL, 0, NULL), -KFI_ENOTCONN);
		EXPECT_EQ(t, kfi_recv(s->ep, mem, 8, NULL, 0, NULL), -KFI_ENOTCONN);
		EXPECT_EQ(t, kfi_shutdown(s->ep, 0), -KFI_ENOTCONN);
		ep_nothing(t, s->tx);
		ep_nothing(t, s->rx);
	}
}

/* A context with receives, and an endpoint that shares them. */
static bool shared_open(struct kfi_test *t, struct ep_pair *p, u8 *mem, struct kfid_cq **cq,
			struct kfid_ep **srx, struct kfid_ep **ep)
{
	struct kfi_cq_attr attr = { .format = KFI_CQ_FORMAT_DATA, .wait_obj = KFI_WAIT_UNSPEC };
	struct ep_side *s = &p->side[1];
	int i;

	if (!EXPECT_EQ(t, kfi_cq_open(s->domain, &attr, cq, NULL, NULL), 0) ||
	    !EXPECT_EQ(t, kfi_srx_context(s->domain, NULL, srx, NULL), 0) ||
	    !EXPECT_EQ(t, kfi_ep_bind(*srx, &(*cq)->fid, KFI_RECV), 0))
		return false;
	p->info->ep_attr->rx_ctx_cnt = KFI_SHARED_CONTEXT;
	EXPECT_EQ(t, kfi_endpoint(s->domain, p->info, ep, NULL), 0);
	p->info->ep_attr->rx_ctx_cnt = 1;
	if (!*ep)
		return false;
	EXPECT_EQ(t, kfi_ep_bind(*ep, &s->eq->fid, 0), 0);
	EXPECT_EQ(t, kfi_ep_bind(*ep, &s->tx->fid, KFI_TRANSMIT), 0);
	EXPECT_EQ(t, kfi_ep_bind(*ep, &(*srx)->fid, 0), 0);
	EXPECT_EQ(t, kfi_enable(*ep), 0);
	for (i = 0; i < RECEIVES; i++)
		EXPECT_EQ(t, kfi_recv(*srx, mem + i * LEN, LEN, NULL, 0, ctx(i)), 0);
	return true;
}

/* Regions that are filled again and again: an empty one, one that waits for more, and one that was posted. */
static struct kfi_reuse_ops *reused_open(struct kfi_test *t, struct ep_side *s, u8 *mem,
					 struct kfid_mr *mrs[3])
{
	struct kfi_reuse_ops *ops;
	struct bio_vec bv;
	void *p;
	int i;

	if (!EXPECT_EQ(t, kfi_open_ops(&s->domain->fid, KFI_REUSE_OPS_1, 0, &p, NULL), 0))
		return NULL;
	ops = p;
	bvec_set_virt(&bv, mem, LEN);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(t, ops->open(&s->domain->fid, s->ep, 1, &mrs[i], NULL), 0);
		if (mrs[i] && i)
			EXPECT_EQ(t, ops->fill(mrs[i], &bv, 1, KFI_REMOTE_READ, i == 1 ? KFI_MORE : 0), 0);
	}
	return ops;
}

/* Their memory comes back, and they can't be filled any more. */
static void reused_close(struct kfi_test *t, struct kfi_reuse_ops *ops, u8 *mem,
			 struct kfid_mr *mrs[3])
{
	struct bio_vec bv;
	int i, ret;

	bvec_set_virt(&bv, mem, LEN);
	for (i = 0; i < 3; i++) {
		if (!mrs[i])
			continue;
		EXPECT_EQ(t, ops->empty(mrs[i]), 0);
		EXPECT_EQ(t, ops->empty_now(mrs[i]), 0);
		ret = ops->fill(mrs[i], &bv, 1, KFI_REMOTE_READ, 0);
		EXPECT(t, ret == -KFI_ENODEV || ret == -KFI_ENOTCONN, "filled: %d", ret);
		EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0);
	}
}

static void gone_case(struct kfi_test *t)
{
	struct ep_wants binds = {
		.mr_mode = EP_MODE | KFI_MR_ENDPOINT,
		.caps = KFI_MSG | KFI_RMA | KFI_ATOMIC,
	};
	struct ep_pair *p = ep_connected(t, &binds), *waiting = ep_listening(t, NULL);
	struct kfid_mr *mrs[2] = {}, *reused[3] = {};
	struct kfi_reuse_ops *ops = NULL;
	u8 *mem = kzalloc((RECEIVES + 1) * LEN, GFP_KERNEL);
	struct ep_event *e = kzalloc_obj(*e);
	struct kfid_ep *ep, *srx = NULL, *sharer = NULL;
	struct kfi_info *info = NULL;
	struct kfid_cq *cq = NULL;
	struct busy *busy;
	u32 event;
	int i, j;

	if (!p || !waiting || !EXPECT(t, mem && e, "no memory"))
		goto out;
	/* A request that is read, and not answered. */
	EXPECT_EQ(t, kfi_connect(waiting->side[0].ep, NULL, NULL, 0), 0);
	if (!ep_event(t, waiting->side[1].eq, KFI_CONNREQ, &waiting->pep->fid, e))
		goto out;
	info = e->entry.info;
	for (i = 0; i < RECEIVES; i++)
		for (j = 0; j < 2; j++)
			EXPECT_EQ(t, kfi_recv(p->side[j].ep, mem + i * LEN, LEN, NULL, 0, ctx(i)), 0);
	/* Regions that nothing is posted behind, and one of them nothing yet to the device. */
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(t, kfi_mr_reg(p->side[0].domain, mem, LEN, KFI_REMOTE_READ, 0, 0, 0, &mrs[i],
					NULL), 0);
		EXPECT_EQ(t, kfi_mr_bind(mrs[i], &p->side[0].ep->fid, 0), 0);
		EXPECT_EQ(t, i ? kfi_mr_enable_more(mrs[i]) : kfi_mr_enable(mrs[i]), 0);
	}
	ops = reused_open(t, &p->side[0], mem, reused);
	if (!shared_open(t, p, mem, &cq, &srx, &sharer))
		goto out;
	busy = busy_start(t);
	ktap_note("ready for the device to go");
	/* Both are told, and who is still connecting fails. */
	for (j = 0; j < 2; j++) {
		ep_event(t, p->side[j].eq, KFI_SHUTDOWN, &p->side[j].ep->fid, e);
		all_ended(t, p->side[j].rx);
	}
	/* And who shares. */
	all_ended(t, cq);
	EXPECT_EQ(t, kfi_recv(srx, mem, 8, NULL, 0, NULL), -KFI_ENODEV);
	if (EXPECT(t, kfi_eq_sread(waiting->side[0].eq, &event, mem, LEN, EP_WAIT_MS, 0) < 0,
		   "an event other than an error")) {
		struct kfi_eq_err_entry err = {};

		EXPECT_EQ(t, kfi_eq_readerr(waiting->side[0].eq, &err, 0), sizeof(err));
		EXPECT(t, err.fid == &waiting->side[0].ep->fid, "an error about another object");
	}
	all_refused(t, p, mem, mrs[0]);
	/* Of what was in full swing each has ended, too. */
	busy_end(t, busy);
	/* The request went with its device. */
	EXPECT_EQ(t, kfi_endpoint(waiting->side[1].domain, info, &ep, NULL), -KFI_ENODEV);
	EXPECT_EQ(t, kfi_endpoint(p->side[0].domain, p->info, &ep, NULL), -KFI_ENODEV);
out:
	if (ops)
		reused_close(t, ops, mem, reused);
	for (i = 0; i < 2; i++)
		if (mrs[i])
			EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0);
	if (sharer)
		EXPECT_EQ(t, kfi_close(&sharer->fid), 0);
	if (srx)
		EXPECT_EQ(t, kfi_close(&srx->fid), 0);
	if (cq)
		EXPECT_EQ(t, kfi_close(&cq->fid), 0);
	kfi_freeinfo(info);
	if (p)
		ep_pair_close(t, p);
	if (waiting)
		ep_pair_close(t, waiting);
	kfree(e);
	kfree(mem);
}

static const struct kfi_case cases[] = {
	{ "gone", gone_case },
};

const struct kfi_suite suite_ep_gone = {
	.name = "ep_gone",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
	.connects = true,
};
