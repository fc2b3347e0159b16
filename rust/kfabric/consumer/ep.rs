// SPDX-License-Identifier: GPL-2.0

//! Endpoints that regions are bound to, and binding regions ([`MrMode::ENDPOINT`]).

use super::*;
use kfi_bindings::{
    KFI_ENABLE,
    KFI_MORE, //
};

/// An endpoint that regions are bound to ([`MrMode::ENDPOINT`]).
///
/// Closing or dropping it ends the access of peers to its regions.
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

as_raw!(Endpoint: kfid_ep);

impl Endpoint {
    /// Opens the endpoint of an offer in its domain: `kfi_endpoint()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the provider has no endpoints.
    pub fn open(domain: &Arc<Domain>, info: &Info) -> Result<Self, Errno> {
        // SAFETY: The domain is open as long as `domain`. The info is valid.
        let ep = unsafe { open_by!(domain.as_raw(), endpoint(info.as_raw(); ptr::null_mut())) }?;
        Ok(Self(Handle::new(ep, domain.clone(), ())))
    }

    /// Permits accesses of peers: `kfi_enable()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the endpoint is enabled.
    pub fn enable(&self) -> Result<(), Errno> {
        let fid = self.0.fid();
        // SAFETY: The endpoint of `fid` is open. The command takes no argument.
        unsafe { handle::control(fid, KFI_ENABLE, ptr::null_mut()) }
    }

    /// Returns the domain of the endpoint. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.0.parent()
    }

    /// Closes the endpoint: `kfi_close()`. Sleeps until the current accesses have completed.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: the endpoint is still open, and the error has it.
    pub fn close(self) -> Result<(), CloseError<Self>> {
        self.0.close().map_err(|error| error.map(Self))
    }
}

/// An endpoint that regions can be bound to.
pub trait BindsRegions: sealed::SealedEndpoint {}

mod sealed {
    /// Seals [`BindsRegions`](super::BindsRegions).
    pub trait SealedEndpoint {
        /// Returns the C object. It is open as long as `self` lives.
        fn fid(&self) -> *mut super::kfid;
    }
}

/// Returns the C object of an endpoint, which is open while that is borrowed.
pub(super) fn bound_to(endpoint: &impl BindsRegions) -> *mut kfid_ep {
    // An endpoint begins with its fid.
    sealed::SealedEndpoint::fid(endpoint).cast()
}

impl sealed::SealedEndpoint for Endpoint {
    fn fid(&self) -> *mut kfid {
        self.as_raw().cast()
    }
}

impl<S, B: Local, C: Send + 'static> sealed::SealedEndpoint for MsgEndpoint<S, B, C> {
    fn fid(&self) -> *mut kfid {
        self.as_raw().cast()
    }
}

impl BindsRegions for Endpoint {}
impl<S, B: Local, C: Send + 'static> BindsRegions for MsgEndpoint<S, B, C> {}

/// Binds and enables regions.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Access, Connected, Domain, Mr, MsgEndpoint};
///
/// type Peer = MsgEndpoint<Connected, KVec<u8>>;
///
/// /// Lets the peer read. The next message must have the key.
/// fn lend(domain: &Arc<Domain>, peer: &Peer, bytes: KVec<u8>) -> Result<Mr<KVec<u8>>> {
///     let mr = domain.reg(bytes, Access::REMOTE_READ)?;
///     mr.bind(peer)?;
///     mr.enable_more()?;
///     Ok(mr)
/// }
/// ```
impl<B: Backing> Mr<B> {
    /// Binds the region to an endpoint: `kfi_mr_bind()`. May sleep, for a short time.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the domain was opened without `MrMode::ENDPOINT`.
    /// - `EINVAL`: the region is bound, or the endpoint is of another domain.
    /// - `EOPBADSTATE`: the region is enabled.
    pub fn bind(&self, endpoint: &impl BindsRegions) -> Result<(), Errno> {
        let fid = self.as_raw().cast::<kfid>();
        let endpoint = sealed::SealedEndpoint::fid(endpoint);
        // SAFETY: The region of `fid` is open. So is the endpoint, which is borrowed.
        unsafe { handle::bind(fid, endpoint, 0) }
    }

    /// Enables the region: `kfi_mr_enable()`. The peer may use the key once it has received
    /// something that is posted on the endpoint afterwards.
    ///
    /// # Context
    ///
    /// Any context on a connected endpoint. May sleep if the endpoint isn't connected, or if the
    /// region has several device regions.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the region isn't bound.
    /// - `EOPBADSTATE`: the region is enabled.
    /// - `EAGAIN`: the endpoint's queue is full. The caller may try again.
    /// - `ENOTCONN`: the connection has ended.
    /// - The errors of a registration with the device.
    pub fn enable(&self) -> Result<(), Errno> {
        self.control_enable(None)
    }

    /// Enables the region like [`enable`](Self::enable): `kfi_mr_enable_more()`. The caller must
    /// post something on the endpoint at once.
    pub fn enable_more(&self) -> Result<(), Errno> {
        self.control_enable(Some(widen_u32(KFI_MORE)))
    }

    fn control_enable(&self, flags: Option<u64>) -> Result<(), Errno> {
        let _noio = NoIo::enter();
        let fid = self.as_raw().cast::<kfid>();
        let flags = flags.as_ref().map_or(ptr::null(), ptr::from_ref);
        let arg: *mut c_void = flags.cast_mut().cast();
        // SAFETY: The region of `fid` is open. The flags are null or a local, and only read.
        unsafe { handle::control(fid, KFI_ENABLE, arg) }
    }
}
