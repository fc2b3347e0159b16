// SPDX-License-Identifier: GPL-2.0

//! Ports of a device, their GIDs, and paths from a port to a peer.
//!
//! C header: [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)

use crate::prelude::*;

/// The protocol that a port speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// InfiniBand (and Omni-Path, which uses the same interface).
    InfiniBand,
    /// RDMA over converged Ethernet, either version.
    RoCE,
    /// iWARP, over TCP.
    IWarp,
    /// Anything else.
    Other,
}

/// A port of a [`Device`].
///
/// # Invariants
///
/// `device` has a port with this number.
#[derive(Clone, Copy)]
pub struct Port<'a> {
    device: &'a Device,
    number: u32,
}

impl<'a> Port<'a> {
    /// Returns the number of the port.
    pub fn number(self) -> u32 {
        self.number
    }

    /// Returns the device of the port.
    pub fn device(self) -> &'a Device {
        self.device
    }

    /// Returns the protocol of the port. Does not sleep.
    pub fn protocol(self) -> Protocol {
        // SAFETY: The device is there.
        match unsafe { rdma_bindings::rdma_helper_protocol(self.device.as_raw(), self.number) } {
            rdma_bindings::rdma_helper_protocol_RDMA_HELPER_INFINIBAND => Protocol::InfiniBand,
            rdma_bindings::rdma_helper_protocol_RDMA_HELPER_ROCE => Protocol::RoCE,
            rdma_bindings::rdma_helper_protocol_RDMA_HELPER_IWARP => Protocol::IWarp,
            _ => Protocol::Other,
        }
    }

    /// Checks whether the port was active when the RDMA core last received an event. Does not
    /// sleep: it does not ask the driver, which may wait for the network stack.
    pub fn was_active(self) -> bool {
        let mut state = rdma_bindings::ib_port_state_IB_PORT_NOP;
        // SAFETY: The device is there, has the port by the type invariant, and `state` may be set.
        let known = unsafe {
            let device = self.device.as_raw();
            rdma_bindings::ib_get_cached_port_state(device, self.number, &mut state)
        };
        known == 0 && state == rdma_bindings::ib_port_state_IB_PORT_ACTIVE
    }

    /// Checks whether packets of an InfiniBand port need a GID. Does not sleep.
    pub fn needs_gid(self) -> bool {
        // SAFETY: `device` is a reference, and has the port by the type invariant.
        unsafe { rdma_bindings::rdma_helper_grh_required(self.device.as_raw(), self.number) }
    }

    /// Asks the driver for the attributes of the port. May sleep, also for locks of the network
    /// stack.
    pub fn query(self) -> Result<PortAttr> {
        let mut attr = rdma_bindings::ib_port_attr::default();
        // SAFETY: The device is there, has the port by the type invariant, and fills `attr`.
        to_result(unsafe {
            rdma_bindings::ib_query_port(self.device.as_raw(), self.number, &mut attr)
        })?;
        Ok(PortAttr {
            is_active: attr.state == rdma_bindings::ib_port_state_IB_PORT_ACTIVE,
            lid: attr.lid,
            mtu: Mtu(attr.active_mtu),
            gids: attr.gid_tbl_len,
            max_message: attr.max_msg_sz,
        })
    }
}

/// The size of a packet, as the device encodes it (`enum ib_mtu`).
#[derive(Clone, Copy, Debug)]
pub struct Mtu(pub(crate) rdma_bindings::ib_mtu);

/// The attributes of a port, as its driver reports them.
#[derive(Clone, Copy, Debug)]
pub struct PortAttr {
    /// The port is active.
    pub is_active: bool,
    /// The port's identifier in its subnet, or 0.
    pub lid: u32,
    /// The size of the packets.
    pub mtu: Mtu,
    /// The number of entries of the GID table.
    pub gids: c_int,
    /// The maximum length of a message, in bytes.
    pub max_message: u32,
}

/// Returns the maximum length of a message on all ports of a device, in bytes. Asks the device and
/// may sleep.
pub fn max_message(device: &Device) -> Result<u64> {
    let mut most = u64::from(u32::MAX);
    for port in device.ports() {
        most = most.min(port.query()?.max_message.into());
    }
    Ok(most)
}

impl Device {
    /// Checks whether queue pairs of all ports can be connected without the connection manager, as
    /// with InfiniBand and RoCE, but not iWARP. Does not sleep.
    pub fn connects_freely(&self) -> bool {
        self.ports()
            .all(|port| matches!(port.protocol(), Protocol::InfiniBand | Protocol::RoCE))
    }

    /// Returns the ports of the device, in order.
    pub fn ports(&self) -> impl Iterator<Item = Port<'_>> {
        let device = self.as_raw();
        // SAFETY: `device` is valid as long as `self`.
        let first = unsafe { rdma_bindings::rdma_helper_first_port(device) };
        // SAFETY: `device` is valid as long as `self`.
        let last = unsafe { rdma_bindings::rdma_helper_last_port(device) };
        // INVARIANT: The device has the ports with these numbers.
        (first..=last).map(|number| Port {
            device: self,
            number,
        })
    }

    /// Returns a port by its number, or [`None`] if the device does not have it.
    pub fn port(&self, number: u32) -> Option<Port<'_>> {
        self.ports().find(|port| port.number() == number)
    }
}

/// Has the GIDs of a RoCE device's ports looked for again. Sleeps.
///
/// To be done after one has been let go of that was to be replaced meanwhile: the RDMA core could
/// not, and does so again only with the next change of the network device.
pub fn rescan(device: &Device) {
    for port in device.ports() {
        // SAFETY: The device is there, and has the port.
        unsafe { rdma_bindings::rdma_helper_rescan_port(device.as_raw(), port.number()) };
    }
}

/// How far a packet to oneself has to go.
const HOP_LIMIT: u8 = 1;

/// An entry of a port's GID table, held.
///
/// # Invariants
///
/// This owns a reference to the entry.
pub struct Gid(NonNull<rdma_bindings::ib_gid_attr>);

impl Gid {
    /// Gets an entry by its index. Does not sleep.
    pub fn get(port: Port<'_>, index: c_int) -> Result<Self> {
        // SAFETY: The port's device is there, and has the port. `rdma_get_gid_attr` checks the index.
        let attr = unsafe {
            rdma_bindings::rdma_get_gid_attr(port.device().as_raw(), port.number(), index)
        };
        let attr = from_err_ptr(attr.cast_mut())?;
        // INVARIANT: The function has taken a reference for us.
        Ok(Self(NonNull::new(attr).ok_or(ENOENT)?))
    }

    /// Returns the MAC address of the entry's network device.
    pub fn mac(&self) -> Result<[u8; 6]> {
        let mut mac = [0; 6];
        // SAFETY: By the type invariant the entry is there; the buffer has a MAC's size.
        to_result(unsafe {
            rdma_bindings::rdma_read_gid_l2_fields(self.0.as_ptr(), null_mut(), mac.as_mut_ptr())
        })?;
        Ok(mac)
    }

    /// Returns the index of the entry.
    pub fn index(&self) -> c_int {
        // SAFETY: By the type invariant the entry is there, and its index is constant.
        let index = unsafe { (*self.0.as_ptr()).index };
        c_int::from(index)
    }

    /// Checks whether the entry is in the range of the default GIDs.
    pub fn is_default(&self, port: Port<'_>) -> bool {
        // SAFETY: The device of `port` is a valid reference, and has the port by the type
        // invariant.
        let defaults = unsafe {
            rdma_bindings::rdma_helper_default_gids(port.device().as_raw(), port.number())
        };
        port.protocol() == Protocol::RoCE
            && u32::try_from(self.index()).is_ok_and(|index| index < defaults)
    }

    /// Makes this both ends of a global route. `address` must not be used after `self` is gone.
    pub(crate) fn route(&self, address: &mut rdma_bindings::rdma_ah_attr) {
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

/// The way from a port to a peer, which a queue pair is connected by.
pub struct Path {
    mtu: Mtu,
    pub(crate) address: rdma_bindings::rdma_ah_attr,
    /// The GID that `address` points to. It must outlive `address`.
    pub(crate) gid: Option<Gid>,
}

impl Path {
    /// Creates a path from a port to itself, through a GID if one is given. Any context.
    pub fn to_self(port: Port<'_>, lid: u32, mtu: Mtu, gid: Option<Gid>) -> Result<Self> {
        let device = port.device().as_raw();
        let mut address = rdma_bindings::rdma_ah_attr {
            // SAFETY: `device` is there, and has the port.
            type_: unsafe { rdma_bindings::rdma_helper_ah_type(device, port.number()) },
            port_num: port.number(),
            ..Default::default()
        };
        if port.protocol() == Protocol::RoCE {
            let mac = gid.as_ref().ok_or(EINVAL)?.mac()?;
            // SAFETY: This is the member that goes with the port's type.
            unsafe { address.__bindgen_anon_1.roce.as_mut() }.dmac = mac;
        } else {
            // SAFETY: The type of `address` has been set, and is that of the port.
            unsafe { rdma_bindings::rdma_helper_set_dlid(&mut address, lid) };
        }
        if let Some(gid) = &gid {
            gid.route(&mut address);
        }
        Ok(Self { mtu, address, gid })
    }

    /// Returns the MTU.
    pub fn mtu(&self) -> Mtu {
        self.mtu
    }
}
