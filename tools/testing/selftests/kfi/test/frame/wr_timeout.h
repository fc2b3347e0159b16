/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KFI_TEST_WR_TIMEOUT_H
#define KFI_TEST_WR_TIMEOUT_H

/* Sets the parameter wr_timeout. Returns what it was, or a negative errno. */
int set_wr_timeout(int seconds);

#endif /* KFI_TEST_WR_TIMEOUT_H */
