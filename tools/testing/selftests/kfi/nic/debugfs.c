// SPDX-License-Identifier: GPL-2.0
/*
 * Faults, events and statistics: the directory kfi_nic/<device> of debugfs.
 *
 * debugfs_remove_recursive() waits for a read or write under way, and later ones fail with -EIO. So each
 * callback here finds its device alive.
 */
#include <linux/debugfs.h>
#include <linux/dma-mapping.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>

#include "nic.h"

static const char *const fault_names[NIC_VALUES] = {
	[NIC_FAULT_POST] = "post",
	[NIC_FAULT_CREATE_QP] = "create_qp",
	[NIC_FAULT_MODIFY_QP] = "modify_qp",
	[NIC_FAULT_MODIFY_ERR] = "modify_err",
	[NIC_FAULT_DESTROY_QP] = "destroy_qp",
	[NIC_FAULT_CREATE_CQ] = "create_cq",
	[NIC_FAULT_ALLOC_PD] = "alloc_pd",
	[NIC_FAULT_ALLOC_MR] = "alloc_mr",
	[NIC_FAULT_MAP_MR] = "map_mr",
	[NIC_FAULT_DEREG_MR] = "dereg_mr",
	[NIC_FAULT_CONNECT] = "connect",
	[NIC_FAULT_REG] = "reg",
	[NIC_FAULT_INV] = "inv",
	[NIC_FAULT_COMPLETE] = "complete",
	[NIC_FAULT_LOSE] = "lose",
	[NIC_FAULT_LATE] = "late",
	[NIC_VALUE_ERRNO] = "errno",
	[NIC_VALUE_DELAY_MS] = "delay_ms",
	[NIC_VALUE_ACCESS_US] = "access_us",
	[NIC_VALUE_WEAK_INV] = "weak_inv",
};

static const char *const stat_names[NIC_STATS] = {
	[NIC_STAT_POSTS] = "posts",
	[NIC_STAT_SEND_OPS] = "send_ops",
	[NIC_STAT_RECV_OPS] = "recv_ops",
	[NIC_STAT_REG_MR] = "reg_mr",
	[NIC_STAT_LOCAL_INV] = "local_inv",
	[NIC_STAT_BYTES] = "bytes",
	[NIC_STAT_DMA_FAULTS] = "dma_faults",
	[NIC_STAT_FREED] = "freed_accesses",
	[NIC_STAT_UNDER_WAY] = "under_way",
	[NIC_STAT_UNMAPPED] = "unmapped_early",
	[NIC_STAT_KEYS_AGAIN] = "keys_again",
	[NIC_STAT_OVERFLOWS] = "cq_overflows",
	[NIC_STAT_PDS] = "pds",
	[NIC_STAT_CQS] = "cqs",
	[NIC_STAT_QPS] = "qps",
	[NIC_STAT_SRQS] = "srqs",
	[NIC_STAT_AHS] = "ahs",
	[NIC_STAT_MRS] = "mrs",
};

static struct dentry *nic_root;

static int stats_show(struct seq_file *file, void *unused)
{
	struct nic_device *nic = file->private;

	for (u32 i = 0; i < NIC_STATS; i++)
		seq_printf(file, "%s %lld\n", stat_names[i], atomic64_read(&nic->stats[i]));
	seq_printf(file, "mapped %llu\n", nic_mapped(nic));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int persona_show(struct seq_file *file, void *unused)
{
	struct nic_device *nic = file->private;

	seq_printf(file, "%s\n", nic->persona->name);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(persona);

/* Returns the port of number @n, from 1; NULL if there is none. */
static struct nic_port *find_port(struct nic_device *nic, u64 n)
{
	return n >= 1 && n <= nic->ib.phys_port_cnt ? &nic->ports[n - 1] : NULL;
}

/*
 * Takes the link of port @n down or up. Of a network device, the core itself tells consumers, as soon as it
 * learns of the carrier.
 */
static int set_down(struct nic_device *nic, u64 n, bool down)
{
	struct nic_port *port = find_port(nic, n);

	if (!port)
		return -EINVAL;
	/* The RTNL keeps the network device, and orders two writers. */
	rtnl_lock();
	if (port->down == down) {
		rtnl_unlock();
		return 0;
	}
	WRITE_ONCE(port->down, down);
	if (port->netdev && down)
		netif_carrier_off(port->netdev);
	else if (port->netdev)
		netif_carrier_on(port->netdev);
	rtnl_unlock();
	if (nic->persona->ib)
		nic_port_event(port, down ? IB_EVENT_PORT_ERR : IB_EVENT_PORT_ACTIVE);
	return 0;
}

static int port_down_set(void *data, u64 n)
{
	return set_down(data, n, true);
}
DEFINE_DEBUGFS_ATTRIBUTE(port_down_fops, NULL, port_down_set, "%llu\n");

static int port_up_set(void *data, u64 n)
{
	return set_down(data, n, false);
}
DEFINE_DEBUGFS_ATTRIBUTE(port_up_fops, NULL, port_up_set, "%llu\n");

/*
 * Moves port @n to another subnet, and so changes its GID. IB_EVENT_GID_CHANGE makes the core read the GID
 * again, but the core does not pass that event on. IB_EVENT_CLIENT_REREGISTER it does, which a subnet manager
 * causes then. RoCE's GIDs follow the network device's addresses instead.
 */
static int gid_change_set(void *data, u64 n)
{
	struct nic_device *nic = data;
	struct nic_port *port = find_port(nic, n);

	if (!port)
		return -EINVAL;
	if (!nic->persona->ib)
		return -EOPNOTSUPP;
	WRITE_ONCE(port->subnet, port->subnet + 1);
	nic_port_event(port, IB_EVENT_GID_CHANGE);
	nic_port_event(port, IB_EVENT_CLIENT_REREGISTER);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(gid_change_fops, NULL, gid_change_set, "%llu\n");

/* Gives port 1 another LID, as a subnet manager does. Path records that name the old one are stale then. */
static int lid_change_set(void *data, u64 lid)
{
	struct nic_device *nic = data;

	if (!nic->persona->ib)
		return -EOPNOTSUPP;
	if (!lid || lid >= be16_to_cpu(IB_MULTICAST_LID_BASE))
		return -EINVAL;
	WRITE_ONCE(nic->ports[0].lid, lid);
	nic_port_event(&nic->ports[0], IB_EVENT_LID_CHANGE);
	return 0;
}

static int lid_change_get(void *data, u64 *lid)
{
	struct nic_device *nic = data;

	*lid = nic->ports[0].lid;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(lid_change_fops, lid_change_get, lid_change_set, "%llu\n");

static int netdev_gone_set(void *data, u64 n)
{
	struct nic_device *nic = data;
	struct nic_port *port = find_port(nic, n);

	if (!port)
		return -EINVAL;
	nic_netdev_remove(port);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(netdev_gone_fops, NULL, netdev_gone_set, "%llu\n");

/*
 * Sets how many bits of an address the device drives. dma_set_mask() refuses what the platform can't serve;
 * then mappings fail one by one, which is wanted here.
 */
static int dma_bits_set(void *data, u64 bits)
{
	struct nic_device *nic = data;

	if (!bits || bits > 64)
		return -EINVAL;
	*nic->pdev->dev.dma_mask = DMA_BIT_MASK(bits);
	return 0;
}

static int dma_bits_get(void *data, u64 *bits)
{
	struct nic_device *nic = data;

	*bits = fls64(*nic->pdev->dev.dma_mask);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(dma_bits_fops, dma_bits_get, dma_bits_set, "%llu\n");

static int swiotlb_full_set(void *data, u64 count)
{
	if (count > U32_MAX)
		return -EINVAL;
	nic_swiotlb_release(data);
	return count ? nic_swiotlb_fill(data, count) : 0;
}

static int swiotlb_full_get(void *data, u64 *count)
{
	*count = nic_swiotlb_left(data);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(swiotlb_full_fops, swiotlb_full_get, swiotlb_full_set, "%llu\n");

static const struct {
	const char *name;
	umode_t mode;
	const struct file_operations *fops;
} actions[] = {
	{ "port_down", 0200, &port_down_fops },
	{ "port_up", 0200, &port_up_fops },
	{ "gid_change", 0200, &gid_change_fops },
	{ "lid_change", 0600, &lid_change_fops },
	{ "netdev_gone", 0200, &netdev_gone_fops },
	{ "dma_bits", 0600, &dma_bits_fops },
	{ "swiotlb_full", 0600, &swiotlb_full_fops },
};

/* Makes the files of a device, whose name the core knows. Process context. */
void nic_debugfs_add(struct nic_device *nic)
{
	nic->dir = debugfs_create_dir(dev_name(&nic->ib.dev), nic_root);
	debugfs_create_file("stats", 0400, nic->dir, nic, &stats_fops);
	debugfs_create_file("persona", 0400, nic->dir, nic, &persona_fops);
	for (u32 i = 0; i < NIC_VALUES; i++)
		debugfs_create_atomic_t(fault_names[i], 0600, nic->dir, &nic->faults[i]);
	/* Unsafe only without DEFINE_DEBUGFS_ATTRIBUTE(), which holds the file during each call. */
	for (u32 i = 0; i < ARRAY_SIZE(actions); i++)
		debugfs_create_file_unsafe(actions[i].name, actions[i].mode, nic->dir, nic,
					   actions[i].fops);
}

/* Removes them, and waits for reads and writes under way. The caller must not hold the RTNL. */
void nic_debugfs_remove(struct nic_device *nic)
{
	debugfs_remove_recursive(nic->dir);
	nic->dir = NULL;
}

void nic_debugfs_init(void)
{
	nic_root = debugfs_create_dir("kfi_nic", NULL);
}

void nic_debugfs_exit(void)
{
	debugfs_remove_recursive(nic_root);
}
