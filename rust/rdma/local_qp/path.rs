// SPDX-License-Identifier: GPL-2.0

//! The way from a port to itself.
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)
//!
//! No packet ever takes it, since only local work is posted, but a device connects a queue pair
//! only if it could send.

use kernel::{
    bindings,
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*, //
};

use core::ptr::{
    null_mut,
    NonNull, //
};

use super::objects::RawQp;
use crate::{
    device::Device,
    errno,
    port::{
        is_active,
        Port,
        Protocol, //
    },
};

/// How far a packet to oneself has to go.
const HOP_LIMIT: u8 = 1;

/// A port that is up, with the address of itself.
pub(super) struct SelfPath {
    port: u32,
    mtu: rdma_bindings::ib_mtu,
    address: rdma_bindings::rdma_ah_attr,
    // `address` points to it.
    gid: Option<Gid>,
}

impl SelfPath {
    /// Finds the first port that will do. ENETDOWN if none is up, EOPNOTSUPP if there is none of a
    /// kind that can be connected this way. May sleep.
    pub(super) fn find(device: &Device) -> Result<Self> {
        let mut result = Err(errno::eopnotsupp());

        for port in device.ports() {
            let protocol = port.protocol();
            if !matches!(protocol, Protocol::InfiniBand | Protocol::RoCE) {
                continue;
            }
            result = Self::from_port(port, protocol);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// The path of one port.
    fn from_port(port: Port<'_>, protocol: Protocol) -> Result<Self> {
        let attr = port.query()?;
        if !is_active(&attr) {
            return Err(errno::enetdown());
        }

        let device = port.device().as_raw();
        let mut address = rdma_bindings::rdma_ah_attr {
            // SAFETY: The device is there, and has the port.
            type_: unsafe { rdma_bindings::rdma_helper_ah_type(device, port.number()) },
            port_num: port.number(),
            ..Default::default()
        };
        let gid = if protocol == Protocol::RoCE {
            let (gid, mac) = Gid::of_netdev(port, &attr).ok_or_else(errno::enetdown)?;
            // SAFETY: This is the member that goes with the port's type.
            unsafe { address.__bindgen_anon_1.roce.as_mut() }.dmac = mac;
            Some(gid)
        } else {
            // SAFETY: The type has been set, and is that of the port.
            unsafe { rdma_bindings::rdma_helper_set_dlid(&mut address, attr.lid) };
            // SAFETY: The device is there, and has the port.
            let grh = unsafe { rdma_bindings::rdma_helper_grh_required(device, port.number()) };
            if grh {
                Some(Gid::get(port, 0)?)
            } else {
                None
            }
        };
        if let Some(gid) = &gid {
            gid.route(&mut address);
        }

        Ok(Self {
            port: port.number(),
            mtu: attr.active_mtu,
            address,
            gid,
        })
    }

    /// Connects a queue pair of the same device to itself. May sleep.
    pub(super) fn connect(self, qp: &RawQp) -> Result {
        use rdma_bindings as b;

        let Self {
            port,
            mtu,
            address,
            gid,
        } = self;

        // SAFETY: It is always fine to ask for a random number.
        let psn = unsafe { bindings::get_random_u32() } & 0xff_ffff;

        let mut init = b::ib_qp_attr {
            qp_state: b::ib_qp_state_IB_QPS_INIT,
            port_num: port,
            // What peers may do on this queue pair: nothing.
            qp_access_flags: 0,
            pkey_index: 0,
            ..Default::default()
        };
        qp.modify(
            &mut init,
            b::ib_qp_attr_mask_IB_QP_STATE
                | b::ib_qp_attr_mask_IB_QP_PKEY_INDEX
                | b::ib_qp_attr_mask_IB_QP_PORT
                | b::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS,
        )?;

        let mut receive = b::ib_qp_attr {
            qp_state: b::ib_qp_state_IB_QPS_RTR,
            ah_attr: address,
            path_mtu: mtu,
            dest_qp_num: qp.number(),
            rq_psn: psn,
            max_dest_rd_atomic: 1,
            min_rnr_timer: 12,
            ..Default::default()
        };
        qp.modify(
            &mut receive,
            b::ib_qp_attr_mask_IB_QP_STATE
                | b::ib_qp_attr_mask_IB_QP_AV
                | b::ib_qp_attr_mask_IB_QP_PATH_MTU
                | b::ib_qp_attr_mask_IB_QP_DEST_QPN
                | b::ib_qp_attr_mask_IB_QP_RQ_PSN
                | b::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC
                | b::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER,
        )?;
        // The queue pair holds the entry itself now.
        drop(gid);

        let mut send = b::ib_qp_attr {
            qp_state: b::ib_qp_state_IB_QPS_RTS,
            sq_psn: psn,
            max_rd_atomic: 1,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            ..Default::default()
        };
        qp.modify(
            &mut send,
            b::ib_qp_attr_mask_IB_QP_STATE
                | b::ib_qp_attr_mask_IB_QP_SQ_PSN
                | b::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC
                | b::ib_qp_attr_mask_IB_QP_TIMEOUT
                | b::ib_qp_attr_mask_IB_QP_RETRY_CNT
                | b::ib_qp_attr_mask_IB_QP_RNR_RETRY,
        )
    }
}

/// An entry of a port's GID table, held.
///
/// # Invariants
///
/// This owns a reference to the entry.
struct Gid(NonNull<rdma_bindings::ib_gid_attr>);

impl Gid {
    /// Gets an entry by its index.
    fn get(port: Port<'_>, index: c_int) -> Result<Self> {
        // SAFETY: The device is there, and has the port. The index is checked.
        let attr = unsafe {
            rdma_bindings::rdma_get_gid_attr(port.device().as_raw(), port.number(), index)
        };
        let attr = from_err_ptr(attr.cast_mut())?;
        // INVARIANT: The function has taken a reference for us.
        Ok(Self(NonNull::new(attr).ok_or(ENOENT)?))
    }

    /// The first entry of a RoCE port that has a network device, with that device's MAC address.
    fn of_netdev(port: Port<'_>, attr: &rdma_bindings::ib_port_attr) -> Option<(Self, [u8; 6])> {
        (0..attr.gid_tbl_len).find_map(|index| {
            let gid = Self::get(port, index).ok()?;
            let mut mac = [0; 6];
            // SAFETY: By the type invariant the entry is there; the buffer has a MAC's size.
            to_result(unsafe {
                rdma_bindings::rdma_read_gid_l2_fields(gid.0.as_ptr(), null_mut(), mac.as_mut_ptr())
            })
            .ok()?;
            Some((gid, mac))
        })
    }

    /// Makes this both ends of a global route. `address` must not be used after `self` is gone.
    fn route(&self, address: &mut rdma_bindings::rdma_ah_attr) {
        // SAFETY: By the type invariant the entry is there; what is read of it is constant, and
        // plain data.
        let (gid, index) = unsafe {
            let attr = self.0.as_ptr();
            (core::ptr::read(&raw const (*attr).gid), (*attr).index)
        };

        // CAST: The bits are to be these, whichever type the C side gives them.
        address.ah_flags = rdma_bindings::ib_ah_flags_IB_AH_GRH as u8;
        address.grh.sgid_attr = self.0.as_ptr();
        address.grh.dgid = gid;
        // CAST: A GID table has at most 256 entries.
        address.grh.sgid_index = index as u8;
        address.grh.hop_limit = HOP_LIMIT;
    }
}

impl Drop for Gid {
    fn drop(&mut self) {
        // SAFETY: By the type invariant there is a reference to give up.
        unsafe { rdma_bindings::rdma_put_gid_attr(self.0.as_ptr()) };
    }
}
