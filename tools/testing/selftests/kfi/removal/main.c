// SPDX-License-Identifier: GPL-2.0
/* Opening, closing, and what the script can ask: see removal.h. */
#include <linux/module.h>
#include <linux/slab.h>

#include "removal.h"

static char *device;
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "name of the domain (default: the first one)");

static char *scenario = "";
module_param(scenario, charp, 0444);
MODULE_PARM_DESC(scenario, "what to do");

static const struct scenario *chosen;

static const struct scenario *find_in(const struct scenario *all)
{
	for (; all->name; all++)
		if (!strcmp(all->name, scenario))
			return all;
	return NULL;
}

static int find_info(void)
{
	struct kfi_info *hints = kfi_allocinfo();
	int ret;

	if (!hints)
		return -ENOMEM;
	hints->domain_attr->mr_mode = KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY;
	hints->domain_attr->name = device ? kstrdup(device, GFP_KERNEL) : NULL;
	hints->fabric_attr->prov_name = kstrdup("verbs", GFP_KERNEL);
	ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, &info);
	kfi_freeinfo(hints);
	return ret;
}

static int open_all(void)
{
	void *ops;
	int ret;

	ret = find_info();
	if (!ret)
		ret = kfi_fabric(info->fabric_attr, &fabric, NULL);
	if (!ret)
		ret = kfi_domain(fabric, info, &domain[0], NULL);
	if (!ret)
		ret = kfi_domain(fabric, info, &domain[1], NULL);
	if (!ret)
		ret = kfi_open_ops(&domain[0]->fid, KFI_VERBS_DOM_OPS_1, 0, &ops, NULL);
	if (ret)
		return ret;
	verbs = ops;
	return chosen->open();
}

static void close_all(void)
{
	if (verbs && chosen->close)
		chosen->close();
	if (domain[0])
		close_domain(0, 0);
	if (domain[1])
		close_domain(1, 0);
	if (fabric)
		kfi_close(&fabric->fid);
	kfi_freeinfo(info);
}

/* "gone" is all that can be asked; the write fails if something came out that must not. */
static int command(const char *what, const struct kernel_param *kp)
{
	/* Parameters are also set while the module is being loaded. */
	if (THIS_MODULE->state != MODULE_STATE_LIVE || !sysfs_streq(what, "gone"))
		return -EINVAL;
	if (chosen->gone)
		chosen->gone();
	return unexpected ? -EIO : 0;
}

static const struct kernel_param_ops command_ops = { .set = command };
module_param_cb(command, &command_ops, NULL, 0200);
MODULE_PARM_DESC(command, "gone: the device is");

static int __init removal_init(void)
{
	int ret;

	chosen = find_in(pair_scenarios) ?: find_in(order_scenarios) ?:
		 find_in(leak_scenarios) ?: find_in(meet_scenarios);
	if (!chosen)
		return -EINVAL;
	ret = open_all();
	if (ret || unexpected) {
		pr_err("kfi_removal: %s: open gives %d\n", scenario, ret);
		close_all();
	}
	return ret ?: (unexpected ? -EIO : 0);
}

static void __exit removal_exit(void)
{
	close_all();
}

module_init(removal_init);
module_exit(removal_exit);
MODULE_DESCRIPTION("What consumers of kfabric may do while a device goes away, for the selftests");
MODULE_LICENSE("GPL");
