// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! An operation reserves a [`CqPlace`] in the queue before it starts. When the operation ends, its completion fills the
//! place until a reader takes it. So a queue never overruns: without a place, the operation doesn't start.
//!
//! Lock order: only locks of wait queues are inside of a queue's lock. The lock is taken with interrupts off. "Any
//! context" below means any context that can take a spinlock. The consumer's handler doesn't run under the lock.

#[cfg(CONFIG_KUNIT = "y")]
mod kunit;
mod ring;
mod wakeups;

use self::{
    ring::{
        CqOutcome,
        CqRing, //
    },
    wakeups::{
        After,
        Calls,
        Waits, //
    }, //
};
use super::ep::{
    EpCore,
    EpPart, //
};
use crate::{
    prelude::*,
    support::{
        irqlock::{
            self,
            IrqGuard, //
        },
        trace::{
            self,
            DomainLabel, //
        },
        vec::PushReserved, //
    }, //
};
use kernel::{
    sync::atomic::{
        Acquire,
        Release, //
    },
    time::Jiffies, //
};

pub use ring::{
    Context,
    CqEntry,
    CqErrEntry, //
};
pub(crate) use wakeups::Notify;

/// The consumer's wishes for how a provider finds completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// The CPU near which completions should arrive (`KFI_AFFINITY`). It may not exist.
    pub cpu: Option<u32>,
    /// Reads of the queue look for completions ([`EpPart::progress`]), so that the device needs no interrupts.
    pub polled: bool,
}

/// A completion queue.
///
/// The consumer's object and each operation keep a reference. After the consumer closes its object, the queue discards
/// completions.
///
/// # Invariants
///
/// - `taken` is at least the number of places and unread entries, and at most `size`.
/// - The ring holds `size` entries until the queue is closed.
///
/// # Examples
///
/// ```ignore
/// // Before the operation starts, so that its completion can't be lost.
/// let place = queue.reserve().ok_or(Errno::EAGAIN)?;
/// ...
/// place.complete(Completion { context, flags, len, buf: Context::NULL, data: 0 });
/// ```
#[pin_data]
pub struct CqCore {
    size: usize,
    delivery: Delivery,
    /// The domain and the number of the queue, for events.
    identity: SetOnce<(Arc<DomainLabel>, u64)>,
    /// The endpoints that a read of a polled queue looks at.
    #[pin]
    sources: IrqLock<KVec<Arc<EpCore>>>,
    taken: Atomic<usize>,
    #[pin]
    state: IrqLock<State>,
    /// Notified when waiters may have something to read.
    #[pin]
    readable: CondVar,
    handler: Option<KBox<Notify>>,
    /// Notified when the handler of a closed queue has returned.
    #[pin]
    over: CondVar,
}

/// The state under the lock of a queue.
struct State {
    ring: CqRing,
    /// The numbers of successful entries, of failed entries and of received bytes.
    counters: [u64; 3],
    waits: Waits,
    calls: Calls,
}

impl CqCore {
    /// Creates a queue with `size` places, or one place if `size` is 0. May sleep.
    pub(crate) fn new(
        size: usize,
        delivery: Delivery,
        handler: Option<KBox<Notify>>,
    ) -> Result<Arc<Self>, Errno> {
        let size = size.max(1);
        let state = State {
            ring: CqRing::new(size)?,
            counters: [0; _],
            waits: Waits::NONE,
            calls: Calls::new(handler.is_some()),
        };
        // INVARIANT: There are no places and no entries.
        let queue = pin_init!(Self {
            size,
            delivery,
            identity: SetOnce::new(),
            sources <- new_irq_lock!(KVec::new(), c"kfabric_cq_sources"),
            taken: Atomic::new(0),
            state <- new_irq_lock!(state, c"kfabric_cq"),
            readable <- new_condvar!("kfabric_cq"),
            handler,
            over <- new_condvar!("kfabric_cq_over"),
        });
        Arc::pin_init(queue, GFP_KERNEL).map_err(|_| Errno::ENOMEM)
    }

    /// Reserves a place for the completion of one operation. Returns `None` if the queue is full, so that the caller
    /// returns `-KFI_EAGAIN`. Any context; takes no lock.
    pub fn reserve(self: &Arc<Self>) -> Option<CqPlace> {
        let mut taken = self.taken.load(Relaxed);
        while taken < self.size {
            // INVARIANT: `taken` counts the new place.
            match self.taken.cmpxchg(taken, taken + 1, Acquire) {
                Ok(_) => return Some(CqPlace(Some(self.clone()))),
                Err(now) => taken = now,
            }
        }
        None
    }

    /// Returns the number of places, for pending operations and unread completions.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the number of free places. Any context.
    pub(crate) fn left(&self) -> usize {
        self.size.saturating_sub(self.taken.load(Relaxed))
    }

    /// Returns the numbers of successful entries, of failed entries and of received bytes. Any context.
    pub(crate) fn counters(&self) -> [u64; 3] {
        self.state.with(|state| state.counters)
    }

    /// Sets the domain and the number of the queue, for events. Any context.
    pub(crate) fn identify(&self, label: &Arc<DomainLabel>, number: u64) {
        // A queue that is bound again has them already.
        let _ = self.identity.populate((label.clone(), number));
    }

    /// Returns whether the consumer has a handler.
    pub(crate) fn has_handler(&self) -> bool {
        self.handler.is_some()
    }

    /// Returns how completions should be found.
    pub(crate) fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// Has reads look at an endpoint, until it is [removed](Self::remove_source). May sleep.
    pub(crate) fn add_source(&self, endpoint: &Arc<EpCore>) -> Result<(), Errno> {
        self.remove_source(endpoint);
        let mut larger = KVec::new();
        loop {
            let added = self.sources.with(|sources| {
                if larger.capacity() > sources.len() {
                    // Nothing is allocated or freed under the lock.
                    for source in sources.drain_all() {
                        larger.push_reserved(source);
                    }
                    mem::swap(&mut **sources, &mut larger);
                }
                let added = sources.push_within_capacity(endpoint.clone());
                added.map_err(|_| sources.len())
            });
            match added {
                Ok(()) => return Ok(()),
                Err(count) => larger = KVec::with_capacity(2 * count + 2, GFP_KERNEL)?,
            }
        }
    }

    /// Has reads ignore an endpoint. Any context.
    pub(crate) fn remove_source(&self, endpoint: &Arc<EpCore>) {
        self.sources
            .with(|sources| sources.retain(|source| !Arc::ptr_eq(source, endpoint)));
    }

    /// Calls `f` with the provider's part of each endpoint, from the last one: so it misses none when another one is
    /// removed meanwhile. Any context.
    fn each_source(&self, f: impl Fn(&dyn EpPart)) {
        let mut at = usize::MAX;
        while at > 0 {
            let source = self.sources.with(|sources| {
                at = at.min(sources.len()).saturating_sub(1);
                sources.get(at).cloned()
            });
            if let Some((_inside, part)) = source.as_ref().and_then(|source| source.enter_part()) {
                f(&*part);
            };
        }
    }

    /// Returns whether the caller runs inside of the queue's handler. Any context.
    pub(crate) fn in_handler(&self) -> bool {
        self.state.with(|state| state.calls.is_running_here())
    }

    /// Closes the queue. The handler doesn't run after the return. Sleeps until the handler has returned, so the handler
    /// must not call this.
    pub(crate) fn close(&self) {
        let ring = self.state.with(|state| {
            state.calls.end();
            while state.calls.is_running() {
                self.over.wait(state);
            }
            // The last reference to the queue may be dropped in any context, and the ring must not be.
            mem::replace(&mut state.ring, CqRing::without_room())
        });
        self.sources.with(|sources| sources.clear());
        // Free the places of unread entries, because bound endpoints need them.
        self.give_back(ring.len());
        drop(ring);
    }

    /// Frees places that have neither an operation nor an entry.
    fn give_back(&self, places: usize) {
        // INVARIANT: `places` places were counted, and are free.
        self.taken.fetch_sub(places, Release);
    }

    /// Adds an entry that had a place, and wakes waiters and the handler.
    fn put(&self, entry: CqOutcome) {
        trace::completed(|| self.describe(&entry));
        let call = self.state.with(|state| {
            let state = &mut **state;
            let [done, failed, bytes] = &mut state.counters;
            match &entry {
                Ok(entry) => (*done, *bytes) = (*done + 1, bytes.wrapping_add(widen(entry.len))),
                Err(_) => *failed += 1,
            }
            if !state.ring.push(entry) {
                // The queue is closed. An open queue has room for all places.
                self.give_back(1);
                return false;
            }
            if state.waits.came(&state.ring) {
                self.readable.notify_all();
            }
            state.calls.came()
        });
        if call {
            self.call_handler();
        }
    }

    /// Returns an entry for an event, if the queue is bound.
    #[cold]
    fn describe(&self, entry: &CqOutcome) -> Option<trace::CompletionEvent<'_>> {
        let (label, number) = self.identity.as_ref()?;
        let (done, err) = match entry {
            Ok(done) => (done, 0),
            Err(failure) => (&failure.done, failure.errno.to_c()),
        };
        Some(trace::CompletionEvent {
            label,
            number: *number,
            context: widen(done.context.as_ptr().addr()),
            flags: done.flags,
            len: widen(done.len),
            err,
        })
    }

    fn call_handler(&self) {
        let mut after = After::Again;
        while after == After::Again {
            if let Some(handler) = &self.handler {
                handler();
            }
            after = self.state.with(|state| {
                let after = state.calls.returned();
                if after == After::Over {
                    self.over.notify_all();
                }
                after
            });
        }
    }
}

/// A place in a queue, for the completion of one operation.
///
/// Dropping it frees the place and reports nothing. That is for operations that did not start, and for unsignalled
/// operations that succeeded. Any context.
///
/// Completing an operation may call the consumer's handler, which takes the consumer's locks, posts operations and reads
/// the queue. So a provider must not complete an operation in either of these cases:
///
/// - inside of a posting call of the consumer, who may hold a lock
/// - under a lock that posting takes
#[must_use = "dropping it reports nothing"]
pub struct CqPlace(Option<Arc<CqCore>>);

impl CqPlace {
    /// Reports that the operation succeeded. Any context; may call the consumer's handler.
    pub fn complete(self, done: CqEntry) {
        self.put(Ok(done));
    }

    /// Reports that the operation failed. Any context; may call the consumer's handler.
    pub fn fail(self, failure: CqErrEntry) {
        self.put(Err(failure));
    }

    fn put(mut self, entry: CqOutcome) {
        if let Some(queue) = self.0.take() {
            queue.put(entry);
        }
    }
}

impl Drop for CqPlace {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.give_back(1);
        }
    }
}

/// The number of completions that are copied at a time with interrupts off.
pub(super) const BATCH: usize = 64;

impl CqCore {
    /// Passes the next completions to `out`, up to the first failure and at most `most`, which is
    /// not 0. Returns their number. Any context; `out` runs with interrupts off.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: the queue is empty.
    /// - `EAVAIL`: the reader must read a failure first.
    pub(crate) fn read(&self, most: usize, mut out: impl FnMut(&CqEntry)) -> Result<usize, Errno> {
        let has_handler = self.has_handler();
        let may_miss = || has_handler || self.state.with(|state| state.ring.len() == 0);
        // The look makes an armed device quiet again, also if it has reported something.
        if self.delivery.polled && may_miss() {
            self.each_source(|part| {
                // The handler is not called for what the reader finds. Without a look, completions come by themselves.
                if has_handler {
                    self.state.with(|state| state.calls.disarm());
                }
                part.progress();
            });
        }
        let first = self.state.with(|state| self.begin(state, most, &mut out));
        let read = first.map(|first| self.go_on(first, most, out));
        // Otherwise the handler waits for nothing.
        if read != Ok(most) {
            self.arm();
        }
        read
    }

    /// Has the endpoints of a polled queue report the next completion, if the handler waits for it. Any context.
    pub(crate) fn arm(&self) {
        let is_armed = || self.state.with(|state| state.calls.is_armed());
        if self.delivery.polled && self.has_handler() && is_armed() {
            self.each_source(EpPart::arm);
        }
    }

    /// Waits for `threshold` entries or a failure, then [reads](Self::read). `left` is the timeout, if there is one. After
    /// the timeout it reads the entries that are available. Sleeps.
    ///
    /// # Errors
    ///
    /// - The errors of [`read`](Self::read).
    /// - `EINTR`: the queue is empty, and a signal has ended the wait.
    pub(crate) fn wait_and_read(
        &self,
        most: usize,
        threshold: usize,
        left: Option<Jiffies>,
        mut out: impl FnMut(&CqEntry),
    ) -> Result<usize, Errno> {
        // A queue never holds more entries than places.
        let threshold = threshold.clamp(1, self.size);
        let first = self.state.with(|state| {
            state.waits.waiting += 1;
            let interrupted = self.wait(state, threshold, left);
            state.waits.waiting -= 1;
            match interrupted && state.ring.len() == 0 {
                true => Err(Errno::EINTR),
                false => self.begin(state, most, &mut out),
            }
        });
        Ok(self.go_on(first?, most, out))
    }

    /// Removes the first entry if it is a failure, and returns it. Any context.
    pub(crate) fn read_failure(&self) -> Option<CqErrEntry> {
        self.state.with(|state| {
            let failure = state.ring.pop_failed();
            self.give_back(failure.iter().count());
            failure
        })
    }

    /// Ends the wait of all waiters, or of the next one if there is none. Any context.
    pub(crate) fn signal(&self) {
        self.state.with(|state| {
            if state.waits.signal() {
                self.readable.notify_all();
            }
        });
    }

    /// Reads the first batch.
    fn begin(
        &self,
        state: &mut State,
        most: usize,
        out: impl FnMut(&CqEntry),
    ) -> Result<usize, Errno> {
        match self.batch(state, 0, most, out) {
            0 if state.ring.len() == 0 => Err(Errno::EAGAIN),
            0 => Err(Errno::EAVAIL),
            some => Ok(some),
        }
    }

    /// Reads the completions that follow the `first` ones, in batches. Returns the number of all,
    /// which is at most `most`.
    fn go_on(&self, first: usize, most: usize, mut out: impl FnMut(&CqEntry)) -> usize {
        let (mut all, mut last) = (first, first);
        while last == BATCH && all < most {
            last = self
                .state
                .with(|state| self.batch(state, all, most - all, &mut out));
            all += last;
        }
        all
    }

    /// Reads at most `BATCH` entries, after `before` others. If there are fewer than the reader has room for, the reader
    /// need not come again.
    fn batch(
        &self,
        state: &mut State,
        before: usize,
        most: usize,
        mut out: impl FnMut(&CqEntry),
    ) -> usize {
        let mut read = 0;
        while read < most.min(BATCH) {
            let Some(done) = state.ring.pop_done() else {
                match state.ring.len() {
                    0 => state.calls.found_empty(),
                    // A failure. A reader that has read nothing is told.
                    _ if before + read > 0 => state.calls.found_failure(),
                    _ => (),
                }
                break;
            };
            out(&done);
            read += 1;
        }
        self.give_back(read);
        read
    }

    /// Sleeps until `threshold` entries or a failure are available, the timeout has expired, or
    /// `kfi_cq_signal()` ends the wait. Returns true if a signal of the thread has ended the wait.
    fn wait(
        &self,
        state: &mut IrqGuard<'_, State>,
        threshold: usize,
        mut left: Option<Jiffies>,
    ) -> bool {
        let mut interrupted = false;
        let mut seen = None;
        while state.ring.len() < threshold && !state.ring.has_failure() {
            if interrupted {
                return true;
            }
            if left == Some(0) || state.waits.is_signalled(&mut seen) {
                return false;
            }
            state.waits.wake_at(threshold);
            interrupted = irqlock::wait(&self.readable, state, &mut left);
        }
        false
    }
}
