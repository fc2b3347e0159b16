// SPDX-License-Identifier: GPL-2.0

//! Providers, and the fabrics that they open.

use super::{
    domain::{
        Domain,
        DomainRequest, //
    },
    msg_ep::MsgLimits,
    offer::{
        Ends,
        Offer, //
    },
    pep::Pep, //
};
use crate::support::{
    errno::Errno,
    refusal::Refusal, //
};
use kernel::{
    prelude::*,
    str::CStr, //
};

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

    /// Opens the fabric of this name; `ENODEV` if there is none. May sleep.
    fn open_fabric(name: &CStr) -> Result<KBox<dyn Fabric>, Refusal>;
}

/// An open fabric. Dropped when the consumer closes it, after its domains.
pub trait Fabric: Send + Sync {
    /// Opens a domain. May sleep.
    fn open_domain(&self, request: &DomainRequest<'_>) -> Result<KBox<dyn Domain>, Refusal>;

    /// Opens a passive endpoint, and says what those that answer its requests can do. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: there are none.
    fn open_pep(&self) -> Result<(KBox<dyn Pep>, MsgLimits), Refusal> {
        let why = c"the provider has no passive endpoints";
        Err(Refusal::new(Errno::ENOSYS, why))
    }

    /// What the `prov_errno` of a connection that failed means, if it is the provider's own number. Any
    /// context.
    fn words(&self, _prov_errno: i32) -> Option<&'static CStr> {
        None
    }
}
