// SPDX-License-Identifier: GPL-2.0

//! The regions of a domain of which it isn't settled yet how they end: who waits for them, and those
//! whose device's part is left to the core's workqueue.
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
use crate::support::{
    errno::Errno,
    noio::NoIo,
    work, //
};
use core::ptr::{
    null_mut,
    NonNull, //
};
use kernel::{
    alloc::AllocError,
    impl_has_work,
    new_condvar,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        CondVar, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// The regions of a domain that aren't settled.
///
/// # Invariants
///
/// `last` is null, or the last of a list of pending regions of one domain, that `before` leads through
/// to the first; of each, the list has a reference.
#[pin_data]
pub(crate) struct Unsettled {
    last: Atomic<*mut MrObject>,
    #[pin]
    work: Work<Self>,
    /// One that somebody waits for is not pending any more, or closed.
    #[pin]
    pub(super) changed: CondVar,
}

// SAFETY: By the invariant `last` is a reference, which any thread may have.
unsafe impl Send for Unsettled {}
// SAFETY: As for `Send`; it is only exchanged as a whole.
unsafe impl Sync for Unsettled {}

impl_has_work! {
    impl HasWork<Self> for Unsettled { self.work }
}

impl Unsettled {
    /// None yet. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>, Errno> {
        let none = pin_init!(Self {
            last: Atomic::new(null_mut()),
            work <- new_work!("kfabric::Unsettled::work"),
            changed <- new_condvar!("kfabric::Unsettled::changed"),
        });
        Arc::pin_init(none, GFP_KERNEL).map_err(|_| Errno::ENOMEM)
    }

    /// Leaves a pending region of this domain to the core's workqueue. May sleep.
    ///
    /// The domain may be closed, before this returns, by who closes the region: so it isn't borrowed.
    pub(super) fn leave(self: Arc<Self>, object: MrRef) {
        let Some(queue) = work::registrations() else {
            enable::finish(object);
            return;
        };
        let object = object.into_raw();
        let mut last = self.last.load(Relaxed);
        loop {
            // SAFETY: The reference that it was made of is the list's in a moment.
            unsafe { &*object }.before.store(last, Relaxed);
            // INVARIANT: A region is left here once in its life, so it isn't in the list yet.
            match self.last.cmpxchg(last, object, Full) {
                Ok(_) => break,
                Err(now) => last = now,
            }
        }
        // Already queued is as good.
        let _ = queue.enqueue(self);
    }

    /// Takes all that are left, in the order in which they came.
    fn take(&self) -> Left {
        let mut next = self.last.xchg(null_mut(), Full);
        let (mut first, mut count) = (null_mut(), 0);
        while let Some(here) = NonNull::new(next) {
            // SAFETY: By the invariant the list had a reference, which is ours now.
            next = unsafe { here.as_ref() }.before.xchg(first, Relaxed);
            first = here.as_ptr();
            count += 1;
        }
        // INVARIANT: What was in the list is in this one, the other way round.
        Left { first, count }
    }
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
        self.first = first.before.xchg(null_mut(), Relaxed);
        self.count = self.count.saturating_sub(1);
        Some(first)
    }
}

impl WorkItem for Unsettled {
    type Pointer = Arc<Self>;

    /// Enables all that are left by now; their event queues tell.
    fn run(this: Arc<Self>) {
        // Storage may wait for the event on the way of writing memory back.
        let _noio = NoIo::enter();
        let mut left = this.take();
        while left.count > 1 {
            if together(&mut left).is_err() {
                break;
            }
        }
        for object in left {
            enable::finish(object);
        }
    }
}

/// Enables some of several, which wait for the device together. Sleeps. After an error they are still
/// to be enabled.
fn together(left: &mut Left) -> Result<(), AllocError> {
    let count = left.count.min(MAX_TOGETHER);
    let mut some = KVVec::with_capacity(count, GFP_KERNEL)?;
    let mut enabling = KVVec::with_capacity(count, GFP_KERNEL)?;
    for object in left.take(count) {
        let pending = object.inner.lock().take_pending();
        // There is room.
        let _ = some.push_within_capacity((object, pending));
    }
    // While it is pending, its domain is open.
    let first = some
        .first()
        .map(|(object, _): &(MrRef, Pending)| object.clone());
    for (_, pending) in &mut some {
        if let Some(one) = pending.enabling() {
            // There is room.
            let _ = enabling.push_within_capacity(one);
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
