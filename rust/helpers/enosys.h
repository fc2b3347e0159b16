/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tables of operations in which nothing is supported. The core copies one and replaces what it
 * serves, so that no slot of a table that it hands out is ever empty.
 */
#ifndef KFI_ENOSYS_H
#define KFI_ENOSYS_H

#include <kfabric.h>
#include <kfi_domain.h>

extern const struct kfi_ops kfi_enosys_ops;
extern const struct kfi_ops_fabric kfi_enosys_ops_fabric;
extern const struct kfi_ops_domain kfi_enosys_ops_domain;
extern const struct kfi_ops_mr kfi_enosys_ops_mr;

#endif /* KFI_ENOSYS_H */
