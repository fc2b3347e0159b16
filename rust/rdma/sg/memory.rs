// SPDX-License-Identifier: GPL-2.0

//! Lists of any kind.

use super::{
    borrowed::CopiedSg,
    dma_list::{
        DmaList,
        MappedSg,
        Mapping,
        SegmentBoundaries,
        SingleSg, //
    }, //
};
use crate::device::Device;
use kernel::bindings;

/// The memory of a region, mapped here or by the consumer.
pub enum Memory {
    /// Mapped here.
    Mapped(MappedSg),
    /// Mapped by somebody else.
    Copied(CopiedSg),
    /// One run, for a device for which nothing has to be mapped.
    Single(SingleSg),
}

// SAFETY: Each kind keeps the promise, and the variant doesn't change.
unsafe impl DmaList for Memory {
    fn is_for(&self, device: &Device) -> bool {
        match self {
            Self::Mapped(list) => list.is_for(device),
            Self::Copied(list) => list.is_for(device),
            Self::Single(list) => list.is_for(device),
        }
    }

    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T {
        match self {
            Self::Mapped(list) => list.with_raw(f),
            Self::Copied(list) => list.with_raw(f),
            Self::Single(list) => list.with_raw(f),
        }
    }

    fn count(&self) -> u32 {
        match self {
            Self::Mapped(list) => list.count(),
            Self::Copied(list) => list.count(),
            Self::Single(list) => list.count(),
        }
    }

    fn boundaries(&self, base: u32) -> SegmentBoundaries {
        match self {
            Self::Mapped(list) => list.boundaries(base),
            Self::Copied(list) => list.boundaries(base),
            Self::Single(list) => list.boundaries(base),
        }
    }

    fn is_linear(&self) -> bool {
        match self {
            Self::Mapped(list) => list.is_linear(),
            Self::Copied(list) => list.is_linear(),
            Self::Single(list) => list.is_linear(),
        }
    }

    fn into_mapping(self) -> Mapping {
        match self {
            Self::Mapped(list) => list.into_mapping(),
            Self::Copied(list) => list.into_mapping(),
            Self::Single(list) => list.into_mapping(),
        }
    }
}
