// SPDX-License-Identifier: GPL-2.0

//! The device's pages that a region of a mapped list is made of.

#[cfg(CONFIG_KUNIT = "y")]
mod kunit;

use super::mapping::DmaList;

/// How a list is cut into pages of a device.
///
/// # Invariants
///
/// The device has pages of `page_size`, and at each joint of the list's entries both sides are at
/// the boundary of such a page.
#[derive(Clone, Copy)]
pub struct Layout {
    page_size: u32,
    pages: u32,
}

impl Layout {
    /// Larger pages than the machine's, as large as the list allows; [`None`] if there are none, or
    /// if they would win nothing. Any context.
    ///
    /// A device takes the offset in the first page from a region's address, so that has as many low
    /// bits of the memory's address as a page has.
    pub fn larger<L: DmaList>(list: &L) -> Option<Self> {
        let device = list.device();
        let mut pages = 0;
        let (count, sizes, least) = (list.count(), device.page_sizes(), device.page_size()?);
        // SAFETY: The list has so many mapped entries, as `DmaList` demands.
        let page_size = list.with_raw(|first| unsafe {
            rdma_bindings::rdma_helper_page_size(first, count, sizes, least, &mut pages)
        });
        // INVARIANT: The helper has found it so.
        (page_size > 0).then_some(Self { page_size, pages })
    }

    /// The size of a page.
    pub(crate) fn page_size(&self) -> u32 {
        self.page_size
    }

    /// How many pages there are.
    pub fn pages(&self) -> u32 {
        self.pages
    }
}
