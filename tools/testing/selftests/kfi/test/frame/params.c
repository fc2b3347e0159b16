// SPDX-License-Identifier: GPL-2.0
/* The module parameters that decide about a column of features. */
#include <linux/moduleparam.h>

#include "env.h"

bool kfi_weak;
module_param_named(weak, kfi_weak, bool, 0444);
MODULE_PARM_DESC(weak, "an invalidation ends all access: weak_fence=1, or hardware");

bool kfi_hardware;
module_param_named(hardware, kfi_hardware, bool, 0444);
MODULE_PARM_DESC(hardware, "the device under test is hardware, or a model of it");
