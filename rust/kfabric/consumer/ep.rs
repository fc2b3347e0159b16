// SPDX-License-Identifier: GPL-2.0

//! Open endpoints.

use super::{
    call::{
        self,
        op, //
    },
    CloseError,
    Domain,
    Info, //
};
use crate::support::errno::Errno;
use core::{
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::sync::Arc;
use kfi_bindings::{
    kfi_ops,
    kfi_ops_domain,
    kfid,
    kfid_ep,
    KFI_ENABLE, //
};

/// An endpoint, for regions to be bound to ([`MrMode::ENDPOINT`](super::MrMode::ENDPOINT)).
///
/// Closing or dropping it shuts peers out of the regions that are bound to it, for good.
///
/// # Invariants
///
/// `raw` is an open endpoint of `domain` that nobody else closes.
pub struct Endpoint {
    raw: NonNull<kfid_ep>,
    domain: ManuallyDrop<Arc<Domain>>,
}

// SAFETY: The calls on an endpoint may be made by any thread, as those on its domain.
unsafe impl Send for Endpoint {}
// SAFETY: They may be made by several threads at once; none writes to the object.
unsafe impl Sync for Endpoint {}

impl Endpoint {
    /// `kfi_endpoint()`: opens the endpoint that an offer describes, in its domain. May sleep.
    ///
    /// Fails with `ENOSYS` if the provider has none.
    pub fn open(domain: &Arc<Domain>, info: &Info) -> Result<Self, Errno> {
        let (raw, mut ep) = (domain.as_raw(), ptr::null_mut());
        // SAFETY: The domain is open; the info and `ep` are valid for the call.
        let ret = unsafe {
            op!(
                (*raw).ops,
                kfi_ops_domain,
                endpoint(raw, info.as_raw(), &mut ep, ptr::null_mut())
            )
        }?;
        // INVARIANT: Just opened.
        Ok(Self {
            raw: call::opened(ret, ep)?,
            domain: ManuallyDrop::new(domain.clone()),
        })
    }

    /// `kfi_enable()`: lets peers in. May sleep.
    ///
    /// Fails with `EOPBADSTATE` if it has been done before.
    pub fn enable(&self) -> Result<(), Errno> {
        let fid = self.fid();
        // SAFETY: The endpoint is open, and the command takes no argument.
        let ret = unsafe {
            op!(
                (*fid).ops,
                kfi_ops,
                control(
                    fid,
                    crate::support::num::signed(KFI_ENABLE),
                    ptr::null_mut()
                )
            )
        }?;
        call::result(ret)
    }

    /// The domain that it was opened in.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// The endpoint as C has it, for calls that Rust doesn't know. It's open as long as `self` is
    /// there, and must not be closed.
    pub fn as_raw(&self) -> *mut kfid_ep {
        self.raw.as_ptr()
    }

    /// `kfi_close()`: closes the endpoint and tells whether that worked. Sleeps until accesses that
    /// are under way have ended.
    ///
    /// With `EBUSY` it is still open, and comes back.
    pub fn close(self) -> Result<(), CloseError<Self>> {
        let mut endpoint = ManuallyDrop::new(self);
        endpoint.shut().map_err(|errno| {
            let open = (errno == Errno::EBUSY).then(|| ManuallyDrop::into_inner(endpoint));
            CloseError::new(errno, open)
        })
    }

    fn fid(&self) -> *mut kfid {
        self.raw.as_ptr().cast()
    }

    /// Closes the endpoint and, unless it is still open, lets the domain go.
    ///
    /// To be called once, unless it fails with `EBUSY`.
    fn shut(&mut self) -> Result<(), Errno> {
        // SAFETY: Open by the invariant, and used by nobody else.
        let closed = unsafe { call::close(self.raw.cast()) };
        if closed != Err(Errno::EBUSY) {
            // SAFETY: Not used any more, as `shut` is not called again.
            unsafe { ManuallyDrop::drop(&mut self.domain) };
        }
        closed
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Err(errno) = self.shut() {
            // What it was opened in stays open with it.
            call::leaked("endpoint", errno);
        }
    }
}
