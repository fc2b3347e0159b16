// SPDX-License-Identifier: GPL-2.0

//! The wakeups of a completion queue: calls of its handler, and its waiters.
//!
//! The thread that adds a completion calls the handler, after it has released the lock of the queue. Completions that
//! arrive during a call are left to the thread that makes the call. So calls never overlap, a handler that completes an
//! operation is not called recursively, and no thread waits for a handler.

use super::ring::CqRing;
use kernel::task::Task;

/// The handler of a queue that becomes readable. It must not sleep. Any context; the caller holds no lock of the queue.
pub(crate) type Notify = dyn Fn() + Send + Sync;

/// The state of the handler.
pub(super) struct Calls {
    next: Next,
    /// The address of the task that runs the handler.
    running: Option<usize>,
}

/// The time of the next call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// At the next completion.
    Armed,
    /// After a reader finds the queue empty, or the end of its completions.
    Called,
    /// When the current call returns.
    Again,
    /// Never.
    Over,
}

/// The next step of the thread that has called the handler.
#[derive(PartialEq, Eq)]
pub(super) enum After {
    /// Call the handler again.
    Again,
    /// Nothing: the handler was called for all completions.
    Idle,
    /// Wake a task that waits for the end of the last call.
    Over,
}

impl Calls {
    /// Creates the state of a new queue.
    pub(super) fn new(has_handler: bool) -> Self {
        Self {
            next: match has_handler {
                true => Next::Armed,
                false => Next::Over,
            },
            running: None,
        }
    }

    /// Records a completion. Returns whether the caller must call the handler, and repeat that while
    /// [`returned`](Self::returned) requests it. Any context.
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

    /// Records that the handler has returned. Any context.
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

    /// Arms the handler, because a reader found the queue empty. Any context.
    pub(super) fn found_empty(&mut self) {
        if matches!(self.next, Next::Called | Next::Again) {
            self.next = Next::Armed;
        }
    }

    /// Returns whether the next completion must be reported to the handler. Any context.
    pub(super) fn is_armed(&self) -> bool {
        self.next == Next::Armed
    }

    /// Has the handler not called before a reader finds the queue empty again. Any context.
    pub(super) fn disarm(&mut self) {
        if self.next == Next::Armed {
            self.next = Next::Called;
        }
    }

    /// Has the handler called again when it returns, because a reader has read all up to a failure. Any context.
    pub(super) fn found_failure(&mut self) {
        if self.next == Next::Called && self.running.is_some() {
            self.next = Next::Again;
        }
    }

    /// Prevents later calls. Any context.
    pub(super) fn end(&mut self) {
        self.next = Next::Over;
    }

    /// Returns whether the handler runs. Any context.
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Returns whether the caller runs inside of the handler, or in an interrupt of it. Any context.
    pub(super) fn is_running_here(&self) -> bool {
        // In an interrupt, the current task is the interrupted one. It does nothing else until the interrupt ends.
        self.running == Some(current_task())
    }
}

fn current_task() -> usize {
    Task::current_raw().addr()
}

/// The waiters of a queue.
///
/// # Invariants
///
/// `wake_at` is at most the threshold of each waiter that sleeps and was not notified.
pub(super) struct Waits {
    /// The number of waiters.
    pub(super) waiting: usize,
    /// The number of entries at which to wake the waiters. A failure wakes them, too.
    wake_at: Option<usize>,
    /// The number of signals that ended waits.
    signals: u64,
    /// A signal came while there was no waiter. It ends the next wait.
    kept: bool,
}

impl Waits {
    /// The state without waiters.
    pub(super) const NONE: Self = Self {
        waiting: 0,
        wake_at: None,
        signals: 0,
        kept: false,
    };

    /// Records a completion. Returns whether the caller must wake the waiters. Any context.
    pub(super) fn came(&mut self, ring: &CqRing) -> bool {
        let wake = |at: &mut usize| ring.len() >= *at || ring.has_failure();
        // INVARIANT: If this clears `wake_at`, the caller notifies all waiters.
        self.wake_at.take_if(wake).is_some()
    }

    /// Records that a waiter is going to sleep until there are `threshold` entries. Any context.
    pub(super) fn wake_at(&mut self, threshold: usize) {
        // INVARIANT: `wake_at` is at most `threshold`, and doesn't grow.
        self.wake_at = Some(self.wake_at.map_or(threshold, |at| at.min(threshold)));
    }

    /// Ends the wait of all waiters, or of the next one. Returns whether the caller must wake the waiters. Any context.
    pub(super) fn signal(&mut self) -> bool {
        if self.waiting == 0 {
            self.kept = true;
            return false;
        }
        self.signals = self.signals.wrapping_add(1);
        // INVARIANT: The caller notifies all waiters.
        self.wake_at.take().is_some()
    }

    /// Returns whether a signal ends the wait. `seen` is `None` at the start of a wait. Any context.
    pub(super) fn is_signalled(&mut self, seen: &mut Option<u64>) -> bool {
        let before = *seen.get_or_insert(self.signals);
        before != self.signals || core::mem::take(&mut self.kept)
    }
}
