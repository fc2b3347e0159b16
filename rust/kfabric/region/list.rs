// SPDX-License-Identifier: GPL-2.0

//! A consumer's list, of whatever kind.

use crate::support::{
    errno::Errno,
    refusal::Refusal, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull,
    slice, //
};
use kfi_bindings::scatterlist;

/// A non-empty C list and its count.
///
/// # Invariants
///
/// `first` points to `count` entries that stay as they are for `'a`; an entry after the end of
/// what is really there is only reached where the caller's `count` was wrong.
pub struct SegmentList<'a, T> {
    first: NonNull<T>,
    count: usize,
    _borrow: PhantomData<&'a T>,
}

impl<T> Clone for SegmentList<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SegmentList<'_, T> {}

impl<'a, T> SegmentList<'a, T> {
    /// Takes a C list.
    ///
    /// # Safety
    ///
    /// Unless it is null or an error pointer, `first` points to `count` entries that nobody changes for `'a`.
    pub(crate) unsafe fn from_raw(first: *const T, count: usize) -> Result<Self, Refusal> {
        let Some(first) = NonNull::new(first.cast_mut()) else {
            return Err(Refusal::new(Errno::EINVAL, c"list is NULL"));
        };
        if Errno::is_in(first.as_ptr()) {
            return Err(Refusal::new(Errno::EINVAL, c"list is an error pointer"));
        }
        if count == 0 {
            return Err(Refusal::new(Errno::EINVAL, c"list of 0 segments"));
        }
        // INVARIANT: By the requirements of this function.
        Ok(Self {
            first,
            count,
            _borrow: PhantomData,
        })
    }

    /// Takes a slice, which isn't empty.
    pub(crate) fn from_slice(list: &'a [T]) -> Self {
        // INVARIANT: A slice is what a list must be.
        Self {
            first: NonNull::from(list).cast(),
            count: list.len(),
            _borrow: PhantomData,
        }
    }

    /// The list as C has it.
    pub fn as_ptr(&self) -> *mut T {
        self.first.as_ptr()
    }

    /// How many entries the caller says there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// At most the first `limit` entries, as a slice.
    pub(crate) fn entries(&self, limit: usize) -> &'a [T] {
        // No list in memory is longer than this, and no slice may be.
        const { assert!(size_of::<T>() > 0) };
        let most = isize::MAX.unsigned_abs() / size_of::<T>();
        // SAFETY: By the invariant of this type.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.count.min(limit).min(most)) }
    }
}

/// A consumer's scatterlist that can be handed on to a device that takes addresses of the linear map, see
/// [`MrRequest::plain_list`](crate::MrRequest::plain_list).
///
/// # Invariants
///
/// - Each of its entries is a page that may be registered, by its address there.
/// - The last one is marked as the last.
pub struct PlainList<'a>(SegmentList<'a, scatterlist>);

impl<'a> PlainList<'a> {
    /// Takes a list that was found to be so.
    ///
    /// # Safety
    ///
    /// The type invariant holds for it.
    pub(super) unsafe fn of(list: SegmentList<'a, scatterlist>) -> Self {
        // INVARIANT: By the requirements of this function.
        Self(list)
    }

    /// The list.
    pub fn list(&self) -> &SegmentList<'a, scatterlist> {
        &self.0
    }
}
