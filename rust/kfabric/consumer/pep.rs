// SPDX-License-Identifier: GPL-2.0

//! Passive endpoints, from which the requests that come there can be rejected.
//!
//! Lock order: the lock of a [`Slot`] is before all that C calls take. Nothing is closed under it.

use super::{
    call::{
        self,
        op, //
    },
    handle::Handle,
    EventQueue,
    Fabric,
    Info, //
};
use crate::support::errno::Errno;
use core::ptr;
use kernel::{
    ffi::c_int,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};
use kfi_bindings::{
    kfi_ops_cm,
    kfi_ops_fabric,
    kfid,
    kfid_pep,
    KFI_BACKLOG, //
};

/// An open passive endpoint; its event queue stays open as long.
pub(super) type Pep = Handle<kfid_pep, Arc<EventQueue>>;

/// Opens a passive endpoint that reports to a queue, and at which so many requests may wait, if it isn't
/// left to the core. May sleep.
pub(super) fn open(
    fabric: &Arc<Fabric>,
    info: &Info,
    queue: &Arc<EventQueue>,
    backlog: Option<u32>,
) -> Result<Pep, Errno> {
    let (raw, mut pep) = (fabric.as_raw(), ptr::null_mut());
    // SAFETY: `raw` is open as long as `fabric` is there; the info is valid, and `pep` is a local.
    let ret = unsafe {
        op!(
            (*raw).ops,
            kfi_ops_fabric,
            passive_ep(raw, info.as_raw(), &mut pep, ptr::null_mut())
        )
    }?;
    let pep = Pep::new(call::opened(ret, pep)?, queue.clone(), ());
    let fid = pep.fid();
    // SAFETY: Both are open; the queue as long as the passive endpoint.
    unsafe { call::bind(fid, queue.as_raw().cast(), 0) }?;
    if let Some(backlog) = backlog {
        let mut backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);
        let arg = ptr::from_mut(&mut backlog).cast();
        // SAFETY: The passive endpoint is open, and the argument is what the command takes.
        unsafe { call::control(fid, KFI_BACKLOG, arg) }?;
    }
    Ok(pep)
}

/// A place for a passive endpoint, which is empty before it was opened and after it was closed.
#[pin_data]
pub(super) struct Slot {
    #[pin]
    pep: Mutex<Option<Pep>>,
}

impl Slot {
    pub(super) fn new() -> Result<Arc<Self>, Errno> {
        let slot = pin_init!(Self {
            pep <- new_mutex!(None),
        });
        Arc::pin_init(slot, GFP_KERNEL).map_err(|_| Errno::ENOMEM)
    }

    /// Puts it in.
    pub(super) fn put(&self, pep: Pep) {
        let before = self.pep.lock().replace(pep);
        drop(before);
    }

    /// Takes it out, to be closed.
    pub(super) fn take(&self) -> Option<Pep> {
        self.pep.lock().take()
    }

    /// Does something with it that may sleep; `EOPBADSTATE` if there is none.
    pub(super) fn with<R>(
        &self,
        call: impl FnOnce(*mut kfid_pep) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        match &*self.pep.lock() {
            Some(pep) => call(pep.as_ptr()),
            None => Err(Errno::EOPBADSTATE),
        }
    }

    /// `kfi_reject()`: rejects a request that has come there. Where there is none any more, it was
    /// rejected. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: too many bytes, or it was answered.
    pub(super) fn reject(&self, request: *mut kfid, data: &[u8]) -> Result<(), Errno> {
        let rejected = self.with(|pep| {
            let (param, len) = (data.as_ptr().cast(), data.len());
            // SAFETY: The passive endpoint is open, and the data are valid for the call.
            unsafe { op!((*pep).cm, kfi_ops_cm, reject(pep, request, param, len)) }
        });
        match rejected {
            Err(Errno::EOPBADSTATE) => Ok(()),
            rejected => call::result(rejected?),
        }
    }
}
