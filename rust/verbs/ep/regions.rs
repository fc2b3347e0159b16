// SPDX-License-Identifier: GPL-2.0

//! Regions that are registered on the queue pair of an endpoint (`KFI_MR_ENDPOINT`).
//!
//! The provider posts the registration ahead of the transfer that carries the key to the peer.
//! Nobody waits for the registration. A device carries out the requests about regions in a send
//! queue one after the other.

use super::{
    conn::{
        Conn,
        Signal, //
    },
    done::RegionCompletion,
    Inner, //
};
use crate::{
    params,
    prelude::*, //
};
use kfabric::{
    EpCore,
    EpPart, //
};
use rdma::{
    cm::Endpoint,
    endpoint_mr::{
        EndpointMr,
        Invalidation,
        RegState,
        Settled, //
    },
    Cq, //
};

/// Number of attempts to allocate memory for a task that can't continue without it, and the time
/// between two attempts.
const ATTEMPTS: u32 = 100;
const A_MOMENT: Delta = Delta::from_millis(10);

/// Number of these intervals in a second.
const MOMENTS: u32 = 100;

/// A region that is registered on an endpoint's queue, and the endpoint that has posted the
/// registration.
pub(crate) struct EpRegion {
    mr: EndpointMr<Memory>,
    endpoint: Option<Arc<EpCore>>,
}

impl EpRegion {
    /// Prepares a region for the registration on an endpoint. May sleep.
    pub(crate) fn new(mr: PreparedMr<Memory>) -> Result<Self, Refusal> {
        let mr = mr.lend().map_err(driver_errors::no_region)?;
        let endpoint = None;
        Ok(Self { mr, endpoint })
    }

    /// Registers the region on an endpoint. Returns the keys by which the peer reaches the region
    /// after a later message on that endpoint. If the endpoint is not connected yet, does nothing
    /// and returns `None`. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the connection or the endpoint is gone.
    /// - `EAGAIN`: the endpoint's queue is full.
    /// - `ENOMEM`
    pub(crate) fn register(
        &mut self,
        endpoint: &Arc<EpCore>,
        more: bool,
    ) -> Result<Option<Keys>, Refusal> {
        let Some(inside) = endpoint.enter() else {
            return match endpoint.is_open() {
                true => Ok(None),
                false => Err(driver_errors::not_connected()),
            };
        };
        let part = inside.part();
        let registered = part
            .as_deref()
            .and_then(inner)
            .map(|inner| inner.register(&mut self.mr, more));
        if !registered.transpose()?.unwrap_or(false) {
            return Ok(None);
        }
        self.endpoint = Some(endpoint.clone());
        let mr = self.mr.prepared();
        Ok(Some(Keys {
            key: u64::from(mr.rkey()),
            base: mr.iova(),
            desc: num::index(mr.lkey()),
            whole: true,
        }))
    }

    /// Returns the region, with the key that it is going to have. Any context.
    pub(crate) fn prepared(&self) -> &PreparedMr<Memory> {
        self.mr.prepared()
    }

    /// Checks whether no registration is under way. Any context.
    pub(crate) fn is_settled(&self) -> bool {
        self.mr.is_settled()
    }

    /// Checks whether the region is free: the peer has invalidated it, and that is a fence. `fence`
    /// is the fence of other regions. Any context.
    pub(crate) fn is_free_by(&self, fence: Fence) -> bool {
        self.at_endpoint(|endpoint| self.mr.is_free_by(endpoint.fence(self.mr.fate(), fence)))
            .unwrap_or(false)
    }

    /// Returns the result of the registration. Sleeps until the registration has ended, unless it
    /// [is settled](Self::is_settled).
    pub(crate) fn settle(self, fence: Fence) -> Settled<Memory> {
        let own = self.at_endpoint(|inner| {
            let mut nudge = |at: &_| invalidate(&self.mr, &inner.conn, at);
            inner.settle(self.mr.fate(), &mut nudge, fence)
        });
        self.mr.settle(own.unwrap_or(fence))
    }

    /// Calls `f` with the endpoint that has posted the registration, unless that endpoint is
    /// closed. Any context.
    fn at_endpoint<T>(&self, f: impl FnOnce(&Inner) -> T) -> Option<T> {
        let inside = self.endpoint.as_ref()?.enter()?;
        let part = inside.part();
        part.as_deref().and_then(inner).map(f)
    }
}

/// Returns the verbs side of an endpoint.
pub(super) fn inner(part: &dyn EpPart) -> Option<&Inner> {
    part.as_any().downcast_ref()
}

/// Posts an invalidation of a region. May sleep, but not for long.
///
/// # Errors
///
/// - The errors of [`Conn::give`].
/// - `ENOMEM`: there was no memory for a long time.
fn invalidate(
    mr: &EndpointMr<Memory>,
    conn: &Arc<Conn>,
    endpoint: &Arc<Endpoint>,
) -> Result<Invalidation> {
    // A lack of so little memory should not end the connection.
    let invalidate = || {
        mr.invalidate(|registering| RegionCompletion {
            registering,
            conn: conn.clone(),
        })
    };
    let mut request = invalidate();
    for _ in 0..ATTEMPTS {
        if request.is_ok() {
            break;
        }
        fsleep(A_MOMENT);
        request = invalidate();
    }
    let (request, invalidation) = request?;
    let given = conn.give(endpoint, request, false, Signal::Signaled);
    given.map_err(|not| not.error)?;
    Ok(invalidation)
}

/// Posts an invalidation behind a registration on this endpoint.
type Nudge<'a> = &'a mut dyn FnMut(&Arc<Endpoint>) -> Result<Invalidation>;

impl Inner {
    /// Has a region registered: at once, or together with the next request if there is `more` to
    /// come. If the endpoint is not connected yet, does nothing and returns `false`. Any context.
    ///
    /// # Errors
    ///
    /// After an error, nothing was posted.
    ///
    /// - `ENOTCONN`: the connection is gone.
    /// - `EAGAIN`: the endpoint's queue is full.
    /// - `ENOMEM`
    fn register(&self, mr: &mut EndpointMr<Memory>, more: bool) -> Result<bool, Refusal> {
        let inside = self.gate.enter().ok_or(driver_errors::not_connected())?;
        let resources = inside.get();
        let endpoint = match resources.endpoint() {
            Ok(endpoint) if endpoint.is_open() => endpoint,
            _ => return Ok(false),
        };
        let how = resources.signal();
        // Before the peer can have the key.
        let added = self.conn.reg_states.add(mr.fate());
        let registered = mr.register(
            |registering| RegionCompletion {
                registering,
                conn: self.conn.clone(),
            },
            |request| self.conn.give(endpoint, request, more, how),
        );
        registered.map_err(|error| {
            if added {
                self.forget(mr.fate());
            }
            driver_errors::not_posted(error)
        })?;
        Ok(true)
    }

    /// Ensures that the registration of a region ends, and returns the fence of the region. `fence`
    /// is its default. Sleeps until the registration or the endpoint has ended.
    pub(super) fn settle(&self, fate: &RegState, nudge: Nudge<'_>, fence: Fence) -> Fence {
        if !self.await_end(fate, nudge, params::wr_timeout()) {
            // Nothing else reports the registration, nor the end of the connection.
            self.conn.shut_down();
            self.end();
        }
        let fence = self.fence(fate, fence);
        // Not earlier: the peer may invalidate the region meanwhile. Then it must not be
        // invalidated again.
        self.forget(fate);
        fence
    }

    /// Returns the fence of a region whose registration has ended. `fence` is its default. Any
    /// context.
    pub(super) fn fence(&self, fate: &RegState, fence: Fence) -> Fence {
        if fence.invalidates() {
            return fence;
        }
        let inside = self.gate.enter();
        let by_peer = inside
            .as_ref()
            .and_then(|inside| inside.get().by_peer.as_ref());
        by_peer.map_or(fence, |by_peer| by_peer.fence(fate))
    }

    /// Stops looking for invalidations of the region. Any context.
    pub(super) fn forget(&self, fate: &RegState) {
        self.conn.reg_states.remove(fate);
    }

    /// Waits until the registration of a region has ended, for about `limit` seconds, and returns
    /// whether it has. Sleeps.
    fn await_end(&self, fate: &RegState, nudge: Nudge<'_>, limit: u32) -> bool {
        // The polled queue may have no reader meanwhile.
        self.with_polled(Cq::progress);
        if fate.is_settled() {
            return true;
        }
        self.with_polled(Cq::add_listener);
        // The peer mostly has the key by a message behind the registration, whose completion is about to come.
        let ended =
            fate.is_invalidated() && fate.wait(1) || self.await_end_listening(fate, nudge, limit);
        self.with_polled(Cq::remove_listener);
        ended
    }

    /// Waits like [`await_end`](Self::await_end), while softirq looks for completions.
    fn await_end_listening(&self, fate: &RegState, nudge: Nudge<'_>, limit: u32) -> bool {
        for _ in 0..limit.saturating_mul(MOMENTS) {
            if fate.is_settled() {
                return true;
            }
            match self.nudge(nudge) {
                Ok(Some(behind)) => return behind.wait(limit) && fate.is_settled(),
                Ok(None) => return fate.wait(limit),
                // The queue is full. The next completion frees a slot, and may be behind the
                // registration.
                Err(error) if error == EAGAIN => fsleep(A_MOMENT),
                Err(_) => return false,
            }
        }
        false
    }

    /// Posts an invalidation behind the registration of a region. Its completion shows that the
    /// registration has ended. Returns `None` if the device has no invalidation: then the
    /// registration has a completion of its own. May sleep, but not for long.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: the queue is full, perhaps of requests before the registration.
    /// - Others: there is no connection any more, or no memory.
    fn nudge(&self, nudge: Nudge<'_>) -> Result<Option<Invalidation>> {
        let inside = self.gate.enter().ok_or(ENODEV)?;
        let resources = inside.get();
        let endpoint = resources.endpoint().map_err(|_| ENODEV)?;
        if resources.has_local_inv() {
            return nudge(endpoint).map(Some);
        }
        // It may be waiting for more.
        self.conn.go();
        // Draining the endpoint ends it sooner than a device that does not answer.
        self.conn.is_open().then_some(None).ok_or(ENODEV)
    }
}
