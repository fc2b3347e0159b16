// SPDX-License-Identifier: GPL-2.0

//! Mapping of scatterlists for a domain's device.

use crate::support::refusal::Refusal;
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
