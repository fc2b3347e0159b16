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
/// The number is the sum of the shares of all open children, or [`CLOSED`](Self::CLOSED) from a
/// successful [`close`](Self::close) on.
pub(crate) struct Children(Atomic<u64>);

/// What a child counts for: one of all, in the lower half; and one of those that there is a limit
/// of, in the upper half.
#[derive(Clone, Copy)]
pub(crate) struct Share(u64);

impl Share {
    /// Of a child of which there may be any number.
    pub(crate) const ONE: Self = Self(1);
    /// Of a child of which there may be so many.
    pub(crate) const LIMITED: Self = Self(1 << 32 | 1);
}

impl Children {
    const CLOSED: u64 = u64::MAX;

    /// How many there may be of each sort; the sum of both doesn't reach the upper half.
    const MAX: u64 = i32::MAX as u64;

    pub(crate) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    fn add_if(&self, share: Share, may: impl Fn(u64) -> bool) -> Result<bool, Errno> {
        let mut open = self.0.load(Relaxed);
        loop {
            if open == Self::CLOSED {
                return Err(Errno::EINVAL);
            }
            if !may(open) {
                return Ok(false);
            }
            match self.0.cmpxchg(open, open + share.0, Full) {
                Ok(_) => return Ok(true),
                Err(now) => open = now,
            }
        }
    }

    /// Counts one more of which there is a limit, unless there are `most` already: then nothing
    /// happens and the answer is `false`. Fails with `EINVAL` on an object that is being closed.
    /// Any context.
    pub(crate) fn add_below(&self, most: u32) -> Result<bool, Errno> {
        let most = u64::from(most).min(Self::MAX);
        self.add_if(Share::LIMITED, |open| open >> 32 < most)
    }

    /// Counts one more. Fails with `EINVAL` on an object that is being closed. Any context.
    pub(crate) fn add(&self) -> Result<(), Errno> {
        if self.add_if(Share::ONE, |open| open % (1 << 32) < Self::MAX)? {
            Ok(())
        } else {
            Err(Errno::ENOSPC)
        }
    }

    /// Counts one less, that had this share. Any context.
    pub(crate) fn remove(&self, share: Share) {
        self.0.fetch_sub(share.0, Full);
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

    /// Counts one more until what this gives is dropped. Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` on an object that is being closed.
    pub(crate) fn count(&self) -> Result<Counted<'_>, Errno> {
        self.add()?;
        Ok(Counted(self))
    }
}

/// Something counted among the children; counted off again when dropped.
pub(crate) struct Counted<'a>(&'a Children);

impl Counted<'_> {
    /// Leaves it counted, until [`Children::remove`] with [`Share::ONE`].
    pub(crate) fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.remove(Share::ONE);
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
        children.remove(Share::ONE);
        assert_eq!(children.close(), Err(Errno::EBUSY));
        children.remove(Share::ONE);
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
        // Others don't count for the limit.
        assert_eq!(children.add(), Ok(()));
        assert_eq!(children.add_below(2), Ok(false));
        children.remove(Share::LIMITED);
        assert_eq!(children.add_below(2), Ok(true));
        assert_eq!(children.close(), Err(Errno::EBUSY));
        for _ in 0..2 {
            children.remove(Share::LIMITED);
        }
        assert_eq!(children.close(), Err(Errno::EBUSY));
        children.remove(Share::ONE);
        assert_eq!(children.close(), Ok(()));
        assert_eq!(children.add_below(2), Err(Errno::EINVAL));
    }
}
