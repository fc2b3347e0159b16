// SPDX-License-Identifier: GPL-2.0

//! The data of a request, lent to a region.

use crate::prelude::*;
use kernel::bindings::bio_vec;

/// Number of pieces that a new list has space for.
const PREALLOCATED: usize = 16;

/// The list of a request's data, which each tag has.
///
/// # Invariants
///
/// While `lent` is set, nobody writes `list`, and one [`Data`] exists or was forgotten.
pub(crate) struct DataList {
    list: UnsafeCell<KVec<bio_vec>>,
    lent: Atomic<bool>,
    /// The pages of the lent list are leaked.
    leaked: Atomic<bool>,
}

// SAFETY: A piece only names memory. `lent` guards `list`.
unsafe impl Send for DataList {}
// SAFETY: `lent` guards `list`.
unsafe impl Sync for DataList {}

impl DataList {
    /// Makes an empty list. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        // INVARIANT: The list is not lent.
        let new = Self {
            list: UnsafeCell::new(KVec::with_capacity(PREALLOCATED, GFP_KERNEL)?),
            lent: Atomic::new(false),
            leaked: Atomic::new(false),
        };
        Ok(Arc::new(new, GFP_KERNEL)?)
    }

    /// Checks whether the list is lent. Any context.
    pub(crate) fn is_lent(&self) -> bool {
        self.lent.load(Acquire)
    }

    /// Lends the list after `fill` has filled it. Any context.
    ///
    /// # Safety
    ///
    /// No other task calls this at the same time. Until the list comes back or its pages are leaked,
    /// the pages that `fill` lists stay in place.
    pub(crate) unsafe fn lend(
        self: &Arc<Self>,
        writable: bool,
        fill: impl FnOnce(&mut KVec<bio_vec>) -> Result,
    ) -> Result<Data> {
        if self.is_lent() {
            return Err(EBUSY);
        }
        // SAFETY: The list is not lent, and only this call lends it.
        fill(unsafe { &mut *self.list.get() })?;
        self.leaked.store(false, Relaxed);
        // INVARIANT: There is one `Data`, and the list is not written.
        self.lent.store(true, Release);
        Ok(Data {
            list: self.clone(),
            writable,
        })
    }

    /// Raises the reference counts of the pages if the list is lent: the device may still reach
    /// them. Later requests with the tag do not raise them again. Returns whether this call has leaked
    /// the pages. Any context.
    pub(crate) fn leak(&self) -> bool {
        if !self.is_lent() || self.leaked.xchg(true, Relaxed) {
            return false;
        }
        // SAFETY: The list is lent, so nobody writes it.
        let list = unsafe { &*self.list.get() };
        pr_warn!(
            "{} pieces of memory of a request are leaked: a device does not release them\n",
            list.len()
        );
        for piece in list {
            // SAFETY: The pages stay in place as long as the list is lent.
            unsafe { b::nvme_helper_leak(piece) };
        }
        true
    }
}

/// The data of a request, lent to the transport.
///
/// If the request ends while this exists, its pages are leaked. So the owner of this may give a
/// device access to the pages.
///
/// # Invariants
///
/// `list` is lent to this value.
pub struct Data {
    list: Arc<DataList>,
    writable: bool,
}

impl Data {
    /// Returns the pieces of memory, which stay in place as long as this value. Any context.
    pub fn as_slice(&self) -> &[bio_vec] {
        // SAFETY: The list is lent by the invariant, so nobody writes it.
        unsafe { &*self.list.list.get() }
    }

    /// Checks whether the memory may be written, because the request reads. Any context.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Checks whether the memory may be read, because the request writes. Any context.
    pub fn is_readable(&self) -> bool {
        !self.writable
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        self.list.lent.store(false, Release);
    }
}
