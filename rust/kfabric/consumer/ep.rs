// SPDX-License-Identifier: GPL-2.0

//! Open endpoints.

use super::{
    call::{
        self,
        op, //
    },
    handle::Handle,
    CloseError,
    Domain,
    Info, //
};
use crate::support::errno::Errno;
use core::ptr;
use kernel::sync::Arc;
use kfi_bindings::{
    kfi_ops_domain,
    kfid_ep,
    KFI_ENABLE, //
};

/// An endpoint, for regions to be bound to ([`MrMode::ENDPOINT`](super::MrMode::ENDPOINT)).
///
/// Closing or dropping it shuts peers out of the regions that are bound to it, for good.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Domain, Endpoint, Info};
///
/// fn let_peers_in(domain: &Arc<Domain>, info: &Info) -> Result<Endpoint> {
///     let endpoint = Endpoint::open(domain, info)?;
///     endpoint.enable()?;
///     Ok(endpoint)
/// }
/// ```
pub struct Endpoint(Handle<kfid_ep, Arc<Domain>>);

impl Endpoint {
    /// `kfi_endpoint()`: opens the endpoint that an offer describes, in its domain. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the provider has none.
    pub fn open(domain: &Arc<Domain>, info: &Info) -> Result<Self, Errno> {
        let (raw, mut ep) = (domain.as_raw(), ptr::null_mut());
        // SAFETY: `raw` is open as long as `domain` is there; the info is valid, and `ep` is a
        // local.
        let ret = unsafe {
            op!(
                (*raw).ops,
                kfi_ops_domain,
                endpoint(raw, info.as_raw(), &mut ep, ptr::null_mut())
            )
        }?;
        let raw = call::opened(ret, ep)?;
        Ok(Self(Handle::new(raw, domain.clone(), ())))
    }

    /// `kfi_enable()`: lets peers in. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: it has been done before.
    pub fn enable(&self) -> Result<(), Errno> {
        let fid = self.0.fid();
        // SAFETY: The endpoint of `fid` is open, and the command takes no argument.
        unsafe { call::control(fid, KFI_ENABLE, ptr::null_mut()) }
    }

    /// Returns the domain that it was opened in. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.0.parent()
    }

    /// Returns the endpoint as C has it, for calls that Rust doesn't know. It's open as long as `self`
    /// is there, and must not be closed. Any context.
    pub fn as_raw(&self) -> *mut kfid_ep {
        self.0.as_ptr()
    }

    /// `kfi_close()`: closes the endpoint and tells whether that worked. Sleeps until accesses
    /// that are under way have ended.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: it is still open, and comes back.
    pub fn close(self) -> Result<(), CloseError<Self>> {
        self.0.close().map_err(|error| error.map(Self))
    }
}
