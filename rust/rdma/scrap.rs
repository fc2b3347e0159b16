// SPDX-License-Identifier: GPL-2.0

//! Memory for what comes back and nobody wants.

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use core::iter;

use rdma_bindings as b;

use crate::{
    buffer::{
        Buffer,
        Piece, //
    },
    gather::Gather,
    pd::Pd, //
};

/// Eight bytes that a device writes to, and nobody reads.
pub type Scrap = (Buffer, KBox<u64>);

impl Gather<Scrap> {
    /// Eight bytes for what an atomic operation brings back, which nobody gets. Doesn't sleep if `flags`
    /// don't allow it.
    ///
    /// # Errors
    ///
    /// - `EIO` if they can't be mapped.
    /// - `ENOMEM`
    pub fn scrap(pd: &Pd, flags: Flags) -> Result<Self> {
        let mut word = KBox::new(0, flags)?;
        // SAFETY: It is memory of the allocator's, which is in the linear map.
        let phys = unsafe { b::rdma_helper_physical_address((&raw mut *word).cast()) };
        let piece = Piece::Memory { phys, len: 8 };
        // SAFETY: The bytes are freed after what keeps them mapped.
        let memory = unsafe { Gather::lent(pd, iter::once(piece), true, flags) }?;
        Ok(memory.kept_by(|mapped| (mapped, word)))
    }
}
