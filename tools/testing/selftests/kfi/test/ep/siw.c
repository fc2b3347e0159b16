// SPDX-License-Identifier: GPL-2.0
/*
 * The cases that hold over iWARP, too, where all regions are bound to endpoints, and no message comes before its
 * receive (suite siw).
 */
#include <kfi_verbs_ext.h>

#include "debugfs.h"
#include "ep.h"
#include "suites.h"

/* There are no other offers, and no data for the peer's queue. */
static void siw_offers_case(struct kfi_test *t)
{
	struct kfi_info *hints = kfi_allocinfo(), *info = NULL;
	struct sockaddr_in address = ep_address();

	if (!EXPECT(t, hints, "no memory"))
		return;
	hints->fabric_attr->prov_name = kstrdup(kfi_provider_name, GFP_KERNEL);
	hints->ep_attr->type = KFI_EP_MSG;
	hints->caps = KFI_MSG | KFI_RMA;
	hints->src_addr = kmemdup(&address, sizeof(address), GFP_KERNEL);
	hints->src_addrlen = sizeof(address);
	hints->domain_attr->mr_mode = EP_MODE;
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, KFI_SOURCE, hints, &info),
		  -KFI_ENODATA);
	kfi_freeinfo(info);
	info = NULL;
	hints->domain_attr->mr_mode |= KFI_MR_ENDPOINT;
	if (EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, KFI_SOURCE, hints, &info), 0)) {
		EXPECT_EQ(t, info->domain_attr->mr_mode, EP_MODE | KFI_MR_ENDPOINT);
		EXPECT_EQ(t, info->domain_attr->cq_data_size, 0);
		EXPECT(t, !info->next, "more than one offer");
	}
	kfi_freeinfo(info);
	kfi_freeinfo(hints);
}

/* Without the bit in its mode there is no domain. */
static void siw_mode_case(struct kfi_test *t)
{
	struct sockaddr_in address = ep_address();
	struct kfid_domain *domain = NULL;
	struct kfid_fabric *fabric = NULL;
	struct ep_wants wants = {};
	struct kfi_info *info = ep_info_for(t, &address, KFI_SOURCE, &wants);

	if (!info)
		return;
	info->domain_attr->mr_mode = EP_MODE;
	if (EXPECT_EQ(t, kfi_fabric(info->fabric_attr, &fabric, NULL), 0)) {
		EXPECT_EQ(t, kfi_domain(fabric, info, &domain, NULL), -KFI_ENODATA);
		EXPECT_EQ(t, kfi_close(&fabric->fid), 0);
	}
	kfi_freeinfo(info);
}

/* A region that is enabled before its endpoint is connected can't be registered yet. */
static void siw_early_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_listening(t, NULL);
	struct kfid_mr *mr = NULL;
	void *mem = kzalloc(64, GFP_KERNEL);

	if (p && EXPECT(t, mem, "no memory") &&
	    EXPECT_EQ(t, kfi_mr_reg(p->side[0].domain, mem, 64, KFI_REMOTE_WRITE, 0, 0, 0, &mr, NULL),
		      0) &&
	    EXPECT_EQ(t, kfi_mr_bind(mr, &p->side[0].ep->fid, 0), 0)) {
		EXPECT_EQ(t, kfi_mr_enable(mr), -KFI_EAGAIN);
		EXPECT_EQ(t, kfi_mr_enable(mr), -KFI_EAGAIN);
		EXPECT_EQ(t, kfi_mr_key(mr), KFI_KEY_NOTAVAIL);
	}
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

/* Where a queue tells of that, twice, and nobody reads it: when the region is closed nothing names it any more. */
static void siw_early_told_case(struct kfi_test *t)
{
	struct kfi_eq_attr attr = { .size = 8, .wait_obj = KFI_WAIT_UNSPEC };
	struct ep_pair *p = ep_listening(t, NULL);
	struct ep_side *s = p ? &p->side[0] : NULL;
	void *mem = kzalloc(64, GFP_KERNEL);
	struct kfi_eq_err_entry err = {};
	struct kfi_eq_entry entry = {};
	struct kfid_eq *eq = NULL;
	struct kfid_mr *mr = NULL;
	u32 event = 0;

	if (p && EXPECT(t, mem, "no memory") &&
	    EXPECT_EQ(t, kfi_eq_open(s->fabric, &attr, &eq, NULL, NULL), 0) &&
	    EXPECT_EQ(t, kfi_domain_bind(s->domain, &eq->fid, KFI_REG_MR), 0) &&
	    EXPECT_EQ(t, kfi_mr_reg(s->domain, mem, 64, KFI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), 0) &&
	    EXPECT_EQ(t, kfi_mr_bind(mr, &s->ep->fid, 0), 0) &&
	    EXPECT_EQ(t, kfi_mr_enable(mr), 0)) {
		/* A failure waits to be read: the region may be enabled again. */
		EXPECT_EQ(t, kfi_eq_sread(eq, &event, &entry, sizeof(entry), EP_WAIT_MS, 0),
			  -KFI_EAVAIL);
		EXPECT_EQ(t, kfi_eq_readerr(eq, &err, KFI_PEEK), sizeof(err));
		EXPECT_EQ(t, err.err, KFI_EAGAIN);
		EXPECT(t, err.fid == &mr->fid, "an event about another region");
		EXPECT_EQ(t, kfi_mr_enable(mr), 0);
	}
	/* Which waits for the second one. */
	if (mr && EXPECT_EQ(t, kfi_close(&mr->fid), 0))
		EXPECT_EQ(t, kfi_eq_readerr(eq, &err, 0), -KFI_EAGAIN);
	if (eq)
		ep_domain_close(t, s, eq);
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

/*
 * A connection that nobody answers is closed while the peer has the request: siw waits for ten
 * seconds at most.
 */
static void siw_connecting_case(struct kfi_test *t)
{
	struct ep_event *e = kzalloc_obj(*e);
	struct ep_pair *p = ep_listening(t, NULL);

	if (p && EXPECT(t, e, "no memory") &&
	    EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0) &&
	    ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e)) {
		EXPECT_EQ(t, kfi_close(&p->side[0].ep->fid), 0);
		p->side[0].ep = NULL;
		kfi_freeinfo(e->entry.info);
	}
	if (p)
		ep_pair_close(t, p);
	kfree(e);
}

/*
 * The driver returns an errno from iw_connect() if the listener was closed after the address was resolved and before
 * the request was sent. If the listener is closed later, iw_cm reports a rejection with that errno.
 */
static void siw_reset_case(struct kfi_test *t)
{
	struct kfi_verbs_dom_ops *verbs;
	struct kfi_eq_err_entry err;
	struct ib_device *dev;
	struct ep_pair *p;
	void *table;

	if (!needs_model(t))
		return;
	p = ep_listening(t, NULL);
	if (!p || !EXPECT_EQ(t, kfi_open_ops(&p->side[0].domain->fid, KFI_VERBS_DOM_OPS_1, 0, &table, NULL), 0))
		goto out;
	verbs = table;
	dev = verbs->get_ib_device(&p->side[0].domain->fid);
	if (nic_set(t, dev, "errno", ECONNRESET) && nic_set(t, dev, "connect", 1)) {
		EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
		ep_failed(t, p->side[0].eq, &p->side[0].ep->fid, KFI_ECONNREFUSED, &err);
		EXPECT_EQ(t, err.prov_errno, -ECONNRESET);
		EXPECT_EQ(t, err.err_data_size, 0);
	}
	nic_set(t, dev, "connect", 0);
	nic_set(t, dev, "errno", EIO);
out:
	if (p)
		ep_pair_close(t, p);
}

static const struct kfi_case cases[] = {
	{ "offers", siw_offers_case },
	{ "mode", siw_mode_case },
	{ "early", siw_early_case },
	{ "early_told", siw_early_told_case },
	{ "connecting", siw_connecting_case },
	{ "reset", siw_reset_case },
	{ "data", ep_data_case },
	{ "nobody", ep_nobody_case },
	{ "shutdown", ep_shutdown_case },
	{ "states", ep_states_case },
	{ "order", ep_order_case },
	{ "flushed", ep_flushed_case },
	{ "full", ep_full_case },
	{ "selective", ep_selective_case },
	{ "shared", ep_shared_case },
	{ "shared_many", ep_shared_many_case },
	{ "shared_once", ep_shared_once_case },
	{ "regions", ep_regions_case },
	{ "regions_refused", ep_regions_refused_case },
	{ "regions_ends", ep_regions_ends_case },
	{ "regions_accessed", ep_regions_accessed_case },
	{ "regions_many", ep_regions_many_case },
	{ "regions_down", ep_regions_down_case },
	{ "regions_falling", ep_regions_falling_case },
	{ "left", ep_left_case },
	{ "closing", ep_closing_case },
	{ "cq_first", ep_cq_first_case },
	{ "handle", ep_handle_case },
	{ "names", ep_names_case },
	{ "listen_once", ep_listen_once_case },
	{ "in_use", ep_in_use_case },
	{ "sizes", ep_sizes_case },
	{ "inject", ep_inject_case },
	{ "bad_memory", ep_bad_memory_case },
	{ "size_left", ep_size_left_case },
	{ "options", ep_options_case },
	{ "no_io", ep_no_io_case },
	{ "time_limit", ep_time_limit_case },
	{ "backlog", ep_backlog_case },
	{ "sinks", ep_sinks_case },
	{ "sinks_worn", ep_sinks_worn_case },
	{ "sinks_closed", ep_sinks_closed_case },
	{ "sinks_failed", ep_sinks_failed_case },
	{ "sinks_failed_together", ep_sinks_failed_together_case },
	{ "sinks_refused", ep_sinks_refused_case },
};

const struct kfi_suite suite_siw = {
	.name = "siw",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
	.connects = true,
};
