// SPDX-License-Identifier: GPL-2.0

//! Open fabrics.

use super::{
    call,
    handle::{
        close_last,
        Handle, //
    },
    CloseError,
    Info, //
};
use crate::support::{
    errno::Errno,
    task::NoIo, //
};
use core::ptr;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::kfid_fabric;

/// An open fabric. It keeps its provider's module loaded.
///
/// It is closed when the last reference is gone; domains have references of their own.
///
/// # Examples
///
/// ```
/// use kfabric::consumer::{Fabric, Hints};
///
/// let offers = Hints::new()?.getinfo()?;
/// let fabric = Fabric::open(offers.first())?;
/// // Domains and event queues are opened in it.
/// Fabric::close(fabric)?;
/// # Ok::<(), kernel::error::Error>(())
/// ```
pub struct Fabric(Handle<kfid_fabric>);

impl Fabric {
    /// `kfi_fabric()`: opens the fabric that an offer belongs to. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the info has no fabric.
    /// - `ENODATA`: the provider is gone.
    /// - `ENOMEM`.
    pub fn open(info: &Info) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        let attr = info.fabric_attr().ok_or(Errno::EINVAL)?;
        let mut fabric = ptr::null_mut();
        // SAFETY: The attributes `attr` are valid for the call, and no function of the API changes
        // those that it is given; `fabric` is a local.
        let ret = unsafe {
            kfi_bindings::kfi_fabric(ptr::from_ref(attr).cast_mut(), &mut fabric, ptr::null_mut())
        };
        // Dropped, and so closed, where there is no memory for the Arc.
        let fabric = Self(Handle::new(call::opened(ret, fabric)?, (), ()));
        Ok(Arc::new(fabric, GFP_KERNEL)?)
    }

    /// Gives up this reference and, if it was the last, closes the fabric and tells whether that
    /// worked. May sleep.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, with nothing given back: others have references, and the fabric is closed with the
    ///   last of them.
    /// - `EBUSY`, with the fabric: its provider can't close it yet.
    pub fn close(fabric: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        close_last(fabric, |fabric| &mut fabric.0)
    }

    /// Returns the fabric as C has it, for calls that Rust doesn't know. It's open as long as `self`
    /// is there, and must not be closed. Any context.
    pub fn as_raw(&self) -> *mut kfid_fabric {
        self.0.as_ptr()
    }
}
