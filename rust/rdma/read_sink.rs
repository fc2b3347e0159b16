// SPDX-License-Identifier: GPL-2.0

//! Memory that a read goes to by a key that the peer sees, as over iWARP.
//!
//! The answer to a read names the key of its sink, by which the peer writes. An iWARP device takes no key
//! for that which is good for all memory (`rdma_rw_force_mr()`). So the sink is registered for the time of
//! the read: a registration goes ahead of the read, and an invalidation, which is the fence, follows it.
//!
//! ```text
//!   REG_MR ... -> RDMA_READ -> LOCAL_INV (fenced) ...
//! ```
//!
//! The first ones tell of an error only, so all have ended when the last invalidation has.

use crate::{
    access::Access,
    cm::Chain,
    gather::{
        Buffer,
        Gather, //
    },
    in_flight::{
        InFlight,
        InFlightRef,
        StableRef, //
    },
    prelude::*,
    request::{
        CompletedRequest,
        CompletionHandler,
        Request, //
    },
    segments::Segments,
    wc::DeviceId,
    wr::{
        Remote,
        SendWr,
        WorkRequest, //
    }, //
};
use core::mem::MaybeUninit;
use kernel::page::PAGE_SIZE;
use rdma_bindings as b;

/// Where the peer finds the first page of any sink: not where it is in memory.
const BASE: u64 = 1 << 32;

/// Memory that a read goes to, with a region for each segment that has none.
///
/// # Invariants
///
/// `memory` has the segments of all `regions` mapped for the device of their domain. The device may use
/// both while a region is neither `IDLE`, nor `FREE` by a fence.
pub struct Sink {
    regions: SmallVec<Region>,
    segments: Segments,
    fence: Fence,
    /// The requests were leaked, with their references.
    lost: Atomic<bool>,
    /// A region that does not fit. [`Sink::end`] gives it back.
    unfit: Option<FastMr>,
    /// [`None`] once it is unmapped, or leaked.
    memory: Option<Buffer>,
}

/// Returns how many pages `len` bytes at `address` lie in.
fn pages(address: u64, len: u32) -> u64 {
    // CAST: No page is that big.
    const SIZE: u64 = PAGE_SIZE as u64;
    (address % SIZE + u64::from(len)).div_ceil(SIZE)
}

struct Region {
    mr: PreparedMr<Segment>,
    standing: Atomic<u32>,
}

/// No request names it.
const IDLE: u32 = 0;
/// The device may register it, or have registered it.
const GIVEN: u32 = 1;
/// The device has invalidated it.
const FREE: u32 = 2;

impl Region {
    /// Checks whether the device has finished using the region, by this fence.
    fn is_free(&self, fence: Fence) -> bool {
        match self.standing.load(Acquire) {
            IDLE => true,
            FREE => fence.invalidates_on(&self.mr.pd().device),
            _ => false,
        }
    }
}

impl Sink {
    /// Creates a sink for `memory`. Calls `take` for a region for each segment that has the key of
    /// the domain. `fence` ends the use of these regions. Any context.
    ///
    /// # Errors
    ///
    /// An error comes with the sink, which the caller must [end](Sink::end):
    ///
    /// - `EAGAIN` if there is no region.
    /// - `EINVAL` if a segment is too long for a region.
    /// - `ENOMEM`, or an error of the driver.
    pub fn new(
        pd: &Pd,
        memory: Gather<Buffer>,
        fence: Fence,
        take: impl FnMut() -> Option<FastMr>,
    ) -> Result<Self, (Error, Self)> {
        let Gather {
            segments,
            kept: memory,
            ..
        } = memory;
        // INVARIANT: There is no region.
        let mut this = Self {
            regions: SmallVec::new(),
            segments,
            fence,
            lost: Atomic::new(false),
            unfit: None,
            memory: Some(memory),
        };
        match this.fill(pd, take) {
            Ok(()) => Ok(this),
            Err(error) => Err((error, this)),
        }
    }

    fn fill(&mut self, pd: &Pd, mut take: impl FnMut() -> Option<FastMr>) -> Result {
        let (key, device) = (pd.local_key(), DeviceId::of(&pd.device));
        let bare = |segment: &&mut b::ib_sge| segment.lkey == key;
        let count = self.segments.iter_mut().filter(bare).count();
        self.regions = SmallVec::with_capacity(count, GFP_ATOMIC)?;
        for segment in self.segments.iter_mut().filter(bare) {
            let list = Segment {
                device,
                address: segment.addr,
                len: segment.length,
            };
            let mr = take().ok_or(EAGAIN)?;
            // Not every driver counts the pages of memory that is contiguous.
            if pages(segment.addr, segment.length) > mr.max_pages().into() {
                self.unfit = Some(mr);
                return Err(EINVAL);
            }
            let mapped = mr.map(list, Access::LocalWrite | Access::RemoteWrite);
            let mut mr = mapped.map_err(|failed| {
                self.unfit = Some(failed.mr);
                failed.error
            })?;
            let based = mr.set_base(BASE);
            mr.next_key();
            (segment.addr, segment.lkey) = (mr.iova(), mr.lkey());
            // INVARIANT: No request names it, and the memory has its segment mapped.
            self.regions.push_reserved(Region {
                mr,
                standing: Atomic::new(IDLE),
            });
            based?;
        }
        Ok(())
    }

    /// Gets ready to lend it to requests, or returns it if there is no memory. Any context.
    pub fn lend(self) -> Result<InFlight<Self>, Self> {
        InFlight::try_new(self, GFP_ATOMIC)
    }

    /// Checks whether [ending](Self::end) it does not sleep. Any context.
    pub fn is_free(&self) -> bool {
        !self.lost.load(Acquire) && self.regions.iter().all(|region| region.is_free(self.fence))
    }

    /// Unmaps the memory. First it deregisters each region that the device may still use. Passes
    /// each other region to `back`, and `None` for each region that was deregistered or leaked.
    /// Returns true if the memory may be freed. Sleeps unless the sink [is free](Self::is_free).
    pub fn end(mut self, back: impl FnMut(Option<FastMr>)) -> bool {
        self.finish(back)
    }

    fn finish(&mut self, mut back: impl FnMut(Option<FastMr>)) -> bool {
        if let Some(mr) = self.unfit.take() {
            back(Some(mr));
        }
        let (fence, lost) = (self.fence, self.lost.load(Acquire));
        let mut stuck = false;
        mem::take(&mut self.regions).consume(|region| {
            back(if lost {
                region.mr.leak();
                stuck = true;
                None
            } else if region.is_free(fence) {
                // The device hasn't known it since it was taken, or the fence was its last use.
                Some(region.mr.unmap().0)
            } else {
                stuck |= region.mr.abandon().is_none();
                None
            });
        });
        match self.memory.take() {
            Some(memory) if stuck => memory.leak(),
            memory => drop(memory),
        }
        !stuck
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.finish(drop);
    }
}

impl InFlight<Sink> {
    /// Puts the requests of a read on a chain; `fenced` if it waits for the reads before it. Each request
    /// has a `then` of its own. Any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or those of [`Chain::push`]. Some of the requests may be on the chain then.
    pub fn read<T: CompletionHandler<WorkRequest<InFlightRef<Sink>>>>(
        &self,
        chain: &mut Chain,
        from: Remote,
        fenced: bool,
        mut then: impl FnMut() -> T,
    ) -> Result {
        let sink = self.get();
        let mut request = |step, request| {
            let (sink, then) = (self.lend(), then());
            Request::new(request, SinkHandler { sink, step, then }, GFP_ATOMIC)
        };
        for (index, region) in sink.regions.iter().enumerate() {
            let register = WorkRequest::new(SendWr::register(&region.mr), self.lend());
            let pushed = chain.push_unsignaled(request(Step::Register(index), register)?);
            pushed.map_err(|not| not.error)?;
            region.standing.store(GIVEN, Release);
        }
        let mut segments = Segments::with_capacity(sink.segments.len(), GFP_ATOMIC)?;
        for &b::ib_sge { addr, length, lkey } in sink.segments.iter() {
            segments.push(b::ib_sge { addr, length, lkey })?;
        }
        let read = WorkRequest::read_into(self.lend(), segments, from);
        let read = if fenced { read.fenced() } else { read };
        let pushed = chain.push_unsignaled(request(Step::Read, read)?);
        pushed.map_err(|not| not.error)?;
        for (index, region) in sink.regions.iter().enumerate() {
            // Behind the read's end, which the device doesn't wait for by itself.
            let invalidate = SendWr::invalidate(region.mr.rkey());
            let invalidate = WorkRequest::new(invalidate, self.lend()).fenced();
            let request = request(Step::Invalidate(index), invalidate)?;
            let pushed = match index + 1 == sink.regions.len() {
                true => chain.push(request),
                false => chain.push_unsignaled(request),
            };
            pushed.map_err(|not| not.error)?;
        }
        Ok(())
    }

    /// Ends the sink when its requests have ended, as [`Sink::end`]; also one that was lent to none.
    pub fn end(self, back: impl FnMut(Option<FastMr>)) -> bool {
        let sink = match self.get().lost.load(Acquire) {
            // SAFETY: A request was lost, so the queue pair could not be destroyed: each of its requests
            // was leaked, with its loan, or is about to be.
            true => unsafe { self.take_lost() },
            false => self.take_back(),
        };
        sink.end(back)
    }
}

/// Notes how a request of a sink has ended, before `then` is told.
struct SinkHandler<T> {
    sink: InFlightRef<Sink>,
    step: Step,
    then: T,
}

/// The step of a read that a request carries out. Regions are named by index.
enum Step {
    Register(usize),
    Read,
    Invalidate(usize),
}

impl<T: CompletionHandler<WorkRequest<InFlightRef<Sink>>>>
    CompletionHandler<WorkRequest<InFlightRef<Sink>>> for SinkHandler<T>
{
    fn ended(self, ended: CompletedRequest<'_>) {
        let Self { sink, step, then } = self;
        let set = |index: usize, standing| {
            if let Some(region) = sink.get().regions.get(index) {
                region.standing.store(standing, Release);
            }
        };
        match (step, &ended.result) {
            (_, Err(WrError::Lost)) => sink.get().lost.store(true, Release),
            // It never came to the device.
            (Step::Register(index), Err(WrError::Post(_))) => set(index, IDLE),
            // The requests before it have succeeded, or this one would have been flushed.
            (Step::Invalidate(index), Ok(_)) => set(index, FREE),
            _ => (),
        }
        // Before anybody ends the sink.
        drop(sink);
        then.ended(ended);
    }
}

/// A segment as a list of one entry.
///
/// # Invariants
///
/// The `len` bytes at `address` are mapped for `device` while a [`Sink`] has the list in a region that the
/// device may use.
struct Segment {
    device: DeviceId,
    address: u64,
    len: u32,
}

// SAFETY: The entry is mapped for the device while a sink's region is in use, by the type
// invariant. The memory stays mapped as long by the invariant of `Sink`. Only the sink maps it.
unsafe impl DmaList for Segment {
    fn is_for(&self, device: &Device) -> bool {
        DeviceId::of(device) == self.device
    }

    fn with_raw<T>(&self, f: impl FnOnce(*mut bindings::scatterlist) -> T) -> T {
        let mut entry = MaybeUninit::uninit();
        // SAFETY: There is room for an entry.
        unsafe { b::rdma_helper_sg_single(entry.as_mut_ptr(), self.address, self.len) };
        f(entry.as_mut_ptr())
    }

    fn count(&self) -> u32 {
        1
    }
}

#[kernel::macros::kunit_tests(rdma_sink)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_segment() -> Result {
        let size = u32::try_from(PAGE_SIZE)?;
        let start = 3 * u64::from(size);
        assert_eq!(pages(start, 1), 1);
        assert_eq!(pages(start, size), 1);
        assert_eq!(pages(start + 1, size), 2);
        assert_eq!(pages(start - 1, 2 * size), 3);
        Ok(())
    }
}
