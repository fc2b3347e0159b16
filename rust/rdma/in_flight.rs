// SPDX-License-Identifier: GPL-2.0

//! Lending things to work requests.
//!
//! A device uses the memory of a work request from posting to completion, and doesn't know
//! lifetimes. The request carries something that keeps its memory: a borrow, if a task waits for
//! the request on the stack, or else an [`InFlightRef`].

use crate::{
    completion::Done,
    prelude::*, //
};
use core::{
    cell::UnsafeCell,
    convert::Infallible, //
};
use kernel::{
    alloc::Flags,
    sync::UniqueArc, //
};

/// Keeps a thing where it is, for a work request.
///
/// # Safety
///
/// [`StableRef::get`] must return the same thing each time, which must stay until this is dropped,
/// wherever it is moved.
pub unsafe trait StableRef<T> {
    /// Returns the thing.
    fn get(&self) -> &T;
}

// SAFETY: The target of a reference stays as long as the reference.
unsafe impl<T> StableRef<T> for &T {
    fn get(&self) -> &T {
        self
    }
}

// SAFETY: By the invariant of `InFlightRef` the thing stays until all loans are gone.
unsafe impl<T> StableRef<T> for InFlightRef<T> {
    fn get(&self) -> &T {
        // SAFETY: The thing is taken out only when no loan is left, and not changed before.
        unsafe { &*self.shared.thing.get() }
    }
}

/// The owner of a thing that is lent. Dropping it takes the thing back, and drops it.
///
/// # Invariants
///
/// The thing is there until `back` is set, which is so once no loan is left.
///
/// # Examples
///
/// ```ignore
/// let lender = InFlight::new(region)?;
/// let receive = Receive::new(Gather::part(lender.lend(), 0..512)?)?;
/// ...
/// // Sleeps until the request has ended, and let go of its loan.
/// let region = lender.take_back();
/// ```
pub struct InFlight<T> {
    shared: Arc<Shared<T>>,
    back: bool,
}

/// A thing that is lent. Dropping it gives it back, in any context.
///
/// # Invariants
///
/// It is counted in `loans`.
pub struct InFlightRef<T> {
    shared: Arc<Shared<T>>,
}

#[pin_data]
struct Shared<T> {
    thing: UnsafeCell<ManuallyDrop<T>>,
    /// How many loans there are, and one more until the thing is wanted back.
    loans: Atomic<u32>,
    #[pin]
    all_back: Done,
}

// SAFETY: The thing is reached by shared references, from any thread, and moved out by one.
unsafe impl<T: Send + Sync> Send for Shared<T> {}

// SAFETY: As for sending: `loans` and `all_back` do their own locking.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> InFlight<T> {
    /// Gets ready to lend a thing. May sleep.
    pub fn new(thing: T) -> Result<Self> {
        Self::try_new(thing, GFP_KERNEL).map_err(|_| ENOMEM)
    }

    /// Makes a lender as [`new`](Self::new) does, but returns the thing if there is no memory.
    /// Doesn't sleep if `flags` don't allow it.
    pub fn try_new(thing: T, flags: Flags) -> Result<Self, T> {
        let Ok(room) = UniqueArc::new_uninit(flags) else {
            return Err(thing);
        };
        let shared = pin_init!(Shared {
            thing: UnsafeCell::new(ManuallyDrop::new(thing)),
            loans: Atomic::new(1),
            all_back <- Done::new(),
        });
        let Ok(shared) = room.pin_init_with::<Infallible>(shared);
        let (shared, back) = (shared.into(), false);
        Ok(Self { shared, back })
    }

    /// Lends it. Any context.
    pub fn lend(&self) -> InFlightRef<T> {
        // INVARIANT: Counted here. It was not 0, as the thing isn't wanted back.
        self.shared.loans.fetch_add(1, Relaxed);
        let shared = self.shared.clone();
        InFlightRef { shared }
    }

    /// Returns the thing. Any context.
    pub fn get(&self) -> &T {
        // SAFETY: By the type invariant it is there: it is taken out with the lender only, and not changed
        // before.
        unsafe { &*self.shared.thing.get() }
    }

    /// Takes it back from loans that are lost. Doesn't sleep.
    ///
    /// # Safety
    ///
    /// All loans that there are have been forgotten, or are about to be.
    pub(crate) unsafe fn take_lost(mut self) -> T {
        // INVARIANT: No loan is left that anybody could use.
        self.back = true;
        // SAFETY: By the type invariant the thing is valid. All loans have been forgotten, as the
        // caller promises, so nobody else reaches it. `back` says that it is taken.
        unsafe { ManuallyDrop::take(&mut *self.shared.thing.get()) }
    }

    /// Takes it back. Sleeps until all loans are.
    pub fn take_back(mut self) -> T {
        self.take()
    }

    /// Takes it back, which hasn't been done.
    fn take(&mut self) -> T {
        if self.shared.loans.fetch_sub(1, Full) != 1 {
            self.shared.all_back.wait();
        }
        // INVARIANT: No loan is left, and none is made: that takes a shared reference.
        self.back = true;
        // SAFETY: By the type invariant the thing is there, and nobody else can reach it. `back`
        // says that it is taken.
        unsafe { ManuallyDrop::take(&mut *self.shared.thing.get()) }
    }
}

impl<T> Drop for InFlight<T> {
    fn drop(&mut self) {
        if !self.back {
            drop(self.take());
        }
    }
}

impl<T> Clone for InFlightRef<T> {
    fn clone(&self) -> Self {
        // INVARIANT: Counted here. It was not 0, as `self` is counted.
        self.shared.loans.fetch_add(1, Relaxed);
        let shared = self.shared.clone();
        Self { shared }
    }
}

impl<T> Drop for InFlightRef<T> {
    fn drop(&mut self) {
        if self.shared.loans.fetch_sub(1, Full) == 1 {
            self.shared.all_back.complete();
        }
    }
}

#[kernel::macros::kunit_tests(rdma_lend)]
mod tests {
    use super::*;

    #[test]
    fn back_when_all_loans_are() -> Result {
        let lender = InFlight::new(KBox::new(7, GFP_KERNEL)?)?;
        let loans = (lender.lend(), lender.lend());
        assert_eq!((**loans.0.get(), **loans.1.get()), (7, 7));
        drop(loans);
        assert_eq!(lender.shared.loans.load(Relaxed), 1);
        assert_eq!(*lender.take_back(), 7);
        // Dropped with what it has.
        drop(InFlight::new(KBox::new(8, GFP_KERNEL)?)?);
        Ok(())
    }
}
