// SPDX-License-Identifier: GPL-2.0

//! Open fabrics.

use super::{
    call,
    CloseError,
    Info, //
};
use crate::support::{
    errno::Errno,
    noio::NoIo, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::kfid_fabric;

/// An open fabric. It keeps its provider's module loaded.
///
/// It is closed when the last reference is gone; domains have references of their own.
///
/// # Invariants
///
/// `raw` is an open fabric, unless `closed`, and nobody else closes it.
pub struct Fabric {
    raw: NonNull<kfid_fabric>,
    closed: bool,
}

// SAFETY: The calls on a fabric may be made by any thread.
unsafe impl Send for Fabric {}
// SAFETY: The calls on a fabric may be made by several threads at once: opening a domain is under
// the provider's own locks.
unsafe impl Sync for Fabric {}

impl Fabric {
    /// `kfi_fabric()`: opens the fabric that an offer belongs to. May sleep.
    pub fn open(info: &Info) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        let attr = info.fabric_attr().ok_or(Errno::EINVAL)?;
        let mut fabric = ptr::null_mut();
        // SAFETY: The attributes are valid for the call, and no function of the API changes those
        // that it is given; so is `fabric`.
        let ret = unsafe {
            kfi_bindings::kfi_fabric(ptr::from_ref(attr).cast_mut(), &mut fabric, ptr::null_mut())
        };
        // INVARIANT: Just opened. Dropped, and so closed, where there is no memory for the Arc.
        let fabric = Self {
            raw: call::opened(ret, fabric)?,
            closed: false,
        };
        Ok(Arc::new(fabric, GFP_KERNEL)?)
    }

    /// Gives up this reference and, if it was the last, closes the fabric and tells whether that
    /// worked. May sleep.
    ///
    /// Fails with `EBUSY` if others have references: then the fabric is closed with the last of
    /// them. It is also the error of a provider that can't close it yet: then the fabric comes back
    /// with the error.
    pub fn close(fabric: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        let Some(mut fabric) = Arc::into_unique_or_drop(fabric) else {
            return Err(CloseError::new(Errno::EBUSY, None));
        };
        fabric.shut().map_err(|errno| {
            let open = (!fabric.closed).then(|| fabric.into());
            CloseError::new(errno, open)
        })
    }

    /// The fabric as C has it, for calls that Rust doesn't know. It's open as long as `self` is
    /// there, and must not be closed.
    pub fn as_raw(&self) -> *mut kfid_fabric {
        self.raw.as_ptr()
    }

    /// To be called once, unless it fails with `EBUSY`.
    fn shut(&mut self) -> Result<(), Errno> {
        // SAFETY: Open by the invariant; with nobody left to use it, since domains have references.
        let closed = unsafe { call::close(self.raw.cast()) };
        self.closed = closed != Err(Errno::EBUSY);
        closed
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        if !self.closed {
            if let Err(errno) = self.shut() {
                call::leaked("fabric", errno);
            }
        }
    }
}
