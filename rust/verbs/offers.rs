// SPDX-License-Identifier: GPL-2.0

//! Offers for `kfi_getinfo()`: a fabric and a domain for each device.

use crate::{
    device,
    ep,
    mode::Mode,
    prelude::*, //
};
use kernel::str::CString;
use kfabric::{
    Ends,
    Extras,
    MsgOffer,
    Offer, //
};
use rdma::{
    cm,
    device::DeviceName,
    Device, //
};

/// Capabilities of regions.
const CAPS: u64 = num::widen_u32(
    kfi_bindings::KFI_RMA | kfi_bindings::KFI_REMOTE_READ | kfi_bindings::KFI_REMOTE_WRITE,
);

/// Additional capabilities of connected endpoints.
const MSG_CAPS: u64 = num::widen_u32(
    kfi_bindings::KFI_MSG
        | kfi_bindings::KFI_SEND
        | kfi_bindings::KFI_RECV
        | kfi_bindings::KFI_READ
        | kfi_bindings::KFI_WRITE,
);

/// Atomic operations, by this side and by peers.
pub(crate) const ATOMIC: u64 = num::widen_u32(kfi_bindings::KFI_ATOMIC);

/// Messages. Only connected endpoints offer them.
pub(crate) const MSG: u64 = num::widen_u32(kfi_bindings::KFI_MSG);

/// Time limit for resolving the path to a peer, in milliseconds.
const RESOLVE_LIMIT: u32 = 5_000;

/// Which devices are asked for.
enum Wanted {
    All,
    /// The one that has an address, or leads to one; by its name.
    One(DeviceName),
    None,
}

/// Lists what the devices that are there can do, with endpoints between these addresses. Sleeps until
/// the way to the peer is found, or can't be.
///
/// # Errors
///
/// - `ENOMEM`
pub(crate) fn list(ends: &Ends) -> Result<KVec<Offer>, Errno> {
    let mut offers = KVec::new();
    let (wanted, found) = find(ends);
    for device in device::all().map_err(|_| Errno::ENOMEM)? {
        let is_wanted = |device: &ARef<Device>| match &wanted {
            Wanted::All => true,
            Wanted::One(name) => name.as_c_str() == device.name().as_c_str(),
            Wanted::None => false,
        };
        let Some(present) = device.get().filter(is_wanted) else {
            continue;
        };
        // Without a registration queue there is none but to endpoints.
        let serves = |mode: &Mode| mode.by_endpoint() || present.connects_freely();
        let bare = Mode::OFFERS.into_iter().filter(|_| ends.is_none());
        for mode in bare.filter(serves) {
            offers.push(offer(&present, mode)?, GFP_KERNEL)?;
        }
        // A device that doesn't answer has no endpoints to offer.
        let Ok(limits) = ep::limits(&present) else {
            continue;
        };
        let atomic = match limits.atomics.any() {
            true => ATOMIC,
            false => 0,
        };
        for mode in Mode::ENDPOINT_OFFERS.into_iter().filter(serves) {
            let msg = MsgOffer {
                limits,
                ends: found,
            };
            let mut offer = offer(&present, mode)?;
            offer.caps |= MSG_CAPS | atomic;
            offer.extras.endpoints = num::index(present.limits().max_qp);
            offer.msg = Some(msg);
            offers.push(offer, GFP_KERNEL)?;
        }
    }
    Ok(offers)
}

/// Returns the devices that the addresses select, and the resolved addresses.
fn find(ends: &Ends) -> (Wanted, Ends) {
    match (ends.source, ends.peer) {
        (source, Some(peer)) => to_peer(source, peer),
        (Some(source), None) if !source.ip().is_unspecified() => {
            let device = cm::device_of(source.ip());
            let wanted = device.map_or(Wanted::None, |device| Wanted::One(device.name()));
            (wanted, *ends)
        }
        _ => (Wanted::All, *ends),
    }
}

/// Returns the device that leads to a peer, and its local address.
fn to_peer(source: Option<SocketAddr>, peer: SocketAddr) -> (Wanted, Ends) {
    let none = Ends {
        source,
        peer: Some(peer),
    };
    let Ok(resolved) = cm::Resolved::new(source, peer, RESOLVE_LIMIT) else {
        return (Wanted::None, none);
    };
    let local = resolved.local().map(|mut local| {
        // Each connection gets a port of its own, unless one is asked for.
        local.set_port(source.map_or(0, |source| source.port()));
        local
    });
    let found = Ends {
        source: local.or(source),
        peer: Some(peer),
    };
    (Wanted::One(resolved.device().name()), found)
}

/// Returns the offer of a device in this mode, without endpoints.
fn offer(device: &Device, mode: Mode) -> Result<Offer, Errno> {
    let limits = device.limits();
    let region = mode.limits(&limits);
    let name = device.name();
    Ok(Offer {
        fabric: string(&name)?,
        domain: string(&name)?,
        caps: CAPS,
        mr_mode: mode.bits(),
        mr_key_size: mode.key_size(),
        mr_iov_limit: region.segments,
        mr_cnt: region.regions,
        extras: Extras {
            queues: num::index(limits.max_cq),
            ..Extras::default()
        },
        msg: None,
    })
}

fn string(name: &DeviceName) -> Result<CString, Errno> {
    CString::try_from_fmt(fmt!("{name}")).map_err(|_| Errno::ENOMEM)
}
