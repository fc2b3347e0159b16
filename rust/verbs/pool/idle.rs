// SPDX-License-Identifier: GPL-2.0

//! The pool's own work: it makes wanted regions ready, and gives back those that nobody needs.

use super::Pool;
use crate::params;
use kernel::{
    sync::{
        atomic::Relaxed,
        Arc,
        ArcBorrow, //
    },
    time::{
        hrtimer::{
            HrTimerCallback,
            HrTimerCallbackContext,
            HrTimerPointer,
            HrTimerRestart, //
        },
        Delta, //
    },
    workqueue::WorkItem, //
};
use kfabric::NoIo;

impl WorkItem for Pool {
    type Pointer = Arc<Self>;

    /// Gives back what was idle, and gets ready what is wanted.
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
    pub(super) fn begin_period(self: &Arc<Self>, state: &mut super::State) {
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
            self.count.given_back();
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
