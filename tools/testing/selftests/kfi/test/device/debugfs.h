/* SPDX-License-Identifier: GPL-2.0 */
/* Files of debugfs, read and written by the process that loads this module. */
#ifndef KFI_TEST_DEBUGFS_H
#define KFI_TEST_DEBUGFS_H

#include "ktap.h"

long debugfs_figure(struct kfi_test *t, const char *path, const char *name);
bool debugfs_set(struct kfi_test *t, const char *path, long value);

#endif /* KFI_TEST_DEBUGFS_H */
