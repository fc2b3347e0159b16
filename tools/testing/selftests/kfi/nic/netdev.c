// SPDX-License-Identifier: GPL-2.0
/* The network devices of ports. */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>

#include "nic.h"

/* The model moves data in memory, so what the network stack sends goes nowhere. */
static netdev_tx_t nic_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops nic_netdev_ops = {
	.ndo_start_xmit = nic_xmit,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

/* A network device for a port. May sleep. */
int nic_netdev_add(struct nic_port *port)
{
	struct nic_device *nic = port->nic;
	struct net_device *netdev;
	int err;

	netdev = alloc_etherdev(0);
	if (!netdev)
		return -ENOMEM;
	snprintf(netdev->name, IFNAMSIZ, "knic%up%u", nic->index, port->number);
	netdev->netdev_ops = &nic_netdev_ops;
	netdev->flags |= IFF_NOARP;
	netdev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	netdev->mtu = 4500;
	netdev->max_mtu = 9000;
	eth_hw_addr_random(netdev);
	SET_NETDEV_DEV(netdev, &nic->pdev->dev);
	netdev->dev_port = port->number - 1;
	err = register_netdev(netdev);
	if (err) {
		free_netdev(netdev);
		return err;
	}
	netif_carrier_on(netdev);
	port->netdev = netdev;
	err = ib_device_set_netdev(&nic->ib, netdev, port->number);
	if (err)
		nic_netdev_remove(port);
	return err;
}

/* Take a port's network device away, if there is one. May sleep. */
void nic_netdev_remove(struct nic_port *port)
{
	struct net_device *netdev = xchg(&port->netdev, NULL);

	if (!netdev)
		return;
	ib_device_set_netdev(&port->nic->ib, NULL, port->number);
	unregister_netdev(netdev);
	free_netdev(netdev);
}
