// SPDX-License-Identifier: GPL-2.0

//! The queue pair of an endpoint, and the limits of endpoints on a device.

use super::{
    conn::Signal,
    done::Spares,
    read_sinks::Sinks,
    sharers::Sharers, //
};
use crate::{
    prelude::*,
    rxe::ByPeer, //
};
use kfabric::{
    provider::cq::Delivery,
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
    Cq,
    Device,
    Qp, //
};

/// The resources of an endpoint on its device: its queue pair, the protection domain, and the sinks of reads.
pub(super) struct QpResources {
    // The order of the fields is the order in which they go.
    pub(super) endpoint: SetOnce<Arc<cm::Endpoint>>,
    /// The completion queue in which only readers look for completions, if there is one.
    pub(super) polled: SetOnce<Arc<Cq>>,
    /// The shared receives, if the endpoint has any, and the connections that share them.
    pub(super) shared: SetOnce<(Arc<Srq>, Arc<Sharers>)>,
    pub(super) pd: Arc<Pd>,
    pub(super) sends: usize,
    pub(super) receives: usize,
    pub(super) by_peer: Option<ByPeer>,
    /// The device has refused `IB_WR_LOCAL_INV`.
    pub(super) refuses_inv: bool,
    /// Where the memory of reads is registered that no region was made of, if that is needed.
    pub(super) sinks: Option<Arc<Sinks>>,
    /// Memory for the requests of transfers.
    pub(super) spares: Arc<Spares>,
}

impl QpResources {
    /// Creates the queue pair, and one completion queue, or two if only one of them is polled. Calls `join`
    /// with the completion queue of receives before the first completion, and returns the result of `join`.
    /// If there is no queue pair in the end, that result is dropped, and the caller may try again. After
    /// success, the caller must not call this again. May sleep.
    pub(super) fn create_qp<J>(
        &self,
        transmit: Delivery,
        receive: Delivery,
        join: impl FnOnce(CqId) -> Result<J>,
    ) -> Result<J> {
        let srq = self.shared.as_ref().map(|(srq, _)| srq);
        let (pd, device) = (&self.pd, self.pd.device());
        let depths = Depths {
            send: self.sends.try_into()?,
            receive: self.receives.try_into()?,
            segments: segments(&device.limits()).try_into()?,
            inline: INJECT_SIZE.try_into()?,
        };
        let receives = match srq {
            Some(srq) => srq.entries()?,
            None => depths.in_receive_queue(),
        };
        let alloc = |entries, delivery: Delivery| {
            let cq = Cq::alloc(device, entries, delivery.cpu)?;
            if !delivery.polled {
                cq.add_listener();
            }
            Ok::<_, Error>(cq)
        };
        let sends = depths.in_send_queue();
        let (send_cq, receive_cq) = match transmit.polled == receive.polled {
            true => {
                let cpu = receive.cpu.or(transmit.cpu);
                let cq = alloc(sends + receives, Delivery { cpu, ..receive })?;
                (cq.clone(), cq)
            }
            false => (alloc(sends, transmit)?, alloc(receives, receive)?),
        };
        let port = device.ports().next().ok_or(ENODEV)?.number();
        // The rights of a region limit the peer.
        let access: AccessFlags =
            Access::LocalWrite | Access::RemoteRead | Access::RemoteWrite | Access::RemoteAtomic;
        let qp = Qp::create(pd, [&send_cq, &receive_cq], depths, srq)?.init(port, access)?;
        let endpoint = cm::Endpoint::new(qp)?;
        // Dropped before the queue, whose number isn't another one's until then.
        let joined = join(receive_cq.id())?;
        match (transmit.polled, receive.polled) {
            (true, _) => self.polled.populate(send_cq),
            (_, true) => self.polled.populate(receive_cq),
            _ => false,
        };
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
    pub(super) fn endpoint(&self) -> Result<&Arc<cm::Endpoint>, Refusal> {
        self.endpoint.as_ref().ok_or(driver_errors::not_connected())
    }

    /// Checks whether `IB_WR_LOCAL_INV` can be posted. Any context.
    pub(super) fn has_local_inv(&self) -> bool {
        !self.refuses_inv && self.pd.device().has_local_inv()
    }

    /// Returns whether registrations complete. Where no invalidation can be posted behind one, nothing else may ever tell
    /// that it has ended. Any context.
    pub(super) fn signal(&self) -> Signal {
        match self.has_local_inv() {
            true => Signal::Unsignaled,
            false => Signal::Signaled,
        }
    }
}

/// Maximum length of an injected message in bytes. If the driver copies fewer bytes into a request, the
/// provider maps a copy until the request has completed.
const INJECT_SIZE: usize = 64;

/// Maximum number of requests in a queue on any device. The queue allocates memory for all of them.
const QUEUE_MAX: u32 = 1024;

/// Maximum number of segments in a request. The queue allocates memory for all of them.
const SEGMENTS_MAX: u32 = 16;

/// Entries of a queue that a driver reserves, and that draining needs.
const QUEUE_OWN: u32 = 2;

/// Returns the maximum number of segments in a request.
pub(super) fn segments(limits: &Limits) -> usize {
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
