// SPDX-License-Identifier: GPL-2.0

//! Enabling regions: in the call, or behind it where an event queue reports it.

use super::{
    object,
    public_key,
    state::State,
    Inner,
    MrObject, //
};
use crate::{
    object::eq::Unread,
    provider::{
        cntr::Counter,
        ep::Endpoint,
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
use core::ptr;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Release, //
        },
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
    impl HasWork<Self> for MrObject { self.work }
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
    // SAFETY: By the requirements of this function.
    unsafe { object(fid) }?;
    // SAFETY: It is a region, as was just found out, and this is the pointer of C's reference.
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
    let mut inner = object.inner.lock();
    let (bindings, mr) = (inner.state.bindings(), inner.mr.take());
    drop(inner);

    let gone = Refusal::new(Errno::EIO, c"the region is not there");
    let (mr, enabled) = match mr {
        Some(mut mr) => {
            let enabled = mr.enable(&bindings);
            (Some(mr), enabled)
        }
        None => (None, Err(gone)),
    };

    let mut inner = object.inner.lock();
    inner.mr = mr;
    let done = enabled.map(|keys| {
        object.publish(&keys);
        inner.keys = Some(keys);
    });
    inner.event = object.report(&done);
    let ret = match &done {
        Ok(()) => 0,
        // Reported while the region can't be closed, and the provider not be unloaded, whose words
        // they are.
        Err(refusal) if object.eq.is_none() => refusal.report(),
        Err(refusal) => refusal.errno().to_c(),
    };
    // Not before the event is there: whoever closes the region takes it out again.
    inner.state.end(done.is_ok());
    object.settled.notify_all();
    ret
}

// Not a borrow of C's.
const _: fn(Arc<MrObject>) -> c_int = finish;

/// Enables a region that needs no binding, or leaves it pending where that is reported later.
pub(super) fn begin(
    mr: &mut dyn Mr,
    state: &mut State<Arc<Counter>, Arc<Endpoint>>,
    later: bool,
) -> Result<Option<Keys>, Refusal> {
    if state.is_unbound() {
        return Ok(None);
    }
    state.begin()?;
    if later {
        return Ok(None);
    }
    let keys = mr.enable(&state.bindings())?;
    state.end(true);
    Ok(Some(keys))
}

impl MrObject {
    /// Writes what C reads of an enabled region.
    fn publish(&self, keys: &crate::provider::Keys) {
        let c = self.c.get();
        // SAFETY: C only reads these fields, and may do so meanwhile; who sees the key sees them
        // all, by `kfi_mr_key()`.
        unsafe {
            (&raw mut (*c).mem_desc).write_volatile(ptr::without_provenance_mut(keys.desc));
            (&raw mut (*c).iova).write_volatile(keys.base);
            Atomic::from_ptr(&raw mut (*c).key).store(public_key(self.domain(), keys), Release);
        }
    }

    /// Puts the event in the queue, if there is one.
    fn report(&self, done: &Result<(), Refusal>) -> Option<Unread> {
        let eq = self.eq()?;
        let fid = self.fid();
        // SAFETY: The object is open, and its context is C's to write, but not now.
        let context = unsafe { (&raw const (*fid).context).read() };
        match done {
            Ok(()) => eq.complete(KFI_MR_COMPLETE, fid, context, 0),
            Err(refusal) => eq.fail(fid, context, *refusal),
        }
    }
}

impl Inner {
    /// What peers need; `EOPBADSTATE` unless the region is enabled.
    pub(super) fn enabled_keys(&self) -> Result<&crate::provider::Keys, Refusal> {
        self.state.check_enabled()?;
        self.keys.as_ref().ok_or(Errno::EOPBADSTATE.into())
    }
}
