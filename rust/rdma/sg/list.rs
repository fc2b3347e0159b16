// SPDX-License-Identifier: GPL-2.0

//! Building a scatterlist from pages.

use kernel::{
    bindings,
    dma::DataDirection,
    error::to_result,
    page::{
        BorrowedPage,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::aref::ARef, //
};

use core::ptr::null_mut;

use super::{
    table::Table,
    MappedSg,
    SpareTable, //
};
use crate::device::Device;

/// A piece of memory inside one page.
///
/// That the page is borrowed for `'static` is the promise that the memory stays until the region
/// made of it has been closed: a device doesn't know lifetimes.
pub struct Piece {
    /// The page.
    pub page: BorrowedPage<'static>,
    /// Where in the page the piece starts.
    pub offset: usize,
    /// Its length, not 0 and not beyond the page.
    pub len: usize,
}

impl Piece {
    /// The piece as the C side wants it; [`EINVAL`] if it is empty or not inside its page.
    #[inline]
    fn to_raw(&self) -> Result<rdma_bindings::rdma_helper_piece> {
        match self.offset.checked_add(self.len) {
            Some(end) if self.len > 0 && end <= PAGE_SIZE => Ok(rdma_bindings::rdma_helper_piece {
                page: self.page.as_ptr(),
                offset: u32::try_from(self.offset)?,
                len: u32::try_from(self.len)?,
            }),
            _ => Err(EINVAL),
        }
    }
}

/// Why a list could not be built.
#[derive(Debug)]
pub enum BuildError<E> {
    /// The source of the pieces failed.
    Source(E),
    /// [`ENOMEM`], [`E2BIG`] (more entries than asked for), or [`EINVAL`] (no pieces, or one that
    /// is not inside its page).
    List(Error),
}

impl<E> From<Error> for BuildError<E> {
    fn from(err: Error) -> Self {
        Self::List(err)
    }
}

/// A scatterlist, not yet mapped.
///
/// # Invariants
///
/// - `table` is an allocated table.
/// - Its first `used` entries, not 0, are filled, and the last of them is marked as the end.
pub struct SgList {
    table: Table,
    used: u32,
}

/// How many pieces go to the C side at once.
const BATCH: usize = 32;

impl SgList {
    /// Builds a list from pieces of memory.
    ///
    /// Pieces that follow each other in physical memory become one entry, as far as the device's
    /// segments may be long, and are cut at page boundaries; there may be `max_entries` entries, and
    /// as many are allocated, in chunks of a page, unless `spare` has them. May sleep.
    pub fn build<E>(
        device: &Device,
        max_entries: usize,
        spare: Option<&SpareTable>,
        pieces: impl Iterator<Item = Result<Piece, E>>,
    ) -> Result<Self, BuildError<E>> {
        Self::cut(device.max_segment_size(), max_entries, spare, pieces)
    }

    /// Builds a list whose entries are at most so long, or a page.
    fn cut<E>(
        max_segment: u32,
        max_entries: usize,
        spare: Option<&SpareTable>,
        pieces: impl Iterator<Item = Result<Piece, E>>,
    ) -> Result<Self, BuildError<E>> {
        let max_entries = u32::try_from(max_entries).map_err(Error::from)?;
        let table = Table::get(max_entries, spare)?;
        let mut cursor = rdma_bindings::rdma_helper_sg_cursor {
            next: table.as_raw(),
            left: max_entries,
            last: null_mut(),
            end_page: null_mut(),
            end_offset: 0,
            // A piece always fits.
            max_seg: u32::try_from(PAGE_SIZE)
                .map_err(Error::from)?
                .max(max_segment),
        };
        let mut batch: [rdma_bindings::rdma_helper_piece; BATCH] = Default::default();
        let mut filled = 0;

        for piece in pieces {
            let raw = piece.map_err(BuildError::Source)?.to_raw()?;
            if filled == BATCH {
                append(&mut cursor, &batch)?;
                filled = 0;
            }
            if let Some(slot) = batch.get_mut(filled) {
                *slot = raw;
                filled += 1;
            }
        }
        append(&mut cursor, batch.get(..filled).ok_or(EINVAL)?)?;

        if cursor.last.is_null() {
            return Err(EINVAL.into());
        }
        // SAFETY: The cursor's last entry is one of the table's.
        unsafe { rdma_bindings::rdma_helper_sg_end(cursor.last) };

        // INVARIANT: The cursor has filled these entries, at least one, and the last is marked.
        Ok(Self {
            table,
            used: max_entries - cursor.left,
        })
    }

    /// The number of entries.
    pub fn count(&self) -> u32 {
        self.used
    }

    /// Maps the list for a device. [`EIO`] if that is not possible. Doesn't sleep.
    pub fn map(self, device: &ARef<Device>, dir: DataDirection) -> Result<MappedSg> {
        MappedSg::new(self, device.clone(), dir)
    }

    /// The first entry.
    pub(super) fn as_raw(&self) -> *mut bindings::scatterlist {
        self.table.as_raw()
    }
}

/// Fills entries of the cursor's table. [`E2BIG`] if it has too few.
fn append(
    cursor: &mut rdma_bindings::rdma_helper_sg_cursor,
    pieces: &[rdma_bindings::rdma_helper_piece],
) -> Result {
    let count = u32::try_from(pieces.len())?;
    // SAFETY: The cursor is that of an allocated table, and the pieces have valid pages and lie
    // inside them.
    to_result(unsafe { rdma_bindings::rdma_helper_sg_append(cursor, pieces.as_ptr(), count) })
}

#[kernel::macros::kunit_tests(rdma_sg_list)]
mod tests {
    use super::*;
    use core::ptr::NonNull;

    /// Four pages in a row.
    struct Row(NonNull<bindings::page>);

    impl Row {
        fn new() -> Result<Self> {
            // SAFETY: May be called with any order.
            let page = unsafe { bindings::alloc_pages(bindings::GFP_KERNEL, 2) };
            Ok(Self(NonNull::new(page).ok_or(ENOMEM)?))
        }

        fn piece(&self, page: usize, offset: usize, len: usize) -> Piece {
            // SAFETY: The row has four pages, and no list of a test outlives it.
            let page = unsafe { BorrowedPage::from_raw(self.0.add(page % 4)) };
            Piece { page, offset, len }
        }
    }

    impl Drop for Row {
        fn drop(&mut self) {
            // SAFETY: Allocated with this order.
            unsafe { bindings::__free_pages(self.0.as_ptr(), 2) };
        }
    }

    fn cut(max_segment: usize, pieces: impl IntoIterator<Item = Piece>) -> Result<SgList> {
        let pieces = pieces.into_iter().map(Ok::<_, Error>);
        SgList::cut(u32::try_from(max_segment)?, 8, None, pieces).map_err(|error| match error {
            BuildError::Source(error) | BuildError::List(error) => error,
        })
    }

    /// Offset and length of the entries.
    fn entries(list: &SgList) -> Result<KVec<(usize, usize)>> {
        let mut all = KVec::new();
        let mut entry = list.as_raw();
        for _ in 0..list.count() {
            // SAFETY: The list has that many entries.
            let (offset, length) = unsafe { ((*entry).offset, (*entry).length) };
            let both = (usize::try_from(offset)?, usize::try_from(length)?);
            all.push(both, GFP_KERNEL)?;
            // SAFETY: As above.
            entry = unsafe { bindings::sg_next(entry) };
        }
        Ok(all)
    }

    const PAGE: usize = PAGE_SIZE;

    #[test]
    fn what_follows_is_joined() -> Result {
        let row = Row::new()?;
        let list = cut(
            4 * PAGE,
            [
                row.piece(0, 100, PAGE - 100),
                row.piece(1, 0, PAGE),
                row.piece(2, 0, 50),
                row.piece(2, 50, 50),
            ],
        )?;
        assert_eq!(entries(&list)?.as_slice(), [(100, 2 * PAGE)]);
        Ok(())
    }

    #[test]
    fn entries_are_cut_at_pages() -> Result {
        let row = Row::new()?;
        // The last piece begins inside a page, and is one too many.
        let list = cut(
            2 * PAGE,
            [
                row.piece(0, 100, PAGE - 100),
                row.piece(1, 0, PAGE),
                row.piece(2, 0, 50),
                row.piece(2, 50, PAGE - 50),
                row.piece(3, 0, 7),
            ],
        )?;
        let cuts = [(100, 2 * PAGE - 100), (0, PAGE + 7)];
        assert_eq!(entries(&list)?.as_slice(), cuts);
        Ok(())
    }

    #[test]
    fn a_gap_is_no_page_boundary() -> Result {
        let row = Row::new()?;
        let list = cut(PAGE, [row.piece(0, 0, 100), row.piece(0, 200, 100)])?;
        assert_eq!(entries(&list)?.as_slice(), [(0, 100), (200, 100)]);
        Ok(())
    }
}
