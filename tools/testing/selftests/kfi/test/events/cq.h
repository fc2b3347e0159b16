/* SPDX-License-Identifier: GPL-2.0 */
/* Completion queues: what the files of the suite share. */
#ifndef KFI_TEST_CQ_H
#define KFI_TEST_CQ_H

#include <kfi_eq.h>

#include "env.h"

/* The largest queue there is. */
#define CQ_MOST	65536

/* A small queue that is waited for with @wait_obj, or NULL, which is reported. */
struct kfid_cq *cq_open(struct kfi_test *t, enum kfi_wait_obj wait_obj,
			enum kfi_cq_wait_cond wait_cond);
void cq_close(struct kfi_test *t, struct kfid_cq *cq);

/* cq_wait.c */
/* A waiter is called back at once. */
void cq_called_back(struct kfi_test *t, struct kfid_cq *cq);

void cq_timeout_case(struct kfi_test *t);
void cq_signal_case(struct kfi_test *t);
void cq_kept_signal_case(struct kfi_test *t);
void cq_interrupt_case(struct kfi_test *t);
void cq_busy_case(struct kfi_test *t);

#endif /* KFI_TEST_CQ_H */
