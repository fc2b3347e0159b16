// SPDX-License-Identifier: GPL-2.0

//! Tickets, by which a provider completes each accepted transfer exactly once.

use super::{
    cntr::CntrCore,
    cq::{
        Context,
        CqEntry,
        CqErrEntry,
        CqPlace, //
    }, //
};
use crate::prelude::*;
use core::mem::ManuallyDrop;

/// The right and duty to complete one transfer. Dropping it completes the transfer as cancelled.
///
/// A provider keeps it from posting until the device is done. All functions may be called in any context.
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
    /// The place in the completion queue, if one is bound.
    place: Option<CqPlace>,
    /// The counter, if one is bound.
    counter: Option<Arc<CntrCore>>,
    /// The known fields of the completion.
    done: CqEntry,
    /// The transfer is unsignalled: the consumer gets a completion for an error only.
    silent: bool,
}

/// The result of a successful receive.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    /// The length of the message in bytes.
    pub len: usize,
    /// The peer's immediate data.
    pub data: Option<u64>,
    /// The local key that the message has invalidated.
    pub invalidated: Option<u64>,
}

/// The error of a failed transfer.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// The errno for the consumer.
    pub errno: Errno,
    /// The provider's error number.
    pub prov_errno: i32,
    /// The number of bytes that exceed the buffer.
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
    /// Creates a ticket. `done` has the known fields of the completion.
    pub(crate) fn new(
        place: Option<CqPlace>,
        counter: Option<Arc<CntrCore>>,
        done: CqEntry,
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

    /// Returns the consumer's context.
    pub fn context(&self) -> Context {
        self.inner.done.context
    }

    /// Completes the transfer successfully.
    pub fn complete(self) {
        let inner = self.into_inner();
        inner.complete();
    }

    /// Completes a receive with a message.
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

    /// Completes a receive that an RMA write with immediate data has consumed.
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

    /// Completes the transfer with an error.
    pub fn fail(self, how: Failed) {
        self.into_inner().fail(how);
    }

    /// Drops the ticket of a transfer that the provider has not accepted, without a completion.
    pub(crate) fn refuse(self) {
        drop(self.into_inner());
    }

    fn into_inner(self) -> Inner {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is neither used nor dropped after this.
        unsafe { ManuallyDrop::take(&mut this.inner) }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // SAFETY: `self` is not used after this, because it is dropped.
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
            place.fail(CqErrEntry {
                done: self.done,
                olen: how.excess,
                errno: how.errno,
                prov_errno: how.prov_errno,
            });
        }
    }
}
