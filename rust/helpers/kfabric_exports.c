// SPDX-License-Identifier: GPL-2.0
/* Symbols for other modules: the C API, and the Rust symbols of the crates. */
#include <linux/export.h>

#include <kfabric.h>
#include <kfi_prov.h>

EXPORT_SYMBOL_GPL(__kfi_provider_register);
EXPORT_SYMBOL_GPL(kfi_allocinfo);
EXPORT_SYMBOL_GPL(kfi_dupinfo);
EXPORT_SYMBOL_GPL(kfi_fabric);
EXPORT_SYMBOL_GPL(kfi_freeinfo);
EXPORT_SYMBOL_GPL(kfi_getinfo);
EXPORT_SYMBOL_GPL(kfi_provider_deregister);
EXPORT_SYMBOL_GPL(kfi_refuse_call);
EXPORT_SYMBOL_GPL(kfi_strerror);
EXPORT_SYMBOL_GPL(kfi_tostr);
EXPORT_SYMBOL_GPL(kfi_version);

/* Mangled names: the declaration is only for EXPORT_SYMBOL to have something to name. */
#define EXPORT_SYMBOL_RUST_GPL(sym) extern int sym; EXPORT_SYMBOL_GPL(sym)
#include "kfabric_exports_generated.h"
