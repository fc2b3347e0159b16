// SPDX-License-Identifier: GPL-2.0

//! A queue pair that is connected to itself.
//!
//! No packet ever leaves it, since it carries only local work. But a device connects a queue pair
//! only if it could send.

use crate::prelude::*;
use kfabric::random;
use rdma::{
    port::{
        Gid,
        Mtu,
        Path,
        Port,
        Protocol, //
    },
    qp::{
        Depths,
        Peer,
        Reliability, //
    },
    Cq,
    Device,
    Qp, //
};

/// The port of a queue pair, and its address there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortAddress {
    port: u32,
    /// The index of the GID table's entry that the queue pair holds.
    gid: Option<c_int>,
    /// True if the index is that of a default GID, which can't be made anew while a queue pair
    /// holds it.
    pub(super) is_default: bool,
    /// The port's identifier in its subnet, or 0.
    lid: u32,
}

impl PortAddress {
    /// Checks whether the address exists. While a queue pair holds an address that is not in force
    /// any more, its index is not given to another. Does not sleep.
    pub(super) fn is_there(&self, device: &Device) -> bool {
        match (device.port(self.port), self.gid) {
            (Some(port), Some(index)) => Gid::get(port, index).is_ok(),
            (port, None) => port.is_some(),
            (None, _) => false,
        }
    }
}

/// The port and address of a queue pair, compared to those of a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// A new one would be the same, or no other is possible and this one's address exists.
    Same,
    /// A new one would have another port or address.
    Moved,
    /// Its address is gone, and there is no other.
    Gone,
}

/// A queue pair that is connected to itself.
///
/// It gives peers no access rights and has no receive queue.
#[derive(Clone)]
pub(super) struct SelfQp {
    pub(super) qp: Arc<RegQp>,
    pub(super) address: PortAddress,
    mtu: Mtu,
    depths: Depths,
}

impl SelfQp {
    /// Makes a queue pair for `depth` outstanding work requests, or the maximum of the device if
    /// that is less. Each request may take at most `limit` seconds.
    ///
    /// It uses the first active InfiniBand or RoCE port on which it can be connected. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENETDOWN`: no port is active.
    /// - `EOPNOTSUPP`: the device has no port of that kind (iWARP).
    /// - The errors of the driver.
    pub(super) fn new(pd: &Arc<Pd>, depth: u32, limit: u32) -> Result<Self> {
        let limits = pd.device().limits();
        // A queue of this depth needs space for two more.
        let depth = depth
            .min(limits.max_qp_wr.saturating_sub(2))
            .min(limits.max_cqe.saturating_sub(2))
            .max(1);
        let depths = Depths {
            send: depth,
            receive: 0,
            segments: 1,
            inline: 0,
        };
        first(pd.device(), |way| Self::connect(pd, depths, way, limit))
    }

    /// Makes a queue pair like this one at the same address, with a time limit of its own. It doesn't
    /// ask the driver about its ports, since that may wait for the network stack. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENETDOWN`: the port has gone down.
    /// - The error of looking up an address that is gone.
    /// - The errors of the driver.
    pub(super) fn again(&self, limit: u32) -> Result<Self> {
        let pd = self.qp.pd();
        let way = SelfPath::at(pd.device(), self.address, self.mtu)?;
        Self::connect(pd, self.depths, way, limit)
    }

    /// Makes a queue pair and connects it to itself this way. May sleep.
    fn connect(pd: &Arc<Pd>, depths: Depths, way: SelfPath, limit: u32) -> Result<Self> {
        let SelfPath { address, path } = way;
        let mtu = path.mtu();
        let cq = Cq::alloc(pd.device(), depths.in_send_queue(), None)?;
        let how = Reliability::default();
        // Peers may do nothing on this queue pair.
        let qp =
            Qp::create(pd, [&cq, &cq], depths, None)?.init(address.port, AccessFlags::default())?;
        let [a, b, c, ..] = random::number().to_le_bytes();
        let itself = Peer {
            number: qp.number(),
            // A number of 24 bits, which nobody can guess.
            psn: u32::from_le_bytes([a, b, c, 0]),
        };
        let qp = RegQp::new(qp.connect(path, itself, itself.psn, &how)?, limit)?;
        Ok(Self {
            qp,
            address,
            mtu,
            depths,
        })
    }

    /// Compares the queue pair's port and address with those of a new one. May sleep.
    pub(super) fn outlook(&self) -> Outlook {
        let device: &Device = self.qp.pd().device();
        match first(device, Ok) {
            Ok(path) if path.address == self.address => Outlook::Same,
            Ok(_) => Outlook::Moved,
            Err(_) if self.address.is_there(device) => Outlook::Same,
            Err(_) => Outlook::Gone,
        }
    }
}

/// A way from a port to itself, and where that is.
struct SelfPath {
    address: PortAddress,
    path: Path,
}

impl SelfPath {
    /// Returns the path of one port, as the driver reports it. May sleep, also for locks of the
    /// network stack.
    fn from_port(port: Port<'_>) -> Result<Self> {
        let attr = port.query()?;
        if !attr.is_active {
            return Err(Errno::ENETDOWN.into());
        }
        let gid = if port.protocol() == Protocol::RoCE {
            Some(gid_of_netdev(port, attr.gids).ok_or(Errno::ENETDOWN)?)
        } else if port.needs_gid() {
            Some(Gid::get(port, 0)?)
        } else {
            None
        };
        let address = PortAddress {
            port: port.number(),
            gid: gid.as_ref().map(Gid::index),
            is_default: gid.as_ref().is_some_and(|gid| gid.is_default(port)),
            lid: attr.lid,
        };
        let path = Path::to_self(port, attr.lid, attr.mtu, gid)?;
        Ok(Self { address, path })
    }

    /// Returns the path at an address where there was one with this packet size, without asking the
    /// driver. Does not sleep.
    ///
    /// # Errors
    ///
    /// - `ENETDOWN`: the port has gone down.
    /// - The error of looking up an address that is gone.
    fn at(device: &Device, address: PortAddress, mtu: Mtu) -> Result<Self> {
        let port = device.port(address.port).ok_or(Errno::ENETDOWN)?;
        if !port.was_active() {
            return Err(Errno::ENETDOWN.into());
        }
        let gid = address.gid.map(|index| Gid::get(port, index)).transpose()?;
        let path = Path::to_self(port, address.lid, mtu, gid)?;
        Ok(Self { address, path })
    }
}

/// Checks whether a queue pair would find a port and an address. May sleep, also for locks of the network stack.
pub(super) fn has_address(device: &Device) -> bool {
    first(device, Ok).is_ok()
}

/// Returns an entry of a RoCE port's GID table that has a network device, among the first `count`.
///
/// Not the port's default one if there is another. The RDMA core has one place for that in its
/// table: as long as a queue pair holds the old default GID, a network device whose address changes
/// gets no new one.
fn gid_of_netdev(port: Port<'_>, count: c_int) -> Option<Gid> {
    let find = |default: bool| {
        (0..count).find_map(|index| {
            let gid = Gid::get(port, index).ok()?;
            let fits = gid.is_default(port) == default && gid.mac().is_ok();
            fits.then_some(gid)
        })
    };
    find(false).or_else(|| find(true))
}

/// Tries `connect` with the path of each port, until it succeeds. May sleep.
///
/// # Errors
///
/// - The first error of `connect`.
/// - `ENETDOWN`: no port is up.
/// - `EOPNOTSUPP`: there is none of a kind that can be connected this way.
fn first<T>(device: &Device, connect: impl FnMut(SelfPath) -> Result<T>) -> Result<T> {
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
    let mut no_path = Errno::EOPNOTSUPP.into();
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

#[kernel::macros::kunit_tests(kfi_verbs_self_qp)]
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
        assert_eq!(none, Err(Errno::EOPNOTSUPP.into()));
    }
}
