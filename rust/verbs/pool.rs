// SPDX-License-Identifier: GPL-2.0

//! Fast memory regions kept ready, by size.
//!
//! A region of one page doesn't take a device region of the device's maximum: sizes go up in
//! powers of two. Regions that come back wait in line behind those that came before, so that a
//! key is not used again soon. What nobody needs for a while is given back.
//!
//! Lock order: `state` is a leaf but for the timer; regions are made and destroyed without it.

mod figures;
mod lines;
mod reserve;

pub(crate) use self::{
    figures::{
        Root,
        Shown, //
    },
    lines::MAX_PAGES, //
};

use self::{
    figures::Count,
    lines::{
        Lines,
        Size, //
    },
    reserve::Reserve, //
};
use crate::params;
use kernel::{
    impl_has_hr_timer,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        ArcBorrow,
        Mutex, //
    },
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
        Delta,
        Monotonic, //
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

/// The pool of a domain.
#[pin_data]
pub(crate) struct Pool {
    pd: Arc<Pd>,
    /// Most pages of one region of the device.
    max_pages: u32,
    queue: Arc<OwnedQueue>,
    #[pin]
    state: Mutex<State>,
    /// A period is over, and what was idle is not yet given back.
    due: Atomic<bool>,
    count: Count,
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

kernel::impl_has_work! {
    impl HasWork<Self> for Pool { self.work }
}

impl WorkItem for Pool {
    type Pointer = Arc<Self>;

    /// Gives back what was idle, and gets ready what is wanted.
    fn run(this: Arc<Self>) {
        // Others wait for the locks that this takes, on the way of writing memory back.
        let _noio = NoIo::enter();
        if this.due.xchg(false, Relaxed) {
            this.give_back_idle();
        }
        this.refill_reserve();
        this.refill();
    }
}

impl_has_hr_timer! {
    impl HasHrTimer<Self> for Pool {
        mode: RelativeMode<Monotonic>, field: self.timer
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
    /// An empty pool. Nothing is made before it is wanted. May sleep.
    pub(crate) fn new(pd: Arc<Pd>, max_pages: u32, queue: Arc<OwnedQueue>) -> Result<Arc<Self>> {
        let lines = Lines::new(max_pages, u64::from(params::pool_pages()));
        Arc::pin_init(
            pin_init!(Self {
                pd,
                max_pages,
                queue,
                state <- new_mutex!(State { lines, reserve: None, period: None }),
                due: Atomic::new(false),
                count: Count::new(),
                work <- kernel::new_work!("kfi_verbs::Pool::work"),
                timer <- HrTimer::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// A region of at least this many pages. May sleep.
    pub(crate) fn take(self: &Arc<Self>, pages: u32) -> Result<FastMr> {
        let size = Size::of(pages).ok_or(E2BIG)?;
        let (mr, low) = {
            let mut state = self.state.lock();
            (state.lines.take(size), state.lines.is_low(size))
        };
        if low {
            // Already queued is as good.
            let _ = self.queue.enqueue(self.clone());
        }
        if let Some(mr) = mr {
            self.count.taken();
            return Ok(mr);
        }
        self.count.missed();
        self.make(size).or_else(|_| {
            // What lies idle here counts on the device like what is used.
            self.empty();
            self.make(size)
        })
    }

    /// Takes a region that no peer can reach. May sleep.
    pub(crate) fn put(self: &Arc<Self>, mr: FastMr) {
        if let (Kind::Pages, false, Some(size)) =
            (mr.kind(), mr.is_spent(), Size::of(mr.max_pages()))
        {
            // One too many, or no memory to keep it: it is deregistered.
            let _ = self.keep(size, mr);
        }
    }

    fn make(&self, size: Size) -> Result<FastMr> {
        FastMr::alloc(&self.pd, Kind::Pages, size.pages(self.max_pages))
    }

    /// Puts a region in line, and begins a period unless one is under way.
    fn keep(self: &Arc<Self>, size: Size, mr: FastMr) -> Result<(), FastMr> {
        let mut state = self.state.lock();
        state.lines.put(size, mr)?;
        if state.period.is_none() {
            self.begin_period(&mut state);
        }
        Ok(())
    }

    fn begin_period(self: &Arc<Self>, state: &mut State) {
        let seconds = params::pool_idle();
        // Dropping it stops the timer, so that comes first.
        state.period = None;
        if seconds > 0 && state.lines.len() > 0 {
            let period = Delta::from_secs(i64::from(seconds));
            state.period = Some(self.clone().start(period));
        }
    }

    /// A period is over.
    fn give_back_idle(self: &Arc<Self>) {
        self.state.lock().lines.age();
        loop {
            let Some(mr) = self.state.lock().lines.surplus() else {
                break;
            };
            self.count.given_back();
            drop(mr);
        }
        self.begin_period(&mut self.state.lock());
    }

    /// Gets ready what is wanted. Failures are left to the one who needs a region.
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
            let Some(mr) = self.state.lock().lines.any() else {
                return;
            };
            drop(mr);
        }
    }

    /// Sleeps until nothing is being made or given back. None of that begins while nobody takes or
    /// puts a region.
    pub(crate) fn settle(&self) {
        loop {
            self.queue.flush();
            // What was under way may have begun a period, whose end would be the next work.
            let Some(period) = self.state.lock().period.take() else {
                return;
            };
            drop(period);
        }
    }

    /// Ends it. Sleeps until the regions are gone.
    pub(crate) fn close(&self) {
        let reserve = {
            let mut state = self.state.lock();
            state.lines.close();
            state.reserve.take()
        };
        drop(reserve);
        self.settle();
        self.empty();
    }
}
