// SPDX-License-Identifier: GPL-2.0

//! Copies of what a scatterlist of somebody else's is mapped to.

use kernel::{
    bindings,
    prelude::*,
    sync::aref::ARef, //
};

use super::{
    borrowed::BorrowedSg,
    filling::Filling,
    mapping::{
        DmaList,
        Mapping, //
    },
    table::{
        SpareTable,
        Table, //
    }, //
};
use crate::device::Device;

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
