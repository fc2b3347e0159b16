// SPDX-License-Identifier: GPL-2.0

//! Queue pairs for connections.

use super::*;
use crate::{
    gather::{
        Buffer,
        Gather, //
    },
    port::Protocol, //
};
use kernel::{
    alloc::Flags,
    sync::SetOnce,
    time::{
        Instant,
        Monotonic, //
    }, //
};

/// A queue pair that the connection manager connects to a peer once.
///
/// It accepts receive requests from its creation, and send requests once it is connected. Its state
/// changes while other tasks post. So it is shared, and the states of a [`Qp`] are not types here.
///
/// The [`Connection`] must be dropped first. The drop may sleep: see
/// [`Connection::close`](super::Connection::close).
pub struct Endpoint {
    pub(crate) qp: Qp<Init>,
    /// True if it belongs or belonged to a connection.
    claimed: Atomic<bool>,
    /// True if it accepts send requests.
    pub(crate) sends: Atomic<bool>,
    /// The time when the queue pair was put into error.
    failed: SetOnce<Instant<Monotonic>>,
    /// Unique number of this endpoint.
    pub(super) id: u64,
}

static LAST_ID: Atomic<u64> = Atomic::new(0);

impl Endpoint {
    /// Creates an endpoint from a queue pair whose [access](Qp::init) permits the peer's
    /// operations. May sleep.
    ///
    /// Connecting replaces the port of the queue pair by that of the route.
    pub fn new(qp: Qp<Init>) -> Result<Arc<Self>> {
        let this = Self {
            qp,
            claimed: Atomic::new(false),
            sends: Atomic::new(false),
            failed: SetOnce::new(),
            id: LAST_ID.fetch_add(1, Relaxed).wrapping_add(1),
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Returns the device of the queue pair.
    pub fn device(&self) -> &Device {
        &self.qp.pd().device
    }

    /// Returns the number of the queue pair. Any context.
    pub fn number(&self) -> u32 {
        self.qp.number()
    }

    /// Creates a gather of bytes for a request on this endpoint, see [`Gather::copied`]. Any
    /// context.
    pub fn copied(&self, bytes: KVec<u8>, flags: Flags) -> Result<Gather<Buffer>> {
        Gather::copied(&self.qp, bytes, flags)
    }

    /// Returns the free places for send and for receive requests. Both are estimates while other
    /// tasks post or requests complete. Any context.
    pub fn room(&self) -> (usize, usize) {
        (
            self.qp.raw.sends.credits().left(),
            self.qp.raw.receives.credits().left(),
        )
    }

    /// Checks whether it is or was connected. Any context.
    pub fn is_open(&self) -> bool {
        self.sends.load(Acquire)
    }

    /// Moves the queue pair to the error state: outstanding requests are flushed, and new ones are
    /// refused. May sleep.
    pub fn fail(&self) -> Result {
        self.qp.refuse();
        self.qp.fail()?;
        self.failed.populate(Instant::now());
        Ok(())
    }

    /// Moves the queue pair to the error state and waits until all requests have completed. Returns
    /// whether they have. Sleeps at most `limit` seconds for each queue, and one more second for the receives if the sends
    /// do not end.
    ///
    /// The time since the queue pair was [put into error](Self::fail) counts. So several endpoints share their limit if
    /// the caller puts all of them into error first.
    ///
    /// The caller must have stopped posting. If this returns false, the device may execute requests
    /// until the endpoint is dropped.
    pub fn drain(&self, limit: u32) -> bool {
        // An earlier attempt may have failed.
        let failed = self.fail();
        let spent = |at: &Instant<Monotonic>| at.elapsed().as_millis() / 1000;
        let spent = self.failed.as_ref().map_or(0, spent);
        let limit = limit.saturating_sub(spent.try_into().unwrap_or(u32::MAX));
        match failed {
            Ok(()) if self.is_open() => self.qp.await_last_shared(limit),
            Ok(()) => (),
            Err(error) => pr_warn!(
                "{}: queue pair {} can't be put into error: {}\n",
                self.device().name(),
                self.number(),
                error.to_errno()
            ),
        }
        // The receives are drained even if the sends fail to drain. A device that does not end the sends
        // may not end them, either.
        let has_sent = self.qp.drain(limit);
        self.qp
            .drain_receives(if has_sent { limit } else { limit.min(1) })
            && has_sent
    }

    /// Checks whether a posted request has failed. Any context.
    pub(super) fn is_broken(&self) -> bool {
        let queues = [&self.qp.raw.sends, &self.qp.raw.receives];
        queues.iter().any(|queue| queue.broken().is_some())
    }

    /// Claims the endpoint for a connection. Returns `EBUSY` if it belongs or belonged to one.
    pub(super) fn claim(&self) -> Result {
        self.claimed.cmpxchg(false, true, Full).map_err(|_| EBUSY)?;
        Ok(())
    }

    /// Checks whether the identifier's port uses iWARP. Returns false if the port is not known yet.
    pub(super) fn is_iwarp(&self, id: &Locked<'_>) -> bool {
        let port = self.device().port(id.port());
        port.is_some_and(|port| port.protocol() == Protocol::IWarp)
    }

    /// Prepares the queue pair for the request to the peer. Over iWARP it takes part in the
    /// handshake.
    pub(super) fn prepare(&self, id: &Locked<'_>) -> Result {
        if self.is_iwarp(id) {
            self.change(id, b::ib_qp_state_IB_QPS_INIT, |_| ())?;
            self.change(id, b::ib_qp_state_IB_QPS_RTR, |_| ())?;
        }
        Ok(())
    }

    /// Connects the queue pair to the peer. `terms` replaces parameters of the connection manager.
    pub(super) fn connect(&self, id: &Locked<'_>, terms: Option<&ConnParam>) -> Result {
        self.change(id, b::ib_qp_state_IB_QPS_INIT, |_| ())?;
        self.change(id, b::ib_qp_state_IB_QPS_RTR, |attr| {
            if let Some(terms) = terms {
                attr.max_dest_rd_atomic = terms.responder_resources;
            }
        })?;
        self.change(id, b::ib_qp_state_IB_QPS_RTS, |attr| {
            if let Some(terms) = terms {
                attr.max_rd_atomic = terms.initiator_depth;
                attr.retry_cnt = terms.retry_count;
                attr.rnr_retry = terms.rnr_retry_count;
            }
        })?;
        self.enable_sends();
        Ok(())
    }

    /// Permits send requests.
    pub(super) fn enable_sends(&self) {
        self.sends.store(true, Release);
    }

    /// Changes the state of the queue pair. If the driver does it, as over iWARP, this does
    /// nothing.
    fn change(
        &self,
        id: &Locked<'_>,
        state: b::ib_qp_state,
        adjust: impl FnOnce(&mut b::ib_qp_attr),
    ) -> Result {
        let (mut attr, mask) = id.attributes(state)?;
        // The queue pair keeps the access rights that it was created with.
        let mask = mask & !b::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS;
        if mask == 0 {
            return Ok(());
        }
        adjust(&mut attr);
        self.qp.raw.modify(&mut attr, mask)
    }
}
