// SPDX-License-Identifier: GPL-2.0

//! Endpoints that regions are bound to, and binding regions
//! ([`MrMode::ENDPOINT`](super::MrMode::ENDPOINT)).

use super::{
    call::{
        self,
        op, //
    },
    handle::Handle,
    Backing,
    CloseError,
    Domain,
    Info,
    Local,
    Mr,
    MsgEndpoint, //
};
use crate::support::{
    errno::Errno,
    num::widen_u32,
    task::NoIo, //
};
use core::ptr;
use kernel::{
    ffi::c_void,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_ops_domain,
    kfid,
    kfid_ep,
    KFI_ENABLE,
    KFI_MORE, //
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

/// An endpoint that regions can be bound to.
pub trait BindsRegions: sealed::Sealed {}

mod sealed {
    /// Of the endpoints here only.
    pub trait Sealed {
        /// The endpoint as C has it, open as long as `self` is there.
        fn fid(&self) -> *mut super::kfid;
    }
}

impl sealed::Sealed for Endpoint {
    fn fid(&self) -> *mut kfid {
        self.as_raw().cast()
    }
}

impl<S, B: Local, C: Send + 'static> sealed::Sealed for MsgEndpoint<S, B, C> {
    fn fid(&self) -> *mut kfid {
        self.as_raw().cast()
    }
}

impl BindsRegions for Endpoint {}
impl<S, B: Local, C: Send + 'static> BindsRegions for MsgEndpoint<S, B, C> {}

/// Regions that are bound before they are enabled.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Access, Connected, Domain, Mr, MsgEndpoint};
///
/// type Peer = MsgEndpoint<Connected, KVec<u8>>;
///
/// /// Lets the peer read, when it has got the key by what is posted next.
/// fn lend(domain: &Arc<Domain>, peer: &Peer, bytes: KVec<u8>) -> Result<Mr<KVec<u8>>> {
///     let mr = domain.reg(bytes, Access::REMOTE_READ)?;
///     mr.bind(peer)?;
///     mr.enable_more()?;
///     Ok(mr)
/// }
/// ```
impl<B: Backing> Mr<B> {
    /// `kfi_mr_bind()`: binds it to an endpoint. May sleep, but not for long.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the domain wasn't opened for that.
    /// - `EINVAL`: it is bound already, or the endpoint is of another domain.
    /// - `EOPBADSTATE`: it is enabled.
    pub fn bind(&self, endpoint: &impl BindsRegions) -> Result<(), Errno> {
        let fid = self.as_raw().cast::<kfid>();
        let endpoint = sealed::Sealed::fid(endpoint);
        // SAFETY: The region of `fid` is open, and so is the endpoint.
        unsafe { call::bind(fid, endpoint, 0) }
    }

    /// `kfi_mr_enable()`: lets the peer in, once it has got the key by something that is posted on the
    /// endpoint afterwards. Any context on a connected endpoint; may sleep before, and if the region is
    /// several to the device.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it isn't bound.
    /// - `EOPBADSTATE`: it is enabled.
    /// - `EAGAIN`: the endpoint's queue is full; it may be tried again.
    /// - `ENOTCONN`: the connection is gone.
    /// - What a registration fails with at the device.
    pub fn enable(&self) -> Result<(), Errno> {
        self.control_enable(None)
    }

    /// `kfi_mr_enable_more()`: as [`enable`](Self::enable), with something to come at once that is posted on
    /// the endpoint.
    pub fn enable_more(&self) -> Result<(), Errno> {
        self.control_enable(Some(widen_u32(KFI_MORE)))
    }

    fn control_enable(&self, flags: Option<u64>) -> Result<(), Errno> {
        let _noio = NoIo::enter();
        let fid = self.as_raw().cast::<kfid>();
        let flags = flags.as_ref().map_or(ptr::null(), ptr::from_ref);
        let arg: *mut c_void = flags.cast_mut().cast();
        // SAFETY: The region of `fid` is open; the flags are null or valid, and are only read.
        unsafe { call::control(fid, KFI_ENABLE, arg) }
    }
}
