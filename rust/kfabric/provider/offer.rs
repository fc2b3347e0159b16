// SPDX-License-Identifier: GPL-2.0

//! What a provider offers.

use super::msg_ep::MsgLimits;
use core::net::SocketAddr;
use kernel::str::CString;

/// The kind of endpoint that transfers nothing: regions are bound to it.
pub(crate) const EP_TYPE: kfi_bindings::kfi_ep_type = kfi_bindings::kfi_ep_type_KFI_EP_RDM;

/// One domain that a provider can open, with its true limits.
pub struct Offer {
    /// Name of the fabric, unique within the provider.
    pub fabric: CString,
    /// Name of the domain.
    pub domain: CString,
    /// Capabilities.
    pub caps: u64,
    /// Mode bits for memory registration that a consumer must agree to.
    pub mr_mode: i32,
    /// Bytes of a key.
    pub mr_key_size: usize,
    /// Most segments of one region.
    pub mr_iov_limit: usize,
    /// Most regions.
    pub mr_cnt: usize,
    /// What there is besides regions.
    pub extras: Extras,
    /// What its connected endpoints are, if it is an offer of those.
    pub msg: Option<MsgOffer>,
}

/// Connected endpoints that a domain can have.
#[derive(Clone, Copy, Debug)]
pub struct MsgOffer {
    /// What they can do.
    pub limits: MsgLimits,
    /// The addresses that they would have.
    pub ends: Ends,
}

/// The addresses of a connection, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// That of this side.
    pub source: Option<SocketAddr>,
    /// The peer's.
    pub peer: Option<SocketAddr>,
}

impl Ends {
    /// Is neither known?
    pub const fn is_none(&self) -> bool {
        self.source.is_none() && self.peer.is_none()
    }
}

/// What a domain has besides regions. The default is nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras {
    /// Most endpoints.
    pub endpoints: usize,
    /// Most counters.
    pub counters: usize,
    /// Most completion queues.
    pub queues: usize,
    /// Most bytes of an authorization key.
    pub auth_key: usize,
}

/// The offer without its names, for negotiation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capabilities {
    pub(crate) caps: u64,
    pub(crate) mr_mode: i32,
    pub(crate) mr_key_size: usize,
    pub(crate) mr_iov_limit: usize,
    pub(crate) mr_cnt: usize,
    pub(crate) extras: Extras,
    pub(crate) msg: Option<MsgOffer>,
}

impl Offer {
    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities {
            caps: self.caps,
            mr_mode: self.mr_mode,
            mr_key_size: self.mr_key_size,
            mr_iov_limit: self.mr_iov_limit,
            mr_cnt: self.mr_cnt,
            extras: self.extras,
            msg: self.msg,
        }
    }
}
