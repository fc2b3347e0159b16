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
    /// Maps `list`; gives the number of mapped entries, at most as many as it has. `EIO` if it can't
    /// be mapped. May sleep.
    fn map(&self, list: RawSgl<'_>, direction: DataDirection) -> Result<usize, Refusal>;
    /// Undoes [`map`](Self::map). May sleep.
    fn unmap(&self, list: RawSgl<'_>, direction: DataDirection);
    /// Lets the processor see what the device wrote. May sleep.
    fn sync_for_cpu(&self, list: RawSgl<'_>, direction: DataDirection);
    /// Lets the device see what the processor wrote. May sleep.
    fn sync_for_device(&self, list: RawSgl<'_>, direction: DataDirection);
}

/// A consumer's scatterlist on its way through the core, for the length of a call: it can't be kept.
///
/// # Invariants
///
/// `first` points to a list of at least `entries` entries that is the callee's alone for `'a`, and
/// for unmapping and syncing was mapped for the same device and direction.
pub struct RawSgl<'a> {
    first: NonNull<kfi_bindings::scatterlist>,
    entries: i32,
    _list: PhantomData<&'a mut kfi_bindings::scatterlist>,
}

impl RawSgl<'_> {
    /// Takes a list from C.
    ///
    /// # Safety
    ///
    /// The caller guarantees the invariants of this type.
    pub(crate) unsafe fn from_raw(
        first: *mut kfi_bindings::scatterlist,
        entries: i32,
    ) -> Option<Self> {
        let first = NonNull::new(first)?;
        // INVARIANT: By the requirements of this function.
        (entries > 0).then_some(Self {
            first,
            entries,
            _list: PhantomData,
        })
    }

    /// The first entry.
    pub fn as_ptr(&self) -> *mut kfi_bindings::scatterlist {
        self.first.as_ptr()
    }

    /// How many entries; more than 0.
    pub fn entries(&self) -> i32 {
        self.entries
    }
}

/// DMA without a device: the addresses in a mapped list are the processor's physical ones, and
/// [`CpuMemory`](crate::region::extent::CpuMemory) reaches them.
pub struct Direct;

impl Dma for Direct {
    fn map(&self, list: RawSgl<'_>, _direction: DataDirection) -> Result<usize, Refusal> {
        // SAFETY: By the invariant of `RawSgl`.
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
