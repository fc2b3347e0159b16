// SPDX-License-Identifier: GPL-2.0

//! A command, and the descriptor of its data.
//!
//! C header: [`include/linux/nvme.h`](srctree/include/linux/nvme.h)

use crate::prelude::*;

/// The operation that asks for an asynchronous event (`nvme_admin_async_event`).
const ASYNC_EVENT: u8 = 0x0c;
/// The id of that command: above all tags (`NVME_AQ_BLK_MQ_DEPTH`).
pub(crate) const ASYNC_EVENT_ID: u16 = 31;
/// The offset of `flags` in a command.
const FLAGS: usize = 1;
/// The offset of the data descriptor in a command.
const DPTR: usize = 24;
/// The only descriptor is the one in the command (`NVME_CMD_SGL_METABUF`).
const SGL_METABUF: u8 = 1 << 6;
/// The kind of a descriptor by key.
const KEYED: u8 = 4 << 4;
/// The kind of a descriptor of data at an offset in the capsule.
const OFFSET: u8 = 1;
/// The target may invalidate the key: part of the kind.
const INVALIDATE: u8 = 0xf;

/// A command of 64 bytes as it is sent.
#[repr(C, align(8))]
pub struct Command([u8; Command::SIZE]);

// nvme-core writes a command of this size there.
const _: () = assert!(size_of::<b::nvme_command>() == Command::SIZE);
const _: () = assert!(align_of::<b::nvme_command>() <= align_of::<Command>());

impl Command {
    /// The length of a command in bytes.
    pub const SIZE: usize = 64;

    pub(crate) const fn zeroed() -> Self {
        Self([0; Self::SIZE])
    }

    /// Returns the command that asks for an asynchronous event.
    pub(crate) fn async_event() -> Self {
        let mut command = Self::zeroed();
        command.0[0] = ASYNC_EVENT;
        command.0[2..4].copy_from_slice(&ASYNC_EVENT_ID.to_le_bytes());
        command.set_no_data();
        command
    }

    /// Returns the bytes that are sent. Any context.
    pub fn as_bytes(&self) -> &[u8; Self::SIZE] {
        &self.0
    }

    /// Sets the descriptor: the address, and a word with the kind in its highest byte.
    fn set_descriptor(&mut self, addr: u64, word: u64, kind: u8) {
        let word = word | u64::from(kind) << 56;
        self.0[FLAGS] |= SGL_METABUF;
        self.0[DPTR..DPTR + 8].copy_from_slice(&addr.to_le_bytes());
        self.0[DPTR + 8..DPTR + 16].copy_from_slice(&word.to_le_bytes());
    }

    /// Describes a command without data. Any context.
    pub fn set_no_data(&mut self) {
        self.set_descriptor(0, 0, KEYED);
    }

    /// Describes data that follow the command in the capsule. Any context.
    pub fn set_in_capsule(&mut self, len: u32) {
        self.set_descriptor(0, len.into(), OFFSET);
    }

    /// Describes data that the target reaches by a key, which it may invalidate. The length is less
    /// than 2^24 bytes. Any context.
    pub fn set_keyed(&mut self, addr: u64, len: u32, rkey: u32, invalidate: bool) {
        let kind = if invalidate { INVALIDATE } else { 0 };
        self.set_descriptor(addr, u64::from(len) | u64::from(rkey) << 24, KEYED | kind);
    }
}
