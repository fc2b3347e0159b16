// SPDX-License-Identifier: GPL-2.0

//! Counters.

use super::*;
use kernel::time::Msecs;
use kfi_bindings::{
    kfi_cntr_attr,
    kfi_cntr_events_KFI_CNTR_EVENTS_COMP as EVENTS_COMP,
    kfi_wait_obj_KFI_WAIT_UNSPEC as WAIT_UNSPEC, //
};

/// A counter of successful and failed operations.
///
/// Both numbers wrap to 0 after `u64::MAX`. Closing or dropping the counter unbinds it from its
/// regions, endpoints and shared contexts.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Counter, Domain};
///
/// fn wait_for_ten(domain: &Arc<Domain>) -> Result {
///     let counter = Counter::open(domain)?;
///     // A region that is bound to it counts writes of peers.
///     counter.wait(10, Some(1000))?;
///     pr_info!("{} writes\n", counter.read());
///     Ok(counter.close()?)
/// }
/// ```
pub struct Counter(Handle<kfid_cntr, Arc<Domain>>);

/// Calls an operation of the counter and returns its result.
macro_rules! call {
    ($counter:expr, $op:ident($($arg:expr),*)) => {{
        let raw = $counter.as_raw();
        // SAFETY: `raw` is open, and its table valid, as long as the counter is borrowed.
        unsafe { op!((*raw).ops, $op(raw $(, $arg)*)) }
    }};
}

as_raw!(Counter: kfid_cntr);

impl Counter {
    /// Opens a counter to wait for: `kfi_cntr_open()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the provider has no counters.
    pub fn open(domain: &Arc<Domain>) -> Result<Self, Errno> {
        let mut attr = kfi_cntr_attr {
            events: EVENTS_COMP,
            wait_obj: WAIT_UNSPEC,
            ..pin_init::zeroed()
        };
        // SAFETY: The domain is open as long as `domain`. `attr` is a local.
        let cntr = unsafe { open_by!(domain.as_raw(), cntr_open(&mut attr; ptr::null_mut())) }?;
        Ok(Self(Handle::new(cntr, domain.clone(), ())))
    }

    /// Returns the number of successful operations: `kfi_cntr_read()`. Any context.
    pub fn read(&self) -> u64 {
        call!(self, read()).unwrap_or(0)
    }

    /// Returns the number of failed operations: `kfi_cntr_readerr()`. Any context.
    pub fn readerr(&self) -> u64 {
        call!(self, readerr()).unwrap_or(0)
    }

    /// Adds to the successful operations: `kfi_cntr_add()`. Any context.
    pub fn add(&self, value: u64) -> Result<(), Errno> {
        handle::result(call!(self, add(value))?)
    }

    /// Adds to the failed operations: `kfi_cntr_adderr()`. Any context.
    pub fn adderr(&self, value: u64) -> Result<(), Errno> {
        handle::result(call!(self, adderr(value))?)
    }

    /// Sets the number of successful operations: `kfi_cntr_set()`. Any context.
    pub fn set(&self, value: u64) -> Result<(), Errno> {
        handle::result(call!(self, set(value))?)
    }

    /// Sets the number of failed operations: `kfi_cntr_seterr()`. Any context.
    pub fn seterr(&self, value: u64) -> Result<(), Errno> {
        handle::result(call!(self, seterr(value))?)
    }

    /// Sleeps until at least `threshold` operations were successful, for at most `timeout`
    /// milliseconds if given: `kfi_cntr_wait()`.
    ///
    /// # Errors
    ///
    /// - `ETIMEDOUT`: the time is over.
    /// - `EAVAIL`: the number of failures has changed.
    /// - `EINTR`: a signal is pending.
    pub fn wait(&self, threshold: u64, timeout: Option<Msecs>) -> Result<(), Errno> {
        let timeout = handle::timeout(timeout);
        handle::result(call!(self, wait(threshold, timeout))?)
    }

    /// Returns the domain of the counter. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.0.parent()
    }

    /// Closes the counter: `kfi_close()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: the counter is still open, and the error has it.
    pub fn close(self) -> Result<(), CloseError<Self>> {
        self.0.close().map_err(|error| error.map(Self))
    }
}
