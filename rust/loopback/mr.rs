// SPDX-License-Identifier: GPL-2.0

//! Regions of the provider "loop", and the mode bits of their domain.

use crate::{
    exported::{
        KeyGuard,
        KeyReservation,
        Keys,
        Region, //
    },
    *, //
};
use kernel::page::PAGE_SIZE;
use kfabric::{
    num::signed,
    provider,
    raw_key_size, //
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

/// The memory registration mode that a domain was opened with. Bits that mean nothing here have
/// been agreed to by the consumer without need, and are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(i32);

macro_rules! modes {
    ($($(#[$doc:meta])* $name:ident = $c:ident;)*) => {
        impl Mode {
            $($(#[$doc])* pub(crate) const $name: Self = Self(signed(kfi_bindings::$c));)*
            const ALL: i32 = 0 $(| Self::$name.0)*;
        }
    };
}

modes! {
    /// Local buffers are registered too, and have a descriptor.
    LOCAL = KFI_MR_LOCAL;
    /// Keys go to peers as raw bytes.
    RAW = KFI_MR_RAW;
    /// Peers count from an address of the region's own, not from 0.
    VIRT_ADDR = KFI_MR_VIRT_ADDR;
    /// The provider chooses keys.
    PROV_KEY = KFI_MR_PROV_KEY;
    /// Regions that are counted are bound before they are enabled.
    RMA_EVENT = KFI_MR_RMA_EVENT;
    /// Regions are bound to an endpoint before they are enabled.
    ENDPOINT = KFI_MR_ENDPOINT;
}

/// Maximum number of pieces of a region under [`Mode::RAW`]. No device needs any. Consumers can
/// test raw keys of several pieces with it.
pub(crate) const MAX_PIECES: usize = 16;

impl Mode {
    /// No bit: keys by the application, addresses from 0.
    pub(crate) const NONE: Self = Self(0);

    /// The offers, in this order: the first that a consumer agrees to requires least of it.
    pub(crate) const OFFERS: [Self; 5] = [
        Self::NONE,
        Self::VIRT_ADDR.and(Self::PROV_KEY),
        Self::RMA_EVENT,
        Self::ENDPOINT,
        Self::RAW.and(Self::VIRT_ADDR).and(Self::PROV_KEY),
    ];

    /// Takes the `mr_mode` of a domain's attributes.
    pub(crate) const fn new(bits: i32) -> Self {
        Self(bits & Self::ALL)
    }

    /// Returns the bits of both.
    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the bits as C has them.
    pub(crate) const fn bits(self) -> i32 {
        self.0
    }

    /// Returns whether all bits of `other` are set.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the maximum number of pieces of a region. It is more than 1 if the provider may
    /// choose keys and the consumer takes raw ones.
    pub(crate) const fn pieces(self) -> usize {
        if self.has(Self::RAW.and(Self::PROV_KEY)) {
            MAX_PIECES
        } else {
            1
        }
    }

    /// Returns the size of a key in bytes.
    pub(crate) fn key_size(self) -> usize {
        if self.has(Self::RAW) {
            raw_key_size(self.pieces())
        } else {
            size_of::<u64>()
        }
    }

    /// Returns the limits of a region.
    pub(crate) const fn limits(self) -> MrLimits {
        MrLimits {
            regions: 1 << 24,
            segments: 1 << 16,
            pages: u64::MAX,
            bytes: 1 << 46,
            gaps: true,
            auth_keys: true,
            refresh: Ok(()),
            // The processor copies.
            peer_to_peer: false,
            pieces: self.pieces(),
            by_entries: false,
            leases: true,
            flags: kfi_bindings::KFI_RMA_EVENT,
        }
    }
}

#[kernel::macros::kunit_tests(kfi_loop_mode)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_kept_that_mean_something() {
        assert_eq!(Mode::new(-1), Mode(Mode::ALL));
        assert_eq!(Mode::new(1), Mode::NONE);
        assert!(Mode::new(-1).has(Mode::LOCAL.and(Mode::RAW)));
        assert!(!Mode::RAW.has(Mode::LOCAL.and(Mode::RAW)));
    }

    #[test]
    fn pieces_need_raw_keys_by_the_provider() {
        assert_eq!(Mode::RAW.pieces(), 1);
        assert_eq!(Mode::PROV_KEY.pieces(), 1);
        assert_eq!(Mode::RAW.and(Mode::PROV_KEY).pieces(), MAX_PIECES);
    }
}
