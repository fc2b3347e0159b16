/* SPDX-License-Identifier: GPL-2.0 */
/* Endpoints over a driver that does as it is told. */
#ifndef KFI_TEST_EP_DRIVER_H
#define KFI_TEST_EP_DRIVER_H

#include "ep.h"
#include "kfi_inject.h"

/* The errno of a driver that refuses, and the errno for the caller. */
#define DRIVER_SAYS	(-ENOMEM)
#define DRIVER_TOLD	(-KFI_ENOMEM)

/* The device of a side, which is wrapped then until kfi_inject_stop(). NULL is a failure that was reported. */
struct ib_device *driver_wrap(struct kfi_test *t, struct ep_side *s);

/* Does one step of a call, after @skip others, fail? */
struct driver_step {
	enum kfi_inject_op op;
	unsigned int before;
	unsigned int skip;
};

struct driver_step driver_fails(enum kfi_inject_op op, unsigned int skip);

/* It does no more. Whether it has. */
bool driver_failed(const struct driver_step *step);

/* driver_made.c */
void driver_making_case(struct kfi_test *t);
void driver_closing_case(struct kfi_test *t);
void driver_lingering_case(struct kfi_test *t);
void driver_regions_case(struct kfi_test *t);
void driver_regions_kept_case(struct kfi_test *t);
void driver_regions_probed_case(struct kfi_test *t);
void driver_failing_regions_case(struct kfi_test *t);
void driver_undrained_case(struct kfi_test *t);

/* driver_device.c */
void driver_receives_case(struct kfi_test *t);
void driver_receives_shared_case(struct kfi_test *t);
void driver_inline_refused_case(struct kfi_test *t);
void driver_inline_less_case(struct kfi_test *t);
void driver_last_shared_case(struct kfi_test *t);

/* model.c */
void driver_early_case(struct kfi_test *t);
void driver_drain_refused_case(struct kfi_test *t);

/* again.c */
void driver_again_case(struct kfi_test *t);
void driver_again_refused_case(struct kfi_test *t);
void driver_replayed_case(struct kfi_test *t);

/* reuse_refused.c */
void driver_reuse_ended_case(struct kfi_test *t);

#endif /* KFI_TEST_EP_DRIVER_H */
