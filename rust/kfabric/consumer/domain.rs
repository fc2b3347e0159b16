// SPDX-License-Identifier: GPL-2.0

//! Open domains, and their reserve of regions.
//!
//! C header: [`include/kfi_reserve_ext.h`](srctree/include/kfi_reserve_ext.h)

use super::{
    call::{
        self,
        op, //
    },
    handle::{
        close_last,
        Handle, //
    },
    CloseError,
    EventQueue,
    Fabric,
    Info, //
};
use crate::{
    object::ext::reserve::NAME,
    support::{
        errno::Errno,
        task::NoIo, //
    }, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    ffi::c_void,
    prelude::*,
    str::{
        CStr,
        CStrExt, //
    },
    sync::{
        Arc,
        SetOnce, //
    }, //
};
use kfi_bindings::{
    kfi_ops,
    kfi_ops_fabric,
    kfi_reserve_ops,
    kfid,
    kfid_domain,
    KFI_REG_MR, //
};

/// An open domain: the part of a device that memory is registered in.
///
/// It is closed when the last reference is gone; regions and mapped lists have references of their
/// own.
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
/// // It can be closed after its regions only.
/// drop(mr);
/// Domain::close(domain)?;
/// # Ok::<(), Error>(())
/// ```
pub struct Domain(Handle<kfid_domain, (), Uses>);

/// What a domain uses as long as it is open.
struct Uses {
    events: SetOnce<Arc<EventQueue>>,
    fabric: Arc<Fabric>,
}

impl Domain {
    /// `kfi_domain()`: opens the domain that an offer describes, in its fabric. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: the provider needs its calls to be serialized, which this API doesn't do.
    /// - `ENODEV`: there is no such domain any more.
    /// - `ENETDOWN`: its device has no active port.
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
        let mut domain = ptr::null_mut();
        let raw = fabric.as_raw();
        // SAFETY: `raw` is open as long as `fabric` is there; the info is valid, and `domain` is a
        // local.
        let ret = unsafe {
            op!(
                (*raw).ops,
                kfi_ops_fabric,
                domain(raw, info.as_raw(), &mut domain, ptr::null_mut())
            )
        }?;
        let uses = Uses {
            events: SetOnce::new(),
            fabric: fabric.clone(),
        };
        // Dropped, and so closed, where there is no memory for the Arc.
        let domain = Self(Handle::new(call::opened(ret, domain)?, (), uses));
        Ok(Arc::new(domain, GFP_KERNEL)?)
    }

    /// `kfi_domain_bind()`: registrations don't wait for the device any more, but report to this
    /// queue of the same fabric, which stays open as long as the domain. May sleep.
    ///
    /// From then on a region has no key before the queue has an event with its
    /// [`object`](super::Mr::object).
    ///
    /// # Errors
    ///
    /// - `EINVAL`: a queue is bound already, or this one is of another fabric.
    pub fn bind(&self, queue: &Arc<EventQueue>) -> Result<(), Errno> {
        let fid = self.fid();
        // SAFETY: The domain of `fid` is open, and so is the queue, as long as the domain, since a
        // reference to it is kept below.
        unsafe { call::bind(fid, queue.as_raw().cast(), KFI_REG_MR) }?;
        self.0.lent().events.populate(queue.clone());
        Ok(())
    }

    /// Gives up this reference and, if it was the last, closes the domain and tells whether that
    /// worked. May sleep.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, with nothing given back: others have references, regions for instance, and the
    ///   domain is closed with the last of them.
    /// - `EBUSY`, with the domain: its provider can't close it yet, since something of it is used
    ///   outside of kfabric.
    pub fn close(domain: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        close_last(domain, |domain| &mut domain.0)
    }

    /// Returns the fabric that it was opened in. Any context.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.0.lent().fabric
    }

    /// Returns the domain as C has it, for calls that Rust doesn't know. It's open as long as `self`
    /// is there, and must not be closed. Any context.
    pub fn as_raw(&self) -> *mut kfid_domain {
        self.0.as_ptr()
    }

    /// Returns what the domain begins with. Any context.
    pub(super) fn fid(&self) -> *mut kfid {
        self.0.fid()
    }

    /// `kfi_open_ops()`: returns the table of an extension, which lives as long as the domain is
    /// open.
    pub(super) fn extension(&self, name: &CStr) -> Result<NonNull<c_void>, Errno> {
        let (fid, mut table) = (self.fid(), ptr::null_mut());
        // SAFETY: The domain of `fid` is open; the name is valid for the call, and `table` is a
        // local.
        let ret = unsafe {
            op!(
                (*fid).ops,
                kfi_ops,
                ops_open(fid, name.as_char_ptr(), 0, &mut table, ptr::null_mut())
            )
        }?;
        call::opened(ret, table)
    }
}

impl Domain {
    /// Reserves what `count` regions of up to `pages` pages each need, in as many segments at most.
    /// May sleep.
    ///
    /// From then on the provider makes such regions of what was reserved (in a domain with
    /// [`MrMode::ENDPOINT`](super::MrMode::ENDPOINT) for who frees memory or finds none), as long as fewer than
    /// `count` of these are open. What this crate adds is not reserved: the objects around a region
    /// are allocated, before anything is registered.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: the domain has a reserve.
    /// - `ENOSYS`: the provider can't.
    /// - Those that kfi_domain(3) names.
    pub fn reserve(&self, count: usize, pages: usize) -> Result<(), Errno> {
        let ops = self.extension(NAME)?.cast::<kfi_reserve_ops>();
        // SAFETY: A table of this name is what the header says, and there as long as the domain.
        let reserve = unsafe { ops.as_ref() }.reserve.ok_or(Errno::ENOSYS)?;
        // SAFETY: The domain of `fid` is open as long as `self` is there.
        call::result(unsafe { reserve(self.fid(), count, pages) })
    }
}
