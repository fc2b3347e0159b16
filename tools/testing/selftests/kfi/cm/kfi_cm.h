/* SPDX-License-Identifier: GPL-2.0 */
/* Between kfi_cm.ko's two languages. */
#ifndef KFI_CM_H
#define KFI_CM_H

#include <linux/types.h>

/* Returns the name of a case; NULL behind the last one. In Rust. */
const char *kfi_cm_name(unsigned int number);
/* 0 if the case has passed. In Rust. */
int kfi_cm_run(unsigned int number);

/*
 * Connects, and leaves all that there may be of connections as it is, for kfi_cm_release(); if @client, also
 * for when the device goes, which waits for it. In Rust.
 */
int kfi_cm_hold(bool client);
void kfi_cm_release(void);

/* Whether the device's addresses are those of IPoIB, which asks others for the address of a peer. */
bool kfi_cm_over_ipoib(void);

/* Where memory of kmalloc() is. */
u64 kfi_cm_phys(void *address);

#endif /* KFI_CM_H */
