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

/// The type of a slot. A slot without an implementation has [`NOSYS`](Self::NOSYS) in it. It is
/// never null, so no caller jumps through NULL.
pub(crate) trait OpsSlot {
    /// A function that returns `ENOSYS`.
    const NOSYS: Self;
}

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

/// Implements [`OpsSlot`] for functions with as many arguments as there are names, and with fewer.
macro_rules! slots {
    () => {};
    ($first:ident $($rest:ident)*) => {
        impl<$first, $($rest,)* Ret: SlotReturn> OpsSlot
            for Option<unsafe extern "C" fn($first $(, $rest)*) -> Ret>
        {
            const NOSYS: Self = {
                /// Returns `ENOSYS`. Any context.
                ///
                /// # Safety
                ///
                /// None; slots are unsafe functions.
                unsafe extern "C" fn nosys<$first, $($rest,)* Ret: SlotReturn>(
                    _: $first $(, _: $rest)*
                ) -> Ret {
                    Ret::of(NO_SUCH_CALL.report())
                }
                Some(nosys)
            };
        }
        slots!($($rest)*);
    };
}

slots!(A B C D E F G H I J K L M N O P);

/// Makes a table of a C type in which each call returns `ENOSYS`.
macro_rules! unserved {
    ($type:ident: $($slot:ident),* $(,)?) => {
        $crate::support::table::Table(kfi_bindings::$type {
            size: size_of::<kfi_bindings::$type>(),
            $($slot: $crate::support::table::OpsSlot::NOSYS),*
        })
    };
}
pub(crate) use unserved;

/// Fails to compile unless each function is what the C headers declare under its name.
macro_rules! declared_in_c {
    ($($name:ident),*) => {
        const _: () = {
            $(let _ = if true { kfi_bindings::$name } else { $name };)*
        };
    };
}
pub(crate) use declared_in_c;
