// SPDX-License-Identifier: GPL-2.0

//! Memory that the processor copies, by C: others may be reading and changing it at the same time.

use kernel::ffi::c_void;

/// Some bytes of memory, by their address in the linear map.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(super) start: *mut c_void,
    pub(super) len: usize,
}

impl Part {
    pub(crate) const fn as_ptr(&self) -> *mut c_void {
        self.start
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// What is behind the first bytes, if there is anything.
    pub(super) fn after(self, len: usize) -> Option<Self> {
        (len < self.len).then(|| Self {
            start: self.start.wrapping_byte_add(len),
            len: self.len - len,
        })
    }

    /// Copies to the first bytes.
    ///
    /// # Safety
    ///
    /// There are as many, and may be written to.
    pub(crate) unsafe fn write(&self, from: &[u8]) {
        // SAFETY: By the requirements of this function.
        unsafe { kfi_bindings::kfi_helper_move(self.start, from.as_ptr().cast(), from.len()) };
    }
}
