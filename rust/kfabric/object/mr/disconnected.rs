// SPDX-License-Identifier: GPL-2.0

//! Regions whose endpoint has gone down: they are out of reach for all peers, and only there to be closed.

use super::{
    public::Public,
    reference::MrRef,
    MrObject, //
};
use crate::{
    object::endpoint_mrs::EndpointMrs,
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};

/// Takes down all regions of an endpoint that has gone down. Sleeps until no peer can reach them.
pub(crate) fn take_down(ties: &EndpointMrs) {
    // SAFETY: `settle` ties regions only, and each is untied before it goes.
    while let Some(object) = ties.next(|region| unsafe { MrRef::another(region.cast()) }) {
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
    // A reader that sees this may rely on it.
    object.publish(Public::new(object.parent(), None));
    object.inner.with(|inner| {
        inner.state.fall();
        if told {
            let why = c"the region's endpoint has gone down";
            // Before it can be closed, which takes the event out again.
            object.report(inner, &Err(Refusal::new(Errno::ENOTCONN, why)));
        }
    });
}
