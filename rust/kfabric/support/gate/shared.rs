// SPDX-License-Identifier: GPL-2.0

//! A count that is small, and shut at once.
//!
//! Lock order: its lock is a leaf. It is taken with interrupts off, in any context in which a
//! spinlock may be taken, which is what "any context" means below.

use super::{
    users::Users,
    NAME, //
};
use crate::support::irqlock::IrqLock;
use kernel::{
    prelude::*,
    static_lock_class,
    sync::CondVar, //
};

/// A count under a spinlock of its own. For what there is many of, as regions, and for what is
/// taken away as often as it is used.
#[pin_data(PinnedDrop)]
pub struct Shared {
    #[pin]
    pub(super) state: IrqLock<State>,
    /// Notified when the last one has left after the end.
    #[pin]
    left: CondVar,
}

pub(super) struct State {
    open: bool,
    pub(super) users: usize,
}

// SAFETY: Who comes is counted under the lock, and who drains it finds the count at 0 under the lock.
unsafe impl Users for Shared {
    fn new(open: bool) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            state <- IrqLock::new(State { open, users: 0 }, NAME, static_lock_class!()),
            left <- CondVar::new(NAME, static_lock_class!()),
        }? Error)
    }

    fn enter(&self) -> bool {
        self.state.with(|state| {
            if state.open {
                state.users += 1;
            }
            state.open
        })
    }

    unsafe fn leave(&self) {
        self.state.with(|state| {
            state.users -= 1;
            // Under the lock: who waits may then let it go.
            if state.users == 0 && !state.open {
                self.left.notify_all();
            }
        });
    }

    unsafe fn shut(&self) {
        self.state.with(|state| state.open = false);
    }

    fn drain(&self) {
        self.state.with(|state| {
            while state.users > 0 {
                self.left.wait(state);
            }
        });
    }

    unsafe fn open(&self) {
        self.state.with(|state| state.open = true);
    }
}

#[pinned_drop]
impl PinnedDrop for Shared {
    /// Sleeps until all who were counted have left.
    fn drop(self: Pin<&mut Self>) {
        self.state.with(|state| state.open = false);
        self.drain();
    }
}
