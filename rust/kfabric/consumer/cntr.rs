// SPDX-License-Identifier: GPL-2.0

//! Open counters.

use super::{
    call::{
        self,
        op, //
    },
    CloseError,
    Domain, //
};
use crate::support::errno::Errno;
use core::{
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    ffi::c_int,
    sync::Arc,
    time::Msecs, //
};
use kfi_bindings::{
    kfi_cntr_attr,
    kfi_cntr_events_KFI_CNTR_EVENTS_COMP as EVENTS_COMP,
    kfi_ops_cntr,
    kfi_ops_domain,
    kfi_wait_obj_KFI_WAIT_UNSPEC as WAIT_UNSPEC,
    kfid_cntr, //
};

/// A counter: how many operations ended well, and how many failed.
///
/// All that it does may be done in any context, but for opening, closing, dropping and
/// [`wait`](Self::wait). Both numbers go on from 0 after `u64::MAX`.
///
/// Closing or dropping it takes it off the regions that it is bound to; they go on without it.
///
/// # Invariants
///
/// `raw` is an open counter of `domain` that nobody else closes.
pub struct Counter {
    raw: NonNull<kfid_cntr>,
    domain: ManuallyDrop<Arc<Domain>>,
}

// SAFETY: The calls on a counter may be made by any thread, as those on its domain.
unsafe impl Send for Counter {}
// SAFETY: They may be made by several threads at once.
unsafe impl Sync for Counter {}

/// Calls an operation of the counter, and gives what it returned.
macro_rules! call {
    ($counter:expr, $op:ident($($arg:expr),*)) => {{
        let raw = $counter.raw.as_ptr();
        // SAFETY: The counter is open, with a table that is valid as long.
        unsafe { op!((*raw).ops, kfi_ops_cntr, $op(raw $(, $arg)*)) }
    }};
}

impl Counter {
    /// `kfi_cntr_open()`: opens a counter that can be waited for. May sleep.
    ///
    /// Fails with `ENOSYS` if the provider has none.
    pub fn open(domain: &Arc<Domain>) -> Result<Self, Errno> {
        let mut attr = kfi_cntr_attr {
            events: EVENTS_COMP,
            wait_obj: WAIT_UNSPEC,
            ..pin_init::zeroed()
        };
        let (raw, mut cntr) = (domain.as_raw(), ptr::null_mut());
        // SAFETY: The domain is open; the attributes and `cntr` are valid for the call.
        let ret = unsafe {
            op!(
                (*raw).ops,
                kfi_ops_domain,
                cntr_open(raw, &mut attr, &mut cntr, ptr::null_mut())
            )
        }?;
        // INVARIANT: Just opened.
        Ok(Self {
            raw: call::opened(ret, cntr)?,
            domain: ManuallyDrop::new(domain.clone()),
        })
    }

    /// `kfi_cntr_read()`: how many operations ended well. Any context.
    pub fn read(&self) -> u64 {
        call!(self, read()).unwrap_or(0)
    }

    /// `kfi_cntr_readerr()`: how many operations failed. Any context.
    pub fn readerr(&self) -> u64 {
        call!(self, readerr()).unwrap_or(0)
    }

    /// `kfi_cntr_add()`: adds to those that ended well. Any context.
    pub fn add(&self, value: u64) -> Result<(), Errno> {
        call::result(call!(self, add(value))?)
    }

    /// `kfi_cntr_adderr()`: adds to those that failed. Any context.
    pub fn adderr(&self, value: u64) -> Result<(), Errno> {
        call::result(call!(self, adderr(value))?)
    }

    /// `kfi_cntr_set()`: sets how many ended well. Any context.
    pub fn set(&self, value: u64) -> Result<(), Errno> {
        call::result(call!(self, set(value))?)
    }

    /// `kfi_cntr_seterr()`: sets how many failed. Any context.
    pub fn seterr(&self, value: u64) -> Result<(), Errno> {
        call::result(call!(self, seterr(value))?)
    }

    /// `kfi_cntr_wait()`: sleeps until `threshold` or more operations ended well; `None` waits for
    /// ever.
    ///
    /// Fails with `ETIMEDOUT`; with `EAVAIL` if the number of failures changes meanwhile; with
    /// `EINTR` on a signal.
    pub fn wait(&self, threshold: u64, timeout: Option<Msecs>) -> Result<(), Errno> {
        let timeout = timeout.map_or(-1, |ms| c_int::try_from(ms).unwrap_or(c_int::MAX));
        call::result(call!(self, wait(threshold, timeout))?)
    }

    /// The domain that it was opened in.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// The counter as C has it, for calls that Rust doesn't know. It's open as long as `self` is
    /// there, and must not be closed.
    pub fn as_raw(&self) -> *mut kfid_cntr {
        self.raw.as_ptr()
    }

    /// `kfi_close()`: closes the counter and tells whether that worked. May sleep.
    ///
    /// With `EBUSY` it is still open, and comes back.
    pub fn close(self) -> Result<(), CloseError<Self>> {
        let mut counter = ManuallyDrop::new(self);
        counter.shut().map_err(|errno| {
            let open = (errno == Errno::EBUSY).then(|| ManuallyDrop::into_inner(counter));
            CloseError::new(errno, open)
        })
    }

    /// Closes the counter and, unless it is still open, lets the domain go.
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

impl Drop for Counter {
    fn drop(&mut self) {
        if let Err(errno) = self.shut() {
            // What it was opened in stays open with it.
            call::leaked("counter", errno);
        }
    }
}
