// SPDX-License-Identifier: GPL-2.0
/* Opening two sides, connecting them, and waiting for what comes of it. */
#include <linux/inet.h>

#include <rdma/ib_verbs.h>

#include "ep.h"

/*
 * Over loop, the errno itself (kfi_loop(7)). Over verbs, by the table in kfi_verbs(7); the errno itself where no
 * device has reported it.
 */
static bool is_prov_errno(int err, int prov_errno)
{
	if (!has_feature(F_DEVICE))
		return prov_errno == err;
	switch (err) {
	case KFI_EACCES:
		return prov_errno == IB_WC_REM_ACCESS_ERR || prov_errno == IB_WC_LOC_PROT_ERR;
	case KFI_EREMOTEIO:
		return prov_errno == IB_WC_REM_INV_REQ_ERR || prov_errno == IB_WC_REM_OP_ERR;
	case KFI_ETRUNC:
		return prov_errno == IB_WC_LOC_LEN_ERR || prov_errno == IB_WC_LOC_QP_OP_ERR ||
		       prov_errno == IB_WC_REM_INV_REQ_ERR;
	case KFI_ETIMEDOUT:
		return prov_errno == IB_WC_RETRY_EXC_ERR || prov_errno == IB_WC_RNR_RETRY_EXC_ERR ||
		       prov_errno == err;
	case KFI_ECANCELED:
		return prov_errno == IB_WC_WR_FLUSH_ERR || prov_errno == IB_WC_REM_ACCESS_ERR ||
		       prov_errno == err;
	case KFI_EIO:
		return prov_errno;
	default:
		return prov_errno == err;
	}
}

struct sockaddr_in ep_address(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };

	in4_pton(kfi_address, -1, (u8 *)&address.sin_addr.s_addr, -1, NULL);
	return address;
}

/* The first of @infos, which are freed, whose regions are bound to endpoints: others ask for less. */
static struct kfi_info *binding(struct kfi_test *t, struct kfi_info *infos)
{
	struct kfi_info *it, *found = NULL;

	for (it = infos; it && !found; it = it->next)
		if (it->domain_attr->mr_mode & KFI_MR_ENDPOINT)
			found = kfi_dupinfo(it);
	kfi_freeinfo(infos);
	EXPECT(t, found, "no offer with KFI_MR_ENDPOINT");
	return found;
}

struct kfi_info *ep_info(struct kfi_test *t, struct sockaddr_in *address, u64 flags, int mr_mode)
{
	struct ep_wants wants = { .mr_mode = mr_mode };

	return ep_info_for(t, address, flags, &wants);
}

struct kfi_info *ep_info_for(struct kfi_test *t, struct sockaddr_in *address, u64 flags,
			     const struct ep_wants *wants)
{
	struct kfi_info *hints = kfi_allocinfo(), *info = NULL;
	void *copy;
	int mode;

	if (!EXPECT(t, hints, "no memory"))
		return NULL;
	hints->fabric_attr->prov_name = kstrdup(kfi_provider_name, GFP_KERNEL);
	hints->ep_attr->type = KFI_EP_MSG;
	hints->caps = wants->caps ?: KFI_MSG | KFI_RMA;
	mode = (wants->mr_mode ?: EP_MODE) | (kfi_iwarp ? KFI_MR_ENDPOINT : 0);
	hints->domain_attr->mr_mode = mode;
	hints->domain_attr->data_progress = wants->polled ? KFI_PROGRESS_MANUAL : KFI_PROGRESS_UNSPEC;
	hints->tx_attr->tclass = wants->tclass;
	hints->tx_attr->size = wants->tx_size;
	hints->rx_attr->size = wants->rx_size;
	if (address) {
		copy = kmemdup(address, sizeof(*address), GFP_KERNEL);
		if (flags & KFI_SOURCE) {
			hints->src_addr = copy;
			hints->src_addrlen = sizeof(*address);
		} else {
			hints->dest_addr = copy;
			hints->dest_addrlen = sizeof(*address);
		}
	}
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, flags, hints, &info), 0);
	kfi_freeinfo(hints);
	if (info) {
		EXPECT_EQ(t, info->ep_attr->type, KFI_EP_MSG);
		EXPECT_EQ(t, info->domain_attr->data_progress,
			  wants->polled ? KFI_PROGRESS_MANUAL : KFI_PROGRESS_AUTO);
		EXPECT_EQ(t, info->tx_attr->tclass, wants->tclass);
		EXPECT(t, info->tx_attr->size == wants->tx_size || !wants->tx_size, "%zu requests",
		       info->tx_attr->size);
		EXPECT(t, info->rx_attr->size == wants->rx_size || !wants->rx_size, "%zu receives",
		       info->rx_attr->size);
	}
	/* No offer needs these bits, so the consumer has to ask for them. */
	if (info && wants->mr_mode & (KFI_MR_RAW | KFI_MR_LOCAL))
		info->domain_attr->mr_mode = wants->mr_mode;
	return (mode & KFI_MR_ENDPOINT) ? binding(t, info) : info;
}

bool ep_side_open(struct kfi_test *t, struct ep_side *s, struct kfi_info *info,
		  const struct ep_wants *wants)
{
	struct kfi_cq_attr cq = {
		.format = KFI_CQ_FORMAT_DATA,
		.wait_obj = wants->polled ? KFI_WAIT_NONE : KFI_WAIT_UNSPEC,
		.flags = wants->cpu ? KFI_AFFINITY : 0,
		.signaling_vector = wants->cpu - 1,
		.size = wants->cq_size,
	};
	struct kfi_eq_attr eq = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_cq_attr rx = cq;

	if (wants->rx_waits)
		rx.wait_obj = KFI_WAIT_UNSPEC;
	return EXPECT_EQ(t, env_open_domain(info, &s->fabric, &s->domain), 0) &&
	       EXPECT_EQ(t, kfi_eq_open(s->fabric, &eq, &s->eq, NULL, NULL), 0) &&
	       EXPECT_EQ(t, kfi_cq_open(s->domain, &cq, &s->tx, wants->handler, wants->context), 0) &&
	       EXPECT_EQ(t, kfi_cq_open(s->domain, &rx, &s->rx, NULL, NULL), 0);
}

/* Sets an option, unless @value is 0. */
static bool option(struct kfi_test *t, struct ep_side *s, int option, unsigned int value)
{
	return !value || EXPECT_EQ(t, kfi_setopt(&s->ep->fid, KFI_OPT_ENDPOINT, option, &value,
						 sizeof(value)), 0);
}

bool ep_open(struct kfi_test *t, struct ep_side *s, struct kfi_info *info,
	     const struct ep_wants *wants)
{
	info->tx_attr->size = wants->tx_size;
	info->rx_attr->size = wants->rx_size;
	info->tx_attr->op_flags = wants->op_flags;
	/* The others are for what goes to the peer. */
	info->rx_attr->op_flags = wants->op_flags & (KFI_COMPLETION | KFI_MORE);
	if (wants->srx)
		info->ep_attr->rx_ctx_cnt = KFI_SHARED_CONTEXT;
	return EXPECT_EQ(t, kfi_endpoint(s->domain, info, &s->ep, s), 0) &&
	       EXPECT_EQ(t, kfi_ep_bind(s->ep, &s->eq->fid, 0), 0) &&
	       EXPECT_EQ(t, kfi_ep_bind(s->ep, &s->tx->fid, KFI_TRANSMIT | wants->bind_flags), 0) &&
	       EXPECT_EQ(t, kfi_ep_bind(s->ep, &s->rx->fid, KFI_RECV | wants->recv_flags), 0) &&
	       option(t, s, KFI_OPT_RNR_DELAY, wants->rnr_delay) &&
	       option(t, s, KFI_OPT_STALL_TIMEOUT, wants->stall) &&
	       (!wants->srx || EXPECT_EQ(t, kfi_ep_bind(s->ep, &wants->srx->fid, 0), 0)) &&
	       EXPECT_EQ(t, kfi_enable(s->ep), 0);
}

static void close_one(struct kfi_test *t, struct kfid *fid)
{
	EXPECT_EQ(t, kfi_close(fid), 0);
}

void ep_side_close(struct kfi_test *t, struct ep_side *s)
{
	if (s->ep)
		close_one(t, &s->ep->fid);
	if (s->rx)
		close_one(t, &s->rx->fid);
	if (s->tx)
		close_one(t, &s->tx->fid);
	if (s->eq)
		close_one(t, &s->eq->fid);
	if (s->domain)
		close_one(t, &s->domain->fid);
	if (s->fabric)
		close_one(t, &s->fabric->fid);
	memset(s, 0, sizeof(*s));
}

void ep_domain_close(struct kfi_test *t, struct ep_side *s, struct kfid_eq *eq)
{
	if (s->ep)
		close_one(t, &s->ep->fid);
	close_one(t, &s->rx->fid);
	close_one(t, &s->tx->fid);
	close_one(t, &s->domain->fid);
	close_one(t, &eq->fid);
	s->ep = NULL;
	s->rx = s->tx = NULL;
	s->domain = NULL;
}

struct ep_pair *ep_listening(struct kfi_test *t, const struct ep_wants *wants)
{
	static const struct ep_wants none;
	struct ep_pair *p = kzalloc_obj(*p);
	struct sockaddr_in address = ep_address();
	size_t len = sizeof(address);
	struct kfi_info *source;

	wants = wants ?: &none;
	if (!EXPECT(t, p, "no memory"))
		return NULL;
	source = ep_info_for(t, &address, KFI_SOURCE, wants);
	if (!source)
		goto err;
	if (!ep_side_open(t, &p->side[1], source, wants) ||
	    !EXPECT_EQ(t, kfi_passive_ep(p->side[1].fabric, source, &p->pep, p), 0) ||
	    !EXPECT_EQ(t, kfi_pep_bind(p->pep, &p->side[1].eq->fid, 0), 0) ||
	    !EXPECT_EQ(t, kfi_listen(p->pep), 0) ||
	    !EXPECT_EQ(t, kfi_getname(&p->pep->fid, &address, &len), 0) ||
	    !EXPECT(t, address.sin_port, "no port"))
		goto err;
	p->info = ep_info_for(t, &address, 0, wants);
	if (!p->info || !ep_side_open(t, &p->side[0], p->info, wants) ||
	    !ep_open(t, &p->side[0], p->info, wants))
		goto err;
	kfi_freeinfo(source);
	return p;
err:
	kfi_freeinfo(source);
	ep_pair_close(t, p);
	return NULL;
}

struct ep_pair *ep_connected(struct kfi_test *t, const struct ep_wants *wants)
{
	static const struct ep_wants none;
	struct ep_pair *p = ep_listening(t, wants);
	struct ep_event *e;
	bool done = false;

	if (!p)
		return NULL;
	e = kzalloc_obj(*e);
	if (EXPECT(t, e, "no memory") &&
	    EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0) &&
	    ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e)) {
		done = ep_open(t, &p->side[1], e->entry.info, wants ?: &none) &&
		       EXPECT_EQ(t, kfi_accept(p->side[1].ep, NULL, 0), 0);
		kfi_freeinfo(e->entry.info);
	}
	done = done && ep_event(t, p->side[0].eq, KFI_CONNECTED, &p->side[0].ep->fid, e) &&
	       ep_event(t, p->side[1].eq, KFI_CONNECTED, &p->side[1].ep->fid, e);
	kfree(e);
	if (done)
		return p;
	ep_pair_close(t, p);
	return NULL;
}

bool ep_join(struct kfi_test *t, struct ep_pair *p, struct ep_pair *q)
{
	static const struct ep_wants none;
	struct ep_event *e = kzalloc_obj(*e);
	struct ep_side *s = &p->side[0];
	struct sockaddr_in address;
	size_t len = sizeof(address);
	bool done = false;

	close_one(t, &s->ep->fid);
	s->ep = NULL;
	if (EXPECT(t, e, "no memory") && ep_open(t, s, p->info, &none) &&
	    EXPECT_EQ(t, kfi_getname(&q->pep->fid, &address, &len), 0) &&
	    EXPECT_EQ(t, kfi_connect(s->ep, &address, NULL, 0), 0) &&
	    ep_event(t, q->side[1].eq, KFI_CONNREQ, &q->pep->fid, e)) {
		done = ep_open(t, &q->side[1], e->entry.info, &none) &&
		       EXPECT_EQ(t, kfi_accept(q->side[1].ep, NULL, 0), 0);
		kfi_freeinfo(e->entry.info);
	}
	done = done && ep_event(t, s->eq, KFI_CONNECTED, &s->ep->fid, e) &&
	       ep_event(t, q->side[1].eq, KFI_CONNECTED, &q->side[1].ep->fid, e);
	kfree(e);
	return done;
}

void ep_pair_close(struct kfi_test *t, struct ep_pair *p)
{
	ep_side_close(t, &p->side[0]);
	if (p->pep)
		close_one(t, &p->pep->fid);
	ep_side_close(t, &p->side[1]);
	kfi_freeinfo(p->info);
	kfree(p);
}

size_t ep_event(struct kfi_test *t, struct kfid_eq *eq, u32 event, struct kfid *fid,
		struct ep_event *e)
{
	struct kfi_eq_err_entry err = {};
	ssize_t len;
	u32 got = ~0;

	len = kfi_eq_sread(eq, &got, e, sizeof(*e), EP_WAIT_MS, 0);
	if (len == -KFI_EAVAIL && kfi_eq_readerr(eq, &err, 0) > 0)
		ktap_note("an error event: %d, %d", err.err, err.prov_errno);
	if (!EXPECT(t, len >= (ssize_t)sizeof(e->entry), "reading an event is %zd", len))
		return 0;
	EXPECT_EQ(t, got, event);
	EXPECT(t, e->entry.fid == fid, "an event about another object");
	return got == event ? len : 0;
}

void ep_failed(struct kfi_test *t, struct kfid_eq *eq, struct kfid *fid, int err,
	       struct kfi_eq_err_entry *entry)
{
	struct ep_event e;
	u32 event;

	EXPECT_EQ(t, kfi_eq_sread(eq, &event, &e, sizeof(e), EP_WAIT_MS, 0), -KFI_EAVAIL);
	memset(entry, 0, sizeof(*entry));
	EXPECT_EQ(t, kfi_eq_readerr(eq, entry, 0), sizeof(*entry));
	EXPECT_EQ(t, entry->err, err);
	EXPECT(t, entry->fid == fid, "an error about another object");
	EXPECT(t, *kfi_eq_strerror(eq, entry->prov_errno, NULL, NULL, 0), "no words for %d",
	       entry->prov_errno);
}

/* The fields of completions and failures that only what comes in has. */
static bool fields_fit(struct kfi_test *t, u64 flags, size_t len, void *buf, u64 data)
{
	return EXPECT(t, !buf, "buf is not NULL") &&
	       (flags & (KFI_RECV | KFI_REMOTE_WRITE) || EXPECT_EQ(t, len, 0)) &&
	       (flags & (KFI_REMOTE_CQ_DATA | KFI_INVALIDATE) || EXPECT_EQ(t, data, 0));
}

bool ep_completed(struct kfi_test *t, struct kfid_cq *cq, void *context, u64 flags,
		  struct kfi_cq_data_entry *entry)
{
	struct kfi_cq_data_entry own;
	struct kfi_cq_err_entry err = {};
	ssize_t n;

	entry = entry ?: &own;
	memset(entry, 0xa5, sizeof(*entry));
	n = kfi_cq_sread(cq, entry, 1, NULL, EP_WAIT_MS);
	if (n == -KFI_EAVAIL && kfi_cq_readerr(cq, &err, 0) == 1)
		ktap_note("an error completion: %d, %d", err.err, err.prov_errno);
	return EXPECT_EQ(t, n, 1) &&
	       EXPECT(t, entry->op_context == context, "a completion of something else") &&
	       EXPECT_EQ(t, entry->flags, flags) &&
	       fields_fit(t, flags, entry->len, entry->buf, entry->data);
}

bool ep_failed_op(struct kfi_test *t, struct kfid_cq *cq, void *context, int err,
		  struct kfi_cq_err_entry *entry)
{
	struct kfi_cq_data_entry none;
	struct kfi_cq_err_entry own;
	u8 room[8] = {};
	bool fits;

	entry = entry ?: &own;
	memset(entry, 0xa5, sizeof(*entry));
	entry->err_data = room;
	entry->err_data_size = sizeof(room);
	fits = EXPECT_EQ(t, kfi_cq_sread(cq, &none, 1, NULL, EP_WAIT_MS), -KFI_EAVAIL) &&
	       EXPECT_EQ(t, kfi_cq_readerr(cq, entry, 0), 1) &&
	       EXPECT(t, entry->op_context == context, "an error of something else") &&
	       EXPECT(t, *kfi_cq_strerror(cq, entry->prov_errno, NULL, NULL, 0),
		      "no words for %d", entry->prov_errno) &&
	       EXPECT_EQ(t, entry->err, err) &&
	       EXPECT(t, is_prov_errno(err, entry->prov_errno), "%d for the errno %d",
		      entry->prov_errno, err) &&
	       EXPECT_EQ(t, entry->len, 0) && EXPECT_EQ(t, entry->tag, 0) &&
	       fields_fit(t, 0, entry->len, entry->buf, entry->data) &&
	       (err == KFI_ETRUNC || EXPECT_EQ(t, entry->olen, 0)) &&
	       EXPECT(t, entry->err_data == room && !entry->err_data_size &&
			 !memchr_inv(room, 0, sizeof(room)), "room for more has been used");
	entry->err_data = NULL;
	return fits;
}

void ep_refused(struct kfi_test *t, struct ep_side *s, struct kfid_ep *ep, void *context)
{
	struct kfi_cq_data_entry entry;
	struct kfi_cq_err_entry err;
	struct ep_event e;
	ssize_t n;
	u32 event;

	if (has_feature(F_WRITES_ANSWERED)) {
		ep_failed_op(t, s->tx, context, KFI_EACCES, NULL);
		return;
	}
	/* It has ended when it was sent, unless the answer was quicker. */
	n = kfi_cq_sread(s->tx, &entry, 1, NULL, EP_WAIT_MS);
	if (n == -KFI_EAVAIL)
		n = kfi_cq_readerr(s->tx, &err, 0);
	EXPECT_EQ(t, n, 1);
	/* There may be the same events about others. */
	do {
		n = kfi_eq_sread(s->eq, &event, &e, sizeof(e), EP_WAIT_MS, 0);
	} while (n > 0 && (event != KFI_SHUTDOWN || e.entry.fid != &ep->fid));
	EXPECT_EQ(t, n, sizeof(e.entry));
}

void ep_lost(struct kfi_test *t, struct ep_pair *p)
{
	struct ep_event *e = kzalloc_obj(*e);
	u8 *byte = kzalloc(1, GFP_KERNEL);
	int i;

	for (i = 0; EXPECT(t, e && byte, "no memory") && i < 2; i++) {
		struct ep_side *s = &p->side[i];

		ep_event(t, s->eq, KFI_SHUTDOWN, &s->ep->fid, e);
		ep_nothing(t, s->tx);
		ep_nothing(t, s->rx);
		EXPECT_EQ(t, kfi_send(s->ep, byte, 1, NULL, 0, NULL), -KFI_ENOTCONN);
	}
	kfree(byte);
	kfree(e);
}

void ep_nothing(struct kfi_test *t, struct kfid_cq *cq)
{
	struct kfi_cq_data_entry entry;

	EXPECT_EQ(t, kfi_cq_read(cq, &entry, 1), -KFI_EAGAIN);
}
