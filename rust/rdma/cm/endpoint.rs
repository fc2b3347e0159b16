// SPDX-License-Identifier: GPL-2.0

//! Queue pairs that get connected.

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};

use rdma_bindings as b;

use super::{
    conn_param::ConnParam,
    id::Locked, //
};
use crate::{
    device::Device,
    errno,
    gather::{
        Copied,
        Gather, //
    },
    port::Protocol,
    qp::{
        Init,
        Qp, //
    },
    request::{
        NotPosted,
        Request, //
    },
    wr::{
        Receive,
        WorkRequest, //
    }, //
};

/// A queue pair that is, gets or was connected to a peer by the connection manager, once.
///
/// It takes receive requests from the start, and send requests once it is connected. In between its
/// state changes beneath those who post: so it is shared, and the steps of a [`Qp`] are not types
/// here.
///
/// To be dropped after its [`Connection`](super::Connection), which may sleep: see
/// [`Connection::close`](super::Connection::close).
pub struct Endpoint {
    qp: Qp<Init>,
    /// A connection is its, or was.
    claimed: Atomic<bool>,
    /// It takes send requests.
    sends: Atomic<bool>,
    /// A number that no other endpoint has, had or will have.
    id: u64,
}

static LAST_ID: Atomic<u64> = Atomic::new(0);

impl Endpoint {
    /// Takes a queue pair, which peers may do to what its [access](Qp::init) says. May sleep.
    ///
    /// The port that it has is replaced by that through which the peer is reached.
    pub fn new(qp: Qp<Init>) -> Result<Arc<Self>> {
        let this = Self {
            qp,
            claimed: Atomic::new(false),
            sends: Atomic::new(false),
            id: LAST_ID.fetch_add(1, Relaxed).wrapping_add(1),
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// The queue pair's device.
    pub fn device(&self) -> &Device {
        self.qp.pd().device()
    }

    /// The queue pair's number. Any context.
    pub fn number(&self) -> u32 {
        self.qp.number()
    }

    /// Posts a send request. Any context.
    ///
    /// # Errors
    ///
    /// - ENOTCONN if it isn't connected yet.
    /// - As [`NotPosted`] says.
    pub fn post<K, F>(
        &self,
        request: KBox<Request<WorkRequest<K>, F>>,
    ) -> Result<(), NotPosted<WorkRequest<K>, F>> {
        if !self.sends.load(Acquire) {
            let error = errno::enotconn();
            return Err(NotPosted { error, request });
        }
        self.qp.post_send(request)
    }

    /// Makes a gather of bytes that go with a request on this endpoint, see [`Gather::copied`]. Any context.
    pub fn copied(&self, bytes: KVec<u8>, flags: Flags) -> Result<Gather<Copied>> {
        Gather::copied(&self.qp, bytes, flags)
    }

    /// How many more send and receive requests there are places for; each may be off by those that begin
    /// or end just now. Any context.
    pub fn room(&self) -> (usize, usize) {
        (
            self.qp.sends().credits().left(),
            self.qp.receives().credits().left(),
        )
    }

    /// Whether it is connected, or was. Any context.
    pub fn is_open(&self) -> bool {
        self.sends.load(Acquire)
    }

    /// A number that no other endpoint has, had or will have.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The queue pair.
    pub(super) fn qp(&self) -> &Qp<Init> {
        &self.qp
    }

    /// Posts a receive request. Any context.
    pub fn post_receive<K, F>(
        &self,
        request: KBox<Request<Receive<K>, F>>,
    ) -> Result<(), NotPosted<Receive<K>, F>> {
        self.qp.post_receive(request)
    }

    /// Puts the queue pair into error: all that is outstanding gets flushed, and what is posted
    /// from now on is refused. May sleep.
    pub fn fail(&self) -> Result {
        self.qp.refuse();
        self.qp.fail()
    }

    /// Puts the queue pair into error, waits until all requests have ended, and returns whether they have. Sleeps at
    /// most `limit` seconds for each of its queues.
    ///
    /// Nobody may post any more. If this returns false, the device may carry requests out until the endpoint goes.
    pub fn drain(&self, limit: u32) -> bool {
        // An attempt before may have failed.
        match self.fail() {
            Ok(()) if self.is_open() => self.qp.await_last_shared(limit),
            Ok(()) => (),
            Err(error) => pr_warn!(
                "{}: queue pair {} can't be put into error: {}\n",
                self.device().name(),
                self.number(),
                error.to_errno()
            ),
        }
        // One after the other, whatever came of the first.
        self.qp.drain(limit) & self.qp.drain_receives(limit)
    }

    /// Whether something that was posted has failed. Any context.
    pub(super) fn is_broken(&self) -> bool {
        let queues = [self.qp.sends(), self.qp.receives()];
        queues.iter().any(|queue| queue.broken().is_some())
    }

    /// Becomes that of a connection. `EBUSY` if there is or was one.
    pub(super) fn claim(&self) -> Result {
        self.claimed.cmpxchg(false, true, Full).map_err(|_| EBUSY)?;
        Ok(())
    }

    /// Whether the identifier's port, if it has one yet, speaks iWARP.
    pub(super) fn is_iwarp(&self, id: &Locked<'_>) -> bool {
        let port = self.device().port(id.port());
        port.is_some_and(|port| port.protocol() == Protocol::IWarp)
    }

    /// What has to be done before a peer is asked for: over iWARP, where the queue pair takes part
    /// in that.
    pub(super) fn prepare(&self, id: &Locked<'_>) -> Result {
        if self.is_iwarp(id) {
            self.change(id, b::ib_qp_state_IB_QPS_INIT, |_| ())?;
            self.change(id, b::ib_qp_state_IB_QPS_RTR, |_| ())?;
        }
        Ok(())
    }

    /// Connects the queue pair to the peer that has been agreed with; by these terms if that is to
    /// be told.
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

    /// The queue pair takes send requests.
    pub(super) fn enable_sends(&self) {
        self.sends.store(true, Release);
    }

    /// Takes the queue pair to a state, or leaves that to the driver, as over iWARP.
    fn change(
        &self,
        id: &Locked<'_>,
        state: b::ib_qp_state,
        adjust: impl FnOnce(&mut b::ib_qp_attr),
    ) -> Result {
        let (mut attr, mask) = id.attributes(state)?;
        // What peers may do is what this was made with, whatever the connection manager thinks.
        let mask = mask & !b::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS;
        if mask == 0 {
            return Ok(());
        }
        adjust(&mut attr);
        self.qp.modify(&mut attr, mask)
    }
}
