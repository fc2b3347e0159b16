// SPDX-License-Identifier: GPL-2.0

//! Regions that are registered on the queue pair of an endpoint (`KFI_MR_ENDPOINT`).
//!
//! Their registration goes ahead of the transfer that carries the key to the peer, and is waited for by
//! nobody. A device carries out what is in a send queue one after the other, as far as it is about
//! regions.

use super::{
    staged::Giving,
    Parts, //
};
use crate::{
    params,
    refused, //
};
use kernel::{
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};
use kfabric::Refusal;
use rdma::{
    lent::{
        LentMr,
        RegionWr, //
    },
    request::{
        Ended,
        NotPosted, //
    },
    sg::Memory, //
};

/// How often memory is asked for by who can't go on without, and at which intervals.
const ATTEMPTS: u32 = 100;
const A_MOMENT: Delta = Delta::from_millis(10);

/// Nobody is told how an invalidation has ended: the region is, of its registration.
fn nobody(ended: Ended<RegionWr<Memory>>) {
    drop(ended);
}

impl Parts {
    /// Has a region registered, at once or, if there is `more` to come, in one go with that; returns `false`,
    /// and does nothing, if the endpoint is yet to be connected. Any context. After an error nothing was
    /// begun.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the connection is gone.
    /// - `EAGAIN`: its queue is full.
    /// - `ENOMEM`
    pub(crate) fn register(&self, mr: &mut LentMr<Memory>, more: bool) -> Result<bool, Refusal> {
        let inside = self.gate.enter().ok_or(refused::not_connected())?;
        let endpoint = inside.get().endpoint();
        if !endpoint.is_open() {
            return Ok(false);
        }
        let registered =
            mr.register(|request| self.conn.give(endpoint, request, more, Giving::Silent));
        registered.map_err(refused::not_posted)?;
        self.conn.fates().add(mr.fate());
        Ok(true)
    }

    /// Sees to it that the registration of a region ends. Sleeps until it has, or the endpoint is over.
    pub(crate) fn settle(&self, mr: &LentMr<Memory>) {
        self.conn.fates().remove(mr.fate());
        let settled = mr.is_settled() || self.nudge(mr).is_ok() && mr.wait(params::wr_timeout());
        if !settled {
            // Nothing else tells.
            self.end();
        }
    }

    /// Posts something behind the registration of a region, which tells that that has ended: an invalidation,
    /// which the device does without the peer. May sleep.
    fn nudge(&self, mr: &LentMr<Memory>) -> Result {
        if mr.fate().is_invalidated() {
            // There is something behind it, by which the peer has got the key.
            return Ok(());
        }
        let inside = self.gate.enter().ok_or(ENODEV)?;
        let endpoint = inside.get().endpoint();
        // It would be a pity to end the connection for want of so little memory.
        let mut request = mr.invalidate(nobody);
        for _ in 0..ATTEMPTS {
            if request.is_ok() {
                break;
            }
            fsleep(A_MOMENT);
            request = mr.invalidate(nobody);
        }
        let request = request?;
        match self.conn.give(endpoint, request, false, Giving::Told) {
            Ok(()) => Ok(()),
            // There is something behind it, or before it that fails.
            Err(NotPosted { error, .. }) if error == EAGAIN => Ok(()),
            Err(NotPosted { error, .. }) => Err(error),
        }
    }
}
