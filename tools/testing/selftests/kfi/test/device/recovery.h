/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KFI_TEST_DEVICE_RECOVERY_H
#define KFI_TEST_DEVICE_RECOVERY_H

#include "env.h"

/* Breaks the provider's registration queue. False is a failure that has been reported. */
bool break_queue(struct kfi_test *t);

#endif /* KFI_TEST_DEVICE_RECOVERY_H */
