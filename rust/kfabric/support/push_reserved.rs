// SPDX-License-Identifier: GPL-2.0

//! Adding items to a list that has room for each of them, which no item may miss.

use core::mem;
use kernel::{
    alloc::{
        Allocator,
        Vec, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    warn_on, //
};

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

#[kernel::macros::kunit_tests(kfabric_push_reserved)]
mod tests {
    use super::*;
    use crate::support::cache::ListVec;
    use kernel::sync::Arc;

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
