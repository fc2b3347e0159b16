// SPDX-License-Identifier: GPL-2.0

//! A counting semaphore that is one atomic as long as nobody waits.
//!
//! C header: [`include/linux/semaphore.h`](srctree/include/linux/semaphore.h)

use crate::{
    completion::NAP,
    prelude::*, //
};
use kernel::time::msecs_to_jiffies;

/// A number of credits. Each operation takes one.
///
/// Wraps the C `struct semaphore`, for those who wait: they are served first come, first served.
///
/// # Invariants
///
/// - The semaphore is initialized.
/// - `free` is the number of credits that are left, less that of those who wait or are about to; for
///   each of these that a credit was given back to, the semaphore has been raised, or is about to be.
#[pin_data]
pub(crate) struct Credits {
    free: Atomic<i32>,
    #[pin]
    sem: Opaque<bindings::semaphore>,
}

// SAFETY: A semaphore can be used by any task.
unsafe impl Send for Credits {}

// SAFETY: A semaphore does its own locking.
unsafe impl Sync for Credits {}

impl Credits {
    /// Initializes a number of credits.
    pub(crate) fn new(count: u32) -> impl PinInit<Self> {
        pin_init!(Self {
            free: Atomic::new(i32::try_from(count).unwrap_or(i32::MAX)),
            // INVARIANT: This initializes it; nobody waits.
            sem <- Opaque::ffi_init(move |slot| {
                // SAFETY: The slot is memory for a semaphore.
                unsafe { rdma_bindings::rdma_helper_sema_init(slot, 0) }
            }),
        })
    }

    /// Takes a credit; [`None`] if there was none for a [`NAP`]. Sleeps, uninterruptibly.
    pub(crate) fn take(&self) -> Option<Credit<'_>> {
        // INVARIANT: There was one, or the caller is one who waits.
        if self.free.fetch_sub(1, Full) > 0 {
            return Some(Credit(self));
        }
        let nap = c_long::try_from(msecs_to_jiffies(NAP)).unwrap_or(c_long::MAX);
        // SAFETY: `sem` is initialized by the type invariant.
        let taken = unsafe { bindings::down_timeout(self.sem.get(), nap) } == 0;
        (taken || !self.stop_waiting()).then(|| Credit(self))
    }

    /// Waits no longer, and returns `true`; or takes the credit that somebody has given back to one who
    /// waits, if there is one for each of these. Sleeps no longer than that takes.
    fn stop_waiting(&self) -> bool {
        let mut free = self.free.load(Relaxed);
        while free < 0 {
            // INVARIANT: One less waits.
            match self.free.cmpxchg(free, free + 1, Full) {
                Ok(_) => return true,
                Err(now) => free = now,
            }
        }
        // SAFETY: By the type invariant the semaphore is initialized; it has been raised for the
        // caller, or is about to be.
        unsafe { bindings::down(self.sem.get()) };
        false
    }

    /// Takes a credit if there is one. Any context.
    #[inline]
    pub(crate) fn try_take(&self) -> Option<Credit<'_>> {
        let mut free = self.free.load(Relaxed);
        while free > 0 {
            match self.free.cmpxchg(free, free - 1, Full) {
                Ok(_) => return Some(Credit(self)),
                Err(now) => free = now,
            }
        }
        None
    }

    /// Takes as many credits as there are, but no more than `most`, to be [given back](Self::give_back);
    /// returns how many. Any context.
    pub(crate) fn take_some(&self, most: u32) -> u32 {
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        let mut free = self.free.load(Relaxed);
        loop {
            let some = free.min(most);
            if some <= 0 {
                return 0;
            }
            match self.free.cmpxchg(free, free - some, Full) {
                Ok(_) => return some.unsigned_abs(),
                Err(now) => free = now,
            }
        }
    }

    /// Returns the number of free credits. The callbacks that returned these are over for the queue. Any context.
    pub(crate) fn left(&self) -> usize {
        usize::try_from(self.free.load(Acquire)).unwrap_or(0)
    }

    /// Gives credits back that were [kept](Credit::keep), or taken as [some](Self::take_some). Any context.
    pub(crate) fn give_back(&self, count: u32) {
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        // INVARIANT: For each of those who wait, as far as there is a credit, the semaphore is raised.
        let before = self.free.fetch_add(count, Full);
        if before < 0 {
            self.wake(before.saturating_neg().min(count));
        }
    }

    /// Raises the semaphore for `count` waiters.
    #[cold]
    fn wake(&self, count: i32) {
        for _ in 0..count {
            // SAFETY: By the type invariant the semaphore is initialized.
            unsafe { bindings::up(self.sem.get()) };
        }
    }
}

/// A credit that has been taken. Dropping it gives it back, without sleeping.
#[must_use]
pub(crate) struct Credit<'a>(&'a Credits);

impl Credit<'_> {
    /// Leaves it taken, until [`Credits::give_back`].
    pub(crate) fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Credit<'_> {
    fn drop(&mut self) {
        self.0.give_back(1);
    }
}

#[kernel::macros::kunit_tests(rdma_credits)]
mod tests {
    use super::*;

    fn credits(count: u32) -> Result<Arc<Credits>> {
        Arc::pin_init(Credits::new(count), GFP_KERNEL)
    }

    /// Takes all that are there, for good.
    fn take_all(credits: &Credits) -> u32 {
        let taken = core::iter::from_fn(|| credits.try_take().map(Credit::keep));
        u32::try_from(taken.count()).unwrap_or(u32::MAX)
    }

    #[test]
    fn as_many_as_there_are() -> Result {
        let credits = credits(3)?;
        drop(credits.take());
        assert_eq!(take_all(&credits), 3);
        credits.give_back(1);
        assert_eq!(take_all(&credits), 1);
        Ok(())
    }

    #[test]
    fn some_are_taken_and_given_back() -> Result {
        let credits = credits(5)?;
        assert_eq!(credits.take_some(3), 3);
        assert_eq!(credits.take_some(3), 2);
        assert_eq!(credits.take_some(3), 0);
        credits.give_back(4);
        assert_eq!(take_all(&credits), 4);
        // Two wait, and three come: those two get one each.
        credits.free.fetch_sub(2, Full);
        credits.give_back(3);
        assert_eq!(take_all(&credits), 1);
        assert!(!credits.stop_waiting());
        assert!(!credits.stop_waiting());
        Ok(())
    }

    #[test]
    fn who_has_waited_in_vain_leaves_none_behind() -> Result {
        let credits = credits(0)?;
        assert!(credits.take().is_none());
        assert!(credits.take().is_none());
        credits.give_back(1);
        credits.give_back(1);
        assert_eq!(take_all(&credits), 2);
        Ok(())
    }

    #[test]
    fn none_gets_lost_where_a_wait_ends() -> Result {
        let credits = credits(0)?;
        // One begins to wait. It is given one as its time is up, and before it says so.
        credits.free.fetch_sub(1, Full);
        credits.give_back(1);
        assert_eq!(take_all(&credits), 0);
        assert!(!credits.stop_waiting());
        // Two wait, and one credit comes: one of them gets it, the other stops.
        credits.free.fetch_sub(2, Full);
        credits.give_back(1);
        assert!(credits.stop_waiting());
        assert!(!credits.stop_waiting());
        credits.give_back(1);
        assert_eq!(take_all(&credits), 1);
        Ok(())
    }
}
