// SPDX-License-Identifier: GPL-2.0
#include <linux/instruction_pointer.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/ratelimit.h>
#include <linux/sprintf.h>
#include <linux/stringify.h>

#include "verbs_helpers.h"

MODULE_VERSION(__stringify(KFABRIC_VERSION));

/*
 * Generous, for what takes longer is given up and costs the domain its queue: a loaded machine, or
 * an emulated one, may not run a device's worker for seconds.
 */
static unsigned int wr_timeout = 60;

static int set_wr_timeout(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, UINT_MAX);
}

static const struct kernel_param_ops wr_timeout_ops = {
	.set = set_wr_timeout,
	.get = param_get_uint,
};
module_param_cb(wr_timeout, &wr_timeout_ops, &wr_timeout, 0644);
__MODULE_PARM_TYPE(wr_timeout, "uint");
MODULE_PARM_DESC(wr_timeout,
		 "seconds in which the device must complete a work request (at least 1)");

static bool weak_fence;
module_param(weak_fence, bool, 0444);
MODULE_PARM_DESC(weak_fence,
		 "1: invalidate regions of software devices instead of deregistering them, which permits refresh (unsafe: a peer's access under way may then reach freed memory)");

static unsigned int pool_pages = 16384;
module_param(pool_pages, uint, 0444);
MODULE_PARM_DESC(pool_pages,
		 "maximum number of pages in the idle device regions of a domain (0: no pool)");

static unsigned int pool_idle = 10;
module_param(pool_idle, uint, 0444);
MODULE_PARM_DESC(pool_idle,
		 "seconds after which the pool frees device regions that nobody needed (0: never)");

u32 kfi_verbs_helper_wr_timeout(void)
{
	return READ_ONCE(wr_timeout);
}

bool kfi_verbs_helper_weak_fence(void)
{
	return weak_fence;
}

u32 kfi_verbs_helper_pool_pages(void)
{
	return pool_pages;
}

u32 kfi_verbs_helper_pool_idle(void)
{
	return pool_idle;
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
