// SPDX-License-Identifier: GPL-2.0
/*
 * What queue pairs are given by the RDMA core, seen there: how often they try again, and how long their
 * peers wait for a receive.
 */
#include <linux/kprobes.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "ep.h"

#ifdef CONFIG_KPROBES

#define FOR_EVER	7
#define OTHERWISE	6

/* How many queue pairs were given each value. */
static atomic_t retries[8], rnr_timers[32];

static int modifies(struct kprobe *probe, struct pt_regs *regs)
{
	const struct ib_qp_attr *attr = (void *)regs_get_kernel_argument(regs, 1);
	int mask = regs_get_kernel_argument(regs, 2);

	if (mask & IB_QP_RETRY_CNT)
		atomic_inc(&retries[attr->retry_cnt % ARRAY_SIZE(retries)]);
	if (mask & IB_QP_MIN_RNR_TIMER)
		atomic_inc(&rnr_timers[attr->min_rnr_timer % ARRAY_SIZE(rnr_timers)]);
	return 0;
}

/* Whoever connects wants to try for ever, and proposes that to the peer. */
static int connects(struct kprobe *probe, struct pt_regs *regs)
{
	struct rdma_conn_param *param = (void *)regs_get_kernel_argument(regs, 1);

	param->retry_count = FOR_EVER;
	return 0;
}

static bool connected(struct kfi_test *t, struct ep_pair *p)
{
	struct ep_event *e = kzalloc_obj(*e);
	static const struct ep_wants none;
	unsigned int delay = 10;
	bool done = false;

	if (EXPECT(t, e, "no memory") && EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0) &&
	    ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e)) {
		done = ep_open(t, &p->side[1], e->entry.info, &none) &&
		       EXPECT_EQ(t, kfi_setopt(&p->side[1].ep->fid, KFI_OPT_ENDPOINT,
					       KFI_OPT_RNR_DELAY, &delay, sizeof(delay)), 0) &&
		       EXPECT_EQ(t, kfi_accept(p->side[1].ep, NULL, 0), 0);
		kfi_freeinfo(e->entry.info);
	}
	done = done && ep_event(t, p->side[0].eq, KFI_CONNECTED, &p->side[0].ep->fid, e) &&
	       ep_event(t, p->side[1].eq, KFI_CONNECTED, &p->side[1].ep->fid, e);
	kfree(e);
	return done;
}

/* Who accepts goes by its own terms, whatever the peer proposes; and waits as its options say. */
void ep_terms_case(struct kfi_test *t)
{
	struct kprobe probes[] = {
		{ .symbol_name = "ib_modify_qp", .pre_handler = modifies },
		{ .symbol_name = "rdma_connect_locked", .pre_handler = connects },
	};
	struct ep_pair *p;
	int i, set;

	if (!needs_feature(t, F_DEVICE))
		return;
	p = ep_listening(t, NULL);
	for (set = 0; p && set < ARRAY_SIZE(probes); set++)
		if (!EXPECT_EQ(t, register_kprobe(&probes[set]), 0))
			break;
	for (i = 0; i < ARRAY_SIZE(retries); i++)
		atomic_set(&retries[i], 0);
	for (i = 0; i < ARRAY_SIZE(rnr_timers); i++)
		atomic_set(&rnr_timers[i], 0);
	if (p && !t->failures && connected(t, p)) {
		EXPECT_EQ(t, atomic_read(&retries[FOR_EVER]), 1);
		EXPECT_EQ(t, atomic_read(&retries[OTHERWISE]), 1);
		/* 640 and 10 microseconds. */
		EXPECT_EQ(t, atomic_read(&rnr_timers[12]), 1);
		EXPECT_EQ(t, atomic_read(&rnr_timers[1]), 1);
	}
	while (set--)
		unregister_kprobe(&probes[set]);
	if (p)
		ep_pair_close(t, p);
}

#else

void ep_terms_case(struct kfi_test *t)
{
	ktap_skip(t, "the kernel has no kprobes");
}

#endif
