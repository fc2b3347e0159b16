// SPDX-License-Identifier: GPL-2.0

//! Building a scatterlist from pages.

#[cfg(CONFIG_KUNIT = "y")]
mod kunit;

use kernel::{
    bindings,
    error::to_result,
    page::{
        BorrowedPage,
        PAGE_SIZE, //
    },
    prelude::*, //
};

use core::ptr::null_mut;

use super::table::{
    SpareTable,
    Table, //
};
use crate::device::Device;

/// A run of memory inside one page.
///
/// That the page is borrowed for `'static` is the promise that the memory stays until the region
/// made of it has been closed: a device doesn't know lifetimes.
pub struct Run {
    /// The page.
    pub page: BorrowedPage<'static>,
    /// Where in the page the run starts.
    pub offset: usize,
    /// Its length, not 0 and not beyond the page.
    pub len: usize,
}

impl Run {
    /// The run as the C side wants it; [`EINVAL`] if it is empty or not inside its page.
    #[inline]
    fn to_raw(&self) -> Result<rdma_bindings::rdma_helper_run> {
        match self.offset.checked_add(self.len) {
            Some(end) if self.len > 0 && end <= PAGE_SIZE => Ok(rdma_bindings::rdma_helper_run {
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
    /// The source of the runs failed.
    Source(E),
    /// [`ENOMEM`], [`E2BIG`] (more entries than asked for), or [`EINVAL`] (no runs, or one that
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

/// How many runs go to the C side at once.
const BATCH: usize = 32;

impl SgList {
    /// Builds a list from runs of memory.
    ///
    /// Runs that follow each other in physical memory become one entry, as far as the device's
    /// segments may be long, and are cut at page boundaries; there may be `max_entries` entries, and
    /// as many are allocated, in chunks of a page, unless `spare` has them. May sleep.
    pub fn build<E>(
        device: &Device,
        max_entries: usize,
        spare: Option<&SpareTable>,
        runs: impl Iterator<Item = Result<Run, E>>,
    ) -> Result<Self, BuildError<E>> {
        Self::cut(device.max_segment_size(), max_entries, spare, runs)
    }

    /// Builds a list whose entries are at most so long, or a page.
    fn cut<E>(
        max_segment: u32,
        max_entries: usize,
        spare: Option<&SpareTable>,
        runs: impl Iterator<Item = Result<Run, E>>,
    ) -> Result<Self, BuildError<E>> {
        let max_entries = u32::try_from(max_entries).map_err(Error::from)?;
        let table = Table::get(max_entries, spare)?;
        let mut cursor = rdma_bindings::rdma_helper_sg_cursor {
            next: table.as_raw(),
            left: max_entries,
            last: null_mut(),
            end_page: null_mut(),
            end_offset: 0,
            // A run always fits.
            max_seg: u32::try_from(PAGE_SIZE)
                .map_err(Error::from)?
                .max(max_segment),
        };
        let mut batch: [rdma_bindings::rdma_helper_run; BATCH] = Default::default();
        let mut filled = 0;

        for run in runs {
            let raw = run.map_err(BuildError::Source)?.to_raw()?;
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

    /// The first entry.
    pub(super) fn as_raw(&self) -> *mut bindings::scatterlist {
        self.table.as_raw()
    }
}

/// Fills entries of the cursor's table. [`E2BIG`] if it has too few.
fn append(
    cursor: &mut rdma_bindings::rdma_helper_sg_cursor,
    runs: &[rdma_bindings::rdma_helper_run],
) -> Result {
    let count = u32::try_from(runs.len())?;
    // SAFETY: The cursor is that of an allocated table, and the runs have valid pages and lie
    // inside them.
    to_result(unsafe { rdma_bindings::rdma_helper_sg_append(cursor, runs.as_ptr(), count) })
}
