// SPDX-License-Identifier: GPL-2.0

//! The limits of a disk.

use block_bindings::block_helper_limits;

/// The limits of a disk for one request. Sectors have 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The smallest unit, in bytes: a power of two from 512 to the size of a page.
    pub logical_block_size: u32,
    /// The unit that the disk writes at once, in bytes.
    pub physical_block_size: u32,
    /// How many sectors are read or written.
    pub max_sectors: u32,
    /// How many pieces of memory they are in.
    pub max_segments: u16,
    /// Each piece but the first begins, and each but the last ends, at a multiple of this, which is a
    /// power of two; if it is given.
    pub virt_boundary: Option<u32>,
    /// How many sectors are discarded; 0 if none can be.
    pub max_discard_sectors: u32,
    /// The unit that the disk discards at once, in bytes.
    pub discard_granularity: u32,
    /// How many sectors are zeroed; 0 if none can be.
    pub max_write_zeroes_sectors: u32,
    /// Flushing does something.
    pub write_cache: bool,
    /// A write may ask to be on the disk when it ends.
    pub fua: bool,
}

impl Default for Limits {
    /// Returns the limits of a disk that can read and write.
    fn default() -> Self {
        Self {
            logical_block_size: 512,
            physical_block_size: 512,
            max_sectors: 256,
            max_segments: 128,
            virt_boundary: None,
            max_discard_sectors: 0,
            discard_granularity: 0,
            max_write_zeroes_sectors: 0,
            write_cache: false,
            fua: false,
        }
    }
}

impl Limits {
    pub(crate) fn raw(&self) -> block_helper_limits {
        block_helper_limits {
            logical_block_size: self.logical_block_size,
            physical_block_size: self.physical_block_size,
            max_sectors: self.max_sectors,
            max_segments: self.max_segments.into(),
            virt_boundary: self
                .virt_boundary
                .map_or(0, |size| u64::from(size.saturating_sub(1))),
            max_discard_sectors: self.max_discard_sectors,
            discard_granularity: self.discard_granularity,
            max_write_zeroes_sectors: self.max_write_zeroes_sectors,
            write_cache: self.write_cache,
            fua: self.fua,
        }
    }
}
