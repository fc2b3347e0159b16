// SPDX-License-Identifier: GPL-2.0

//! Attributes of queue pairs.

use crate::{
    port::{
        Gid,
        Path, //
    },
    prelude::*, //
};
use rdma_bindings as b;

/// How many requests a queue pair can have under way.
#[derive(Clone, Copy, Debug)]
pub struct Depths {
    /// Send requests; there may be one more, which drains the queue.
    pub send: u32,
    /// Receive requests; there may be one more, which drains the queue.
    pub receive: u32,
    /// The most segments of local memory in a request.
    pub segments: u32,
    /// The most bytes that the driver should copy into a send request when it is posted. A driver may
    /// copy fewer, or none: see [`Gather::copied`](crate::Gather::copied).
    pub inline: u32,
}

impl Depths {
    /// Returns the number of entries of the send queue and of its completion queue: two more than
    /// credits. One is for draining. One is needed because a completion may be seen before the
    /// driver has freed the entry of its request.
    pub const fn in_send_queue(&self) -> u32 {
        self.send.saturating_add(2)
    }

    /// Returns the number of entries of the receive queue, or 0 if it is not used.
    pub const fn in_receive_queue(&self) -> u32 {
        if self.receive == 0 {
            0
        } else {
            self.receive.saturating_add(2)
        }
    }

    /// Returns the size of the receive queue to ask the driver for: requests, and segments of each.
    ///
    /// hns, erdma and ionic refuse a queue of no requests or no segments, even if nobody posts to it.
    /// If the queue pair shares receives, it has no receive queue, and mlx4 refuses any other size.
    fn receive_queue(&self, shares: bool) -> (u32, u32) {
        match (shares, self.in_receive_queue()) {
            (true, _) => (0, 0),
            (false, 0) => (1, 1),
            (false, requests) => (requests, self.segments.max(1)),
        }
    }

    /// Returns the attributes of a queue pair that completes to these queues. It takes its receives
    /// from `srq` unless that is null. Its driver should copy `inline` bytes of a send request.
    pub(super) fn attr(
        &self,
        [send_cq, recv_cq]: [*mut b::ib_cq; 2],
        srq: *mut b::ib_srq,
        inline: u32,
    ) -> b::ib_qp_init_attr {
        let (max_recv_wr, max_recv_sge) = self.receive_queue(!srq.is_null());
        b::ib_qp_init_attr {
            send_cq,
            recv_cq,
            srq,
            cap: b::ib_qp_cap {
                max_send_wr: self.in_send_queue(),
                max_recv_wr,
                max_send_sge: self.segments,
                max_recv_sge,
                max_inline_data: inline,
                ..Default::default()
            },
            sq_sig_type: b::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: b::ib_qp_type_IB_QPT_RC,
            ..Default::default()
        }
    }
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The number of its queue pair.
    pub number: u32,
    /// The number of its first packet.
    pub psn: u32,
}

/// How reliable a connection is, and how much of a peer's time it takes.
#[derive(Clone, Copy, Debug)]
pub struct Reliability {
    /// How many reads and atomic operations of the peer are served at once.
    pub responder_resources: u8,
    /// How many reads and atomic operations the peer is asked for at once.
    pub initiator_depth: u8,
    /// How long the peer waits before it tries again where there was no receive request, as the
    /// wire has it.
    pub min_rnr_timer: u8,
    /// How long to wait for an acknowledgement: 4.096 µs times two to the power of this.
    pub timeout: u8,
    /// How often to try again without one.
    pub retries: u8,
    /// How often to try again where the peer had no receive request; 7 is for ever.
    pub rnr_retries: u8,
}

impl Default for Reliability {
    fn default() -> Self {
        Self {
            responder_resources: 1,
            initiator_depth: 1,
            min_rnr_timer: 12,
            timeout: 14,
            retries: 7,
            rnr_retries: 7,
        }
    }
}

/// Attributes to be changed, and which of them.
pub(super) type Change = (b::ib_qp_attr, u32);

/// Returns the change to the state INIT.
pub(super) fn init(port: u32, access: AccessFlags) -> Change {
    let attr = b::ib_qp_attr {
        qp_state: b::ib_qp_state_IB_QPS_INIT,
        port_num: port,
        qp_access_flags: u32::from(access).try_into().unwrap_or(0),
        pkey_index: 0,
        ..Default::default()
    };
    let mask = b::ib_qp_attr_mask_IB_QP_STATE
        | b::ib_qp_attr_mask_IB_QP_PKEY_INDEX
        | b::ib_qp_attr_mask_IB_QP_PORT
        | b::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS;
    (attr, mask)
}

/// Returns the change to the state RTR, and the GID that must outlive it.
pub(super) fn ready_to_receive(path: Path, peer: Peer, how: &Reliability) -> (Change, Option<Gid>) {
    let attr = b::ib_qp_attr {
        qp_state: b::ib_qp_state_IB_QPS_RTR,
        path_mtu: path.mtu().0,
        ah_attr: path.address,
        dest_qp_num: peer.number,
        rq_psn: peer.psn,
        max_dest_rd_atomic: how.responder_resources,
        min_rnr_timer: how.min_rnr_timer,
        ..Default::default()
    };
    let mask = b::ib_qp_attr_mask_IB_QP_STATE
        | b::ib_qp_attr_mask_IB_QP_AV
        | b::ib_qp_attr_mask_IB_QP_PATH_MTU
        | b::ib_qp_attr_mask_IB_QP_DEST_QPN
        | b::ib_qp_attr_mask_IB_QP_RQ_PSN
        | b::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC
        | b::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER;
    ((attr, mask), path.gid)
}

/// Returns the change to the state RTS.
pub(super) fn ready_to_send(psn: u32, how: &Reliability) -> Change {
    let attr = b::ib_qp_attr {
        qp_state: b::ib_qp_state_IB_QPS_RTS,
        sq_psn: psn,
        max_rd_atomic: how.initiator_depth,
        timeout: how.timeout,
        retry_cnt: how.retries,
        rnr_retry: how.rnr_retries,
        ..Default::default()
    };
    let mask = b::ib_qp_attr_mask_IB_QP_STATE
        | b::ib_qp_attr_mask_IB_QP_SQ_PSN
        | b::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC
        | b::ib_qp_attr_mask_IB_QP_TIMEOUT
        | b::ib_qp_attr_mask_IB_QP_RETRY_CNT
        | b::ib_qp_attr_mask_IB_QP_RNR_RETRY;
    (attr, mask)
}

/// Returns the change to the state ERR.
pub(super) fn error() -> Change {
    let attr = b::ib_qp_attr {
        qp_state: b::ib_qp_state_IB_QPS_ERR,
        ..Default::default()
    };
    (attr, b::ib_qp_attr_mask_IB_QP_STATE)
}

#[kernel::macros::kunit_tests(rdma_qp_attr)]
mod tests {
    use super::*;
    use core::ptr::{
        null_mut,
        without_provenance_mut, //
    };

    #[test]
    fn a_receive_queue_is_never_empty() {
        let asked = |receive, segments, srq: *mut b::ib_srq| {
            let depths = Depths {
                send: 4,
                receive,
                segments,
                inline: 0,
            };
            let cap = depths.attr([null_mut(); 2], srq, 0).cap;
            (cap.max_recv_wr, cap.max_recv_sge)
        };
        let shared = without_provenance_mut(8);
        assert_eq!(asked(0, 1, null_mut()), (1, 1));
        assert_eq!(asked(0, 4, null_mut()), (1, 1));
        assert_eq!(asked(5, 0, null_mut()), (7, 1));
        assert_eq!(asked(5, 4, null_mut()), (7, 4));
        assert_eq!(asked(0, 4, shared), (0, 0));
        assert_eq!(asked(5, 4, shared), (0, 0));
    }
}
