// SPDX-License-Identifier: GPL-2.0

//! The number of open children of an object.

use crate::support::errno::Errno;
use kernel::sync::atomic::{
    Atomic,
    Full,
    Relaxed, //
};

/// The number of open children and other users of an object.
///
/// # Invariants
///
/// The number is the sum of the shares of all open children, or [`CLOSED`](Self::CLOSED) from a
/// successful [`close`](Self::close) on.
pub(crate) struct Children(Atomic<u64>);

/// The share of a child in the count. The lower half counts all children, the upper half children with a limit.
#[derive(Clone, Copy)]
pub(crate) struct Share(u64);

impl Share {
    /// The share of a child without a limit.
    pub(crate) const ONE: Self = Self(1);
    /// The share of a child with a limit.
    pub(crate) const LIMITED: Self = Self(1 << 32 | 1);
}

impl Children {
    const CLOSED: u64 = u64::MAX;

    /// The maximum of each half, so that the lower half never overflows.
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

    /// Adds a child with a limit. Returns false if there are `most`. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the object is closed.
    pub(crate) fn add_below(&self, most: u32) -> Result<bool, Errno> {
        let most = u64::from(most).min(Self::MAX);
        self.add_if(Share::LIMITED, |open| open >> 32 < most)
    }

    /// Adds a child. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the object is closed.
    /// - `ENOSPC`: there are too many children.
    pub(crate) fn add(&self) -> Result<(), Errno> {
        if self.add_if(Share::ONE, |open| open % (1 << 32) < Self::MAX)? {
            Ok(())
        } else {
            Err(Errno::ENOSPC)
        }
    }

    /// Removes a child with this share. Any context.
    pub(crate) fn remove(&self, share: Share) {
        self.0.fetch_sub(share.0, Full);
    }

    /// Prevents the addition of children. Any context.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: there are children, or the object is closed.
    pub(crate) fn close(&self) -> Result<(), Errno> {
        match self.0.cmpxchg(0, Self::CLOSED, Full) {
            Ok(_) => Ok(()),
            Err(_) => Err(Errno::EBUSY),
        }
    }

    /// Reverts a [`close`](Self::close), because the object stays open. Any context.
    pub(crate) fn reopen(&self) {
        self.0.store(0, kernel::sync::atomic::Release);
    }

    /// Adds a user until the result is dropped. Any context.
    ///
    /// # Errors
    ///
    /// The errors of [`add`](Self::add).
    pub(crate) fn count(&self) -> Result<Counted<'_>, Errno> {
        self.add()?;
        Ok(Counted(self))
    }
}

/// A counted user. Dropping it removes the user.
pub(crate) struct Counted<'a>(&'a Children);

impl Counted<'_> {
    /// Keeps the user counted, until [`Children::remove`] with [`Share::ONE`].
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
