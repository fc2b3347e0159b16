/* SPDX-License-Identifier: GPL-2.0 */
/* Marks a helper that is inlined into Rust, besides being a function: see inlined.c. */
#ifndef KFABRIC_INLINE_H
#define KFABRIC_INLINE_H

#ifndef KFI_HELPER
#define KFI_HELPER
#endif

#endif /* KFABRIC_INLINE_H */
