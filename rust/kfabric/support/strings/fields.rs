// SPDX-License-Identifier: GPL-2.0

//! Reading the fields of structs that come from C.

use super::text::{
    Fields,
    Value, //
};
use core::{
    ptr::NonNull,
    slice, //
};
use kernel::{
    ffi::{
        c_char,
        c_int,
        c_uint,
        c_void, //
    },
    str::{
        CStr,
        CStrExt, //
    }, //
};

/// A struct of the C API, complete with what it points to.
///
/// # Invariants
///
/// Every pointer in it is null, or valid for what the C API says is there.
#[repr(transparent)]
pub(super) struct Complete<T>(pub(super) T);

impl<T> Complete<T> {
    /// Takes a struct from C.
    ///
    /// # Safety
    ///
    /// `data` points to a `T`, which is as the invariant of this type has it, for `'a`.
    pub(super) unsafe fn from_raw<'a>(data: NonNull<c_void>) -> &'a Self {
        // SAFETY: By the requirements of this function, and the same layout.
        // INVARIANT: By the requirements of this function.
        unsafe { data.cast().as_ref() }
    }

    /// Takes a struct that another one points to.
    ///
    /// # Safety
    ///
    /// `data` is null, or as for [`from_raw`](Self::from_raw).
    pub(super) unsafe fn nested<'a>(data: *mut T) -> Value<'a>
    where
        T: 'a,
        Self: Fields,
    {
        match NonNull::new(data) {
            None => Value::Nothing,
            // SAFETY: By the requirements of this function.
            Some(data) => Value::Fields(unsafe { Self::from_raw(data.cast()) }),
        }
    }
}

/// # Safety
///
/// `text` is null or a string for `'a`.
pub(super) unsafe fn string<'a>(text: *const c_char) -> Value<'a> {
    // SAFETY: By the requirements of this function.
    Value::String((!text.is_null()).then(|| unsafe { CStr::from_char_ptr(text) }))
}

/// # Safety
///
/// `first` is null or has `len` bytes for `'a`.
pub(super) unsafe fn bytes<'a>(first: *const c_void, len: usize) -> Value<'a> {
    if first.is_null() {
        return Value::Nothing;
    }
    // SAFETY: By the requirements of this function.
    Value::Bytes(unsafe { slice::from_raw_parts(first.cast(), len) })
}

/// An integer of a struct.
pub(super) trait Integer {
    fn wide(self) -> u64;
}

impl Integer for u64 {
    fn wide(self) -> u64 {
        self
    }
}

impl Integer for usize {
    fn wide(self) -> u64 {
        crate::support::num::widen(self)
    }
}

impl Integer for c_uint {
    fn wide(self) -> u64 {
        u64::from(self)
    }
}

impl Integer for c_int {
    /// The bits: integers with a sign are sets of flags, too.
    fn wide(self) -> u64 {
        u64::from(c_uint::from_ne_bytes(self.to_ne_bytes()))
    }
}
