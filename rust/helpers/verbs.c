// SPDX-License-Identifier: GPL-2.0
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/instruction_pointer.h>
#include <linux/printk.h>

#include "verbs_helpers.h"

struct ib_pd *kfi_verbs_helper_get_pd(struct kfid *fid)
{
	return kfi_verbs_get_pd(fid, _RET_IP_);
}

/* %pS names function and module, which %p in Rust does not. */
void kfi_verbs_helper_warn(const char *device, const char *what, unsigned long caller)
{
	pr_warn("%s: %s %pS\n", device, what, (void *)caller);
}
