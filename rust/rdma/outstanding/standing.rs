// SPDX-License-Identifier: GPL-2.0

//! How a queue stands: how much room it has, and whether it is broken.

use crate::{
    credits::Credits,
    wc::WcStatus, //
};
use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// How a queue stands.
#[pin_data]
pub(super) struct Standing {
    /// One for each request that may be under way, but for the one that drains the queue.
    #[pin]
    pub(super) credits: Credits,
    /// How many that are under way complete only if they fail, and wait for nobody.
    pub(super) silent: Atomic<usize>,
    /// What broke the queue; [`WcStatus::SUCCESS`] while nothing has.
    broken: Atomic<u32>,
    /// Queue pairs share it: what breaks one of them doesn't break the queue.
    shared: bool,
}

impl Standing {
    /// A queue with room for so many requests.
    pub(super) fn new(depth: u32, shared: bool) -> impl PinInit<Self> {
        pin_init!(Self {
            credits <- Credits::new(depth),
            silent: Atomic::new(0),
            broken: Atomic::new(WcStatus::SUCCESS.as_raw()),
            shared,
        })
    }

    /// What broke the queue, if anything has. Any context.
    #[inline]
    pub(super) fn broken(&self) -> Option<WcStatus> {
        let status = WcStatus::from_raw(self.broken.load(Relaxed));
        (status != WcStatus::SUCCESS).then_some(status)
    }

    /// The queue is broken. The first failure that is told is kept. Any context.
    pub(super) fn break_by(&self, status: WcStatus) {
        if self.shared {
            return;
        }
        let first = WcStatus::from_raw(self.broken.load(Relaxed)).and(status);
        self.broken.store(first.as_raw(), Relaxed);
    }
}
