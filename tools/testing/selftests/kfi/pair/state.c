// SPDX-License-Identifier: GPL-2.0
/* The state that a client can ask for: what went wrong, and how many connections are open. */
#include <linux/moduleparam.h>
#include <linux/spinlock.h>

#include "server.h"

static unsigned int failures;
module_param(failures, uint, 0444);
MODULE_PARM_DESC(failures, "how often something was not as it should be (to be read)");

static DEFINE_SPINLOCK(failures_lock);

atomic_t connections_open = ATOMIC_INIT(0);

void wrong(const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	spin_lock(&failures_lock);
	failures++;
	spin_unlock(&failures_lock);
	va_start(args, fmt);
	vaf.va = &args;
	pr_err("kfi_pair_server: %pV\n", &vaf);
	va_end(args);
}

unsigned int wrong_so_far(void)
{
	return READ_ONCE(failures);
}
