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

/// Where a queue pair is: its port, and its address there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    port: u32,
    /// The index of the GID table's entry that the queue pair holds.
    gid: Option<c_int>,
    /// That is a place for a default GID.
    default: bool,
    /// The port's identifier in its subnet, or 0.
    lid: u32,
}

impl Place {
    /// Whether the address is a port's default one, which can't be made anew while a queue pair
    /// holds it.
    pub fn is_default(&self) -> bool {
        self.default
    }

    /// Whether there is such an address. While a queue pair holds one that is not in force any
    /// more, its index is not given to another. Doesn't sleep.
    pub fn is_there(&self, device: &Device) -> bool {
        match (device.port(self.port), self.gid) {
            (Some(port), Some(index)) => Gid::get(port, index).is_ok(),
            (port, None) => port.is_some(),
            (None, _) => false,
        }
    }
}

/// A port that is up, with the address of itself.
pub(super) struct SelfPath {
    place: Place,
    mtu: rdma_bindings::ib_mtu,
    address: rdma_bindings::rdma_ah_attr,
    // `address` points to it.
    gid: Option<Gid>,
}

/// Tries `connect` with the path of each port, until it succeeds.
///
/// # Errors
///
/// - What `connect` said first.
/// - ENETDOWN if no port is up.
/// - EOPNOTSUPP if there is none of a kind that can be connected this way.
///
/// May sleep.
pub(super) fn first<T>(device: &Device, connect: impl FnMut(SelfPath) -> Result<T>) -> Result<T> {
    let usable = |port: &Port<'_>| {
        let protocol = port.protocol();
        matches!(protocol, Protocol::InfiniBand | Protocol::RoCE)
    };
    first_of(
        device.ports().filter(usable).map(SelfPath::from_port),
        connect,
    )
}

/// As [`first`], with the paths or why there is none.
fn first_of<P, T>(
    paths: impl Iterator<Item = Result<P>>,
    mut connect: impl FnMut(P) -> Result<T>,
) -> Result<T> {
    let mut no_path = errno::eopnotsupp();
    let mut refused = None;
    for path in paths {
        match path.map(&mut connect) {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(error)) => refused = refused.or(Some(error)),
            Err(error) => no_path = error,
        }
    }
    Err(refused.unwrap_or(no_path))
}

impl SelfPath {
    /// The path that comes first. Errors are those of [`first`]. May sleep.
    pub(super) fn find(device: &Device) -> Result<Self> {
        first(device, Ok)
    }

    /// Where it is.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// The path of one port.
    fn from_port(port: Port<'_>) -> Result<Self> {
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
        let gid = if port.protocol() == Protocol::RoCE {
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
            place: Place {
                port: port.number(),
                gid: gid.as_ref().map(Gid::index),
                default: gid.as_ref().is_some_and(|gid| gid.is_default(port)),
                lid: attr.lid,
            },
            mtu: attr.active_mtu,
            address,
            gid,
        })
    }

    /// Connects a queue pair of the same device to itself, and says where. May sleep.
    pub(super) fn connect(self, qp: &RawQp) -> Result<Place> {
        use rdma_bindings as b;

        let Self {
            place,
            mtu,
            address,
            gid,
        } = self;

        // SAFETY: It is always fine to ask for a random number.
        let psn = unsafe { bindings::get_random_u32() } & 0xff_ffff;

        let mut init = b::ib_qp_attr {
            qp_state: b::ib_qp_state_IB_QPS_INIT,
            port_num: place.port,
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
        )?;
        Ok(place)
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

    /// An entry of a RoCE port that has a network device, with that device's MAC address.
    ///
    /// Not the port's default one if there is another. The RDMA core has one place for that in its
    /// table: as long as a queue pair holds the old default GID, a network device whose address
    /// changes gets no new one.
    fn of_netdev(port: Port<'_>, attr: &rdma_bindings::ib_port_attr) -> Option<(Self, [u8; 6])> {
        let find = |default: bool| {
            (0..attr.gid_tbl_len).find_map(|index| {
                let gid = Self::get(port, index).ok()?;
                if gid.is_default(port) != default {
                    return None;
                }
                let mac = gid.mac().ok()?;
                Some((gid, mac))
            })
        };
        find(false).or_else(|| find(true))
    }

    /// The MAC address of the entry's network device.
    fn mac(&self) -> Result<[u8; 6]> {
        let mut mac = [0; 6];
        // SAFETY: By the type invariant the entry is there; the buffer has a MAC's size.
        to_result(unsafe {
            rdma_bindings::rdma_read_gid_l2_fields(self.0.as_ptr(), null_mut(), mac.as_mut_ptr())
        })?;
        Ok(mac)
    }

    /// The entry's index.
    fn index(&self) -> c_int {
        // SAFETY: By the type invariant the entry is there, and its index is constant.
        let index = unsafe { (*self.0.as_ptr()).index };
        c_int::from(index)
    }

    /// Whether this has a place for a default GID.
    fn is_default(&self, port: Port<'_>) -> bool {
        port.protocol() == Protocol::RoCE
            && u32::try_from(self.index()).is_ok_and(|index| index < port.default_gids())
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

#[kernel::macros::kunit_tests(rdma_local_qp_path)]
mod tests {
    use super::*;

    #[test]
    fn the_next_port_when_the_first_cannot_be_connected() {
        let connect = |port: u32| if port < 3 { Err(EINVAL) } else { Ok(port) };
        let ports = |ports: [Result<u32>; 3]| first_of(ports.into_iter(), connect);
        assert_eq!(ports([Ok(3), Ok(4), Ok(5)]), Ok(3));
        assert_eq!(ports([Err(EIO), Ok(1), Ok(5)]), Ok(5));
        assert_eq!(ports([Ok(1), Err(EIO), Ok(2)]), Err(EINVAL));
        assert_eq!(ports([Err(EBUSY), Err(EIO), Err(EIO)]), Err(EIO));
        let none = first_of(core::iter::empty::<Result<u32>>(), connect);
        assert_eq!(none, Err(errno::eopnotsupp()));
    }
}
