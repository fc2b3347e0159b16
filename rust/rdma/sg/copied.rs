// SPDX-License-Identifier: GPL-2.0

//! Copies of what a scatterlist of somebody else's is mapped to.

use kernel::{
    bindings,
    prelude::*,
    sync::aref::ARef, //
};

use super::{
    borrowed::{
        BorrowedSg,
        Segments, //
    },
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
/// `table` has at least `count` entries, not 0, with an address and a length that are mapped for
/// `device`, and stay so until each region made of them has been closed.
pub struct CopiedSg {
    table: Table,
    count: u32,
    device: ARef<Device>,
}

// SAFETY: By the type invariant; keeping the mapping is left to who has made it.
unsafe impl DmaList for CopiedSg {
    fn device(&self) -> &Device {
        &self.device
    }

    fn as_raw(&self) -> *mut bindings::scatterlist {
        self.table.first()
    }

    fn count(&self) -> u32 {
        self.count
    }

    fn into_mapping(self) -> Mapping {
        Mapping::of(None)
    }
}

/// A place in a [`BorrowedSg`], from which it is copied run by run.
pub struct Cursor<'a> {
    device: &'a ARef<Device>,
    next: Cut<Segments<'a>>,
}

impl<'a> BorrowedSg<'a> {
    /// Begins to copy the list. May be done again.
    pub fn cursor(&self) -> Cursor<'a> {
        Cursor {
            device: self.device,
            next: Cut {
                segments: self.segments(),
                rest: None,
            },
        }
    }
}

impl<'a> Cursor<'a> {
    /// Copies the next `bytes` bytes, and moves on. [`EINVAL`] if that is 0 or more than there
    /// are, or an entry of no length lies in the way. Entries are allocated, unless `spare` has them.
    /// May sleep.
    pub fn copy(&mut self, bytes: u64, spare: Option<&SpareTable>) -> Result<CopiedSg> {
        let expected = usize::try_from(self.next.segments.left)?;
        let mut filling = Filling::new(0, expected, spare)?;
        self.next
            .take(bytes, |address, len| filling.append_dma(address, len))?;
        let (table, count) = filling.done()?;
        // INVARIANT: These entries have just been filled, with parts of entries of a list that is
        // mapped for the device and stays so, by the invariant of `BorrowedSg`.
        Ok(CopiedSg {
            table,
            count,
            device: self.device.clone(),
        })
    }
}

/// Segments of addresses, of which the first may have been taken in part.
#[derive(Clone)]
struct Cut<I> {
    segments: I,
    rest: Option<(u64, u64)>,
}

impl<I: Iterator<Item = (u64, u64)>> Cut<I> {
    /// Takes segments of `bytes` bytes together off the front, and cuts the last of them.
    fn take(&mut self, mut bytes: u64, mut each: impl FnMut(u64, u32) -> Result) -> Result {
        while bytes > 0 {
            let (address, len) = self
                .rest
                .take()
                .or_else(|| self.segments.next())
                .ok_or(EINVAL)?;
            // An entry's length has 32 bits.
            let here = len.min(bytes).min(u64::from(u32::MAX));
            if here == 0 {
                return Err(EINVAL);
            }
            each(address, u32::try_from(here)?)?;
            bytes -= here;
            if here < len {
                self.rest = Some((address.checked_add(here).ok_or(EINVAL)?, len - here));
            }
        }
        Ok(())
    }
}

#[kernel::macros::kunit_tests(rdma_copied_sg)]
mod tests {
    use super::*;

    const LIST: [(u64, u64); 3] = [(0x1000, 0x3000), (0x8000, 0x1000), (0x9000, 0x800)];

    fn cut(bytes: &[u64]) -> Result<KVec<(u64, u32)>> {
        let mut next = Cut {
            segments: LIST.into_iter(),
            rest: None,
        };
        let mut all = KVec::with_capacity(16, GFP_KERNEL)?;
        for &bytes in bytes {
            next.take(bytes, |address, len| {
                let _ = all.push_within_capacity((address, len));
                Ok(())
            })?;
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
