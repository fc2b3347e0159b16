// SPDX-License-Identifier: GPL-2.0

//! Addresses of this machine, and the devices that have them.

use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use core::net::{
    IpAddr,
    SocketAddr, //
};

use rdma_bindings as b;

use super::{
    id::{
        Id,
        Target, //
    },
    locked::Locked, //
};
use crate::device::Device;

/// Nobody is told anything.
struct Nobody;

impl Target for Nobody {
    fn event(&self, _id: &Locked<'_>, _event: &b::rdma_cm_event) -> Result {
        Ok(())
    }
}

/// Returns the device that has an address of this machine. May sleep.
///
/// # Errors
///
/// - `ENODEV` if no device has it.
/// - What else the connection manager says.
pub fn device_of(address: IpAddr) -> Result<ARef<Device>> {
    let id = Id::new(Arc::new(Nobody, GFP_KERNEL)?)?;
    // With a port of its own, so that it is in nobody's way.
    id.bind(SocketAddr::new(address, 0))?;
    Ok(id.device().ok_or(ENODEV)?.into())
}
