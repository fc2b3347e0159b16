/* SPDX-License-Identifier: GPL-2.0 */
/* C of the verbs provider: what Rust can't find out or print. */
#ifndef KFI_VERBS_HELPERS_H
#define KFI_VERBS_HELPERS_H

#include <linux/types.h>

struct ib_pd;
struct kfid;

/* The slot get_pd of struct kfi_verbs_dom_ops: adds who calls. */
struct ib_pd *kfi_verbs_helper_get_pd(struct kfid *fid);

/* In rust/verbs/ext.rs: does the work; @caller is an address in the consumer's code. */
struct ib_pd *kfi_verbs_get_pd(struct kfid *fid, unsigned long caller);

void kfi_verbs_helper_warn(const char *device, const char *what, unsigned long caller);

#endif /* KFI_VERBS_HELPERS_H */
