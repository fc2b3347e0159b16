// SPDX-License-Identifier: GPL-2.0

//! A line: first come, first served.

use crate::support::push_reserved::PushReserved;
use core::mem;
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// Things that leave in the order in which they joined.
pub struct Fifo<T> {
    /// The first ones, in reverse.
    front: KVVec<T>,
    /// Those that joined since.
    back: KVVec<T>,
}

impl<T> Fifo<T> {
    /// An empty line.
    pub const fn new() -> Self {
        Self {
            front: KVVec::new(),
            back: KVVec::new(),
        }
    }

    /// An empty line in which as many can stand without any allocation. May sleep.
    pub fn with_capacity(most: usize) -> Result<Self, AllocError> {
        Ok(Self {
            front: KVVec::with_capacity(most, GFP_KERNEL)?,
            back: KVVec::with_capacity(most, GFP_KERNEL)?,
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.front.len() + self.back.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The one that has waited longest.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.front.is_empty() {
            self.turn();
        }
        self.front.pop()
    }

    /// The first ones are those that joined.
    #[cold]
    fn turn(&mut self) {
        mem::swap(&mut self.front, &mut self.back);
        self.front.reverse();
    }

    /// Joins the line; gives it back if there is no memory for it. May sleep.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        match self.back.push_within_capacity(item) {
            Ok(()) => Ok(()),
            Err(full) => self.push_more(full.0),
        }
    }

    /// As [`push`](Self::push), if there is no room.
    #[cold]
    fn push_more(&mut self, item: T) -> Result<(), T> {
        match self.back.reserve(1, GFP_KERNEL) {
            Ok(()) => self.back.push_within_capacity(item).map_err(|e| e.0),
            Err(_) => Err(item),
        }
    }
}

impl<T> PushReserved<T> for Fifo<T> {
    #[inline]
    fn push_reserved(&mut self, item: T) {
        self.back.push_reserved(item);
    }
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[kernel::macros::kunit_tests(kfabric_fifo)]
mod tests {
    use super::*;

    #[test]
    fn first_come_first_served() -> Result {
        let mut line = Fifo::new();
        let mut left = KVec::new();
        for round in 0..4 {
            for i in 0..5 {
                line.push(5 * round + i).map_err(|_| ENOMEM)?;
            }
            for _ in 0..3 {
                left.push(line.pop().ok_or(EINVAL)?, GFP_KERNEL)?;
            }
        }
        assert_eq!(line.len(), 8);
        while let Some(item) = line.pop() {
            left.push(item, GFP_KERNEL)?;
        }
        assert!(line.is_empty());
        assert!(left.iter().enumerate().all(|(i, &item)| i == item));
        Ok(())
    }

    #[test]
    fn room_stays() -> Result {
        let mut line = Fifo::with_capacity(3)?;
        for i in 0..100 {
            line.push(i).map_err(|_| ENOMEM)?;
            if line.len() == 3 {
                let _ = line.pop();
                let _ = line.pop();
            }
            assert!(line.front.capacity() >= 3 && line.back.capacity() >= 3);
        }
        while line.len() < 3 {
            line.push_reserved(0);
        }
        assert_eq!(line.back.capacity(), 3);
        Ok(())
    }
}
