// SPDX-License-Identifier: GPL-2.0

//! The device regions of one region that is filled again and again: taken without a wait, and replaced by a work item.
//!
//! A device region is replaced when half of its keys have been used, so that no key comes back; or if
//! it could only be deregistered. Where a device region must keep its rights, there are two: one
//! that peers read, and one that they write.
//!
//! Lock order: `pd`, then the locks of the driver. `stock` is a leaf, which is taken in any context.

use crate::prelude::*;

/// Most device regions: two, and one that replaces another which is in use.
const MOST: usize = 3;

/// The device regions.
#[pin_data]
pub(crate) struct MrStock {
    pages: u32,
    queue: Arc<OwnedQueue>,
    /// `None` when it is closed. Held while device regions are made, so that none is made afterwards.
    #[pin]
    pd: Mutex<Option<Arc<Pd>>>,
    #[pin]
    stock: IrqLock<Stock<FastMr>>,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for MrStock { self.work }
}

/// The properties of a device region by which the stock selects one.
trait Stocked {
    /// Checks whether it must be replaced soon.
    fn is_worn(&self) -> bool;
    /// Checks whether it must keep its rights.
    fn keeps_rights(&self) -> bool;
    /// Checks whether it can be registered with these rights.
    fn serves(&self, access: AccessFlags) -> bool;
}

impl Stocked for FastMr {
    fn is_worn(&self) -> bool {
        self.is_worn()
    }

    fn keeps_rights(&self) -> bool {
        self.keeps_rights()
    }

    fn serves(&self, access: AccessFlags) -> bool {
        self.may_have(access) && !self.is_spent()
    }
}

/// The places of the device regions. A place is empty while its device region is in use or missing.
struct Stock<M> {
    places: [Option<M>; MOST],
    /// Number of device regions that there should be.
    wanted: usize,
    /// A device region is in use; whether that is worn.
    in_use: Option<bool>,
    /// A task has found no device region for its rights.
    missed: bool,
}

impl<M: Stocked> Stock<M> {
    /// Makes an empty stock.
    fn new(wanted: usize) -> Self {
        Self {
            places: [const { None }; MOST],
            wanted,
            in_use: None,
            missed: false,
        }
    }

    /// Takes a device region that serves these rights: one that is not worn, if there is one, and one that can't serve
    /// others.
    fn take(&mut self, access: AccessFlags) -> Option<M> {
        let serving = |place: &&mut Option<M>| place.as_ref().is_some_and(|mr| mr.serves(access));
        let rank =
            |place: &&mut Option<M>| place.as_ref().map(|mr| (mr.is_worn(), !mr.keeps_rights()));
        let best = self.places.iter_mut().filter(serving).min_by_key(rank);
        let taken = best.and_then(Option::take);
        match &taken {
            Some(mr) => self.in_use = Some(mr.is_worn()),
            None => self.missed = true,
        }
        taken
    }

    /// Adds a device region. Returns it if there is no place.
    fn put(&mut self, mr: M) -> Option<M> {
        match self.places.iter_mut().find(|place| place.is_none()) {
            Some(place) => place.replace(mr),
            None => Some(mr),
        }
    }

    /// Returns the number of device regions, the one in use included.
    fn total(&self) -> usize {
        self.places.iter().flatten().count() + usize::from(self.in_use.is_some())
    }

    /// Checks whether one is missing: for one that is worn or gone, or for rights that no other has.
    fn lacks_one(&self) -> bool {
        let fresh = self.places.iter().flatten().filter(|mr| !mr.is_worn());
        let fresh = fresh.count() + usize::from(self.in_use == Some(false));
        self.total() <= self.wanted && (fresh < self.wanted || self.missed)
    }

    /// Takes one that has been replaced.
    fn replaced(&mut self) -> Option<M> {
        if self.total() <= self.wanted {
            return None;
        }
        let rank =
            |place: &&mut Option<M>| place.as_ref().map(|mr| (mr.is_worn(), mr.keeps_rights()));
        let worst = self.places.iter_mut().max_by_key(rank)?;
        worst.take_if(|mr| mr.is_worn() || mr.keeps_rights())
    }
}

impl MrStock {
    /// Makes `count` device regions for up to `pages` pages. `queue` replaces them. May sleep.
    pub(crate) fn new(
        pd: &Arc<Pd>,
        queue: Arc<OwnedQueue>,
        pages: u32,
        count: usize,
    ) -> Result<Arc<Self>> {
        let mut stock = Stock::new(count);
        for _ in 0..count {
            // There is a place.
            drop(stock.put(FastMr::alloc(pd, Kind::Pages, pages)?));
        }
        Arc::pin_init(
            pin_init!(Self {
                pages,
                queue,
                pd <- new_mutex!(Some(pd.clone())),
                stock <- new_irq_lock!(stock, c"kfi_verbs_stock"),
                work <- new_work!("kfi_verbs::MrStock::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes a device region that may have these rights, to be [put](Self::put) back or [lost](Self::lose). Any context.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: there is none now. A work item makes one.
    pub(crate) fn take(self: &Arc<Self>, access: AccessFlags) -> Result<FastMr, Refusal> {
        let mr = self.stock.with(|stock| stock.take(access));
        mr.ok_or_else(|| {
            self.make_later();
            Refusal::new(Errno::EAGAIN, c"the region's keys are being replaced")
        })
    }

    /// Takes a device region back, which no peer reaches. Any context.
    pub(crate) fn put(self: &Arc<Self>, mr: FastMr) {
        let (none, is_due) = self.stock.with(|stock| {
            stock.in_use = None;
            let none = stock.put(mr);
            (none, stock.lacks_one() || stock.total() > stock.wanted)
        });
        // There is a place for each that was taken.
        drop(none);
        if is_due {
            self.make_later();
        }
    }

    /// Notes that the device region that was taken is gone, and makes another one. If there is no memory, that is left to
    /// the work item. May sleep.
    pub(crate) fn lose(&self) {
        self.stock.with(|stock| stock.in_use = None);
        self.make();
    }

    /// Has the work item make the missing device regions. Any context.
    fn make_later(self: &Arc<Self>) {
        // Already queued is as good.
        let _ = self.queue.enqueue(self.clone());
    }

    /// Makes missing device regions, and deregisters those that have been replaced. May sleep.
    fn make(&self) {
        let pd = self.pd.lock();
        while let Some(pd) = pd
            .as_ref()
            .filter(|_| self.stock.with(|stock| stock.lacks_one()))
        {
            let Ok(mr) = FastMr::alloc(pd, Kind::Pages, self.pages) else {
                return;
            };
            let none = self.stock.with(|stock| {
                stock.missed = false;
                stock.put(mr)
            });
            drop(none);
        }
        while let Some(mr) = self.stock.with(|stock| stock.replaced()) {
            drop(mr);
        }
    }

    /// Deregisters the device regions. None is in use. Sleeps.
    pub(crate) fn close(&self) {
        let mut pd = self.pd.lock();
        let places = self.stock.with(|stock| mem::take(&mut stock.places));
        drop(places);
        *pd = None;
    }
}

impl WorkItem for MrStock {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // Storage waits for its regions on the way of writing memory back.
        let _noio = NoIo::enter();
        this.make();
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_stock)]
mod tests {
    use super::*;

    /// A device region that has been used so often, with the rights that it keeps.
    #[derive(Debug, PartialEq)]
    struct Fake(u8, Option<AccessFlags>);

    impl Stocked for Fake {
        fn is_worn(&self) -> bool {
            self.0 >= 2
        }

        fn keeps_rights(&self) -> bool {
            self.1.is_some()
        }

        fn serves(&self, access: AccessFlags) -> bool {
            self.1.is_none_or(|own| own == access) && self.0 < 4
        }
    }

    fn stock<const N: usize>(wanted: usize, mrs: [Fake; N]) -> Stock<Fake> {
        let mut stock = Stock::new(wanted);
        for mr in mrs {
            assert!(stock.put(mr).is_none());
        }
        stock
    }

    fn rights() -> (AccessFlags, AccessFlags) {
        (
            AccessFlags::default() | rdma::Access::RemoteRead,
            AccessFlags::default() | rdma::Access::RemoteWrite,
        )
    }

    #[test]
    fn each_kind_of_rights_has_its_own() {
        let (read, write) = rights();
        let mut stock = stock(2, [Fake(0, None), Fake(1, Some(read))]);
        assert_eq!(stock.take(read), Some(Fake(1, Some(read))));
        assert!(stock.put(Fake(1, Some(read))).is_none());
        assert_eq!(stock.take(write), Some(Fake(0, None)));
        assert!(stock.put(Fake(1, Some(write))).is_none());
        stock.in_use = None;
        assert!(!stock.lacks_one() && stock.replaced().is_none());
        // None has both rights: another one takes the place of one of these.
        assert!(stock.take(read | write).is_none());
        assert!(stock.lacks_one());
        (stock.missed, _) = (false, stock.put(Fake(0, None)));
        assert!(stock.replaced().is_some_and(|mr| mr.keeps_rights()));
        assert!(stock.replaced().is_none() && !stock.lacks_one());
        assert_eq!(stock.take(read | write), Some(Fake(0, None)));
    }

    #[test]
    fn worn_ones_are_replaced_also_in_use() {
        let (read, _) = rights();
        let mut stock = stock(1, [Fake(1, None)]);
        assert!(!stock.lacks_one());
        assert_eq!(stock.take(read), Some(Fake(1, None)));
        assert!(!stock.lacks_one());
        stock.in_use = Some(true);
        assert!(stock.lacks_one());
        assert!(stock.put(Fake(0, None)).is_none());
        assert!(!stock.lacks_one() && stock.replaced().is_none());
        stock.in_use = None;
        assert!(stock.put(Fake(2, None)).is_none());
        assert_eq!(stock.replaced(), Some(Fake(2, None)));
        assert_eq!(stock.take(read), Some(Fake(0, None)));
    }

    #[test]
    fn spent_ones_serve_nobody() {
        let (read, _) = rights();
        let mut stock = stock(1, [Fake(4, None)]);
        assert!(stock.take(read).is_none());
        assert!(stock.lacks_one());
        assert_eq!(stock.in_use, None);
    }
}
