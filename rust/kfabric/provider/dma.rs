// SPDX-License-Identifier: GPL-2.0

//! Mapping of scatterlists for a domain's device.
//!
//! Mapping for providers that have no device.

use crate::support::{
    errno::Errno,
    num::index,
    refusal::Refusal, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::dma::DataDirection;

/// Mapping of a consumer's scatterlists, for `Domain::dma`.
pub trait Dma {
    /// Maps `list`, and returns the number of mapped entries, at most as many as it has. May sleep.
    ///
    /// # Errors
    ///
    /// - `EIO`: the list can't be mapped.
    fn map(&self, list: RawSgl<'_>, direction: DataDirection) -> Result<usize, Refusal>;
    /// Unmaps `list`. May sleep.
    fn unmap(&self, list: RawSgl<'_>, direction: DataDirection);
    /// Makes writes of the device visible to the processor. May sleep.
    fn sync_for_cpu(&self, list: RawSgl<'_>, direction: DataDirection);
    /// Makes writes of the processor visible to the device. May sleep.
    fn sync_for_device(&self, list: RawSgl<'_>, direction: DataDirection);
}

/// A consumer's scatterlist for the length of a call.
///
/// # Invariants
///
/// - `first` points to a list of at least `entries` entries that only the callee uses for `'a`.
/// - For unmaps and syncs, the list is mapped for the same device and direction.
pub struct RawSgl<'a> {
    first: NonNull<kfi_bindings::scatterlist>,
    entries: i32,
    _list: PhantomData<&'a mut kfi_bindings::scatterlist>,
}

impl RawSgl<'_> {
    /// Creates one from the arguments of a C caller. Returns `None` for an empty list.
    ///
    /// # Safety
    ///
    /// - `first` is null or has `entries` entries that only the callee uses for the lifetime of the result.
    /// - For unmaps and syncs, the list is mapped for the same device and direction.
    pub(crate) unsafe fn from_raw(
        first: *mut kfi_bindings::scatterlist,
        entries: i32,
    ) -> Option<Self> {
        let first = NonNull::new(first)?;
        // INVARIANT: `first` isn't null, so it has `entries` entries that only the callee uses.
        (entries > 0).then_some(Self {
            first,
            entries,
            _list: PhantomData,
        })
    }

    /// Returns the first entry.
    pub fn as_ptr(&self) -> *mut kfi_bindings::scatterlist {
        self.first.as_ptr()
    }

    /// Returns the number of entries, which is more than 0.
    pub fn entries(&self) -> i32 {
        self.entries
    }
}

/// DMA without a device: the addresses in a mapped list are the processor's physical ones, and
/// [`CpuMemory`](crate::region::cpu_memory::CpuMemory) reaches them.
pub struct Direct;

impl Dma for Direct {
    fn map(&self, list: RawSgl<'_>, _direction: DataDirection) -> Result<usize, Refusal> {
        // SAFETY: `list` has `entries` entries that only this call uses.
        if !unsafe { kfi_bindings::kfi_helper_sg_map_direct(list.as_ptr(), list.entries()) } {
            return Err(Refusal::new(
                Errno::EIO,
                c"a list with an entry without a page",
            ));
        }
        Ok(index(list.entries().unsigned_abs()))
    }

    // The processor always sees what the processor wrote.
    fn unmap(&self, _list: RawSgl<'_>, _direction: DataDirection) {}
    fn sync_for_cpu(&self, _list: RawSgl<'_>, _direction: DataDirection) {}
    fn sync_for_device(&self, _list: RawSgl<'_>, _direction: DataDirection) {}
}
