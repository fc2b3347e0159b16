// SPDX-License-Identifier: GPL-2.0

//! Receives that several sides share, and the sides that wait for one.
//!
//! Lock order: the lock of a pool is a leaf. It is taken with interrupts off; no ticket is ended
//! under it.

use crate::fifo::Fifo;
use core::ptr;
use kernel::alloc::AllocError;
use kfabric::{
    irqlock::IrqLock,
    new_irq_lock,
    prelude::*,
    provider::{
        cq::Context,
        kept::Kept, //
    }, //
};

struct State<S> {
    receives: Fifo<Kept>,
    sharers: Sharers<S>,
}

impl<S> State<S> {
    /// Returns the side to wake, if there is a receive for it.
    fn waiting(&mut self) -> Option<Arc<S>> {
        self.receives.first()?;
        self.sharers.longest()
    }
}

/// Receives that sides of type `S` share.
#[pin_data]
pub(crate) struct Pool<S> {
    #[pin]
    state: IrqLock<State<S>>,
}

impl<S: Send + Sync> Pool<S> {
    /// Makes a pool with space for `size` receives. May sleep.
    pub(crate) fn new(size: usize) -> Result<Arc<Self>, Refusal> {
        let state = State {
            receives: Fifo::new(size)?,
            sharers: Sharers::new(),
        };
        let pool = pin_init!(Self {
            state <- new_irq_lock!(state, c"kfi_loop_pool"),
        });
        Arc::pin_init(pool, GFP_KERNEL).map_err(|_| Errno::ENOMEM.into())
    }

    /// Adds a side, which may take receives until it [leaves](Self::leave). Any context.
    pub(crate) fn join(&self, side: Arc<S>) -> Result<(), Refusal> {
        Ok(self.state.with(|state| state.sharers.join(side))?)
    }

    /// Removes a side. The caller has a reference to it. Any context.
    pub(crate) fn leave(&self, side: &S) {
        self.state.with(|state| state.sharers.leave(side));
    }

    /// Takes the oldest receive for a side, or notes that the side waits. Any context.
    pub(crate) fn take(&self, side: &S) -> Option<Kept> {
        self.state.with(|state| {
            let taken = state.receives.pop();
            state.sharers.set(side, taken.is_none());
            taken
        })
    }

    /// Adds a receive; gives it back if the pool is full. Calls `wake` for waiting sides, one after
    /// the other, as long as there are receives: the first may need none any more. Any context.
    pub(crate) fn post(&self, kept: Kept, wake: impl Fn(&S)) -> Result<(), Kept> {
        self.state.with(|state| state.receives.push(kept))?;
        while let Some(side) = self.state.with(|state| state.waiting()) {
            wake(&side);
        }
        Ok(())
    }

    /// Returns the number of receives that there is space for. Any context.
    pub(crate) fn room(&self) -> usize {
        self.state.with(|state| state.receives.room())
    }

    /// Ends a receive of this context. Any context.
    pub(crate) fn cancel(&self, context: Context) -> bool {
        let is = |kept: &Kept| kept.ticket().context() == context;
        let taken = self.state.with(|state| state.receives.take_if(is));
        // Dropping a receive ends it.
        taken.is_some()
    }

    /// Ends all receives and takes no more. May call handlers of completion queues.
    pub(crate) fn end(&self) {
        let ended = self.state.with(|state| state.receives.take());
        drop(ended);
    }
}

struct Sharer<S> {
    side: Arc<S>,
    /// The turn at which it began to wait, if it waits. The side with the least has waited longest.
    since: Option<u64>,
}

/// The sides that share receives, and the order in which they have begun to wait.
pub(crate) struct Sharers<S> {
    all: KVec<Sharer<S>>,
    /// Number of times that a side has begun to wait.
    begun: u64,
}

impl<S> Sharers<S> {
    /// Makes an empty list. Any context.
    pub(crate) fn new() -> Self {
        Self {
            all: KVec::new(),
            begun: 0,
        }
    }

    /// Adds a side, which doesn't wait. Any context.
    pub(crate) fn join(&mut self, side: Arc<S>) -> Result<(), AllocError> {
        let sharer = Sharer { side, since: None };
        self.all.push(sharer, GFP_ATOMIC).map_err(|_| AllocError)
    }

    /// Removes a side. The caller has a reference to it. Any context.
    pub(crate) fn leave(&mut self, side: &S) {
        self.all.retain(|sharer| !ptr::eq(&*sharer.side, side));
    }

    /// Notes whether a side waits for a receive. Any context.
    pub(crate) fn set(&mut self, side: &S, waits: bool) {
        let mut all = self.all.iter_mut();
        if let Some(sharer) = all.find(|sharer| ptr::eq(&*sharer.side, side)) {
            sharer.since = waits.then_some(self.begun);
            self.begun += 1;
        }
    }

    /// Returns the side that has waited longest, and notes that it waits no more. Any context.
    pub(crate) fn longest(&mut self) -> Option<Arc<S>> {
        let waiting = self.all.iter_mut().filter(|sharer| sharer.since.is_some());
        let sharer = waiting.min_by_key(|sharer| sharer.since)?;
        sharer.since = None;
        Some(sharer.side.clone())
    }
}

#[kernel::macros::kunit_tests(kfi_loop_sharers)]
mod tests {
    use super::*;

    fn three() -> Result<(Sharers<u8>, [Arc<u8>; 3])> {
        let sides = [
            Arc::new(0, GFP_KERNEL)?,
            Arc::new(1, GFP_KERNEL)?,
            Arc::new(2, GFP_KERNEL)?,
        ];
        let mut sharers = Sharers::new();
        for side in &sides {
            sharers.join(side.clone())?;
        }
        Ok((sharers, sides))
    }

    fn longest(sharers: &mut Sharers<u8>) -> Option<u8> {
        sharers.longest().map(|side| *side)
    }

    #[test]
    fn who_waits_longest_is_first() -> Result {
        let (mut sharers, [a, b, c]) = three()?;
        assert_eq!(longest(&mut sharers), None);
        for side in [&b, &c, &a] {
            sharers.set(side, true);
        }
        assert_eq!(longest(&mut sharers), Some(1));
        // It waits again, behind the others.
        sharers.set(&b, true);
        assert_eq!(longest(&mut sharers), Some(2));
        assert_eq!(longest(&mut sharers), Some(0));
        assert_eq!(longest(&mut sharers), Some(1));
        assert_eq!(longest(&mut sharers), None);
        Ok(())
    }

    #[test]
    fn who_found_one_does_not_wait() -> Result {
        let (mut sharers, [a, b, _]) = three()?;
        sharers.set(&a, true);
        sharers.set(&b, true);
        sharers.set(&a, false);
        assert_eq!(longest(&mut sharers), Some(1));
        assert_eq!(longest(&mut sharers), None);
        Ok(())
    }

    #[test]
    fn nobody_is_passed_over_when_one_leaves() -> Result {
        let (mut sharers, [a, b, c]) = three()?;
        for side in [&a, &b, &c] {
            sharers.set(side, true);
        }
        assert_eq!(longest(&mut sharers), Some(0));
        sharers.leave(&a);
        assert_eq!(longest(&mut sharers), Some(1));
        assert_eq!(longest(&mut sharers), Some(2));
        assert_eq!(longest(&mut sharers), None);
        Ok(())
    }
}
