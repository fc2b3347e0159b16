// SPDX-License-Identifier: GPL-2.0

//! The ops tables of the core.

use crate::{
    prelude::*,
    support::num, //
};

/// A constant ops table in C's layout.
///
/// # Invariants
///
/// The table is never written, and the functions that it names live as long as this module.
#[repr(transparent)]
pub(crate) struct Table<T>(pub(crate) T);

// SAFETY: By the invariant, the table is constant, and functions may be called from any thread.
unsafe impl<T> Sync for Table<T> {}

impl<T> Table<T> {
    /// Returns the table as C objects point to it. C never writes to it, const or not.
    pub(crate) const fn as_ptr(&'static self) -> *mut T {
        ptr::from_ref(&self.0).cast_mut()
    }
}

/// The refusal of a call that the provider doesn't implement.
pub(crate) const NO_SUCH_CALL: Refusal =
    Refusal::new(Errno::ENOSYS, c"the provider doesn't have this call");

/// A return type of slots.
pub(crate) trait SlotReturn {
    /// Converts an error number to this type.
    fn of(errno: c_int) -> Self;
}

impl SlotReturn for c_int {
    fn of(errno: c_int) -> Self {
        errno
    }
}

impl SlotReturn for isize {
    fn of(errno: c_int) -> Self {
        num::signed_size(errno)
    }
}

impl<T> SlotReturn for *const T {
    /// Returns a null pointer.
    fn of(_: c_int) -> Self {
        ptr::null()
    }
}

/// Fails to compile unless each function is what the C headers declare under its name.
macro_rules! declared_in_c {
    ($($name:ident),*) => {
        const _: () = {
            $(let _ = if true { kfi_bindings::$name } else { $name };)*
        };
    };
}
pub(crate) use declared_in_c;
