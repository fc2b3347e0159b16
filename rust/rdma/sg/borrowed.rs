// SPDX-License-Identifier: GPL-2.0

//! Scatterlists that the consumer has mapped, and copies of their addresses.

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
use crate::{
    device::Device,
    prelude::*, //
};
use kernel::page::PAGE_SIZE;

/// A scatterlist that somebody else has mapped for a device, and lends for a while.
///
/// Only the addresses and lengths of the mapped entries count, not the pages.
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
    /// Borrows a list with `count` mapped entries. Returns [`EINVAL`] if it is NULL or empty.
    ///
    /// # Safety
    ///
    /// If neither is the case:
    ///
    /// - `sgl` must be a list of at least `count` entries, valid and unchanged for `'a`;
    /// - the entries must be mapped for `device`. Neither the mapping nor the memory may be freed
    ///   before all regions made of the list have been closed by a consuming function.
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
        // INVARIANT: `sgl` has `count` entries that are mapped for `device` by the function's
        // contract.
        Ok(Self {
            sgl,
            count,
            device,
            _list: PhantomData,
        })
    }
}

impl<'a> BorrowedSg<'a> {
    /// Returns the list for use without a copy: all of its entries are whole pages, which
    /// registration checks. Returns [`None`] if the device has only smaller pages, for which it
    /// does not.
    ///
    /// # Safety
    ///
    /// The last of its entries is marked as the last.
    pub unsafe fn whole(self) -> Option<WholeSg<'a>> {
        // INVARIANT: The last entry is marked by the function's contract, and the device has pages
        // of the machine's size.
        (self.device.per_page() == 1).then_some(WholeSg(self))
    }
}

/// A borrowed scatterlist of whole pages, for a region without a copy. The region must be valid
/// before the loan ends.
///
/// # Invariants
///
/// - The last entry is marked as the last: the RDMA core looks for an entry after the last one it
///   was given.
/// - The device has pages of the machine's size. With smaller pages an entry could begin inside of
///   a page. The RDMA core stops before an entry that does.
pub struct WholeSg<'a>(BorrowedSg<'a>);

// SAFETY: The entries are mapped for the device until all regions made of them have been closed, by
// the invariants of `BorrowedSg`. The lender unmaps them.
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

    /// Checks the length: none of the entries is empty.
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
/// `table` has `used` entries, not 0. Their addresses are mapped for `device` until all regions
/// made of them have been closed.
pub struct CopiedSg {
    table: Table,
    device: ARef<Device>,
}

// SAFETY: `table` has `used` entries mapped for `device` by the type invariant. The lender unmaps
// them after the region is closed.
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
/// `from` is a place in a list that is valid for `'a`. The list is mapped for `device` until all
/// regions made of it have been closed.
pub struct Cursor<'a> {
    device: &'a ARef<Device>,
    from: rdma_bindings::rdma_helper_sg_source,
}

impl<'a> BorrowedSg<'a> {
    /// Begins to copy the list. May be done again.
    pub fn cursor(&self) -> Cursor<'a> {
        // INVARIANT: By the type invariant of `BorrowedSg`, the list is valid for `'a` and mapped
        // for
        // `device`.
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
        // SAFETY: `from` is a place in a valid list by the type invariant.
        let table = unsafe { copy(&mut self.from, bytes, virt, spare) }?;
        // INVARIANT: The new entries are parts of entries that are mapped for the device by the
        // invariant of `Cursor`.
        Ok(CopiedSg {
            table,
            device: self.device.clone(),
        })
    }
}

/// Copies bytes for [`Cursor::copy`].
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
    // SAFETY: `from` is a place in a valid list by the function's contract.
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
                // SAFETY: `copied` has `used` entries.
                let both =
                    unsafe { (bindings::sg_dma_address(entry), bindings::sg_dma_len(entry)) };
                all.push(both, GFP_KERNEL)?;
                // SAFETY: `copied` has `used` entries, and this one is not the last or ends the
                // loop.
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
