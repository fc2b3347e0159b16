// SPDX-License-Identifier: GPL-2.0

//! The unsettled regions of a domain: the tasks that wait for them, and the regions whose device's
//! part is left to the core's workqueue.
//!
//! The workqueue takes as many as there are by then, and has them wait for the device together.

use super::{
    enable::{
        self,
        Pending, //
    },
    many::MAX_TOGETHER,
    reference::MrRef,
    MrObject, //
};
use crate::{
    object::pending_regs::PendingRegs,
    support::{
        cache::ListVec,
        vec::PushReserved,
        workqueue, //
    }, //
};
use core::{
    mem,
    ptr::{
        null_mut,
        NonNull, //
    }, //
};
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

impl MrObject {
    /// Notes the region that was left before this one, and returns the former one. Any context.
    fn set_before(&self, before: *mut MrObject) -> *mut MrObject {
        self.inner.with(|inner| match &mut inner.rare {
            Some(rare) => mem::replace(rare.as_mut().project().before, before.cast()).cast(),
            None => null_mut(),
        })
    }
}

/// Leaves a pending region, that an event queue tells of, to the core's workqueue. Any context.
///
/// Its domain may be closed, before this returns, by who closes the region: so it isn't borrowed.
pub(super) fn leave(object: MrRef) {
    let Some(queue) = workqueue::registrations() else {
        enable::finish(object, false);
        return;
    };
    let unsettled = object.parent().unsettled.clone();
    let object = object.into_raw();
    unsettled.put(object.cast(), |last| {
        // SAFETY: The reference that it was made of is the list's in a moment.
        unsafe { &*object }.set_before(last.cast());
    });
    // Already queued is as good.
    let _ = queue.enqueue(unsettled);
}

/// Takes all that are left, in the order in which they came.
fn take(unsettled: &PendingRegs) -> Left {
    let mut next = unsettled.take().cast::<MrObject>();
    let (mut first, mut count) = (null_mut(), 0);
    while let Some(here) = NonNull::new(next) {
        // SAFETY: Only regions are put in, by `leave`, each with a reference, which is ours now.
        next = unsafe { here.as_ref() }.set_before(first);
        first = here.as_ptr();
        count += 1;
    }
    // INVARIANT: This list has all regions of the old one, in reverse order.
    Left { first, count }
}

/// Regions that were left to the workqueue.
///
/// # Invariants
///
/// `first` is null, or the first of a list of `count` regions that `before` leads through to the last;
/// of each, this has a reference.
struct Left {
    first: *mut MrObject,
    count: usize,
}

impl Iterator for Left {
    type Item = MrRef;

    fn next(&mut self) -> Option<MrRef> {
        let first = NonNull::new(self.first)?;
        // SAFETY: By the invariant this has a reference, which is given away, once.
        let first = unsafe { MrRef::from_raw(first) };
        // INVARIANT: One less.
        self.first = first.set_before(null_mut());
        self.count = self.count.saturating_sub(1);
        Some(first)
    }
}

/// Enables all that are left by now; their event queues tell. Sleeps.
pub(crate) fn settle(unsettled: &PendingRegs) {
    let mut left = take(unsettled);
    while left.count > 1 {
        if together(&mut left).is_err() {
            break;
        }
    }
    for object in left {
        enable::finish(object, false);
    }
}

/// Enables some of several, which wait for the device together. Sleeps. After an error they are still
/// to be enabled.
fn together(left: &mut Left) -> Result<(), AllocError> {
    let count = left.count.min(MAX_TOGETHER);
    let mut some = ListVec::with_capacity(count, GFP_KERNEL)?;
    let mut enabling = ListVec::with_capacity(count, GFP_KERNEL)?;
    for object in left.take(count) {
        let pending = object.inner.with(|inner| inner.take_pending(false));
        some.push_reserved((object, pending));
    }
    // While it is pending, its domain is open.
    let first = some
        .first()
        .map(|(object, _): &(MrRef, Pending)| object.clone());
    for (_, pending) in &mut some {
        if let Some(one) = pending.entry() {
            enabling.push_reserved(one);
        }
    }
    if let Some(first) = first {
        first.parent().provider().enable_many(&mut enabling);
    }
    drop(enabling);
    for (object, pending) in some {
        enable::conclude(object, pending.ended());
    }
    Ok(())
}
