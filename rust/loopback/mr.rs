// SPDX-License-Identifier: GPL-2.0

//! Regions of the provider "loop".

use crate::{
    exported::{
        KeyGuard,
        KeyReservation,
        Keys,
        Piece,
        Region,
        MAPPED, //
    },
    mode::Mode, //
};
use core::any::Any;
use kernel::page::PAGE_SIZE;
use kfabric::{
    cpu_memory::CpuMemory,
    prelude::*,
    provider::{
        self,
        Bindings, //
    },
    MrRequest,
    RemotePiece, //
};

/// Where peers find the first page of a region under `KFI_MR_VIRT_ADDR`: not where it is in memory.
const BASE: u64 = 1 << 32;

/// Number of different bases, a page apart: the address of one region seldom leads into another.
const BASES: u64 = 1 << 16;

/// A region.
///
/// A region's keys are taken when it is created, so that nobody else gets them meanwhile, but lead
/// to nothing before it is enabled.
pub(crate) struct Mr {
    keys: Arc<Keys>,
    mode: Mode,
    region: Arc<Region>,
    first: Option<KeyGuard>,
    /// The keys of the other pieces, and what each of them reaches.
    more: KVec<(KeyGuard, RemotePiece)>,
    piece: RemotePiece,
}

/// Checks a key that an application asks for.
fn requested(key: u64) -> Result<u64, Refusal> {
    match key & MAPPED {
        0 => Ok(key),
        _ => Err(Refusal::new(Errno::EKEYREJECTED, c"key is out of range").value(key)),
    }
}

impl Mr {
    /// Takes the memory of a request, and keys for it. May sleep.
    pub(crate) fn new(
        keys: Arc<Keys>,
        mode: Mode,
        request: &MrRequest<'_>,
    ) -> Result<Self, Refusal> {
        let key = if mode.has(Mode::PROV_KEY) {
            keys.choose()
        } else {
            requested(request.requested_key())?
        };
        let extent = CpuMemory::new(request)?;
        let mut cuts = KVec::new();
        if mode.pieces() > 1 {
            cut(&extent, mode.pieces(), &mut cuts)?;
        }
        let bytes = extent.bytes();
        let end = cuts.first().copied().unwrap_or(bytes);
        let base = base(mode, key, extent.page_offset());
        let region = Region::new(request.auth_key().unwrap_or(&[]), extent)?;
        let piece = RemotePiece {
            key,
            base,
            len: end,
        };
        let first = Some(hold(&keys, &region, 0, piece)?);
        let mut mr = Self {
            keys,
            mode,
            region,
            first,
            more: KVec::with_capacity(cuts.len(), GFP_KERNEL)?,
            piece,
        };
        for (index, &at) in cuts.iter().enumerate() {
            let end = cuts.get(index + 1).copied().unwrap_or(bytes);
            mr.add(at, end - at)?;
        }
        Ok(mr)
    }

    /// Adds a piece with a key of its own.
    fn add(&mut self, at: u64, len: u64) -> Result<(), Refusal> {
        let key = self.keys.choose();
        let base = base(self.mode, key, at);
        let piece = RemotePiece { key, base, len };
        let held = hold(&self.keys, &self.region, at, piece)?;
        Ok(self.more.push((held, piece), GFP_KERNEL)?)
    }
}

/// Takes a key for a piece of a region.
fn hold(
    keys: &Arc<Keys>,
    region: &Arc<Region>,
    at: u64,
    piece: RemotePiece,
) -> Result<KeyGuard, Refusal> {
    let leads_to = Piece {
        region: region.clone(),
        at,
        base: piece.base,
        len: piece.len,
    };
    Keys::insert(keys, KeyReservation::new()?, piece.key, leads_to)
}

/// Returns the address for peers of a piece that begins at `offset`. It is 0 if peers count from 0.
/// Otherwise it keeps the offset in a page.
fn base(mode: Mode, key: u64, offset: u64) -> u64 {
    let page = widen(PAGE_SIZE);
    if mode.has(Mode::VIRT_ADDR) {
        BASE + (key % BASES) * page + offset % page
    } else {
        0
    }
}

/// Finds the offsets of the pieces behind the first one: where extents begin, `max - 1` at most.
fn cut(extent: &CpuMemory, max: usize, cuts: &mut KVec<u64>) -> Result<(), Refusal> {
    let runs = extent.starts().count();
    let every = runs.div_ceil(max).max(1);
    for at in extent.starts().step_by(every).skip(1) {
        cuts.push(at, GFP_KERNEL)?;
    }
    Ok(())
}

impl provider::MrOps for Mr {
    fn enable(&mut self, bindings: &Bindings) -> Result<provider::Keys, Refusal> {
        self.region.enable(bindings)?;
        Ok(provider::Keys {
            key: self.piece.key,
            base: self.piece.base,
            desc: if self.mode.has(Mode::LOCAL) {
                // Not 0, which says that none is needed.
                usize::try_from(self.piece.key | MAPPED).unwrap_or(usize::MAX)
            } else {
                0
            },
            whole: self.more.is_empty(),
        })
    }

    fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal> {
        if self.first.is_none() {
            return Err(Refusal::new(Errno::ENODEV, c"the region has been ended"));
        }
        let mut pieces = KVec::with_capacity(1 + self.more.len(), GFP_KERNEL)?;
        pieces.push(self.piece, GFP_KERNEL)?;
        for (_, piece) in self.more.iter() {
            pieces.push(*piece, GFP_KERNEL)?;
        }
        Ok(pieces)
    }

    fn refresh(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        self.region.refresh(CpuMemory::new(request)?)
    }

    /// Takes out the keys, so that no peer finds the region, and waits for the peers inside.
    fn end(&mut self) {
        self.first = None;
        self.more.clear();
        self.region.close();
    }

    fn close(&mut self) -> Result<(), Refusal> {
        self.end();
        Ok(())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
