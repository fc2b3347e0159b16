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
mod qp_resources;
mod read_sinks;
mod reg_states;
mod regions;
mod reusable;
mod sharers;
mod spare;
mod srx;

pub(crate) use self::{
    qp_resources::limits,
    regions::EpRegion,
    reusable::ReusableRegion,
    srx::Srx, //
};

use self::{
    conn::Conn,
    done::Spares,
    qp_resources::QpResources,
    read_sinks::Sinks,
    sharers::Sharers, //
};
use crate::{
    pep::Request,
    prelude::*,
    rxe::ByPeer,
    work, //
};
use kernel::types::ScopeGuard;
use kfabric::{
    provider::{
        cm::{
            Bounds,
            ConnRequest, //
        },
        cq::Delivery,
        msg_ep::{
            MsgEpOps,
            MsgEpRequest,
            QueueSpace, //
        }, //
    },
    EpPart, //
};
use rdma::{
    wc::CqId,
    Cq, //
};

/// A connected endpoint. The regions that are bound to it share its state.
pub(crate) struct Ep(Arc<Inner>);

/// The state of an endpoint.
pub(crate) struct Inner {
    /// The gate of its resources on the device.
    gate: Pin<KBox<Gate<QpResources, Shared>>>,
    conn: Arc<Conn>,
    /// If the endpoint has shared receives: its completion queue, and the connections that share
    /// them.
    sharers: SetOnce<(CqId, Arc<Sharers>)>,
    sinks: Option<Arc<Sinks>>,
}

impl Ep {
    /// Makes an endpoint in a domain. May sleep.
    pub(crate) fn new(link: &Link, asked: MsgEpRequest) -> Result<Self, Refusal> {
        // From here on the device's removal waits until this is done; then it ends the endpoint.
        let inside = link.gate.enter().ok_or(driver_errors::gone())?;
        let work = work::queues().ok_or(driver_errors::gone())?;
        let (resources, pd) = (inside.get(), &inside.get().pd);
        let by_peer = match resources.lends {
            true => ByPeer::watch(pd.device(), &resources.sharing),
            false => None,
        };
        resources.sharing.add_qp();
        let sinks =
            Sinks::new(pd, asked.tx_size, &work.connections).map_err(driver_errors::no_region)?;
        // Without the registration queue, nothing was tried.
        let refuses = resources.queue.is_some() && !resources.invalidates;
        let resources = QpResources {
            endpoint: SetOnce::new(),
            polled: SetOnce::new(),
            shared: SetOnce::new(),
            pd: pd.clone(),
            sends: asked.tx_size,
            receives: asked.rx_size,
            by_peer,
            refuses_inv: refuses,
            sinks: sinks.clone(),
            spares: Spares::new(asked.tx_size, asked.rx_size)
                .map_err(driver_errors::no_endpoint)?,
        };
        let answers = asked.answers.map(own).transpose()?;
        // It would stay when its own device goes, whose removal waits for it.
        if answers
            .as_ref()
            .is_some_and(|request| !request.device().is_same(pd.device()))
        {
            let why = c"the request came by another device";
            return Err(Refusal::new(Errno::EINVAL, why));
        }
        let gate =
            KBox::pin_init(Gate::new(resources), GFP_KERNEL).map_err(driver_errors::no_endpoint)?;
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

impl EpPart for Inner {
    fn progress(&self) {
        self.with_polled(|cq| {
            cq.disarm();
            cq.progress();
        });
    }

    fn arm(&self) {
        self.with_polled(Cq::arm);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Inner {
    /// Calls `f` with the completion queue, if only readers look for completions. Any context.
    fn with_polled(&self, f: impl FnOnce(&Cq)) {
        if let Some(inside) = self.gate.enter() {
            if let Some(cq) = inside.get().polled.as_ref() {
                f(cq);
            }
        }
    }

    /// Calls `f` with the resources on the device, if they exist.
    fn with_resources<R>(
        &self,
        f: impl FnOnce(&QpResources) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        let inside = self.gate.enter().ok_or(driver_errors::gone())?;
        f(inside.get())
    }

    /// Ends it, and all that was posted on it. Sleeps.
    fn end(&self) {
        match self.gate.shut() {
            Some(shut) => {
                let drained = shut.drain();
                self.conn.end(drained.get().endpoint().ok());
                if let Some((at, sharers)) = self.sharers.as_ref() {
                    // Later completions do not belong to the connection.
                    sharers.remove(*at);
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
fn own(mut request: ConnRequest) -> Result<rdma::cm::Incoming, Refusal> {
    request
        .own::<Request>()?
        .take()
        .ok_or(driver_errors::gone())
}

impl MsgEpOps for Ep {
    fn share(&self, context: &dyn provider::msg_ep::Srx) -> Result<(), Refusal> {
        let other = Refusal::new(Errno::EINVAL, c"a context of another provider");
        let srx = context.as_any().downcast_ref::<Srx>().ok_or(other)?;
        let shared = (srx.queue()?, srx.sharers.clone());
        self.0.with_resources(|resources| {
            resources.shared.populate(shared);
            Ok(())
        })
    }

    fn enable(&self, transmit: Delivery, receive: Delivery) -> Result<(), Refusal> {
        let inner = &self.0;
        inner.with_resources(|resources| {
            let sharers = resources.shared.as_ref().map(|(_, sharers)| sharers);
            let joined = resources.create_qp(transmit, receive, |at| {
                let remove = |at| sharers.map_or((), |sharers| sharers.remove(at));
                sharers.map_or(Ok(()), |sharers| sharers.add(at, inner.conn.clone()))?;
                Ok(ScopeGuard::new_with_data(at, remove))
            });
            let at = joined.map_err(driver_errors::no_endpoint)?.dismiss();
            sharers.inspect(|sharers| {
                inner.sharers.populate((at, (*sharers).clone()));
            });
            Ok(())
        })
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
            return Err(post.refuse(driver_errors::not_connected()));
        };
        let resources = inside.get();
        match resources.endpoint.as_ref() {
            Some(endpoint) => resources.post(endpoint, post, &self.0.conn),
            None => Err(post.refuse(driver_errors::not_connected())),
        }
    }

    fn flush(&self) {
        // Behind the gate: the endpoint ends what waits.
        if let Some(_inside) = self.0.gate.enter() {
            self.0.conn.go();
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
