// SPDX-License-Identifier: GPL-2.0

//! Enabling regions: in the call, or behind it where an event queue reports it.
//!
//! All are created disabled. Whoever enables one takes the provider's part out, enables that
//! without any lock, and puts it back: under the region's lock, or before there is a second who
//! could know of the region.

use super::{
    local::Found,
    public::Public,
    Inner,
    MrBody,
    MrObject, //
};
use crate::{
    object::eq::Unread,
    provider::{
        Bindings,
        Keys,
        Mr, //
    },
    support::{
        errno::Errno,
        noio::NoIo,
        refusal::Refusal,
        work, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    workqueue::{
        impl_has_work,
        WorkItem, //
    }, //
};
use kfi_bindings::{
    kfid,
    KFI_MR_COMPLETE, //
};

impl_has_work! {
    impl HasWork<MrObject> for MrBody { self.work }
}

impl WorkItem for MrObject {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // Storage may wait for the event on the way of writing memory back.
        let _noio = NoIo::enter();
        // The event tells.
        finish(this);
    }
}

/// Leaves a pending region to the core's workqueue. May sleep.
pub(super) fn queue(object: Arc<MrObject>) {
    match work::registrations() {
        // It is queued once in its life, so it can't be queued already.
        Some(queue) => drop(queue.enqueue(object)),
        None => {
            finish(object);
        }
    }
}

/// `kfi_mr_enable()`. Returns 0, or the number of an error that has been reported. Sleeps until the
/// region is enabled, unless an event queue tells it.
///
/// # Safety
///
/// `fid` is null or an open object.
pub(super) unsafe fn enable(fid: *mut kfid) -> Result<c_int, Refusal> {
    // SAFETY: `fid` is null or open by the requirements of this function.
    unsafe { MrObject::from_fid(fid) }?;
    // SAFETY: `fid` is a region, as was just found out, and the pointer of C's reference.
    let object: Arc<_> = unsafe { ArcBorrow::from_raw(fid.cast::<MrObject>()) }.into();
    object.inner.lock().state.begin()?;
    match object.eq {
        Some(_) => {
            queue(object);
            Ok(0)
        }
        None => Ok(finish(object)),
    }
}

/// Enables a pending region, tells the event queue, and lets those go on who wait. Returns 0, or the
/// number of an error that has been reported. Sleeps.
///
/// One of those may be closing the region, and give up C's reference before this has returned:
/// so it has one of its own.
fn finish(object: Arc<MrObject>) -> c_int {
    let pending = object.inner.lock().take_pending();
    let ended = pending.enable();

    let mut inner = object.inner.lock();
    let done = object.settle(&mut inner, ended);
    // Under the same lock: whoever closes the region finds the event, and takes it out again.
    inner.event = object.report(&done);
    match &done {
        Ok(()) => 0,
        // Reported while the region can't be closed, and the provider not be unloaded, whose words
        // they are.
        Err(refusal) if object.eq.is_none() => refusal.report(),
        Err(refusal) => refusal.errno().to_c(),
    }
}

// Not a borrow of C's.
const _: fn(Arc<MrObject>) -> c_int = finish;

/// A region that is being enabled, in the hands of who does it.
pub(super) struct Pending {
    mr: Option<KBox<dyn Mr>>,
    bindings: Bindings,
}

/// How that has ended.
pub(super) struct Ended {
    mr: Option<KBox<dyn Mr>>,
    enabled: Result<Keys, Refusal>,
}

impl Pending {
    /// What is to be enabled, and what it is bound to.
    pub(super) fn parts(&mut self) -> Option<(&mut dyn Mr, &Bindings)> {
        Some((&mut **self.mr.as_mut()?, &self.bindings))
    }

    /// It was enabled together with others, and that has ended so.
    pub(super) fn ended(self, done: Option<Result<Keys, Refusal>>) -> Ended {
        let not_there = Refusal::new(Errno::EIO, c"the region is not there");
        Ended {
            mr: self.mr,
            enabled: done.unwrap_or(Err(not_there)),
        }
    }

    /// The device's part. Sleeps.
    pub(super) fn enable(mut self) -> Ended {
        let enabled = match &mut self.mr {
            Some(mr) => mr.enable(&self.bindings),
            None => Err(Refusal::new(Errno::EIO, c"the region is not there")),
        };
        Ended {
            mr: self.mr,
            enabled,
        }
    }
}

impl Inner {
    /// Takes out what is needed to enable a region that is pending.
    pub(super) fn take_pending(&mut self) -> Pending {
        Pending {
            mr: self.mr.take(),
            bindings: self.state.bindings(),
        }
    }

    /// Puts that back: the region is enabled, or failed.
    fn end(&mut self, ended: Ended) -> Result<(), Refusal> {
        self.mr = ended.mr;
        let done = ended.enabled.map(|keys| self.keys = Some(keys));
        self.state.end(done.is_ok());
        done
    }

    /// Returns what peers need.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the region is not enabled.
    pub(super) fn enabled_keys(&self) -> Result<&Keys, Refusal> {
        self.state.check_enabled()?;
        self.keys.as_ref().ok_or(Errno::EOPBADSTATE.into())
    }
}

impl MrObject {
    /// Ends enabling it, shows what came of it, and lets those go on who wait for that: once the
    /// lock is given up. Any context.
    pub(super) fn settle(&self, inner: &mut Inner, ended: Ended) -> Result<(), Refusal> {
        let done = inner.end(ended);
        self.publish(Public::new(self.parent(), inner.keys.as_ref()));
        self.reveal(inner.keys.as_ref().map(Found::new));
        if inner.awaited {
            self.settled.notify_all();
        }
        done
    }

    /// Puts the event in the queue, if there is one. Any context.
    fn report(&self, done: &Result<(), Refusal>) -> Option<Unread> {
        let eq = self.eq()?;
        let fid = self.as_ptr().cast::<kfid>();
        // SAFETY: `fid` is this open object's, and its context is C's to write, but not now.
        let context = unsafe { (&raw const (*fid).context).read() };
        match done {
            Ok(()) => eq.complete(KFI_MR_COMPLETE, fid, context, 0),
            Err(refusal) => eq.fail(fid, context, *refusal),
        }
    }
}
