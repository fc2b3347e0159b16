// SPDX-License-Identifier: GPL-2.0
/* kfi_block.ko: the crate `block`, for block drivers in Rust. It does nothing by itself. */
#include <linux/export.h>
#include <linux/module.h>

MODULE_LICENSE("GPL");
MODULE_AUTHOR("kfabric developers");
MODULE_DESCRIPTION("Block devices in Rust");

/* Mangled names: the declaration is only for EXPORT_SYMBOL to have something to name. */
#define EXPORT_SYMBOL_RUST_GPL(sym) extern int sym; EXPORT_SYMBOL_GPL(sym)
#include "block_exports_generated.h"
