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

mod calls;
mod completion;
mod kunit;
mod read;
mod ring;
mod waits;

use self::{
    calls::{
        After,
        Calls, //
    },
    ring::{
        Entry,
        Ring, //
    },
    waits::Waits, //
};
use crate::{
    new_irq_lock,
    support::{
        errno::Errno,
        irqlock::IrqLock, //
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
        CondVar, //
    }, //
};

pub use completion::{
    Completion,
    Context,
    Failure, //
};
pub(crate) use {
    calls::Notify,
    read::Reading, //
};

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
