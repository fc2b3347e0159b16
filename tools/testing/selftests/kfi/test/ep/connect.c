// SPDX-License-Identifier: GPL-2.0
/* Connecting, refusing to, and taking connections down. */
#include <linux/delay.h>

#include <kfi_verbs_ext.h>

#include "ep.h"
#include "job.h"

/* Private data go both ways, and are cut to the room that the reader has. */
void ep_data_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_listening(t, NULL);
	static const struct ep_wants none;
	struct kfi_eq_cm_entry cut;
	struct ep_event *e;
	u8 data[CM_ACCEPT + 1];
	u32 event;

	if (!p)
		return;
	e = kzalloc_obj(*e);
	pattern(data, sizeof(data), 3);
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, data, CM_REQUEST + 1), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 1), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, data, CM_REQUEST), 0);
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, data, CM_REQUEST), -KFI_EOPBADSTATE);
	if (!EXPECT(t, e, "no memory") ||
	    !EXPECT(t, ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e) >=
			       sizeof(e->entry) + CM_REQUEST, "private data are missing"))
		goto out;
	EXPECT(t, pattern_is(e->entry.data, CM_REQUEST, 3), "other private data");
	if (EXPECT(t, e->entry.info && e->entry.info->handle, "no info, or no handle") &&
	    ep_open(t, &p->side[1], e->entry.info, &none)) {
		EXPECT_EQ(t, kfi_accept(p->side[1].ep, data, CM_ACCEPT + 1), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_accept(p->side[1].ep, data, CM_ACCEPT), 0);
	}
	kfi_freeinfo(e->entry.info);
	EXPECT_EQ(t, kfi_eq_sread(p->side[1].eq, &event, &cut, sizeof(cut), EP_WAIT_MS, 0),
		  sizeof(cut));
	EXPECT_EQ(t, event, KFI_CONNECTED);
	/* Room for some of the data, or for none; what is only looked at stays whole. */
	memset(e, 0x5a, sizeof(*e));
	EXPECT_EQ(t, kfi_eq_sread(p->side[0].eq, &event, e, sizeof(e->entry) + 7, EP_WAIT_MS, KFI_PEEK),
		  sizeof(e->entry) + 7);
	EXPECT(t, pattern_is(e->entry.data, 7, 3) && e->entry.data[7] == 0x5a, "other private data");
	EXPECT_EQ(t, kfi_eq_read(p->side[0].eq, &event, &cut, sizeof(cut), KFI_PEEK), sizeof(cut));
	EXPECT(t, ep_event(t, p->side[0].eq, KFI_CONNECTED, &p->side[0].ep->fid, e) >=
			  sizeof(e->entry) + CM_ACCEPT, "private data are missing");
	EXPECT(t, pattern_is(e->entry.data, CM_ACCEPT, 3), "other private data");
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), -KFI_EISCONN);
out:
	kfree(e);
	ep_pair_close(t, p);
}

/* A side that is rejected is told, with data; and nothing is left to answer. */
void ep_reject_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_listening(t, NULL);
	struct kfi_eq_err_entry err;
	struct ep_event *e;
	u8 data[CM_REJECT + 1];

	if (!p)
		return;
	e = kzalloc_obj(*e);
	pattern(data, sizeof(data), 5);
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
	if (!EXPECT(t, e, "no memory") ||
	    !ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e))
		goto out;
	EXPECT_EQ(t, kfi_reject(p->pep, e->entry.info->handle, data, CM_REJECT + 1), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_reject(p->pep, &p->pep->fid, data, CM_REJECT), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_reject(p->pep, e->entry.info->handle, data, CM_REJECT), 0);
	EXPECT_EQ(t, kfi_reject(p->pep, e->entry.info->handle, data, CM_REJECT), -KFI_EINVAL);
	kfi_freeinfo(e->entry.info);
	ep_failed(t, p->side[0].eq, &p->side[0].ep->fid, KFI_ECONNREFUSED, &err);
	if (has_feature(F_REJECT_REASON)) {
		const char *words = kfi_eq_strerror(p->side[0].eq, err.prov_errno, NULL, NULL, 0);

		EXPECT(t, err.prov_errno >= KFI_VERBS_REJECTED && strstr(words, "consumer"),
		       "%d means \"%s\"", err.prov_errno, words);
	}
	if (EXPECT(t, err.err_data && err.err_data_size >= CM_REJECT, "no data of the peer's"))
		EXPECT(t, pattern_is(err.err_data, CM_REJECT, 5), "other private data");
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), -KFI_EOPBADSTATE);
out:
	kfree(e);
	ep_pair_close(t, p);
}

/*
 * The side that asked has left before the answer, which the call or an event reports; or it is too
 * early for that.
 */
static bool left_early(struct kfi_test *t, unsigned int ms)
{
	static const struct ep_wants none;
	struct ep_pair *p = ep_listening(t, NULL);
	struct ep_event *e = kzalloc_obj(*e);
	struct kfi_eq_err_entry err;
	bool told = false;
	u32 event;
	int ret;

	if (!p || !EXPECT(t, e, "no memory"))
		goto out;
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
	if (!ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e))
		goto out;
	EXPECT_EQ(t, kfi_close(&p->side[0].ep->fid), 0);
	p->side[0].ep = NULL;
	if (ep_open(t, &p->side[1], e->entry.info, &none)) {
		msleep(ms);
		ret = kfi_accept(p->side[1].ep, NULL, 0);
		told = ret == -KFI_ECONNRESET;
		if (told) {
			EXPECT_EQ(t, kfi_accept(p->side[1].ep, NULL, 0), -KFI_EOPBADSTATE);
		} else if (EXPECT_EQ(t, ret, 0) &&
			   kfi_eq_read(p->side[1].eq, &event, e, sizeof(*e), 0) == -KFI_EAVAIL) {
			told = true;
			ep_failed(t, p->side[1].eq, &p->side[1].ep->fid, KFI_ECONNRESET, &err);
		}
	}
	kfi_freeinfo(e->entry.info);
out:
	if (p)
		ep_pair_close(t, p);
	kfree(e);
	return told;
}

void ep_left_case(struct kfi_test *t)
{
	unsigned int ms;

	for (ms = 1; ms <= 8192 && !t->failures; ms *= 2)
		if (left_early(t, ms))
			return;
	EXPECT(t, t->failures, "who answers isn't told");
}

/* Nobody listens: an error event. */
void ep_nobody_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_listening(t, NULL);
	struct sockaddr_in elsewhere = ep_address();
	struct kfi_eq_err_entry err;

	if (!p)
		return;
	elsewhere.sin_port = htons(9);
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, &elsewhere, NULL, 0), 0);
	ep_failed(t, p->side[0].eq, &p->side[0].ep->fid, KFI_ECONNREFUSED, &err);
	ep_pair_close(t, p);
}

/* Either side takes the connection down, and both are told, once. */
void ep_shutdown_case(struct kfi_test *t)
{
	struct ep_event *e = kzalloc_obj(*e);
	struct ep_pair *p;
	int i, j;
	u32 event;

	for (i = 0; e && i < 2; i++) {
		p = ep_connected(t, NULL);
		if (!p)
			break;
		EXPECT_EQ(t, kfi_shutdown(p->side[i].ep, 1), -KFI_EBADFLAGS);
		EXPECT_EQ(t, kfi_shutdown(p->side[i].ep, 0), 0);
		for (j = 0; j < 2; j++)
			ep_event(t, p->side[j].eq, KFI_SHUTDOWN, &p->side[j].ep->fid, e);
		EXPECT_EQ(t, kfi_shutdown(p->side[i].ep, 0), -KFI_ENOTCONN);
		for (j = 0; j < 2; j++) {
			EXPECT_EQ(t, kfi_eq_read(p->side[j].eq, &event, e, sizeof(*e), 0),
				  -KFI_EAGAIN);
			EXPECT_EQ(t, kfi_send(p->side[j].ep, e, 8, NULL, 0, NULL), -KFI_ENOTCONN);
		}
		ep_pair_close(t, p);
	}
	kfree(e);
}

/* Everything can be closed at any time, in the order that the parents demand. */
void ep_closing_case(struct kfi_test *t)
{
	struct ep_event *e = kzalloc_obj(*e);
	struct kfi_eq_err_entry err;
	struct ep_pair *p;
	u32 event;
	int read;

	/*
	 * A request that has just been sent, one that nobody has read, one that nobody has answered, and one that is
	 * gone. iw_cm drops a request that arrives while the listener is being closed. So over iWARP the first has no
	 * answer, and is left out.
	 */
	for (read = kfi_iwarp; read < 2; read++) {
		p = ep_listening(t, NULL);
		if (!p)
			break;
		EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
		if (read)
			EXPECT(t, kfi_eq_sread(p->side[1].eq, &event, e, sizeof(*e), EP_WAIT_MS, KFI_PEEK) > 0,
			       "no request");
		EXPECT_EQ(t, kfi_close(&p->pep->fid), 0);
		p->pep = NULL;
		ep_failed(t, p->side[0].eq, &p->side[0].ep->fid, KFI_ECONNREFUSED, &err);
		ep_pair_close(t, p);
	}
	p = ep_listening(t, NULL);
	if (p && e) {
		EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
		if (ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e)) {
			EXPECT_EQ(t, kfi_close(&p->pep->fid), 0);
			p->pep = NULL;
			EXPECT_EQ(t, kfi_endpoint(p->side[1].domain, e->entry.info,
						  &p->side[1].ep, NULL), -KFI_EINVAL);
			kfi_freeinfo(e->entry.info);
		}
		ep_failed(t, p->side[0].eq, &p->side[0].ep->fid, KFI_ECONNREFUSED, &err);
		ep_pair_close(t, p);
	}
	/* While connecting. */
	p = ep_listening(t, NULL);
	if (p) {
		EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
		EXPECT_EQ(t, kfi_close(&p->side[0].ep->fid), 0);
		p->side[0].ep = NULL;
		ep_pair_close(t, p);
	}
	/* An endpoint that was made to answer, and never does. */
	p = ep_listening(t, NULL);
	if (p && e) {
		EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
		if (ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e)) {
			EXPECT_EQ(t, kfi_endpoint(p->side[1].domain, e->entry.info,
						  &p->side[1].ep, NULL), 0);
			kfi_freeinfo(e->entry.info);
			EXPECT_EQ(t, kfi_close(&p->side[1].ep->fid), 0);
			p->side[1].ep = NULL;
		}
		ep_failed(t, p->side[0].eq, &p->side[0].ep->fid, KFI_ECONNREFUSED, &err);
		ep_pair_close(t, p);
	}
	/* Connected: the domain can't be closed before the endpoint. */
	p = ep_connected(t, NULL);
	if (p) {
		EXPECT_EQ(t, kfi_close(&p->side[0].domain->fid), -KFI_EBUSY);
		ep_pair_close(t, p);
	}
	kfree(e);
}

/* Calls that are not allowed yet, or not any more. */
void ep_states_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_listening(t, NULL);
	struct kfid_ep *ep;
	u8 buf[8] = {};
	struct ep_side *s;

	if (!p)
		return;
	s = &p->side[0];
	EXPECT_EQ(t, kfi_send(s->ep, s, 8, NULL, 0, NULL), -KFI_ENOTCONN);
	EXPECT_EQ(t, kfi_read(s->ep, s, 8, NULL, 0, 0, 1, NULL), -KFI_ENOTCONN);
	EXPECT_EQ(t, kfi_ep_bind(s->ep, &s->tx->fid, KFI_TRANSMIT), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, kfi_enable(s->ep), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, kfi_accept(s->ep, NULL, 0), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, kfi_shutdown(s->ep, 0), -KFI_ENOTCONN);
	EXPECT_EQ(t, kfi_listen(p->pep), -KFI_EOPBADSTATE);
	if (EXPECT_EQ(t, kfi_endpoint(s->domain, p->info, &ep, NULL), 0)) {
		EXPECT_EQ(t, kfi_recv(ep, buf, sizeof(buf), NULL, 0, NULL), -KFI_EOPBADSTATE);
		EXPECT_EQ(t, kfi_enable(ep), -KFI_ENOEQ);
		EXPECT_EQ(t, kfi_ep_bind(ep, &s->eq->fid, KFI_RECV), -KFI_EBADFLAGS);
		EXPECT_EQ(t, kfi_ep_bind(ep, &s->eq->fid, 0), 0);
		EXPECT_EQ(t, kfi_ep_bind(ep, &s->eq->fid, 0), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_enable(ep), -KFI_ENOCQ);
		EXPECT_EQ(t, kfi_ep_bind(ep, &s->tx->fid, 0), -KFI_EBADFLAGS);
		EXPECT_EQ(t, kfi_ep_bind(ep, &s->tx->fid, KFI_TRANSMIT), 0);
		EXPECT_EQ(t, kfi_ep_bind(ep, &s->rx->fid, KFI_TRANSMIT | KFI_RECV), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_enable(ep), -KFI_ENOCQ);
		EXPECT_EQ(t, kfi_ep_bind(ep, &p->side[1].rx->fid, KFI_RECV), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_ep_bind(ep, &s->rx->fid, KFI_RECV), 0);
		/* Connecting enables. */
		EXPECT_EQ(t, kfi_connect(ep, NULL, NULL, 0), 0);
		EXPECT_EQ(t, kfi_enable(ep), -KFI_EOPBADSTATE);
		EXPECT_EQ(t, kfi_close(&ep->fid), 0);
	}
	ep_pair_close(t, p);
}

/* A handle that is none, is used twice, or is another's. */
void ep_handle_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_listening(t, NULL);
	struct ep_event *e = kzalloc_obj(*e);
	struct kfid_ep *ep;

	if (!p || !e)
		goto out;
	p->info->handle = &p->pep->fid;
	EXPECT_EQ(t, kfi_endpoint(p->side[0].domain, p->info, &ep, NULL), -KFI_EINVAL);
	p->info->handle = NULL;
	EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
	if (ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e)) {
		EXPECT_EQ(t, kfi_endpoint(p->side[1].domain, e->entry.info, &p->side[1].ep, NULL),
			  0);
		EXPECT_EQ(t, kfi_endpoint(p->side[1].domain, e->entry.info, &ep, NULL),
			  -KFI_EINVAL);
		EXPECT_EQ(t, kfi_reject(p->pep, e->entry.info->handle, NULL, 0), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_connect(p->side[1].ep, NULL, NULL, 0), -KFI_EOPBADSTATE);
		kfi_freeinfo(e->entry.info);
	}
out:
	kfree(e);
	if (p)
		ep_pair_close(t, p);
}

/* A passive endpoint that is given another address is asked for a connection there. */
static void named_anew(struct kfi_test *t, struct ep_pair *p, struct sockaddr_in taken)
{
	struct sockaddr_in where = ep_address(), name = {};
	static const struct ep_wants none;
	struct ep_side *s = &p->side[1], side = p->side[0];
	struct kfi_info *source = ep_info(t, &where, KFI_SOURCE, 0);
	struct ep_event *e = kzalloc_obj(*e);
	struct kfid_pep *pep = NULL;
	size_t len = sizeof(name);

	side.ep = NULL;
	where.sin_port = htons(18999);
	if (!EXPECT(t, source && e, "no memory") ||
	    !EXPECT_EQ(t, kfi_passive_ep(s->fabric, source, &pep, NULL), 0) ||
	    !EXPECT_EQ(t, kfi_pep_bind(pep, &s->eq->fid, 0), 0))
		goto out;
	EXPECT_EQ(t, kfi_setname(&pep->fid, NULL, sizeof(where)), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_setname(&pep->fid, &where, sizeof(where) - 1), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_setname(&p->side[0].ep->fid, &where, sizeof(where)), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_setname(&pep->fid, &taken, sizeof(taken)), 0);
	EXPECT_EQ(t, kfi_listen(pep), -KFI_EADDRINUSE);
	EXPECT_EQ(t, kfi_setname(&pep->fid, &where, sizeof(where)), 0);
	EXPECT_EQ(t, kfi_listen(pep), 0);
	EXPECT_EQ(t, kfi_getname(&pep->fid, &name, &len), 0);
	EXPECT(t, name.sin_port == where.sin_port &&
		       name.sin_addr.s_addr == where.sin_addr.s_addr, "another name");
	if (ep_open(t, &side, p->info, &none)) {
		EXPECT_EQ(t, kfi_connect(side.ep, &where, NULL, 0), 0);
		if (ep_event(t, s->eq, KFI_CONNREQ, &pep->fid, e))
			kfi_freeinfo(e->entry.info);
	}
out:
	if (side.ep)
		EXPECT_EQ(t, kfi_close(&side.ep->fid), 0);
	if (pep)
		EXPECT_EQ(t, kfi_close(&pep->fid), 0);
	kfi_freeinfo(source);
	kfree(e);
}

/*
 * A port in use is told from an address that isn't there, whichever of the two addresses is the unspecified
 * one. Each can be listened at with another port.
 */
static void listen_twice(struct kfi_test *t, struct kfid_pep *first, struct kfid_pep *second, bool any)
{
	struct sockaddr_in where = ep_address(), other = where;
	size_t len = sizeof(where);

	*(any ? &where : &other) = (struct sockaddr_in) { .sin_family = AF_INET };
	EXPECT_EQ(t, kfi_setname(&first->fid, &where, sizeof(where)), 0);
	EXPECT_EQ(t, kfi_listen(first), 0);
	EXPECT_EQ(t, kfi_getname(&first->fid, &where, &len), 0);
	other.sin_port = where.sin_port;
	EXPECT(t, other.sin_port, "no port");
	EXPECT_EQ(t, kfi_setname(&second->fid, &where, sizeof(where)), 0);
	EXPECT_EQ(t, kfi_listen(second), -KFI_EADDRINUSE);
	EXPECT_EQ(t, kfi_setname(&second->fid, &other, sizeof(other)), 0);
	EXPECT_EQ(t, kfi_listen(second), -KFI_EADDRINUSE);
	other.sin_port = 0;
	EXPECT_EQ(t, kfi_setname(&second->fid, &other, sizeof(other)), 0);
	EXPECT_EQ(t, kfi_listen(second), 0);
}

void ep_in_use_case(struct kfi_test *t)
{
	struct sockaddr_in address = ep_address();
	struct kfi_info *info = ep_info(t, &address, KFI_SOURCE, 0);
	static const struct ep_wants none;
	struct kfid_pep *pep[2] = {};
	struct ep_side s = {};
	int any, i;

	if (!info || !ep_side_open(t, &s, info, &none))
		goto out;
	for (any = 0; any < 2; any++) {
		for (i = 0; i < 2; i++)
			if (EXPECT_EQ(t, kfi_passive_ep(s.fabric, info, &pep[i], NULL), 0))
				EXPECT_EQ(t, kfi_pep_bind(pep[i], &s.eq->fid, 0), 0);
		if (pep[0] && pep[1])
			listen_twice(t, pep[0], pep[1], any);
		for (i = 0; i < 2; i++)
			if (pep[i])
				EXPECT_EQ(t, kfi_close(&pep[i]->fid), 0);
	}
out:
	ep_side_close(t, &s);
	kfi_freeinfo(info);
}

/* The addresses of both sides. */
void ep_names_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_connected(t, NULL);
	struct sockaddr_in listener, peer, name;
	size_t len = sizeof(listener);

	if (!p)
		return;
	EXPECT_EQ(t, kfi_getname(&p->pep->fid, &listener, &len), 0);
	EXPECT_EQ(t, len, sizeof(listener));
	EXPECT_EQ(t, kfi_getpeer(p->side[0].ep, &peer, &len), 0);
	EXPECT(t, peer.sin_port == listener.sin_port, "another peer");
	EXPECT_EQ(t, kfi_getname(&p->side[1].ep->fid, &name, &len), 0);
	EXPECT(t, name.sin_port == listener.sin_port, "another name");
	EXPECT_EQ(t, kfi_getpeer(p->side[1].ep, &peer, &len), 0);
	len = 4;
	EXPECT_EQ(t, kfi_getpeer(p->side[0].ep, &peer, &len), -KFI_ETOOSMALL);
	EXPECT_EQ(t, len, sizeof(peer));
	EXPECT_EQ(t, kfi_setname(&p->pep->fid, &listener, sizeof(listener)), -KFI_EOPBADSTATE);
	named_anew(t, p, listener);
	ep_pair_close(t, p);
}

/* How many threads want one passive endpoint to listen, and how many of them haven't begun. */
#define LISTENERS	3

struct listening {
	struct kfid_pep *pep;
	atomic_t waiting;
};

static int listen_together(void *data)
{
	struct listening *l = data;

	atomic_dec(&l->waiting);
	while (atomic_read(&l->waiting))
		cond_resched();
	return kfi_listen(l->pep);
}

/* Of several threads that call kfi_listen() at a time, one succeeds, and the others are told so. */
static bool listens_once(struct kfi_test *t, struct kfid_fabric *fabric, struct kfi_info *info,
			 struct kfid_eq *eq)
{
	struct listening l = { .waiting = ATOMIC_INIT(LISTENERS) };
	struct job jobs[LISTENERS];
	int i, ret, done = 0;

	if (!EXPECT_EQ(t, kfi_passive_ep(fabric, info, &l.pep, NULL), 0))
		return false;
	if (!EXPECT_EQ(t, kfi_pep_bind(l.pep, &eq->fid, 0), 0))
		goto out;
	for (i = 0; i < LISTENERS; i++)
		if (!job_start(t, &jobs[i], listen_together, &l))
			atomic_dec(&l.waiting);
	for (i = 0; i < LISTENERS; i++) {
		ret = job_end(t, &jobs[i]);
		if (ret)
			EXPECT_EQ(t, ret, -KFI_EOPBADSTATE);
		else
			done++;
	}
	EXPECT_EQ(t, done, 1);
out:
	return EXPECT_EQ(t, kfi_close(&l.pep->fid), 0) && !t->failures;
}

void ep_listen_once_case(struct kfi_test *t)
{
	struct kfi_eq_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct sockaddr_in address = ep_address();
	struct kfi_info *info = ep_info(t, &address, KFI_SOURCE, 0);
	unsigned int i, n = scaled(200);
	struct kfid_fabric *fabric;
	struct kfid_eq *eq;

	if (!info || !EXPECT_EQ(t, kfi_fabric(info->fabric_attr, &fabric, NULL), 0))
		goto out;
	if (EXPECT_EQ(t, kfi_eq_open(fabric, &attr, &eq, NULL, NULL), 0)) {
		for (i = 0; i < n && listens_once(t, fabric, info, eq); i++)
			;
		EXPECT_EQ(t, kfi_close(&eq->fid), 0);
	}
	EXPECT_EQ(t, kfi_close(&fabric->fid), 0);
out:
	kfi_freeinfo(info);
}
