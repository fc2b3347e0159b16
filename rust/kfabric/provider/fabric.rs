// SPDX-License-Identifier: GPL-2.0

//! Providers, and the fabrics that they open.

use super::{
    domain::{
        Domain,
        DomainRequest, //
    },
    offer::Offer, //
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
pub trait Provider: 'static {
    /// `prov_name`, by which consumers ask for it.
    const NAME: &'static CStr;
    /// Its version, as `KFI_VERSION(major, minor)`.
    const VERSION: u32;

    /// Lists what the provider can offer right now, one entry per domain. May sleep.
    fn offers() -> Result<KVec<Offer>, Errno>;

    /// Opens the fabric of this name; `ENODEV` if there is none. May sleep.
    fn open_fabric(name: &CStr) -> Result<KBox<dyn Fabric>, Refusal>;
}

/// An open fabric. Dropped when the consumer closes it, after its domains.
pub trait Fabric: Send + Sync {
    /// Opens a domain. May sleep.
    fn open_domain(&self, request: &DomainRequest<'_>) -> Result<KBox<dyn Domain>, Refusal>;
}
