// SPDX-License-Identifier: GPL-2.0
/* Module parameters that the threads and regions use: see holder.h. */
#include <linux/module.h>

#include "holder.h"

unsigned int holder_regions = 16;
module_param_named(regions, holder_regions, uint, 0444);
MODULE_PARM_DESC(regions, "how many regions to keep open");

unsigned int holder_threads;
module_param_named(threads, holder_threads, uint, 0444);
MODULE_PARM_DESC(threads, "how many threads register and close (default: 0)");

bool holder_async;
module_param_named(async, holder_async, bool, 0444);
MODULE_PARM_DESC(async, "whether another thread registers asynchronously (default: no)");

unsigned int holder_rounds;
module_param_named(rounds, holder_rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "how many registrations the threads have done");

unsigned int holder_enodev;
module_param_named(enodev, holder_enodev, uint, 0444);
MODULE_PARM_DESC(enodev, "how many were refused because the device is gone");

unsigned int holder_failed;
module_param_named(failed, holder_failed, uint, 0444);
MODULE_PARM_DESC(failed, "how many asynchronous ones ended so");

unsigned int holder_unexpected;
module_param_named(unexpected, holder_unexpected, uint, 0444);
MODULE_PARM_DESC(unexpected, "how often something came out that must not");

unsigned int holder_peer_errors;
module_param_named(peer_errors, holder_peer_errors, uint, 0444);
MODULE_PARM_DESC(peer_errors, "how often the peer was in trouble");

int holder_removed;
module_param_named(removed, holder_removed, int, 0444);
MODULE_PARM_DESC(removed, "how often the removal callback has run");
