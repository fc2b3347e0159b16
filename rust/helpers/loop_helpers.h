/* SPDX-License-Identifier: GPL-2.0 */
/* C of the loop provider. */
#ifndef KFI_LOOP_HELPERS_H
#define KFI_LOOP_HELPERS_H

#include <linux/types.h>

/* A module parameter. */
u32 kfi_loop_helper_domains(void);

#endif /* KFI_LOOP_HELPERS_H */
