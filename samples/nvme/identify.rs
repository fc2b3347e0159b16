// SPDX-License-Identifier: GPL-2.0

//! The data with which a target identifies itself.

use kernel::prelude::*;

/// How long all of these are, in bytes.
pub(crate) const IDENTIFY: usize = 4096;

fn get<const N: usize>(data: &[u8], at: usize) -> Result<[u8; N]> {
    data.get(at..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .ok_or(EINVAL)
}

/// The properties of a controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdCtrl {
    /// The most bytes of data of a command, if there is a limit.
    pub(crate) max_data: Option<u32>,
    /// The most bytes of data that may come right behind a command for I/O.
    pub(crate) in_capsule: u32,
    /// Written data may be in a cache.
    pub(crate) write_cache: bool,
    pub(crate) can_discard: bool,
    pub(crate) can_write_zeroes: bool,
}

impl IdCtrl {
    /// Reads the answer to [`identify_controller`](crate::command::Command::identify_controller).
    ///
    /// # Errors
    ///
    /// - `EINVAL`: one that can't be used: it doesn't take keys.
    pub(crate) fn parse(data: &[u8]) -> Result<Self> {
        let [mdts] = get(data, 77)?;
        let [vwc] = get(data, 525)?;
        let optional = u16::from_le_bytes(get(data, 520)?);
        let sgls = u32::from_le_bytes(get(data, 536)?);
        if sgls & 1 << 2 == 0 {
            pr_err!("the target takes no keys\n");
            return Err(EINVAL);
        }
        // In units of 16 bytes, and the command is a part of it.
        let capsule = u32::from_le_bytes(get(data, 1792)?).saturating_mul(16);
        let offset = u16::from_le_bytes(get(data, 1800)?);
        let at_offset = sgls & 1 << 20 != 0 && offset == 0;
        Ok(Self {
            in_capsule: if at_offset {
                capsule.saturating_sub(64)
            } else {
                0
            },
            // A power of two of the smallest page, which is 4096 bytes with every target.
            max_data: match mdts {
                0 => None,
                mdts => 4096u32.checked_shl(mdts.into()).filter(|max| *max > 0),
            },
            write_cache: vwc & 1 != 0,
            can_discard: optional & 1 << 2 != 0,
            can_write_zeroes: optional & 1 << 3 != 0,
        })
    }
}

/// The properties of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Namespace {
    /// How many blocks it has.
    pub(crate) blocks: u64,
    /// How long each is: two to the power of this bytes.
    pub(crate) block_shift: u8,
}

impl Namespace {
    /// Reads the answer to [`identify_namespace`](crate::command::Command::identify_namespace).
    ///
    /// # Errors
    ///
    /// - `EINVAL`: one that can't be a disk here: of no blocks, or of blocks that are too small or large.
    pub(crate) fn parse(data: &[u8]) -> Result<Self> {
        let blocks = u64::from_le_bytes(get(data, 0)?);
        let [format] = get(data, 26)?;
        let [_, _, block_shift, _] = get(data, 128 + 4 * usize::from(format & 0xf))?;
        if blocks == 0 || !(9..=12).contains(&block_shift) {
            return Err(EINVAL);
        }
        // As many sectors must be a number, too.
        blocks
            .checked_shl(u32::from(block_shift) - 9)
            .filter(|sectors| sectors >> (block_shift - 9) == blocks)
            .ok_or(EINVAL)?;
        Ok(Self {
            blocks,
            block_shift,
        })
    }

    /// Returns the number of sectors of 512 bytes.
    pub(crate) fn sectors(&self) -> u64 {
        self.blocks << (self.block_shift - 9)
    }
}

/// Reads the answer to [`identify_namespaces`](crate::command::Command::identify_namespaces): their
/// numbers, which end with a 0 unless there are more.
pub(crate) fn namespaces(data: &[u8]) -> impl Iterator<Item = u32> + '_ {
    data.chunks_exact(4)
        .filter_map(|number| number.first_chunk())
        .map(|number| u32::from_le_bytes(*number))
        .take_while(|number| *number != 0)
}
