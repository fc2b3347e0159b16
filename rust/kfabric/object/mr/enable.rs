// SPDX-License-Identifier: GPL-2.0

//! Enabling regions: in the call, or behind it where an event queue reports it.
//!
//! All are created disabled. A task that enables one takes the provider's part out, enables that
//! without any lock, and puts it back. It does that under the region's lock, or before anybody else
//! could know of the region.
//!
//! A work item of the core enables the regions that are left to it. They wait for the device together.

use super::{
    mr_ext::Said,
    prelude::*, //
};
use crate::object::{
    eq::Unread,
    pending_regs::PendingRegs, //
};

/// Enables a pending region, reports that to the event queue, and wakes the waiting tasks. `more`
/// says that the endpoint gets another request at once. Returns 0, or the number of an error that
/// has been reported. Sleeps if the provider's [`MrOps::enable`](crate::provider::MrOps::enable)
/// does.
///
/// A waiting task may close the region, and give up C's reference before this function returns. So
/// the function has a reference of its own.
pub(super) fn finish(object: MrRef, more: bool) -> c_int {
    let mut pending = object.inner.with(|inner| inner.take_pending(more));
    pending.done = pending.mr.as_mut().map(|mr| mr.enable(&pending.bindings));
    conclude(object, pending)
}

/// Ends enabling a region, as the second half of [`finish`]. Any context.
fn conclude(object: MrRef, pending: Pending) -> c_int {
    object.inner.with(|inner| {
        // Drops the bindings under the lock. They are not the last references: the region has them
        // until it is closed, and a close waits while the region is being enabled.
        let done = object.settle(inner, pending);
        // Under the same lock: the task that closes the region finds the event, and removes it.
        let event = object.report(inner, &done);
        inner.say(event);
        match &done {
            Ok(()) => 0,
            // Reported while the region can't be closed. So the provider, which has the text of the
            // refusal, can't be unloaded.
            Err(refusal) => object.refuse(c"register", *refusal),
        }
    })
}

/// The parts of a region that is being enabled, held by the task that enables it.
struct Pending {
    mr: Option<ProviderMr>,
    bindings: Bindings,
    /// The result, once enabling has been tried.
    done: Option<Result<Keys, Refusal>>,
}

impl Pending {
    /// Returns the entry for a provider that enables several regions together.
    fn entry(&mut self) -> Option<BatchEntry<'_, Keys>> {
        Some(BatchEntry {
            mr: &mut **self.mr.as_mut()?,
            bindings: &self.bindings,
            done: &mut self.done,
        })
    }
}

impl Inner {
    /// Takes out the parts that are needed to enable a pending region.
    fn take_pending(&mut self, more: bool) -> Pending {
        Pending {
            mr: self.mr.take(),
            bindings: self
                .rare
                .as_ref()
                .map_or(Bindings::NONE, |rare| rare.bonds.bindings(more)),
            done: None,
        }
    }

    /// Puts that back: the region is enabled, or failed.
    fn end(&mut self, pending: Pending) -> Result<Keys, Refusal> {
        self.mr = pending.mr;
        let not_there = Refusal::new(Errno::EIO, c"the region is not there");
        let enabled = pending.done.unwrap_or(Err(not_there));
        match &enabled {
            // Nothing was begun.
            Err(refusal) if refusal.errno() == Errno::EAGAIN => self.state.end_again(),
            enabled => self.state.end(enabled.is_ok()),
        }
        enabled
    }

    fn say(&mut self, event: Option<Unread>) {
        if let Some(rare) = &mut self.rare {
            rare.as_mut().project().said.say(event);
        }
    }

    /// Takes the events that have reported how enabling ended. They are reported no more.
    pub(super) fn take_said(&mut self) -> Said {
        match &mut self.rare {
            Some(rare) => mem::take(rare.as_mut().project().said),
            None => Said::Nothing,
        }
    }
}

impl MrObject {
    /// Ends enabling the region, publishes the result, and wakes the waiting tasks. They continue
    /// once the lock is released. Any context.
    fn settle(&self, inner: &mut Inner, pending: Pending) -> Result<(), Refusal> {
        let done = inner.end(pending).map(|keys| {
            self.publish(Public::new(self.parent(), Some(&keys)));
            self.reveal(&keys);
            self.tie(inner);
        });
        if inner.awaited {
            self.parent().unsettled.changed.notify_all();
        }
        done
    }

    /// Has the region taken down with its endpoint, if it is bound to one. Must be called once,
    /// when the region is enabled.
    fn tie(&self, inner: &Inner) {
        let Some(rare) = &inner.rare else {
            return;
        };
        if let Some(ties) = rare.bonds.endpoint.get() {
            // SAFETY: The region is enabled once, so it is not tied yet. The object does not move.
            // `rare` is pinned and stays with the object. The task that closes the region unties
            // it.
            unsafe { ties.tie(&rare.tie, NonNull::from(self).cast()) };
        }
    }

    /// Puts the event in the queue, if there is one. Any context.
    pub(super) fn report(&self, inner: &Inner, done: &Result<(), Refusal>) -> Option<Unread> {
        let eq = self.eq(inner)?;
        let fid = self.as_ptr().cast::<kfid>();
        // SAFETY: `fid` is this open object's, and its context is C's to write, but not now.
        let context = unsafe { (&raw const (*fid).context).read() };
        match done {
            Ok(()) => eq.complete(c::KFI_MR_COMPLETE, fid, context, 0),
            Err(refusal) => eq.fail(fid, context, *refusal),
        }
    }

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
/// Another task may close the region and then its domain before this returns. So this doesn't
/// borrow the domain.
pub(super) fn enable_later(object: MrRef) {
    let Some(queue) = workqueue::REGISTRATIONS.get() else {
        finish(object, false);
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
        // SAFETY: Only regions are put in, by `enable_later`, each with a reference, which is ours now.
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
pub(crate) fn enable_pending(unsettled: &PendingRegs) {
    let mut left = take(unsettled);
    while left.count > 1 {
        if together(&mut left).is_err() {
            break;
        }
    }
    for object in left {
        finish(object, false);
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
        conclude(object, pending);
    }
    Ok(())
}
