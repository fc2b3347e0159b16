// SPDX-License-Identifier: GPL-2.0

//! What a transfer that was accepted owes its consumer: to end exactly once.

use super::{
    cntr::Counter,
    cq::{
        Completion,
        Context,
        Failure,
        Place, //
    }, //
};
use crate::support::{
    errno::Errno,
    num::widen_u32, //
};
use core::mem::ManuallyDrop;
use kernel::sync::Arc;

/// The right to end one transfer, and the duty: dropped, it ends as cancelled.
///
/// A provider keeps it from posting until the device is done. All of it is for any context.
///
/// # Examples
///
/// ```ignore
/// // When the device is done with a receive:
/// match status {
///     Status::Done { len, data } => ticket.received(Received {
///         len,
///         data,
///         ..Received::default()
///     }),
///     Status::TooLong { by } => ticket.fail(Failed {
///         excess: by,
///         ..Errno::ETRUNC.into()
///     }),
///     // Cancelled.
///     Status::Flushed => drop(ticket),
/// }
/// ```
pub struct Ticket {
    inner: ManuallyDrop<Inner>,
}

struct Inner {
    /// Where the end is reported; `None` if nothing is bound that it could be reported to.
    place: Option<Place>,
    /// What counts the end.
    counter: Option<Arc<Counter>>,
    /// What is reported, as far as it is known.
    done: Completion,
    /// The consumer wants to know of an error only.
    silent: bool,
}

/// How a transfer ended well.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    /// How many bytes came, for a message.
    pub len: usize,
    /// What the peer's request has sent for the completion queue.
    pub data: Option<u64>,
    /// The key of this side that the peer had invalidated by it.
    pub invalidated: Option<u64>,
}

/// How a transfer failed.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// What the consumer gets as `err`.
    pub errno: Errno,
    /// The provider's own number for it.
    pub prov_errno: i32,
    /// How many bytes did not fit.
    pub excess: usize,
}

impl From<Errno> for Failed {
    fn from(errno: Errno) -> Self {
        Self {
            errno,
            prov_errno: -errno.to_c(),
            excess: 0,
        }
    }
}

impl Ticket {
    /// A ticket for a transfer of this context, of which `done` is what is known beforehand.
    pub(crate) fn new(
        place: Option<Place>,
        counter: Option<Arc<Counter>>,
        done: Completion,
        silent: bool,
    ) -> Self {
        let inner = Inner {
            place,
            counter,
            done,
            silent,
        };
        Self {
            inner: ManuallyDrop::new(inner),
        }
    }

    /// The context that the consumer gave.
    pub fn context(&self) -> Context {
        self.inner.done.context
    }

    /// It has ended well, and nothing came with it.
    pub fn complete(self) {
        let inner = self.into_inner();
        inner.complete();
    }

    /// A message has come.
    pub fn received(self, what: Received) {
        let mut inner = self.into_inner();
        inner.done.len = what.len;
        if let Some(data) = what.data {
            inner.done.data = data;
            inner.done.flags |= widen_u32(kfi_bindings::KFI_REMOTE_CQ_DATA);
        }
        if let Some(key) = what.invalidated {
            inner.done.data = key;
            inner.done.flags |= kfi_bindings::KFI_INVALIDATE;
        }
        inner.complete();
    }

    /// A peer has written so many bytes to memory here, and these data came with that.
    pub fn written(self, len: usize, data: u64) {
        let mut inner = self.into_inner();
        (inner.done.len, inner.done.data) = (len, data);
        inner.done.flags = widen_u32(
            kfi_bindings::KFI_RMA
                | kfi_bindings::KFI_REMOTE_WRITE
                | kfi_bindings::KFI_REMOTE_CQ_DATA,
        );
        inner.complete();
    }

    /// It has failed, after so many bytes had come.
    pub fn fail(self, how: Failed) {
        self.into_inner().fail(how);
    }

    /// It was not accepted: nothing is reported of it.
    pub(crate) fn refuse(self) {
        drop(self.into_inner());
    }

    fn into_inner(self) -> Inner {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: Once, since `this` is neither used nor dropped any more.
        unsafe { ManuallyDrop::take(&mut this.inner) }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // SAFETY: Once, since it is being dropped.
        let inner = unsafe { ManuallyDrop::take(&mut self.inner) };
        inner.fail(Errno::ECANCELED.into());
    }
}

impl Inner {
    fn complete(self) {
        if let Some(counter) = &self.counter {
            counter.add(1);
        }
        match self.place {
            Some(place) if !self.silent => place.complete(self.done),
            place => drop(place),
        }
    }

    fn fail(self, how: Failed) {
        if let Some(counter) = &self.counter {
            counter.add_err(1);
        }
        if let Some(place) = self.place {
            place.fail(Failure {
                done: self.done,
                olen: how.excess,
                errno: how.errno,
                prov_errno: how.prov_errno,
            });
        }
    }
}
