// SPDX-License-Identifier: GPL-2.0
/*
 * Connections of a device with itself, or with a peer: by ib_modify_qp() with RoCE and InfiniBand, unless the connection
 * manager is under test; by the connection manager with iWARP, where there is no other way.
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/hardirq.h>
#include <linux/inet.h>
#include <net/net_namespace.h>
#include <rdma/ib_cache.h>

#include "nic_test.h"

struct nic_env nic_env = { .port = 1 };
char *nic_address = "198.51.100.1";
char *nic_peer_address = "198.51.100.2";

#define PLACES	16
/* How nic.sh names the network namespace of the peer's network devices. */
#define NIC_PEER_NSID	7

int set_state(struct ib_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

int wait_wc(struct ib_cq *cq, struct ib_wc *wc)
{
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (ib_poll_cq(cq, 1, wc) == 1)
			return 0;
		usleep_range(1000, 1500);
	}
	return -ETIMEDOUT;
}

int execute(struct side *s, struct ib_send_wr *wr)
{
	static u64 next_id;
	struct ib_wc wc;
	int err;

	wr->wr_id = ++next_id;
	wr->send_flags |= IB_SEND_SIGNALED;
	err = ib_post_send(s->qp, wr, NULL);
	if (!err)
		err = wait_wc(s->send_cq, &wc);
	if (err)
		return err;
	return wc.wr_id == wr->wr_id && wc.qp == s->qp ? wc.status : -EBADMSG;
}

static void completed(struct ib_cq *cq, void *context)
{
	struct side *s = context;

	atomic_inc(in_hardirq() ? &s->hard : &s->soft);
}

static void qp_event(struct ib_event *event, void *context)
{
	struct side *s = context;

	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		atomic_inc(&s->last_wqe);
}

bool side_open(struct kfi_test *t, struct side *s)
{
	const struct ib_cq_init_attr attr = { .cqe = 4 * PLACES };

	init_completion(&s->cm);
	s->dev = s->dev ?: nic_env.dev;
	if (!s->shared)
		s->pd = ib_alloc_pd(s->dev, 0);
	s->send_cq = ib_create_cq(s->dev, completed, NULL, s, &attr);
	s->recv_cq = ib_create_cq(s->dev, completed, NULL, s, &attr);
	return EXPECT_EQ(t, PTR_ERR_OR_ZERO(s->pd), 0) &&
	       EXPECT_EQ(t, PTR_ERR_OR_ZERO(s->send_cq), 0) &&
	       EXPECT_EQ(t, PTR_ERR_OR_ZERO(s->recv_cq), 0);
}

void side_close(struct kfi_test *t, struct side *s)
{
	if (s->id && s->qp) {
		rdma_disconnect(s->id);
		rdma_destroy_qp(s->id);
	} else if (s->qp) {
		EXPECT_EQ(t, ib_destroy_qp(s->qp), 0);
	}
	if (s->id)
		rdma_destroy_id(s->id);
	if (s->srq && !s->shared)
		ib_destroy_srq(s->srq);
	if (!IS_ERR_OR_NULL(s->recv_cq))
		ib_destroy_cq(s->recv_cq);
	if (!IS_ERR_OR_NULL(s->send_cq))
		ib_destroy_cq(s->send_cq);
	if (!IS_ERR_OR_NULL(s->pd) && !s->shared)
		ib_dealloc_pd(s->pd);
	*s = (struct side) {};
}

static void init_attr(struct side *s, struct ib_qp_init_attr *init, const struct ib_qp_cap *cap)
{
	*init = (struct ib_qp_init_attr) {
		.event_handler = qp_event,
		.qp_context = s,
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.srq = s->srq,
		.cap = *cap,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
}

/* Returns a queue pair in the state RESET, or an errno. @cap is as it was asked for. */
struct ib_qp *new_qp(struct side *s, const struct ib_qp_cap *cap)
{
	struct ib_qp_init_attr init;

	init_attr(s, &init, cap);
	return ib_create_qp(s->pd, &init);
}

static struct ib_qp_cap usual_cap(const struct side *s, const struct conn_attr *attr)
{
	return (struct ib_qp_cap) {
		.max_send_wr = attr->send_wr ?: PLACES,
		.max_recv_wr = s->srq ? 0 : PLACES,
		.max_send_sge = min(2, nic_env.expect->max_send_sge),
		.max_recv_sge = s->srq ? 0 : min(2, nic_env.expect->max_recv_sge),
		.max_inline_data = nic_env.expect->max_inline,
	};
}

/* Returns the index of a device's first GID of RoCE v2, and that GID; or an errno. */
static int roce_gid(struct ib_device *dev, union ib_gid *gid)
{
	for (int i = 0; i < NIC_GIDS; i++) {
		const struct ib_gid_attr *attr = rdma_get_gid_attr(dev, nic_env.port, i);
		bool found;

		if (IS_ERR(attr))
			continue;
		found = attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP;
		*gid = attr->gid;
		rdma_put_gid_attr(attr);
		if (found)
			return i;
	}
	return -ENETDOWN;
}

/* Fills in the way from the port of the other side, or of the same one, to that of a side. */
int path_to(struct rdma_ah_attr *ah, struct side *to)
{
	struct ib_device *from = to->dev == nic_env.dev ? nic_env.peer : nic_env.dev;
	struct ib_port_attr port;
	union ib_gid own, gid;
	int index, err;

	ah->type = rdma_ah_find_type(from, nic_env.port);
	rdma_ah_set_port_num(ah, nic_env.port);
	if (ah->type != RDMA_AH_ATTR_TYPE_ROCE) {
		err = ib_query_port(to->dev, nic_env.port, &port);
		rdma_ah_set_dlid(ah, port.lid);
		return err;
	}
	index = roce_gid(from, &own);
	err = roce_gid(to->dev, &gid);
	if (index < 0 || err < 0)
		return -ENETDOWN;
	rdma_ah_set_grh(ah, &gid, 0, index, 1, 0);
	ether_addr_copy(ah->roce.dmac, to_nic(to->dev)->ports[nic_env.port - 1].netdev->dev_addr);
	return 0;
}

/* Connects the queue pair of one side to that of the other. */
static int to_rts(struct ib_qp *qp, struct side *to, const struct conn_attr *attr)
{
	int access = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC;
	struct ib_qp_attr init = {
		.qp_state = IB_QPS_INIT,
		.port_num = nic_env.port,
		.qp_access_flags = attr->no_access ? 0 : attr->access ?: access,
	};
	struct ib_qp_attr rtr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = to->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = IB_RNR_TIMER_001_28,
	};
	struct ib_qp_attr rts = {
		.qp_state = IB_QPS_RTS,
		.timeout = 16,
		.retry_cnt = 6,
		.rnr_retry = attr->rnr_once ? 0 : 7,
		.max_rd_atomic = 1,
	};
	return path_to(&rtr.ah_attr, to) ?:
	       ib_modify_qp(qp, &init, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    IB_QP_ACCESS_FLAGS) ?:
	       ib_modify_qp(qp, &rtr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			    IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER) ?:
	       ib_modify_qp(qp, &rts, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static bool connect_by_modify(struct kfi_test *t, struct conn *c, const struct conn_attr *attr)
{
	struct side *sides[] = { &c->a, &c->b };

	for (int i = 0; i < ARRAY_SIZE(sides); i++) {
		struct ib_qp_cap cap = usual_cap(sides[i], attr);
		struct ib_qp *qp = new_qp(sides[i], &cap);

		if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(qp), 0))
			return false;
		sides[i]->qp = qp;
	}
	return EXPECT_EQ(t, to_rts(c->b.qp, &c->a, attr), 0) &&
	       EXPECT_EQ(t, to_rts(c->a.qp, &c->b, attr), 0);
}

static int cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct side *s = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		s->id = id;
	s->cm_event = event->event;
	complete(&s->cm);
	return 0;
}

static bool cm_wait(struct kfi_test *t, struct side *s, enum rdma_cm_event_type want)
{
	if (!EXPECT(t, wait_for_completion_timeout(&s->cm, msecs_to_jiffies(PATIENCE_MS)),
		    "no event of the connection manager, expected %s", rdma_event_msg(want)))
		return false;
	return EXPECT(t, s->cm_event == want, "%s, expected %s", rdma_event_msg(s->cm_event),
		      rdma_event_msg(want));
}

static bool cm_qp(struct kfi_test *t, struct side *s, const struct conn_attr *attr)
{
	struct ib_qp_cap cap = usual_cap(s, attr);
	struct ib_qp_init_attr init;

	init_attr(s, &init, &cap);
	if (!EXPECT_EQ(t, rdma_create_qp(s->id, s->pd, &init), 0))
		return false;
	s->qp = s->id->qp;
	return true;
}

/* Returns a new identifier of the connection manager, or NULL. */
static struct rdma_cm_id *new_id(struct kfi_test *t, struct net *net, struct side *s)
{
	struct rdma_cm_id *id = rdma_create_id(net, cm_handler, s, RDMA_PS_TCP, IB_QPT_RC);

	return EXPECT_EQ(t, PTR_ERR_OR_ZERO(id), 0) ? id : NULL;
}

/* Binds a listener to a port of the second side's address. The peer's network devices have their own namespace. */
static bool listen(struct kfi_test *t, struct conn *c, struct sockaddr_in *address)
{
	struct net *net = two_devices() ? get_net_ns_by_id(&init_net, NIC_PEER_NSID) : get_net(&init_net);

	if (!EXPECT(t, net, "the peer's network namespace is not there"))
		return false;
	address->sin_addr.s_addr = in_aton(two_devices() ? nic_peer_address : nic_address);
	c->listener = new_id(t, net, &c->b);
	put_net(net);
	if (!c->listener || !EXPECT_EQ(t, rdma_bind_addr(c->listener, (struct sockaddr *)address), 0) ||
	    !EXPECT_EQ(t, rdma_listen(c->listener, 1), 0))
		return false;
	*address = *(struct sockaddr_in *)&c->listener->route.addr.src_addr;
	return true;
}

static bool connect_by_cm(struct kfi_test *t, struct conn *c, const struct conn_attr *attr)
{
	struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 6,
		.rnr_retry_count = attr->rnr_once ? 0 : 7,
	};
	struct sockaddr_in address = { .sin_family = AF_INET };

	if (!listen(t, c, &address))
		return false;
	c->a.id = new_id(t, &init_net, &c->a);
	return c->a.id &&
	       EXPECT_EQ(t, rdma_resolve_addr(c->a.id, NULL, (struct sockaddr *)&address,
					      PATIENCE_MS), 0) &&
	       cm_wait(t, &c->a, RDMA_CM_EVENT_ADDR_RESOLVED) &&
	       EXPECT_EQ(t, rdma_resolve_route(c->a.id, PATIENCE_MS), 0) &&
	       cm_wait(t, &c->a, RDMA_CM_EVENT_ROUTE_RESOLVED) &&
	       cm_qp(t, &c->a, attr) &&
	       EXPECT_EQ(t, rdma_connect(c->a.id, &param), 0) &&
	       cm_wait(t, &c->b, RDMA_CM_EVENT_CONNECT_REQUEST) &&
	       cm_qp(t, &c->b, attr) &&
	       EXPECT_EQ(t, rdma_accept(c->b.id, &param), 0) &&
	       cm_wait(t, &c->a, RDMA_CM_EVENT_ESTABLISHED) &&
	       cm_wait(t, &c->b, RDMA_CM_EVENT_ESTABLISHED);
}

static void srq_event(struct ib_event *event, void *context)
{
	struct side *s = context;

	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED)
		atomic_inc(&s->srq_limit);
}

static bool srq_open(struct kfi_test *t, struct side *s)
{
	struct ib_srq_init_attr init = {
		.event_handler = srq_event,
		.srq_context = s,
		.attr = { .max_wr = PLACES, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_srq *srq = ib_create_srq(s->pd, &init);

	if (!EXPECT_EQ(t, PTR_ERR_OR_ZERO(srq), 0))
		return false;
	s->srq = srq;
	return true;
}

/* A connection, ready to send both ways. If it fails, the case has failed, and nothing is left. */
bool conn_open(struct kfi_test *t, struct conn *c, const struct conn_attr *attr)
{
	static const struct conn_attr usual;
	bool ok;

	*c = (struct conn) { .a.dev = nic_env.dev, .b.dev = nic_env.peer };
	attr = attr ?: &usual;
	if (attr->share) {
		c->b.shared = true;
		c->b.pd = attr->share->pd;
		c->b.srq = attr->share->srq;
	}
	ok = side_open(t, &c->a) && side_open(t, &c->b) && (!attr->srq || srq_open(t, &c->b));
	if (ok) {
		ok = attr->cm || nic_env.expect->iwarp ? connect_by_cm(t, c, attr) :
							 connect_by_modify(t, c, attr);
	}
	if (!ok)
		conn_close(t, c);
	return ok;
}

void conn_close(struct kfi_test *t, struct conn *c)
{
	if (c->listener)
		rdma_destroy_id(c->listener);
	c->listener = NULL;
	side_close(t, &c->a);
	side_close(t, &c->b);
}
