// SPDX-License-Identifier: GPL-2.0

//! Vectors: a FIFO, a vector with inline storage, and a push into reserved space.

use crate::prelude::*;
use core::{
    fmt,
    mem::MaybeUninit,
    ops::Deref, //
};
use kernel::{
    alloc::{
        AllocError,
        Allocator,
        Vec, //
    },
    warn_on, //
};

/// A queue of items that leave in the order in which they joined.
pub struct Fifo<T> {
    /// The first items, in reverse.
    front: KVVec<T>,
    /// The items behind them, in order.
    back: KVVec<T>,
}

impl<T> Fifo<T> {
    /// Makes an empty queue.
    pub const fn new() -> Self {
        Self {
            front: KVVec::new(),
            back: KVVec::new(),
        }
    }

    /// Makes an empty queue that holds `most` items without an allocation. May sleep.
    pub fn with_capacity(most: usize) -> Result<Self, AllocError> {
        Ok(Self {
            front: KVVec::with_capacity(most, GFP_KERNEL)?,
            back: KVVec::with_capacity(most, GFP_KERNEL)?,
        })
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.front.len() + self.back.len()
    }

    /// Checks whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes out the item that has waited longest.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.front.is_empty() {
            self.turn();
        }
        self.front.pop()
    }

    /// Makes the items of `back` the first ones.
    #[cold]
    fn turn(&mut self) {
        mem::swap(&mut self.front, &mut self.back);
        self.front.reverse();
    }

    /// Adds an item; gives it back if there is no memory for it. May sleep.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        match self.back.push_within_capacity(item) {
            Ok(()) => Ok(()),
            Err(full) => self.push_more(full.0),
        }
    }

    /// Grows `back` and adds an item; gives it back if there is no memory for it.
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

/// A vector of at most `MOST` items with inline storage. The space of absent items is not written,
/// so an empty one costs nothing.
///
/// # Invariants
///
/// The first `count` items are initialised. `count` is at most `MOST`.
#[derive(Clone, Copy)]
pub(crate) struct ArrayVec<T: Copy, const MOST: usize> {
    items: [MaybeUninit<T>; MOST],
    count: usize,
}

impl<T: Copy, const MOST: usize> ArrayVec<T, MOST> {
    /// Makes an empty vector.
    #[inline]
    pub(crate) fn new() -> Self {
        // INVARIANT: None is there.
        Self {
            items: [MaybeUninit::uninit(); MOST],
            count: 0,
        }
    }

    /// Adds an item; gives it back if there is no space.
    pub(crate) fn push(&mut self, item: T) -> Result<(), T> {
        let Some(free) = self.items.get_mut(self.count) else {
            return Err(item);
        };
        free.write(item);
        // INVARIANT: One more is there.
        self.count += 1;
        Ok(())
    }

    /// Removes all items.
    pub(crate) fn clear(&mut self) {
        // INVARIANT: None has to be there.
        self.count = 0;
    }
}

impl<T: Copy, const MOST: usize> Deref for ArrayVec<T, MOST> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: The first `count` items of `items` are initialised, by the type invariant.
        unsafe { slice::from_raw_parts(self.items.as_ptr().cast(), self.count) }
    }
}

impl<T: Copy + fmt::Debug, const MOST: usize> fmt::Debug for ArrayVec<T, MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A list whose owner reserves room for its items ahead of time.
pub trait PushReserved<T> {
    /// Adds an item for which the caller has reserved room. Any context.
    ///
    /// The item may be an open region, which must not be lost. If the caller has reserved too little, this
    /// warns once and grows the list. It panics if there is no memory to grow it.
    fn push_reserved(&mut self, item: T);
}

impl<T, A: Allocator> PushReserved<T> for Vec<T, A> {
    #[inline]
    fn push_reserved(&mut self, item: T) {
        if push_or_grow(self, item) {
            warn_too_little();
        }
    }
}

/// Adds an item. Returns whether the list had to grow for it.
#[inline]
fn push_or_grow<T, A: Allocator>(list: &mut Vec<T, A>, item: T) -> bool {
    match list.push_within_capacity(item) {
        Ok(()) => false,
        Err(full) => {
            grow(list, full.0);
            true
        }
    }
}

/// Moves the items to a larger list and adds one. Not every allocator can enlarge memory in place.
#[cold]
fn grow<T, A: Allocator>(list: &mut Vec<T, A>, item: T) {
    let Ok(mut larger) = Vec::with_capacity(list.len().saturating_add(1), GFP_ATOMIC) else {
        // Going on would lose the item.
        panic!("no memory for an item without room");
    };
    for item in mem::take(list) {
        push_or_grow(&mut larger, item);
    }
    push_or_grow(&mut larger, item);
    *list = larger;
}

/// Warns, once, of a list for which too little room was reserved.
#[cold]
fn warn_too_little() {
    static WARNED: Atomic<bool> = Atomic::new(false);

    warn_on!(!WARNED.xchg(true, Relaxed));
}

#[kernel::macros::kunit_tests(kfabric_fifo)]
mod tests {
    use super::*;
    use crate::support::cache::ListVec;

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

    #[test]
    fn as_many_as_there_is_room_for() {
        let mut short = ArrayVec::<u32, 2>::new();
        assert!(short.is_empty());
        assert_eq!(short.push(3), Ok(()));
        assert_eq!(short.push(4), Ok(()));
        assert_eq!(short.push(5), Err(5));
        let other = short;
        short.clear();
        assert_eq!(short.push(6), Ok(()));
        assert_eq!((&*short, &*other), (&[6][..], &[3, 4][..]));
    }

    /// Reserves room for `reserved` items, and adds more.
    fn add_more<A: Allocator>(reserved: usize) -> Result {
        let item = Arc::new(0, GFP_KERNEL)?;
        let mut list: Vec<_, A> = Vec::with_capacity(reserved, GFP_KERNEL)?;
        for _ in 0..list.capacity() {
            assert!(!push_or_grow(&mut list, item.clone()));
        }
        let full = list.len();
        for more in 1..4 {
            assert!(push_or_grow(&mut list, item.clone()));
            assert_eq!(list.len(), full + more);
        }
        assert!(list.iter().all(|one| Arc::ptr_eq(one, &item)));
        drop(list);
        // The list had the only other references, and has dropped each once.
        assert!(Arc::into_unique_or_drop(item).is_some());
        Ok(())
    }

    #[test]
    fn items_without_room_are_not_lost() -> Result {
        for reserved in [0, 1, 7] {
            add_more::<kernel::alloc::allocator::Kmalloc>(reserved)?;
            add_more::<kernel::alloc::allocator::KVmalloc>(reserved)?;
        }
        Ok(())
    }

    #[test]
    fn lists_that_can_not_grow_in_place_lose_none() -> Result {
        let mut list = ListVec::with_capacity(1, GFP_KERNEL)?;
        list.push_reserved(0);
        for i in 1..100 {
            assert!(push_or_grow(&mut list, i));
        }
        assert!(list.iter().copied().eq(0..100));
        let mut long = KVVec::with_capacity(2, GFP_KERNEL)?;
        long.push_reserved(1);
        long.push_reserved(2);
        assert_eq!(&long[..], &[1, 2]);
        Ok(())
    }
}
