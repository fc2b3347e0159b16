// SPDX-License-Identifier: GPL-2.0

//! How many objects were opened from another, and the close that waits for none.

use crate::support::errno::Errno;
use kernel::sync::atomic::{
    Atomic,
    Full,
    Relaxed, //
};

/// Counts the open children of an object.
///
/// # Invariants
///
/// The number is the count of open children, or [`CLOSED`](Self::CLOSED) from a successful
/// [`close`](Self::close) on.
pub(crate) struct Children(Atomic<i32>);

impl Children {
    const CLOSED: i32 = -1;

    pub(crate) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Counts one more, unless there are `most` already: then nothing happens and the answer is
    /// `false`. Fails with `EINVAL` on an object that is being closed. Any context.
    pub(crate) fn add_below(&self, most: i32) -> Result<bool, Errno> {
        let mut open = self.0.load(Relaxed);
        loop {
            if open == Self::CLOSED {
                return Err(Errno::EINVAL);
            }
            if open >= most {
                return Ok(false);
            }
            match self.0.cmpxchg(open, open + 1, Full) {
                Ok(_) => return Ok(true),
                Err(now) => open = now,
            }
        }
    }

    /// Counts one more. Fails with `EINVAL` on an object that is being closed. Any context.
    pub(crate) fn add(&self) -> Result<(), Errno> {
        match self.add_below(i32::MAX)? {
            true => Ok(()),
            false => Err(Errno::ENOSPC),
        }
    }

    /// Counts one less. Any context.
    pub(crate) fn remove(&self) {
        self.0.fetch_sub(1, Full);
    }

    /// From here on no child can be added; `EBUSY` while there are children. Any context.
    pub(crate) fn close(&self) -> Result<(), Errno> {
        match self.0.cmpxchg(0, Self::CLOSED, Full) {
            Ok(_) => Ok(()),
            Err(_) => Err(Errno::EBUSY),
        }
    }

    /// Undoes a [`close`](Self::close) of an object that stays open after all. Any context.
    pub(crate) fn reopen(&self) {
        self.0.store(0, kernel::sync::atomic::Release);
    }
}

#[kernel::macros::kunit_tests(kfabric_children)]
mod tests {
    use super::*;

    #[test]
    fn close_waits_for_children() {
        let children = Children::new();
        assert_eq!(children.add(), Ok(()));
        assert_eq!(children.add(), Ok(()));
        assert_eq!(children.close(), Err(Errno::EBUSY));
        children.remove();
        assert_eq!(children.close(), Err(Errno::EBUSY));
        children.remove();
        assert_eq!(children.close(), Ok(()));
        assert_eq!(children.add(), Err(Errno::EINVAL));
        assert_eq!(children.close(), Err(Errno::EBUSY));
        children.reopen();
        assert_eq!(children.add(), Ok(()));
    }

    #[test]
    fn no_more_than_most() {
        let children = Children::new();
        assert_eq!(children.add_below(2), Ok(true));
        assert_eq!(children.add_below(2), Ok(true));
        assert_eq!(children.add_below(2), Ok(false));
        children.remove();
        assert_eq!(children.add_below(2), Ok(true));
    }
}
