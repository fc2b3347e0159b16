// SPDX-License-Identifier: GPL-2.0

//! Memory of reads that is registered for the time of the read: over iWARP, if no region was made of it.
//!
//! An endpoint has a few device regions for that, as a read may be posted where none can be made. The
//! device has invalidated them when a read has ended well. After a failure that isn't known: then a work item
//! deregisters them, and the consumer hears of the failure when that is done.
//!
//! A region has 255 keys. The work item replaces regions that have used half of them, one at a
//! time. The endpoint has one region more than it needs, so reads find regions with keys meanwhile.
//!
//! Lock order: `settling`, then `state`, which is a leaf.

use crate::prelude::*;
use rdma::{
    in_flight::InFlight,
    Buffer,
    Gather,
    Sink, //
};

/// Most regions of an endpoint that reads can use at once: devices hardly have more reads under way.
const MOST: usize = 16;

/// Most pages of a region: those of 1 MiB, and one more since memory may begin inside a page.
const PAGES: u32 = 257;

/// The regions of an endpoint, for reads.
#[pin_data]
pub(super) struct Sinks {
    /// Maximum number of regions that reads can use at a time. Each registers one piece of memory.
    pub(super) count: usize,
    pages: u32,
    fence: Fence,
    queue: Arc<OwnedQueue>,
    #[pin]
    state: IrqLock<State>,
    /// Held while reads that have failed are ended.
    #[pin]
    settling: Mutex<()>,
    #[pin]
    work: Work<Sinks>,
}

/// The regions of an endpoint.
///
/// # Invariants
///
/// - There are at most `count` + 1 regions: `there` and those that are `spent`.
/// - Each list has room for all of them.
struct State {
    /// As in [`Sinks`].
    count: usize,
    /// [`None`] when the endpoint is over.
    pd: Option<Arc<Pd>>,
    free: KVec<FastMr>,
    /// To be deregistered.
    spent: KVec<FastMr>,
    /// How many regions reads can use, or are using; those in use are in no list.
    there: usize,
    /// Reads to be ended where that may sleep.
    failed: KVec<Ended>,
}

/// A read that has ended, and its completion, which is yet to be told.
struct Ended {
    sinks: KVec<InFlight<Sink>>,
    told: Option<(Ticket, Option<Failed>)>,
}

impl_has_work! {
    impl HasWork<Self> for Sinks { self.work }
}

impl Sinks {
    /// Makes regions for an endpoint of `sends` requests to the peer, if its device needs any. May sleep.
    pub(super) fn new(
        pd: &Arc<Pd>,
        sends: usize,
        queue: &Arc<OwnedQueue>,
    ) -> Result<Option<Arc<Self>>> {
        let device = pd.device();
        if device.connects_freely() {
            return Ok(None);
        }
        // Each takes two requests, and the read is one more.
        let count = (sends.saturating_sub(1) / 2).min(MOST);
        let most = count + 1;
        // INVARIANT: There is no region, and each list has room for `count` + 1.
        let state = State {
            count,
            pd: Some(pd.clone()),
            free: KVec::with_capacity(most, GFP_KERNEL)?,
            spent: KVec::with_capacity(most, GFP_KERNEL)?,
            there: 0,
            failed: KVec::with_capacity(most, GFP_KERNEL)?,
        };
        let sinks = pin_init!(Self {
            count,
            pages: device.limits().max_fast_reg_pages.min(PAGES),
            fence: rxe::fence_of(device, true),
            queue: queue.clone(),
            state <- new_irq_lock!(state, c"kfi_verbs_sinks"),
            settling <- new_mutex!(()),
            work <- new_work!("kfi_verbs_sinks"),
        });
        let sinks = Arc::pin_init(sinks, GFP_KERNEL)?;
        sinks.fill()?;
        Ok(Some(sinks))
    }

    /// Makes the regions that are missing. May sleep.
    fn fill(&self) -> Result {
        let wanted = |state: &State| {
            (state.there + state.spent.len() <= state.count).then(|| state.pd.clone())?
        };
        while let Some(pd) = self.state.with(|state| wanted(state)) {
            let mr = FastMr::alloc(&pd, Kind::Pages, self.pages)?;
            // INVARIANT: There was room for one more, and nobody else adds any.
            self.state.with(|state| {
                state.there += 1;
                state.put(mr);
            });
        }
        Ok(())
    }

    /// Ends the reads that have failed, and replaces regions. Sleeps.
    fn settle(&self) {
        let _settling = self.settling.lock();
        while let Some((ended, spent)) = self.state.with(|state| state.next()) {
            drop(spent);
            if let Some(ended) = ended {
                ended.end(self);
            }
        }
        // The next read tries again.
        let _ = self.fill();
    }

    /// Completes the last reads and deregisters all regions, after all reads have ended. Sleeps.
    pub(super) fn close(&self) {
        let pd = self.state.with(|state| {
            while let Some(mr) = state.free.pop() {
                state.throw_away(mr);
            }
            state.pd.take()
        });
        drop(pd);
        self.settle();
    }

    /// Has it settled soon. Any context.
    fn settle_later(self: &Arc<Self>) {
        // Work that is queued already has yet to run.
        let _ = self.queue.enqueue(self.clone());
    }

    /// Ends a read, and tells of it, as soon as that doesn't sleep. Any context.
    fn end(self: &Arc<Self>, ended: Ended) {
        if ended.is_free() {
            ended.end(self);
            if self.state.with(|state| !state.spent.is_empty()) {
                self.settle_later();
            }
            return;
        }
        // Each read has a region, and the list has capacity for all regions.
        self.state.with(|state| state.failed.push_reserved(ended));
        self.settle_later();
    }

    /// Takes back a region that no peer can reach. `None` stands for a region that was deregistered
    /// or leaked. Any context.
    fn put(&self, mr: Option<FastMr>) {
        self.state.with(|state| match mr {
            Some(mr) => state.put(mr),
            None => state.there = state.there.saturating_sub(1),
        });
    }

    /// Takes regions for memory of a read, mapped for the device of `pd`. Any context.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: all regions are in use.
    /// - `EMSGSIZE`: a piece is too long for a region.
    /// - `ENOMEM`, `EIO`
    pub(super) fn sink(
        self: &Arc<Self>,
        pd: &Pd,
        memory: Gather<Buffer>,
    ) -> Result<InFlight<Sink>, Refusal> {
        let take = || self.state.with(|state| state.take());
        match Sink::new(pd, memory, self.fence, take) {
            Ok(sink) => sink.lend().map_err(|left| (ENOMEM, left)),
            Err(failed) => Err(failed),
        }
        .map_err(|(error, left)| {
            // No request names a region.
            left.end(|mr| self.put(mr));
            self.settle_later();
            match error.to_errno() {
                e if e == EAGAIN.to_errno() => {
                    let why = c"too many reads under way to memory without a descriptor";
                    Refusal::new(Errno::EAGAIN, why)
                }
                e if e == EINVAL.to_errno() => {
                    let why = c"a read over iWARP to more memory without a descriptor than one region has";
                    Refusal::new(Errno::EMSGSIZE, why)
                }
                _ => driver_errors::not_mapped(error),
            }
        })
    }
}

impl WorkItem for Sinks {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let _noio = NoIo::enter();
        this.settle();
    }
}

impl State {
    /// Takes a region, unless reads use `count` already: there may be one more, which is not for them.
    fn take(&mut self) -> Option<FastMr> {
        let used = self.there.saturating_sub(self.free.len());
        match used < self.count {
            // The one that has been free for longest: its key comes back last.
            true => self.free.remove(0).ok(),
            false => None,
        }
    }

    /// Keeps a region for another read, if the region may have one. Has a worn region replaced if reads can do without.
    fn put(&mut self, mr: FastMr) {
        let replaced = mr.is_worn() && self.there > self.count;
        if self.pd.is_none() || mr.is_spent() || replaced {
            return self.throw_away(mr);
        }
        self.free.push_reserved(mr);
    }

    /// Has a region deregistered.
    fn throw_away(&mut self, mr: FastMr) {
        self.there = self.there.saturating_sub(1);
        self.spent.push_reserved(mr);
    }

    /// Returns the next read to end and the next region to deregister.
    fn next(&mut self) -> Option<(Option<Ended>, Option<FastMr>)> {
        // The oldest read first.
        let next = (self.failed.remove(0).ok(), self.spent.pop());
        match next {
            (None, None) => None,
            next => Some(next),
        }
    }
}

impl Ended {
    /// Checks whether ending the read does not sleep.
    fn is_free(&self) -> bool {
        self.sinks.iter().all(|sink| sink.get().is_free())
    }

    /// Ends it, and tells of it. Sleeps unless it [is free](Self::is_free).
    fn end(self, pool: &Sinks) {
        let mut stuck = false;
        for sink in self.sinks {
            stuck |= !sink.end(|mr| pool.put(mr));
        }
        tell(self.told, stuck);
    }
}

/// Tells how a transfer has ended, if it is one; the device may keep its memory.
fn tell(told: Option<(Ticket, Option<Failed>)>, stuck: bool) {
    match told {
        Some((ticket, _)) if stuck => ticket.fail(Errno::ENOTRECOVERABLE.into()),
        Some((ticket, Some(failed))) => ticket.fail(failed),
        Some((ticket, None)) => ticket.complete(),
        None => (),
    }
}

/// The sinks that are registered for a transfer. Most transfers have none.
#[derive(Default)]
pub(super) struct Read {
    sinks: KVec<InFlight<Sink>>,
    pool: Option<Arc<Sinks>>,
}

impl Read {
    /// Makes room for one more sink. Any context.
    pub(super) fn reserve(&mut self) -> Result<(), Refusal> {
        Ok(self.sinks.reserve(1, GFP_ATOMIC)?)
    }

    /// Adds a sink for which there is room. Any context.
    pub(super) fn add(&mut self, pool: &Arc<Sinks>, sink: InFlight<Sink>) {
        self.pool.get_or_insert_with(|| pool.clone());
        self.sinks.push_reserved(sink);
    }

    /// Ends it, when its requests have, and tells of the transfer. Any context.
    pub(super) fn end(self, told: Option<(Ticket, Option<Failed>)>) {
        let Self { sinks, pool } = self;
        match pool {
            Some(pool) => pool.end(Ended { sinks, told }),
            None => tell(told, false),
        }
    }
}
