// SPDX-License-Identifier: GPL-2.0

//! Bytes on the caller's stack. They can't be registered, but injected: what is copied before the call
//! returns needn't stay.

use super::buffers::Buffers;
use crate::{
    region::source::Source,
    support::refusal::Refusal, //
};
use core::ptr::null_mut;
use kernel::{
    ffi::c_void,
    prelude::*, //
};
use kfi_bindings::kvec;

/// A copy of a buffer that is on the stack.
pub(crate) struct OnStack {
    kvec: kvec,
    desc: *mut c_void,
    _bytes: KVec<u8>,
}

impl OnStack {
    /// Copies a buffer that is on the stack of the caller as a whole, and has no descriptor and at most so
    /// many bytes; `None` if it isn't. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`
    pub(crate) fn copy(buffers: &Buffers<'_>, most: usize) -> Result<Option<Self>, Refusal> {
        let Some(Source::Kvec(list)) = buffers.source() else {
            return Ok(None);
        };
        let &[kvec { iov_base, iov_len }] = list.entries(2) else {
            return Ok(None);
        };
        // SAFETY: Any address may be asked about.
        let here = unsafe { kfi_bindings::kfi_helper_in_stack(iov_base, iov_len) };
        if iov_len == 0 || iov_len > most || !buffers.is_bare() || !here {
            return Ok(None);
        }
        let mut bytes = KVec::from_elem(0_u8, iov_len, GFP_ATOMIC)?;
        // SAFETY: These bytes are of the calling task's stack, so they are there.
        unsafe { bytes.as_mut_ptr().copy_from(iov_base.cast(), iov_len) };
        Ok(Some(Self {
            kvec: kvec {
                iov_base: bytes.as_mut_ptr().cast(),
                iov_len,
            },
            desc: null_mut(),
            _bytes: bytes,
        }))
    }

    /// The copy, as a buffer.
    pub(crate) fn buffers(&self) -> Result<Buffers<'_>, Refusal> {
        Buffers::one(&self.kvec, &self.desc)
    }
}
