// SPDX-License-Identifier: GPL-2.0

//! The end of a region.

use super::{
    kit::Kit,
    reserve,
    MrObject, //
};
use crate::{
    object::eq::Unread,
    provider::Mr,
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
    let (mut mr, event) = match settle(object) {
        Ok(settled) => settled,
        Err(refusal) => return refusal.report(),
    };
    if let (Some(eq), Some(event)) = (object.eq(), event) {
        // No event names a region that is gone.
        eq.forget(event);
    }
    let closed = match mr.as_mut().map_or(Ok(()), |mr| mr.close()) {
        Ok(()) => 0,
        // Whatever the provider says: the object is gone, which `EBUSY` would deny. Reported while
        // the provider can't be unloaded, whose words they are.
        Err(refusal) => refusal.with_errno(Errno::EIO).report(),
    };
    let lease = object.inner.lock().lease.take();
    // The memory is the consumer's again, whatever the provider still has of it.
    drop(lease);
    // SAFETY: C's reference, given out by `Opened::start`, which C doesn't use any more.
    let object = unsafe { Arc::from_raw(fid.cast::<MrObject>()) };
    // It may be dropped later, by the work that has enabled it; but the domain is left now, last.
    // SAFETY: The work doesn't use the domain any more, and nobody else uses the region.
    let place = unsafe { object.place().take() };
    if object.reserved {
        reserve::put_back(place.parent(), Kit::of_closed(object, mr));
    } else {
        drop((mr, object));
    }
    closed
}

/// What a region leaves to be closed: the provider's part, and an event that may not have been read.
type Settled = (Option<KBox<dyn Mr>>, Option<Unread>);

/// Waits until the region is not pending, and takes what is to be closed. After an error it is as
/// open as before.
fn settle(object: &MrObject) -> Result<Settled, Refusal> {
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
    Ok((inner.mr.take(), inner.event.take()))
}
