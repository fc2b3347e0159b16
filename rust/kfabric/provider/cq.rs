// SPDX-License-Identifier: GPL-2.0

//! Where a provider reports the operations that have ended.
//!
//! An operation takes a [`Place`] in the queue before it is begun, so that there is room when it
//! ends. In the end the place has its completion, or is given back. What was completed has it until
//! it is read. So a queue doesn't overrun: who finds no place doesn't begin.
//!
//! Lock order: a queue's lock is a leaf, but for those of wait queues. It is taken with interrupts
//! off, in any context in which a spinlock may be taken, which is what "any context" means below.
//! The consumer's handler doesn't run under it.
//!
//! Reading a completion queue, and waiting for something to read.
//!
//! Lock order: as in [`cq`](super).

mod kunit;
mod ring;
mod wakeups;

use self::{
    ring::{
        Entry,
        Ring, //
    },
    wakeups::{
        After,
        Calls,
        Waits, //
    }, //
};
use crate::{
    new_irq_lock,
    support::{
        errno::Errno,
        irqlock::{
            IrqGuard,
            IrqLock, //
        }, //
    }, //
};
use core::mem;
use kernel::{
    new_condvar,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        CondVar,
        CondVarTimeoutResult, //
    },
    time::Jiffies, //
};

pub use ring::{
    Completion,
    Context,
    Failure, //
};
pub(crate) use wakeups::Notify;

/// A completion queue.
///
/// The consumer has it by its `struct kfid_cq`, who completes something by an `Arc` of its own. So a
/// queue outlives the consumer's handle as long as operations do; then they complete to nowhere.
///
/// # Invariants
///
/// `taken` is at least the number of places that there are and of entries that were not read, and at
/// most `size`. Until the queue is closed, there is room in the ring for `size` entries.
///
/// # Examples
///
/// ```ignore
/// // Before the operation is begun: what has a place can't be lost.
/// let place = queue.reserve().ok_or(Errno::EAGAIN)?;
/// ...
/// place.complete(Completion { context, flags, len, buf: Context::NULL, data: 0 });
/// ```
#[pin_data]
pub struct CompletionQueue {
    size: usize,
    cpu: Option<u32>,
    taken: Atomic<usize>,
    #[pin]
    state: IrqLock<State>,
    /// Notified when waiters may have something to come back for.
    #[pin]
    readable: CondVar,
    handler: Option<KBox<dyn Notify>>,
    /// Notified when the handler of a queue that is being closed has returned.
    #[pin]
    over: CondVar,
}

/// What changes in a queue.
struct State {
    ring: Ring,
    waits: Waits,
    calls: Calls,
}

impl CompletionQueue {
    /// Makes a queue with `size` places, at least one, whose consumer wants to be interrupted on
    /// this CPU. May sleep.
    pub(crate) fn new(
        size: usize,
        cpu: Option<u32>,
        handler: Option<KBox<dyn Notify>>,
    ) -> Result<Arc<Self>, Errno> {
        let size = size.max(1);
        let state = State {
            ring: Ring::new(size)?,
            waits: Waits::NONE,
            calls: Calls::new(handler.is_some()),
        };
        // INVARIANT: There are none of both.
        let queue = pin_init!(Self {
            size,
            cpu,
            taken: Atomic::new(0),
            state <- new_irq_lock!(state, c"kfabric_cq"),
            readable <- new_condvar!("kfabric_cq"),
            handler,
            over <- new_condvar!("kfabric_cq_over"),
        });
        Arc::pin_init(queue, GFP_KERNEL).map_err(|_| Errno::ENOMEM)
    }

    /// Takes a place for the completion of one operation; `None` if there is none, which is
    /// `-KFI_EAGAIN` for who wants to begin it. Any context; takes no lock.
    pub fn reserve(self: &Arc<Self>) -> Option<Place> {
        let mut taken = self.taken.load(Relaxed);
        while taken < self.size {
            // INVARIANT: One more, for the place.
            match self.taken.cmpxchg(taken, taken + 1, Acquire) {
                Ok(_) => return Some(Place(Some(self.clone()))),
                Err(now) => taken = now,
            }
        }
        None
    }

    /// How many places it has, for operations that have not ended and for completions that were not
    /// read.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many places nobody has. Any context.
    pub(crate) fn left(&self) -> usize {
        self.size.saturating_sub(self.taken.load(Relaxed))
    }

    /// Near which CPU the consumer would like completions to come in (`KFI_AFFINITY`). It may be one
    /// that doesn't exist.
    pub fn cpu(&self) -> Option<u32> {
        self.cpu
    }

    /// Does this code run inside of the queue's handler? Any context.
    pub(crate) fn in_handler(&self) -> bool {
        self.state.with(|state| state.calls.is_running_here())
    }

    /// Lets nothing in any more. When it returns, the handler doesn't run, and never will. Sleeps
    /// until it has returned, so it is not for the handler.
    pub(crate) fn close(&self) {
        let ring = self.state.with(|state| {
            state.calls.end();
            while state.calls.is_running() {
                self.over.wait(state);
            }
            // What is left of the queue can be dropped in any context, which this can't.
            mem::replace(&mut state.ring, Ring::without_room())
        });
        // Nobody reads these entries. Endpoints that are still bound need their places.
        self.give_back(ring.len());
        drop(ring);
    }

    /// Gives back so many places, of which nobody has any use.
    fn give_back(&self, places: usize) {
        // INVARIANT: By the requirements of this function.
        self.taken.fetch_sub(places, Release);
    }

    /// Puts in an entry, that had a place, and tells who wants to know.
    fn put(&self, entry: Entry) {
        let call = self.state.with(|state| {
            let state = &mut **state;
            if !state.ring.push(entry) {
                // Closed; otherwise, by the invariant, there is room.
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

    fn call_handler(&self) {
        let mut after = After::Again;
        while after == After::Again {
            if let Some(handler) = &self.handler {
                handler.notify();
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
/// Dropping it gives it back, and nothing is reported: for operations that didn't begin after all,
/// and for those that ended well and that nobody wants to hear of. Any context.
///
/// Whoever completes something may have to call the consumer's handler, which takes locks of the
/// consumer's, posts operations and reads the queue. So it is not done inside of a call by which the
/// consumer posts, which may have such a lock, nor under a lock that posting takes.
#[must_use = "dropping it reports nothing"]
pub struct Place(Option<Arc<CompletionQueue>>);

impl Place {
    /// Reports that the operation has ended well. Any context; may call the consumer's handler.
    pub fn complete(self, done: Completion) {
        self.put(Entry::Done(done));
    }

    /// Reports that the operation has failed. Any context; may call the consumer's handler.
    pub fn fail(self, failure: Failure) {
        self.put(Entry::Failed(failure));
    }

    fn put(mut self, entry: Entry) {
        if let Some(queue) = self.0.take() {
            queue.put(entry);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.give_back(1);
        }
    }
}

/// What a reader of completions gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// So many completions, at least one.
    Done(usize),
    /// There is nothing.
    Empty,
    /// There is a failure to read about first.
    Failure,
    /// There is nothing, and a signal to the thread has ended the wait for it.
    Interrupted,
}

/// How many completions are copied at a time with interrupts off.
pub(super) const BATCH: usize = 64;

/// Why a wait is over before there is enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The time is over, or somebody wants the waiter back.
    Enough,
    /// There is a signal for the thread.
    Interrupted,
}

impl CompletionQueue {
    /// Gives `out` the next completions, at most `most`, which is not 0, and up to the first failure.
    /// Any context; `out` is called with interrupts off.
    pub(crate) fn read(&self, most: usize, mut out: impl FnMut(&Completion)) -> Reading {
        let first = self.state.with(|state| self.begin(state, most, &mut out));
        self.go_on(first, most, out)
    }

    /// As [`read`](Self::read), but waits until there are `threshold` entries or a failure, for as
    /// long as `left` says or for ever; then it gives what there is. Sleeps.
    pub(crate) fn wait_and_read(
        &self,
        most: usize,
        threshold: usize,
        left: Option<Jiffies>,
        mut out: impl FnMut(&Completion),
    ) -> Reading {
        // More than there is room for could never come.
        let threshold = threshold.clamp(1, self.size);
        let first = self.state.with(|state| {
            state.waits.waiting += 1;
            let end = self.wait(state, threshold, left);
            state.waits.waiting -= 1;
            if end == Some(End::Interrupted) && state.ring.len() == 0 {
                return Reading::Interrupted;
            }
            self.begin(state, most, &mut out)
        });
        self.go_on(first, most, out)
    }

    /// Takes the failure out that is next, if one is. Any context.
    pub(crate) fn read_failure(&self) -> Option<Failure> {
        self.state.with(|state| {
            let failure = state.ring.pop_failed();
            self.give_back(failure.iter().count());
            failure
        })
    }

    /// Brings those back who wait; if nobody does, the next who would have to. Any context.
    pub(crate) fn signal(&self) {
        self.state.with(|state| {
            if state.waits.signal() {
                self.readable.notify_all();
            }
        });
    }

    /// Reads as many as are copied at a time, and hears of it where there is nothing.
    fn begin(&self, state: &mut State, most: usize, out: impl FnMut(&Completion)) -> Reading {
        match self.batch(state, most, out) {
            0 if state.ring.len() == 0 => {
                state.calls.found_empty();
                Reading::Empty
            }
            0 => Reading::Failure,
            some => Reading::Done(some),
        }
    }

    /// Reads what is left of `most` after the first batch.
    fn go_on(&self, first: Reading, most: usize, mut out: impl FnMut(&Completion)) -> Reading {
        let Reading::Done(mut all) = first else {
            return first;
        };
        let mut last = all;
        while last == BATCH && all < most {
            last = self
                .state
                .with(|state| self.batch(state, most - all, &mut out));
            all += last;
        }
        Reading::Done(all)
    }

    fn batch(&self, state: &mut State, most: usize, mut out: impl FnMut(&Completion)) -> usize {
        let mut read = 0;
        while read < most.min(BATCH) {
            let Some(done) = state.ring.pop_done() else {
                break;
            };
            out(&done);
            read += 1;
        }
        self.give_back(read);
        read
    }

    /// Sleeps until there is enough to read. Says what else has ended that.
    fn wait(
        &self,
        state: &mut IrqGuard<'_, State>,
        threshold: usize,
        mut left: Option<Jiffies>,
    ) -> Option<End> {
        let mut end = None;
        let mut seen = None;
        while state.ring.len() < threshold && !state.ring.has_failure() {
            if end.is_some() {
                return end;
            }
            if left == Some(0) || state.waits.is_signalled(&mut seen) {
                return Some(End::Enough);
            }
            state.waits.wake_at(threshold);
            let Some(jiffies) = left else {
                let interrupted = self.readable.wait_interruptible(state);
                end = interrupted.then_some(End::Interrupted);
                continue;
            };
            left = match self.readable.wait_interruptible_timeout(state, jiffies) {
                CondVarTimeoutResult::Timeout => Some(0),
                CondVarTimeoutResult::Woken { jiffies } => Some(jiffies),
                CondVarTimeoutResult::Signal { jiffies } => {
                    end = Some(End::Interrupted);
                    Some(jiffies)
                }
            };
        }
        None
    }
}
