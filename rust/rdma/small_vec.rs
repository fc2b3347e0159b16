// SPDX-License-Identifier: GPL-2.0

//! A list that needs no memory for one item, which is what most lists of regions have.

use crate::prelude::*;
use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::{
    alloc::{
        kvec,
        AllocError,
        Flags, //
    },
    warn_on, //
};

/// A list; a single item is kept in place.
pub struct SmallVec<T>(Items<T>);

enum Items<T> {
    /// At most one.
    One(Option<T>),
    /// Any number.
    Many(KVVec<T>),
}

impl<T> SmallVec<T> {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self(Items::One(None))
    }

    /// Creates a list of one item.
    #[inline]
    pub const fn one(item: T) -> Self {
        Self(Items::One(Some(item)))
    }

    /// Creates an empty list with a capacity. Capacity for more than one item allocates memory.
    pub fn with_capacity(count: usize, flags: Flags) -> Result<Self, AllocError> {
        Ok(Self(match count {
            0 | 1 => Items::One(None),
            many => Items::Many(KVVec::with_capacity(many, flags)?),
        }))
    }

    /// Takes the item of a list of one, which is empty then.
    pub fn take_only(&mut self) -> Option<T> {
        match &mut self.0 {
            Items::One(one) => one.take(),
            Items::Many(many) if many.len() == 1 => many.pop(),
            Items::Many(_) => None,
        }
    }

    /// Makes a list of what `f` makes of each item, by its index. After an error the others are dropped.
    /// For more than one item that takes memory.
    pub fn try_map<U, E: From<AllocError>>(
        self,
        flags: Flags,
        mut f: impl FnMut(usize, T) -> Result<U, E>,
    ) -> Result<SmallVec<U>, E> {
        match self.0 {
            // Moved no more than that: items are large, and there is mostly one.
            Items::One(Some(one)) => Ok(SmallVec(Items::One(Some(f(0, one)?)))),
            Items::One(None) => Ok(SmallVec::new()),
            Items::Many(many) => {
                let mut all = SmallVec::with_capacity(many.len(), flags)?;
                for (index, item) in many.into_iter().enumerate() {
                    all.push_reserved(f(index, item)?);
                }
                Ok(all)
            }
        }
    }

    /// Does something with each item, which is gone then.
    pub fn consume(self, mut f: impl FnMut(T)) {
        match self.0 {
            Items::One(Some(one)) => f(one),
            Items::One(None) => (),
            Items::Many(many) => many.into_iter().for_each(f),
        }
    }

    /// Adds an item for which the caller has reserved room. Any context.
    ///
    /// The item may be an open region, which must not be lost. If the caller has reserved too little, this
    /// warns and grows the list. It panics if there is no memory to grow it.
    #[inline]
    pub fn push_reserved(&mut self, item: T) {
        if self.push_or_grow(item) {
            warn_too_little();
        }
    }

    /// Adds an item. Returns whether the list had to grow for it.
    #[inline]
    fn push_or_grow(&mut self, item: T) -> bool {
        match self.push_within_capacity(item) {
            Ok(()) => false,
            Err(item) => {
                self.grow(item);
                true
            }
        }
    }

    /// Moves the items to a larger list and adds one.
    #[cold]
    fn grow(&mut self, item: T) {
        let Ok(larger) = KVVec::with_capacity(self.len().saturating_add(1), GFP_ATOMIC) else {
            // Going on would lose the item.
            panic!("no memory for an item without room");
        };
        let items = mem::take(self).into_iter();
        self.0 = Items::Many(larger);
        for item in items {
            self.push_or_grow(item);
        }
        self.push_or_grow(item);
    }

    /// Adds an item, or returns it if there is no room.
    pub fn push_within_capacity(&mut self, item: T) -> Result<(), T> {
        match &mut self.0 {
            Items::One(one @ None) => {
                *one = Some(item);
                Ok(())
            }
            Items::One(Some(_)) => Err(item),
            Items::Many(many) => many.push_within_capacity(item).map_err(|e| e.0),
        }
    }
}

/// Warns, once, of a list for which too little room was reserved.
#[cold]
fn warn_too_little() {
    static WARNED: Atomic<bool> = Atomic::new(false);

    warn_on!(!WARNED.xchg(true, Relaxed));
}

impl<T> Default for SmallVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for SmallVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Items::One(one) => one.as_slice(),
            Items::Many(many) => many,
        }
    }
}

impl<T> DerefMut for SmallVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Items::One(one) => one.as_mut_slice(),
            Items::Many(many) => many,
        }
    }
}

/// The items of a [`SmallVec`], taken out one by one.
pub struct IntoIter<T>(Rest<T>);

enum Rest<T> {
    One(Option<T>),
    Many(kvec::IntoIter<T, kernel::alloc::allocator::KVmalloc>),
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            Rest::One(one) => one.take(),
            Rest::Many(many) => many.next(),
        }
    }
}

impl<T> IntoIterator for SmallVec<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(match self.0 {
            Items::One(one) => Rest::One(one),
            Items::Many(many) => Rest::Many(many.into_iter()),
        })
    }
}

#[kernel::macros::kunit_tests(rdma_few)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_there_is_room_for() -> Result {
        for count in 0..4 {
            let mut few = SmallVec::with_capacity(count, GFP_KERNEL)?;
            for i in 0..count {
                assert_eq!(few.push_within_capacity(i), Ok(()));
            }
            assert_eq!(few.len(), count);
            for item in few.iter_mut() {
                *item = 2 * (*item + 1);
            }
            let few = few.try_map(GFP_KERNEL, |index, item| {
                assert_eq!(item, 2 * (index + 1));
                Ok::<_, Error>(item / 2)
            })?;
            assert_eq!(few.len(), count);
            let fails = SmallVec::try_map(few, GFP_KERNEL, |index, item| match index + 1 < count {
                true => Ok(item),
                false => Err(EINVAL),
            });
            assert_eq!(fails.is_err(), count > 0);
            let mut few = SmallVec::with_capacity(count, GFP_KERNEL)?;
            for i in 1..=count {
                assert_eq!(few.push_within_capacity(i), Ok(()));
            }
            let mut sum = 0;
            few.consume(|item| sum += item);
            assert_eq!(sum, count * (count + 1) / 2);
            let mut few = SmallVec::with_capacity(count, GFP_KERNEL)?;
            for i in 1..=count {
                assert_eq!(few.push_within_capacity(i), Ok(()));
            }
            assert_eq!(few.into_iter().sum::<usize>(), count * (count + 1) / 2);
        }
        let mut one = SmallVec::with_capacity(1, GFP_KERNEL)?;
        assert_eq!(one.push_within_capacity(1), Ok(()));
        assert_eq!(one.push_within_capacity(2), Err(2));
        assert_eq!(one.len(), 1);
        assert_eq!((one.take_only(), one.take_only()), (Some(1), None));
        let mut two = SmallVec::with_capacity(2, GFP_KERNEL)?;
        assert_eq!(two.push_within_capacity(1), Ok(()));
        assert_eq!((two.take_only(), two.take_only()), (Some(1), None));
        assert_eq!(two.push_within_capacity(1), Ok(()));
        assert_eq!(two.push_within_capacity(2), Ok(()));
        assert_eq!((two.take_only(), two.len()), (None, 2));
        Ok(())
    }

    #[test]
    fn items_without_room_are_not_lost() -> Result {
        for reserved in 0..4 {
            let mut few = SmallVec::with_capacity(reserved, GFP_KERNEL)?;
            let mut count = 0;
            while !few.push_or_grow(Arc::new(count, GFP_KERNEL)?) {
                count += 1;
            }
            assert_eq!(count, reserved.max(1));
            for more in 1..4 {
                assert!(few.push_or_grow(Arc::new(count + more, GFP_KERNEL)?));
            }
            assert!(few.into_iter().map(|item| *item).eq(0..=count + 3));
        }
        Ok(())
    }
}
