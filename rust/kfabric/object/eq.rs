// SPDX-License-Identifier: GPL-2.0

//! Event queues of fabrics whose provider is written in Rust.
//!
//! The core has them to itself: a provider's part is to end what the core then puts an event in
//! for. All but opening and closing is for any context, unless it says otherwise.

pub(crate) mod bound;
mod event;
pub(crate) mod open;
mod ops;
mod out;
mod queue;
mod read;
mod ring;

pub(crate) use queue::Unread;

use self::{
    event::{
        Event,
        Failure, //
    },
    queue::Queue, //
};
use super::{
    children::Children,
    fabric::FabricObject,
    fid::{
        self,
        Class, //
    }, //
};
use crate::support::{
    errno::Errno,
    noio::NoIo,
    refusal::Refusal, //
};
use core::ptr::NonNull;
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc,
    types::Opaque, //
};
use kfi_bindings::{
    kfid,
    kfid_eq, //
};

/// The class of event queues.
static EQ: Class = Class::new(kfi_bindings::KFI_CLASS_EQ);

/// An event queue as C has it.
///
/// # Invariants
///
/// `c.fid` is what C points to. `fabric` stays open, since it counts this queue as a child. `users`
/// counts those who may put something in, and those who wait.
#[repr(C)]
pub(crate) struct EqObject {
    // C may write to it: the context is the consumer's.
    c: Opaque<kfid_eq>,
    queue: Arc<Queue>,
    users: Children,
    fabric: NonNull<FabricObject>,
    waits: bool,
    writable: bool,
}

impl EqObject {
    /// The fabric that it belongs to.
    pub(crate) fn fabric(&self) -> &FabricObject {
        // SAFETY: By the invariant.
        unsafe { self.fabric.as_ref() }
    }

    /// Counts one who may put something in: the queue can't be closed (`EBUSY`) before
    /// [`unbind`](Self::unbind). `EINVAL` on a queue that is being closed.
    pub(crate) fn bind(&self) -> Result<(), Errno> {
        self.users.add()
    }

    /// Undoes one [`bind`](Self::bind).
    pub(crate) fn unbind(&self) {
        self.users.remove();
    }

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
            },
        )
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

/// Closes an event queue, after its handler has ended. Sleeps.
///
/// `EOPBADSTATE` in the handler; `EBUSY` while something is bound to the queue, or somebody waits
/// for an event.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    let _noio = NoIo::enter();
    let object = fid.cast::<EqObject>();
    {
        // SAFETY: C calls this on an open queue, whose fid is the object's first field.
        let object = unsafe { &*object };
        if object.in_handler() {
            let refusal = Refusal::new(Errno::EOPBADSTATE, c"closed by its own handler");
            return refusal.report();
        }
        if let Err(errno) = object.users.close() {
            return Refusal::new(
                errno,
                c"something is bound to the event queue, or somebody waits for it",
            )
            .report();
        }
        object.queue.end();
    }
    // SAFETY: As above; nobody is left who uses it, now that the handler has ended.
    let object = unsafe { KBox::from_raw(object) };
    let fabric = object.fabric;
    drop(object);
    // SAFETY: By the invariant of the object, which counted as a child of the fabric until here.
    unsafe { fabric.as_ref() }.children().remove();
    0
}

/// The event queue behind a fid.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub(crate) unsafe fn object<'a>(fid: *mut kfid) -> Result<&'a EqObject, Refusal> {
    // SAFETY: By the requirements of this function.
    match unsafe { fid::is_of(fid, &EQ) } {
        // SAFETY: The table tells that this is the first field of one of our objects.
        true => Ok(unsafe { &*fid.cast::<EqObject>() }),
        false => Err(Refusal::new(Errno::EINVAL, c"not an event queue")),
    }
}
