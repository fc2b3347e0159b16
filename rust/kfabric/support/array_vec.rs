// SPDX-License-Identifier: GPL-2.0

//! Lists of a few items, in place.

use core::{
    fmt,
    mem::MaybeUninit,
    ops::Deref,
    slice, //
};

/// A list of at most `MOST` items, in place. Nothing is written to the room for those that aren't there,
/// so an empty one costs nothing.
///
/// # Invariants
///
/// The first `count` items, of at most `MOST`, are there.
#[derive(Clone, Copy)]
pub(crate) struct ArrayVec<T: Copy, const MOST: usize> {
    items: [MaybeUninit<T>; MOST],
    count: usize,
}

impl<T: Copy, const MOST: usize> ArrayVec<T, MOST> {
    /// An empty list.
    #[inline]
    pub(crate) fn new() -> Self {
        // INVARIANT: None is there.
        Self {
            items: [MaybeUninit::uninit(); MOST],
            count: 0,
        }
    }

    /// Adds an item; gives it back if there is no room.
    pub(crate) fn push(&mut self, item: T) -> Result<(), T> {
        let Some(free) = self.items.get_mut(self.count) else {
            return Err(item);
        };
        free.write(item);
        // INVARIANT: One more is there.
        self.count += 1;
        Ok(())
    }

    /// Takes all out.
    pub(crate) fn clear(&mut self) {
        // INVARIANT: None has to be there.
        self.count = 0;
    }
}

impl<T: Copy, const MOST: usize> Deref for ArrayVec<T, MOST> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: So many items of `items` are there, by the type invariant.
        unsafe { slice::from_raw_parts(self.items.as_ptr().cast(), self.count) }
    }
}

impl<T: Copy + fmt::Debug, const MOST: usize> fmt::Debug for ArrayVec<T, MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[kernel::macros::kunit_tests(kfabric_array_vec)]
mod tests {
    use super::*;

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
}
