// SPDX-License-Identifier: GPL-2.0
/*
 * Every call that may sleep, made by a task that is TASK_INTERRUPTIBLE or TASK_UNINTERRUPTIBLE: the call returns, and
 * does what it does otherwise. The same over each provider (module parameters provider and address).
 */
#include <kfi_batch_ext.h>
#include <kfi_raw_ext.h>
#include <kfi_reserve_ext.h>

#include "ep/ep.h"
#include "loop/loop.h"
#include "stated.h"
#include "suites.h"

#define LEN		(2 * PAGE_SIZE)
#define WAIT_MS		20
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)

/* A call returns this in the state of the case. */
#define RETURNS(s, call, want)	EXPECT_EQ((s)->t, STATED(s, call), want)

static bool over_verbs(void)
{
	return !strcmp(kfi_provider_name, "verbs");
}

/* --- Regions --- */

static struct kfi_env *region_env_open(struct kfi_test *t)
{
	struct kfi_env *env;
	struct loop *l;

	if (over_verbs()) {
		env = env_open();
		return EXPECT_EQ(t, PTR_ERR_OR_ZERO(env), 0) ? env : NULL;
	}
	l = loop_open(t, BASIC_MODE);
	return l ? &l->env : NULL;
}

static void region_env_close(struct kfi_test *t, struct kfi_env *env)
{
	if (over_verbs())
		EXPECT_EQ(t, env_close(env), 0);
	else
		loop_close(t, container_of(env, struct loop, env));
}

static void close_region(struct stated *s, struct kfid_mr *mr)
{
	RETURNS(s, kfi_close(&mr->fid), 0);
}

static void each_call(struct stated *s)
{
	struct kfi_env *env = s->t->env;
	struct reg_req req;
	enum reg_call call;
	struct kfid_mr *mr;

	for (call = REG; call < REG_CALLS; call++) {
		if (!EXPECT_EQ(s->t, reg_prepare(env, &req, call, arena_at(env, MEM_PAGES, 40), LEN,
						 SPLIT_NONE), 0))
			continue;
		if (RETURNS(s, reg_submit(&req, &mr), 0))
			close_region(s, mr);
		reg_finish(env, &req);
	}
}

static void mapped_list(struct stated *s)
{
	struct kfi_env *env = s->t->env;
	struct scatterlist sg;

	sg_init_one(&sg, arena_at(env, MEM_KMALLOC, 0), LEN);
	if (RETURNS(s, env->dma->map_sg(&env->domain->fid, &sg, 1, DMA_BIDIRECTIONAL), 1)) {
		stated_begin(s, "unmap_sg");
		env->dma->unmap_sg(&env->domain->fid, &sg, 1, DMA_BIDIRECTIONAL);
		stated_end(s);
	}
}

/* Other pages behind the key; where no invalidation is a fence, that is refused. */
static void refreshed(struct stated *s)
{
	struct kfi_env *env = s->t->env;
	struct kfid_mr *mr;

	if (!EXPECT_EQ(s->t, reg_simple(env, arena_at(env, MEM_PAGES, 0), LEN, KFI_REMOTE, &mr), 0))
		return;
	RETURNS(s, kfi_mr_refresh(mr, NULL, 0, 0), feature_errno(F_REFRESH));
	close_region(s, mr);
}

static void raw_key(struct stated *s)
{
	struct kfid_domain *domain = s->t->env->domain;
	u8 raw[KFI_RAW_KEY_SIZE(1)];
	size_t size = sizeof(raw);
	struct kfid_mr *mr;
	u64 base, key;

	if (!EXPECT_EQ(s->t, reg_simple(s->t->env, arena_at(s->t->env, MEM_PAGES, 0), LEN,
					KFI_REMOTE, &mr), 0))
		return;
	if (RETURNS(s, kfi_mr_raw_attr(mr, &base, raw, &size, 0), 0) &&
	    RETURNS(s, kfi_mr_map_raw(domain, base, raw, size, &key, 0), 0))
		RETURNS(s, kfi_mr_unmap_key(domain, key), 0);
	close_region(s, mr);
}

/* Told of a region that was left to be closed. */
struct left {
	struct kfi_closing closing;
	struct completion done;
	int err;
};

static void left_closed(struct kfi_closing *closing, int err)
{
	struct left *left = container_of(closing, struct left, closing);

	left->err = err;
	complete(&left->done);
}

static void left_to_close(struct stated *s, const struct kfi_batch_ops *ops, struct kfid_mr *mr)
{
	struct left left = { .closing.done = left_closed };

	init_completion(&left.done);
	stated_begin(s, "close_later");
	ops->close_later(mr, &left.closing);
	stated_end(s);
	wait_for_completion(&left.done);
	EXPECT_EQ(s->t, left.err, 0);
}

#define MANY	20	/* more than are posted together */

static void batch(struct stated *s)
{
	struct kfi_env *env = s->t->env;
	struct kvec kv = { arena_at(env, MEM_PAGES, 0), LEN };
	struct kfi_mr_attr *attr = kcalloc(MANY, sizeof(*attr), GFP_KERNEL);
	struct kfid *fid = &env->domain->fid;
	struct kfid_mr *mr[MANY];
	struct kfi_batch_ops *ops;
	void *table;
	int i;

	if (!EXPECT(s->t, attr, "no memory") ||
	    !RETURNS(s, kfi_open_ops(fid, KFI_BATCH_OPS_1, 0, &table, NULL), 0))
		goto out;
	ops = table;
	for (i = 0; i < MANY; i++)
		attr[i] = (struct kfi_mr_attr) {
			.type = KFI_KVEC, .mr_iov = &kv, .iov_count = 1, .access = KFI_REMOTE,
		};
	if (!RETURNS(s, ops->regattr_many(fid, attr, MANY, 0, 0, mr, NULL), 0))
		goto out;
	left_to_close(s, ops, mr[0]);
	RETURNS(s, ops->close_many(mr + 1, MANY - 1, NULL), 0);
out:
	kfree(attr);
}

/* In a domain of its own: it stays. */
static void reserved(struct stated *s)
{
	struct kfi_env *env = s->t->env;
	struct kfid_domain *domain;
	struct kfi_reserve_ops *ops;
	struct kfid_mr *mr;
	void *table;

	if (!RETURNS(s, kfi_domain(env->fabric, env->info, &domain, NULL), 0))
		return;
	if (RETURNS(s, kfi_open_ops(&domain->fid, KFI_RESERVE_OPS_1, 0, &table, NULL), 0)) {
		ops = table;
		RETURNS(s, ops->reserve(&domain->fid, 4, 16), over_verbs() ? 0 : -KFI_ENOSYS);
		if (RETURNS(s, kfi_mr_reg(domain, arena_at(env, MEM_PAGES, 0), LEN, KFI_REMOTE, 0,
					  0, 0, &mr, NULL), 0))
			close_region(s, mr);
	}
	RETURNS(s, kfi_close(&domain->fid), 0);
}

/* Registrations that an event queue tells of. */
static void told_of(struct stated *s)
{
	struct kfi_eq_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_env *env = s->t->env;
	struct kfid_domain *domain;
	struct kfi_eq_entry entry;
	struct kfid_mr *mr;
	struct kfid_eq *eq;
	u32 event;

	if (!RETURNS(s, kfi_eq_open(env->fabric, &attr, &eq, NULL, NULL), 0))
		return;
	if (RETURNS(s, kfi_domain(env->fabric, env->info, &domain, NULL), 0)) {
		RETURNS(s, kfi_domain_bind(domain, &eq->fid, KFI_REG_MR), 0);
		if (RETURNS(s, kfi_mr_reg(domain, arena_at(env, MEM_PAGES, 0), LEN, KFI_REMOTE, 0,
					  0, 0, &mr, NULL), 0)) {
			RETURNS(s, kfi_eq_sread(eq, &event, &entry, sizeof(entry), EP_WAIT_MS, 0),
				sizeof(entry));
			close_region(s, mr);
		}
		RETURNS(s, kfi_close(&domain->fid), 0);
	}
	RETURNS(s, kfi_close(&eq->fid), 0);
}

static void removed(void *arg)
{
}

static void removal_told(struct stated *s)
{
	struct kfi_env *env = s->t->env;
	struct kfid *fid = &env->domain->fid;

	if (!over_verbs())
		return;
	EXPECT(s->t, STATED(s, env->verbs->get_ib_device(fid)) == env->dev, "another device");
	RETURNS(s, env->verbs->on_removal(fid, removed, s), 0);
	EXPECT(s->t, STATED(s, env->verbs->get_pd(fid)), "no protection domain");
	RETURNS(s, env->verbs->on_removal(fid, NULL, s), 0);
}

static void regions(struct stated *s)
{
	each_call(s);
	mapped_list(s);
	refreshed(s);
	raw_key(s);
	batch(s);
	reserved(s);
	told_of(s);
	removal_told(s);
}

static void regions_case(struct kfi_test *t)
{
	struct kfi_env *env = region_env_open(t);

	if (!env)
		return;
	t->env = env;
	stated_run(t, regions);
	t->env = NULL;
	region_env_close(t, env);
}

/* --- Endpoints and queues --- */

static bool side_opened(struct stated *s, struct ep_side *side, struct kfi_info *info)
{
	struct kfi_eq_attr eq = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_cq_attr cq = { .format = KFI_CQ_FORMAT_DATA, .wait_obj = KFI_WAIT_UNSPEC };

	return RETURNS(s, kfi_fabric(info->fabric_attr, &side->fabric, NULL), 0) &&
	       RETURNS(s, kfi_domain(side->fabric, info, &side->domain, NULL), 0) &&
	       RETURNS(s, kfi_eq_open(side->fabric, &eq, &side->eq, NULL, NULL), 0) &&
	       RETURNS(s, kfi_cq_open(side->domain, &cq, &side->tx, NULL, NULL), 0) &&
	       RETURNS(s, kfi_cq_open(side->domain, &cq, &side->rx, NULL, NULL), 0);
}

static bool endpoint_opened(struct stated *s, struct ep_side *side, struct kfi_info *info)
{
	unsigned int limit = 60000;
	size_t room, len = sizeof(room);

	return RETURNS(s, kfi_endpoint(side->domain, info, &side->ep, NULL), 0) &&
	       RETURNS(s, kfi_ep_bind(side->ep, &side->eq->fid, 0), 0) &&
	       RETURNS(s, kfi_ep_bind(side->ep, &side->tx->fid, KFI_TRANSMIT), 0) &&
	       RETURNS(s, kfi_ep_bind(side->ep, &side->rx->fid, KFI_RECV), 0) &&
	       RETURNS(s, kfi_getopt(&side->ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_CM_DATA_SIZE, &room,
				     &len), 0) &&
	       RETURNS(s, kfi_setopt(&side->ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_CONNECT_TIMEOUT, &limit,
				     sizeof(limit)), over_verbs() ? 0 : -KFI_ENOPROTOOPT) &&
	       RETURNS(s, kfi_enable(side->ep), 0);
}

static void close_object(struct stated *s, struct kfid *fid)
{
	RETURNS(s, kfi_close(fid), 0);
}

static void side_closed(struct stated *s, struct ep_side *side)
{
	if (side->ep)
		close_object(s, &side->ep->fid);
	if (side->rx)
		close_object(s, &side->rx->fid);
	if (side->tx)
		close_object(s, &side->tx->fid);
	if (side->eq)
		close_object(s, &side->eq->fid);
	if (side->domain)
		close_object(s, &side->domain->fid);
	if (side->fabric)
		close_object(s, &side->fabric->fid);
}

/* Waits for an event. */
static bool event_read(struct stated *s, struct kfid_eq *eq, u32 want, struct ep_event *e)
{
	u32 event = ~0;
	ssize_t len;

	len = STATED(s, kfi_eq_sread(eq, &event, e, sizeof(*e), EP_WAIT_MS, 0));
	return EXPECT(s->t, len >= (ssize_t)sizeof(e->entry), "reading an event is %zd", len) &&
	       EXPECT_EQ(s->t, event, want);
}

/* Waits for a completion. */
static void completion_read(struct stated *s, struct kfid_cq *cq, u64 flags)
{
	struct kfi_cq_data_entry entry = {};

	RETURNS(s, kfi_cq_sread(cq, &entry, 1, NULL, EP_WAIT_MS), 1);
	EXPECT_EQ(s->t, entry.flags, flags);
}

static bool listening(struct stated *s, struct ep_pair *p)
{
	struct sockaddr_in address = ep_address();
	struct kfi_info *source = ep_info(s->t, &address, KFI_SOURCE, EP_MODE | KFI_MR_ENDPOINT);
	size_t len = sizeof(address);
	bool done;

	if (!source)
		return false;
	done = side_opened(s, &p->side[1], source) &&
	       RETURNS(s, kfi_passive_ep(p->side[1].fabric, source, &p->pep, NULL), 0) &&
	       RETURNS(s, kfi_pep_bind(p->pep, &p->side[1].eq->fid, 0), 0) &&
	       RETURNS(s, kfi_listen(p->pep), 0) &&
	       RETURNS(s, kfi_getname(&p->pep->fid, &address, &len), 0);
	kfi_freeinfo(source);
	if (done)
		p->info = ep_info(s->t, &address, 0, EP_MODE | KFI_MR_ENDPOINT);
	return p->info && side_opened(s, &p->side[0], p->info);
}

/* Begins to connect; the passive side reads the request. */
static bool requested(struct stated *s, struct ep_pair *p, struct ep_event *e)
{
	return endpoint_opened(s, &p->side[0], p->info) &&
	       RETURNS(s, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0) &&
	       event_read(s, p->side[1].eq, KFI_CONNREQ, e);
}

static void rejected(struct stated *s, struct ep_pair *p, struct ep_event *e)
{
	struct ep_side *side = &p->side[0];
	struct kfi_eq_err_entry err = {};
	u32 event;

	if (!requested(s, p, e))
		return;
	RETURNS(s, kfi_reject(p->pep, e->entry.info->handle, NULL, 0), 0);
	kfi_freeinfo(e->entry.info);
	RETURNS(s, kfi_eq_sread(side->eq, &event, e, sizeof(*e), EP_WAIT_MS, 0), -KFI_EAVAIL);
	EXPECT_EQ(s->t, kfi_eq_readerr(side->eq, &err, 0), sizeof(err));
	EXPECT_EQ(s->t, err.err, KFI_ECONNREFUSED);
	close_object(s, &side->ep->fid);
	side->ep = NULL;
}

static bool accepted(struct stated *s, struct ep_pair *p, struct ep_event *e)
{
	bool done;

	if (!requested(s, p, e))
		return false;
	done = endpoint_opened(s, &p->side[1], e->entry.info) &&
	       RETURNS(s, kfi_accept(p->side[1].ep, NULL, 0), 0);
	kfi_freeinfo(e->entry.info);
	return done && event_read(s, p->side[0].eq, KFI_CONNECTED, e) &&
	       event_read(s, p->side[1].eq, KFI_CONNECTED, e);
}

/* A region of the endpoint's, closed before and after something has completed behind its registration. */
static void bound_region(struct stated *s, struct ep_pair *p, u8 *mem, bool behind)
{
	struct ep_side *side = &p->side[1];
	struct kfid_mr *mr;

	if (!RETURNS(s, kfi_mr_reg(side->domain, mem, 64, KFI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), 0))
		return;
	RETURNS(s, kfi_mr_bind(mr, &side->ep->fid, 0), 0);
	RETURNS(s, kfi_mr_enable(mr), 0);
	if (behind) {
		RETURNS(s, kfi_recv(p->side[0].ep, mem + 64, 8, NULL, 0, NULL), 0);
		RETURNS(s, kfi_send(side->ep, mem, 8, NULL, 0, NULL), 0);
		completion_read(s, p->side[0].rx, RECEIVED);
		completion_read(s, side->tx, SENT);
	}
	close_region(s, mr);
}

static void shut_down(struct stated *s, struct ep_pair *p, struct ep_event *e)
{
	struct sockaddr_in address;
	size_t len = sizeof(address);

	RETURNS(s, kfi_getname(&p->side[1].ep->fid, &address, &len), 0);
	RETURNS(s, kfi_getpeer(p->side[0].ep, &address, &len), 0);
	RETURNS(s, kfi_shutdown(p->side[0].ep, 0), 0);
	event_read(s, p->side[1].eq, KFI_SHUTDOWN, e);
}

static void connection(struct stated *s)
{
	struct ep_pair *p = kzalloc_obj(*p);
	struct ep_event *e = kzalloc_obj(*e);
	u8 *mem = kzalloc(128, GFP_KERNEL);

	if (!EXPECT(s->t, p && e && mem, "no memory"))
		goto out;
	if (listening(s, p)) {
		rejected(s, p, e);
		if (!p->side[0].ep && accepted(s, p, e)) {
			bound_region(s, p, mem, false);
			bound_region(s, p, mem, true);
			shut_down(s, p, e);
		}
	}
	side_closed(s, &p->side[0]);
	if (p->pep)
		close_object(s, &p->pep->fid);
	side_closed(s, &p->side[1]);
	kfi_freeinfo(p->info);
out:
	kfree(mem);
	kfree(e);
	kfree(p);
}

static void connection_case(struct kfi_test *t)
{
	stated_run(t, connection);
}

/* Nothing comes: each wait is over when its time is. */
static void waited(struct stated *s, struct ep_side *side)
{
	struct kfi_cntr_attr attr = { .events = KFI_CNTR_EVENTS_COMP, .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_cq_data_entry entry;
	struct kfid_cntr *cntr;
	struct kfid_ep *srx;
	struct ep_event e;
	u32 event;

	RETURNS(s, kfi_eq_sread(side->eq, &event, &e, sizeof(e), WAIT_MS, 0), -KFI_EAGAIN);
	RETURNS(s, kfi_cq_sread(side->tx, &entry, 1, NULL, WAIT_MS), -KFI_EAGAIN);
	if (RETURNS(s, kfi_cntr_open(side->domain, &attr, &cntr, NULL), 0)) {
		RETURNS(s, kfi_cntr_wait(cntr, 1, WAIT_MS), -KFI_ETIMEDOUT);
		close_object(s, &cntr->fid);
	}
	if (RETURNS(s, kfi_srx_context(side->domain, NULL, &srx, NULL), 0)) {
		RETURNS(s, kfi_ep_bind(srx, &side->rx->fid, KFI_RECV), 0);
		close_object(s, &srx->fid);
	}
}

static void waits(struct stated *s)
{
	struct sockaddr_in address = ep_address();
	struct ep_side side = {};
	struct kfi_info *hints, *info, *copy, *list = NULL;

	info = ep_info(s->t, &address, KFI_SOURCE, EP_MODE);
	if (!info)
		return;
	hints = STATED(s, kfi_allocinfo());
	copy = STATED(s, kfi_dupinfo(info));
	if (EXPECT(s->t, hints && copy, "no memory") &&
	    RETURNS(s, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, NULL, &list), 0))
		kfi_freeinfo(list);
	kfi_freeinfo(hints);
	kfi_freeinfo(copy);
	if (side_opened(s, &side, info))
		waited(s, &side);
	side_closed(s, &side);
	kfi_freeinfo(info);
}

static void waits_case(struct kfi_test *t)
{
	stated_run(t, waits);
}

static const struct kfi_case cases[] = {
	{ "waits", waits_case, STATED_VARIANTS },
	{ "connection", connection_case, STATED_VARIANTS },
	{ "regions", regions_case, STATED_VARIANTS },
};

const struct kfi_suite suite_states = {
	.name = "states",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = stated_name,
	.bare = true,
	.connects = true,
};
