// SPDX-License-Identifier: GPL-2.0

//! From rights of the fabric to rights of the device: exactly what was asked for.

use kfabric::Access;
use rdma::{
    Access as Right,
    AccessFlags, //
};

/// What the device is told. Reading by the local device needs no right there.
pub(crate) fn flags(access: Access) -> AccessFlags {
    let mut flags = AccessFlags::default();
    if access.device_writes() {
        flags |= Right::LocalWrite;
    }
    if access.has_any(Access::REMOTE_READ) {
        flags |= Right::RemoteRead;
    }
    if access.has_any(Access::REMOTE_WRITE) {
        flags |= Right::RemoteWrite;
    }
    flags
}

#[kernel::macros::kunit_tests(kfi_verbs_rights)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_asked_for() {
        let remote = Right::RemoteRead | Right::RemoteWrite;
        assert!(flags(Access::REMOTE_READ) == Right::RemoteRead.into());
        assert!(flags(Access::REMOTE_WRITE) == Right::RemoteWrite | Right::LocalWrite);
        for local in [Access::SEND, Access::RECV, Access::READ, Access::WRITE] {
            assert!(!flags(local).contains_any(remote));
        }
        assert!(flags(Access::SEND | Access::WRITE) == AccessFlags::default());
        assert!(flags(Access::READ) == Right::LocalWrite.into());
    }
}
