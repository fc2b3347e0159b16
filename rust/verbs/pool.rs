// SPDX-License-Identifier: GPL-2.0

//! Fast memory regions kept ready, by size.
//!
//! A region of one page doesn't take a device region of the device's maximum: sizes go up in powers
//! of two, those of large pages by themselves. Returned regions wait in line behind those that came
//! before, so that a key is not used again soon. Regions that nobody needs for a while are given
//! back.
//!
//! Lock order: `state` is a leaf but for the timer; regions are made and destroyed without it.

pub(crate) mod figures;
pub(crate) mod lines;
mod reserve;
mod return_list;

use self::{
    lines::{
        Lines,
        Size, //
    },
    return_list::{
        Place,
        ReturnList, //
    }, //
};
use crate::{
    params,
    prelude::*, //
};
use core::iter;
use kernel::{
    impl_has_hr_timer,
    sync::ArcBorrow,
    time::{
        hrtimer::{
            ArcHrTimerHandle,
            HrTimer,
            HrTimerCallback,
            HrTimerCallbackContext,
            HrTimerPointer,
            HrTimerRestart,
            RelativeMode, //
        },
        Monotonic, //
    }, //
};
use kfabric::{
    trace::{
        self,
        DomainLabel, //
    },
    vec::Fifo,
    MrExtMemory, //
};
use rdma::sg::SpareTable;

/// The pool of a domain.
#[pin_data]
pub(crate) struct Pool {
    pd: Arc<Pd>,
    /// The names and the number of the domain, for events.
    label: Arc<DomainLabel>,
    /// Most pages of one region of the device.
    max_pages: u32,
    queue: Arc<OwnedQueue>,
    #[pin]
    state: Mutex<State>,
    #[pin]
    inlet: ReturnList<FastMr>,
    /// True if a period has ended and its idle regions have not been given back yet.
    due: Atomic<bool>,
    pub(crate) count: Arc<PoolCounters>,
    #[pin]
    work: Work<Self>,
    #[pin]
    timer: HrTimer<Self>,
}

struct State {
    lines: Lines<FastMr>,
    /// Kept for regions that must not fail, whatever else happens here.
    reserve: Option<Reserve>,
    /// The period that is under way. Dropped before the next one begins.
    period: Option<ArcHrTimerHandle<Pool>>,
}

/// The parts of `promised` regions, except those that are in use.
struct Reserve {
    size: Size,
    promised: usize,
    /// Number of regions that have begun and have not ended.
    in_use: usize,
    mrs: Fifo<FastMr>,
    /// Tables for lists. A table in use stays here, and is skipped.
    tables: Fifo<SpareTable>,
    memory: KVVec<MrExtMemory>,
}

impl Reserve {
    /// Returns the number of missing device regions: they were deregistered and not replaced yet.
    fn missing(&self) -> usize {
        self.promised
            .saturating_sub(self.in_use)
            .saturating_sub(self.mrs.len())
    }

    /// Checks whether the reserve takes a device region: it has the right size, and the reserve has
    /// fewer than were promised.
    fn takes(&self, size: Size, mr: &FastMr) -> bool {
        // A region of the reserve may have any rights.
        size == self.size && !mr.keeps_rights() && self.mrs.len() < self.promised
    }
}

/// How many are passed over for one that may have the rights that are wanted.
const PASSED_OVER: usize = 4;

impl State {
    /// Takes the first region of a size in line that may have these rights. For regions that are asked for `together`,
    /// see [`Pool::take`].
    ///
    /// # Errors
    ///
    /// - `Some`: the first few regions may not have the rights. The caller must deregister this one to make space.
    /// - `None`: no region is available.
    #[inline]
    fn next(
        &mut self,
        size: Size,
        access: AccessFlags,
        together: bool,
    ) -> Result<FastMr, Option<FastMr>> {
        let first = self.take(size, together).ok_or(None)?;
        match first.may_have(access) {
            true => Ok(first),
            false => self.next_but(first, size, access, together),
        }
    }

    /// Takes a region as [`next`](Self::next) does, if the first one may not have the rights.
    #[cold]
    fn next_but(
        &mut self,
        first: FastMr,
        size: Size,
        access: AccessFlags,
        together: bool,
    ) -> Result<FastMr, Option<FastMr>> {
        let mut mr = first;
        for _ in 0..PASSED_OVER {
            self.lines.put(size, mr).map_err(Some)?;
            mr = self.take(size, together).ok_or(None)?;
            if mr.may_have(access) {
                return Ok(mr);
            }
        }
        Err(Some(mr))
    }

    #[inline]
    fn take(&mut self, size: Size, together: bool) -> Option<FastMr> {
        match together {
            true => self.lines.take_spare(size),
            false => self.lines.take(size),
        }
    }
}

kernel::impl_has_work! {
    impl HasWork<Self> for Pool { self.work }
}

impl_has_hr_timer! {
    impl HasHrTimer<Self> for Pool {
        mode: RelativeMode<Monotonic>, field: self.timer
    }
}

impl Pool {
    /// Makes an empty pool for a domain. It makes no region before one is wanted. May sleep.
    pub(crate) fn new(
        pd: Arc<Pd>,
        max_pages: u32,
        queue: Arc<OwnedQueue>,
        label: Arc<DomainLabel>,
    ) -> Result<Arc<Self>> {
        let lines = Lines::new(max_pages, u64::from(params::pool_pages()))?;
        let inlet = ReturnList::new()?;
        let count = Arc::new(PoolCounters::new(), GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                pd,
                label,
                max_pages,
                queue,
                state <- new_mutex!(State { lines, reserve: None, period: None }),
                inlet <- inlet,
                due: Atomic::new(false),
                count,
                work <- kernel::new_work!("kfi_verbs::Pool::work"),
                timer <- HrTimer::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes a region of this kind and of at least this many pages, which may have these rights. If
    /// several are asked for `together`, the ready ones are left to tasks that need one. The
    /// regions of a batch are made as quickly here, and nobody is woken. May sleep.
    pub(crate) fn take(
        self: &Arc<Self>,
        kind: Kind,
        pages: u32,
        access: AccessFlags,
        together: bool,
    ) -> Result<FastMr> {
        let size = Size::of_kind(kind, pages).ok_or(E2BIG)?;
        self.let_in();
        let (mr, low) = {
            let mut state = self.state.lock();
            let mr = state.next(size, access, together);
            (mr, !together && state.lines.is_low(size))
        };
        if low {
            // Already queued is as good.
            let _ = self.queue.enqueue(self.clone());
        }
        trace::pool(&self.label, size.pages(self.max_pages), mr.is_ok());
        match mr {
            Ok(mr) => {
                self.count.taken.fetch_add(1, Relaxed);
                Ok(mr)
            }
            Err(other) => {
                drop(other);
                self.missed(size)
            }
        }
    }

    /// Makes one, as there was none.
    #[cold]
    fn missed(&self, size: Size) -> Result<FastMr> {
        self.count.missed.fetch_add(1, Relaxed);
        self.make(size).or_else(|_| {
            // Idle regions count on the device like regions in use.
            self.empty();
            self.make(size)
        })
    }

    /// Takes a region that no peer can reach. May sleep.
    pub(crate) fn put(self: &Arc<Self>, mr: FastMr) {
        self.put_all([mr]);
    }

    /// Takes several regions as [`put`](Self::put) takes one.
    pub(crate) fn put_all(self: &Arc<Self>, mrs: impl IntoIterator<Item = FastMr>) {
        let mut mrs = mrs.into_iter();
        // Regions that aren't kept are deregistered without the lock.
        while let Some(too_many) = self.put_some(&mut mrs) {
            drop(too_many);
        }
    }

    /// Takes some of them, up to one that isn't kept.
    fn put_some(self: &Arc<Self>, mrs: &mut impl Iterator<Item = FastMr>) -> Option<FastMr> {
        let mut state = self.state.lock();
        for mr in mrs {
            // A region that must not be registered again is not kept.
            let size = Size::of_kind(mr.kind(), mr.max_pages()).filter(|_| !mr.is_spent());
            let kept = match (size, &mut state.reserve) {
                (None, _) => Err(mr),
                (Some(size), Some(reserve)) if reserve.takes(size, &mr) => reserve.mrs.push(mr),
                (Some(size), _) => state.lines.put(size, mr),
            };
            if let Err(mr) = kept {
                return Some(mr);
            }
        }
        if state.period.is_none() {
            self.begin_period(&mut state);
        }
        None
    }

    /// Counts device regions that were deregistered because they could not be invalidated: there was no queue pair, or
    /// it failed. Any context.
    #[cold]
    pub(crate) fn not_invalidated(&self, regions: usize) {
        let count = &self.count.not_invalidated;
        count.fetch_add(widen(regions), Relaxed);
    }

    /// Makes a device region of this many pages, no large ones, in the place of one that was
    /// deregistered. It does so if fewer are ready than should be. So a task that closes one region
    /// after the other provides the next one without waking another task. While a region of the
    /// reserve may be of this size, that is left to the work item: its close allocates nothing.
    /// Failures are left to the task that needs a region. May sleep.
    pub(crate) fn make_up(self: &Arc<Self>, pages: u32) {
        let Some(size) = Size::of(pages) else {
            return;
        };
        let is_short = {
            let state = self.state.lock();
            let is_reserved = state.reserve.as_ref();
            let is_reserved = is_reserved.is_some_and(|it| it.size == size && it.in_use > 0);
            !is_reserved && state.lines.is_short_of(size)
        };
        if is_short {
            if let Ok(mr) = self.make(size) {
                // Somebody else may have made one.
                let _ = self.keep(size, mr);
            }
        }
    }

    fn make(&self, size: Size) -> Result<FastMr> {
        FastMr::alloc(&self.pd, size.kind(), size.pages(self.max_pages))
    }

    /// Puts a region in line, and begins a period unless one is under way.
    #[inline]
    fn keep(self: &Arc<Self>, size: Size, mr: FastMr) -> Result<(), FastMr> {
        let mut state = self.state.lock();
        state.lines.put(size, mr)?;
        if state.period.is_none() {
            self.begin_period(&mut state);
        }
        Ok(())
    }

    /// Allocates the regions that the lines lack. After a failure, the task that needs a region
    /// allocates it.
    fn refill(self: &Arc<Self>) {
        loop {
            let Some(size) = self.state.lock().lines.short_of() else {
                return;
            };
            let Ok(mr) = self.make(size) else {
                return;
            };
            if self.keep(size, mr).is_err() {
                return;
            }
        }
    }

    /// Deregisters all that is kept ready. Sleeps.
    fn empty(&self) {
        loop {
            let next = self.state.lock().lines.any();
            let Some(mr) = next.or_else(|| self.inlet.take()) else {
                return;
            };
            drop(mr);
        }
    }

    /// Ends it. Sleeps until the regions are gone.
    pub(crate) fn close(&self) {
        let reserve = {
            let mut state = self.state.lock();
            // No region is wanted or kept any more.
            state.lines.budget = 0;
            state.reserve.take()
        };
        drop(reserve);
        self.settle();
        self.empty();
    }
}

impl WorkItem for Pool {
    type Pointer = Arc<Self>;

    /// Gives back idle regions, and allocates the regions that are needed.
    fn run(this: Arc<Self>) {
        // Others wait for the locks that this takes, on the way of writing memory back.
        let _noio = NoIo::enter();
        this.let_in();
        if this.due.xchg(false, Relaxed) {
            this.give_back_idle();
        }
        this.refill_reserve();
        this.refill();
    }
}

impl HrTimerCallback for Pool {
    type Pointer<'a> = Arc<Self>;

    fn run(
        this: ArcBorrow<'_, Self>,
        _context: HrTimerCallbackContext<'_, Self>,
    ) -> HrTimerRestart {
        this.due.store(true, Relaxed);
        // Already queued is as good: it looks before it does anything else.
        let _ = this.queue.enqueue(Arc::from(this));
        HrTimerRestart::NoRestart
    }
}

impl Pool {
    /// Begins a period if there are regions. At its end, the pool looks for idle ones. While no
    /// period is under way, a region that comes back in atomic context has the work item begin one.
    /// Called with `state` locked.
    fn begin_period(self: &Arc<Self>, state: &mut State) {
        let seconds = params::pool_idle();
        // Dropping it stops the timer, so that comes first.
        state.period = None;
        if seconds > 0 && state.lines.len() > 0 {
            let period = Delta::from_secs(i64::from(seconds));
            state.period = Some(self.clone().start(period));
        }
        // Without periods nothing is given back.
        let watched = seconds == 0 || state.period.is_some();
        if self.inlet.set_watched(watched) && !watched {
            let _ = self.queue.enqueue(self.clone());
        }
    }

    /// Ends a period, and gives back the regions that were idle in it.
    fn give_back_idle(self: &Arc<Self>) {
        self.state.lock().lines.age();
        loop {
            let Some(mr) = self.state.lock().lines.surplus() else {
                break;
            };
            self.count.given_back.fetch_add(1, Relaxed);
            drop(mr);
        }
        self.begin_period(&mut self.state.lock());
    }

    /// Sleeps until nothing is being made or given back. None of that begins while nobody takes or
    /// puts a region.
    pub(crate) fn settle(&self) {
        loop {
            self.queue.flush();
            // Work that was under way may have begun a period, whose end would be the next work.
            let Some(period) = self.state.lock().period.take() else {
                return;
            };
            drop(period);
        }
    }
}

/// Counters of a pool since the domain was opened. They outlive the pool, which is freed when the device is removed.
pub(crate) struct PoolCounters {
    /// Regions taken from a line.
    taken: Atomic<u64>,
    /// Calls that found no region with the rights in line.
    missed: Atomic<u64>,
    /// Regions freed because nobody needed them.
    given_back: Atomic<u64>,
    /// Regions of the reserve that came into use.
    of_reserve: Atomic<u64>,
    /// Regions deregistered because they could not be invalidated.
    not_invalidated: Atomic<u64>,
}

impl PoolCounters {
    const fn new() -> Self {
        Self {
            taken: Atomic::new(0),
            missed: Atomic::new(0),
            given_back: Atomic::new(0),
            of_reserve: Atomic::new(0),
            not_invalidated: Atomic::new(0),
        }
    }

    /// Returns how often the pool had a region ready, and how often it had none. Any context.
    pub(crate) fn hits_and_misses(&self) -> (u64, u64) {
        (self.taken.load(Relaxed), self.missed.load(Relaxed))
    }
}

impl Pool {
    /// Reserves space for a region that comes back in atomic context, if there is some. Any
    /// context.
    pub(crate) fn room(&self) -> Option<Place<'_, FastMr>> {
        self.inlet.place()
    }

    /// Puts a region in a place of this pool, which deregisters it if nobody needs it. Any context.
    pub(crate) fn put_back(self: &Arc<Self>, place: Place<'_, FastMr>, mr: FastMr) {
        if place.put(mr) {
            // Already queued is as good.
            let _ = self.queue.enqueue(self.clone());
        }
    }

    /// Has those that have come back join their lines, if there are any. May sleep.
    #[inline]
    fn let_in(self: &Arc<Self>) {
        if !self.inlet.is_empty() {
            self.put_all(iter::from_fn(|| self.inlet.take()));
        }
    }
}
