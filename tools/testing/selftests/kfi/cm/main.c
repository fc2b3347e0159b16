// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_cm.ko: connections of the `rdma` crate, without kfabric.
 *
 *	insmod kfi_cm.ko
 *
 *	insmod kfi_cm.ko hold=2		for the device to go meanwhile
 *
 * The cases are in Rust (kfi_cm_cases.rs). They run when the module is loaded, over the device that has
 * the documentation addresses which cm.sh gives it; the results are in the kernel's log.
 */
#include <linux/io.h>
#include <linux/module.h>

#include "kfi_cm.h"

static char *token = "";
module_param(token, charp, 0444);
MODULE_PARM_DESC(token, "tells the results of this run from others in the log");

static bool ipoib;
module_param(ipoib, bool, 0444);
MODULE_PARM_DESC(ipoib, "the addresses are those of IPoIB");

bool kfi_cm_over_ipoib(void)
{
	return ipoib;
}

u64 kfi_cm_phys(void *address)
{
	return virt_to_phys(address);
}

static unsigned int hold;
module_param(hold, uint, 0444);
MODULE_PARM_DESC(hold, "1: hold connections instead, 2: as a client of the device");

static int __init kfi_cm_init(void)
{
	unsigned int i, count = 0;

	if (hold)
		return kfi_cm_hold(hold == 2);
	while (kfi_cm_name(count))
		count++;
	pr_info("kfi-ktap: begin %s\n", token);
	pr_info("kfi-ktap: KTAP version 1\n");
	pr_info("kfi-ktap: 1..%u\n", count);
	for (i = 0; i < count; i++)
		pr_info("kfi-ktap: %s %u cm.%s\n", kfi_cm_run(i) ? "not ok" : "ok", i + 1,
			kfi_cm_name(i));
	pr_info("kfi-ktap: end %s\n", token);
	return 0;
}
module_init(kfi_cm_init);

static void __exit kfi_cm_exit(void)
{
	if (hold)
		kfi_cm_release();
}
module_exit(kfi_cm_exit);

MODULE_DESCRIPTION("kfabric selftest: connections");
MODULE_LICENSE("GPL");
