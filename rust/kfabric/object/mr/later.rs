// SPDX-License-Identifier: GPL-2.0

//! Regions that are closed later, by a work item, which tells their owners.
//!
//! The regions that are there by then are closed together.

use super::{
    many::close_claimed,
    prelude::*, //
};
use crate::{
    object::pending_regs::PendingRegs,
    support::module::returned, //
};

/// How many are taken out at a time.
const SOME: usize = 32;

/// Leaves a region to be closed; `closing` is told. Any context.
///
/// # Safety
///
/// `mr` is null, an error pointer, or an open object, that nobody else uses. `closing` has `done` set, and stays until that
/// is called.
pub(crate) unsafe fn close_later(mr: *mut kfid_mr, closing: *mut c::kfi_closing) {
    // SAFETY: `mr` is null, an error pointer, or an open object, as the caller promises.
    let object = match unsafe { Claim::<MrBody>::new(mr.cast()) } {
        Ok(object) => object,
        // SAFETY: `closing` has `done` set, as the caller promises. This is its last use here.
        Err(ret) => return unsafe { tell(closing, ret) },
    };
    let later = object.parent().later.clone();
    // The work item that takes the region out of the list closes it.
    object.keep();
    // SAFETY: `closing` stays until its `done` is called, as the caller promises, and nobody else
    // uses it until then.
    unsafe { (*closing).mr = mr };
    later.put(closing.cast(), |last| {
        // SAFETY: `closing` stays until its `done` is called, as the caller promises. It isn't in
        // the list yet, so nobody else uses it.
        unsafe { (*closing).next = last.cast() };
    });
    if let Some(queue) = workqueue::CLOSINGS.get() {
        // Already queued is as good.
        let _ = queue.enqueue(later);
    }
}

/// Tells an owner.
///
/// # Safety
///
/// `closing` has `done` set, is there, and isn't used any more.
unsafe fn tell(closing: *mut c::kfi_closing, ret: c_int) {
    // SAFETY: `closing` is valid, as the caller promises. C has set `done` to a function that takes
    // these arguments.
    unsafe {
        if let Some(done) = (*closing).done {
            done(closing, ret);
            returned(done as usize);
        }
    }
}

/// Closes all that are left by now. Sleeps until no peer can reach the memory of those that were closed.
pub(crate) fn close_pending(later: &PendingRegs) {
    let mut first = in_order(later.take().cast());
    while !first.is_null() {
        let mut mrs = [null_mut(); SOME];
        let mut closings = [null_mut(); SOME];
        let mut count = 0;
        for (mr, closing) in mrs.iter_mut().zip(&mut closings) {
            if first.is_null() {
                break;
            }
            *closing = first;
            // SAFETY: In the list, so it is there and ours until it is told.
            let (own, next) = unsafe { ((*first).mr, (*first).next) };
            *mr = own;
            first = next;
            count += 1;
        }
        let some = mrs.get(..count).unwrap_or_default();
        // SAFETY: Each was claimed when it was left to be closed. It is taken out of the list once.
        unsafe {
            close_claimed(some, |index, ret| {
                if let Some(closing) = closings.get(index) {
                    // Its own, once.
                    tell(*closing, ret);
                }
            });
        }
    }
}

/// Reverses a list.
fn in_order(mut last: *mut c::kfi_closing) -> *mut c::kfi_closing {
    let mut first = null_mut();
    while !last.is_null() {
        // SAFETY: In the list, so it is there and ours until it is told.
        let before = unsafe { core::mem::replace(&mut (*last).next, first) };
        first = last;
        last = before;
    }
    first
}
