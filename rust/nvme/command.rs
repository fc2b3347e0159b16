// SPDX-License-Identifier: GPL-2.0

//! The descriptor of a command's data.
//!
//! C header: [`include/linux/nvme.h`](srctree/include/linux/nvme.h)

use nvme_bindings as b;

/// The operation that asks for an asynchronous event (`nvme_admin_async_event`).
const ASYNC_EVENT: u8 = 0x0c;
/// The id of the command for that: above all tags (`NVME_AQ_BLK_MQ_DEPTH`).
pub(crate) const ASYNC_EVENT_ID: u16 = 31;
/// The offset of `flags` in a command.
const FLAGS: usize = 1;
/// The offset of the data descriptor in a command.
const DPTR: usize = 24;
/// The command has one descriptor, which is in the command itself.
const SGL_METABUF: u8 = 1 << 6;
/// A descriptor of data by address.
const DATA: u8 = 0;
/// A descriptor of data by key.
const KEYED: u8 = 4 << 4;
/// The data are at an offset in the capsule.
const OFFSET: u8 = 1;
/// The target invalidates the key.
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

    fn set_descriptor(&mut self, descriptor: [u8; 16]) {
        self.0[FLAGS] |= SGL_METABUF;
        self.0[DPTR..DPTR + 16].copy_from_slice(&descriptor);
    }

    /// Says that the command has no data. Any context.
    pub fn set_no_data(&mut self) {
        self.set_descriptor(descriptor(0, [0; 7], KEYED));
    }

    /// Says that the data are behind the command in the capsule. Any context.
    pub fn set_in_capsule(&mut self, len: u32) {
        let [a, b, c, d] = len.to_le_bytes();
        self.set_descriptor(descriptor(0, [a, b, c, d, 0, 0, 0], DATA | OFFSET));
    }

    /// Says that the target reaches the data by a key, and may invalidate it. The length is less
    /// than 2^24 bytes. Any context.
    pub fn set_keyed(&mut self, addr: u64, len: u32, rkey: u32, invalidate: bool) {
        let [a, b, c, _] = len.to_le_bytes();
        let [d, e, f, g] = rkey.to_le_bytes();
        let kind = if invalidate {
            KEYED | INVALIDATE
        } else {
            KEYED
        };
        self.set_descriptor(descriptor(addr, [a, b, c, d, e, f, g], kind));
    }
}

/// Returns a descriptor: 8 bytes of address, 7 that depend on the kind, and the kind.
fn descriptor(addr: u64, middle: [u8; 7], kind: u8) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h] = addr.to_le_bytes();
    let [i, j, k, l, m, n, o] = middle;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, kind]
}
