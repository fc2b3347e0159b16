// SPDX-License-Identifier: GPL-2.0

//! Fast memory regions kept ready, by size.
//!
//! A region of one page doesn't take a device region of the device's maximum: sizes go up in
//! powers of two. Regions that come back wait in line behind those that came before, so that a
//! key is not used again soon.
//!
//! Lock order: a class's lock is a leaf; regions are made and destroyed without it.

use core::mem;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};
use kfabric::{
    workqueue::OwnedQueue,
    NoIo, //
};
use rdma::{
    mr::{
        FastMr,
        Kind, //
    },
    Pd, //
};

/// Sizes from one page to 2^(CLASSES - 1), more than any device has.
const CLASSES: usize = 20;

/// Most pages of a region.
pub(crate) const MOST_PAGES: u32 = 1 << (CLASSES - 1);

/// How many regions of a size that is in use are kept ready ahead of need.
const READY: usize = 8;

/// How many regions that came back are kept per size.
const KEPT: usize = 256;

/// The pool of a domain.
#[pin_data]
pub(crate) struct Pool {
    pd: Arc<Pd>,
    /// Most pages of one region of the device.
    max_pages: u32,
    queue: Arc<OwnedQueue>,
    #[pin]
    classes: Mutex<[Class; CLASSES]>,
    #[pin]
    refill: Work<Self>,
}

/// What there is of one size: a line that regions leave from `front` and join at `back`.
struct Class {
    front: KVec<FastMr>,
    back: KVec<FastMr>,
    /// Wanted before, so kept ready.
    wanted: bool,
}

/// The size class of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size(usize);

impl Size {
    /// The smallest class that holds this many pages; `None` if there is none.
    fn of(pages: u32) -> Option<Self> {
        let class = usize::try_from(pages.checked_next_power_of_two()?.trailing_zeros()).ok()?;
        (class < CLASSES).then_some(Self(class))
    }

    /// How many pages a region of this class has.
    fn pages(self, max_pages: u32) -> u32 {
        u32::try_from(self.0)
            .ok()
            .and_then(|class| 1u32.checked_shl(class))
            .map_or(max_pages, |pages| pages.min(max_pages))
    }
}

kernel::impl_has_work! {
    impl HasWork<Self> for Pool { self.refill }
}

impl WorkItem for Pool {
    type Pointer = Arc<Self>;

    /// Gets ready what is wanted. Failures are left to the one who needs a region.
    fn run(this: Arc<Self>) {
        // Others wait for the locks that this takes, on the way of writing memory back.
        let _noio = NoIo::enter();
        while let Some(size) = this.short_of() {
            let Ok(mr) = this.make(size) else {
                return;
            };
            if this.put_back(size, mr, READY).is_err() {
                return;
            }
        }
    }
}

impl Pool {
    /// An empty pool. Nothing is made before it is wanted.
    pub(crate) fn new(pd: Arc<Pd>, max_pages: u32, queue: Arc<OwnedQueue>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                pd,
                max_pages,
                queue,
                classes <- new_mutex!([const { Class::new() }; CLASSES]),
                refill <- kernel::new_work!("kfi_verbs::Pool::refill"),
            }),
            GFP_KERNEL,
        )
    }

    /// A region of at least this many pages. May sleep.
    pub(crate) fn take(self: &Arc<Self>, pages: u32) -> Result<FastMr> {
        let size = Size::of(pages).ok_or(E2BIG)?;
        let (mr, left) = {
            let mut classes = self.classes.lock();
            let class = classes.get_mut(size.0).ok_or(E2BIG)?;
            class.wanted = true;
            (class.pop(), class.len())
        };
        if left < READY / 2 {
            // Already queued is as good.
            let _ = self.queue.enqueue(self.clone());
        }
        match mr {
            Some(mr) => Ok(mr),
            None => self.make(size).or_else(|_| {
                // What lies idle here counts on the device like what is used.
                self.empty();
                self.make(size)
            }),
        }
    }

    /// Takes a region that no peer can reach. May sleep.
    pub(crate) fn put(&self, mr: FastMr) {
        if let (Kind::Pages, false, Some(size)) =
            (mr.kind(), mr.is_spent(), Size::of(mr.max_pages()))
        {
            // One too many, or no memory to keep it: it is deregistered.
            let _ = self.put_back(size, mr, KEPT);
        }
    }

    fn make(&self, size: Size) -> Result<FastMr> {
        FastMr::alloc(&self.pd, Kind::Pages, size.pages(self.max_pages))
    }

    /// Puts a region in line, unless there are `most` already or there is no memory for it.
    fn put_back(&self, size: Size, mr: FastMr, most: usize) -> Result<(), FastMr> {
        let mut classes = self.classes.lock();
        match classes.get_mut(size.0) {
            Some(class) if class.len() < most => class.push(mr),
            _ => Err(mr),
        }
    }

    /// A size of which there are fewer than there should be ready.
    fn short_of(&self) -> Option<Size> {
        let classes = self.classes.lock();
        let short = |class: &Class| class.wanted && class.len() < READY;
        classes.iter().position(short).map(Size)
    }

    /// Deregisters all that is kept ready. Sleeps.
    fn empty(&self) {
        for index in 0..CLASSES {
            let idle = {
                let mut classes = self.classes.lock();
                classes.get_mut(index).map(Class::take)
            };
            drop(idle);
        }
    }

    /// Sleeps until no refill is under way. None begins while nobody takes a region.
    pub(crate) fn settle(&self) {
        self.queue.flush();
    }

    /// Stops refilling, and empties the pool. Sleeps until the regions are gone.
    pub(crate) fn close(&self) {
        for class in self.classes.lock().iter_mut() {
            class.wanted = false;
        }
        self.settle();
        self.empty();
    }
}

impl Class {
    const fn new() -> Self {
        Self {
            front: KVec::new(),
            back: KVec::new(),
            wanted: false,
        }
    }

    /// Takes out all that there is.
    fn take(&mut self) -> (KVec<FastMr>, KVec<FastMr>) {
        (mem::take(&mut self.front), mem::take(&mut self.back))
    }

    fn len(&self) -> usize {
        self.front.len() + self.back.len()
    }

    fn pop(&mut self) -> Option<FastMr> {
        if self.front.is_empty() {
            mem::swap(&mut self.front, &mut self.back);
            self.front.reverse();
        }
        self.front.pop()
    }

    fn push(&mut self, mr: FastMr) -> Result<(), FastMr> {
        if self.back.reserve(1, GFP_KERNEL).is_err() {
            return Err(mr);
        }
        self.back.push_within_capacity(mr).map_err(|e| e.0)
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_pool)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let pages = |wanted| Size::of(wanted).map(|size| size.pages(512));
        assert_eq!(pages(1), Some(1));
        assert_eq!(pages(2), Some(2));
        assert_eq!(pages(3), Some(4));
        assert_eq!(pages(257), Some(512));
        assert_eq!(pages(512), Some(512));
        assert_eq!(Size::of(400).map(|size| size.pages(500)), Some(500));
        assert_eq!(Size::of(u32::MAX), None);
        assert_eq!(Size::of(1 << 20), None);
    }
}
