// SPDX-License-Identifier: GPL-2.0

//! Tables of functions of a provider's own, which consumers open by their names.

use core::ptr;
use kernel::{
    ffi::c_void,
    str::CStr, //
};

/// A table of functions in C's layout, which consumers know by a name.
///
/// # Safety
///
/// `Self` is laid out as those expect who open an extension of this name. Its functions may be called
/// as they are documented to them, by any thread, for as long as the domain is open.
pub unsafe trait ExtensionTable: Sync + 'static {
    /// The name.
    const NAME: &'static CStr;
}

/// An extension of a domain: a table with its name.
///
/// # Invariants
///
/// `table` is a table of that name, which is always there.
pub struct Extension {
    name: &'static CStr,
    table: *mut c_void,
}

// SAFETY: A table may be shared by all threads.
unsafe impl Send for Extension {}
// SAFETY: A table is constant, and may be used by several threads at once.
unsafe impl Sync for Extension {}

impl Extension {
    /// The extension that is this table.
    pub const fn new<T: ExtensionTable>(table: &'static T) -> Self {
        // INVARIANT: By the promise of the type, whose name this is.
        Self {
            name: T::NAME,
            table: ptr::from_ref(table).cast_mut().cast(),
        }
    }

    /// The table, if this is its name.
    pub(crate) fn table(&self, name: &CStr) -> Option<*mut c_void> {
        (self.name == name).then_some(self.table)
    }
}
