// SPDX-License-Identifier: GPL-2.0

//! Scatterlists that the consumer has mapped.

use super::{
    builder::SgBuilder,
    memory::{
        DmaList,
        MappedSg,
        Memory, //
    },
    table::SpareTable, //
};
use crate::prelude::*;
use kernel::{
    dma::DataDirection,
    page::PAGE_SIZE, //
};

/// A scatterlist that the consumer has mapped for a device, and lends for a while. It is copied in
/// parts, or used without a copy.
///
/// Only the addresses and lengths of the mapped entries count, not the pages.
///
/// # Invariants
///
/// - `rest` is a place in a list that is valid and unchanged for `'a`, and its remaining entries.
/// - They are mapped for `device`, and stay so until each region made of them has been closed.
pub struct BorrowedSg<'a> {
    rest: rdma_bindings::rdma_helper_sg_source,
    device: &'a ARef<Device>,
}

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
        // The C side counts by `int`.
        let left = u32::try_from(c_int::try_from(count)?)?;
        if sgl.is_null() || left == 0 {
            return Err(EINVAL);
        }
        let rest = rdma_bindings::rdma_helper_sg_source {
            next: sgl,
            done: 0,
            left,
        };
        // INVARIANT: `sgl` has `count` entries that are mapped for `device` by the function's
        // contract.
        Ok(Self { rest, device })
    }

    /// Copies the next `bytes` bytes to a list that may outlive this one. Allocates entries, unless
    /// `spare` has them. May sleep.
    ///
    /// # Errors
    ///
    /// - [`EINVAL`] if `bytes` is 0 or more than are left, or an empty entry is among them.
    /// - [`ENOMEM`] without memory for an entry.
    pub fn copy(&mut self, bytes: u64, spare: Option<&SpareTable>) -> Result<Memory> {
        let virt = self.device.is_software();
        // SAFETY: `rest` is a place in a valid list by the type invariant.
        let table = unsafe { SgBuilder::copy(&mut self.rest, bytes, virt, spare) }?;
        let (used, none) = (table.head().used, DataDirection::None);
        // SAFETY: The new entries are parts of entries that are mapped for `device` until all
        // regions made of them have been closed, by the type invariant. The consumer unmaps them.
        Ok(Memory::Mapped(unsafe {
            MappedSg::new(table, used, Some(self.device), none)
        }))
    }

    /// Returns the list for use without a copy. All of its entries must be whole pages, which the
    /// registration checks. Returns [`None`] in two cases:
    ///
    /// - The device has only smaller pages. For these the registration does not check the entries.
    /// - A part of an entry has been copied.
    ///
    /// # Safety
    ///
    /// The last of its entries must be marked as the last.
    pub unsafe fn whole(self) -> Option<WholeSg<'a>> {
        let is_whole = self.rest.done == 0 && self.rest.left > 0;
        // INVARIANT: The last entry is marked by the function's contract, and the device has pages
        // of the machine's size.
        (is_whole && self.device.per_page() == 1).then_some(WholeSg(self))
    }
}

/// A borrowed scatterlist of whole pages, for a region without a copy. The region must be valid
/// before the loan ends.
///
/// # Invariants
///
/// - It has entries, and the first is complete.
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
        f(self.0.rest.next)
    }

    fn count(&self) -> u32 {
        self.0.rest.left
    }

    /// Checks the length: none of the entries is empty.
    fn is_all(&self, length: u64) -> bool {
        // CAST: No page is that big.
        length == u64::from(self.count()) * PAGE_SIZE as u64
    }
}

#[kernel::macros::kunit_tests(rdma_copied_sg)]
mod tests {
    use super::*;

    const LIST: [(u64, u32); 3] = [(0x1000, 0x3000), (0x8000, 0x1000), (0x9000, 0x800)];

    fn cut(bytes: &[u64]) -> Result<KVec<(u64, u32)>> {
        let mut list = SgBuilder::begin(0, false, LIST.len(), None)?;
        for (address, len) in LIST {
            list.append_dma(address, len)?;
        }
        let table = list.done()?;
        let mut from = rdma_bindings::rdma_helper_sg_source {
            next: table.first(),
            done: 0,
            left: table.head().used,
        };
        let mut all = KVec::with_capacity(16, GFP_KERNEL)?;
        for &bytes in bytes {
            // SAFETY: `from` is a place in `table`, which is there.
            let copied = unsafe { SgBuilder::copy(&mut from, bytes, true, None) }?;
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
