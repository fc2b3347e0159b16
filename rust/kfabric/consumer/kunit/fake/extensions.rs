// SPDX-License-Identifier: GPL-2.0

//! What the provider for the unit tests has for extensions: some by names that aren't its own.

use crate::provider::extension::{
    Extension,
    ExtensionTable, //
};
use kernel::str::CStr;
use kfi_bindings::{
    kfi_dma_ops,
    kfi_raw_ops, //
};

/// An extension, of a name that is the core's.
#[repr(transparent)]
struct OwnDma(kfi_dma_ops);

// SAFETY: Never written.
unsafe impl Sync for OwnDma {}
// SAFETY: It is such a table, though one without functions.
unsafe impl ExtensionTable for OwnDma {
    const NAME: &'static CStr = crate::object::ext::dma::NAME;
}

/// The same for raw keys.
#[repr(transparent)]
struct OwnRaw(kfi_raw_ops);

// SAFETY: Never written.
unsafe impl Sync for OwnRaw {}
// SAFETY: The table is a constant, and named by this name only here.
unsafe impl ExtensionTable for OwnRaw {
    const NAME: &'static CStr = crate::object::ext::raw::NAME;
}

/// One that is the provider's.
pub(in crate::consumer::kunit) struct Own;

// SAFETY: Nobody expects anything of it.
unsafe impl ExtensionTable for Own {
    const NAME: &'static CStr = c"kfabric_kunit_ops";
}

static OWN_DMA: OwnDma = OwnDma(pin_init::zeroed());
static OWN_RAW: OwnRaw = OwnRaw(pin_init::zeroed());
/// The table of [`Own`].
pub(in crate::consumer::kunit) static OWN: Own = Own;
/// All of these.
pub(in crate::consumer::kunit) static EXTENSIONS: [Extension; 3] = [
    Extension::new(&OWN_DMA),
    Extension::new(&OWN_RAW),
    Extension::new(&OWN),
];
