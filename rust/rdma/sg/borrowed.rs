// SPDX-License-Identifier: GPL-2.0

//! Scatterlists that somebody else has mapped.
//!
//! MERGED sg/copied.rs
//! Copies of what a scatterlist of somebody else's is mapped to.

use kernel::{
    bindings,
    page::PAGE_SIZE,
    prelude::*,
    sync::aref::ARef, //
};

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use super::{
    dma_list::{
        DmaList,
        Mapping, //
    },
    list::Filling,
    table::{
        SpareTable,
        Table, //
    }, //
};
use crate::device::Device;

/// A scatterlist that somebody else has mapped for a device, and lends for a while.
///
/// The mapping stays when the list goes, so regions that outlive the loan are made of copies (`CopiedSg`), and others
/// of the list itself ([`WholeSg`]). What counts is the mapped entries' address and length, never the pages and their
/// lengths.
///
/// # Invariants
///
/// - `sgl` is valid for `'a`, and has at least `count` entries, not 0.
/// - They are mapped for `device`, and stay so until each region made of them has been closed.
#[derive(Clone, Copy)]
pub struct BorrowedSg<'a> {
    pub(super) sgl: NonNull<bindings::scatterlist>,
    pub(super) count: u32,
    pub(super) device: &'a ARef<Device>,
    _list: PhantomData<&'a bindings::scatterlist>,
}

// SAFETY: The list isn't tied to a task, and isn't changed for `'a`.
unsafe impl Send for BorrowedSg<'_> {}

// SAFETY: Nothing can be changed by a shared reference.
unsafe impl Sync for BorrowedSg<'_> {}

impl<'a> BorrowedSg<'a> {
    /// Borrows a list of which `count` entries are mapped. [`EINVAL`] if it is NULL or empty.
    ///
    /// # Safety
    ///
    /// If neither is the case:
    ///
    /// - `sgl` must be a list of at least `count` entries, valid and unchanged for `'a`;
    /// - the entries must have been mapped for `device`, and neither be unmapped nor their memory
    ///   be freed before each region made of the list has been closed, by consuming it with a
    ///   function that says so.
    pub unsafe fn from_raw(
        device: &'a ARef<Device>,
        sgl: *mut bindings::scatterlist,
        count: usize,
    ) -> Result<Self> {
        let sgl = NonNull::new(sgl).ok_or(EINVAL)?;
        // The C side counts by `int`.
        let count = u32::try_from(c_int::try_from(count)?)?;
        if count == 0 {
            return Err(EINVAL);
        }
        // INVARIANT: The caller vouches for it.
        Ok(Self {
            sgl,
            count,
            device,
            _list: PhantomData,
        })
    }
}

impl<'a> BorrowedSg<'a> {
    /// The list, to be handed on as it is: it is one of whole pages, and no region is made of it if one of them turns
    /// out to be none. [`None`] if the device has only smaller pages, of which that wouldn't be seen.
    ///
    /// # Safety
    ///
    /// The last of its entries is marked as the last.
    pub unsafe fn whole(self) -> Option<WholeSg<'a>> {
        // INVARIANT: By the requirements of this function, and as is asked here.
        (self.device.per_page() == 1).then_some(WholeSg(self))
    }
}

/// A scatterlist of whole pages that somebody else has mapped and lends, and of which a region can be made without a
/// copy, if that is valid before the loan ends.
///
/// # Invariants
///
/// - The last entry is marked as the last: the RDMA core looks for what is behind the last one that it is told of.
/// - The device has pages as large as the machine's: of smaller ones entries could begin inside of a page. As it is
///   the RDMA core ends before such an entry.
pub struct WholeSg<'a>(BorrowedSg<'a>);

// SAFETY: By the type invariants the entries are mapped for the device, and stay so until each region made of them
// has been closed, which nothing of this crate's has to see to.
unsafe impl DmaList for WholeSg<'_> {
    fn is_for(&self, device: &Device) -> bool {
        self.0.device.is_same(device)
    }

    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T {
        f(self.0.sgl.as_ptr())
    }

    fn count(&self) -> u32 {
        self.0.count
    }

    /// None of its entries is empty.
    fn is_all(&self, length: u64) -> bool {
        // CAST: No page is that big.
        length == u64::from(self.0.count) * PAGE_SIZE as u64
    }

    fn into_mapping(self) -> Mapping {
        Mapping::of(None)
    }
}

/// A list of segments of DMA addresses, without pages.
///
/// It can be kept when the list that it was copied from is gone.
///
/// # Invariants
///
/// `table` has as many entries as it has `used`, not 0, with an address and a length that are mapped for
/// `device`, and stay so until each region made of them has been closed.
pub struct CopiedSg {
    table: Table,
    device: ARef<Device>,
}

// SAFETY: By the type invariant; keeping the mapping is left to who has made it.
unsafe impl DmaList for CopiedSg {
    fn is_for(&self, device: &Device) -> bool {
        self.device.is_same(device)
    }

    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T {
        f(self.table.first())
    }

    fn count(&self) -> u32 {
        self.table.head().used
    }

    fn into_mapping(self) -> Mapping {
        Mapping::of(None)
    }
}

/// A place in a [`BorrowedSg`], from which it is copied piece by piece.
///
/// # Invariants
///
/// `from` is a place in a list that is valid for `'a` and mapped for `device`, and stays mapped until
/// each region made of it has been closed.
pub struct Cursor<'a> {
    device: &'a ARef<Device>,
    from: rdma_bindings::rdma_helper_sg_source,
}

impl<'a> BorrowedSg<'a> {
    /// Begins to copy the list. May be done again.
    pub fn cursor(&self) -> Cursor<'a> {
        // INVARIANT: By that of this type.
        Cursor {
            device: self.device,
            from: rdma_bindings::rdma_helper_sg_source {
                next: self.sgl.as_ptr(),
                done: 0,
                left: self.count,
            },
        }
    }
}

impl Cursor<'_> {
    /// Copies the next `bytes` bytes, and moves on. Entries are allocated, unless `spare` has them.
    /// May sleep.
    ///
    /// # Errors
    ///
    /// - [`EINVAL`]: `bytes` is 0 or more than there are, or an entry of no length lies in the way.
    /// - [`ENOMEM`].
    pub fn copy(&mut self, bytes: u64, spare: Option<&SpareTable>) -> Result<CopiedSg> {
        let virt = self.device.is_software();
        // SAFETY: By the type invariant.
        let table = unsafe { copy(&mut self.from, bytes, virt, spare) }?;
        // INVARIANT: These entries have just been filled, with parts of entries of a list that is
        // mapped for the device and stays so, by the invariant of `Cursor`.
        Ok(CopiedSg {
            table,
            device: self.device.clone(),
        })
    }
}

/// As [`Cursor::copy`].
///
/// # Safety
///
/// `from` must be a place in a valid list.
unsafe fn copy(
    from: &mut rdma_bindings::rdma_helper_sg_source,
    bytes: u64,
    virt: bool,
    spare: Option<&SpareTable>,
) -> Result<Table> {
    let expected = usize::try_from(from.left)?;
    let mut filling = Filling::new(0, virt, expected, spare)?;
    // SAFETY: By the requirements of this function.
    unsafe { filling.copy(from, bytes) }?;
    filling.done()
}

#[kernel::macros::kunit_tests(rdma_copied_sg)]
mod tests {
    use super::*;

    const LIST: [(u64, u32); 3] = [(0x1000, 0x3000), (0x8000, 0x1000), (0x9000, 0x800)];

    fn cut(bytes: &[u64]) -> Result<KVec<(u64, u32)>> {
        let mut filling = Filling::new(0, false, LIST.len(), None)?;
        for (address, len) in LIST {
            filling.append_dma(address, len)?;
        }
        let table = filling.done()?;
        let mut from = rdma_bindings::rdma_helper_sg_source {
            next: table.first(),
            done: 0,
            left: table.head().used,
        };
        let mut all = KVec::with_capacity(16, GFP_KERNEL)?;
        for &bytes in bytes {
            // SAFETY: `from` is a place in `table`, which is there.
            let copied = unsafe { copy(&mut from, bytes, true, None) }?;
            let mut entry = copied.first();
            for _ in 0..copied.head().used {
                // SAFETY: `copied` has so many entries.
                let both =
                    unsafe { (bindings::sg_dma_address(entry), bindings::sg_dma_len(entry)) };
                all.push(both, GFP_KERNEL)?;
                // SAFETY: As for its address.
                entry = unsafe { bindings::sg_next(entry) };
            }
        }
        Ok(all)
    }

    #[test]
    fn whole_entries() -> Result {
        let all = cut(&[0x4800])?;
        assert_eq!(
            all.as_slice(),
            [(0x1000, 0x3000), (0x8000, 0x1000), (0x9000, 0x800)]
        );
        Ok(())
    }

    #[test]
    fn entries_are_cut() -> Result {
        let all = cut(&[0x1000, 0x2800, 0x1000])?;
        assert_eq!(
            all.as_slice(),
            [
                (0x1000, 0x1000),
                (0x2000, 0x2000),
                (0x8000, 0x800),
                (0x8800, 0x800),
                (0x9000, 0x800)
            ]
        );
        Ok(())
    }

    #[test]
    fn no_more_than_there_is() {
        assert!(cut(&[0x4801]).is_err());
        assert!(cut(&[0x4800, 1]).is_err());
    }
}
