// SPDX-License-Identifier: GPL-2.0

//! What every ops table of the core is made of.

use crate::errno::Errno;
use kernel::ffi::c_int;

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
    /// The table as C objects point to it. C never writes to it, const or not.
    pub(crate) const fn as_ptr(&'static self) -> *mut T {
        core::ptr::from_ref(&self.0).cast_mut()
    }
}

/// A slot that nothing serves yet answers `ENOSYS`; it is never empty, so that no caller jumps
/// through NULL. One function for each number of arguments.
macro_rules! no_op {
    ($($name:ident<$($t:ident),*>;)*) => {
        $(
            /// # Safety
            ///
            /// None; slots are unsafe functions.
            pub(crate) unsafe extern "C" fn $name<$($t),*>($(_: $t),*) -> c_int {
            Errno::ENOSYS.to_c()
        })*
    };
}

no_op! {
    no_op3<A, B, C>;
    no_op4<A, B, C, D>;
    no_op5<A, B, C, D, E>;
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
