// SPDX-License-Identifier: GPL-2.0

//! Lists with an item for each segment of a work request.

use crate::prelude::*;
use core::{
    array,
    ops::{
        Deref,
        DerefMut, //
    }, //
};
use kernel::alloc::{
    AllocError,
    Flags, //
};
use rdma_bindings as b;

/// Number of segments that need no allocation: a header, and data behind it. Each request moves the list.
const FEW: usize = 2;

/// A list of segments of local memory, or of their mappings.
pub(crate) struct Segments<T = b::ib_sge>(Items<T>);

enum Items<T> {
    /// The first `count` ones.
    Few { list: [T; FEW], count: usize },
    /// Any number.
    Many(KVVec<T>),
}

impl<T: Default> Segments<T> {
    /// Creates an empty list with a capacity of two.
    #[inline]
    pub(crate) fn new() -> Self {
        Self(Items::Few {
            list: array::from_fn(|_| T::default()),
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
    pub(crate) fn push(&mut self, segment: T) -> Result {
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

impl<T> Deref for Segments<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Items::Few { list, count } => list.get(..*count).unwrap_or(&[]),
            Items::Many(many) => many,
        }
    }
}

impl<T> DerefMut for Segments<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Items::Few { list, count } => list.get_mut(..*count).unwrap_or(&mut []),
            Items::Many(many) => many,
        }
    }
}
