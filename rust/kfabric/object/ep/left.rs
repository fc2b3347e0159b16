// SPDX-License-Identifier: GPL-2.0

//! How much can be posted: `kfi_tx_size_left()`, `kfi_rx_size_left()`.

use super::{
    bound::Reports,
    msg::Msg,
    phase::Phase,
    EndpointObject, //
};
use crate::{
    provider::msg_ep::Room,
    support::num::signed_size, //
};
use kfi_bindings::kfid_ep;

/// How much there is room for in a queue of an endpoint, and in the completion queue that goes with it.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core.
unsafe fn left(
    ep: *mut kfid_ep,
    own: fn(Room) -> usize,
    reports: fn(&Msg) -> Option<&Reports>,
) -> isize {
    // SAFETY: By the requirements of this function; an endpoint begins with its fid.
    let endpoint = unsafe { EndpointObject::from_fid(ep.cast()) };
    let left = endpoint.and_then(|endpoint| {
        let msg = endpoint.transferring()?;
        if msg.phase().get() == Phase::New {
            return Err(Phase::New.refusal());
        }
        let own = own(msg.imp().room());
        Ok(reports(msg).map_or(own, |to| own.min(to.cq.get().queue().left())))
    });
    left.map_or_else(
        |refusal| signed_size(refusal.report()),
        |left| isize::try_from(left).unwrap_or(isize::MAX),
    )
}

/// `kfi_rx_size_left()`. Any context.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core.
pub(super) unsafe extern "C" fn rx(ep: *mut kfid_ep) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe { left(ep, |room| room.receives, |msg| msg.bound().receive.as_ref()) }
}

/// `kfi_tx_size_left()`. Any context.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core.
pub(super) unsafe extern "C" fn tx(ep: *mut kfid_ep) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe { left(ep, |room| room.sends, |msg| msg.bound().transmit.as_ref()) }
}
