// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_nic_test.ko: runs one suite of the model NIC's own tests when it is loaded.
 *
 *	insmod kfi_nic_test.ko suite=nic_data [device=knic0] [address=198.51.100.1]
 *		[peer=knic1] [peer_address=198.51.100.2]
 *
 * The results are in the kernel's log, as KTAP (test/frame/ktap.h). The module can be removed at once. It
 * takes the device for itself: objects of other consumers that come and go meanwhile are taken for its own.
 */
#include <linux/delay.h>
#include <linux/iommu.h>
#include <linux/module.h>

#include "nic_test.h"

/* Declared in test/frame/env.h, which is kfabric's. Here nothing is random. */
unsigned long kfi_seed;
module_param_named(seed, kfi_seed, ulong, 0444);
unsigned int kfi_scale = 100;
module_param_named(scale, kfi_scale, uint, 0444);

static char *suite;
module_param(suite, charp, 0444);
MODULE_PARM_DESC(suite, "which suite to run");

static char *device = "knic0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "which device to test (default: knic0)");

module_param_named(address, nic_address, charp, 0444);
MODULE_PARM_DESC(address, "an IPv4 address of its port 1 (default: 198.51.100.1)");

static char *peer;
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "device of the second side of each connection (default: the device under test)");

module_param_named(peer_address, nic_peer_address, charp, 0444);
MODULE_PARM_DESC(peer_address, "an IPv4 address of the peer's port 1 (default: 198.51.100.2)");

module_param_named(ipoib, nic_env.ipoib, bool, 0444);
MODULE_PARM_DESC(ipoib, "IPoIB runs over the device (default: no)");

module_param_named(early_places, nic_env.early_places, bool, 0444);
MODULE_PARM_DESC(early_places, "kfi_nic was loaded with early_places=1 (default: no)");

static char *token = "";
module_param(token, charp, 0444);
MODULE_PARM_DESC(token, "tells the results of this run from others in the log");

static const struct kfi_suite *const suites[] = {
	&nic_suite_data,
	&nic_suite_cm,
	&nic_suite_violations,
	&nic_suite_local,
	&nic_suite_order,
	&nic_suite_faults,
	&nic_suite_traits,
	&nic_suite_events,
	&nic_suite_unmappable,
	&nic_suite_mappable,
	&nic_suite_datagrams,
	&nic_suite_pair,
};

/* Objects: what a case has made is gone when it ends. Other consumers' work in the background may come between. */
static const enum nic_stat objects[] = {
	NIC_STAT_PDS, NIC_STAT_CQS, NIC_STAT_QPS, NIC_STAT_SRQS, NIC_STAT_AHS, NIC_STAT_MRS,
};

static bool is_gone(int i, const s64 *before)
{
	return stat(objects[i]) == before[i] || (objects[i] == NIC_STAT_AHS && nic_env.ipoib);
}

static bool all_gone(const s64 *before)
{
	for (int i = 0; i < ARRAY_SIZE(objects); i++)
		if (!is_gone(i, before))
			return false;
	return true;
}

static void reset_faults(void)
{
	for (int i = 0; i < NIC_VALUES; i++)
		set_fault(i, i == NIC_VALUE_ERRNO ? EIO : 0);
}

/* Runs a case, and holds it to what it leaves behind. */
void run_checked(struct kfi_test *t)
{
	void (*run)(struct kfi_test *t) = t->c->data;
	s64 before[ARRAY_SIZE(objects)], faults = stat(NIC_STAT_DMA_FAULTS);
	s64 freed = stat(NIC_STAT_FREED), unmapped = stat(NIC_STAT_UNMAPPED);
	s64 keys_again = stat(NIC_STAT_KEYS_AGAIN);

	for (int i = 0; i < ARRAY_SIZE(objects); i++)
		before[i] = stat(objects[i]);
	nic_env.dma_faults = 0;
	nic_env.freed = 0;
	nic_env.unmapped = 0;
	nic_env.keys_again = 0;
	reset_faults();
	run(t);
	reset_faults();
	for (int ms = 0; ms < PATIENCE_MS && !all_gone(before); ms++)
		usleep_range(1000, 1500);
	for (int i = 0; i < ARRAY_SIZE(objects); i++)
		EXPECT(t, is_gone(i, before), "%lld objects of kind %d, before %lld",
		       stat(objects[i]), i, before[i]);
	EXPECT(t, stat(NIC_STAT_DMA_FAULTS) - faults == nic_env.dma_faults,
	       "%lld DMA faults, expected %lld", stat(NIC_STAT_DMA_FAULTS) - faults,
	       nic_env.dma_faults);
	EXPECT(t, stat(NIC_STAT_FREED) - freed == nic_env.freed,
	       "%lld accesses to free pages, expected %lld", stat(NIC_STAT_FREED) - freed,
	       nic_env.freed);
	EXPECT(t, stat(NIC_STAT_UNMAPPED) - unmapped == nic_env.unmapped,
	       "%lld valid regions without memory, expected %lld", stat(NIC_STAT_UNMAPPED) - unmapped,
	       nic_env.unmapped);
	EXPECT(t, stat(NIC_STAT_KEYS_AGAIN) - keys_again == nic_env.keys_again,
	       "%lld registrations by an earlier key, expected %lld",
	       stat(NIC_STAT_KEYS_AGAIN) - keys_again, nic_env.keys_again);
}

void run_connected(struct kfi_test *t)
{
	if (nic_env.expect->reliable)
		run_checked(t);
	else
		ktap_skip(t, "there are no reliable connections");
}

/* The client of the RDMA core: it finds the device, and keeps it while a suite runs. */
static DEFINE_MUTEX(running);

static int add_device(struct ib_device *dev)
{
	struct device_driver *driver = dev->dev.parent ? dev->dev.parent->driver : NULL;

	if (!driver || strcmp(driver->name, "kfi_nic"))
		return 0;
	if (!strcmp(dev_name(&dev->dev), device))
		nic_env.dev = dev;
	if (!strcmp(dev_name(&dev->dev), peer ?: device))
		nic_env.peer = dev;
	return 0;
}

static void remove_device(struct ib_device *dev, void *data)
{
	/* Of this device the case under way closes its objects. Its statistics are not read any more. */
	if (dev == nic_env.peer && READ_ONCE(nic_env.holds)) {
		complete(&nic_env.going);
		wait_for_completion(&nic_env.gone);
		return;
	}
	guard(mutex)(&running);
	if (nic_env.dev == dev)
		nic_env.dev = NULL;
	if (nic_env.peer == dev)
		nic_env.peer = NULL;
}

static struct ib_client client = {
	.name = "kfi_nic_test",
	.add = add_device,
	.remove = remove_device,
};

static const struct kfi_suite *find_suite(void)
{
	for (int i = 0; suite && i < ARRAY_SIZE(suites); i++)
		if (!strcmp(suites[i]->name, suite))
			return suites[i];
	return NULL;
}

static int run(const struct kfi_suite *s)
{
	struct iommu_domain *domain;

	guard(mutex)(&running);
	if (!nic_env.dev || !nic_env.peer) {
		pr_err("kfi_nic_test: no device '%s' or '%s' of the model\n", device, peer ?: device);
		return -ENODEV;
	}
	nic_env.nic = to_nic(nic_env.dev);
	nic_env.peer_nic = to_nic(nic_env.peer);
	nic_env.expect = find_expect(nic_env.nic->persona->name);
	if (!nic_env.expect) {
		pr_err("kfi_nic_test: nothing is expected of '%s'\n", nic_env.nic->persona->name);
		return -EINVAL;
	}
	domain = iommu_get_domain_for_dev(nic_env.dev->dma_device);
	nic_env.translated = domain && domain->type != IOMMU_DOMAIN_IDENTITY;
	pr_info("kfi-ktap: begin %s\n", token);
	if (two_devices())
		ktap_note("the peer is %s", peer);
	ktap_note("%s behaves like %s, %s", device, nic_env.expect->name,
		  nic_env.translated ? "an IOMMU translates" : "DMA addresses are physical");
	ktap_run(s);
	pr_info("kfi-ktap: end %s\n", token);
	return 0;
}

static int __init nic_test_init(void)
{
	const struct kfi_suite *s = find_suite();
	int err;

	if (!s) {
		pr_err("kfi_nic_test: no suite '%s'\n", suite ?: "");
		return -EINVAL;
	}
	init_completion(&nic_env.going);
	init_completion(&nic_env.gone);
	err = ib_register_client(&client);
	if (err)
		return err;
	err = run(s);
	ib_unregister_client(&client);
	return err;
}
module_init(nic_test_init);

static void __exit nic_test_exit(void)
{
}
module_exit(nic_test_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tests of the model NIC");
