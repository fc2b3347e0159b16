/* SPDX-License-Identifier: GPL-2.0 */
/* Kernels that clear what is on the stack needn't clear what is marked so. */
#ifndef KFI_UNFILLED_H
#define KFI_UNFILLED_H

#if __has_attribute(uninitialized)
#define UNFILLED	__attribute__((uninitialized))
#else
#define UNFILLED
#endif

#endif /* KFI_UNFILLED_H */
