// SPDX-License-Identifier: GPL-2.0

//! The way from a port to itself.
//!
//! No packet ever takes it, since only local work is posted, but a device connects a queue pair
//! only if it could send.

use kernel::prelude::*;

use crate::{
    device::Device,
    errno,
    port::{
        is_active,
        Gid,
        Path,
        Port,
        Protocol, //
    }, //
};

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
    /// Returns the number of the port.
    pub(super) fn port(&self) -> u32 {
        self.port
    }

    /// Checks whether the address is a port's default one. That can't be made anew while a queue
    /// pair holds it.
    pub fn is_default(&self) -> bool {
        self.default
    }

    /// Checks whether the address exists. While a queue pair holds an address that is not in force
    /// any more, its index is not given to another. Doesn't sleep.
    pub fn is_there(&self, device: &Device) -> bool {
        match (device.port(self.port), self.gid) {
            (Some(port), Some(index)) => Gid::get(port, index).is_ok(),
            (port, None) => port.is_some(),
            (None, _) => false,
        }
    }
}

/// A way from a port to itself, and where that is.
pub(super) struct SelfPath {
    pub(super) place: Place,
    pub(super) path: Path,
}

impl SelfPath {
    /// Returns the first path. May sleep.
    ///
    /// # Errors
    ///
    /// The errors of [`first`].
    pub(super) fn find(device: &Device) -> Result<Self> {
        first(device, Ok)
    }

    /// Returns the path of one port, as the driver reports it. May sleep, also for locks of the
    /// network stack.
    fn from_port(port: Port<'_>) -> Result<Self> {
        let attr = port.query()?;
        if !is_active(&attr) {
            return Err(errno::enetdown());
        }
        let gid = if port.protocol() == Protocol::RoCE {
            Some(Gid::of_netdev(port, attr.gid_tbl_len).ok_or_else(errno::enetdown)?)
        } else if needs_gid(port) {
            Some(Gid::get(port, 0)?)
        } else {
            None
        };
        let place = Place {
            port: port.number(),
            gid: gid.as_ref().map(Gid::index),
            default: gid.as_ref().is_some_and(|gid| gid.is_default(port)),
            lid: attr.lid,
        };
        let path = Path::to_self(port, attr.lid, attr.active_mtu, gid)?;
        Ok(Self { place, path })
    }

    /// Returns the path at a place where there was one with this packet size, without asking the
    /// driver. Doesn't sleep.
    ///
    /// # Errors
    ///
    /// - ENETDOWN if the port has gone down.
    /// - The error of looking up an address that is gone.
    pub(super) fn at(device: &Device, place: Place, mtu: u32) -> Result<Self> {
        let port = device.port(place.port).ok_or_else(errno::enetdown)?;
        if !port.was_active() {
            return Err(errno::enetdown());
        }
        let gid = place.gid.map(|index| Gid::get(port, index)).transpose()?;
        let path = Path::to_self(port, place.lid, mtu, gid)?;
        Ok(Self { place, path })
    }
}

/// Checks whether packets of an InfiniBand port need a global address.
fn needs_gid(port: Port<'_>) -> bool {
    // SAFETY: The port's device is there, and has the port.
    unsafe { rdma_bindings::rdma_helper_grh_required(port.device().as_raw(), port.number()) }
}

/// Tries `connect` with the path of each port, until it succeeds. May sleep.
///
/// # Errors
///
/// - The first error of `connect`.
/// - ENETDOWN if no port is up.
/// - EOPNOTSUPP if there is none of a kind that can be connected this way.
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

/// Tries paths as [`first`] does. Each is a path, or the reason why there is none.
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
