// SPDX-License-Identifier: GPL-2.0

//! Memory that peers reach.

use core::ops::Range;
use kernel::{
    dma::DataDirection,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};
use rdma::{
    access::AccessFlags,
    in_flight::{
        InFlight,
        InFlightRef, //
        StableRef,
    },
    mr::Kind,
    sg::{
        Run,
        SgBuilder, //
    },
    wr::Remote,
    FastMr,
    Gather,
    RegQp,
    SmallVec,
    ValidMr, //
};

mod c {
    use kernel::ffi::c_void;

    unsafe extern "C" {
        pub(super) fn kfi_cm_phys(address: *mut c_void) -> u64;
    }
}

/// How many bytes a cell has.
const CELL: usize = size_of::<u64>();

/// Memory that is registered, in cells, which others may change at any time.
pub(crate) struct Memory {
    // Goes before its memory.
    region: InFlight<ValidMr>,
    cells: KVec<Atomic<u64>>,
}

impl Memory {
    /// Registers `bytes` bytes.
    pub(crate) fn new(on: &Arc<RegQp>, bytes: usize, access: AccessFlags) -> Result<Self> {
        let mut cells = KVec::with_capacity(bytes / CELL, GFP_KERNEL)?;
        for _ in 0..bytes / CELL {
            cells.push(Atomic::new(0), GFP_KERNEL)?;
        }
        // SAFETY: The address is one of memory from kmalloc().
        let phys = unsafe { c::kfi_cm_phys(cells.as_mut_ptr().cast()) };
        // SAFETY: The memory is contiguous, and has pages. It goes after the region.
        let run = unsafe { Run::new(phys, u64::try_from(bytes)?) };
        let device = on.pd().device();
        let mut list = SgBuilder::new(device, 1, None)?;
        list.push(&run)?;
        let list = list.map(device, DataDirection::Bidirectional)?;
        let pages = u32::try_from(bytes.div_ceil(4096) + 1)?;
        let mut prepared = FastMr::alloc(on.pd(), Kind::Pages, pages)?
            .map(list, access)
            .map_err(|failed| failed.error)?;
        prepared.set_base(1 << 40)?;
        let mut region = None;
        on.register_all(SmallVec::one(prepared), |valid| region = Some(valid))
            .map_err(|failed| failed.error)?;
        Ok(Self {
            region: InFlight::new(region.ok_or(EINVAL)?)?,
            cells,
        })
    }

    /// Lends the region to a request.
    pub(crate) fn lend(&self) -> InFlightRef<ValidMr> {
        self.region.lend()
    }

    /// Lends a part of the region to a request.
    pub(crate) fn part(&self, part: Range<u64>) -> Result<Gather<InFlightRef<ValidMr>>> {
        Gather::part(self.lend(), part)
    }

    /// Returns the address and key that a peer needs, from `offset` bytes on.
    pub(crate) fn remote(&self, offset: u64) -> Remote {
        let loan = self.lend();
        Remote {
            address: loan.get().iova() + offset,
            key: loan.get().rkey(),
        }
    }

    /// Fills it with what `seed` makes.
    pub(crate) fn fill(&self, seed: u64) {
        for (i, cell) in self.cells.iter().enumerate() {
            cell.store(pattern(seed, i), Relaxed);
        }
    }

    /// Returns how many cells in a range differ from the pattern of `seed`, shifted by `shift`
    /// cells.
    pub(crate) fn differ(&self, range: Range<usize>, seed: u64, shift: usize) -> usize {
        let cells = self.cells.get(range.clone()).unwrap_or_default();
        cells
            .iter()
            .zip(range)
            .filter(|(cell, i)| cell.load(Relaxed) != pattern(seed, i.wrapping_add(shift)))
            .count()
    }

    /// Returns a cell.
    pub(crate) fn cell(&self, i: usize) -> u64 {
        self.cells.get(i).map_or(0, |cell| cell.load(Relaxed))
    }

    /// Sets a cell.
    pub(crate) fn set(&self, i: usize, to: u64) {
        if let Some(cell) = self.cells.get(i) {
            cell.store(to, Relaxed);
        }
    }
}

/// Returns the pattern of a cell. Each cell differs from the others, and each byte from its
/// neighbours as far as possible.
fn pattern(seed: u64, i: usize) -> u64 {
    let mixed = (seed << 32 ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}
