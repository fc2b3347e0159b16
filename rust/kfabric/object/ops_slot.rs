// SPDX-License-Identifier: GPL-2.0

//! The slots that the objects of a class don't have.

use crate::{
    object::obj::{
        Obj,
        Object, //
    },
    prelude::*,
    support::table::{
        SlotReturn,
        NO_SUCH_CALL, //
    }, //
};

/// The name of a slot.
pub(crate) trait SlotName {
    /// The name in C.
    const NAME: &'static CStr;
}

/// The type of a slot. A slot without an implementation has [`NOSYS`](Self::NOSYS) in it. It is
/// never null, so no caller jumps through NULL.
pub(crate) trait OpsSlot<T: Object, N: SlotName> {
    /// A function that returns `ENOSYS`, for objects of the class of `T`.
    const NOSYS: Self;
}

/// Implements [`OpsSlot`] for functions of an object with as many arguments as there are names, and
/// with fewer.
macro_rules! slots {
    () => {};
    ($first:ident $($rest:ident)*) => {
        impl<T: Object, N: SlotName, $first, $($rest,)* Ret: SlotReturn> OpsSlot<T, N>
            for Option<unsafe extern "C" fn(*mut $first $(, $rest)*) -> Ret>
        {
            const NOSYS: Self = {
                /// Returns `ENOSYS`. Any context.
                ///
                /// # Safety
                ///
                /// `object` is null, an error pointer, or an open object for the call. It begins
                /// with its fid.
                unsafe extern "C" fn nosys<
                    T: Object,
                    N: SlotName,
                    $first,
                    $($rest,)*
                    Ret: SlotReturn,
                >(
                    object: *mut $first $(, _: $rest)*
                ) -> Ret {
                    // SAFETY: `object` is null, an error pointer, or an open object, which begins
                    // with its fid.
                    unsafe { Obj::<T>::answer(object.cast(), N::NAME, Err(NO_SUCH_CALL)) }
                }
                Some(nosys::<T, N, $first, $($rest,)* Ret>)
            };
        }
        slots!($($rest)*);
    };
}

slots!(A B C D E F G H I J K L M O P Q);

/// Returns the function in a slot that the objects with this body don't have.
macro_rules! nosys {
    ($body:ty, $slot:ident) => {{
        struct Name;

        impl $crate::object::ops_slot::SlotName for Name {
            const NAME: &'static ::kernel::str::CStr = ::kernel::c_str!(stringify!($slot));
        }
        $crate::object::ops_slot::OpsSlot::<$body, Name>::NOSYS
    }};
}
pub(crate) use nosys;

/// Makes a table of a C type in which each call returns `ENOSYS`, for the objects with this body.
macro_rules! unserved {
    ($type:ident of $body:ty: $($slot:ident),* $(,)?) => {
        $crate::support::table::Table(kfi_bindings::$type {
            size: size_of::<kfi_bindings::$type>(),
            $($slot: $crate::object::ops_slot::nosys!($body, $slot)),*
        })
    };
}
pub(crate) use unserved;
