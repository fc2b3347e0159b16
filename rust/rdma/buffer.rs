// SPDX-License-Identifier: GPL-2.0

//! Memory of requests outside of regions, mapped while a request uses it.
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

use core::mem;

use rdma_bindings as b;

use crate::{
    device::Device,
    small_vec::SmallVec, //
};

/// The owner of the memory of a request: mappings, and bytes of its own. Dropping it unmaps them, in any
/// context.
///
/// # Invariants
///
/// Each entry of `mapped` is a mapping for `device` in this direction, which only this type undoes.
pub struct Buffer {
    /// [`None`] if nothing has to be mapped.
    device: Option<ARef<Device>>,
    mapped: SmallVec<Mapping>,
    direction: DataDirection,
    /// Freed after the memory has been unmapped.
    bytes: KVec<u8>,
}

/// Where something is for the device, and how long it is.
struct Mapping {
    address: u64,
    len: usize,
}

impl Buffer {
    /// Creates a buffer with capacity for `count` mappings. The device writes to them if `written`.
    pub(crate) fn new(
        device: &ARef<Device>,
        count: usize,
        written: bool,
        flags: Flags,
    ) -> Result<Self> {
        let maps = !device.is_software();
        // INVARIANT: There is no mapping.
        Ok(Self {
            device: maps.then(|| device.clone()),
            mapped: SmallVec::with_capacity(if maps { count } else { 0 }, flags)?,
            direction: match written {
                true => DataDirection::FromDevice,
                false => DataDirection::ToDevice,
            },
            bytes: KVec::new(),
        })
    }

    /// Creates a buffer of bytes that no device reads.
    pub(crate) fn unmapped(bytes: KVec<u8>) -> Self {
        // INVARIANT: There is no mapping.
        Self {
            device: None,
            mapped: SmallVec::new(),
            direction: DataDirection::ToDevice,
            bytes,
        }
    }

    /// Keeps bytes until the memory has been unmapped.
    pub(crate) fn keep(&mut self, bytes: KVec<u8>) {
        self.bytes = bytes;
    }

    /// Maps memory, and returns its address for the device.
    ///
    /// # Safety
    ///
    /// The memory must have pages, and stay valid until this is dropped.
    pub(crate) unsafe fn map(&mut self, phys: u64, len: u64) -> Result<u64> {
        let Some(device) = &self.device else {
            // SAFETY: The memory has pages by the function's contract.
            return Ok(unsafe { b::rdma_helper_virtual_address(phys) });
        };
        let len = usize::try_from(len)?;
        let mut address = 0;
        // SAFETY: `device` is held. The memory has pages by the function's contract.
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

    /// Leaves the memory mapped and allocated, because the device may use it at any time. Releases the
    /// reference to the device, which would prevent its removal.
    pub(crate) fn leak(mut self) {
        drop(self.device.take());
        mem::forget(mem::take(&mut self.bytes));
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
