// SPDX-License-Identifier: GPL-2.0

//! Where an event is put that a C consumer reads.

use super::event::Event;
use crate::support::{
    errno::Errno,
    num::widen,
    refusal::Refusal, //
};
use core::ptr;
use kernel::ffi::c_void;

/// Where a reader wants an event put.
pub(super) struct Out {
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
}

impl Out {
    /// Takes a reader's arguments. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: one is NULL.
    pub(super) fn new(event: *mut u32, buf: *mut c_void, len: usize) -> Result<Self, Refusal> {
        if event.is_null() || buf.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"event or buffer is NULL"));
        }
        Ok(Self { event, buf, len })
    }

    /// Puts an event there, and returns its length; of what a peer has sent as much as there is room
    /// for. Any context.
    ///
    /// # Errors
    ///
    /// - `ETOOSMALL`: there is no room for it.
    ///
    /// # Safety
    ///
    /// `event` is valid for writing, and so are `len` bytes at `buf`.
    pub(super) unsafe fn put(&self, event: &Event) -> Result<usize, Refusal> {
        let (bytes, len) = event.bytes();
        if self.len < len {
            let refusal = Refusal::new(Errno::ETOOSMALL, c"no room for the event");
            return Err(refusal.value(widen(len)));
        }
        // SAFETY: `event` and `buf` are valid by the requirements of this function, `buf` with room
        // as just checked.
        unsafe {
            self.event.write(event.number);
            ptr::copy_nonoverlapping(bytes, self.buf.cast(), len);
        }
        let more = event.more();
        let fits = more.len().min(self.len - len);
        // SAFETY: There is so much room behind the structure.
        unsafe { ptr::copy_nonoverlapping(more.as_ptr(), self.buf.cast::<u8>().add(len), fits) };
        Ok(len + fits)
    }
}
