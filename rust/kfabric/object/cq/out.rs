// SPDX-License-Identifier: GPL-2.0

//! Where completions are put that a C consumer reads, and in which structure.

use crate::{
    provider::cq::Completion,
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use kernel::ffi::c_void;
use kfi_bindings::{
    kfi_addr_t,
    kfi_cq_data_entry,
    kfi_cq_entry,
    kfi_cq_format,
    kfi_cq_format_KFI_CQ_FORMAT_CONTEXT as CONTEXT,
    kfi_cq_format_KFI_CQ_FORMAT_DATA as DATA,
    kfi_cq_format_KFI_CQ_FORMAT_MSG as MSG,
    kfi_cq_format_KFI_CQ_FORMAT_TAGGED as TAGGED,
    kfi_cq_format_KFI_CQ_FORMAT_UNSPEC as UNSPEC,
    kfi_cq_msg_entry,
    kfi_cq_tagged_entry, //
};

/// What a completion is read as.
#[derive(Clone, Copy)]
pub(super) enum Format {
    /// A `struct kfi_cq_entry`.
    Context,
    /// A `struct kfi_cq_msg_entry`.
    Msg,
    /// A `struct kfi_cq_data_entry`.
    Data,
    /// A `struct kfi_cq_tagged_entry`.
    Tagged,
}

impl Format {
    /// Takes a consumer's format. Where that is left to us, all is told that there is to tell.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is no such format.
    pub(super) fn parse(format: kfi_cq_format) -> Result<Self, Refusal> {
        match format {
            CONTEXT => Ok(Self::Context),
            MSG => Ok(Self::Msg),
            DATA | UNSPEC => Ok(Self::Data),
            TAGGED => Ok(Self::Tagged),
            other => {
                let refusal = Refusal::new(Errno::EINVAL, c"unknown format of completions");
                Err(refusal.value(u64::from(other)))
            }
        }
    }
}

/// Where a reader wants completions put, one behind the other.
pub(super) struct Out {
    format: Format,
    buf: *mut c_void,
    addrs: *mut kfi_addr_t,
    count: usize,
}

impl Out {
    /// Takes a reader's arguments; `addrs` may be null. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is no room.
    pub(super) fn new(
        format: Format,
        buf: *mut c_void,
        count: usize,
        addrs: *mut kfi_addr_t,
    ) -> Result<Self, Refusal> {
        if buf.is_null() || count == 0 {
            let refusal = Refusal::new(Errno::EINVAL, c"no room for completions");
            return Err(refusal.value(widen(count)));
        }
        Ok(Self {
            format,
            buf,
            addrs,
            count,
        })
    }

    /// How many completions there is room for.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Puts a completion there, as the one that has `at` before it. Any context.
    ///
    /// # Safety
    ///
    /// `buf` has room for that many structures of the format and one more, and so has `addrs`, if it
    /// is not null.
    pub(super) unsafe fn put(&self, at: usize, done: &Completion) {
        let (op_context, flags, len) = (done.context.as_ptr(), done.flags, done.len);
        let (buf, data) = (done.buf.as_ptr(), done.data);
        // SAFETY: There is room in both by the requirements of this function.
        unsafe {
            match self.format {
                Format::Context => self.write(at, kfi_cq_entry { op_context }),
                Format::Msg => {
                    let entry = kfi_cq_msg_entry {
                        op_context,
                        flags,
                        len,
                    };
                    self.write(at, entry);
                }
                Format::Data => {
                    let entry = kfi_cq_data_entry {
                        op_context,
                        flags,
                        len,
                        buf,
                        data,
                    };
                    self.write(at, entry);
                }
                Format::Tagged => {
                    let entry = kfi_cq_tagged_entry {
                        op_context,
                        flags,
                        len,
                        buf,
                        data,
                        // There are no tagged messages.
                        tag: 0,
                    };
                    self.write(at, entry);
                }
            }
            if !self.addrs.is_null() {
                // Connected endpoints know no other than their peer.
                self.addrs
                    .add(at)
                    .write(widen(kfi_bindings::KFI_ADDR_NOTAVAIL));
            }
        }
    }

    /// # Safety
    ///
    /// `buf` has room for `at` structures of this type and one more.
    unsafe fn write<E>(&self, at: usize, entry: E) {
        // SAFETY: By the requirements of this function.
        unsafe { self.buf.cast::<E>().add(at).write(entry) };
    }
}
