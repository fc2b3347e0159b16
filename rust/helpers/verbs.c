// SPDX-License-Identifier: GPL-2.0
#include <linux/instruction_pointer.h>
#include <linux/sprintf.h>

#include "verbs_helpers.h"

/*
 * %pS names function and module, which nothing in Rust does. Now, since the caller may be code that
 * is freed before anybody asks: a module's __init function.
 */
struct ib_pd *kfi_verbs_helper_get_pd(struct kfid *fid)
{
	char caller[KFI_VERBS_CALLER_MAX];

	scnprintf(caller, sizeof(caller), "%pS", (void *)_RET_IP_);
	return kfi_verbs_get_pd(fid, caller);
}
