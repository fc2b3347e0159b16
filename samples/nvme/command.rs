// SPDX-License-Identifier: GPL-2.0

//! Commands, as they are sent.

use crate::keys::Key;

/// How long a command is, in bytes.
pub(crate) const COMMAND: usize = 64;

/// Says of the data pointer what it is; in every command, whether it has one or not.
const SGL: u8 = 0x40;
/// An address with a key, or nothing.
const KEYED: u8 = 0x40;
/// The same, and the response is to end the key.
const KEYED_INVALIDATE: u8 = 0x4f;
/// An offset behind the command.
const IN_CAPSULE: u8 = 0x01;

/// The controller's properties, by their offsets.
pub(crate) mod property {
    /// The capabilities of the controller; 8 bytes.
    pub(crate) const CAP: u32 = 0x00;
    /// The configuration of the controller.
    pub(crate) const CC: u32 = 0x14;
    /// How it is.
    pub(crate) const CSTS: u32 = 0x1c;
}

/// Blocks that are read or written.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    pub(crate) namespace: u32,
    pub(crate) first: u64,
    /// At least 1.
    pub(crate) count: u32,
}

/// A command.
#[derive(Clone, Copy)]
pub(crate) struct Command([u8; COMMAND]);

impl Command {
    fn new(opcode: u8) -> Self {
        let mut command = [0; COMMAND];
        let [op, flags, ..] = &mut command;
        (*op, *flags) = (opcode, SGL);
        Self(command).with_key(None)
    }

    fn put<const N: usize>(mut self, at: usize, bytes: [u8; N]) -> Self {
        let place = self.0.iter_mut().skip(at);
        place.zip(bytes).for_each(|(to, from)| *to = from);
        self
    }

    fn dword(self, number: usize, value: u32) -> Self {
        self.put(4 * number, value.to_le_bytes())
    }

    fn namespace(self, namespace: u32) -> Self {
        self.dword(1, namespace)
    }

    /// Fabrics commands have a type of their own.
    fn fabrics(kind: u8) -> Self {
        Self::new(0x7f).put(4, [kind])
    }

    /// Makes a controller, or adds a queue to it. The data are [`connect_data`].
    pub(crate) fn connect(queue: u16, size: u16, keep_alive_ms: u32) -> Self {
        Self::fabrics(0x01)
            .put(42, queue.to_le_bytes())
            .put(44, size.to_le_bytes())
            .put(48, keep_alive_ms.to_le_bytes())
    }

    pub(crate) fn property_get(property: u32) -> Self {
        Self::fabrics(0x04)
            .put(40, [u8::from(property == property::CAP)])
            .put(44, property.to_le_bytes())
    }

    pub(crate) fn property_set(property: u32, value: u64) -> Self {
        Self::fabrics(0x00)
            .put(44, property.to_le_bytes())
            .put(48, value.to_le_bytes())
    }

    /// Asks for 4096 bytes about the controller.
    pub(crate) fn identify_controller() -> Self {
        Self::new(0x06).dword(10, 1)
    }

    /// Asks for 4096 bytes about a namespace.
    pub(crate) fn identify_namespace(namespace: u32) -> Self {
        Self::new(0x06).namespace(namespace)
    }

    /// Asks for the numbers of the namespaces above one: 4096 bytes of them.
    pub(crate) fn identify_namespaces(above: u32) -> Self {
        Self::new(0x06).namespace(above).dword(10, 2)
    }

    /// Asks for `count` queues for I/O.
    pub(crate) fn set_queues(count: u16) -> Self {
        let zero_based = u32::from(count.saturating_sub(1));
        Self::new(0x09)
            .dword(10, 0x07)
            .dword(11, zero_based | zero_based << 16)
    }

    pub(crate) fn keep_alive() -> Self {
        Self::new(0x18)
    }

    pub(crate) fn flush(namespace: u32) -> Self {
        Self::new(0x00).namespace(namespace)
    }

    fn blocks(self, blocks: Blocks) -> Self {
        let zero_based = u16::try_from(blocks.count.saturating_sub(1)).unwrap_or(u16::MAX);
        self.namespace(blocks.namespace)
            .put(40, blocks.first.to_le_bytes())
            .put(48, zero_based.to_le_bytes())
    }

    pub(crate) fn read(blocks: Blocks) -> Self {
        Self::new(0x02).blocks(blocks)
    }

    /// Makes a write. With `fua`, the blocks are not only in a cache when it has ended.
    pub(crate) fn write(blocks: Blocks, fua: bool) -> Self {
        Self::new(0x01)
            .blocks(blocks)
            .put(50, (u16::from(fua) << 14).to_le_bytes())
    }

    /// Makes a write of zeroes. With `may_unmap`, the target needs no space for them.
    pub(crate) fn write_zeroes(blocks: Blocks, may_unmap: bool) -> Self {
        Self::new(0x08)
            .blocks(blocks)
            .put(50, (u16::from(may_unmap) << 9).to_le_bytes())
    }

    /// Forgets blocks. The data are a [`range`].
    pub(crate) fn discard(namespace: u32) -> Self {
        // One range; and that it is to be deallocated.
        Self::new(0x09).namespace(namespace).dword(11, 1 << 2)
    }

    /// Says where the command's data are.
    pub(crate) fn with_key(self, key: Option<Key>) -> Self {
        let kind = key.map_or(KEYED, |_| KEYED_INVALIDATE);
        let (addr, len, rkey) = key.map_or((0, 0, 0), |key| (key.addr, key.len, key.rkey));
        let [a, b, c, _] = len.to_le_bytes();
        self.put(24, addr.to_le_bytes())
            .put(32, [a, b, c])
            .put(35, rkey.to_le_bytes())
            .put(39, [kind])
    }

    /// Says that `len` bytes of data come right behind the command.
    pub(crate) fn with_data(self, len: u32) -> Self {
        self.put(24, [0; 8])
            .put(32, len.to_le_bytes())
            .put(36, [0, 0, 0, IN_CAPSULE])
    }

    /// Says what the response will know it by.
    pub(crate) fn with_id(self, id: u16) -> Self {
        self.put(2, id.to_le_bytes())
    }

    pub(crate) fn as_bytes(&self) -> &[u8; COMMAND] {
        &self.0
    }
}

/// Returns the data of a [`Command::connect`] command.
pub(crate) fn connect_data(
    host: &[u8; 16],
    controller: u16,
    subsystem: &[u8],
    host_name: &[u8],
) -> [u8; 1024] {
    let mut data = [0; 1024];
    let mut put = |at: usize, bytes: &[u8]| {
        let place = data.iter_mut().skip(at);
        place.zip(bytes).for_each(|(to, from)| *to = *from);
    };
    put(0, host);
    put(16, &controller.to_le_bytes());
    put(256, subsystem);
    put(512, host_name);
    data
}

/// How long a [`range`] is, in bytes.
pub(crate) const RANGE: u32 = 16;

/// Returns the data of a [`Command::discard`] command.
pub(crate) fn range(blocks: Blocks) -> [u8; 16] {
    let mut data = [0; 16];
    let bytes = blocks
        .count
        .to_le_bytes()
        .into_iter()
        .chain(blocks.first.to_le_bytes());
    let place = data.iter_mut().skip(4);
    place.zip(bytes).for_each(|(to, from)| *to = from);
    data
}

#[kernel::macros::kunit_tests(kfi_nvme_command)]
mod tests {
    use super::*;

    #[test]
    fn as_on_the_wire() {
        let key = Key {
            addr: 0x1122_3344_5566_7788,
            len: 0x0100_0000 - 512,
            rkey: 0xaabb_ccdd,
        };
        let blocks = Blocks {
            namespace: 3,
            first: 0x0102_0304_0506,
            count: 8,
        };
        let command = Command::write(blocks, true)
            .with_id(0x1234)
            .with_key(Some(key));
        let bytes = command.as_bytes();
        assert_eq!(bytes[..8], [0x01, 0x40, 0x34, 0x12, 3, 0, 0, 0]);
        assert_eq!(
            bytes[24..32],
            [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]
        );
        assert_eq!(bytes[32..40], [0, 0xfe, 0xff, 0xdd, 0xcc, 0xbb, 0xaa, 0x4f]);
        assert_eq!(bytes[40..48], [6, 5, 4, 3, 2, 1, 0, 0]);
        assert_eq!(bytes[48..52], [7, 0, 0, 0x40]);
        assert_eq!(range(blocks)[..6], [0, 0, 0, 0, 8, 0]);
        let command = command.with_data(4096);
        assert_eq!(command.as_bytes()[24..32], [0; 8]);
        assert_eq!(command.as_bytes()[32..40], [0, 0x10, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn fabrics_commands() {
        let get = Command::property_get(property::CAP);
        assert_eq!(get.as_bytes()[..5], [0x7f, 0x40, 0, 0, 4]);
        assert_eq!(get.as_bytes()[40..48], [1, 0, 0, 0, 0, 0, 0, 0]);
        let set = Command::property_set(property::CC, 0x0046_0001);
        assert_eq!(set.as_bytes()[44..52], [0x14, 0, 0, 0, 1, 0, 0x46, 0]);
        let connect = Command::connect(1, 127, 5000);
        assert_eq!(
            connect.as_bytes()[40..52],
            [0, 0, 1, 0, 127, 0, 0, 0, 0x88, 0x13, 0, 0]
        );
        let data = connect_data(&[7; 16], 0xffff, b"nqn.sub", b"nqn.host");
        assert_eq!(data[14..18], [7, 7, 0xff, 0xff]);
        assert_eq!(
            (&data[256..264], &data[512..521]),
            (&b"nqn.sub\0"[..], &b"nqn.host\0"[..])
        );
    }
}
