// SPDX-License-Identifier: GPL-2.0

//! Queue pairs that share their receives.

use super::{
    Depths,
    Qp,
    RawQp,
    Reset, //
};
use crate::{
    cq::{
        Cq,
        Entries, //
    },
    pd::Pd,
    srq::Srq, //
};
use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::Arc, //
};

impl Qp<Reset> {
    /// As [`create`](Self::create), with receives that others share: it has none of its own, and needs so
    /// many [entries](Srq::entries) for these.
    pub fn create_sharing(
        pd: &Arc<Pd>,
        send_cq: &Arc<Cq>,
        receive_cq: &Arc<Cq>,
        depths: Depths,
        srq: &Arc<Srq>,
    ) -> Result<Self> {
        let depths = Depths {
            receive: 0,
            ..depths
        };
        Ok(Self {
            raw: RawQp::create(pd, send_cq, receive_cq, depths, Some(srq))?,
            _state: PhantomData,
        })
    }
}

impl<S> Qp<S> {
    /// Checks whether it shares its receives with others. Any context.
    pub(crate) fn shares_receives(&self) -> bool {
        self.raw.srq.is_some()
    }

    /// Waits until the device takes no more of the receives that others share, and has told of those
    /// that it had taken: what it has not told of when the queue pair goes is lost to all of them until
    /// their queue goes. Sleeps at most so many seconds, and not at all if the device is known not to tell.
    ///
    /// The queue pair must have been connected, and be in error.
    pub(crate) fn await_last_shared(&self, limit: u32) {
        if !self.shares_receives() || !self.pd().reports_last_wqe() {
            return;
        }
        // SAFETY: The queue pair is there as long as `self`.
        let told = unsafe { rdma_bindings::rdma_helper_await_last_wqe(self.as_raw(), limit) };
        if !told {
            pr_debug!("queue pair {}: no last receive\n", self.number());
            // One that is in error and silent for that long stays silent the next time.
            self.pd().no_last_wqe();
        }
    }
}

impl RawQp {
    /// Sees to it that what has completed of receives that others share is told, which aren't over with
    /// this. Sleeps.
    pub(super) fn settle(&self, entries: &Option<[Entries; 2]>) {
        if let (Some(_), Some([_, receives])) = (&self.srq, entries) {
            receives.cq().settle();
        }
    }
}
