// SPDX-License-Identifier: GPL-2.0

//! Where device regions come back to their pool from contexts that can't sleep: from here they join their lines
//! when somebody comes for one, who can, or when what was idle is given back.
//!
//! Lock order: the lock is a leaf.

use crate::prelude::*;

/// How many may be here.
const ROOM: usize = 64;

/// The regions that have come back.
#[pin_data]
pub(crate) struct ReturnList<T> {
    #[pin]
    came: IrqLock<Came<T>>,
    /// Whether there are any, for who looks without the lock.
    any: Atomic<bool>,
}

struct Came<T> {
    /// With its capacity from the beginning.
    items: KVec<T>,
    /// Number of items for which space is promised.
    promised: usize,
    /// Somebody looks here before long, or is told to.
    watched: bool,
}

/// Room for one.
pub(crate) struct Place<'a, T>(&'a ReturnList<T>);

impl<T: Send> ReturnList<T> {
    /// Makes an empty inlet, which nobody watches. May sleep.
    pub(super) fn new() -> Result<impl PinInit<Self>> {
        let came = Came {
            items: KVec::with_capacity(ROOM, GFP_KERNEL)?,
            promised: 0,
            watched: false,
        };
        Ok(pin_init!(Self {
            came <- new_irq_lock!(came, c"kfi_verbs_inlet"),
            any: Atomic::new(false),
        }))
    }

    /// Reserves space for an item that may come back, if there is some. Any context.
    pub(super) fn place(&self) -> Option<Place<'_, T>> {
        self.came.with(|came| {
            if came.items.len() + came.promised >= ROOM {
                return None;
            }
            came.promised += 1;
            Some(Place(self))
        })
    }

    /// Checks whether no item has come back. Any context.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Relaxed)
    }

    /// Takes one that has come back; which one is no matter. Any context.
    pub(super) fn take(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.came.with(|came| {
            let item = came.items.pop();
            self.any.store(!came.items.is_empty(), Relaxed);
            item
        })
    }

    /// Notes whether somebody looks here before long. Returns whether there is anything. Any
    /// context.
    pub(super) fn set_watched(&self, watched: bool) -> bool {
        self.came.with(|came| {
            came.watched = watched;
            !came.items.is_empty()
        })
    }
}

impl<T> Place<'_, T> {
    /// Puts the item in. Returns whether somebody must be told to look here, which is returned
    /// once. Any context.
    pub(super) fn put(self, item: T) -> bool {
        let told = self.0.came.with(|came| {
            came.items.push_reserved(item);
            came.promised -= 1;
            self.0.any.store(true, Relaxed);
            mem::replace(&mut came.watched, true)
        });
        mem::forget(self);
        !told
    }
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        self.0.came.with(|came| came.promised -= 1);
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_inlet)]
mod tests {
    use super::*;
    use core::iter;

    fn inlet() -> Result<Pin<KBox<ReturnList<usize>>>> {
        KBox::pin_init(ReturnList::new()?, GFP_KERNEL)
    }

    #[test]
    fn what_came_is_taken_once() -> Result {
        let inlet = inlet()?;
        for i in 0..3 {
            inlet.place().ok_or(ENOSPC)?.put(i);
        }
        assert!(!inlet.is_empty());
        assert_eq!(iter::from_fn(|| inlet.take()).sum::<usize>(), 3);
        assert!(inlet.is_empty() && inlet.take().is_none());
        Ok(())
    }

    #[test]
    fn room_that_was_promised_is_kept() -> Result {
        let inlet = inlet()?;
        let kept = inlet.place().ok_or(ENOSPC)?;
        let mut others = 0;
        while let Some(place) = inlet.place() {
            place.put(others);
            others += 1;
        }
        assert_eq!(others, ROOM - 1);
        kept.put(others);
        assert_eq!(iter::from_fn(|| inlet.take()).count(), ROOM);
        // Also what isn't used.
        drop(inlet.place());
        assert_eq!(
            iter::from_fn(|| inlet.place().map(core::mem::forget)).count(),
            ROOM
        );
        Ok(())
    }

    #[test]
    fn who_is_to_look_is_told_once() -> Result {
        let inlet = inlet()?;
        let put = || Ok::<_, Error>(inlet.place().ok_or(ENOSPC)?.put(7));
        assert!(put()?);
        assert!(!put()?);
        // It was looked here, and will be.
        assert!(inlet.set_watched(true));
        assert!(!put()?);
        // It won't be any more, and something has come meanwhile.
        assert!(inlet.set_watched(false));
        assert!(put()?);
        while inlet.take().is_some() {}
        assert!(!inlet.set_watched(false));
        Ok(())
    }
}
