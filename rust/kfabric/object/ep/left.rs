// SPDX-License-Identifier: GPL-2.0

//! How much can be posted: `kfi_tx_size_left()`, `kfi_rx_size_left()`.

use super::target::Target;
use crate::{
    post::op::Op,
    support::num::signed_size, //
};
use kfi_bindings::kfid_ep;

/// How much there is room for in a queue, and in the completion queue that goes with it: as many transfers
/// like this one.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core, or a receive context.
unsafe fn left(ep: *mut kfid_ep, op: &Op) -> isize {
    // SAFETY: By the requirements of this function; both begin with their fid.
    let target = unsafe { Target::find(ep.cast()) };
    target.and_then(|target| target.left(op)).map_or_else(
        |refusal| signed_size(refusal.report()),
        |left| isize::try_from(left).unwrap_or(isize::MAX),
    )
}

/// `kfi_rx_size_left()`. Any context.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core, or a receive context.
pub(super) unsafe extern "C" fn rx(ep: *mut kfid_ep) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe { left(ep, &Op::Receive) }
}

/// `kfi_tx_size_left()`. Any context.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core, or a receive context.
pub(super) unsafe extern "C" fn tx(ep: *mut kfid_ep) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe { left(ep, &Op::Read) }
}
