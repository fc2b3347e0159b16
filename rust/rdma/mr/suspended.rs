// SPDX-License-Identifier: GPL-2.0

//! Regions between two memories.

use kernel::prelude::*;

use super::{
    fast::FastMr,
    prepared::PreparedMr, //
};
use crate::sg::DmaList;

/// A region that has been invalidated, and is to get other memory behind the same key, at the same
/// address and with the same rights. No peer can reach anything by it.
///
/// Dropping it deregisters it, and may sleep.
pub(crate) struct SuspendedMr {
    mr: FastMr,
    iova: u64,
    length: u64,
}

impl SuspendedMr {
    pub(super) fn new(mr: FastMr, iova: u64, length: u64) -> Self {
        Self { mr, iova, length }
    }

    /// Gives the region its new memory, of pages as large as those of the old. May sleep.
    ///
    /// [`EINVAL`] if that is not as long as the old, or starts elsewhere in its page, or what
    /// [`FastMr::map`] says; the region is deregistered then.
    pub(crate) fn map<L: DmaList>(self, list: L) -> Result<PreparedMr<L>> {
        let (access, page_size) = (self.mr.access(), self.mr.page_size());
        let base = self.iova & !self.mr.offset_mask();
        let mut prepared = self
            .mr
            .map_again(list, access, Some(page_size))
            .map_err(|failed| failed.error)?;
        prepared.set_base(base)?;
        if prepared.iova() != self.iova || prepared.length() != self.length {
            return Err(EINVAL);
        }
        Ok(prepared)
    }
}
