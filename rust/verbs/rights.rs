// SPDX-License-Identifier: GPL-2.0

//! From rights of the fabric to rights of the device: exactly what was asked for.

use kfabric::Access;
use rdma::{
    Access as Right,
    AccessFlags, //
};

/// What the device is told, in a domain with atomic operations or without. Reading by the local device
/// needs no right there.
pub(crate) fn flags(access: Access, atomics: bool) -> AccessFlags {
    let mut flags = AccessFlags::default();
    if access.device_writes() {
        flags |= Right::LocalWrite;
    }
    if access.has_any(Access::REMOTE_READ) {
        flags |= Right::RemoteRead;
    }
    if access.has_any(Access::REMOTE_WRITE) {
        flags |= Right::RemoteWrite;
        if atomics {
            flags |= Right::RemoteAtomic;
        }
    }
    flags
}

#[kernel::macros::kunit_tests(kfi_verbs_rights)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_asked_for() {
        let flags = |access| flags(access, false);
        let remote = Right::RemoteRead | Right::RemoteWrite | Right::RemoteAtomic;
        assert!(flags(Access::REMOTE_READ) == Right::RemoteRead.into());
        assert!(flags(Access::REMOTE_WRITE) == Right::RemoteWrite | Right::LocalWrite);
        for local in [Access::SEND, Access::RECV, Access::READ, Access::WRITE] {
            assert!(!flags(local).contains_any(remote));
        }
        assert!(flags(Access::SEND | Access::WRITE) == AccessFlags::default());
        assert!(flags(Access::READ) == Right::LocalWrite.into());
    }

    #[test]
    fn who_may_write_may_do_that_at_once() {
        let write = Right::RemoteWrite | Right::LocalWrite;
        assert!(flags(Access::REMOTE_WRITE, true) == write | Right::RemoteAtomic);
        assert!(
            flags(Access::REMOTE_READ | Access::RECV, true)
                == flags(Access::REMOTE_READ | Access::RECV, false)
        );
    }
}
