// SPDX-License-Identifier: GPL-2.0
#include <linux/instruction_pointer.h>
#include <linux/moduleparam.h>
#include <linux/ratelimit.h>
#include <linux/sprintf.h>

#include "verbs_helpers.h"

/*
 * Generous, for what takes longer is given up and costs the domain its queue: a loaded machine, or
 * an emulated one, may not run a device's worker for seconds.
 */
static unsigned int wr_timeout = 60;
module_param(wr_timeout, uint, 0644);
MODULE_PARM_DESC(wr_timeout,
		 "seconds in which the device must complete a work request (at least 1)");

u32 kfi_verbs_helper_wr_timeout(void)
{
	return READ_ONCE(wr_timeout);
}

/* A device that refuses one request may refuse all of them. */
bool kfi_verbs_helper_may_log(void)
{
	static DEFINE_RATELIMIT_STATE(state, DEFAULT_RATELIMIT_INTERVAL, DEFAULT_RATELIMIT_BURST);

	return __ratelimit(&state);
}

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
