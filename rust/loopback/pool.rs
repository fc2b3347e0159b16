// SPDX-License-Identifier: GPL-2.0

//! Receives that several sides share, and the sides that wait for one.
//!
//! Lock order: the lock of a pool is a leaf. It is taken with interrupts off; no ticket is ended
//! under it.
//!
//! A [`Fifo`] has a fixed capacity. After it is made, it allocates no memory.

use crate::*;
use kernel::alloc::AllocError;

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

/// Items in the order in which they were pushed.
///
/// # Invariants
///
/// `first` is below the number of slots, unless there are none. The `count` slots from `first` on,
/// in a circle, have an item, and no others.
pub(crate) struct Fifo<T> {
    slots: KVVec<Option<T>>,
    first: usize,
    count: usize,
}

impl<T> Fifo<T> {
    /// A FIFO without capacity.
    pub(crate) const NONE: Self = Self {
        slots: KVVec::new(),
        first: 0,
        count: 0,
    };

    /// Makes an empty FIFO for `size` items. May sleep.
    pub(crate) fn new(size: usize) -> Result<Self, AllocError> {
        let mut slots = KVVec::with_capacity(size, GFP_KERNEL)?;
        for _ in 0..size {
            slots.push(None, GFP_KERNEL)?;
        }
        // INVARIANT: Nothing is in it.
        Ok(Self {
            slots,
            first: 0,
            count: 0,
        })
    }

    /// Adds an item; gives it back if the FIFO is full. Any context.
    pub(crate) fn push(&mut self, thing: T) -> Result<(), T> {
        let len = self.slots.len();
        if self.count == len {
            return Err(thing);
        }
        let at = (self.first + self.count) % len;
        match self.slots.get_mut(at) {
            Some(slot) => {
                *slot = Some(thing);
                self.count += 1;
                Ok(())
            }
            None => Err(thing),
        }
    }

    /// Returns the number of free slots. Any context.
    pub(crate) fn room(&self) -> usize {
        self.slots.len() - self.count
    }

    /// Returns the first item. Any context.
    pub(crate) fn first(&self) -> Option<&T> {
        self.slots.get(self.first)?.as_ref()
    }

    /// Takes out the first item. Any context.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let thing = self.slots.get_mut(self.first)?.take()?;
        self.first = (self.first + 1) % self.slots.len();
        self.count -= 1;
        Some(thing)
    }

    /// Takes out the first item for which `is` is true. Any context.
    pub(crate) fn take_if(&mut self, is: impl Fn(&T) -> bool) -> Option<T> {
        let mut taken = None;
        // After one round, all other items are in their old order.
        for _ in 0..self.count {
            let thing = self.pop()?;
            if taken.is_none() && is(&thing) {
                taken = Some(thing);
            } else if self.push(thing).is_err() {
                break;
            }
        }
        taken
    }

    /// Takes out all items, and leaves no capacity. Any context.
    pub(crate) fn take(&mut self) -> Self {
        mem::replace(self, Self::NONE)
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

#[kernel::macros::kunit_tests(kfi_loop_fifo)]
mod tests_of_loop_fifo {
    use super::*;

    #[test]
    fn first_in_first_out() -> Result {
        let mut fifo = Fifo::new(3)?;
        for round in 0..5 {
            for n in 0..3 {
                assert_eq!(fifo.push(round * 10 + n), Ok(()));
            }
            assert_eq!((fifo.push(99), fifo.room()), (Err(99), 0));
            assert_eq!(
                (fifo.pop(), fifo.pop()),
                (Some(round * 10), Some(round * 10 + 1))
            );
            assert_eq!(fifo.push(round * 10 + 3), Ok(()));
            assert_eq!(
                (fifo.pop(), fifo.pop()),
                (Some(round * 10 + 2), Some(round * 10 + 3))
            );
            assert_eq!((fifo.pop(), fifo.first()), (None, None));
        }
        Ok(())
    }

    #[test]
    fn one_is_taken_from_anywhere() -> Result {
        let mut fifo = Fifo::new(4)?;
        for n in [1, 2, 3, 2] {
            assert_eq!(fifo.push(n), Ok(()));
        }
        assert_eq!(fifo.take_if(|&n| n == 7), None);
        assert_eq!(fifo.take_if(|&n| n == 2), Some(2));
        assert_eq!(
            [fifo.pop(), fifo.pop(), fifo.pop(), fifo.pop()],
            [Some(1), Some(3), Some(2), None]
        );
        Ok(())
    }

    #[test]
    fn no_room() {
        let mut fifo = Fifo::NONE;
        assert_eq!(fifo.push(1), Err(1));
        assert_eq!((fifo.pop(), fifo.take_if(|_| true)), (None, None));
    }
}
