// SPDX-License-Identifier: GPL-2.0

//! Lists of either kind.

use kernel::bindings;

use super::{
    copied::CopiedSg,
    mapped::MappedSg,
    mapping::{
        DmaList,
        Mapping, //
    }, //
};
use crate::device::Device;

/// The memory of a region, whoever has mapped it.
pub enum Memory {
    /// Mapped here.
    Mapped(MappedSg),
    /// Mapped by somebody else.
    Copied(CopiedSg),
}

// SAFETY: Each kind keeps the promise, and the variant doesn't change.
unsafe impl DmaList for Memory {
    fn device(&self) -> &Device {
        match self {
            Self::Mapped(list) => list.device(),
            Self::Copied(list) => list.device(),
        }
    }

    fn as_raw(&self) -> *mut bindings::scatterlist {
        match self {
            Self::Mapped(list) => list.as_raw(),
            Self::Copied(list) => list.as_raw(),
        }
    }

    fn count(&self) -> u32 {
        match self {
            Self::Mapped(list) => list.count(),
            Self::Copied(list) => list.count(),
        }
    }

    fn into_mapping(self) -> Mapping {
        match self {
            Self::Mapped(list) => list.into_mapping(),
            Self::Copied(list) => list.into_mapping(),
        }
    }
}
