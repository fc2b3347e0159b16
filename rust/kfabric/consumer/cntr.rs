// SPDX-License-Identifier: GPL-2.0

//! Counters.

use super::{
    call::{
        self,
        op, //
    },
    handle::Handle,
    CloseError,
    Domain, //
};
use crate::support::errno::Errno;
use core::ptr;
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
/// Closing or dropping it takes it off the regions, endpoints and shared contexts that it is bound to; they go on
/// without it.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Counter, Domain};
///
/// fn wait_for_ten(domain: &Arc<Domain>) -> Result {
///     let counter = Counter::open(domain)?;
///     // A region that is bound to it counts what peers write.
///     counter.wait(10, Some(1000))?;
///     pr_info!("{} writes\n", counter.read());
///     Ok(counter.close()?)
/// }
/// ```
pub struct Counter(Handle<kfid_cntr, Arc<Domain>>);

/// Calls an operation of the counter, and gives what it returned.
macro_rules! call {
    ($counter:expr, $op:ident($($arg:expr),*)) => {{
        let raw = $counter.as_raw();
        // SAFETY: `raw` is open as long as the counter is there, with a table that is valid as long.
        unsafe { op!((*raw).ops, kfi_ops_cntr, $op(raw $(, $arg)*)) }
    }};
}

impl Counter {
    /// `kfi_cntr_open()`: opens a counter that can be waited for. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the provider has none.
    pub fn open(domain: &Arc<Domain>) -> Result<Self, Errno> {
        let mut attr = kfi_cntr_attr {
            events: EVENTS_COMP,
            wait_obj: WAIT_UNSPEC,
            ..pin_init::zeroed()
        };
        let (raw, mut cntr) = (domain.as_raw(), ptr::null_mut());
        // SAFETY: `raw` is open as long as `domain` is there; `attr` and `cntr` are locals.
        let ret = unsafe {
            op!(
                (*raw).ops,
                kfi_ops_domain,
                cntr_open(raw, &mut attr, &mut cntr, ptr::null_mut())
            )
        }?;
        let raw = call::opened(ret, cntr)?;
        Ok(Self(Handle::new(raw, domain.clone(), ())))
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
    /// # Errors
    ///
    /// - `ETIMEDOUT`: it took longer than that.
    /// - `EAVAIL`: the number of failures has changed meanwhile.
    /// - `EINTR`: a signal came.
    pub fn wait(&self, threshold: u64, timeout: Option<Msecs>) -> Result<(), Errno> {
        let timeout = timeout.map_or(-1, |ms| c_int::try_from(ms).unwrap_or(c_int::MAX));
        call::result(call!(self, wait(threshold, timeout))?)
    }

    /// Returns the domain that it was opened in. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.0.parent()
    }

    /// Returns the counter as C has it, for calls that Rust doesn't know. It's open as long as `self`
    /// is there, and must not be closed. Any context.
    pub fn as_raw(&self) -> *mut kfid_cntr {
        self.0.as_ptr()
    }

    /// `kfi_close()`: closes the counter and tells whether that worked. May sleep.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: it is still open, and comes back.
    pub fn close(self) -> Result<(), CloseError<Self>> {
        self.0.close().map_err(|error| error.map(Self))
    }
}
