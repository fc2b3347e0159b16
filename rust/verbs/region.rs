// SPDX-License-Identifier: GPL-2.0

//! A region in its states: prepared, then valid at the device, each once.
//!
//! Each step consumes the one before it, so an error on the way undoes what was done by dropping
//! it. A region is one region of the device, or several that are registered and closed together.

mod at_once;
mod enable;
mod lent;
mod now;

pub(crate) use self::at_once::One;

use self::lent::Lent;
use crate::{
    lists,
    pool::Pool,
    refused,
    resources::Resources,
    rights, //
};
use core::mem;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    num::{
        self,
        widen, //
    },
    Errno,
    MrLimits,
    MrRequest,
    Piece,
    Refusal, //
};
use rdma::{
    lent::Settled,
    mr::{
        FastMr,
        Fence,
        Kind, //
    },
    sg::{
        DmaList,
        Layout,
        Memory,
        SpareTable, //
    },
    AccessFlags,
    Few,
    PreparedMr,
    RefreshError,
    ValidMr, //
};

/// Where peers find the first page of any region: not where it is in memory.
const BASE: u64 = 1 << 32;

/// A region.
pub(crate) struct Region {
    /// What each of its device regions holds.
    runs: Few<Piece>,
    kind: Kind,
    access: AccessFlags,
    /// Its device region is one of those that were reserved.
    reserved: bool,
    /// It is registered with others.
    together: bool,
    state: State,
}

/// How far a region has come. Each list has an entry for each run.
enum State {
    /// The memory is mapped; no peer reaches it yet.
    Prepared(Few<PreparedMr<Memory>>),
    /// The same, to be registered on an endpoint; or it was, and peers reach it who got the key by that.
    Lent(Lent),
    /// Peers reach it.
    Valid(Few<ValidMr>),
    /// A step failed: no peer reaches it, for good.
    Failed,
    /// The device won't let go of some of it: its memory must never be freed.
    Stuck,
}

impl Region {
    /// Checks memory, maps it and takes device regions for it. May sleep.
    ///
    /// With a spare list that is one of those that were reserved; then no memory is taken, if the
    /// region is one to the device and the list is long enough, and isn't to be registered on an endpoint.
    pub(crate) fn create(
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
        spare: Option<&SpareTable>,
    ) -> Result<Self, Refusal> {
        let runs = lists::runs(limits, request)?;
        let kind = match request.shape().gap() {
            Some(_) if limits.pieces <= 1 => Kind::Gaps,
            _ => Kind::Pages,
        };
        let lists = lists::map(resources, request, &runs, spare)?;
        let mut region = Self {
            runs,
            kind,
            access: rights::flags(request.access(), resources.atomics()),
            reserved: spare.is_some(),
            together: request.is_together(),
            state: State::Failed,
        };
        region.state = State::Prepared(region.prepare(resources, lists)?);
        if resources.lends() {
            region.lend()?;
        }
        Ok(region)
    }

    /// Gets ready to be registered on an endpoint, what is one region to the device. May sleep.
    fn lend(&mut self) -> Result<(), Refusal> {
        if let Some(mr) = self.take_prepared() {
            self.state = State::Lent(Lent::new(mr.lend().map_err(refused::no_region)?));
        }
        Ok(())
    }

    /// What has become of it, if it was registered on an endpoint. Sleeps until that has ended.
    fn land(&mut self, fence: Fence, put: impl FnOnce(FastMr)) {
        // What is large isn't moved for nothing.
        if !matches!(self.state, State::Lent(_)) {
            return;
        }
        match mem::replace(&mut self.state, State::Failed) {
            State::Lent(lent) => match lent.settle(fence) {
                Settled::Unposted(mr) => self.state = State::Prepared(Few::one(mr)),
                Settled::Valid(mr) => self.state = State::Valid(Few::one(mr)),
                Settled::Free(mr) => put(mr),
                Settled::Gone => (),
                Settled::Stuck => self.state = State::Stuck,
            },
            state => self.state = state,
        }
    }

    /// As [`prepare`](Self::prepare), for lists whose device regions are gone.
    #[cold]
    fn prepare_anew(
        &self,
        resources: &Resources,
        lists: Few<Memory>,
    ) -> Result<Few<PreparedMr<Memory>>, Refusal> {
        self.prepare(resources, lists)
    }

    /// Gives a device region to each list.
    fn prepare(
        &self,
        resources: &Resources,
        lists: Few<Memory>,
    ) -> Result<Few<PreparedMr<Memory>>, Refusal> {
        lists.try_map(GFP_KERNEL, |index, list| {
            let run = self.runs.get(index).ok_or(Errno::EIO)?;
            let layout = match (self.kind, self.reserved) {
                (Kind::Pages, false) => larger(resources, &list),
                _ => None,
            };
            let mapped = match layout {
                Some(layout) => self.map_larger(resources, list, layout)?,
                None => Err(list),
            };
            let mut prepared = match mapped {
                Ok(prepared) => prepared,
                Err(list) => self.map(resources, run, list)?,
            };
            if prepared.length() != run.bytes {
                return Err(Refusal::new(Errno::EIO, c"the device took another length"));
            }
            prepared.set_base(BASE).map_err(refused::not_mapped)?;
            Ok(prepared)
        })
    }

    /// Gives a device region of such pages to a list; gives the list back if the device won't have
    /// it so.
    fn map_larger(
        &self,
        resources: &Resources,
        list: Memory,
        layout: Layout,
    ) -> Result<Result<PreparedMr<Memory>, Memory>, Refusal> {
        let mr = take(resources.pool(), layout.pages(), self.access, self.together);
        Ok(mr
            .map_err(refused::no_region)?
            .map_larger(list, self.access, layout))
    }

    /// Gives a device region to a list.
    fn map(
        &self,
        resources: &Resources,
        run: &Piece,
        list: Memory,
    ) -> Result<PreparedMr<Memory>, Refusal> {
        let pages = u32::try_from(run.pages).unwrap_or(u32::MAX);
        let mr = match self.kind {
            Kind::Pages if self.reserved => resources.pool().take_reserved(),
            Kind::Pages => take(resources.pool(), pages, self.access, self.together),
            // Regions with gaps have their own kind, and are too rare to be kept.
            Kind::Gaps => FastMr::alloc(resources.pd(), Kind::Gaps, pages),
        }
        .map_err(refused::no_region)?;
        mr.map(list, self.access).map_err(|failed| {
            put(resources.pool(), self.reserved, failed.mr);
            refused::not_mapped(failed.error).at(num::index(failed.mapped))
        })
    }

    /// Puts what is behind the request's addresses now in the place of what was there before.
    /// Sleeps until the device is done.
    ///
    /// After an error the region is as it was, or out of reach for good.
    pub(crate) fn refresh(
        &mut self,
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<(), Refusal> {
        let fence = resources.fence();
        if matches!(&self.state, State::Lent(lent) if !lent.is_settled()) {
            let why = c"nothing has completed yet behind the region's registration";
            return Err(Refusal::new(Errno::EAGAIN, why));
        }
        let reserved = self.reserved;
        self.land(fence, |mr| put(resources.pool(), reserved, mr));
        let State::Valid(valid) = &mut self.state else {
            return Err(lost());
        };
        if *lists::runs(limits, request)? != *self.runs {
            return Err(Refusal::new(Errno::EINVAL, c"the region had another shape"));
        }
        let lists = lists::map(resources, request, &self.runs, None)?;
        let queue = resources.queue_pair().map_err(refused::no_queue)?;
        queue.refresh_all(valid, lists, fence).map_err(|error| {
            match error {
                RefreshError::Untouched(_) => (),
                RefreshError::Gone => self.state = State::Failed,
                RefreshError::Leaked => self.state = State::Stuck,
            }
            refused::not_refreshed(error)
        })
    }

    /// Takes the region from the device, and keeps what can be used again; nothing is left of it. Sleeps
    /// until no peer can reach the memory. `EIO` if the device won't let go of it.
    pub(crate) fn release(&mut self, resources: &Resources) -> Result<(), Refusal> {
        let fence = resources.fence();
        let reserved = self.reserved;
        self.land(fence, |mr| put(resources.pool(), reserved, mr));
        let put = |mr| put(resources.pool(), reserved, mr);
        match mem::replace(&mut self.state, State::Failed) {
            State::Prepared(prepared) => {
                prepared.consume(|prepared| {
                    let (mr, list) = prepared.unmap();
                    drop(list);
                    put(mr);
                });
                Ok(())
            }
            State::Valid(valid) if fence.invalidates() => match resources.queue_pair() {
                Ok(queue) => queue
                    .revoke_all(valid, fence, put)
                    .map_err(|_| refused::stuck()),
                Err(_) => State::Valid(valid).deregister(),
            },
            State::Valid(valid) => {
                let again = self.kind == Kind::Pages && !reserved;
                let mut result = Ok(());
                valid.consume(|mr| {
                    let pages = mr.max_pages();
                    result = mr.deregister().and(result);
                    if again {
                        resources.pool().make_up(pages);
                    }
                });
                result.map_err(|_| refused::stuck())
            }
            state => state.deregister(),
        }
    }

    /// Takes the region from the device by deregistering it, for which no queue is needed.
    pub(crate) fn deregister(&mut self) -> Result<(), Refusal> {
        self.land(Fence::DEREGISTER, drop);
        mem::replace(&mut self.state, State::Failed).deregister()
    }
}

impl State {
    fn deregister(self) -> Result<(), Refusal> {
        match self {
            // Dropping what no peer could reach deregisters it too.
            Self::Prepared(_) | Self::Lent(_) | Self::Failed => Ok(()),
            Self::Valid(valid) => {
                let mut result = Ok(());
                valid.consume(|mr| result = mr.deregister().and(result));
                result.map_err(|_| refused::stuck())
            }
            Self::Stuck => Err(refused::stuck()),
        }
    }
}

/// The larger pages of the device that will do for a list whose memory is so contiguous; not for one with
/// gaps, nor of what was reserved, which must not take any memory now.
///
/// Only regions that are deregistered when they are closed are made so: one that is used again, or
/// refreshed, must have room for the pages of other memory, and one that is lent may come back. Drivers of
/// hardware have hardly ever been asked for larger pages.
fn larger<L: DmaList>(resources: &Resources, list: &L) -> Option<Layout> {
    let used_again = resources.lends() || resources.fence().invalidates();
    if used_again || !resources.device().is_software() {
        return None;
    }
    Layout::larger(list)
}

/// A device region of at least so many pages, for a region that is registered with others or by itself.
fn take(pool: &Arc<Pool>, pages: u32, access: AccessFlags, together: bool) -> Result<FastMr> {
    match together {
        true => pool.take_together(pages, access),
        false => pool.take(pages, access),
    }
}

/// Keeps a device region for others.
pub(crate) fn put(pool: &Arc<Pool>, reserved: bool, mr: FastMr) {
    if reserved {
        pool.put_reserved(mr);
    } else {
        pool.put(mr);
    }
}

fn lost() -> Refusal {
    Refusal::new(Errno::EIO, c"the region is out of reach for good")
}

const _: () = assert!(BASE % widen(PAGE_SIZE) == 0);
