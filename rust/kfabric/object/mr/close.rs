// SPDX-License-Identifier: GPL-2.0

//! The end of a region.

use super::{
    kit::Kit,
    reserve,
    MrObject, //
};
use crate::{
    object::{
        eq::Unread,
        obj::Leave, //
    },
    support::{
        errno::Errno,
        noio::NoIo,
        refusal::Refusal, //
    }, //
};
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::kfid;

/// `kfi_close` of a region. Sleeps until a registration that is under way has ended; when it
/// returns 0, no peer can reach the memory.
///
/// # Safety
///
/// `fid` is a region of this core that is used by nobody else any more.
pub(super) unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: `fid` is the first field of an object to which C has a reference.
    let object = unsafe { &*fid.cast::<MrObject>() };
    let event = match settle(object) {
        Ok(event) => event,
        Err(refusal) => return refusal.report(),
    };
    if let (Some(eq), Some(event)) = (object.eq(), event) {
        // No event names a region that is gone.
        eq.forget(event);
    }
    object.hide();
    let mut inner = object.inner.lock();
    // Under the lock: whoever ends all regions of the domain waits for this one, too.
    let closed = match inner.mr.as_mut().map_or(Ok(()), |mr| mr.close()) {
        Ok(()) => 0,
        // Whatever the provider says: the object is gone, which `EBUSY` would deny. Reported while
        // the provider can't be unloaded, whose words they are.
        Err(refusal) => refusal.with_errno(Errno::EIO).report(),
    };
    let (mr, lease) = (inner.mr.take(), inner.lease.take());
    drop(inner);
    // The memory is the consumer's again, whatever the provider still has of it.
    drop(lease);
    // SAFETY: Once, since C closes the region once.
    let left = unsafe { object.place().leave() };
    // SAFETY: C's reference, given out by `Opened::start`, which C doesn't use any more.
    let object = unsafe { Arc::from_raw(fid.cast::<MrObject>()) };
    // It may be dropped later, by the work that has enabled it, which doesn't use the domain any
    // more; but the domain may be closed from the end of this on.
    if object.reserved {
        reserve::put_back(left.parent(), Kit::of_closed(object, mr));
    } else {
        drop((mr, object));
    }
    drop(left);
    closed
}

/// Takes the region from a device that goes away. Sleeps until no peer can reach the memory; if a
/// registration is under way, until that has ended.
pub(super) fn end(object: &MrObject) {
    let mut inner = object.inner.lock();
    while inner.state.is_pending() {
        object.settled.wait(&mut inner);
    }
    if let Some(mr) = inner.mr.as_mut() {
        mr.end();
    }
}

/// Waits until the region is not pending, and takes its event, which may not have been read. After an
/// error it is as open as before.
fn settle(object: &MrObject) -> Result<Option<Unread>, Refusal> {
    let mut inner = object.inner.lock();
    while inner.state.is_pending() {
        if object.eq().is_some_and(|eq| eq.in_handler()) {
            return Err(Refusal::new(
                Errno::EOPBADSTATE,
                c"closed in an event handler while its registration is under way",
            ));
        }
        object.settled.wait(&mut inner);
    }
    if inner
        .state
        .counter()
        .is_some_and(|counter| counter.is_open())
    {
        return Err(Refusal::new(
            Errno::EBUSY,
            c"a counter is bound to the region",
        ));
    }
    // What keeps counter and endpoint goes with the object, but their memory is the core's.
    Ok(inner.event.take())
}
