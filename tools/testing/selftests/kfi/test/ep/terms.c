// SPDX-License-Identifier: GPL-2.0
/*
 * The attributes that the RDMA core gives to queue pairs, seen there: how often they try again, and
 * how long their peers wait for a receive. The connection manager's information on those that share
 * their receives. And the workqueue on which time limits of connections run out, and whether
 * allocations start I/O there.
 */
#include <linux/kprobes.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "shared.h"

#ifdef CONFIG_KPROBES

#define FOR_EVER	7
#define OTHERWISE	6

/* How many queue pairs were given each value. */
static atomic_t retries[8], rnr_timers[32];

/* How many were given the traffic class of DSCP 10. */
#define DSCP	10
static atomic_t classes;
/* Is the port one of InfiniBand? There the subnet manager gets the class, and packets don't have it. */
static bool on_ib;

static int modifies(struct kprobe *probe, struct pt_regs *regs)
{
	const struct ib_qp_attr *attr = (void *)regs_get_kernel_argument(regs, 1);
	const struct ib_qp *qp = (void *)regs_get_kernel_argument(regs, 0);
	int mask = regs_get_kernel_argument(regs, 2);

	if (mask & IB_QP_AV)
		on_ib = rdma_protocol_ib(qp->device, rdma_ah_get_port_num(&attr->ah_attr));
	if (mask & IB_QP_RETRY_CNT)
		atomic_inc(&retries[attr->retry_cnt % ARRAY_SIZE(retries)]);
	if (mask & IB_QP_MIN_RNR_TIMER)
		atomic_inc(&rnr_timers[attr->min_rnr_timer % ARRAY_SIZE(rnr_timers)]);
	if (mask & IB_QP_AV && attr->ah_attr.grh.traffic_class == DSCP << 2)
		atomic_inc(&classes);
	return 0;
}

/* The connecting side wants to try for ever, and proposes that to the peer. */
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

/*
 * The accepting side uses its own terms, whatever the peer proposes; and waits as its options say.
 */
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

/* Both sides send with the traffic class of the one that connects. Other classes are refused. */
void ep_tclass_case(struct kfi_test *t)
{
	static const struct ep_wants wants = { .tclass = KFI_TC_DSCP | DSCP };
	static const u32 wrong[] = { KFI_TC_DSCP | 64, KFI_TC_LOW_LATENCY, DSCP };
	struct kprobe probe = { .symbol_name = "ib_modify_qp", .pre_handler = modifies };
	struct ep_pair *p = NULL;
	struct kfid_ep *ep;
	int i;

	atomic_set(&classes, 0);
	if (!needs_feature(t, F_TCLASS) || !EXPECT_EQ(t, register_kprobe(&probe), 0))
		return;
	p = ep_connected(t, &wants);
	unregister_kprobe(&probe);
	if (!p)
		return;
	EXPECT_EQ(t, atomic_read(&classes), on_ib ? 0 : 2);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		p->info->tx_attr->tclass = wrong[i];
		EXPECT_EQ(t, kfi_endpoint(p->side[0].domain, p->info, &ep, NULL), -KFI_ENODATA);
	}
	ep_pair_close(t, p);
}

/* How many requests and acceptances were for queue pairs that don't share their receives, and that do. */
static atomic_t proposed[2], accepted[2];

static int proposes(struct kprobe *probe, struct pt_regs *regs)
{
	const struct rdma_conn_param *param = (void *)regs_get_kernel_argument(regs, 1);

	atomic_inc(&proposed[!!param->srq]);
	return 0;
}

static int accepts(struct kprobe *probe, struct pt_regs *regs)
{
	const struct rdma_conn_param *param = (void *)regs_get_kernel_argument(regs, 1);

	/* The side that connects confirms without. */
	if (param)
		atomic_inc(&accepted[!!param->srq]);
	return 0;
}

/* The side that connects shares, and is rejected. */
static void propose_sharing(struct kfi_test *t, struct sharing *s)
{
	struct ep_side *side = &s->p->side[1];
	struct kfid_ep *ep = sharing_ep(t, s->p, s->p->info);
	struct kfi_eq_err_entry err;
	struct ep_event *e = kzalloc_obj(*e);

	if (ep && EXPECT(t, e, "no memory")) {
		EXPECT_EQ(t, kfi_ep_bind(ep, &s->srx->fid, 0), 0);
		EXPECT_EQ(t, kfi_enable(ep), 0);
		EXPECT_EQ(t, kfi_connect(ep, NULL, NULL, 0), 0);
		if (ep_event(t, side->eq, KFI_CONNREQ, &s->p->pep->fid, e)) {
			EXPECT_EQ(t, kfi_reject(s->p->pep, e->entry.info->handle, NULL, 0), 0);
			kfi_freeinfo(e->entry.info);
			ep_failed(t, side->eq, &ep->fid, KFI_ECONNREFUSED, &err);
		}
	}
	if (ep)
		EXPECT_EQ(t, kfi_close(&ep->fid), 0);
	kfree(e);
}

/* The connection manager is told which queue pairs share their receives, and tells the peer. */
void ep_terms_shared_case(struct kfi_test *t)
{
	struct kprobe probes[] = {
		{ .symbol_name = "rdma_connect_locked", .pre_handler = proposes },
		{ .symbol_name = "rdma_accept", .pre_handler = accepts },
	};
	struct sharing s;
	int i, set = 0;
	bool begun;

	if (!needs_feature(t, F_DEVICE))
		return;
	for (i = 0; i < ARRAY_SIZE(proposed); i++) {
		atomic_set(&proposed[i], 0);
		atomic_set(&accepted[i], 0);
	}
	begun = sharing_begin(t, &s, NULL, 1);
	for (; begun && set < ARRAY_SIZE(probes); set++)
		if (!EXPECT_EQ(t, register_kprobe(&probes[set]), 0))
			break;
	if (!t->failures && sharing_join(t, &s, 0)) {
		EXPECT_EQ(t, atomic_read(&proposed[0]), 1);
		EXPECT_EQ(t, atomic_read(&accepted[1]), 1);
		propose_sharing(t, &s);
		EXPECT_EQ(t, atomic_read(&proposed[1]), 1);
		EXPECT_EQ(t, atomic_read(&accepted[0]), 0);
	}
	while (set--)
		unregister_kprobe(&probes[set]);
	sharing_end(t, &s);
}

/* A time that no other timer is set for. */
#define CONNECT_MS	29876

/* Where it is waited for that the time is over. */
static struct workqueue_struct *limits;

static int sets(struct kprobe *probe, struct pt_regs *regs)
{
	if (regs_get_kernel_argument(regs, 3) == msecs_to_jiffies(CONNECT_MS))
		WRITE_ONCE(limits, (void *)regs_get_kernel_argument(regs, 1));
	return 0;
}

/* Does a workqueue whose name begins like this have a rescuer? */
static bool has_rescuer(const char *name)
{
	char comm[TASK_COMM_LEN];
	struct task_struct *task;
	bool found = false;

	snprintf(comm, sizeof(comm), "kworker/R-%s", name);
	rcu_read_lock();
	for_each_process(task)
		found = found || !strncmp(task->comm, comm, sizeof(comm));
	rcu_read_unlock();
	return found;
}

/*
 * A connection with a peer that is gone is given up also when there is no memory for another thread of the kernel's:
 * the memory may be what is written back over it.
 */
void ep_time_limit_case(struct kfi_test *t)
{
	struct kprobe probe = { .symbol_name = "mod_delayed_work_on", .pre_handler = sets };
	unsigned int ms = CONNECT_MS;
	struct ep_pair *p;

	if (!needs_feature(t, F_DEVICE))
		return;
	p = ep_listening(t, NULL);
	if (!p)
		return;
	limits = NULL;
	EXPECT_EQ(t, kfi_setopt(&p->side[0].ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_CONNECT_TIMEOUT, &ms,
				sizeof(ms)), 0);
	if (EXPECT_EQ(t, register_kprobe(&probe), 0)) {
		EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
		unregister_kprobe(&probe);
		EXPECT(t, limits, "no time limit was set");
		EXPECT(t, limits != system_dfl_wq, "it is on a workqueue of the kernel's");
		EXPECT(t, has_rescuer("kfi_alarms"), "the workqueue has no rescuer");
	}
	ep_pair_close(t, p);
}

/* How many changes of queue pairs workqueues have made, and how many of those where allocations may start I/O. */
static atomic_t changes, with_io;

static int changes_state(struct kprobe *probe, struct pt_regs *regs)
{
	int mask = regs_get_kernel_argument(regs, 2);

	if (!(mask & IB_QP_STATE) || !(current->flags & PF_WQ_WORKER))
		return 0;
	atomic_inc(&changes);
	if (!(current->flags & PF_MEMALLOC_NOIO))
		atomic_inc(&with_io);
	return 0;
}

/*
 * Writing back may wait for a connection to be made or given up. That must not wait for memory to
 * be written back: not where the connection manager tells of an event, and not when the time is
 * over.
 */
void ep_no_io_case(struct kfi_test *t)
{
	unsigned int ms = 300, answered;
	struct kfi_eq_err_entry err;
	struct ep_pair *p;

	if (!needs_feature(t, F_DEVICE))
		return;
	for (answered = 0; answered < 2 && !t->failures; answered++) {
		struct kprobe probe = { .symbol_name = "ib_modify_qp", .pre_handler = changes_state };

		p = ep_listening(t, NULL);
		if (!p)
			return;
		atomic_set(&changes, 0);
		atomic_set(&with_io, 0);
		if (!EXPECT_EQ(t, register_kprobe(&probe), 0)) {
			ep_pair_close(t, p);
			return;
		}
		if (answered) {
			connected(t, p);
		} else {
			EXPECT_EQ(t, kfi_setopt(&p->side[0].ep->fid, KFI_OPT_ENDPOINT,
						KFI_OPT_CONNECT_TIMEOUT, &ms, sizeof(ms)), 0);
			EXPECT_EQ(t, kfi_connect(p->side[0].ep, NULL, NULL, 0), 0);
			ep_failed(t, p->side[0].eq, &p->side[0].ep->fid, KFI_ETIMEDOUT, &err);
		}
		unregister_kprobe(&probe);
		EXPECT(t, atomic_read(&changes), "no workqueue has changed a queue pair");
		EXPECT_EQ(t, atomic_read(&with_io), 0);
		ep_pair_close(t, p);
	}
}

#else

void ep_terms_case(struct kfi_test *t)
{
	ktap_skip(t, "the kernel has no kprobes");
}

void ep_tclass_case(struct kfi_test *t)
{
	ep_terms_case(t);
}

void ep_terms_shared_case(struct kfi_test *t)
{
	ep_terms_case(t);
}

void ep_time_limit_case(struct kfi_test *t)
{
	ep_terms_case(t);
}

void ep_no_io_case(struct kfi_test *t)
{
	ep_terms_case(t);
}

#endif
