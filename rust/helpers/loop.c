// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/stringify.h>

#include "loop_helpers.h"

MODULE_VERSION(__stringify(KFABRIC_VERSION));

static unsigned int domains = 1;

static int set_domains(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, 64);
}

static const struct kernel_param_ops domains_ops = {
	.set = set_domains,
	.get = param_get_uint,
};
module_param_cb(domains, &domains_ops, &domains, 0444);
__MODULE_PARM_TYPE(domains, "uint");
MODULE_PARM_DESC(domains, "number of domains, loop0 and so on (1 to 64)");

u32 kfi_loop_helper_domains(void)
{
	return domains;
}
