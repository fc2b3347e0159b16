// SPDX-License-Identifier: GPL-2.0

//! Reading event queues, and writing to them.

use super::{
    call::{
        self,
        op, //
    },
    Event, //
};
use crate::support::errno::Errno;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::ffi::{
    c_int,
    c_void, //
};
use kfi_bindings::{
    kfi_eq_err_entry,
    kfi_ops_eq,
    kfid_eq, //
};

/// What was read from an event queue.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// An event.
    Event(Event),
    /// An operation failed.
    Failed(Failure),
    /// Events or failures were lost here, since the queue was full.
    Lost,
}

/// An operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The object that it is about, by the address of its `struct kfid`.
    pub object: usize,
    /// The context given with the operation.
    pub context: usize,
    /// Why.
    pub errno: Errno,
}

/// An open event queue, to read from and write to. Any context, but for waiting.
///
/// # Invariants
///
/// The queue is open for as long as `'a` lasts.
#[derive(Clone, Copy)]
pub struct Events<'a>(
    pub(super) NonNull<kfid_eq>,
    pub(super) PhantomData<&'a kfid_eq>,
);

// SAFETY: The calls on a queue may be made by any thread.
unsafe impl Send for Events<'_> {}
// SAFETY: The calls on a queue may be made by several threads at once.
unsafe impl Sync for Events<'_> {}

impl Events<'_> {
    /// Calls one of the queue's operations on room for an event.
    fn get(
        &self,
        call: impl Fn(*mut kfid_eq, *mut u32, *mut c_void, usize) -> Result<isize, Errno>,
    ) -> Result<Option<Next>, Errno> {
        loop {
            let mut number = 0;
            let mut bytes = Event::room();
            let read = call(
                self.0.as_ptr(),
                &mut number,
                bytes.as_mut_ptr().cast(),
                bytes.len(),
            )?;
            match Read::from_c(read)? {
                Read::Entry(len) => {
                    let bytes = bytes.get(..len).ok_or(Errno::EIO)?;
                    return Ok(Some(Next::Event(Event::from_c(number, bytes)?)));
                }
                Read::Empty => return Ok(None),
                Read::Lost => return Ok(Some(Next::Lost)),
                Read::Failure => match self.failure()? {
                    // Someone else has read it meanwhile.
                    None => continue,
                    failed => return Ok(failed),
                },
            }
        }
    }

    /// `kfi_eq_readerr()`.
    fn failure(&self) -> Result<Option<Next>, Errno> {
        let mut entry: kfi_eq_err_entry = pin_init::zeroed();
        let eq = self.0.as_ptr();
        // SAFETY: `eq` is open by the invariant of this type, and `entry` is a local.
        let read = unsafe { op!((*eq).ops, kfi_ops_eq, readerr(eq, &mut entry, 0)) }?;
        match Read::from_c(read)? {
            Read::Entry(_) => Ok(Some(Next::Failed(Failure {
                object: entry.fid.addr(),
                context: entry.context.addr(),
                errno: Errno::from_c(entry.err.wrapping_neg()),
            }))),
            Read::Empty => Ok(None),
            Read::Lost => Ok(Some(Next::Lost)),
            // No failure comes before a failure.
            Read::Failure => Err(Errno::EIO),
        }
    }

    /// `kfi_eq_read()` and `kfi_eq_readerr()`: reads what is next, a failure before any event. Any
    /// context.
    ///
    /// Returns `None` if there is nothing.
    pub fn read(&self) -> Result<Option<Next>, Errno> {
        self.get(|eq, number, buf, len| {
            // SAFETY: `eq` is open by the invariant of this type, and the others are locals.
            unsafe { op!((*eq).ops, kfi_ops_eq, read(eq, number, buf, len, 0)) }
        })
    }

    /// `kfi_eq_sread()`: as [`read`](Self::read), but waits for so many milliseconds, or for ever.
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINTR`: a signal came.
    /// - `ENOSYS`: the queue was opened for no waiting.
    pub fn wait(&self, msecs: Option<u32>) -> Result<Option<Next>, Errno> {
        let timeout = msecs.map_or(-1, |msecs| c_int::try_from(msecs).unwrap_or(c_int::MAX));
        self.get(|eq, number, buf, len| {
            // SAFETY: `eq` is open by the invariant of this type, and the others are locals.
            unsafe {
                op!(
                    (*eq).ops,
                    kfi_ops_eq,
                    sread(eq, number, buf, len, timeout, 0)
                )
            }
        })
    }

    /// `kfi_eq_write()`: puts in an event of one's own. Any context.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: the queue is full.
    /// - `ENOSYS`: it was opened for no writing.
    /// - `EINVAL`: there is no such event, or none without a structure.
    pub fn write(&self, event: &Event) -> Result<(), Errno> {
        let eq = self.0.as_ptr();
        event.with_c(|number, bytes| {
            let (buf, len) = (bytes.as_ptr().cast(), bytes.len());
            // SAFETY: `eq` is open by the invariant of this type, and `buf` is valid for the call.
            let written = unsafe { op!((*eq).ops, kfi_ops_eq, write(eq, number, buf, len, 0)) }?;
            call::count(written).map(|_| ())
        })
    }
}

/// What a call that reads has found.
enum Read {
    /// Nothing.
    Empty,
    /// An entry of so many bytes.
    Entry(usize),
    /// There is a failure to read about first.
    Failure,
    /// Entries were lost here.
    Lost,
}

impl Read {
    /// Takes what C returned; errors are those that say nothing of the kind.
    fn from_c(ret: isize) -> Result<Self, Errno> {
        match call::count(ret) {
            Ok(len) => Ok(Self::Entry(len)),
            Err(Errno::EAGAIN) => Ok(Self::Empty),
            Err(Errno::EAVAIL) => Ok(Self::Failure),
            Err(Errno::EOVERRUN) => Ok(Self::Lost),
            Err(errno) => Err(errno),
        }
    }
}
