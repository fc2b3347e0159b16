// SPDX-License-Identifier: GPL-2.0

//! Providers, and the fabrics that they open.
//!
//! An [`Offer`] describes a domain to getinfo.

use super::{
    cm::PepOps,
    domain::{
        DomainOps,
        DomainRequest, //
    },
    msg_ep::MsgLimits, //
};
use crate::prelude::*;
use kernel::str::CString;

/// A provider: the thing behind a `prov_name`.
///
/// There is one of each type, so its functions have no `self`.
///
/// # Examples
///
/// ```ignore
/// impl Provider for Mine {
///     const NAME: &'static CStr = c"mine";
///     const VERSION: u32 = 1 << 16;
///
///     fn offers(ends: &Ends) -> Result<KVec<Offer>, Errno> {
///         let mut offers = KVec::new();
///         if ends.is_none() {
///             offers.push(offer_of_regions()?, GFP_KERNEL)?;
///         }
///         Ok(offers)
///     }
///
///     fn open_fabric(name: &CStr) -> Result<KBox<dyn Fabric>, Refusal> {
///         match name == c"mine" {
///             true => Ok(KBox::new(MyFabric, GFP_KERNEL)?),
///             false => Err(Refusal::new(Errno::ENODEV, c"no fabric of that name")),
///         }
///     }
/// }
///
/// // Consumers find it until this is dropped.
/// let registration = kfabric::Registration::<Mine>::new()?;
/// ```
pub trait Provider: 'static {
    /// `prov_name`, by which consumers ask for it.
    const NAME: &'static CStr;
    /// Its version, as `KFI_VERSION(major, minor)`.
    const VERSION: u32;

    /// Lists what the provider can offer right now, one entry per domain and kind of endpoint; where
    /// addresses are asked for, connected endpoints between them only. May sleep.
    fn offers(ends: &Ends) -> Result<KVec<Offer>, Errno>;

    /// Opens the fabric of this name. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENODEV`: there is no fabric of this name.
    fn open_fabric(name: &CStr) -> Result<KBox<dyn FabricOps>, Refusal>;
}

/// An open fabric. Dropped when the consumer closes it, after its domains.
pub trait FabricOps: Send + Sync {
    /// Opens a domain. May sleep.
    fn open_domain(&self, request: &DomainRequest<'_>) -> Result<KBox<dyn DomainOps>, Refusal>;

    /// Opens a passive endpoint. Returns the limits of endpoints that accept its requests, too. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the provider has no passive endpoints.
    fn open_pep(&self) -> Result<(KBox<dyn PepOps>, MsgLimits), Refusal> {
        let why = c"the provider has no passive endpoints";
        Err(Refusal::new(Errno::ENOSYS, why))
    }

    /// Returns the text of a provider's error number of a failed connection. Any context.
    fn words(&self, _prov_errno: i32) -> Option<&'static CStr> {
        None
    }
}

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
    /// The number of other objects.
    pub extras: Extras,
    /// The connected endpoints of the domain, if the offer is for them.
    pub msg: Option<MsgOffer>,
}

/// Connected endpoints that a domain can have.
#[derive(Clone, Copy, Debug)]
pub struct MsgOffer {
    /// The limits of the endpoints.
    pub limits: MsgLimits,
    /// The addresses of a connection.
    pub ends: Ends,
}

/// The addresses of a connection, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// The local address.
    pub source: Option<SocketAddr>,
    /// The peer's.
    pub peer: Option<SocketAddr>,
}

impl Ends {
    /// Returns whether neither address is known.
    pub const fn is_none(&self) -> bool {
        self.source.is_none() && self.peer.is_none()
    }
}

/// The number of objects of a domain besides regions. The default is none.
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
    /// Returns the offer without its names.
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
