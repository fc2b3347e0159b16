// SPDX-License-Identifier: GPL-2.0

//! What a pool does with its reserve.

use super::{
    reserve::Reserve,
    size::Size,
    Pool, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::vec::Fifo;
use rdma::mr::FastMr;

impl Pool {
    /// Reserves as many device regions of at least this many pages. To be called once. May sleep.
    pub(crate) fn reserve(&self, count: usize, pages: u32) -> Result {
        let size = Size::of(pages).ok_or(E2BIG)?;
        let mut line = Fifo::with_capacity(count)?;
        for _ in 0..count {
            line.push(self.make(size)?).map_err(|_| ENOMEM)?;
        }
        let reserve = Reserve {
            size,
            promised: count,
            in_use: 0,
            line,
        };
        let old = self.state.lock().reserve.replace(reserve);
        drop(old);
        Ok(())
    }

    /// A region that was reserved begins.
    pub(crate) fn begin_reserved(&self) {
        self.count.of_reserve();
        if let Some(reserve) = &mut self.state.lock().reserve {
            reserve.in_use += 1;
        }
    }

    /// It has ended, and its device region was put back unless it is gone: then it is replaced.
    pub(crate) fn end_reserved(self: &Arc<Self>) {
        let missing = match &mut self.state.lock().reserve {
            Some(reserve) => {
                reserve.in_use = reserve.in_use.saturating_sub(1);
                reserve.missing() > 0
            }
            None => false,
        };
        if missing {
            // Already queued is as good.
            let _ = self.queue.enqueue(self.clone());
        }
    }

    /// The device region of one that has begun.
    ///
    /// There is one, unless those that were used before were deregistered and are being replaced:
    /// on software devices always, else after 255 times. Then it makes one, and if there is no
    /// memory, waits for those that are being made. Sleeps.
    pub(crate) fn take_reserved(self: &Arc<Self>) -> Result<FastMr> {
        if let Some(mr) = self.next_reserved() {
            return Ok(mr);
        }
        let Some(size) = self
            .state
            .lock()
            .reserve
            .as_ref()
            .map(|reserve| reserve.size)
        else {
            return Err(ENODEV);
        };
        self.make(size).or_else(|error| {
            let _ = self.queue.enqueue(self.clone());
            self.queue.flush();
            self.next_reserved().ok_or(error)
        })
    }

    fn next_reserved(&self) -> Option<FastMr> {
        self.state.lock().reserve.as_mut()?.line.pop()
    }

    /// Takes back a device region that no peer can reach. May sleep.
    pub(crate) fn put_reserved(&self, mr: FastMr) {
        // One for any rights takes its place.
        if mr.is_spent() || mr.keeps_rights() {
            return;
        }
        let _ = self.join_reserve(mr);
    }

    /// Puts one in line; gives it back if there are as many as were promised.
    fn join_reserve(&self, mr: FastMr) -> Result<(), FastMr> {
        match &mut self.state.lock().reserve {
            Some(reserve) if reserve.line.len() < reserve.promised => reserve.line.push(mr),
            _ => Err(mr),
        }
    }

    /// Replaces those that are gone. What fails is tried again when the next one is wanted.
    pub(super) fn refill_reserve(&self) {
        loop {
            let missing = self.state.lock().reserve.as_ref().map(|reserve| {
                // One that waits counts as in use already, and there may be none for it.
                let waiting = reserve.line.is_empty() && reserve.in_use > 0;
                (reserve.size, reserve.missing() > 0 || waiting)
            });
            let Some((size, true)) = missing else {
                return;
            };
            let Ok(mr) = self.make(size) else {
                return;
            };
            if self.join_reserve(mr).is_err() {
                return;
            }
        }
    }
}
