// SPDX-License-Identifier: GPL-2.0

//! The limits of one region of a domain.

use super::shape::Shape;
use crate::prelude::*;

/// The limits of one region of a domain.
#[derive(Clone, Copy, Debug)]
pub struct MrLimits {
    /// Most regions of a domain (`mr_cnt`).
    pub regions: usize,
    /// Most segments (`mr_iov_limit`).
    pub segments: usize,
    /// Most pages.
    pub pages: u64,
    /// Most bytes.
    pub bytes: u64,
    /// May segments have gaps between them?
    pub gaps: bool,
    /// Flags that a registration may carry.
    pub flags: u64,
    /// Does the provider know authorization keys?
    pub auth_keys: bool,
    /// Can regions be refreshed when other pages are behind them? If not: what is said then.
    pub refresh: Result<(), Refusal>,
    /// Can the device reach memory of other PCI devices (P2PDMA)? Which of it is for the DMA
    /// mapping to tell.
    pub peer_to_peer: bool,
    /// Most device regions that one region can consist of. Where that is more than 1, gaps and
    /// long regions are no matter: [`pages`](Self::pages) and [`bytes`](Self::bytes) are those of
    /// a piece.
    pub pieces: usize,
    /// Does the provider take the memory of long lists by [`Extents::next_entries`](crate::Extents::next_entries)
    /// first? Then a list is counted while its memory is looked at, as long as it may be one of whole pages.
    pub by_entries: bool,
    /// Does the provider keep memory, to use it by the processor ([`CpuMemory`](crate::cpu_memory::CpuMemory))?
    pub leases: bool,
}

impl MrLimits {
    /// Nothing at all; what others start from.
    pub const NONE: Self = Self {
        regions: 0,
        segments: 0,
        pages: 0,
        bytes: 0,
        gaps: false,
        flags: 0,
        auth_keys: false,
        refresh: Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider can't refresh regions",
        )),
        peer_to_peer: false,
        pieces: 1,
        by_entries: false,
        leases: false,
    };

    /// Checks whether a list of `count` entries with this shape is within the limits. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the list has a gap that one device region can't have.
    /// - `E2BIG`: the list has too many segments, pages or bytes.
    pub(super) fn check(&self, shape: &Shape, count: usize) -> Result<(), Refusal> {
        let one_piece = self.pieces <= 1;
        if let Some(index) = shape.gap {
            if one_piece && !self.gaps {
                return Err(Refusal::new(Errno::EINVAL, c"gap before this segment").at(index));
            }
        }
        // A longer list was read no further than to the limit.
        if count > self.segments {
            return Err(Refusal::new(Errno::E2BIG, c"too many segments").value(widen(count)));
        }
        if one_piece && shape.pages > self.pages {
            return Err(Refusal::new(Errno::E2BIG, c"too many pages").value(shape.pages));
        }
        if one_piece && shape.len > self.bytes {
            return Err(Refusal::new(Errno::E2BIG, c"too many bytes").value(shape.len));
        }
        Ok(())
    }
}
