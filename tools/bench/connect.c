// SPDX-License-Identifier: GPL-2.0
/* Connecting a queue pair to itself. */
#include <rdma/ib_cache.h>

#include "bench.h"

/* The port's own address. Nothing is ever sent there, so any that is in force will do. */
static int own_address(struct ib_device *ib, u32 port, const struct ib_port_attr *attr,
		       struct rdma_ah_attr *ah)
{
	int i;

	ah->type = rdma_ah_find_type(ib, port);
	rdma_ah_set_port_num(ah, port);
	if (ah->type != RDMA_AH_ATTR_TYPE_ROCE) {
		rdma_ah_set_dlid(ah, attr->lid);
		return 0;
	}
	for (i = 0; i < attr->gid_tbl_len; i++) {
		const struct ib_gid_attr *gid = rdma_get_gid_attr(ib, port, i);
		union ib_gid raw;
		int ret;

		if (IS_ERR(gid))
			continue;
		raw = gid->gid;
		ret = rdma_read_gid_l2_fields(gid, NULL, ah->roce.dmac);
		rdma_put_gid_attr(gid);
		if (!ret) {
			rdma_ah_set_grh(ah, &raw, 0, i, 1, 0);
			return 0;
		}
	}
	return -ENETDOWN;
}

static int connect_at(struct ib_qp *qp, u32 port, const struct ib_port_attr *port_attr)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = port,
	};
	int ret;

	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;

	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTR,
		.path_mtu = port_attr->active_mtu,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = IB_RNR_TIMER_001_28,
	};
	ret = own_address(qp->device, port, port_attr, &attr.ah_attr);
	if (ret)
		return ret;
	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (ret)
		return ret;

	attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 6,
		.rnr_retry = 6,
		.max_rd_atomic = 1,
	};
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/**
 * connect_to_self() - Connect a queue pair to itself, at the first port that is up.
 * @qp: A queue pair that has just been created.
 *
 * Context: May sleep.
 * Return: 0 or an errno.
 */
int connect_to_self(struct ib_qp *qp)
{
	struct ib_port_attr attr;
	u32 port;

	rdma_for_each_port(qp->device, port)
		if (!ib_query_port(qp->device, port, &attr) && attr.state == IB_PORT_ACTIVE)
			return connect_at(qp, port, &attr);
	return -ENETDOWN;
}
