// SPDX-License-Identifier: GPL-2.0

//! Regions whose endpoint has gone down: they are out of reach for all peers, and only there to be closed.

use super::{
    public::Public,
    reference::MrRef,
    MrBody,
    MrObject, //
};
use crate::{
    object::ties::{
        Tie,
        Ties, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::ptr::NonNull;

/// The region that has a tie.
///
/// # Safety
///
/// It is that of a region that is there.
unsafe fn of(tie: NonNull<Tie>) -> NonNull<MrObject> {
    // SAFETY: By the requirements of this function; a field of what is there is not null.
    unsafe {
        let body = kernel::container_of!(tie.as_ptr(), MrBody, tie);
        NonNull::new_unchecked(kernel::container_of!(body, MrObject, body))
    }
}

/// Takes down all regions of an endpoint that has gone down. Sleeps until no peer can reach them.
pub(crate) fn take_down(ties: &Ties) {
    // SAFETY: Only regions are tied, each of which is untied before it goes.
    while let Some(object) = ties.next(|tie| unsafe { MrRef::another(of(tie)) }) {
        fall(&object, ties.endpoint().is_open());
    }
}

/// Takes a region down, and has the event queue told of it. Sleeps.
fn fall(object: &MrObject, told: bool) {
    // If it is closed meanwhile nobody is to be told.
    let Ok(mut held) = object.hold_enabled() else {
        return;
    };
    object.hide();
    if let Some(mr) = held.mr.as_mut() {
        mr.end();
    }
    held.keys = None;
    // Who sees that may rely on it.
    object.publish(Public::new(object.parent(), None));
    object.inner.with(|inner| inner.state.fall());
    if told {
        let why = c"the region's endpoint has gone down";
        // Before it can be closed, which takes the event out again.
        object.report(&Err(Refusal::new(Errno::ENOTCONN, why)));
    }
}
