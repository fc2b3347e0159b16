// SPDX-License-Identifier: GPL-2.0

//! Open fabrics.

use super::*;

/// An open fabric. It keeps its provider's module loaded.
///
/// Dropping the last reference closes the fabric. Domains have their own references.
///
/// # Examples
///
/// ```
/// use kfabric::consumer::{Fabric, Hints};
///
/// let offers = Hints::new()?.getinfo()?;
/// let fabric = Fabric::open(offers.first())?;
/// // The consumer opens domains and event queues in it.
/// Fabric::close(fabric)?;
/// # Ok::<(), kernel::error::Error>(())
/// ```
pub struct Fabric(Handle<kfid_fabric>);

as_raw!(Fabric: kfid_fabric);

impl Fabric {
    /// Opens the fabric of an offer: `kfi_fabric()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the info has no fabric.
    /// - `ENODATA`: the provider is unregistered.
    /// - `ENOMEM`.
    pub fn open(info: &Info) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        let attr = info.fabric_attr().ok_or(Errno::EINVAL)?;
        let mut fabric = ptr::null_mut();
        // SAFETY: `attr` is a reference, and no function of the API changes its input attributes.
        // `fabric` is a local.
        let ret = unsafe {
            kfi_bindings::kfi_fabric(ptr::from_ref(attr).cast_mut(), &mut fabric, ptr::null_mut())
        };
        // If there is no memory for the Arc, this drops the handle, which closes the fabric.
        let fabric = Self(Handle::new(handle::opened(ret, fabric)?, (), ()));
        Ok(Arc::new(fabric, GFP_KERNEL)?)
    }

    /// Drops this reference. Closes the fabric if it was the last one. May sleep.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, without the fabric: others have references. The last of them closes the fabric.
    /// - `EBUSY`, with the fabric: its provider can't close it yet.
    pub fn close(fabric: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        close_last(fabric, |fabric| &mut fabric.0)
    }
}
