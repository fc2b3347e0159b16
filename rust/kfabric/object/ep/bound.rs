// SPDX-License-Identifier: GPL-2.0

//! What is bound to an endpoint: queues and counters that its transfers report to.

use super::{
    reports::Reports,
    srx::BoundSrx, //
};
use crate::{
    object::eq::BoundEq,
    post::op::Op,
    provider::cntr::Counter, //
};
use kernel::sync::{
    Arc,
    SetOnce, //
};

/// What is bound to an endpoint.
pub(super) struct Bound {
    pub(super) eq: SetOnce<BoundEq>,
    pub(super) transmit: SetOnce<Reports>,
    pub(super) receive: SetOnce<Reports>,
    /// What its receives come from, if it shares that.
    pub(super) srx: SetOnce<BoundSrx>,
    /// Of sends, receives, reads and writes.
    pub(super) counters: [SetOnce<Arc<Counter>>; 4],
}

impl Bound {
    pub(super) fn new() -> Self {
        Self {
            eq: SetOnce::new(),
            transmit: SetOnce::new(),
            receive: SetOnce::new(),
            srx: SetOnce::new(),
            counters: [const { SetOnce::new() }; 4],
        }
    }

    /// The queue that a transfer reports to.
    pub(super) fn reports(&self, op: &Op) -> Option<&Reports> {
        match op {
            Op::Receive => self.receive.as_ref(),
            _ => self.transmit.as_ref(),
        }
    }

    /// The counter that counts a transfer.
    pub(super) fn counter(&self, op: &Op) -> Option<&Arc<Counter>> {
        let index = match op {
            Op::Send { .. } => 0,
            Op::Receive => 1,
            Op::Read | Op::Atomic { fetches: true, .. } => 2,
            Op::Write { .. } | Op::Atomic { .. } => 3,
        };
        self.counters.get(index)?.as_ref()
    }
}
