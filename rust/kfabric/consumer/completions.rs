// SPDX-License-Identifier: GPL-2.0

//! Completions, as they are read from a completion queue.

use super::call::{
    self,
    op, //
};
use crate::support::errno::Errno;
use core::{
    marker::PhantomData,
    mem::offset_of,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::ffi::{
    c_int,
    c_void, //
};
use kfi_bindings::{
    kfi_cq_data_entry,
    kfi_cq_err_entry,
    kfi_ops_cq,
    kfid_cq, //
};

/// An operation that has ended: a `struct kfi_cq_data_entry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Completion {
    /// The context that was given with the operation.
    pub context: usize,
    /// Which kind of operation it was (`KFI_SEND`, …), and what else there is to know of it.
    pub flags: u64,
    /// How many bytes were received.
    pub len: usize,
    /// The address at which they are, for a buffer that receives several messages.
    pub buf: usize,
    data: u64,
}

// C writes the one where the other is.
const _: () = {
    assert!(size_of::<Completion>() == size_of::<kfi_cq_data_entry>());
    assert!(align_of::<Completion>() == align_of::<kfi_cq_data_entry>());
    assert!(offset_of!(Completion, context) == offset_of!(kfi_cq_data_entry, op_context));
    assert!(offset_of!(Completion, flags) == offset_of!(kfi_cq_data_entry, flags));
    assert!(offset_of!(Completion, len) == offset_of!(kfi_cq_data_entry, len));
    assert!(offset_of!(Completion, buf) == offset_of!(kfi_cq_data_entry, buf));
    assert!(offset_of!(Completion, data) == offset_of!(kfi_cq_data_entry, data));
};

impl Completion {
    /// Room for a completion.
    pub const ROOM: Self = Self {
        context: 0,
        flags: 0,
        len: 0,
        buf: 0,
        data: 0,
    };

    /// The peer's remote CQ data, if there are any.
    pub fn data(&self) -> Option<u64> {
        let there = self.flags & u64::from(kfi_bindings::KFI_REMOTE_CQ_DATA) != 0;
        there.then_some(self.data)
    }

    /// The key of this side that the peer had invalidated, if it had.
    pub fn invalidated(&self) -> Option<u64> {
        let there = self.flags & kfi_bindings::KFI_INVALIDATE != 0;
        there.then_some(self.data)
    }
}

/// An operation that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferFailure {
    /// What there is to say of any operation.
    pub done: Completion,
    /// How many bytes of a message there was no room for.
    pub olen: usize,
    /// Why.
    pub errno: Errno,
    /// The provider's own number for that.
    pub prov_errno: i32,
}

/// What was read from a completion queue.
#[derive(Debug, PartialEq, Eq)]
pub enum Completed<'e> {
    /// These operations have ended well; there is at least one.
    Done(&'e [Completion]),
    /// This one has failed.
    Failed(TransferFailure),
    /// There is nothing.
    Nothing,
}

/// An open completion queue, to read from. Any context.
///
/// # Invariants
///
/// The queue is open for as long as `'a` lasts, and in the format of [`Completion`].
#[derive(Clone, Copy)]
pub struct Completions<'a>(
    pub(super) NonNull<kfid_cq>,
    pub(super) PhantomData<&'a kfid_cq>,
);

// SAFETY: The calls on a queue may be made by any thread.
unsafe impl Send for Completions<'_> {}
// SAFETY: The calls on a queue may be made by several threads at once.
unsafe impl Sync for Completions<'_> {}

impl Completions<'_> {
    /// `kfi_cq_read()` and `kfi_cq_readerr()`: reads what is next, in the order in which it came:
    /// completions, as many as `room` has places for and up to the first failure; or a failure. Any
    /// context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is no room.
    pub fn read<'e>(&self, room: &'e mut [Completion]) -> Result<Completed<'e>, Errno> {
        self.get(room, |cq, buf, count| {
            // SAFETY: `cq` is open by the invariant of this type; `buf` has room for `count` entries
            // of its format, by the same invariant.
            unsafe { op!((*cq).ops, kfi_ops_cq, read(cq, buf, count)) }
        })
    }

    /// `kfi_cq_sread()`: as [`read`](Self::read), but waits until there are `at_least` so many, or a
    /// failure. Sleeps, so it is not for who was only lent this, as a handler.
    pub(super) fn wait<'e>(
        &self,
        room: &'e mut [Completion],
        at_least: usize,
        msecs: Option<u32>,
    ) -> Result<Completed<'e>, Errno> {
        let timeout = msecs.map_or(-1, |msecs| c_int::try_from(msecs).unwrap_or(c_int::MAX));
        let cond = ptr::from_ref(&at_least).cast();
        self.get(room, |cq, buf, count| {
            // SAFETY: As in `read`; `cond` points to a local.
            unsafe { op!((*cq).ops, kfi_ops_cq, sread(cq, buf, count, cond, timeout)) }
        })
    }

    /// `kfi_cq_signal()`: brings those back who wait. Any context.
    pub(super) fn signal(&self) -> Result<(), Errno> {
        let cq = self.0.as_ptr();
        // SAFETY: `cq` is open by the invariant of this type.
        call::result(unsafe { op!((*cq).ops, kfi_ops_cq, signal(cq)) }?)
    }

    /// Calls an operation that reads.
    fn get<'e>(
        &self,
        room: &'e mut [Completion],
        call: impl Fn(*mut kfid_cq, *mut c_void, usize) -> Result<isize, Errno>,
    ) -> Result<Completed<'e>, Errno> {
        loop {
            let read = call(self.0.as_ptr(), room.as_mut_ptr().cast(), room.len())?;
            match call::count(read) {
                Ok(count) => {
                    let done = room.get(..count).ok_or(Errno::EIO)?;
                    return Ok(Completed::Done(done));
                }
                Err(Errno::EAGAIN) => return Ok(Completed::Nothing),
                Err(Errno::EAVAIL) => match self.failure()? {
                    // Someone else has read it meanwhile.
                    None => continue,
                    Some(failure) => return Ok(Completed::Failed(failure)),
                },
                Err(errno) => return Err(errno),
            }
        }
    }

    /// `kfi_cq_readerr()`.
    fn failure(&self) -> Result<Option<TransferFailure>, Errno> {
        let mut entry: kfi_cq_err_entry = pin_init::zeroed();
        let cq = self.0.as_ptr();
        // SAFETY: `cq` is open by the invariant of this type, and `entry` is a local.
        let read = unsafe { op!((*cq).ops, kfi_ops_cq, readerr(cq, &mut entry, 0)) }?;
        match call::count(read) {
            Ok(_) => Ok(Some(TransferFailure {
                done: Completion {
                    context: entry.op_context.addr(),
                    flags: entry.flags,
                    len: entry.len,
                    buf: entry.buf.addr(),
                    data: entry.data,
                },
                olen: entry.olen,
                errno: Errno::from_c(entry.err.wrapping_neg()),
                prov_errno: entry.prov_errno,
            })),
            Err(Errno::EAGAIN) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}
