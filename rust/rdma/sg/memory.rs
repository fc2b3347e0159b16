// SPDX-License-Identifier: GPL-2.0

//! Lists of either kind.

use kernel::bindings;

use super::{
    DmaList,
    MappedSg,
    Mapping,
    SpanList, //
};
use crate::device::Device;

/// The memory of a region, whoever has mapped it.
pub enum Memory {
    /// Mapped here.
    Mapped(MappedSg),
    /// Mapped by somebody else.
    Spans(SpanList),
}

// SAFETY: Each kind keeps the promise, and the variant doesn't change.
unsafe impl DmaList for Memory {
    fn device(&self) -> &Device {
        match self {
            Self::Mapped(list) => list.device(),
            Self::Spans(list) => list.device(),
        }
    }

    fn as_raw(&self) -> *mut bindings::scatterlist {
        match self {
            Self::Mapped(list) => list.as_raw(),
            Self::Spans(list) => list.as_raw(),
        }
    }

    fn count(&self) -> u32 {
        match self {
            Self::Mapped(list) => list.count(),
            Self::Spans(list) => list.count(),
        }
    }

    fn into_mapping(self) -> Mapping {
        match self {
            Self::Mapped(list) => list.into_mapping(),
            Self::Spans(list) => list.into_mapping(),
        }
    }
}
