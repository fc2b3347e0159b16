// SPDX-License-Identifier: GPL-2.0

//! From rights of the fabric to rights of the device: exactly those that were asked for, and those
//! that the device's protocol needs for them.

use crate::prelude::*;
use kfabric::Access;
use rdma::{
    Access as Right,
    Device, //
};

/// How the rights of the fabric map to those of a device in one domain.
#[derive(Clone, Copy)]
pub(crate) struct Rights {
    /// Whether peers may do atomic operations where they may write.
    atomics: bool,
    /// Whether the peer answers a read by writing to a key that the request names. An iWARP peer does,
    /// so an iWARP device demands that the peer may write there (`rdma_rw_ctx_init()`, RFC 5040).
    remote_sinks: bool,
}

impl Rights {
    /// Returns the mapping for a domain of `device`, with atomic operations or without. May sleep.
    pub(crate) fn new(device: &Device, atomics: bool) -> Self {
        Self {
            atomics,
            remote_sinks: !device.connects_freely(),
        }
    }

    /// Returns the rights that the device is told. Reading by the local device needs none there.
    pub(crate) fn flags(self, access: Access) -> AccessFlags {
        let mut flags = AccessFlags::default();
        if access.device_writes() {
            flags |= Right::LocalWrite;
        }
        if access.has_any(Access::REMOTE_READ) {
            flags |= Right::RemoteRead;
        }
        if access.has_any(Access::REMOTE_WRITE) {
            flags |= Right::RemoteWrite;
            if self.atomics {
                flags |= Right::RemoteAtomic;
            }
        }
        if self.remote_sinks && access.has_any(Access::READ) {
            flags |= Right::RemoteWrite;
        }
        flags
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_rights)]
mod tests {
    use super::*;

    const PLAIN: Rights = Rights {
        atomics: false,
        remote_sinks: false,
    };

    const ATOMICS: Rights = Rights {
        atomics: true,
        ..PLAIN
    };

    const IWARP: Rights = Rights {
        remote_sinks: true,
        ..PLAIN
    };

    #[test]
    fn no_more_than_asked_for() {
        let flags = |access| PLAIN.flags(access);
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
        assert!(ATOMICS.flags(Access::REMOTE_WRITE) == write | Right::RemoteAtomic);
        let others = Access::REMOTE_READ | Access::RECV;
        assert!(ATOMICS.flags(others) == PLAIN.flags(others));
    }

    #[test]
    fn the_peer_writes_what_is_read_over_iwarp() {
        let write = Right::RemoteWrite | Right::LocalWrite;
        assert!(IWARP.flags(Access::READ) == write);
        assert!(IWARP.flags(Access::READ | Access::REMOTE_READ) == write | Right::RemoteRead);
        // The default access of a region includes reading to it.
        assert!(Access::parse(0).is_ok_and(|access| IWARP.flags(access) == write));
        for other in [
            Access::SEND,
            Access::RECV,
            Access::WRITE,
            Access::REMOTE_READ,
        ] {
            assert!(IWARP.flags(other) == PLAIN.flags(other));
        }
    }
}
