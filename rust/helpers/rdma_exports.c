// SPDX-License-Identifier: GPL-2.0
/* Symbols of the `rdma` crate for other Rust modules. */
#include <linux/export.h>

/* Mangled names: the declaration is only for EXPORT_SYMBOL to have something to name. */
#define EXPORT_SYMBOL_RUST_GPL(sym) extern int sym; EXPORT_SYMBOL_GPL(sym)
#include "rdma_exports_generated.h"
