/* SPDX-License-Identifier: GPL-2.0 */
/* Files of debugfs, read and written by the process that loads this module. */
#ifndef KFI_TEST_DEBUGFS_H
#define KFI_TEST_DEBUGFS_H

#include <rdma/ib_verbs.h>

#include "ktap.h"

ssize_t debugfs_read(const char *path, char *text, size_t size);
long figure_of(const char *text, const char *name);
long debugfs_figure(struct kfi_test *t, const char *path, const char *name);
bool debugfs_set(struct kfi_test *t, const char *path, long value);

bool needs_model(struct kfi_test *t);

/* The files of the model NIC (../nic/) that is @dev. */
long nic_stat(struct kfi_test *t, struct ib_device *dev, const char *name);
bool nic_set(struct kfi_test *t, struct ib_device *dev, const char *file, long value);

#endif /* KFI_TEST_DEBUGFS_H */
