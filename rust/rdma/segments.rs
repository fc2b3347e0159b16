// SPDX-License-Identifier: GPL-2.0

//! The segments of a work request.

use crate::prelude::*;
use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::alloc::{
    AllocError,
    Flags, //
};
use rdma_bindings as b;

/// Number of segments that need no allocation: a header, and data behind it.
const FEW: usize = 2;

/// A list of segments of local memory.
pub(crate) struct Segments(Items);

enum Items {
    /// The first `count` ones.
    Few {
        list: [b::ib_sge; FEW],
        count: usize,
    },
    /// Any number.
    Many(KVVec<b::ib_sge>),
}

impl Segments {
    const NONE: b::ib_sge = b::ib_sge {
        addr: 0,
        length: 0,
        lkey: 0,
    };

    /// Creates an empty list with a capacity of two.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self(Items::Few {
            list: [Self::NONE; FEW],
            count: 0,
        })
    }

    /// Creates an empty list with a capacity. Capacity for more than two segments allocates memory.
    #[inline]
    pub(crate) fn with_capacity(count: usize, flags: Flags) -> Result<Self, AllocError> {
        match count <= FEW {
            true => Ok(Self::new()),
            false => Ok(Self(Items::Many(KVVec::with_capacity(count, flags)?))),
        }
    }

    /// Adds a segment. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is no capacity.
    pub(crate) fn push(&mut self, segment: b::ib_sge) -> Result {
        match &mut self.0 {
            Items::Few { list, count } => {
                *list.get_mut(*count).ok_or(EINVAL)? = segment;
                *count += 1;
                Ok(())
            }
            Items::Many(many) => many.push_within_capacity(segment).map_err(|_| EINVAL),
        }
    }
}

impl Deref for Segments {
    type Target = [b::ib_sge];

    fn deref(&self) -> &[b::ib_sge] {
        match &self.0 {
            Items::Few { list, count } => list.get(..*count).unwrap_or(&[]),
            Items::Many(many) => many,
        }
    }
}

impl DerefMut for Segments {
    fn deref_mut(&mut self) -> &mut [b::ib_sge] {
        match &mut self.0 {
            Items::Few { list, count } => list.get_mut(..*count).unwrap_or(&mut []),
            Items::Many(many) => many,
        }
    }
}
