// SPDX-License-Identifier: GPL-2.0

//! What every ops table of the core is made of.

use crate::{
    errno::Errno,
    num, //
};
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

/// The type of a slot, for tables in which nothing is served: [`NOSYS`](Self::NOSYS) fits in each.
pub(crate) trait Slot {
    /// Answers `ENOSYS`.
    const NOSYS: Self;
}

/// What a slot returns an error number as.
pub(crate) trait Answer {
    /// `-ENOSYS`.
    const NOSYS: Self;
}

impl Answer for c_int {
    const NOSYS: Self = Errno::ENOSYS.to_c();
}

impl Answer for isize {
    const NOSYS: Self = num::signed_size(Errno::ENOSYS.to_c());
}

/// Slots with as many arguments as there are names, and with fewer.
macro_rules! slots {
    () => {};
    ($first:ident $($rest:ident)*) => {
        impl<$first, $($rest,)* Ret: Answer> Slot
            for Option<unsafe extern "C" fn($first $(, $rest)*) -> Ret>
        {
            const NOSYS: Self = {
                /// # Safety
                ///
                /// None; slots are unsafe functions.
                unsafe extern "C" fn nosys<$first, $($rest,)* Ret: Answer>(
                    _: $first $(, _: $rest)*
                ) -> Ret {
                    Ret::NOSYS
                }
                Some(nosys)
            };
        }
        slots!($($rest)*);
    };
}

slots!(A B C D E F G H I J K L M N O P);

/// A table of this type in which nothing is served.
macro_rules! unserved {
    ($type:ident: $($slot:ident),* $(,)?) => {
        $crate::table::Table($type {
            size: size_of::<$type>(),
            $($slot: $crate::table::Slot::NOSYS),*
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
