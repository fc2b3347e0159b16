// SPDX-License-Identifier: GPL-2.0

//! Open domains.

use super::{
    call::{
        self,
        op, //
    },
    CloseError,
    EventQueue,
    Fabric,
    Info, //
};
use crate::support::{
    errno::Errno,
    noio::NoIo, //
};
use core::{
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    }, //
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
    kfid,
    kfid_domain, //
};

/// An open domain: the part of a device that memory is registered in.
///
/// It is closed when the last reference is gone; regions and mapped lists have references of their
/// own.
///
/// # Invariants
///
/// `raw` is an open domain, unless `closed`, and nobody else closes it. Its calls may be made by
/// several threads at once. The fabric is there as long as the domain is open, and so is the event
/// queue that is bound to it.
pub struct Domain {
    raw: NonNull<kfid_domain>,
    closed: bool,
    fabric: ManuallyDrop<Arc<Fabric>>,
    events: ManuallyDrop<SetOnce<Arc<EventQueue>>>,
}

// SAFETY: By the invariant.
unsafe impl Send for Domain {}
// SAFETY: By the invariant.
unsafe impl Sync for Domain {}

impl Domain {
    /// `kfi_domain()`: opens the domain that an offer describes, in its fabric. May sleep.
    ///
    /// Fails with `EOPNOTSUPP` if the provider needs its calls to be serialized, which this API
    /// doesn't do; with `ENODEV` if there is no such domain any more, with `ENETDOWN` if its
    /// device has no active port.
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
        // SAFETY: The fabric is open, and the info and `domain` are valid for the call.
        let ret = unsafe {
            op!(
                (*raw).ops,
                kfi_ops_fabric,
                domain(raw, info.as_raw(), &mut domain, ptr::null_mut())
            )
        }?;
        // INVARIANT: Just opened. Dropped, and so closed, where there is no memory for the Arc.
        let domain = Self {
            raw: call::opened(ret, domain)?,
            closed: false,
            fabric: ManuallyDrop::new(fabric.clone()),
            events: ManuallyDrop::new(SetOnce::new()),
        };
        Ok(Arc::new(domain, GFP_KERNEL)?)
    }

    /// `kfi_domain_bind()`: registrations don't wait for the device any more, but report to this
    /// queue of the same fabric, which stays open as long as the domain. May sleep.
    ///
    /// From then on a region has no key before the queue has an event with its
    /// [`object`](super::Mr::object). `EINVAL` if a queue is bound already.
    pub fn bind(&self, queue: &Arc<EventQueue>) -> Result<(), Errno> {
        let fid = self.fid();
        // SAFETY: The domain and the queue are open, the queue for as long as the domain, since the
        // reference to it is kept.
        let ret = unsafe {
            op!(
                (*fid).ops,
                kfi_ops,
                bind(fid, queue.as_raw().cast(), kfi_bindings::KFI_REG_MR)
            )
        }?;
        call::result(ret)?;
        self.events.populate(queue.clone());
        Ok(())
    }

    /// Gives up this reference and, if it was the last, closes the domain and tells whether that
    /// worked. May sleep.
    ///
    /// Fails with `EBUSY` if others have references, regions for instance: then the domain is
    /// closed with the last of them. It is also the error of a provider that can't close it yet,
    /// since something of it is used outside of kfabric: then the domain comes back with the error.
    pub fn close(domain: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        let Some(mut domain) = Arc::into_unique_or_drop(domain) else {
            return Err(CloseError::new(Errno::EBUSY, None));
        };
        domain.shut().map_err(|errno| {
            let open = (!domain.closed).then(|| domain.into());
            CloseError::new(errno, open)
        })
    }

    /// The fabric that it was opened in.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    /// The domain as C has it, for calls that Rust doesn't know. It's open as long as `self` is
    /// there, and must not be closed.
    pub fn as_raw(&self) -> *mut kfid_domain {
        self.raw.as_ptr()
    }

    pub(super) fn fid(&self) -> *mut kfid {
        self.raw.as_ptr().cast()
    }

    /// `kfi_open_ops()`: the table of an extension, which lives as long as the domain is open.
    pub(super) fn extension(&self, name: &CStr) -> Result<NonNull<c_void>, Errno> {
        let (fid, mut table) = (self.fid(), ptr::null_mut());
        // SAFETY: The domain is open; the name and `table` are valid for the call.
        let ret = unsafe {
            op!(
                (*fid).ops,
                kfi_ops,
                ops_open(fid, name.as_char_ptr(), 0, &mut table, ptr::null_mut())
            )
        }?;
        call::opened(ret, table)
    }

    /// To be called once, unless it fails with `EBUSY`.
    fn shut(&mut self) -> Result<(), Errno> {
        // SAFETY: Open by the invariant; with nobody left to use it, since whoever does has a
        // reference.
        let closed = unsafe { call::close(self.raw.cast()) };
        self.closed = closed != Err(Errno::EBUSY);
        if closed.is_ok() {
            // SAFETY: Neither is used any more, as `shut` is not called again.
            unsafe {
                ManuallyDrop::drop(&mut self.events);
                ManuallyDrop::drop(&mut self.fabric);
            }
        }
        closed
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        if !self.closed {
            if let Err(errno) = self.shut() {
                // The fabric and the event queue stay open with it.
                call::leaked("domain", errno);
            }
        }
    }
}
