// SPDX-License-Identifier: GPL-2.0
/* Endpoints without operations, all but their data transfers: see slots.h. */
#include <kfi_cm.h>
#include <kfi_endpoint.h>

#include "bare.h"

static void passive(struct kfi_test *t, union bare_ops *ops)
{
	struct kfid_pep pep = {
		.fid.fclass = KFI_CLASS_PEP,
		.fid.ops = BARE(ops, t->variant, struct kfi_ops),
		.ops = BARE(ops, t->variant, struct kfi_ops_ep),
		.cm = BARE(ops, t->variant, struct kfi_ops_cm),
	};
	size_t len = 8;
	char addr[8];

	NOSYS(t, kfi_close(&pep.fid));
	NOSYS(t, kfi_pep_bind(&pep, &pep.fid, 0));
	NOSYS(t, kfi_listen(&pep));
	NOSYS(t, kfi_reject(&pep, NULL, NULL, 0));
	EXPECT(t, kfi_setname(&pep.fid, addr, len) < 0, "a name was set");
	EXPECT(t, kfi_getname(&pep.fid, addr, &len) < 0, "a name was got");
}

static void active(struct kfi_test *t, struct kfid_ep *ep)
{
	struct kfi_tx_attr tx_attr = {};
	struct kfi_rx_attr rx_attr = {};
	struct kfid_ep *other;
	struct kfid_mc *mc;
	size_t len = 8;
	char addr[8];

	NOSYS(t, kfi_ep_bind(ep, &ep->fid, 0));
	NOSYS(t, kfi_scalable_ep_bind(ep, &ep->fid, 0));
	NOSYS(t, kfi_enable(ep));
	NOSYS(t, kfi_cancel(&ep->fid, NULL));
	NOSYS(t, kfi_setopt(&ep->fid, KFI_OPT_ENDPOINT, 0, addr, len));
	NOSYS(t, kfi_getopt(&ep->fid, KFI_OPT_ENDPOINT, 0, addr, &len));
	NOSYS(t, kfi_ep_alias(ep, &other, 0));
	NOSYS(t, kfi_tx_context(ep, 0, &tx_attr, &other, NULL));
	NOSYS(t, kfi_rx_context(ep, 0, &rx_attr, &other, NULL));
	NOSYS(t, kfi_setname(&ep->fid, addr, len));
	NOSYS(t, kfi_getname(&ep->fid, addr, &len));
	NOSYS(t, kfi_getpeer(ep, addr, &len));
	NOSYS(t, kfi_connect(ep, addr, NULL, 0));
	NOSYS(t, kfi_accept(ep, NULL, 0));
	NOSYS(t, kfi_shutdown(ep, 0));
	NOSYS(t, kfi_join(ep, addr, 0, &mc, NULL));
}

void bare_endpoints_case(struct kfi_test *t)
{
	union bare_ops ops;
	struct kfid_ep ep = {
		.fid.fclass = KFI_CLASS_EP,
		.fid.ops = BARE(&ops, t->variant, struct kfi_ops),
		.ops = BARE(&ops, t->variant, struct kfi_ops_ep),
		.cm = BARE(&ops, t->variant, struct kfi_ops_cm),
	};

	active(t, &ep);
	passive(t, &ops);
}
