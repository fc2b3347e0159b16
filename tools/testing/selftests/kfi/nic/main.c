// SPDX-License-Identifier: GPL-2.0
/*
 * The PCI driver of the model: it binds to QEMU's edu device, makes a network device for each Ethernet port,
 * and registers with the RDMA core.
 */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <rdma/ib_addr.h>

#include "nic.h"

#define EDU_VENDOR	0x1234
#define EDU_DEVICE	0x11e8

static char *persona = "mlx5";
module_param(persona, charp, 0444);
MODULE_PARM_DESC(persona, "Driver whose devices the model imitates (default mlx5); see README");

static unsigned int ports = 1;
module_param(ports, uint, 0444);
MODULE_PARM_DESC(ports, "Ports of each device, 1 or 2 (default 1)");

static unsigned int dma_bits = 64;
module_param(dma_bits, uint, 0444);
MODULE_PARM_DESC(dma_bits, "Bits of a DMA address, 32 to 64 (default 64)");

static bool early_places;
module_param(early_places, bool, 0444);
MODULE_PARM_DESC(early_places, "Return places of send queues when requests are carried out (default N: when completions are polled)");

LIST_HEAD(nic_list);
DEFINE_SPINLOCK(nic_list_lock);
DEFINE_SRCU(nic_srcu);

static const struct nic_persona *chosen;
static DEFINE_IDA(indexes);

/*
 * The core asks for the attributes of a device when it is registered, so all that queries need is there
 * before.
 */
static int nic_register(struct nic_device *nic)
{
	struct ib_device *ib = &nic->ib;
	char name[IB_DEVICE_NAME_MAX];
	unsigned int i;
	int err;

	ib->node_type = nic->persona->iwarp ? RDMA_NODE_RNIC : RDMA_NODE_IB_CA;
	ib->node_guid = cpu_to_be64(nic_guid(nic, 0));
	ib->phys_port_cnt = ports;
	ib->num_comp_vectors = num_possible_cpus();
	ib->dev.parent = &nic->pdev->dev;
	/* Consumers get it where IBK_LOCAL_DMA_LKEY is set. */
	ib->local_dma_lkey = NIC_ALL_MEMORY;
	ib_set_device_ops(ib, &nic_device_ops);
	ib_set_device_ops(ib, &nic_cq_ops);
	ib_set_device_ops(ib, &nic_qp_ops);
	ib_set_device_ops(ib, &nic_memory_ops);
	if (nic->persona->srq)
		ib_set_device_ops(ib, &nic_srq_ops);
	if (nic->persona->own_drain)
		ib_set_device_ops(ib, &nic_drain_ops);
	if (nic->persona->iwarp)
		ib_set_device_ops(ib, &nic_iwarp_ops);
	if (nic->persona->ib)
		ib_set_device_ops(ib, &nic_mcast_ops);
	ib->ops.driver_id = nic->persona->driver_id;

	for (i = 0; i < ports; i++) {
		if (nic->persona->ib)
			break;
		err = nic_netdev_add(&nic->ports[i]);
		if (err)
			goto remove;
	}
	if (nic->persona->iwarp)
		memcpy(ib->iw_ifname, nic->ports[0].netdev->name, sizeof(ib->iw_ifname));
	snprintf(name, sizeof(name), "knic%u", nic->index);
	err = ib_register_device(ib, name, &nic->pdev->dev);
	if (err)
		goto remove;
	return 0;
remove:
	for (i = 0; i < ports; i++)
		nic_netdev_remove(&nic->ports[i]);
	return err;
}

/* Takes a device off the list, and waits for requests of other devices that have found its ports. May sleep. */
static void nic_unlist(struct nic_device *nic)
{
	spin_lock_irq(&nic_list_lock);
	list_del(&nic->node);
	spin_unlock_irq(&nic_list_lock);
	synchronize_srcu(&nic_srcu);
}

static int nic_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct nic_device *nic;
	unsigned int i;
	int index, err;

	err = pcim_enable_device(pdev);
	if (err)
		return err;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(dma_bits));
	if (err)
		return err;
	dma_set_max_seg_size(&pdev->dev, SZ_2G);
	pci_set_master(pdev);

	nic = ib_alloc_device(nic_device, ib);
	if (!nic)
		return -ENOMEM;
	/* The lowest that is free: a device that was unbound comes back under its name. */
	index = ida_alloc(&indexes, GFP_KERNEL);
	if (index < 0) {
		ib_dealloc_device(&nic->ib);
		return index;
	}
	nic->index = index;
	nic->pdev = pdev;
	nic->persona = chosen;
	nic->early_places = early_places;
	xa_init_flags(&nic->mrs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	xa_init(&nic->seen);
	mutex_init(&nic->atomic);
	INIT_LIST_HEAD(&nic->mcast);
	atomic_set(&nic->faults[NIC_VALUE_ERRNO], EIO);
	/* Storage's progress under memory pressure depends on requests that are carried out here. */
	nic->wq = alloc_workqueue("kfi_nic", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	if (!nic->wq) {
		err = -ENOMEM;
		goto dealloc;
	}
	/* Requests of other devices find the ports from here on. */
	for (i = 0; i < ports; i++) {
		nic->ports[i].nic = nic;
		nic->ports[i].number = i + 1;
		nic->ports[i].lid = 16 * (nic->index + 1) + i;
	}
	spin_lock_irq(&nic_list_lock);
	list_add_tail(&nic->node, &nic_list);
	spin_unlock_irq(&nic_list_lock);
	err = nic_register(nic);
	if (err)
		goto unlist;
	nic_debugfs_add(nic);
	pci_set_drvdata(pdev, nic);
	dev_info(&pdev->dev, "%s: behaves like %s, %u port(s)\n", dev_name(&nic->ib.dev),
		 chosen->name, ports);
	return 0;

unlist:
	nic_unlist(nic);
	destroy_workqueue(nic->wq);
dealloc:
	ida_free(&indexes, nic->index);
	ib_dealloc_device(&nic->ib);
	return err;
}

/* The device goes, in use or not: the RDMA core tells its consumers and waits for them. */
static void nic_remove(struct pci_dev *pdev)
{
	struct nic_device *nic = pci_get_drvdata(pdev);
	unsigned int i;

	/* First: an event of a device that is unregistered would reach the core after its last flush. */
	nic_debugfs_remove(nic);
	nic_swiotlb_release(nic);
	ib_unregister_device(&nic->ib);
	for (i = 0; i < ports; i++)
		nic_netdev_remove(&nic->ports[i]);
	nic_unlist(nic);
	destroy_workqueue(nic->wq);
	xa_destroy(&nic->seen);
	xa_destroy(&nic->mrs);
	mutex_destroy(&nic->atomic);
	ida_free(&indexes, nic->index);
	ib_dealloc_device(&nic->ib);
}

static const struct pci_device_id nic_ids[] = {
	{ PCI_DEVICE(EDU_VENDOR, EDU_DEVICE) },
	{ }
};
MODULE_DEVICE_TABLE(pci, nic_ids);

static struct pci_driver nic_driver = {
	.name = "kfi_nic",
	.id_table = nic_ids,
	.probe = nic_probe,
	.remove = nic_remove,
};

static int __init nic_init(void)
{
	int err;

	chosen = nic_persona_find(persona);
	if (!chosen) {
		pr_err("kfi_nic: no personality \"%s\"\n", persona);
		return -EINVAL;
	}
	if (ports < 1 || ports > NIC_MAX_PORTS || dma_bits < 32 || dma_bits > 64) {
		pr_err("kfi_nic: ports is 1 or 2, dma_bits from 32 to 64\n");
		return -EINVAL;
	}
	nic_debugfs_init();
	err = pci_register_driver(&nic_driver);
	if (err)
		nic_debugfs_exit();
	return err;
}
module_init(nic_init);

static void __exit nic_exit(void)
{
	pci_unregister_driver(&nic_driver);
	nic_debugfs_exit();
}
module_exit(nic_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A model of RDMA hardware, for tests");
