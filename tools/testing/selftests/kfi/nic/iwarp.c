// SPDX-License-Identifier: GPL-2.0
/*
 * iWARP connections between queue pairs of the model's devices. iw_cm demands that:
 *
 * - Each iw_connect() leads to one CONNECT_REPLY. Without it, iw_destroy_cm_id() waits forever.
 * - Each side of an established connection gets CLOSE exactly once, after its queue pair has failed.
 *
 * iw_cm can drop a request without a word. Therefore an answer finds its request by a number in
 * provider_data. A request without an answer ends with its listener, as in irdma, or after a time
 * limit.
 */
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>

#include "nic.h"

/* The time limit is for requests that iw_cm drops because it has no memory. */
#define NIC_ANSWER_JIFFIES	(20 * HZ)

/**
 * struct nic_listener - a listening iw_cm_id
 * @node: in nic_listeners
 * @cm_id: the identifier, with a reference
 */
struct nic_listener {
	struct list_head node;
	struct iw_cm_id *cm_id;
};

enum { NIC_ACTIVE, NIC_PASSIVE, NIC_SIDES };

/**
 * struct nic_side - one side of a connection
 * @cm_id: its identifier, with a reference; NULL while the passive side has not accepted
 * @qp: its queue pair, with a reference; NULL with @cm_id
 * @ord: reads that the side may issue at a time
 * @ird: reads that the side answers at a time
 */
struct nic_side {
	struct iw_cm_id *cm_id;
	struct nic_qp *qp;
	u32 ord, ird;
};

/**
 * struct nic_conn - a connection, or an attempt at one
 * @node: in nic_conns until the connection ends
 * @refs: one for @node, one while @timeout is pending
 * @number: identifies the connection to the passive side's iw_cm_id
 * @established: the passive side has accepted
 * @listener: the listener that the request went to
 * @side: both sides
 * @timeout: ends an attempt that nobody answers
 */
struct nic_conn {
	struct list_head node;
	refcount_t refs;
	unsigned long number;
	bool established;
	struct nic_listener *listener;
	struct nic_side side[NIC_SIDES];
	struct delayed_work timeout;
};

/*
 * Protects the lists and all connections in them. Taken before nic_list_lock, a queue pair's lock and the
 * locks of iw_cm_ids; iw_cm holds the latter when it calls iw_get_qp() and iw_add_ref(), which don't take this one.
 */
static DEFINE_SPINLOCK(nic_iwarp_lock);
static LIST_HEAD(nic_listeners);
static LIST_HEAD(nic_conns);
static unsigned long nic_conn_number;

static void nic_conn_put(struct nic_conn *conn)
{
	if (refcount_dec_and_test(&conn->refs))
		kfree(conn);
}

/* Returns the connection with this number, or NULL. Under nic_iwarp_lock. */
static struct nic_conn *nic_conn_by_number(unsigned long number)
{
	struct nic_conn *conn;

	list_for_each_entry(conn, &nic_conns, node)
		if (conn->number == number)
			return conn;
	return NULL;
}

/* Returns the connection of this queue pair, or NULL. Under nic_iwarp_lock. */
static struct nic_conn *nic_conn_of(struct nic_qp *qp)
{
	struct nic_conn *conn;

	list_for_each_entry(conn, &nic_conns, node)
		if (conn->side[NIC_ACTIVE].qp == qp || conn->side[NIC_PASSIVE].qp == qp)
			return conn;
	return NULL;
}

static void nic_side_put(struct nic_side *side)
{
	if (!side->cm_id)
		return;
	side->cm_id->rem_ref(side->cm_id);
	nic_qp_put(side->qp);
}

/* Gives an event without data to a side. Any context. */
static void nic_side_tell(struct nic_side *side, enum iw_cm_event_type type, int status)
{
	struct iw_cm_event event = {
		.event = type,
		.status = status,
		.ord = min(side->ord, U8_MAX),
		.ird = min(side->ird, U8_MAX),
	};

	/* iw_cm has made room for each event that a connection can have. */
	WARN_ON_ONCE(side->cm_id->event_handler(side->cm_id, &event));
}

/* Answers the active side. Any context. */
static void nic_conn_reply(struct nic_conn *conn, int status, const void *data, u8 len)
{
	struct nic_side *side = &conn->side[NIC_ACTIVE];
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REPLY,
		.status = status,
		.local_addr = side->cm_id->m_local_addr,
		.remote_addr = side->cm_id->m_remote_addr,
		.private_data = (void *)data,
		.private_data_len = len,
		.ord = min(side->ord, U8_MAX),
		.ird = min(side->ird, U8_MAX),
	};

	if (!side->cm_id->event_handler(side->cm_id, &event))
		return;
	/* There is no memory for a copy of the data. An answer must come. */
	event.private_data_len = 0;
	WARN_ON_ONCE(side->cm_id->event_handler(side->cm_id, &event));
}

/* Stops the time limit of an attempt. Under nic_iwarp_lock. */
static void nic_conn_decided(struct nic_conn *conn)
{
	if (cancel_delayed_work(&conn->timeout))
		nic_conn_put(conn);
}

/* Ends an attempt. Under nic_iwarp_lock. */
static void nic_conn_refuse(struct nic_conn *conn, int status, const void *data, u8 len)
{
	list_del_init(&conn->node);
	nic_conn_reply(conn, status, data, len);
	nic_side_put(&conn->side[NIC_ACTIVE]);
	nic_conn_decided(conn);
	nic_conn_put(conn);
}

static void nic_conn_timeout(struct work_struct *work)
{
	struct nic_conn *conn = container_of(work, struct nic_conn, timeout.work);
	unsigned long flags;

	spin_lock_irqsave(&nic_iwarp_lock, flags);
	if (!list_empty(&conn->node) && !conn->established)
		nic_conn_refuse(conn, -ETIMEDOUT, NULL, 0);
	spin_unlock_irqrestore(&nic_iwarp_lock, flags);
	nic_conn_put(conn);
}

/* Does a port's network device have this address? Any context. */
static bool nic_port_has_address(struct nic_port *port, const struct sockaddr_storage *addr)
{
	struct net_device *netdev;
	bool has = false;

	rcu_read_lock();
	netdev = READ_ONCE(port->netdev);
	if (netdev && addr->ss_family == AF_INET)
		has = __ip_dev_find(dev_net(netdev), ((const struct sockaddr_in *)addr)->sin_addr.s_addr,
				    false) == netdev;
	else if (netdev && addr->ss_family == AF_INET6)
		has = ipv6_chk_addr(dev_net(netdev), &((const struct sockaddr_in6 *)addr)->sin6_addr,
				    netdev, 1);
	rcu_read_unlock();
	return has;
}

/* Returns the device that has this address on an active port, or NULL. Any context. */
static struct nic_device *nic_owner(const struct sockaddr_storage *addr)
{
	struct nic_device *nic, *owner = NULL;
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&nic_list_lock, flags);
	list_for_each_entry(nic, &nic_list, node)
		for (i = 0; i < nic->ib.phys_port_cnt; i++)
			if (nic_port_active(&nic->ports[i]) &&
			    nic_port_has_address(&nic->ports[i], addr))
				owner = nic;
	spin_unlock_irqrestore(&nic_list_lock, flags);
	return owner;
}

static __be16 nic_ip_port(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? ((const struct sockaddr_in *)addr)->sin_port :
					    ((const struct sockaddr_in6 *)addr)->sin6_port;
}

/* Does a listener accept connections to this address? */
static bool nic_listens(const struct iw_cm_id *cm_id, const struct sockaddr_storage *addr)
{
	const struct sockaddr_storage *own = &cm_id->m_local_addr;
	const struct sockaddr_in *own4 = (const struct sockaddr_in *)own;
	const struct sockaddr_in6 *own6 = (const struct sockaddr_in6 *)own;
	bool any6 = own->ss_family == AF_INET6 && ipv6_addr_any(&own6->sin6_addr);

	if (nic_ip_port(own) != nic_ip_port(addr))
		return false;
	if (own->ss_family != addr->ss_family)
		return any6 && !cm_id->afonly;
	if (own->ss_family == AF_INET6)
		return any6 || ipv6_addr_equal(&own6->sin6_addr,
					       &((const struct sockaddr_in6 *)addr)->sin6_addr);
	return !own4->sin_addr.s_addr ||
	       own4->sin_addr.s_addr == ((const struct sockaddr_in *)addr)->sin_addr.s_addr;
}

/* Brings an attempt to the listener. Returns 0, or the status for the active side. Under nic_iwarp_lock. */
static int nic_conn_request(struct nic_conn *conn, const struct iw_cm_conn_param *param)
{
	struct iw_cm_id *active = conn->side[NIC_ACTIVE].cm_id;
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REQUEST,
		.local_addr = active->m_remote_addr,
		.remote_addr = active->m_local_addr,
		.private_data = (void *)param->private_data,
		.private_data_len = param->private_data_len,
		.provider_data = (void *)conn->number,
		.ord = min(param->ord, U8_MAX),
		.ird = min(param->ird, U8_MAX),
	};
	struct nic_device *owner = nic_owner(&active->m_remote_addr);
	struct nic_listener *listener;

	if (!owner || !nic_owner(&active->m_local_addr))
		return -ETIMEDOUT;
	list_for_each_entry(listener, &nic_listeners, node) {
		struct iw_cm_id *cm_id = listener->cm_id;

		if (cm_id->device != &owner->ib || !nic_listens(cm_id, &active->m_remote_addr))
			continue;
		conn->listener = listener;
		/* The handler fails if the backlog is full. */
		return cm_id->event_handler(cm_id, &event) ? -ECONNREFUSED : 0;
	}
	return -ECONNREFUSED;
}

/* Returns a queue pair that can be connected, with a reference, or NULL. Any context. */
static struct nic_qp *nic_iwarp_qp_get(struct ib_device *ib, u32 number)
{
	struct nic_qp *qp = nic_qp_get(number);

	if (qp && (&qp->nic->ib != ib || qp->ib.qp_type != IB_QPT_RC)) {
		nic_qp_put(qp);
		return NULL;
	}
	return qp;
}

static void nic_iwarp_add_ref(struct ib_qp *qp)
{
	refcount_inc(&to_nic_qp(qp)->refs);
}

static void nic_iwarp_rem_ref(struct ib_qp *qp)
{
	nic_qp_put(to_nic_qp(qp));
}

/* iw_cm takes its own reference, while the consumer keeps the queue pair. Any context. */
static struct ib_qp *nic_iwarp_get_qp(struct ib_device *ib, int number)
{
	struct nic_qp *qp = nic_iwarp_qp_get(ib, number);

	if (!qp)
		return NULL;
	nic_qp_put(qp);
	return &qp->ib;
}

static int nic_iwarp_connect(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param)
{
	struct nic_device *nic = to_nic(cm_id->device);
	struct nic_conn *conn;
	unsigned long flags;
	struct nic_qp *qp;
	int err;

	if (nic_fault(nic, NIC_FAULT_CONNECT))
		return nic_errno(nic);
	if (param->private_data_len > U8_MAX)
		return -EINVAL;
	qp = nic_iwarp_qp_get(cm_id->device, param->qpn);
	if (!qp)
		return -EINVAL;
	conn = kzalloc_obj(*conn);
	if (!conn) {
		nic_qp_put(qp);
		return -ENOMEM;
	}
	refcount_set(&conn->refs, 2);
	INIT_DELAYED_WORK(&conn->timeout, nic_conn_timeout);

	spin_lock_irqsave(&nic_iwarp_lock, flags);
	if (nic_conn_of(qp)) {
		spin_unlock_irqrestore(&nic_iwarp_lock, flags);
		nic_qp_put(qp);
		kfree(conn);
		return -EISCONN;
	}
	cm_id->add_ref(cm_id);
	conn->side[NIC_ACTIVE] = (struct nic_side) {
		.cm_id = cm_id, .qp = qp, .ord = param->ord, .ird = param->ird,
	};
	conn->number = ++nic_conn_number;
	list_add_tail(&conn->node, &nic_conns);
	queue_delayed_work(nic->wq, &conn->timeout, NIC_ANSWER_JIFFIES);
	err = nic_conn_request(conn, param);
	if (err)
		nic_conn_refuse(conn, err, NULL, 0);
	spin_unlock_irqrestore(&nic_iwarp_lock, flags);
	return 0;
}

/* Moves a queue pair to RTS. Returns false if its state does not allow that. Under nic_iwarp_lock. */
static bool nic_side_connect(struct nic_side *side, struct nic_side *peer)
{
	struct nic_qp *qp = side->qp;
	unsigned long flags;
	bool may;

	spin_lock_irqsave(&qp->lock, flags);
	may = qp->state == IB_QPS_INIT || qp->state == IB_QPS_RTR;
	if (may) {
		side->ord = min(side->ord, peer->ird);
		qp->attr.dest_qp_num = peer->qp->ib.qp_num;
		qp->attr.max_rd_atomic = min(side->ord, U8_MAX);
		qp->attr.max_dest_rd_atomic = min(side->ird, U8_MAX);
		qp->state = IB_QPS_RTS;
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	return may;
}

static int nic_iwarp_accept(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param)
{
	struct nic_qp *qp = nic_iwarp_qp_get(cm_id->device, param->qpn), *failed = NULL;
	struct nic_side *active, *passive;
	struct nic_conn *conn;
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&nic_iwarp_lock, flags);
	conn = nic_conn_by_number((unsigned long)cm_id->provider_data);
	if (!conn || conn->established) {
		/* The active side has given up. */
		err = -ECONNRESET;
		goto unlock;
	}
	active = &conn->side[NIC_ACTIVE];
	passive = &conn->side[NIC_PASSIVE];
	if (!qp || nic_conn_of(qp) || param->private_data_len > U8_MAX) {
		err = -EINVAL;
		goto refuse;
	}
	*passive = (struct nic_side) { .qp = qp, .ord = param->ord, .ird = param->ird };
	if (!nic_side_connect(passive, active)) {
		err = -EINVAL;
		goto refuse;
	}
	if (!nic_side_connect(active, passive)) {
		failed = qp;
		err = -ECONNRESET;
		goto refuse;
	}
	cm_id->add_ref(cm_id);
	passive->cm_id = cm_id;
	conn->established = true;
	nic_conn_decided(conn);
	nic_side_tell(passive, IW_CM_EVENT_ESTABLISHED, 0);
	nic_conn_reply(conn, 0, param->private_data, param->private_data_len);
	qp = NULL;
	goto unlock;

refuse:
	nic_conn_refuse(conn, -ECONNRESET, NULL, 0);
unlock:
	spin_unlock_irqrestore(&nic_iwarp_lock, flags);
	if (failed)
		nic_qp_fail(failed, 0);
	if (qp)
		nic_qp_put(qp);
	return err;
}

static int nic_iwarp_reject(struct iw_cm_id *cm_id, const void *data, u8 len)
{
	struct nic_conn *conn;
	unsigned long flags;

	spin_lock_irqsave(&nic_iwarp_lock, flags);
	conn = nic_conn_by_number((unsigned long)cm_id->provider_data);
	if (conn && !conn->established)
		nic_conn_refuse(conn, -ECONNREFUSED, data, len);
	spin_unlock_irqrestore(&nic_iwarp_lock, flags);
	return 0;
}

static int nic_iwarp_create_listen(struct iw_cm_id *cm_id, int backlog)
{
	struct nic_listener *listener, *other;
	unsigned long flags;
	int err = 0;

	listener = kzalloc_obj(*listener);
	if (!listener)
		return -ENOMEM;
	listener->cm_id = cm_id;

	spin_lock_irqsave(&nic_iwarp_lock, flags);
	list_for_each_entry(other, &nic_listeners, node)
		if (other->cm_id->device == cm_id->device &&
		    nic_listens(other->cm_id, &cm_id->m_local_addr))
			err = -EADDRINUSE;
	if (!err) {
		cm_id->add_ref(cm_id);
		cm_id->provider_data = listener;
		list_add_tail(&listener->node, &nic_listeners);
	}
	spin_unlock_irqrestore(&nic_iwarp_lock, flags);
	if (err)
		kfree(listener);
	return err;
}

static int nic_iwarp_destroy_listen(struct iw_cm_id *cm_id)
{
	struct nic_listener *listener = cm_id->provider_data;
	struct nic_conn *conn, *next;
	unsigned long flags;

	spin_lock_irqsave(&nic_iwarp_lock, flags);
	list_del(&listener->node);
	list_for_each_entry_safe(conn, next, &nic_conns, node)
		if (!conn->established && conn->listener == listener)
			nic_conn_refuse(conn, -ECONNRESET, NULL, 0);
	spin_unlock_irqrestore(&nic_iwarp_lock, flags);
	cm_id->rem_ref(cm_id);
	kfree(listener);
	return 0;
}

/*
 * A queue pair leaves RTS, or is destroyed: its connection ends. Both queue pairs fail before a side is told, because
 * iw_cm then drops its references on the queue pairs. May sleep.
 */
void nic_iwarp_closed(struct nic_qp *qp, bool abrupt)
{
	struct nic_conn *conn;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&nic_iwarp_lock, flags);
	conn = nic_conn_of(qp);
	if (conn && !conn->established) {
		nic_conn_refuse(conn, -ECONNRESET, NULL, 0);
		conn = NULL;
	}
	if (conn)
		list_del_init(&conn->node);
	spin_unlock_irqrestore(&nic_iwarp_lock, flags);
	if (!conn)
		return;

	for (i = 0; i < NIC_SIDES; i++)
		nic_qp_fail(conn->side[i].qp, 0);
	for (i = 0; i < NIC_SIDES; i++) {
		if (!abrupt)
			nic_side_tell(&conn->side[i], IW_CM_EVENT_DISCONNECT, 0);
		nic_side_tell(&conn->side[i], IW_CM_EVENT_CLOSE, abrupt ? -ECONNRESET : 0);
		nic_side_put(&conn->side[i]);
	}
	nic_conn_put(conn);
}

const struct ib_device_ops nic_iwarp_ops = {
	.iw_add_ref = nic_iwarp_add_ref,
	.iw_rem_ref = nic_iwarp_rem_ref,
	.iw_get_qp = nic_iwarp_get_qp,
	.iw_connect = nic_iwarp_connect,
	.iw_accept = nic_iwarp_accept,
	.iw_reject = nic_iwarp_reject,
	.iw_create_listen = nic_iwarp_create_listen,
	.iw_destroy_listen = nic_iwarp_destroy_listen,
};
