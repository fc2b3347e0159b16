// SPDX-License-Identifier: GPL-2.0

//! Event queues of fabrics whose provider is written in Rust.
//!
//! The core has them to itself: a provider's part is to end what the core then puts an event in
//! for. All but opening and closing is for any context, unless it says otherwise.

mod event;
pub(crate) mod open;
mod ops;
mod out;
mod queue;
mod read;
mod ring;
mod writer;

pub(crate) use self::{
    queue::Unread,
    writer::Writer, //
};

use self::{
    event::{
        Event,
        Failure, //
    },
    queue::Queue, //
};
use super::{
    binding::Bindable,
    children::Children,
    closing::{
        slots,
        Close, //
    },
    fabric::FabricBody,
    fid::Class,
    obj::{
        Obj,
        Object, //
    },
    pep::requests,
    place::{
        Child,
        Place, //
    }, //
};
use crate::support::{
    errno::Errno,
    refusal::Refusal, //
};
use kernel::{
    ffi::c_void,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_ops,
    kfid,
    kfid_eq, //
};

/// The class of event queues.
static EQ: Class = Class::new(
    kfi_bindings::KFI_CLASS_EQ,
    c"not an event queue",
    c"an event queue is open in it",
);

/// An event queue as C has it.
pub(crate) type EqObject = Obj<EqBody>;

/// What the core keeps with an event queue.
pub(crate) struct EqBody {
    queue: Arc<Queue>,
    /// Those who wait.
    waiters: Children,
    waits: bool,
    writable: bool,
}

impl Object for EqBody {
    type C = kfid_eq;
    type Place = Place<Self>;
    const CLASS: &'static Class = &EQ;
    const OPS: kfi_ops = slots::<Self>();
}

impl Child for EqBody {
    type Parent = FabricBody;
}

impl Bindable for EqBody {
    type Bound = BoundEq;

    fn bound(object: &EqObject) -> Result<BoundEq, Refusal> {
        Ok(BoundEq(object.queue.clone()))
    }
}

impl Close for EqBody {
    /// Unbinds the queue from all that reports to it, and rejects the connection requests that nobody
    /// has read.
    ///
    /// `EOPBADSTATE` in the handler, whose end this waits for otherwise; `EBUSY` while somebody waits
    /// for an event.
    fn close(&self) -> Result<(), Refusal> {
        if self.queue.in_handler() {
            let refusal = Refusal::new(Errno::EOPBADSTATE, c"closed by its own handler");
            return Err(refusal);
        }
        self.waiters.close().map_err(|errno| {
            let why = c"somebody waits for the event queue";
            Refusal::new(errno, why)
        })?;
        let mut unread = self.queue.close();
        while !unread.is_empty() {
            // A request that is dropped is rejected.
            drop(unread.advance().and_then(|mut event| {
                let handle = event.request()?;
                requests::forget(handle)
            }));
        }
        Ok(())
    }
}

/// An event queue that something reports to. The consumer may close the queue first: then nothing is
/// reported.
pub(crate) struct BoundEq(Arc<Queue>);

impl BoundEq {
    /// Returns whether the consumer has the queue open. Any context.
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Puts in an event about `fid`. If the queue is full it is lost, and the reader will know.
    pub(crate) fn complete(
        &self,
        event: u32,
        fid: *mut kfid,
        context: *mut c_void,
        data: u64,
    ) -> Option<Unread> {
        Queue::push(&self.0, Event::new(event, fid, context, data))
    }

    /// Puts in that an operation on `fid` failed, and fires the tracepoint. If the queue is full it
    /// is lost, and the reader will know.
    ///
    /// The entry has the errno as both `err` and `prov_errno`, positive.
    pub(crate) fn fail(
        &self,
        fid: *mut kfid,
        context: *mut c_void,
        refusal: Refusal,
    ) -> Option<Unread> {
        let errno = -refusal.report();
        Queue::push_failure(
            &self.0,
            Failure {
                fid,
                context,
                errno,
                prov_errno: errno,
                data: None,
            },
        )
    }

    /// A writer of events about one object. It may outlive the object.
    pub(crate) fn writer(&self, fid: *mut kfid, context: *mut c_void) -> Writer {
        Writer::new(self.0.clone(), fid, context)
    }

    /// Takes out all that is about an object, and hasn't been read. Any context.
    pub(crate) fn forget_all(&self, fid: *mut kfid) {
        self.0.forget_all(fid);
    }

    /// Takes out what [`complete`](Self::complete) or [`fail`](Self::fail) put in, unless somebody
    /// has read it.
    pub(crate) fn forget(&self, unread: Unread) {
        self.0.forget(unread);
    }

    /// Does the calling task run this queue's handler? Process context.
    pub(crate) fn in_handler(&self) -> bool {
        self.0.in_handler()
    }
}
