// SPDX-License-Identifier: GPL-2.0

//! Regions that are filled with memory in any context, without an allocation, and registered on the queue pair of an
//! endpoint.
//!
//! Opening one allocates all that a registration takes: the device region, the scatterlist, the request and its state.

use super::{
    conn::Signal,
    done::RegionFailure,
    regions::inner,
    Inner, //
};
use crate::{
    lists,
    prelude::*,
    region::{
        revoke,
        BASE, //
    },
    rights::Rights,
    stock::MrStock,
    work, //
};
use kfabric::{
    provider::reuse::ReusableMrOps,
    EpCore,
    EpPart, //
};
use rdma::{
    endpoint_mr::Settled,
    reusable_mr::ReusableMr,
    sg::SpareTable, //
};

/// A region that is filled and emptied again and again.
pub(crate) struct ReusableRegion {
    link: Arc<Link>,
    /// The endpoint's [`Inner`].
    endpoint: Arc<dyn EpPart>,
    mr: ReusableMr<Memory, RegionFailure>,
    stock: Arc<MrStock>,
    /// The entries of a list of `pages` pages.
    spare: SpareTable,
    pages: u32,
    rights: Rights,
    fence: Fence,
}

impl ReusableRegion {
    /// Opens a region for up to `pages` pages, bound to an endpoint. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the endpoint is not enabled.
    /// - `ENODEV`: the device is gone.
    /// - `E2BIG`: `pages` exceeds 32 bits.
    /// - `ENOSPC`: the device has no more regions.
    /// - `ENOMEM`
    pub(crate) fn open(
        link: &Arc<Link>,
        endpoint: &Arc<EpCore>,
        pages: usize,
    ) -> Result<Self, Refusal> {
        let inside = link.gate.enter().ok_or(driver_errors::gone())?;
        let (resources, work) = (inside.get(), work::queues().ok_or(driver_errors::gone())?);
        let pages = u32::try_from(pages).map_err(|_| Errno::E2BIG)?;
        let not_enabled = Refusal::new(Errno::ENOTCONN, c"the endpoint is not enabled");
        let part = endpoint.enter().and_then(|inside| inside.part());
        let part = part.ok_or(not_enabled)?;
        let at = inner(&*part).ok_or(not_enabled)?;
        let device = resources.pd.device();
        // A region that the peer's invalidation frees must keep its rights: one is for reading, one
        // for writing.
        let count = match at.frees_by_peer() {
            true => 2,
            false => 1,
        };
        let stock = MrStock::new(&resources.pd, work.pools, pages, count)
            .map_err(driver_errors::no_region)?;
        let conn = || RegionFailure(at.conn.clone());
        let mr = ReusableMr::new(device, conn).map_err(driver_errors::no_region)?;
        Ok(Self {
            link: link.clone(),
            mr,
            stock,
            spare: SpareTable::alloc(pages).map_err(driver_errors::not_mapped)?,
            pages,
            rights: resources.rights,
            fence: resources.fence,
            endpoint: part,
        })
    }

    /// Maps the memory of a request to a device region. After an error, the device region is back in the stock. Any
    /// context.
    fn prepare(&self, request: &MrRequest<'_>) -> Result<PreparedMr<Memory>, Refusal> {
        let shape = request.shape();
        if shape.pages() > u64::from(self.pages) {
            let why = c"more pages than the region was opened for";
            return Err(Refusal::new(Errno::E2BIG, why).value(shape.pages()));
        }
        if let Some(at) = shape.gap() {
            return Err(Refusal::new(Errno::EINVAL, c"gap before this segment").at(at));
        }
        if self.spare.is_lent() {
            return Err(Errno::EIO.into());
        }
        let access = self.rights.flags(request.access());
        let mr = self.stock.take(access)?;
        let list = match lists::map_spare(mr.pd().device(), request, &self.spare) {
            Ok(list) => list,
            Err(refusal) => {
                self.stock.put(mr);
                return Err(refusal);
            }
        };
        let mut prepared = mr.map(list, access).map_err(|failed| {
            self.stock.put(failed.mr);
            driver_errors::not_mapped(failed.error).at(num::index(failed.mapped))
        })?;
        let length = prepared.length();
        match prepared.set_base(BASE) {
            Ok(()) if length == shape.bytes() => Ok(prepared),
            _ => {
                self.unmap(prepared);
                Err(Refusal::new(Errno::EIO, c"the device took another length"))
            }
        }
    }

    /// Takes memory and device region apart again. Any context.
    fn unmap(&self, prepared: PreparedMr<Memory>) {
        let (mr, list) = prepared.unmap();
        drop(list);
        self.stock.put(mr);
    }

    /// Takes the region from the device. Sleeps until no peer can reach the memory.
    fn release(&mut self) -> Result<(), Refusal> {
        let mut fence = self.fence;
        if let Some(at) = inner(&*self.endpoint) {
            let (fate, mr) = (self.mr.fate().clone(), &mut self.mr);
            let mut nudge = |endpoint: &_| {
                mr.invalidate(|ready| at.conn.give_ready(endpoint, ready, false, Signal::Signaled))
            };
            fence = at.settle(&fate, &mut nudge, fence);
        }
        match self.mr.take(fence) {
            None => (),
            Some(Settled::Unposted(prepared)) => self.unmap(prepared),
            Some(Settled::Free(mr)) => self.stock.put(mr),
            Some(Settled::Valid(mr)) => return self.end_key(mr),
            Some(Settled::Gone) => self.stock.lose(),
            Some(Settled::Stuck) => {
                return Err(driver_errors::stuck());
            }
        }
        Ok(())
    }

    /// Ends the key of a valid region. Sleeps until no peer can reach the memory.
    ///
    /// Deregisters the device region if the connection has ended: nobody fills the region again. A device that does
    /// not answer would otherwise delay each region by the time limits of an invalidation and of a drain.
    fn end_key(&self, mr: ValidMr) -> Result<(), Refusal> {
        let is_open = inner(&*self.endpoint).is_some_and(|at| at.conn.is_open());
        let inside = self.link.gate.enter().filter(|_| is_open);
        let mut free = None;
        let ended = match &inside {
            Some(inside) if self.fence.invalidates() => {
                revoke(inside.get(), SmallVec::one(mr), |mr| free = Some(mr))
            }
            _ => mr.deregister().map_err(|_| driver_errors::stuck()),
        };
        match free {
            Some(mr) => self.stock.put(mr),
            None => self.stock.lose(),
        }
        ended
    }
}

impl ReusableMrOps for ReusableRegion {
    fn fill(&mut self, request: &MrRequest<'_>, more: bool) -> Result<Keys, Refusal> {
        let prepared = self.prepare(request)?;
        let keys = |mr: &FastMr| Keys {
            key: u64::from(mr.rkey()),
            base: mr.iova(),
            desc: 0,
            whole: true,
        };
        let registered = match inner(&*self.endpoint) {
            Some(at) => at.register_again(&mut self.mr, prepared, more),
            None => Err((Errno::ENOTCONN.into(), prepared)),
        };
        match registered {
            Ok(()) => {
                let keys = self.mr.prepared().map(|mr| keys(mr));
                keys.ok_or(Errno::EIO.into())
            }
            Err((error, prepared)) => {
                self.unmap(prepared);
                Err(driver_errors::not_posted(error))
            }
        }
    }

    fn empty_now(&mut self) -> bool {
        let Some(at) = inner(&*self.endpoint) else {
            return false;
        };
        let fence = at.fence(self.mr.fate(), self.fence);
        match self.mr.take_free(fence) {
            Some(mr) => {
                at.forget(self.mr.fate());
                self.stock.put(mr);
                true
            }
            None => false,
        }
    }

    fn empty(&mut self) -> Result<(), Refusal> {
        self.release()
    }

    fn end(&mut self) -> Result<(), Refusal> {
        let released = self.release();
        self.stock.close();
        released
    }
}

impl Drop for ReusableRegion {
    fn drop(&mut self) {
        // The core has emptied it, or the device keeps the memory.
        let _ = self.release();
        self.stock.close();
    }
}

impl Inner {
    /// Checks whether an invalidation by the peer frees a region that must keep its rights. Any context.
    fn frees_by_peer(&self) -> bool {
        let inside = self.gate.enter();
        inside.is_some_and(|inside| inside.get().by_peer.is_some())
    }

    /// Has a region registered, as [`register`](Self::register). Any context.
    ///
    /// # Errors
    ///
    /// After an error, nothing was posted.
    ///
    /// - `ENOTCONN`: the connection is gone, or not there yet.
    /// - `EAGAIN`: the endpoint's queue is full.
    fn register_again(
        &self,
        mr: &mut ReusableMr<Memory, RegionFailure>,
        prepared: PreparedMr<Memory>,
        more: bool,
    ) -> Result<(), (Error, PreparedMr<Memory>)> {
        let Some(inside) = self.gate.enter() else {
            return Err((Errno::ENOTCONN.into(), prepared));
        };
        let resources = inside.get();
        let endpoint = match resources.endpoint() {
            Ok(endpoint) if endpoint.is_open() => endpoint,
            _ => return Err((Errno::ENOTCONN.into(), prepared)),
        };
        mr.register(prepared, |fate, ready| {
            // Before the peer can have the key.
            self.conn.reg_states.add(fate);
            let signal = resources.signal();
            let given = self.conn.give_ready(endpoint, ready, more, signal);
            given.inspect_err(|_| self.forget(fate))
        })
    }
}
