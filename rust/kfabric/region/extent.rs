// SPDX-License-Identifier: GPL-2.0

//! The memory of a region, for providers that reach it by the processor.

mod building;
mod kunit;

use self::building::{
    Building,
    ExtentStart, //
};
use crate::{
    region::{
        access::Access,
        atomic::{
            AtomicOp,
            WORD, //
        },
        lease::Tenant,
        memory::MappedAs,
        request::MrRequest,
        transfer::PeerBuffer, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};
use kfi_bindings::{
    kfi_helper_atomic_op_KFI_HELPER_ATOMIC_ADD as ATOMIC_ADD,
    kfi_helper_atomic_op_KFI_HELPER_ATOMIC_COMPARE_SWAP as ATOMIC_COMPARE_SWAP,
    kfi_helper_atomic_op_KFI_HELPER_ATOMIC_WRITE as ATOMIC_WRITE, //
};

/// All bytes of a region in their order, wherever they are in memory.
///
/// It may be kept, and copied from and to, for as long as the region is open: so long the consumer
/// leaves the memory where it is. The core knows of it: once the region has been closed, or refreshed
/// by a newer one, or if the registration fails, nothing is copied any more. Closing waits for copies
/// that are under way.
///
/// # Invariants
///
/// The runs follow each other in the order of `at`, the first one at 0, and each ends where the
/// next one begins, or at `len`. Their physical addresses are memory that may be registered with
/// the rights of the request, and stays where it is while somebody is inside `tenant`.
pub struct CpuMemory {
    // Most regions are one run, which needs no memory of its own.
    first: ExtentStart,
    rest: KVVec<ExtentStart>,
    len: u64,
    access: Access,
    tenant: Tenant,
}

impl CpuMemory {
    /// Takes the memory of a request. `EFAULT` at memory that may not be registered, `EINVAL` at
    /// an address in a scatterlist that is none of this machine's memory, and if the provider doesn't
    /// [say](crate::MrLimits::leases) that it keeps any. May sleep.
    pub fn new(request: &MrRequest<'_>) -> Result<Self, Refusal> {
        let mut building = Building::default();
        let mut memory = request.extents_at(MappedAs::Physical);
        while let runs @ [_, ..] = memory.next_extents(u64::MAX)? {
            for run in runs {
                building.add(run.phys(), run.bytes())?;
            }
        }
        let (first, rest, len) = building.done()?;
        // INVARIANT: `building` joined run to run, and the memory was checked before it was added.
        // The consumer keeps it while the region is open, see kfi_mr(3), and so long the core lets
        // tenants in.
        Ok(Self {
            first,
            rest,
            len,
            access: request.access(),
            tenant: request.tenant()?,
        })
    }

    /// Its length in bytes; not 0.
    pub const fn bytes(&self) -> u64 {
        self.len
    }

    /// Where in its page the first byte is.
    pub fn page_offset(&self) -> u64 {
        self.first.phys % widen(PAGE_SIZE)
    }

    /// Where in the region each run of memory begins.
    pub fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        (0..=self.rest.len()).filter_map(|index| self.run(index).map(|run| run.at))
    }

    fn run(&self, index: usize) -> Option<ExtentStart> {
        match index.checked_sub(1) {
            None => Some(self.first),
            Some(index) => self.rest.get(index).copied(),
        }
    }

    /// Would a copy of so many bytes be refused?
    pub fn check(&self, at: u64, len: u64, needs: Access) -> Result<(), Refusal> {
        if !self.access.has_any(needs) {
            return Err(Refusal::new(
                Errno::EACCES,
                c"the region was registered without that right",
            ));
        }
        match at.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(Refusal::new(Errno::EINVAL, c"beyond the region").value(at)),
        }
    }

    /// Copies between the bytes of the region from `at` on and a peer's buffer, in the direction of
    /// the transfer. Others may be copying the same bytes meanwhile. Any context.
    ///
    /// `EACCES` if the region was registered without that right or isn't there any more, `EINVAL` if
    /// it goes beyond the region; then nothing is copied.
    pub fn copy(&self, at: u64, transfer: PeerBuffer<'_>) -> Result<(), Refusal> {
        self.check(at, widen(transfer.len()), transfer.needs())?;
        let gone = Refusal::new(Errno::EACCES, c"the region is not there any more");
        let _inside = self.tenant.enter().ok_or(gone)?;
        let (mut at, mut left) = (at, transfer);
        // The run that has `at` is the last one that doesn't begin behind it.
        let mut index = self.rest.partition_point(|run| run.at <= at);
        while !left.is_empty() {
            let run = self.run(index).ok_or(Errno::EINVAL)?;
            let run_end = self.run(index + 1).map_or(self.len, |next| next.at);
            let here = usize::try_from(run_end - at).unwrap_or(usize::MAX);
            let (part, rest) = left.split_at(here);
            // SAFETY: By the invariant, so many bytes of the run are memory that may be registered
            // with a right that was just found to be the transfer's, and that stays meanwhile.
            unsafe { part.copy(run.phys + (at - run.at)) };
            (at, index, left) = (run_end, index + 1, rest);
        }
        Ok(())
    }

    /// Does something with the eight bytes of the region from `at` on, at once, and returns what they
    /// were before. Any context.
    ///
    /// # Errors
    ///
    /// Then nothing is done:
    ///
    /// - `EACCES`: no peer may write to the region, or it isn't there any more.
    /// - `EINVAL`: beyond the region, or not where the processor could do that.
    pub fn atomic(&self, at: u64, what: AtomicOp) -> Result<u64, Refusal> {
        let word = widen(WORD);
        self.check(at, word, Access::REMOTE_WRITE)?;
        let gone = Refusal::new(Errno::EACCES, c"the region is not there any more");
        let _inside = self.tenant.enter().ok_or(gone)?;
        let index = self.rest.partition_point(|run| run.at <= at);
        let run = self.run(index).ok_or(Errno::EINVAL)?;
        let run_end = self.run(index + 1).map_or(self.len, |next| next.at);
        let phys = run.phys + (at - run.at);
        if phys % word != 0 || run_end - at < word {
            let refusal = Refusal::new(Errno::EINVAL, c"no word of the processor's");
            return Err(refusal.value(at));
        }
        let (op, operand, expected) = match what {
            AtomicOp::Write(value) => (ATOMIC_WRITE, value, 0),
            AtomicOp::Add(by) => (ATOMIC_ADD, by, 0),
            AtomicOp::CompareSwap { expected, new } => (ATOMIC_COMPARE_SWAP, new, expected),
        };
        // SAFETY: By the invariant, all of the run is memory that may be registered for being written
        // to, as was just found to be so, and that stays meanwhile. The word is aligned, and in it.
        Ok(unsafe { kfi_bindings::kfi_helper_atomic(phys, op, operand, expected) })
    }
}
