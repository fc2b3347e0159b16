// SPDX-License-Identifier: GPL-2.0

//! A FIFO of a fixed capacity. After it is made, it allocates no memory.

use core::mem;
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

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

#[kernel::macros::kunit_tests(kfi_loop_fifo)]
mod tests {
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
