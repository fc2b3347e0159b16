/* SPDX-License-Identifier: GPL-2.0 */
/* A provider in C whose one fabric is opened again and again. */
#ifndef KFI_TEST_SHARED_H
#define KFI_TEST_SHARED_H

#include "ktap.h"

#define SHARED_NAME	"kfi_selftest"

bool shared_register(struct kfi_test *t);
void shared_deregister(struct kfi_test *t);

void shared_twice_case(struct kfi_test *t);
void shared_foreign_case(struct kfi_test *t);
void shared_race_case(struct kfi_test *t);

/* Hints that name open objects: opened.c. */
void opened_fabric_case(struct kfi_test *t);
void opened_domain_case(struct kfi_test *t);
void opened_other_case(struct kfi_test *t);
void opened_instance_case(struct kfi_test *t);
void opened_version_case(struct kfi_test *t);
void opened_stale_case(struct kfi_test *t);

/* netlink.c */
void netlink_case(struct kfi_test *t);

#endif /* KFI_TEST_SHARED_H */
