// SPDX-License-Identifier: GPL-2.0

//! The live regions of a domain, and who releases them: their owner, or the device's removal.

use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        CondVar,
        Mutex, //
    }, //
};

/// Every live region of a domain, by a number of its own.
///
/// A region is released by whoever takes it out, so once only. Closing one that removal took
/// waits until removal has released it: when a close returns, no peer reaches the memory.
///
/// Lock order: its lock is a leaf; nothing is released under it.
#[pin_data]
pub(crate) struct Regions<R> {
    #[pin]
    table: Mutex<Table<R>>,
    #[pin]
    released: CondVar,
}

struct Table<R> {
    live: RBTree<u64, R>,
    /// Number of the next region.
    next: u64,
    /// How many were taken out and are not yet released.
    releasing: usize,
    /// Removal has taken, or is taking, what is left.
    removed: bool,
}

/// A place for a region, allocated before there is one.
pub(crate) struct Place<R>(RBTreeNodeReservation<u64, R>);

impl<R> Place<R> {
    /// May sleep.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(RBTreeNodeReservation::new(GFP_KERNEL)?))
    }
}

impl<R: Unpin> Regions<R> {
    /// An empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(Table {
                live: RBTree::new(),
                next: 0,
                releasing: 0,
                removed: false,
            }),
            released <- new_condvar!(),
        })
    }

    /// Puts a region in and gives its number. Can't fail: the caller is behind the gate, so
    /// removal has not begun to take regions. May sleep, but not for long.
    pub(crate) fn insert(&self, place: Place<R>, region: R) -> u64 {
        let mut table = self.table.lock();
        let number = table.next;
        table.next += 1;
        table.live.insert(place.0.into_node(number, region));
        number
    }

    /// Releases the region of this number with `release`; if removal has it, waits until that has
    /// released it. Sleeps as `release` does.
    pub(crate) fn close(&self, number: u64, release: impl FnOnce(R)) {
        let mut table = self.table.lock();
        match table.live.remove(&number) {
            Some(region) => {
                table.releasing += 1;
                drop(table);
                release(region);
                self.table.lock().releasing -= 1;
                self.released.notify_all();
            }
            None => self.wait_released(table),
        }
    }

    /// Releases all regions that are left, and waits for those that their owners are releasing.
    /// Nobody may be inserting any more. Sleeps as `release` does.
    pub(crate) fn remove_all(&self, mut release: impl FnMut(R)) {
        let mut table = self.table.lock();
        table.removed = true;
        loop {
            let Some(cursor) = table.live.cursor_front_mut() else {
                break;
            };
            let (_, node) = cursor.remove_current();
            table.releasing += 1;
            drop(table);
            let (_, region) = node.to_key_value();
            release(region);
            table = self.table.lock();
            table.releasing -= 1;
        }
        self.released.notify_all();
        self.wait_released(table);
    }

    fn wait_released(
        &self,
        mut table: kernel::sync::lock::Guard<'_, Table<R>, kernel::sync::lock::mutex::MutexBackend>,
    ) {
        while table.releasing > 0 || !table.live.is_empty() && table.removed {
            self.released.wait(&mut table);
        }
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_regions)]
mod tests {
    use super::*;
    use kernel::sync::Arc;

    fn regions(values: &[u32]) -> Result<Arc<Regions<u32>>> {
        let regions = Arc::pin_init(Regions::new(), GFP_KERNEL)?;
        for &value in values {
            regions.insert(Place::new()?, value);
        }
        Ok(regions)
    }

    #[test]
    fn released_once_by_the_owner() -> Result {
        let regions = regions(&[10, 11, 12])?;
        let mut released = 0;
        regions.close(1, |region| released = region);
        assert_eq!(released, 11);
        regions.close(1, |_| released = 0);
        assert_eq!(released, 11);
        Ok(())
    }

    #[test]
    fn removal_takes_what_is_left() -> Result {
        let regions = regions(&[10, 11, 12])?;
        let mut sum = 0;
        regions.close(0, |_| ());
        regions.remove_all(|region| sum += region);
        assert_eq!(sum, 23);
        regions.close(2, |_| sum = 0);
        assert_eq!(sum, 23);
        Ok(())
    }
}
