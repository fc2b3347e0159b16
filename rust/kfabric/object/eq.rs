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
    bound::{
        Bound,
        CountsBound, //
    },
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

/// An event queue that something reports to, and that can't be closed before it is let go.
pub(crate) type BoundEq = Bound<EqBody>;

/// What the core keeps with an event queue.
pub(crate) struct EqBody {
    queue: Arc<Queue>,
    /// Those who may put something in, and those who wait.
    users: Children,
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

impl CountsBound for EqBody {
    fn users(&self) -> &Children {
        &self.users
    }
}

impl Bindable for EqBody {
    type Bound = BoundEq;

    fn bound(object: &EqObject) -> Result<BoundEq, Refusal> {
        Ok(Bound::new(object)?)
    }
}

impl Close for EqBody {
    /// `EOPBADSTATE` in the handler, whose end this waits for otherwise; `EBUSY` while something is
    /// bound to the queue, or somebody waits for an event.
    fn close(&self) -> Result<(), Refusal> {
        if self.in_handler() {
            let refusal = Refusal::new(Errno::EOPBADSTATE, c"closed by its own handler");
            return Err(refusal);
        }
        self.users.close().map_err(|errno| {
            let why = c"something is bound to the event queue, or somebody waits for it";
            Refusal::new(errno, why)
        })?;
        self.queue.end();
        Ok(())
    }
}

impl EqBody {
    /// Puts in an event about `fid`. If the queue is full it is lost, and the reader will know.
    pub(crate) fn complete(
        &self,
        event: u32,
        fid: *mut kfid,
        context: *mut c_void,
        data: u64,
    ) -> Option<Unread> {
        Queue::push(&self.queue, Event::new(event, fid, context, data))
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
            &self.queue,
            Failure {
                fid,
                context,
                errno,
                prov_errno: errno,
                data: None,
            },
        )
    }

    /// What puts events about one object in, and may outlive the queue: then they go nowhere.
    pub(crate) fn writer(&self, fid: *mut kfid, context: *mut c_void) -> Writer {
        Writer::new(self.queue.clone(), fid, context)
    }

    /// Takes out all that is about an object, and hasn't been read. Any context.
    pub(crate) fn forget_all(&self, fid: *mut kfid) {
        self.queue.forget_all(fid);
    }

    /// Takes out what [`complete`](Self::complete) or [`fail`](Self::fail) put in, unless somebody
    /// has read it.
    pub(crate) fn forget(&self, unread: Unread) {
        self.queue.forget(unread);
    }

    /// Does the calling task run this queue's handler? Process context.
    pub(crate) fn in_handler(&self) -> bool {
        self.queue.in_handler()
    }
}
