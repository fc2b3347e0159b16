// SPDX-License-Identifier: GPL-2.0

//! Ports of a device.

use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::device::Device;

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
    /// The port's number.
    pub fn number(self) -> u32 {
        self.number
    }

    /// The device that the port belongs to.
    pub fn device(self) -> &'a Device {
        self.device
    }

    /// The protocol that the port speaks. Doesn't sleep.
    pub fn protocol(self) -> Protocol {
        // SAFETY: The device is there.
        match unsafe { rdma_bindings::rdma_helper_protocol(self.device.as_raw(), self.number) } {
            rdma_bindings::rdma_helper_protocol_RDMA_HELPER_INFINIBAND => Protocol::InfiniBand,
            rdma_bindings::rdma_helper_protocol_RDMA_HELPER_ROCE => Protocol::RoCE,
            rdma_bindings::rdma_helper_protocol_RDMA_HELPER_IWARP => Protocol::IWarp,
            _ => Protocol::Other,
        }
    }

    /// Whether the port was up when the RDMA core heard of it last. Doesn't sleep, nor ask the
    /// driver, which may wait for the network stack.
    pub(crate) fn was_active(self) -> bool {
        let mut state = rdma_bindings::ib_port_state_IB_PORT_NOP;
        // SAFETY: The device is there, has the port by the type invariant, and `state` may be set.
        let known = unsafe {
            let device = self.device.as_raw();
            rdma_bindings::ib_get_cached_port_state(device, self.number, &mut state)
        };
        known == 0 && state == rdma_bindings::ib_port_state_IB_PORT_ACTIVE
    }

    /// How many entries of a RoCE port's GID table, the first ones, are for its default GIDs.
    /// Doesn't sleep.
    pub(crate) fn default_gids(self) -> u32 {
        // SAFETY: The device is there, and has the port by the type invariant.
        unsafe { rdma_bindings::rdma_helper_default_gids(self.device.as_raw(), self.number) }
    }

    /// Asks the device for the port's attributes. May sleep.
    pub(crate) fn query(self) -> Result<rdma_bindings::ib_port_attr> {
        let mut attr = rdma_bindings::ib_port_attr::default();
        // SAFETY: The device is there, has the port by the type invariant, and fills `attr`.
        to_result(unsafe {
            rdma_bindings::ib_query_port(self.device.as_raw(), self.number, &mut attr)
        })?;
        Ok(attr)
    }
}

/// The most bytes that one message has over any port of a device. Asks the device; may sleep.
pub fn max_message(device: &Device) -> Result<u64> {
    let mut most = u64::from(u32::MAX);
    for port in device.ports() {
        most = most.min(port.query()?.max_msg_sz.into());
    }
    Ok(most)
}

/// Whether the attributes are those of a port that is up.
pub(crate) fn is_active(attr: &rdma_bindings::ib_port_attr) -> bool {
    attr.state == rdma_bindings::ib_port_state_IB_PORT_ACTIVE
}

/// An iterator over the ports of a device.
pub struct Ports<'a> {
    device: &'a Device,
    numbers: core::ops::RangeInclusive<u32>,
}

impl Device {
    /// Whether its queue pairs can be connected to each other without the connection manager, as those of
    /// InfiniBand and RoCE, and not of iWARP. Doesn't sleep.
    pub fn connects_freely(&self) -> bool {
        self.ports()
            .all(|port| matches!(port.protocol(), Protocol::InfiniBand | Protocol::RoCE))
    }

    /// The device's ports, in order.
    pub fn ports(&self) -> Ports<'_> {
        Ports::of(self)
    }

    /// One port by its number, or [`None`] if the device doesn't have it.
    pub fn port(&self, number: u32) -> Option<Port<'_>> {
        self.ports().find(|port| port.number() == number)
    }
}

impl<'a> Ports<'a> {
    /// The ports of a device.
    fn of(device: &'a Device) -> Self {
        // SAFETY: The device is there.
        let first = unsafe { rdma_bindings::rdma_helper_first_port(device.as_raw()) };
        // SAFETY: The device is there.
        let last = unsafe { rdma_bindings::rdma_helper_last_port(device.as_raw()) };

        Self {
            device,
            numbers: first..=last,
        }
    }
}

impl<'a> Iterator for Ports<'a> {
    type Item = Port<'a>;

    fn next(&mut self) -> Option<Port<'a>> {
        // INVARIANT: The numbers are those that the device says it has.
        self.numbers.next().map(|number| Port {
            device: self.device,
            number,
        })
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
