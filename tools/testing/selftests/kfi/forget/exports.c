// SPDX-License-Identifier: GPL-2.0
/* The functions of kfi_keeper.ko for other modules in Rust. */
#include <linux/module.h>

#define EXPORT_SYMBOL_RUST_GPL(sym) extern int sym; EXPORT_SYMBOL_GPL(sym)

#include "exports_generated.h"
