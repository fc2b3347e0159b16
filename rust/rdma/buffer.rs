// SPDX-License-Identifier: GPL-2.0

//! Memory of messages that no region was made of, mapped for as long as a request has it.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `ib_dma_map_page()`
//!
//! The device reaches it by the local key of the domain, which no peer can use. Unlike the mapping
//! of a region, this mapping may be copied or flushed: the device has finished before anybody reads
//! the memory.

use kernel::{
    alloc::Flags,
    dma::DataDirection,
    prelude::*,
    sync::aref::ARef, //
};

use rdma_bindings as b;

use crate::{
    device::Device,
    small_vec::SmallVec, //
};

/// Some bytes that are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A part of a region of the same protection domain.
    Region {
        /// The region's local key.
        lkey: u32,
        /// The address there.
        address: u64,
        /// In bytes.
        len: u64,
    },
    /// Plain memory of this machine, which has a `struct page`.
    Memory {
        /// The physical address.
        phys: u64,
        /// In bytes.
        len: u64,
    },
    /// Memory that has been mapped for the device.
    Mapped {
        /// The device's address.
        address: u64,
        /// In bytes.
        len: u64,
    },
}

/// Keeps the pieces of a request mapped. Dropping it unmaps them, in any context.
///
/// # Invariants
///
/// Each in `mapped` is a mapping for `device` in this direction, which is undone here only.
pub struct Buffer {
    /// [`None`] if nothing has to be mapped.
    device: Option<ARef<Device>>,
    mapped: SmallVec<Mapping>,
    direction: DataDirection,
}

/// Where something is for the device, and how long it is.
struct Mapping {
    address: u64,
    len: usize,
}

impl Buffer {
    /// Creates an empty list with capacity for `count` pieces.
    pub(crate) fn new(
        device: &ARef<Device>,
        room: usize,
        written: bool,
        flags: Flags,
    ) -> Result<Self> {
        let maps = !device.is_software();
        // INVARIANT: There is none.
        Ok(Self {
            device: maps.then(|| device.clone()),
            mapped: SmallVec::with_capacity(if maps { room } else { 0 }, flags)?,
            direction: match written {
                true => DataDirection::FromDevice,
                false => DataDirection::ToDevice,
            },
        })
    }

    /// Adds a piece, and returns what the device is told of it; `key` is that of the domain.
    pub(crate) fn add(&mut self, key: u32, piece: Piece) -> Result<b::ib_sge> {
        let (addr, len, lkey) = match piece {
            Piece::Region { lkey, address, len } => (address, len, lkey),
            Piece::Mapped { address, len } => (address, len, key),
            Piece::Memory { phys, len } => (self.map(phys, len)?, len, key),
        };
        let length = u32::try_from(len)?;
        Ok(b::ib_sge { addr, length, lkey })
    }

    fn map(&mut self, phys: u64, len: u64) -> Result<u64> {
        let Some(device) = &self.device else {
            // SAFETY: The memory has pages, as who made the piece promises.
            return Ok(unsafe { b::rdma_helper_virtual_address(phys) });
        };
        let len = usize::try_from(len)?;
        let mut address = 0;
        // SAFETY: The device is held; the memory has pages, as who made the piece promises.
        let mapped = unsafe {
            b::rdma_helper_dma_map(
                device.as_raw(),
                phys,
                len,
                self.raw_direction(),
                &mut address,
            )
        };
        if !mapped {
            return Err(EIO);
        }
        // INVARIANT: Just mapped.
        let pushed = self.mapped.push_within_capacity(Mapping { address, len });
        pushed.map_err(|mapping| {
            self.unmap(&mapping);
            EINVAL
        })?;
        Ok(address)
    }

    fn unmap(&self, mapping: &Mapping) {
        if let Some(device) = &self.device {
            let direction = self.raw_direction();
            // SAFETY: By the type invariant, it is mapped for the device, which is held, in this
            // direction, and isn't used any more.
            unsafe {
                b::rdma_helper_dma_unmap(device.as_raw(), mapping.address, mapping.len, direction)
            };
        }
    }

    /// Leaves the memory mapped for good: the device may use it at any time. Only the device isn't held
    /// any more, which would keep it from going away.
    pub(crate) fn leak(mut self) {
        drop(self.device.take());
    }

    fn raw_direction(&self) -> u32 {
        // CAST: The enum is `repr(u32)`, and its values are those of the C enum.
        self.direction as u32
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.mapped.iter().for_each(|mapping| self.unmap(mapping));
    }
}
