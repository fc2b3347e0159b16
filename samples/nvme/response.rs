// SPDX-License-Identifier: GPL-2.0

//! Responses, and what they say of a command.

use kernel::prelude::*;

/// How long a response is, in bytes.
pub(crate) const RESPONSE: usize = 16;

/// How a command has ended, as the target says it: a type, a code, and whether trying again is of no
/// use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(u16);

impl Status {
    pub(crate) fn is_ok(self) -> bool {
        self.code() == 0
    }

    /// Returns type and code.
    fn code(self) -> u16 {
        self.0 & 0x7ff
    }

    /// Returns the status for the block layer.
    pub(crate) fn to_block(self) -> block::Status {
        use block::Status as Block;
        match self.code() {
            0x000 => Block::Ok,
            // Invalid opcode, invalid field, invalid namespace, LBA out of range.
            0x001 => Block::NotSupported,
            0x002 | 0x00b | 0x080 => Block::Invalid,
            0x081 => Block::NoSpace,
            0x083 | 0x0b3 => Block::Reserved,
            0x280 | 0x281 | 0x286 | 0x287 => Block::Medium,
            0x282..=0x284 => Block::Protection,
            0x182 | 0x184 | 0x300..=0x37f => Block::Transport,
            _ => Block::Io,
        }
    }

    /// Returns the error for a caller.
    pub(crate) fn to_error(self) -> Error {
        match self.code() {
            0x001 | 0x002 => EINVAL,
            // Connect: the subsystem does not exist, or not for this host; no more controllers.
            0x182 => ENOENT,
            0x184 => EACCES,
            0x181 | 0x183 => EBUSY,
            _ => EIO,
        }
    }

    /// Returns a text, if there is one for the code.
    pub(crate) fn name(self) -> &'static str {
        match self.code() {
            0x000 => "success",
            0x001 => "invalid opcode",
            0x002 => "invalid field",
            0x006 => "internal error",
            0x00b => "invalid namespace",
            0x00c => "commands in the wrong order",
            0x00f => "data of the wrong length",
            0x080 => "beyond the end of the namespace",
            0x081 => "no room left",
            0x082 => "namespace not ready",
            0x180 => "incompatible format",
            0x181 => "controller busy",
            0x182 => "no such subsystem, or invalid parameters",
            0x183 => "restart discovery",
            0x184 => "this host is not allowed",
            0x280 => "write fault",
            0x281 => "unrecovered read error",
            _ => "failed",
        }
    }
}

impl kernel::fmt::Display for Status {
    fn fmt(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        write!(f, "{} ({:#05x})", self.name(), self.code())
    }
}

/// A response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) result: u64,
    /// Which command it answers.
    pub(crate) id: u16,
    pub(crate) status: Status,
}

impl Response {
    /// Reads a response; there is none in fewer bytes.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; RESPONSE] = bytes.first_chunk()?;
        let [r0, r1, r2, r3, r4, r5, r6, r7, _, _, _, _, id0, id1, s0, s1] = *bytes;
        Some(Self {
            result: u64::from_le_bytes([r0, r1, r2, r3, r4, r5, r6, r7]),
            id: u16::from_le_bytes([id0, id1]),
            // Below it is a bit that means nothing here.
            status: Status(u16::from_le_bytes([s0, s1]) >> 1),
        })
    }

    /// Returns the lower half of the result.
    pub(crate) fn result32(&self) -> u32 {
        u32::try_from(self.result & u64::from(u32::MAX)).unwrap_or(0)
    }
}

#[kernel::macros::kunit_tests(kfi_nvme_response)]
mod tests {
    use super::*;

    #[test]
    fn as_on_the_wire() {
        let mut bytes = [0; 20];
        assert_eq!(Response::parse(&bytes[..15]), None);
        bytes[..4].copy_from_slice(&[1, 2, 3, 4]);
        bytes[12..16].copy_from_slice(&[0x34, 0x12, 0x05, 0x83]);
        let response = Response::parse(&bytes);
        assert!(response.is_some_and(|r| r.id == 0x1234 && r.result32() == 0x0403_0201));
        assert!(response.is_some_and(|r| r.status == Status(0x4182) && !r.status.is_ok()));
        assert_eq!(Status(0x4182).to_error(), ENOENT);
        assert_eq!(Status(0x4000).to_block(), block::Status::Ok);
        assert_eq!(Status(0x0281).to_block(), block::Status::Medium);
    }
}
