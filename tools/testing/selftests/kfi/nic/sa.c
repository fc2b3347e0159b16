// SPDX-License-Identifier: GPL-2.0
/*
 * A subnet administrator for InfiniBand, as far as IPoIB and rdma_cm need one: it joins ports to multicast
 * groups and finds paths. All devices are in one subnet. No answer is longer than one datagram.
 */
#include <linux/mutex.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>

#include "nic.h"

#define NIC_GROUPS		64
#define NIC_GROUP_MEMBERS	16
#define NIC_FIRST_MLID		0xc001
/* Path life time: 4.096 us times two to this power. */
#define NIC_LIFE_TIME		16
/* The upper two bits of a MTU, rate or life time say how to compare it. */
#define NIC_EXACTLY(value)	(IB_SA_EQ << 6 | (value))
#define NIC_VALUE(field)	((field) & 0x3f)
#define NIC_SELECTOR(field)	((field) >> 6)

#define NIC_IPOIB_QKEY		0x0b1b
#define NIC_IPOIB_SIGNATURE	0x401b

/* Codes of a subnet administrator in the status of a MAD. */
#define NIC_SA_NO_RESOURCES	0x0100
#define NIC_SA_INVALID		0x0200
#define NIC_SA_NO_RECORDS	0x0300
#define NIC_SA_INVALID_GID	0x0500
#define NIC_SA_INCOMPLETE	0x0600

/* MCMemberRecord */
struct nic_sa_member {
	union ib_gid mgid, port_gid;
	__be32 qkey;
	__be16 mlid;
	u8 mtu;
	u8 traffic_class;
	__be16 pkey;
	u8 rate;
	u8 life_time;
	__be32 sl_flow_hop;
	u8 scope_join;
	u8 proxy;
	u8 reserved[2];
} __packed;

#define NIC_JOIN_STATE(record)	((record)->scope_join & 0xf)
/* A group lives as long as it has a member of these kinds. */
#define NIC_FULL_MEMBERS	(BIT(FULLMEMBER_JOIN) | BIT(SENDONLY_FULLMEMBER_JOIN))
#define NIC_JOIN_NEEDS		(IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID | \
				 IB_SA_MCMEMBER_REC_JOIN_STATE)
#define NIC_CREATE_NEEDS	(NIC_JOIN_NEEDS | IB_SA_MCMEMBER_REC_QKEY | IB_SA_MCMEMBER_REC_PKEY | \
				 IB_SA_MCMEMBER_REC_SL | IB_SA_MCMEMBER_REC_FLOW_LABEL | \
				 IB_SA_MCMEMBER_REC_TRAFFIC_CLASS)

/* PathRecord */
struct nic_sa_path {
	__be64 service_id;
	union ib_gid dgid, sgid;
	__be16 dlid, slid;
	__be32 flow_hop;
	u8 traffic_class;
	u8 reversible_paths;
	__be16 pkey;
	__be16 qos_sl;
	u8 mtu;
	u8 rate;
	u8 life_time;
	u8 preference;
	u8 reserved[6];
} __packed;

/**
 * struct nic_group - a multicast group
 * @record: the group's properties; the port and the join state are zero
 * @members: ports and their join states; 0 if the place is free
 */
struct nic_group {
	struct nic_sa_member record;
	struct {
		union ib_gid gid;
		u8 state;
	} members[NIC_GROUP_MEMBERS];
};

static DEFINE_MUTEX(nic_groups_lock);
static struct nic_group nic_groups[NIC_GROUPS];

/* Returns the port with this GID that a port reaches, or NULL. Any context. */
static struct nic_port *nic_sa_port(struct nic_port *from, const union ib_gid *gid)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = from->number };

	rdma_ah_set_ah_flags(&attr, IB_AH_GRH);
	rdma_ah_set_dgid_raw(&attr, (void *)gid->raw);
	return nic_find_port(from->nic, &attr);
}

static bool nic_group_used(const struct nic_group *group)
{
	return group->record.mlid;
}

static struct nic_group *nic_group_find(const union ib_gid *mgid)
{
	unsigned int i;

	for (i = 0; i < NIC_GROUPS; i++)
		if (nic_group_used(&nic_groups[i]) &&
		    !memcmp(&nic_groups[i].record.mgid, mgid, sizeof(*mgid)))
			return &nic_groups[i];
	return NULL;
}

/* Returns the place of a port's join state, or NULL if the group is full. */
static u8 *nic_group_member(struct nic_group *group, const union ib_gid *gid)
{
	unsigned int i;

	for (i = 0; i < NIC_GROUP_MEMBERS; i++)
		if (group->members[i].state &&
		    !memcmp(&group->members[i].gid, gid, sizeof(*gid)))
			return &group->members[i].state;
	for (i = 0; i < NIC_GROUP_MEMBERS; i++)
		if (!group->members[i].state) {
			group->members[i].gid = *gid;
			return &group->members[i].state;
		}
	return NULL;
}

/* Frees a group that has no full member. */
static void nic_group_check(struct nic_group *group)
{
	unsigned int i;

	for (i = 0; i < NIC_GROUP_MEMBERS; i++)
		if (group->members[i].state & NIC_FULL_MEMBERS)
			return;
	memset(group, 0, sizeof(*group));
}

/* Is this the group of all ports of an IPoIB network? A join may leave out the properties of this group. */
static bool nic_is_broadcast(const union ib_gid *mgid)
{
	return mgid->raw[0] == 0xff && get_unaligned_be16(&mgid->raw[2]) == NIC_IPOIB_SIGNATURE &&
	       get_unaligned_be32(&mgid->raw[12]) == 0xffffffff;
}

/* The value that a request asks for, or the largest one. */
static u8 nic_asked_value(u8 field, bool asked, u8 best)
{
	return NIC_EXACTLY(asked && NIC_SELECTOR(field) == IB_SA_EQ ? NIC_VALUE(field) : best);
}

/* Does a value of a group satisfy a request? */
static bool nic_satisfies(u8 field, bool asked, u8 has)
{
	if (!asked)
		return true;
	switch (NIC_SELECTOR(field)) {
	case IB_SA_GT:
		return NIC_VALUE(has) > NIC_VALUE(field);
	case IB_SA_LT:
		return NIC_VALUE(has) < NIC_VALUE(field);
	case IB_SA_EQ:
		return NIC_VALUE(has) == NIC_VALUE(field);
	default:
		return true;
	}
}

static bool nic_asks(ib_sa_comp_mask mask, ib_sa_comp_mask fields)
{
	return (mask & fields) == fields;
}

#define NIC_ASKS_MTU(mask) \
	nic_asks(mask, IB_SA_MCMEMBER_REC_MTU | IB_SA_MCMEMBER_REC_MTU_SELECTOR)
#define NIC_ASKS_RATE(mask) \
	nic_asks(mask, IB_SA_MCMEMBER_REC_RATE | IB_SA_MCMEMBER_REC_RATE_SELECTOR)

/* Makes a group as a request describes it. Returns a status. */
static u16 nic_group_create(struct nic_group **created, const struct nic_sa_member *asked,
			    ib_sa_comp_mask mask, u8 mtu)
{
	bool broadcast = nic_is_broadcast(&asked->mgid);
	struct nic_group *group = nic_groups;

	if (asked->mgid.raw[0] != 0xff || !(NIC_JOIN_STATE(asked) & NIC_FULL_MEMBERS))
		return NIC_SA_INVALID;
	if (!broadcast && !nic_asks(mask, NIC_CREATE_NEEDS))
		return NIC_SA_INCOMPLETE;
	while (group < nic_groups + NIC_GROUPS && nic_group_used(group))
		group++;
	if (group == nic_groups + NIC_GROUPS)
		return NIC_SA_NO_RESOURCES;
	group->record = (struct nic_sa_member) {
		.mgid = asked->mgid,
		.qkey = broadcast ? cpu_to_be32(NIC_IPOIB_QKEY) : asked->qkey,
		.mlid = cpu_to_be16(NIC_FIRST_MLID + (group - nic_groups)),
		.mtu = nic_asked_value(asked->mtu, NIC_ASKS_MTU(mask), mtu),
		.traffic_class = broadcast ? 0 : asked->traffic_class,
		.pkey = cpu_to_be16(IB_DEFAULT_PKEY_FULL),
		.rate = nic_asked_value(asked->rate, NIC_ASKS_RATE(mask), IB_RATE_100_GBPS),
		.life_time = NIC_EXACTLY(NIC_LIFE_TIME),
		.sl_flow_hop = broadcast ? 0 : asked->sl_flow_hop,
		.scope_join = asked->mgid.raw[1] << 4,
	};
	*created = group;
	return 0;
}

static bool nic_group_fits(const struct nic_group *group, const struct nic_sa_member *asked,
			   ib_sa_comp_mask mask)
{
	const struct nic_sa_member *has = &group->record;

	return (!(mask & IB_SA_MCMEMBER_REC_QKEY) || has->qkey == asked->qkey) &&
	       (!(mask & IB_SA_MCMEMBER_REC_PKEY) || has->pkey == asked->pkey) &&
	       nic_satisfies(asked->mtu, NIC_ASKS_MTU(mask), has->mtu) &&
	       nic_satisfies(asked->rate, NIC_ASKS_RATE(mask), has->rate);
}

/* Joins a port to a group, and makes the group if need be. Returns a status. */
static u16 nic_sa_join(struct nic_port *port, struct nic_sa_member *record, ib_sa_comp_mask mask)
{
	struct nic_group *group = nic_group_find(&record->mgid);
	struct nic_sa_member asked = *record;
	struct ib_port_attr attr;
	u16 status = 0;
	u8 *state;

	if (!nic_asks(mask, NIC_JOIN_NEEDS))
		return NIC_SA_INCOMPLETE;
	if (!NIC_JOIN_STATE(&asked))
		return NIC_SA_INVALID;
	if (!nic_sa_port(port, &asked.port_gid) ||
	    ib_query_port(&port->nic->ib, port->number, &attr))
		return NIC_SA_INVALID_GID;
	if (!group)
		status = nic_group_create(&group, &asked, mask, attr.active_mtu);
	else if (!nic_group_fits(group, &asked, mask))
		status = NIC_SA_INVALID;
	if (status)
		return status;
	state = nic_group_member(group, &asked.port_gid);
	if (!state)
		return NIC_SA_NO_RESOURCES;
	*state |= NIC_JOIN_STATE(&asked);
	*record = group->record;
	record->port_gid = asked.port_gid;
	record->scope_join |= *state;
	return 0;
}

static u16 nic_sa_leave(struct nic_sa_member *record, ib_sa_comp_mask mask)
{
	struct nic_group *group = nic_group_find(&record->mgid);
	u8 *state;

	if (!nic_asks(mask, NIC_JOIN_NEEDS))
		return NIC_SA_INCOMPLETE;
	state = group ? nic_group_member(group, &record->port_gid) : NULL;
	if (!state || !(*state & NIC_JOIN_STATE(record)))
		return NIC_SA_INVALID;
	*state &= ~NIC_JOIN_STATE(record);
	nic_group_check(group);
	return 0;
}

/* MCMemberRecord. Returns a status. May sleep. */
static u16 nic_sa_multicast(struct nic_port *port, u8 method, struct nic_sa_member *record,
			    ib_sa_comp_mask mask)
{
	struct nic_group *group;
	u16 status = 0;

	mutex_lock(&nic_groups_lock);
	switch (method) {
	case IB_MGMT_METHOD_SET:
		status = nic_sa_join(port, record, mask);
		break;
	case IB_SA_METHOD_DELETE:
		status = nic_sa_leave(record, mask);
		break;
	case IB_MGMT_METHOD_GET:
		group = nic_group_find(&record->mgid);
		if (group)
			*record = group->record;
		else
			status = NIC_SA_NO_RECORDS;
		break;
	default:
		status = IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	}
	mutex_unlock(&nic_groups_lock);
	return status;
}

/* PathRecord: the way between two ports, by their GIDs. Returns a status. May sleep. */
static u16 nic_sa_path(struct nic_port *port, u8 method, struct nic_sa_path *record,
		       ib_sa_comp_mask mask)
{
	struct nic_port *from, *to;
	struct ib_port_attr attr;

	if (method != IB_MGMT_METHOD_GET)
		return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	if (!nic_asks(mask, IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_SGID))
		return NIC_SA_INCOMPLETE;
	from = nic_sa_port(port, &record->sgid);
	to = nic_sa_port(port, &record->dgid);
	if (!from || !to || ib_query_port(&port->nic->ib, port->number, &attr))
		return NIC_SA_NO_RECORDS;
	record->dlid = cpu_to_be16(to->lid);
	record->slid = cpu_to_be16(from->lid);
	/* One hop: no GRH is needed. */
	record->flow_hop = 0;
	/* Reversible, and the only one. */
	record->reversible_paths = BIT(7) | 1;
	record->pkey = cpu_to_be16(IB_DEFAULT_PKEY_FULL);
	record->mtu = NIC_EXACTLY(attr.active_mtu);
	record->rate = NIC_EXACTLY(IB_RATE_100_GBPS);
	record->life_time = NIC_EXACTLY(NIC_LIFE_TIME);
	record->preference = 0;
	return 0;
}

static u16 nic_sa_class_port_info(u8 method, struct ib_class_port_info *info)
{
	if (method != IB_MGMT_METHOD_GET)
		return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	*info = (struct ib_class_port_info) {
		.base_version = IB_MGMT_BASE_VERSION,
		.class_version = IB_SA_CLASS_VERSION,
	};
	ib_set_cpi_capmask2(info, IB_SA_CAP_MASK2_SENDONLY_FULL_MEM_SUPPORT);
	ib_set_cpi_resp_time(info, NIC_LIFE_TIME);
	return 0;
}

bool nic_sa_answer(struct nic_qp *from, struct nic_port *port, const struct nic_datagram *gram)
{
	const struct ib_sa_mad *request = gram->data;
	struct nic_port *source;
	struct nic_datagram answer = {
		.sgid = gram->dgid,
		.dgid = gram->sgid,
		.slid = port->lid,
		.src_qp = 1,
		.pkey_index = gram->pkey_index,
		.sl = gram->sl,
		.grh = gram->grh,
	};
	struct ib_sa_mad mad;
	u16 status, size;
	u8 method;

	if (from->ib.qp_type != IB_QPT_GSI || gram->len != sizeof(mad) ||
	    request->mad_hdr.mgmt_class != IB_MGMT_CLASS_SUBN_ADM ||
	    (request->mad_hdr.method & IB_MGMT_METHOD_RESP))
		return false;
	source = &from->nic->ports[from->init.port_num - 1];
	mad = *request;
	method = mad.mad_hdr.method;
	switch (be16_to_cpu(mad.mad_hdr.attr_id)) {
	case IB_SA_ATTR_CLASS_PORTINFO:
		size = 0;
		status = nic_sa_class_port_info(method, (struct ib_class_port_info *)mad.data);
		break;
	case IB_SA_ATTR_MC_MEMBER_REC:
		size = sizeof(struct nic_sa_member);
		status = nic_sa_multicast(source, method, (struct nic_sa_member *)mad.data,
					  mad.sa_hdr.comp_mask);
		break;
	case IB_SA_ATTR_PATH_REC:
		size = sizeof(struct nic_sa_path);
		status = nic_sa_path(source, method, (struct nic_sa_path *)mad.data,
				     mad.sa_hdr.comp_mask);
		break;
	default:
		size = 0;
		status = IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	}
	/* The response to Set is GetResp. */
	mad.mad_hdr.method = method == IB_MGMT_METHOD_SET ? IB_MGMT_METHOD_GET_RESP :
							    method | IB_MGMT_METHOD_RESP;
	mad.mad_hdr.status = cpu_to_be16(status);
	mad.sa_hdr.attr_offset = cpu_to_be16(DIV_ROUND_UP(size, 8));
	answer.data = &mad;
	answer.len = sizeof(mad);
	nic_ud_deliver(from, source, &answer);
	return true;
}
