// SPDX-License-Identifier: GPL-2.0
/*
 * Modules go, or try to, in the middle of transfers. A suite of its own: ep.sh tries to unload the
 * provider when it reads that everything is there, and this module is unloaded as soon as it has run.
 */
#include <linux/delay.h>

#include "busy.h"
#include "suites.h"

#define MANY	24
#define LEN	16384

/* The provider is needed. */
static void provider_case(struct kfi_test *t)
{
	struct busy *b = busy_start(t);
	int naps;

	if (b && busy_pair(b)) {
		ktap_note("ready for modules to be unloaded");
		for (naps = 0; naps < EP_WAIT_MS / 20 && !READ_ONCE(kfi_go); naps++)
			msleep(20);
		EXPECT(t, READ_ONCE(kfi_go), "nobody has tried, or something could be unloaded");
		EXPECT_EQ(t, kfi_shutdown(busy_pair(b)->side[0].ep, 0), 0);
	}
	busy_end(t, b);
}

/* The events of a handler, which is this module's. */
struct told {
	atomic_t count;
	atomic_t wrong;
};

static void take(struct kfid_cq *cq, struct told *told)
{
	struct kfi_cq_err_entry err = {};
	struct kfi_cq_data_entry done;
	ssize_t ret;

	while ((ret = kfi_cq_read(cq, &done, 1)) != -KFI_EAGAIN) {
		if (ret == -KFI_EAVAIL)
			/* Somebody else may have read it. */
			ret = kfi_cq_readerr(cq, &err, 0);
		if (ret == 1)
			atomic_inc(&told->count);
		else if (ret != -KFI_EAGAIN)
			atomic_inc(&told->wrong);
	}
}

static void handler(struct kfid_cq *cq, void *context)
{
	take(cq, context);
}

/* The completion queues of both sides are replaced by one that has a handler. */
static bool handled_open(struct kfi_test *t, struct ep_pair *p, struct told *told,
			 struct kfid_cq **cq)
{
	struct kfi_cq_attr attr = { .format = KFI_CQ_FORMAT_DATA, .size = 4 * MANY };
	struct ep_event *e = kzalloc_obj(*e);
	struct kfid_ep *ep[2] = {};
	bool done = false;
	int i;

	EXPECT_EQ(t, kfi_close(&p->side[0].ep->fid), 0);
	p->side[0].ep = NULL;
	if (!EXPECT(t, e, "no memory") ||
	    !EXPECT_EQ(t, kfi_cq_open(p->side[0].domain, &attr, &cq[0], handler, told), 0) ||
	    !EXPECT_EQ(t, kfi_cq_open(p->side[1].domain, &attr, &cq[1], handler, told), 0))
		goto out;
	for (i = 0; i < 2; i++) {
		struct kfi_info *info = i ? e->entry.info : p->info;

		if (!EXPECT_EQ(t, kfi_endpoint(p->side[i].domain, info, &ep[i], NULL), 0))
			goto out;
		p->side[i].ep = ep[i];
		EXPECT_EQ(t, kfi_ep_bind(ep[i], &p->side[i].eq->fid, 0), 0);
		EXPECT_EQ(t, kfi_ep_bind(ep[i], &cq[i]->fid, KFI_TRANSMIT | KFI_RECV), 0);
		if (i)
			kfi_freeinfo(info);
		if (!EXPECT_EQ(t, i ? kfi_accept(ep[i], NULL, 0) : kfi_connect(ep[i], NULL, NULL, 0),
			       0) ||
		    (!i && !ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e)))
			goto out;
	}
	done = ep_event(t, p->side[0].eq, KFI_CONNECTED, &ep[0]->fid, e) &&
	       ep_event(t, p->side[1].eq, KFI_CONNECTED, &ep[1]->fid, e);
out:
	kfree(e);
	return done;
}

/* A consumer that goes closes everything, with as much under way as there is space for. */
static void consumer_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_listening(t, NULL);
	struct kfid_cq *cq[2] = {};
	struct kfid_mr *mr = NULL;
	struct told told = {};
	int i, accepted = 0;
	u8 *mem;

	mem = kvzalloc(3 * LEN, GFP_KERNEL);
	if (!p || !EXPECT(t, mem, "no memory") || !handled_open(t, p, &told, cq) ||
	    !EXPECT_EQ(t, kfi_mr_reg(p->side[1].domain, mem, LEN, KFI_REMOTE_READ | KFI_REMOTE_WRITE,
				     0, 3, 0, &mr, NULL), 0))
		goto out;
	for (i = 0; i < MANY; i++)
		accepted += !kfi_recv(p->side[1].ep, mem + LEN, LEN, NULL, 0, mem);
	for (i = 0; i < MANY; i++) {
		struct kfid_ep *ep = p->side[0].ep;
		u64 key = kfi_mr_key(mr);

		accepted += !kfi_write(ep, mem + 2 * LEN, LEN, NULL, 0, mr->iova, key, mem);
		accepted += !kfi_read(ep, mem + 2 * LEN, LEN, NULL, 0, mr->iova, key, mem);
		accepted += !kfi_send(ep, mem + 2 * LEN, LEN, NULL, 0, mem);
	}
	EXPECT(t, accepted > 2 * MANY, "only %d were accepted", accepted);
out:
	for (i = 0; p && i < 2; i++) {
		if (p->side[i].ep)
			EXPECT_EQ(t, kfi_close(&p->side[i].ep->fid), 0);
		p->side[i].ep = NULL;
	}
	for (i = 0; i < 2; i++) {
		if (!cq[i])
			continue;
		/* Entries that no handler has read yet. */
		take(cq[i], &told);
		EXPECT_EQ(t, kfi_close(&cq[i]->fid), 0);
	}
	EXPECT_EQ(t, atomic_read(&told.count), accepted);
	EXPECT_EQ(t, atomic_read(&told.wrong), 0);
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (p)
		ep_pair_close(t, p);
	kvfree(mem);
}

static const struct kfi_case cases[] = {
	{ "provider", provider_case },
	{ "consumer", consumer_case },
};

const struct kfi_suite suite_ep_unload = {
	.name = "ep_unload",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
	.connects = true,
};
