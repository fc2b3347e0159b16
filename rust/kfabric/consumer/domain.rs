// SPDX-License-Identifier: GPL-2.0

//! Open domains, and their reserve of regions.
//!
//! C header: [`include/kfi_reserve_ext.h`](srctree/include/kfi_reserve_ext.h)

use super::*;
use crate::object::ext::RESERVE_NAME;
use kfi_bindings::{
    kfi_reserve_ops,
    KFI_REG_MR, //
};

/// An open domain: a device in which memory is registered.
///
/// Dropping the last reference closes the domain. Regions and mapped lists have their own
/// references.
///
/// # Examples
///
/// ```
/// use kernel::prelude::*;
/// use kfabric::consumer::{Access, Domain, Fabric, Hints, MrMode};
///
/// let offers = Hints::new()?
///     .mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY)
///     .getinfo()?;
/// let info = offers.first();
/// let domain = Domain::open(&Fabric::open(info)?, info)?;
/// let mr = domain.reg(KVec::from_elem(0, 100, GFP_KERNEL)?, Access::REMOTE_READ)?;
/// // The domain can be closed only after its regions.
/// drop(mr);
/// Domain::close(domain)?;
/// # Ok::<(), Error>(())
/// ```
pub struct Domain(Handle<kfid_domain, (), Uses>);

/// The objects that a domain keeps open.
struct Uses {
    events: SetOnce<Arc<EventQueue>>,
    fabric: Arc<Fabric>,
}

as_raw!(Domain: kfid_domain);

impl Domain {
    /// Opens the domain of an offer in its fabric: `kfi_domain()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: the provider requires serialized calls, which this API doesn't support.
    /// - `ENODEV`: the domain doesn't exist any more.
    /// - `ENETDOWN`: the device has no active port.
    /// - `EINVAL`: the info has no domain.
    /// - `ENOMEM`.
    pub fn open(fabric: &Arc<Fabric>, info: &Info) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        let attr = info.domain_attr().ok_or(Errno::EINVAL)?;
        match attr.threading {
            kfi_bindings::kfi_threading_KFI_THREAD_SAFE
            | kfi_bindings::kfi_threading_KFI_THREAD_UNSPEC => (),
            _ => return Err(Errno::EOPNOTSUPP),
        }
        // SAFETY: The fabric is open as long as `fabric`. The info is valid.
        let domain = unsafe { open_by!(fabric.as_raw(), domain(info.as_raw(); ptr::null_mut())) }?;
        let uses = Uses {
            events: SetOnce::new(),
            fabric: fabric.clone(),
        };
        // If there is no memory for the Arc, this drops the handle, which closes the domain.
        let domain = Self(Handle::new(domain, (), uses));
        Ok(Arc::new(domain, GFP_KERNEL)?)
    }

    /// Binds an event queue of the same fabric: `kfi_domain_bind()`. May sleep.
    ///
    /// Registrations no longer wait for the device, but report to the queue. A region has no key
    /// until the queue has an event with its [`object`](super::Mr::object). The domain keeps the
    /// queue open.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the domain has a queue, or this queue is of another fabric.
    pub fn bind(&self, queue: &Arc<EventQueue>) -> Result<(), Errno> {
        let fid = self.fid();
        // SAFETY: The domain of `fid` is open. The queue is open as long as the domain, which keeps
        // the reference that is stored below.
        unsafe { handle::bind(fid, queue.as_raw().cast(), KFI_REG_MR) }?;
        self.0.lent().events.populate(queue.clone());
        Ok(())
    }

    /// Drops this reference. Closes the domain if it was the last one. May sleep.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, without the domain: others have references, for example regions. The last of them
    ///   closes the domain.
    /// - `EBUSY`, with the domain: its provider can't close it, because a user outside of kfabric
    ///   uses a part of it.
    pub fn close(domain: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        close_last(domain, |domain| &mut domain.0)
    }

    /// Returns the fabric of the domain. Any context.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.0.lent().fabric
    }

    /// Returns the fid of the domain. Any context.
    pub(super) fn fid(&self) -> *mut kfid {
        self.0.fid()
    }

    /// Returns the operations of an extension: `kfi_open_ops()`. They are valid as long as the
    /// domain is open.
    pub(super) fn extension(&self, name: &CStr) -> Result<NonNull<c_void>, Errno> {
        let name = name.as_char_ptr();
        // SAFETY: The domain is open as long as `self`. `name` is a string.
        unsafe { open_by!(self.fid(), ops_open(name, 0; ptr::null_mut())) }
    }

    /// Reserves resources for `count` regions of up to `pages` pages in up to `pages` segments. May
    /// sleep.
    ///
    /// As long as fewer than `count` of these regions are open, the provider can take them from the
    /// reserve. In a domain with [`MrMode::ENDPOINT`] it does that for callers that free memory, or
    /// if there is no memory. The objects of this crate aren't reserved: they are allocated before
    /// anything is registered.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: the domain has a reserve.
    /// - `ENOSYS`: the provider doesn't support reserves.
    /// - The errors in kfi_domain(3).
    pub fn reserve(&self, count: usize, pages: usize) -> Result<(), Errno> {
        let ops = self.extension(RESERVE_NAME)?.cast::<kfi_reserve_ops>();
        // SAFETY: The provider's table of this name is a `kfi_reserve_ops`, valid as long as the
        // domain.
        let reserve = unsafe { ops.as_ref() }.reserve.ok_or(Errno::ENOSYS)?;
        // SAFETY: The domain of the fid is open as long as `self`.
        handle::result(unsafe { reserve(self.fid(), count, pages) })
    }
}
