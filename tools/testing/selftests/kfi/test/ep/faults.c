// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations of this task fail, one after the other, in every call on endpoints. Each time the call
 * succeeds or says that it can't, nothing is left behind, and nothing is told twice or not at all.
 *
 * Needs a kernel with fault injection, which faults.sh switches on.
 */
#include "ep.h"
#include "failing.h"
#include "kinds.h"
#include "suites.h"

#ifdef CONFIG_FAULT_INJECTION

#define LEN	64

/* The errors that a call may return when an allocation fails. */
static void expect_errno(struct kfi_test *t, const char *call, ssize_t ret, unsigned int nth,
			 bool failed)
{
	EXPECT(t, failed, "%s: error %zd without a failed allocation", call, ret);
	EXPECT(t, ret == -KFI_ENOMEM || ret == -KFI_EIO || ret == -KFI_ENOSPC ||
		  ret == -KFI_ENODATA || ret == -KFI_EADDRNOTAVAIL || ret == -KFI_EHOSTUNREACH,
	       "%s: error %zd when allocation %u fails", call, ret, nth);
}

/* Something is opened by @call into @fid, again and again, until all of its allocations were tried. */
#define EACH_OPEN(t, name, fid, call)					\
do {									\
	unsigned int __nth, __refused = 0;				\
	bool __failed = true;						\
									\
	for (__nth = 1; __failed && __nth < MAX_NTH && !(t)->failures; __nth++) { \
		int __ret;						\
									\
		arm(__nth);						\
		__ret = (call);						\
		__failed = disarm();					\
		if (__ret) {						\
			__refused++;					\
			expect_errno(t, name, __ret, __nth, __failed);	\
		} else {						\
			EXPECT_EQ(t, kfi_close(fid), 0);		\
		}							\
	}								\
	EXPECT(t, __refused, "%s: no allocation has failed", name);	\
	ktap_note("%s: %u refusals", name, __refused);			\
} while (0)

static int listening(struct ep_side *s, struct kfi_info *source, struct kfid_pep **pep)
{
	int ret = kfi_passive_ep(s->fabric, source, pep, NULL);

	if (ret)
		return ret;
	ret = kfi_pep_bind(*pep, &s->eq->fid, 0) ?: kfi_listen(*pep);
	if (ret)
		kfi_close(&(*pep)->fid);
	return ret;
}

/* An endpoint that shares receives; what couldn't be bound can be, when there is memory again. */
static int sharing(struct kfi_test *t, struct ep_side *s, struct kfi_info *info,
		   struct kfid_ep *srx, struct kfid_ep **ep)
{
	int ret = kfi_endpoint(s->domain, info, ep, NULL);

	if (ret)
		return ret;
	ret = kfi_ep_bind(*ep, &srx->fid, 0);
	if (ret) {
		EXPECT_EQ(t, kfi_ep_bind(*ep, &srx->fid, 0), 0);
		EXPECT_EQ(t, kfi_close(&(*ep)->fid), 0);
	}
	return ret;
}

static void shared_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_listening(t, NULL);
	u8 *mem = kzalloc(LEN, GFP_KERNEL);
	struct kfid_ep *srx = NULL, *ep;
	unsigned int nth, refused = 0, taken = 0;
	bool failed = true;
	struct ep_side *s;

	if (!p || !EXPECT(t, mem, "no memory"))
		goto out;
	s = &p->side[1];
	EACH_OPEN(t, "kfi_srx_context", &srx->fid, kfi_srx_context(s->domain, NULL, &srx, NULL));
	srx = NULL;
	if (!EXPECT_EQ(t, kfi_srx_context(s->domain, NULL, &srx, NULL), 0))
		goto out;
	EXPECT_EQ(t, kfi_ep_bind(srx, &s->rx->fid, KFI_RECV), 0);
	p->info->ep_attr->rx_ctx_cnt = KFI_SHARED_CONTEXT;
	EACH_OPEN(t, "sharing", &ep->fid, sharing(t, s, p->info, srx, &ep));
	for (nth = 1; failed && nth < MAX_NTH && !t->failures; nth++) {
		ssize_t ret;

		arm(nth);
		ret = kfi_recv(srx, mem, LEN, NULL, 0, mem);
		failed = disarm();
		if (ret) {
			refused++;
			expect_errno(t, "posting", ret, nth, failed);
			ep_nothing(t, s->rx);
		}
		taken += !ret;
	}
	EXPECT_EQ(t, !!refused, has_feature(F_DEVICE));
	ktap_note("posting on a shared context: %u refusals", refused);
	EXPECT_EQ(t, kfi_close(&srx->fid), 0);
	/* The last one was taken. */
	EXPECT(t, taken, "none was taken");
	while (taken-- && !t->failures)
		ep_failed_op(t, s->rx, mem, KFI_ECANCELED, NULL);
	ep_nothing(t, s->rx);
out:
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

/* The offers for an address, of a device or of a peer; there is nothing to close. */
static void getinfo(struct kfi_test *t, struct sockaddr_in *address, u64 flags)
{
	struct kfi_info *hints = ep_info(t, address, flags, 0), *info;
	unsigned int nth, refused = 0;
	bool failed = true;

	for (nth = 1; hints && failed && nth < MAX_NTH && !t->failures; nth++) {
		int ret;

		info = NULL;
		arm(nth);
		ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, flags, hints, &info);
		failed = disarm();
		if (ret) {
			refused++;
			expect_errno(t, "kfi_getinfo", ret, nth, failed);
			EXPECT(t, !info, "something was found");
		}
		kfi_freeinfo(info);
	}
	EXPECT(t, refused, "no allocation has failed");
	ktap_note("kfi_getinfo: %u refusals", refused);
	kfi_freeinfo(hints);
}

static void open_case(struct kfi_test *t)
{
	struct kfi_cq_attr cq_attr = { .format = KFI_CQ_FORMAT_DATA, .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_eq_attr eq_attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct ep_pair *p = ep_listening(t, NULL);
	struct sockaddr_in address = ep_address();
	struct kfi_info *source;
	struct kfid_cq *cq;
	struct kfid_eq *eq;
	struct kfid_pep *pep;
	struct kfid_ep *ep;

	if (!p)
		return;
	getinfo(t, &address, KFI_SOURCE);
	getinfo(t, p->info->dest_addr, 0);
	EACH_OPEN(t, "kfi_cq_open", &cq->fid,
		  kfi_cq_open(p->side[0].domain, &cq_attr, &cq, NULL, NULL));
	EACH_OPEN(t, "kfi_eq_open", &eq->fid,
		  kfi_eq_open(p->side[0].fabric, &eq_attr, &eq, NULL, NULL));
	source = ep_info(t, &address, KFI_SOURCE, 0);
	if (source) {
		EACH_OPEN(t, "kfi_endpoint", &ep->fid,
			  kfi_endpoint(p->side[0].domain, p->info, &ep, NULL));
		EACH_OPEN(t, "kfi_listen", &pep->fid, listening(&p->side[1], source, &pep));
		kfi_freeinfo(source);
	}
	ep_pair_close(t, p);
}

static int bound(struct ep_side *s, struct kfid_ep *ep)
{
	return kfi_ep_bind(ep, &s->eq->fid, 0) ?: kfi_ep_bind(ep, &s->tx->fid, KFI_TRANSMIT) ?:
	       kfi_ep_bind(ep, &s->rx->fid, KFI_RECV);
}

/* Connects, where an allocation of one of the two calls fails. Was there one? */
static bool connect_once(struct kfi_test *t, struct ep_pair *p, struct ep_event *e, bool accepts,
			 unsigned int nth, unsigned int *refused)
{
	struct kfid_ep *ep = NULL, *other = NULL;
	struct kfi_eq_err_entry err = {};
	struct kfi_info *info = NULL;
	bool failed = false;
	u32 event;
	int ret;

	if (!EXPECT_EQ(t, kfi_endpoint(p->side[0].domain, p->info, &ep, NULL), 0))
		return false;
	EXPECT_EQ(t, bound(&p->side[0], ep), 0);
	if (!accepts)
		arm(nth);
	ret = kfi_connect(ep, NULL, NULL, 0);
	if (!accepts)
		failed = disarm();
	if (ret) {
		++*refused;
		expect_errno(t, "kfi_connect", ret, nth, failed);
		goto out;
	}
	/* Over loop it is the peer's part of the call that fails, which refuses. */
	if (failed && kfi_eq_read(p->side[0].eq, &event, e, sizeof(*e), 0) == -KFI_EAVAIL) {
		++*refused;
		EXPECT_EQ(t, kfi_eq_readerr(p->side[0].eq, &err, 0), sizeof(err));
		EXPECT_EQ(t, err.err, KFI_ECONNREFUSED);
		goto out;
	}
	if (!ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e))
		goto out;
	info = e->entry.info;
	if (!EXPECT_EQ(t, kfi_endpoint(p->side[1].domain, info, &other, NULL), 0))
		goto out;
	EXPECT_EQ(t, bound(&p->side[1], other), 0);
	if (accepts)
		arm(nth);
	ret = kfi_accept(other, NULL, 0);
	if (accepts)
		failed = disarm();
	if (ret) {
		++*refused;
		expect_errno(t, "kfi_accept", ret, nth, failed);
		/* The side that asked is told when this ends, or was. */
		EXPECT_EQ(t, kfi_close(&other->fid), 0);
		other = NULL;
		EXPECT_EQ(t, kfi_eq_sread(p->side[0].eq, &event, e, sizeof(*e), EP_WAIT_MS, 0),
			  -KFI_EAVAIL);
		EXPECT_EQ(t, kfi_eq_readerr(p->side[0].eq, &err, 0), sizeof(err));
		goto out;
	}
	ep_event(t, p->side[0].eq, KFI_CONNECTED, &ep->fid, e);
	ep_event(t, p->side[1].eq, KFI_CONNECTED, &other->fid, e);
out:
	kfi_freeinfo(info);
	if (other)
		EXPECT_EQ(t, kfi_close(&other->fid), 0);
	EXPECT_EQ(t, kfi_close(&ep->fid), 0);
	return failed;
}

static void connect_case(struct kfi_test *t)
{
	struct ep_event *e = kzalloc_obj(*e);
	unsigned int nth, accepts, refused;
	struct ep_pair *p;
	bool failed;

	for (accepts = 0; e && accepts < 2 && !t->failures; accepts++) {
		refused = 0;
		failed = true;
		for (nth = 1; failed && nth < MAX_NTH && !t->failures; nth++) {
			p = ep_listening(t, NULL);
			if (!p)
				break;
			failed = connect_once(t, p, e, accepts, nth, &refused);
			ep_pair_close(t, p);
		}
		EXPECT(t, refused, "no allocation has failed");
		ktap_note("%s: %u refusals", accepts ? "kfi_accept" : "kfi_connect", refused);
	}
	kfree(e);
}

/* No, which who asked is told; where the connection manager has no memory for that, the call says so. */
static bool reject_once(struct kfi_test *t, struct ep_event *e, unsigned int nth)
{
	struct ep_pair *p = ep_listening(t, NULL);
	struct kfi_eq_err_entry err;
	bool failed = false;
	int ret;

	if (!p)
		return false;
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
	if (ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e)) {
		arm(nth);
		ret = kfi_reject(p->pep, e->entry.info->handle, "no", 2);
		failed = disarm();
		if (ret)
			expect_errno(t, "kfi_reject", ret, nth, failed);
		kfi_freeinfo(e->entry.info);
		if (!ret)
			ep_failed(t, p->side[0].eq, &p->side[0].ep->fid, KFI_ECONNREFUSED, &err);
	}
	ep_pair_close(t, p);
	return failed;
}

/*
 * Both are told that it is over; but where the connection manager had no memory to tell the peer, that
 * one finds out when it wants something.
 */
static bool shutdown_once(struct kfi_test *t, struct ep_event *e, unsigned int nth)
{
	struct ep_pair *p = ep_connected(t, NULL);
	struct kfi_cq_data_entry none;
	struct kfi_cq_err_entry err;
	bool failed;
	int i;

	if (!p)
		return false;
	arm(nth);
	EXPECT_EQ(t, kfi_shutdown(p->side[0].ep, 0), 0);
	failed = disarm();
	if (failed && !kfi_send(p->side[1].ep, e, sizeof(*e), NULL, 0, e)) {
		EXPECT_EQ(t, kfi_cq_sread(p->side[1].tx, &none, 1, NULL, EP_WAIT_MS), -KFI_EAVAIL);
		EXPECT_EQ(t, kfi_cq_readerr(p->side[1].tx, &err, 0), 1);
	}
	for (i = 0; i < 2; i++)
		ep_event(t, p->side[i].eq, KFI_SHUTDOWN, &p->side[i].ep->fid, e);
	ep_pair_close(t, p);
	return failed;
}

static void end_case(struct kfi_test *t)
{
	struct ep_event *e = kzalloc_obj(*e);
	unsigned int nth, rejects, shutdowns;

	if (!EXPECT(t, e, "no memory"))
		return;
	for (nth = 1; nth < MAX_NTH && !t->failures && reject_once(t, e, nth); nth++)
		;
	rejects = nth - 1;
	for (nth = 1; nth < MAX_NTH && !t->failures && shutdown_once(t, e, nth); nth++)
		;
	shutdowns = nth - 1;
	ktap_note("%u failed in kfi_reject, %u in kfi_shutdown", rejects, shutdowns);
	kfree(e);
}

static void post_case(struct kfi_test *t)
{
	struct ep_wants wants = {
		.mr_mode = EP_MODE,
		.caps = KFI_MSG | KFI_RMA | KFI_ATOMIC,
	};
	struct ep_pair *p = ep_connected(t, &wants);
	u8 *mem = kzalloc(4 * LEN, GFP_KERNEL);
	unsigned int nth, kind, refused = 0;
	struct kfid_mr *mr = NULL;
	bool failed;
	ssize_t ret;

	if (!p || !EXPECT(t, mem, "no memory") ||
	    !EXPECT_EQ(t, kfi_mr_reg(p->side[1].domain, mem + 2 * LEN, LEN,
				     KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0, 4, 0, &mr, NULL), 0))
		goto out;
	for (kind = 0; kind < EP_KINDS; kind++) {
		failed = true;
		for (nth = 1; failed && nth < MAX_NTH && !t->failures; nth++) {
			/* A message needs a receive. */
			if (ep_kind_needs_receive(kind))
				EXPECT_EQ(t, ep_kind_post(p, mem, mr, 0), 0);
			arm(nth);
			ret = ep_kind_post(p, mem, mr, kind);
			failed = disarm();
			if (ret) {
				refused++;
				expect_errno(t, "posting", ret, nth, failed);
				ep_nothing(t, p->side[0].tx);
				/* As it would have been. */
				EXPECT_EQ(t, ep_kind_post(p, mem, mr, kind), 0);
			}
			ep_kind_ends(t, p, mem, mr, kind);
		}
	}
	ep_nothing(t, p->side[0].tx);
	ep_nothing(t, p->side[1].rx);
	EXPECT_EQ(t, !!refused, has_feature(F_DEVICE));
	ktap_note("posting: %u refusals", refused);
out:
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

/*
 * A region is enabled, or it is not and can be closed; and closing it, which has to have something posted
 * behind its registration, harms nobody.
 */
static void region_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE | KFI_MR_ENDPOINT };
	struct ep_pair *p = ep_connected(t, &wants);
	u8 *mem = kzalloc(LEN, GFP_KERNEL);
	unsigned int nth, closing, refused = 0;
	struct kfi_cq_data_entry entry;
	struct kfid_mr *mr = NULL;
	bool failed;
	int ret;

	if (!p || !EXPECT(t, mem, "no memory"))
		goto out;
	for (closing = 0; closing < 2; closing++) {
		failed = true;
		for (nth = 1; failed && nth < MAX_NTH && !t->failures; nth++) {
			EXPECT_EQ(t, kfi_mr_reg(p->side[0].domain, mem, LEN, KFI_REMOTE_READ, 0, 9, 0,
						&mr, NULL), 0);
			EXPECT_EQ(t, kfi_mr_bind(mr, &p->side[0].ep->fid, 0), 0);
			if (!closing)
				arm(nth);
			ret = kfi_mr_enable(mr);
			if (!closing)
				failed = disarm();
			if (ret) {
				refused++;
				expect_errno(t, "enabling", ret, nth, failed);
			}
			if (closing)
				arm(nth);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
			if (closing)
				failed = disarm();
		}
	}
	EXPECT_EQ(t, !!refused, has_feature(F_DEVICE));
	ktap_note("enabling: %u refusals", refused);
	/* The connection goes on. */
	EXPECT_EQ(t, kfi_recv(p->side[1].ep, mem, LEN, NULL, 0, mem), 0);
	EXPECT_EQ(t, kfi_send(p->side[0].ep, mem, LEN, NULL, 0, mem), 0);
	EXPECT_EQ(t, kfi_cq_sread(p->side[1].rx, &entry, 1, NULL, EP_WAIT_MS), 1);
out:
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

/* A close has no way to fail for want of memory. */
static void close_case(struct kfi_test *t)
{
	bool failed = true;
	unsigned int nth;
	u8 *mem = kzalloc(LEN, GFP_KERNEL);

	for (nth = 1; mem && failed && nth < MAX_NTH && !t->failures; nth++) {
		struct ep_pair *p = ep_connected(t, NULL);
		struct kfi_cq_err_entry err;

		if (!p)
			break;
		EXPECT_EQ(t, kfi_recv(p->side[0].ep, mem, LEN, NULL, 0, mem), 0);
		arm(nth);
		EXPECT_EQ(t, kfi_close(&p->side[0].ep->fid), 0);
		failed = disarm();
		p->side[0].ep = NULL;
		ep_failed_op(t, p->side[0].rx, mem, KFI_ECANCELED, &err);
		ep_pair_close(t, p);
	}
	kfree(mem);
}

static const struct kfi_case cases[] = {
	{ "open", open_case },
	{ "connect", connect_case },
	{ "handlers", ep_handlers_case },
	{ "end", end_case },
	{ "post", post_case },
	{ "region", region_case },
	{ "reuse", ep_reuse_faults_case },
	{ "shared", shared_case },
	{ "close", close_case },
};

#else

static const struct kfi_case cases[] = {};

#endif

const struct kfi_suite suite_ep_faults = {
	.name = "ep_faults",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
	.connects = true,
};
