// SPDX-License-Identifier: GPL-2.0

//! Closing a region where nobody may sleep, if there is nothing to be waited for.

use super::{
    parts::MrParts,
    reference::MrRef,
    reserve,
    MrBody, //
};
use crate::{
    object::closing::Claim,
    support::refusal::Refusal, //
};
use kfi_bindings::kfid_mr;

/// Closes a region if there is nothing to be waited for, and returns whether it has: then no peer can reach the
/// memory. If not, it is still open, for who may sleep to close it. Any context.
///
/// # Errors
///
/// - `EINVAL`: it isn't a region of this core, or somebody else is closing it.
///
/// # Safety
///
/// `mr` is null, an error pointer, or an open object, that nobody else uses.
pub(crate) unsafe fn close(mr: *mut kfid_mr) -> Result<bool, Refusal> {
    // SAFETY: `mr` is null, an error pointer, or an open object, as the caller promises.
    let object = unsafe { Claim::<MrBody>::new(mr.cast()) }?;
    let Some(mut held) = object.hold_now() else {
        return Ok(false);
    };
    // Before the device lets go of it: afterwards there is no way back.
    // SAFETY: The region has not left its place: nobody else closes it.
    let Some(place) = (unsafe { object.place().try_withdraw() }) else {
        // A task that waits for `held` is ending it.
        return Ok(false);
    };
    if !held.mr.as_mut().is_some_and(|mr| mr.close_now()) {
        return Ok(false);
    }
    let left = place.leave();
    let mr = held.mr.take();
    let reserved = held.close();
    object.hide();
    // SAFETY: C's reference, given out by `Opened::start`. It is taken back once: only this claim takes it,
    // and keeps others from claiming the region.
    let object = unsafe { MrRef::from_raw(object.keep()) };
    drop(mr);
    match reserved {
        true => reserve::put_back(left.parent(), MrParts::of_closed(object)),
        false => drop(object),
    }
    drop(left);
    Ok(true)
}
