// SPDX-License-Identifier: GPL-2.0

//! When the handler of a completion queue is called, and by whom.
//!
//! Whoever puts in the completion that it is due for calls it, once the queue's lock is free again.
//! What comes for it while it runs is left to the one who is calling it. So there is one call at a
//! time, a handler that completes something itself isn't called inside of its own call, and nobody
//! waits.
//!
//! Who waits for a completion queue, and what for.

use super::ring::Ring;
use kernel::task::Task;

/// What to call when a queue has something to read.
pub(crate) trait Notify: Send + Sync {
    /// Tells its owner, who must not sleep. In any context, without locks of the queue.
    fn notify(&self);
}

/// When the handler is called next, and where it runs now.
pub(super) struct Calls {
    next: Next,
    /// The task in whose context it runs, by its address.
    running: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// For the next completion.
    Armed,
    /// It was called, and nobody has found the queue empty since.
    Called,
    /// As soon as the call that is under way has returned.
    Again,
    /// Never.
    Over,
}

/// What is left to do for who has called the handler.
#[derive(PartialEq, Eq)]
pub(super) enum After {
    /// It is to be called once more.
    Again,
    /// It was called for all there is.
    Idle,
    /// It is never called again, which somebody may wait for.
    Over,
}

impl Calls {
    /// Nothing has come yet, nor ever calls anything if there is no handler.
    pub(super) fn new(has_handler: bool) -> Self {
        Self {
            next: match has_handler {
                true => Next::Armed,
                false => Next::Over,
            },
            running: None,
        }
    }

    /// Something has come. Returns whether the caller is to call the handler now, and then again as
    /// [`returned`](Self::returned) says. Any context.
    pub(super) fn came(&mut self) -> bool {
        if self.next != Next::Armed {
            return false;
        }
        if self.running.is_some() {
            self.next = Next::Again;
            return false;
        }
        self.next = Next::Called;
        self.running = Some(current_task());
        true
    }

    /// The handler has returned to its caller. Any context.
    pub(super) fn returned(&mut self) -> After {
        if self.next == Next::Again {
            self.next = Next::Called;
            return After::Again;
        }
        self.running = None;
        match self.next {
            Next::Over => After::Over,
            _ => After::Idle,
        }
    }

    /// Somebody was told that there is nothing to read. Any context.
    pub(super) fn found_empty(&mut self) {
        if matches!(self.next, Next::Called | Next::Again) {
            self.next = Next::Armed;
        }
    }

    /// No call begins from here on. Any context.
    pub(super) fn end(&mut self) {
        self.next = Next::Over;
    }

    /// Does the handler run? Any context.
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Does this code run inside of the handler, or in an interrupt of it? Any context.
    pub(super) fn is_running_here(&self) -> bool {
        // An interrupt has the task that it has interrupted. That one does nothing else before the
        // interrupt is over, and no other CPU has it.
        self.running == Some(current_task())
    }
}

fn current_task() -> usize {
    Task::current_raw().addr()
}

/// Those who wait.
///
/// # Invariants
///
/// `wake_at` is not above the threshold of any waiter that sleeps and was not notified.
pub(super) struct Waits {
    /// How many wait.
    pub(super) waiting: usize,
    /// At how many entries they are to be woken, or when there is a failure.
    wake_at: Option<usize>,
    /// How often they were called back.
    signals: u64,
    /// Nobody waited when they were; who waits next is to come back at once.
    kept: bool,
}

impl Waits {
    /// Nobody waits.
    pub(super) const NONE: Self = Self {
        waiting: 0,
        wake_at: None,
        signals: 0,
        kept: false,
    };

    /// Something has come; returns whether waiters are to be woken. Any context.
    pub(super) fn came(&mut self, ring: &Ring) -> bool {
        let wake = |at: &mut usize| ring.len() >= *at || ring.has_failure();
        // INVARIANT: If it is gone, all are notified.
        self.wake_at.take_if(wake).is_some()
    }

    /// A waiter is about to sleep until there are so many entries. Any context.
    pub(super) fn wake_at(&mut self, threshold: usize) {
        // INVARIANT: Not above this threshold, nor above what it was for others.
        self.wake_at = Some(self.wake_at.map_or(threshold, |at| at.min(threshold)));
    }

    /// Calls all back who wait, or the next who is going to; returns whether they are to be woken.
    /// Any context.
    pub(super) fn signal(&mut self) -> bool {
        if self.waiting == 0 {
            self.kept = true;
            return false;
        }
        self.signals = self.signals.wrapping_add(1);
        // INVARIANT: All are notified.
        self.wake_at.take().is_some()
    }

    /// Was a waiter called back who finds in `seen` what it has found there before? Any context.
    pub(super) fn is_signalled(&mut self, seen: &mut Option<u64>) -> bool {
        let before = *seen.get_or_insert(self.signals);
        before != self.signals || core::mem::take(&mut self.kept)
    }
}
