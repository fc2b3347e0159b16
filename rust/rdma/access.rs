// SPDX-License-Identifier: GPL-2.0

//! Access rights of a memory region.

use crate::prelude::*;
use kernel::impl_flags;

impl_flags!(
    /// A set of [`Access`] rights.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct AccessFlags(u8);

    /// A right of peers or of the local device to a memory region.
    ///
    /// Reading by the local device is always allowed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Access {
        /// The local device may write (receives, and what it reads from a peer).
        LocalWrite = bit(rdma_bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE),

        /// A peer may read.
        RemoteRead = bit(rdma_bindings::ib_access_flags_IB_ACCESS_REMOTE_READ),

        /// A peer may write. Needs [`Access::LocalWrite`].
        RemoteWrite = bit(rdma_bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE),

        /// A peer may use atomic operations. Needs [`Access::LocalWrite`].
        RemoteAtomic = bit(rdma_bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC),
    }
);

/// Converts a C flag, which is one of the lowest eight bits.
const fn bit(flag: u32) -> u8 {
    assert!(flag < 1 << u8::BITS);
    // CAST: As was just seen.
    flag as u8
}

impl From<AccessFlags> for u32 {
    fn from(flags: AccessFlags) -> Self {
        u8::from(flags).into()
    }
}

impl AccessFlags {
    /// Checks that the rights go together: who lets a peer write lets the local device write.
    ///
    /// The RDMA core checks this for user memory only, and devices differ in what they do with a
    /// set that breaks the rule.
    pub fn check(self) -> Result {
        let writes = Access::RemoteWrite | Access::RemoteAtomic;
        if self.contains_any(writes) && !self.contains(Access::LocalWrite) {
            return Err(EINVAL);
        }
        Ok(())
    }
}
