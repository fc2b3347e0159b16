// SPDX-License-Identifier: GPL-2.0

//! The regions of a domain, and who releases them: their owner, or the device's removal.

use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        lock::{
            mutex::MutexBackend,
            Guard, //
        },
        CondVar,
        Mutex, //
    }, //
};

/// Every open region of a domain, by a number of its own.
///
/// A region can be [worked on](Regions::with) where it is. It is released by whoever takes it out, so once only. Closing one that removal took
/// waits until removal has released it: when a close returns, no peer reaches the memory.
///
/// Lock order: its lock is a leaf; nothing is released under it.
#[pin_data]
pub(crate) struct Regions<R, E> {
    #[pin]
    table: Mutex<Table<R, E>>,
    #[pin]
    released: CondVar,
}

struct Table<R, E> {
    /// Without the regions that are being worked on, but with their places.
    live: RBTree<u64, Option<R>>,
    /// Number of the next region.
    next: u64,
    /// How many were taken out and are not yet released.
    releasing: usize,
    /// How many are being worked on.
    working: usize,
    /// Removal has taken, or is taking, what is left.
    removed: bool,
    /// Removal could not release all that it took.
    stuck: Option<E>,
}

/// A place for a region, allocated before there is one.
pub(crate) struct Place<R>(RBTreeNodeReservation<u64, Option<R>>);

impl<R> Place<R> {
    /// May sleep.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(RBTreeNodeReservation::new(GFP_KERNEL)?))
    }
}

impl<R: Unpin, E: Copy + Unpin> Regions<R, E> {
    /// An empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(Table {
                live: RBTree::new(),
                next: 0,
                releasing: 0,
                working: 0,
                removed: false,
                stuck: None,
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
        table.live.insert(place.0.into_node(number, Some(region)));
        number
    }

    /// Releases the region of this number with `release`; if removal has it, waits until that has
    /// released it, and fails if any region was stuck then. Its place goes to `place`, unless removal
    /// has it. Sleeps as `release` does.
    pub(crate) fn close(
        &self,
        number: u64,
        place: &mut Option<Place<R>>,
        release: impl FnOnce(R) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut table = self.table.lock();
        match table.live.get_mut(&number).and_then(Option::take) {
            Some(region) => {
                let node = table.live.remove_node(&number);
                *place = node.map(|node| Place(node.into_reservation()));
                table.releasing += 1;
                drop(table);
                let released = release(region);
                self.table.lock().releasing -= 1;
                self.released.notify_all();
                released
            }
            None => self.wait_released(table),
        }
    }

    /// Works on the region of this number, which nobody else may be closing or working on. `None`
    /// if removal has it. Sleeps as `f` does.
    pub(crate) fn with<T>(&self, number: u64, f: impl FnOnce(&mut R) -> T) -> Option<T> {
        let mut region = {
            let mut table = self.table.lock();
            let region = table.live.get_mut(&number)?.take()?;
            table.working += 1;
            region
        };
        let result = f(&mut region);
        let mut table = self.table.lock();
        if let Some(place) = table.live.get_mut(&number) {
            *place = Some(region);
        }
        table.working -= 1;
        drop(table);
        self.released.notify_all();
        Some(result)
    }

    /// Releases all regions that are left, and waits for those that their owners are releasing.
    /// Nobody may be inserting any more. Sleeps as `release` does.
    pub(crate) fn remove_all(&self, mut release: impl FnMut(R) -> Result<(), E>) {
        let mut table = self.table.lock();
        table.removed = true;
        while table.working > 0 {
            self.released.wait(&mut table);
        }
        loop {
            let Some(cursor) = table.live.cursor_front_mut() else {
                break;
            };
            let (_, node) = cursor.remove_current();
            table.releasing += 1;
            drop(table);
            let (_, region) = node.to_key_value();
            let released = region.map_or(Ok(()), &mut release);
            table = self.table.lock();
            table.releasing -= 1;
            table.stuck = table.stuck.or(released.err());
        }
        self.released.notify_all();
        // Those who close what is stuck are told.
        let _ = self.wait_released(table);
    }

    fn wait_released(&self, mut table: Guard<'_, Table<R, E>, MutexBackend>) -> Result<(), E> {
        while table.releasing > 0 || (table.removed && !table.live.is_empty()) {
            self.released.wait(&mut table);
        }
        table.stuck.map_or(Ok(()), Err)
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_regions)]
mod tests {
    use super::*;
    use kernel::sync::Arc;

    fn regions(values: &[u32]) -> Result<Arc<Regions<u32, u8>>> {
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
        let closed = regions.close(1, &mut None, |region| {
            released = region;
            Ok(())
        });
        assert_eq!((closed, released), (Ok(()), 11));
        assert_eq!(regions.close(1, &mut None, |_| Err(1)), Ok(()));
        assert_eq!(regions.close(2, &mut None, |_| Err(7)), Err(7));
        Ok(())
    }

    #[test]
    fn worked_on_in_place() -> Result {
        let regions = regions(&[10, 11])?;
        assert_eq!(
            regions.with(1, |region| core::mem::replace(region, 20)),
            Some(11)
        );
        // Not twice at a time.
        let nested = regions.with(1, |_| regions.with(1, |_| ()));
        assert_eq!(nested, Some(None));
        let mut sum = 0;
        regions.remove_all(|region| {
            sum += region;
            Ok(())
        });
        assert_eq!(sum, 30);
        assert_eq!(regions.with(0, |_| ()), None);
        Ok(())
    }

    #[test]
    fn removal_takes_what_is_left() -> Result {
        let regions = regions(&[10, 11, 12])?;
        let mut sum = 0;
        assert_eq!(regions.close(0, &mut None, |_| Ok(())), Ok(()));
        regions.remove_all(|region| {
            sum += region;
            Ok(())
        });
        assert_eq!(sum, 23);
        assert_eq!(regions.close(2, &mut None, |_| Err(1)), Ok(()));
        Ok(())
    }

    #[test]
    fn what_removal_could_not_release_is_told() -> Result {
        let regions = regions(&[10, 11])?;
        regions.remove_all(|region| if region == 10 { Err(5) } else { Ok(()) });
        assert_eq!(regions.close(0, &mut None, |_| Ok(())), Err(5));
        Ok(())
    }
}
