// SPDX-License-Identifier: GPL-2.0

//! Access rights of a memory region.

use crate::prelude::*;
use core::ops::BitOr;
use kernel::dma::DataDirection;

/// The rights of a region: one or more of the rights that kfi_mr(3) lists.
///
/// # Invariants
///
/// At least one right is set, and no bit that is not a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(u32);

impl Access {
    /// Source of outgoing messages (`KFI_SEND`).
    pub const SEND: Self = Self(kfi_bindings::KFI_SEND);
    /// Target of incoming messages (`KFI_RECV`).
    pub const RECV: Self = Self(kfi_bindings::KFI_RECV);
    /// Result buffer of RMA reads and atomics at the initiator (`KFI_READ`).
    pub const READ: Self = Self(kfi_bindings::KFI_READ);
    /// Source buffer of RMA writes and atomics at the initiator (`KFI_WRITE`).
    pub const WRITE: Self = Self(kfi_bindings::KFI_WRITE);
    /// A peer may read (`KFI_REMOTE_READ`).
    pub const REMOTE_READ: Self = Self(kfi_bindings::KFI_REMOTE_READ);
    /// A peer may write (`KFI_REMOTE_WRITE`).
    pub const REMOTE_WRITE: Self = Self(kfi_bindings::KFI_REMOTE_WRITE);

    const ALL: u32 = Self::SEND.0
        | Self::RECV.0
        | Self::READ.0
        | Self::WRITE.0
        | Self::REMOTE_READ.0
        | Self::REMOTE_WRITE.0;

    /// All that this side may do, which `access` 0 stands for.
    const LOCAL: Self = Self(Self::SEND.0 | Self::RECV.0 | Self::READ.0 | Self::WRITE.0);

    /// Takes the `access` argument of a registration.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: a bit that is not a right.
    pub fn parse(bits: u64) -> Result<Self, Refusal> {
        if bits == 0 {
            return Ok(Self::LOCAL);
        }
        let unknown = bits & !widen_u32(Self::ALL);
        match u32::try_from(bits) {
            // INVARIANT: Both halves were just checked.
            Ok(bits) if unknown == 0 => Ok(Self(bits)),
            _ => Err(Refusal::new(Errno::EINVAL, c"unknown access right").value(unknown)),
        }
    }

    /// Returns the bits as the C API has them.
    pub const fn bits(self) -> u64 {
        widen_u32(self.0)
    }

    /// Checks whether any of the rights in `other` is given.
    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Checks whether the device may write to the memory, on anybody's behalf.
    pub const fn device_writes(self) -> bool {
        self.has_any(Self(Self::RECV.0 | Self::READ.0 | Self::REMOTE_WRITE.0))
    }

    /// Checks whether the device may read the memory, on anybody's behalf.
    pub const fn device_reads(self) -> bool {
        self.has_any(Self(Self::SEND.0 | Self::WRITE.0 | Self::REMOTE_READ.0))
    }

    /// Returns the direction in which the memory is mapped. No right is needed for local reading, so a
    /// region that the device writes to is mapped for reading, too.
    pub const fn direction(self) -> DataDirection {
        match self.device_writes() {
            true => DataDirection::Bidirectional,
            false => DataDirection::ToDevice,
        }
    }
}

impl BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        // INVARIANT: Both sides are sets of rights, and not empty.
        Self(self.0 | other.0)
    }
}

#[kernel::macros::kunit_tests(kfabric_access)]
mod tests {
    use super::*;

    #[test]
    fn none_is_local() {
        assert_eq!(Access::parse(0), Ok(Access::LOCAL));
        assert!(!Access::LOCAL.has_any(Access::REMOTE_READ | Access::REMOTE_WRITE));
        assert_eq!(Access::LOCAL.direction(), DataDirection::Bidirectional);
        assert!(Access::parse(1).is_err());
    }

    #[test]
    fn directions() {
        let both = Access::REMOTE_READ | Access::RECV;
        assert_eq!(Access::REMOTE_READ.direction(), DataDirection::ToDevice);
        for written in [Access::REMOTE_WRITE, Access::RECV, Access::READ] {
            assert_eq!(written.direction(), DataDirection::Bidirectional);
        }
        assert_eq!(both.direction(), DataDirection::Bidirectional);
    }
}
