// SPDX-License-Identifier: GPL-2.0

//! Where C wants the raw key of a region.
//!
//! C header: [`include/kfi_domain.h`](srctree/include/kfi_domain.h)

use crate::{
    region::rawkey::{
        self,
        RemotePiece, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::{
            no_flags,
            Refusal, //
        }, //
    }, //
};
use kernel::ffi::c_void;
use kfi_bindings::kfi_mr_raw_attr;

/// The argument of `KFI_GET_RAW_MR`, where the raw key of a region goes.
///
/// # Invariants
///
/// `raw_key` has space for `room` bytes, if `room` is not 0.
pub(super) struct RawAttr<'a> {
    base_addr: &'a mut u64,
    raw_key: *mut u8,
    room: usize,
    size: &'a mut usize,
}

impl RawAttr<'_> {
    /// Takes it from C.
    ///
    /// # Safety
    ///
    /// As the C API demands: `arg` is null or a `struct kfi_mr_raw_attr`, and its pointers are null
    /// or valid, until this is dropped.
    pub(super) unsafe fn from_raw(arg: *mut c_void) -> Result<Self, Refusal> {
        // SAFETY: `arg` is null or a `struct kfi_mr_raw_attr`, as the caller promises.
        let attr = unsafe { arg.cast::<kfi_mr_raw_attr>().as_ref() }.ok_or(Refusal::NULL)?;
        no_flags(attr.flags)?;
        // SAFETY: The pointers in `attr` are null or valid until this is dropped, as the caller
        // promises.
        let (size, base_addr) = unsafe { (attr.key_size.as_mut(), attr.base_addr.as_mut()) };
        let (size, base_addr) = (size.ok_or(Refusal::NULL)?, base_addr.ok_or(Refusal::NULL)?);
        if *size != 0 && attr.raw_key.is_null() {
            return Err(Refusal::NULL);
        }
        // INVARIANT: `raw_key` has `*size` bytes unless that is 0, as the caller promises.
        Ok(Self {
            base_addr,
            raw_key: attr.raw_key,
            room: *size,
            size,
        })
    }

    /// Writes the raw key of a region of these pieces, and its base address, which is that of the first. Sleeps.
    pub(super) fn put(self, pieces: &[RemotePiece]) -> Result<(), Refusal> {
        *self.size = rawkey::raw_key_size(pieces.len());
        if self.room < *self.size {
            let refusal = Refusal::new(Errno::ETOOSMALL, c"raw key is longer");
            return Err(refusal.value(widen(*self.size)));
        }
        let raw = rawkey::encode(pieces)?;
        *self.base_addr = pieces.first().map_or(0, |first| first.base);
        // SAFETY: By the invariant; that there is enough room was just checked.
        unsafe {
            self.raw_key
                .copy_from_nonoverlapping(raw.as_ptr(), raw.len())
        };
        Ok(())
    }
}
