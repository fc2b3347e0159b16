/* SPDX-License-Identifier: GPL-2.0 */
/* Counters: what the files of the suite share. */
#ifndef KFI_TEST_CNTR_H
#define KFI_TEST_CNTR_H

#include "env.h"

struct kfid_cntr *cntr_open(struct kfi_test *t, enum kfi_wait_obj wait_obj);
void cntr_close(struct kfi_test *t, struct kfid_cntr *cntr);

/* cntr_wait.c */
void cntr_threshold_case(struct kfi_test *t);
void cntr_timeout_case(struct kfi_test *t);
void cntr_woken_case(struct kfi_test *t);
void cntr_failure_case(struct kfi_test *t);
void cntr_signal_case(struct kfi_test *t);
void cntr_busy_case(struct kfi_test *t);
void cntr_many_case(struct kfi_test *t);

#endif /* KFI_TEST_CNTR_H */
