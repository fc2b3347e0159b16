// SPDX-License-Identifier: GPL-2.0

//! Connected endpoints. Each has a queue pair and a completion queue.
//!
//! Transfers may be posted in any context. A gate protects them from the removal of the device.
//! They complete in softirq.
//!
//! Lock order: the lock of a connection's stage (`conn`), then the connection manager's.

mod conn;
mod done;
mod post;
mod read_sinks;
mod regions;
mod srx;

pub(crate) use self::srx::Srx;

use self::{
    conn::Conn,
    read_sinks::Sinks,
    srx::Sharers, //
};
use crate::{
    link::Link,
    pep::Request,
    refused,
    rxe::ByPeer,
    work, //
};
use kernel::types::ScopeGuard;
use kfabric::{
    gate::{
        Gate,
        Shared, //
    },
    num,
    prelude::*,
    provider::{
        self,
        cm::{
            Bounds,
            ConnRequest, //
        },
        msg_ep::{
            MsgEpOps,
            MsgEpRequest,
            MsgLimits,
            Post,
            PostRefusal,
            QueueSpace, //
        }, //
    },
    Atomics,
    LocalRules,
    MappedAs,
    MAX_REMOTE, //
};
use rdma::{
    cm::{
        self,
        MAX_ACCEPT_DATA,
        MAX_REJECT_DATA,
        MAX_REQUEST_DATA, //
    },
    port,
    qp::Depths,
    srq::Srq,
    wc::CqId,
    Access,
    AccessFlags,
    Cq,
    Device,
    Limits,
    Pd,
    Qp, //
};

/// A connected endpoint. The regions that are bound to it share its state.
pub(crate) struct Ep(Arc<Inner>);

/// The state of an endpoint.
pub(crate) struct Inner {
    /// The gate of its resources on the device.
    gate: Pin<KBox<Gate<QpResources, Shared>>>,
    conn: Arc<Conn>,
    /// The endpoints that share its receives, if it has shared receives.
    sharers: SetOnce<Arc<Sharers>>,
    sinks: Option<Arc<Sinks>>,
}

/// The queue pair of an endpoint, and its completion queue.
struct QpResources {
    // The order of the fields is the order in which they go.
    endpoint: SetOnce<Arc<cm::Endpoint>>,
    pd: Arc<Pd>,
    sends: usize,
    by_peer: Option<ByPeer>,
    /// The device has refused `IB_WR_LOCAL_INV`.
    refuses_inv: bool,
    /// Where the memory of reads is registered that no region was made of, if that is needed.
    sinks: Option<Arc<Sinks>>,
}

impl QpResources {
    /// Creates a queue pair with space for `receives` receives. May be called once, instead of
    /// [`share`](Self::share). May sleep.
    fn own(&self, receives: usize) -> Result {
        self.make(receives, None, |_| Ok(()))
    }

    /// Makes a queue pair that shares receives. `join` is told where their completions come, before there
    /// are any; what it returns is dropped if there is no queue pair after all, which can be made again then.
    /// May sleep.
    fn share<F: FnOnce(())>(
        &self,
        srq: &Arc<Srq>,
        join: impl FnOnce(CqId) -> Result<ScopeGuard<(), F>>,
    ) -> Result {
        self.make(0, Some(srq), join).map(|joined| {
            joined.dismiss();
        })
    }

    fn make<J>(
        &self,
        receives: usize,
        srq: Option<&Arc<Srq>>,
        join: impl FnOnce(CqId) -> Result<J>,
    ) -> Result<J> {
        let (pd, device) = (&self.pd, &self.pd.device);
        let depths = Depths {
            send: self.sends.try_into()?,
            receive: receives.try_into()?,
            segments: segments(&device.limits()).try_into()?,
            inline: INJECT_SIZE.try_into()?,
        };
        let receives = match srq {
            Some(srq) => srq.entries()?,
            None => depths.in_receive_queue(),
        };
        let cq = Cq::alloc_for_callbacks(device, depths.in_send_queue() + receives)?;
        let port = device.ports().next().ok_or(ENODEV)?.number();
        // The rights of a region limit the peer.
        let access: AccessFlags =
            Access::LocalWrite | Access::RemoteRead | Access::RemoteWrite | Access::RemoteAtomic;
        let qp = match srq {
            Some(srq) => Qp::create_sharing(pd, &cq, &cq, depths, srq)?,
            None => Qp::create(pd, &cq, &cq, depths)?,
        };
        let qp = qp.init(port, access)?;
        let endpoint = cm::Endpoint::new(qp)?;
        // Dropped before the queue, whose number isn't another one's until then.
        let joined = join(cq.id())?;
        match self.endpoint.populate(endpoint) {
            true => Ok(joined),
            false => Err(EBUSY),
        }
    }

    /// Returns the queue pair. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: there is no queue pair yet.
    fn endpoint(&self) -> Result<&Arc<cm::Endpoint>, Refusal> {
        self.endpoint.as_ref().ok_or(refused::not_connected())
    }

    /// Checks whether `IB_WR_LOCAL_INV` can be posted. Any context.
    fn has_local_inv(&self) -> bool {
        !self.refuses_inv && self.pd.device.has_local_inv()
    }
}

impl Ep {
    /// Makes an endpoint in a domain. May sleep.
    pub(crate) fn new(link: &Link, asked: MsgEpRequest) -> Result<Self, Refusal> {
        // From here on the device's removal waits until this is done; then it ends the endpoint.
        let inside = link.gate.enter().ok_or(refused::gone())?;
        let work = work::queues().ok_or(refused::gone())?;
        let (resources, pd) = (inside.get(), &inside.get().pd);
        let by_peer = match resources.lends {
            true => ByPeer::watch(&pd.device, &resources.sharing),
            false => None,
        };
        resources.sharing.add_qp();
        let sinks = Sinks::new(pd, asked.tx_size, &work.connections).map_err(refused::no_region)?;
        let refuses = resources.refuses_to_invalidate();
        let resources = QpResources {
            endpoint: SetOnce::new(),
            pd: pd.clone(),
            sends: asked.tx_size,
            by_peer,
            refuses_inv: refuses,
            sinks: sinks.clone(),
        };
        if !asked.shares {
            resources.own(asked.rx_size).map_err(refused::no_endpoint)?;
        }
        let answers = asked.answers.map(own).transpose()?;
        // It would stay when its own device goes, whose removal waits for it.
        if answers
            .as_ref()
            .is_some_and(|request| !request.device().is_same(&pd.device))
        {
            let why = c"the request came by another device";
            return Err(Refusal::new(Errno::EINVAL, why));
        }
        let gate =
            KBox::pin_init(Gate::new(resources), GFP_KERNEL).map_err(refused::no_endpoint)?;
        let conn = Conn::new(
            asked.tx_size,
            asked.source,
            answers,
            asked.events,
            work.connections,
        )?;
        let inner = Inner {
            gate,
            conn,
            sharers: SetOnce::new(),
            sinks,
        };
        let inner = Arc::new(inner, GFP_KERNEL)?;
        asked.endpoint.attach(inner.clone());
        Ok(Self(inner))
    }
}

impl Inner {
    /// Calls `f` with the resources on the device, if they exist.
    fn with_resources<R>(
        &self,
        f: impl FnOnce(&QpResources) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        let inside = self.gate.enter().ok_or(refused::gone())?;
        f(inside.get())
    }

    /// Ends it, and all that was posted on it. Sleeps.
    fn end(&self) {
        match self.gate.shut() {
            Some(shut) => {
                let drained = shut.drain();
                self.conn.end(drained.get().endpoint().ok());
                if let Some(sharers) = self.sharers.as_ref() {
                    // Later completions do not belong to the connection.
                    sharers.remove(&self.conn);
                }
                drained.take_away();
            }
            // Somebody is at it, or was.
            None => self.gate.wait_gone(),
        }
        if let Some(sinks) = &self.sinks {
            // All reads have ended; some have yet to be told.
            sinks.close();
        }
    }
}

/// Returns the connection request, if it is one of this provider.
fn own(mut request: KBox<dyn ConnRequest>) -> Result<rdma::cm::Incoming, Refusal> {
    request.own::<Request>()?.take().ok_or(refused::gone())
}

impl MsgEpOps for Ep {
    fn share(&self, context: &dyn provider::msg_ep::Srx) -> Result<(), Refusal> {
        let other = Refusal::new(Errno::EINVAL, c"a context of another provider");
        let srx = context.as_any().downcast_ref::<Srx>().ok_or(other)?;
        let (inner, srq) = (&self.0, srx.queue()?);
        inner.with_resources(|resources| {
            let sharers = srx.sharers();
            let shared = resources.share(&srq, |at| {
                sharers.add(at, inner.conn.clone())?;
                Ok(ScopeGuard::new_with_data((), move |()| sharers.forget(at)))
            });
            shared.map_err(refused::no_endpoint)?;
            inner.sharers.populate(sharers.clone());
            Ok(())
        })
    }

    fn enable(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn connect(&self, peer: SocketAddr, data: &[u8], bounds: &Bounds) -> Result<(), Refusal> {
        self.0.with_resources(|resources| {
            self.0
                .conn
                .connect(resources.endpoint()?, peer, data, bounds)
        })
    }

    fn accept(&self, data: &[u8], bounds: &Bounds) -> Result<(), Refusal> {
        self.0
            .with_resources(|resources| self.0.conn.accept(resources.endpoint()?, data, bounds))
    }

    fn shutdown(&self) {
        self.0.conn.shut_down();
    }

    fn name(&self) -> Option<SocketAddr> {
        self.0.conn.local()
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.0.conn.peer()
    }

    fn post(&self, post: Post<'_>) -> Result<(), PostRefusal> {
        let Some(inside) = self.0.gate.enter() else {
            return Err(post.refuse(refused::not_connected()));
        };
        let resources = inside.get();
        match resources.endpoint() {
            Ok(endpoint) => resources.post(endpoint, post, &self.0.conn),
            Err(why) => Err(post.refuse(why)),
        }
    }

    fn room(&self) -> QueueSpace {
        let inside = self.0.gate.enter();
        let endpoint = inside
            .as_ref()
            .and_then(|inside| inside.get().endpoint.as_ref());
        let (sends, receives) = endpoint.map_or((0, 0), |endpoint| endpoint.room());
        QueueSpace { sends, receives }
    }

    fn end(&self) {
        self.0.end();
    }
}

impl Drop for Ep {
    fn drop(&mut self) {
        // If it was never handed out.
        self.0.end();
    }
}

/// Maximum length of an injected message in bytes. If the driver copies fewer bytes into a request, the
/// provider maps a copy until the request has completed.
const INJECT_SIZE: usize = 64;

/// Maximum number of requests in a queue for all devices. A queue has memory for them all the time.
const QUEUE_MAX: u32 = 1024;

/// Maximum number of segments in a request. A queue has memory for them all the time.
const SEGMENTS_MAX: u32 = 16;

/// Entries of a queue that a driver reserves, and that draining needs.
const QUEUE_OWN: u32 = 2;

/// Returns the maximum number of segments in a request.
fn segments(limits: &Limits) -> usize {
    num::index(limits.max_segments.min(SEGMENTS_MAX))
}

/// Returns the limits of endpoints on a device. May sleep.
///
/// # Errors
///
/// Returns the error of the device's query.
pub(crate) fn limits(device: &Device) -> Result<MsgLimits> {
    let limits = device.limits();
    let queue = limits.max_qp_wr.saturating_sub(QUEUE_OWN);
    // Both queues complete to one.
    let entries = (limits.max_cqe / 2).saturating_sub(QUEUE_OWN);
    let queue = num::index(queue.min(entries).min(QUEUE_MAX));
    let segments = segments(&limits);
    let shared = match num::index(limits.max_shared_segments) >= segments {
        true => num::index(limits.max_shared.saturating_sub(QUEUE_OWN)).min(queue),
        false => 0,
    };
    Ok(MsgLimits {
        local: LocalRules {
            by_region: true,
            mapped: match device.is_software() {
                true => MappedAs::Linear,
                false => MappedAs::Device,
            },
            peer_to_peer: false,
            segments,
            pieces: segments,
            bytes: port::max_message(device)?,
        },
        remote_pieces: MAX_REMOTE,
        atomics: Atomics {
            // A plain write. It is offered with the others only, so that `KFI_ATOMIC` means all three.
            write: limits.atomics,
            add: limits.atomics,
            compare_swap: limits.atomics,
        },
        tx_size: queue,
        rx_size: queue,
        shared_size: shared,
        inject_size: INJECT_SIZE,
        // iWARP has no immediate data.
        cq_data_size: match device.connects_freely() {
            true => size_of::<u32>(),
            false => 0,
        },
        cm_data_size: [MAX_REQUEST_DATA, MAX_ACCEPT_DATA, MAX_REJECT_DATA],
        bounded: true,
    })
}
