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
/// A region can be [worked on](Roster::with) where it is. It is released by whoever takes it out,
/// so once only. Closing one that removal took waits until removal has released it: when a close
/// returns, no peer reaches the memory.
///
/// Lock order: its lock is a leaf; nothing is released under it.
#[pin_data]
pub(crate) struct Roster<R, E> {
    #[pin]
    state: Mutex<State<R, E>>,
    #[pin]
    released: CondVar,
}

struct State<R, E> {
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

impl<R: Unpin, E: Copy + Unpin> Roster<R, E> {
    /// An empty state.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_mutex!(State {
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
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.live.insert(place.0.into_node(number, Some(region)));
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
        let mut state = self.state.lock();
        match state.live.get_mut(&number).and_then(Option::take) {
            Some(region) => {
                let node = state.live.remove_node(&number);
                *place = node.map(|node| Place(node.into_reservation()));
                state.releasing += 1;
                drop(state);
                let released = release(region);
                self.state.lock().releasing -= 1;
                self.released.notify_all();
                released
            }
            None => self.wait_released(state),
        }
    }

    /// Works on the region of this number, which nobody else may be closing or working on. `None`
    /// if removal has it. Sleeps as `f` does.
    pub(crate) fn with<T>(&self, number: u64, f: impl FnOnce(&mut R) -> T) -> Option<T> {
        let mut region = {
            let mut state = self.state.lock();
            let region = state.live.get_mut(&number)?.take()?;
            state.working += 1;
            region
        };
        let result = f(&mut region);
        let mut state = self.state.lock();
        if let Some(place) = state.live.get_mut(&number) {
            *place = Some(region);
        }
        state.working -= 1;
        drop(state);
        self.released.notify_all();
        Some(result)
    }

    /// Releases all regions that are left, and waits for those that their owners are releasing.
    /// Nobody may be inserting any more. Sleeps as `release` does.
    pub(crate) fn remove_all(&self, mut release: impl FnMut(R) -> Result<(), E>) {
        let mut state = self.state.lock();
        state.removed = true;
        while state.working > 0 {
            self.released.wait(&mut state);
        }
        loop {
            let Some(cursor) = state.live.cursor_front_mut() else {
                break;
            };
            let (_, node) = cursor.remove_current();
            state.releasing += 1;
            drop(state);
            let (_, region) = node.to_key_value();
            let released = region.map_or(Ok(()), &mut release);
            state = self.state.lock();
            state.releasing -= 1;
            state.stuck = state.stuck.or(released.err());
        }
        self.released.notify_all();
        // Those who close what is stuck are told.
        let _ = self.wait_released(state);
    }

    fn wait_released(&self, mut state: Guard<'_, State<R, E>, MutexBackend>) -> Result<(), E> {
        while state.releasing > 0 || (state.removed && !state.live.is_empty()) {
            self.released.wait(&mut state);
        }
        state.stuck.map_or(Ok(()), Err)
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_roster)]
mod tests {
    use super::*;
    use kernel::sync::Arc;

    fn regions(values: &[u32]) -> Result<Arc<Roster<u32, u8>>> {
        let regions = Arc::pin_init(Roster::new(), GFP_KERNEL)?;
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
