/* SPDX-License-Identifier: GPL-2.0 */
/* C of the verbs provider: what Rust can't find out. */
#ifndef KFI_VERBS_HELPERS_H
#define KFI_VERBS_HELPERS_H

#include <linux/types.h>

struct ib_pd;
struct kfid;

/* The slot get_pd of struct kfi_verbs_dom_ops: adds who calls. */
struct ib_pd *kfi_verbs_helper_get_pd(struct kfid *fid);

/* May this be logged, or was the like of it just now, too often? */
bool kfi_verbs_helper_may_log(void);

/* Module parameters. Only wr_timeout can change. */
u32 kfi_verbs_helper_wr_timeout(void);
bool kfi_verbs_helper_weak_fence(void);
u32 kfi_verbs_helper_pool_pages(void);
u32 kfi_verbs_helper_pool_idle(void);

/* Room for a caller's name, with the final NUL. A longer name is cut off. */
#define KFI_VERBS_CALLER_MAX	128

/* In rust/verbs/ext.rs: does the work; @caller names a function of the consumer's. */
struct ib_pd *kfi_verbs_get_pd(struct kfid *fid, const char *caller);

#endif /* KFI_VERBS_HELPERS_H */
