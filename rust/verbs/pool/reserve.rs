// SPDX-License-Identifier: GPL-2.0

//! The reserve of a pool: parts for regions whose registration must not fail for lack of memory.

use super::{
    lines::Size,
    Pool,
    Reserve, //
};
use crate::prelude::*;
use kfabric::{
    vec::Fifo,
    MrExtMemory, //
};
use rdma::sg::SpareTable;

impl Pool {
    /// Reserves the parts of `count` regions of up to `pages` pages. Must be called at most once.
    /// May sleep.
    pub(crate) fn reserve(&self, count: usize, pages: u32) -> Result {
        let size = Size::of(pages).ok_or(E2BIG)?;
        let mut reserve = Reserve {
            size,
            promised: count,
            in_use: 0,
            mrs: Fifo::with_capacity(count)?,
            tables: Fifo::with_capacity(count)?,
            memory: KVVec::with_capacity(count, GFP_KERNEL)?,
        };
        for _ in 0..count {
            reserve.mrs.push_reserved(self.make(size)?);
            reserve.tables.push_reserved(SpareTable::alloc(pages)?);
            reserve.memory.push_reserved(MrExtMemory::new()?);
        }
        let old = self.state.lock().reserve.replace(reserve);
        drop(old);
        Ok(())
    }

    /// Notes that a region of the reserve begins. May sleep.
    pub(crate) fn begin_reserved(&self) {
        self.count.of_reserve.fetch_add(1, Relaxed);
        if let Some(reserve) = &mut self.state.lock().reserve {
            reserve.in_use += 1;
        }
    }

    /// Notes that a region of the reserve has ended. If its device region was deregistered, has
    /// another one made. May sleep.
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

    /// Takes the device region of a region that has begun.
    ///
    /// The reserve has one, unless device regions were deregistered and their replacements are
    /// pending. On software devices, each region is deregistered after its use; on others, after
    /// 255 uses. If the reserve has none, this makes one. If there is no memory, it waits for the
    /// pending replacements. Sleeps.
    pub(crate) fn take_reserved(self: &Arc<Self>) -> Result<FastMr> {
        let (next, size) = match &mut self.state.lock().reserve {
            Some(reserve) => (reserve.mrs.pop(), reserve.size),
            None => return Err(ENODEV),
        };
        if let Some(mr) = next {
            return Ok(mr);
        }
        self.make(size).or_else(|error| {
            let _ = self.queue.enqueue(self.clone());
            self.queue.flush();
            let mut state = self.state.lock();
            let next = state.reserve.as_mut().and_then(|it| it.mrs.pop());
            next.ok_or(error)
        })
    }

    /// Calls `f` with a table that no list has, or with `None` if the reserve has no free table.
    /// May sleep.
    pub(crate) fn with_table<T>(&self, f: impl FnOnce(Option<&SpareTable>) -> T) -> T {
        let table = self.state.lock().reserve.as_mut().and_then(|reserve| {
            for _ in 0..reserve.tables.len() {
                let table = reserve.tables.pop()?;
                match table.is_lent() {
                    true => reserve.tables.push_reserved(table),
                    false => return Some(table),
                }
            }
            None
        });
        let done = f(table.as_ref());
        if let (Some(table), Some(reserve)) = (table, &mut self.state.lock().reserve) {
            reserve.tables.push_reserved(table);
        }
        done
    }

    /// Takes memory for a region from the reserve. May sleep.
    pub(crate) fn take_memory(&self) -> Option<MrExtMemory> {
        self.state.lock().reserve.as_mut()?.memory.pop()
    }

    /// Returns memory of a region to the reserve, or frees it. May sleep.
    pub(crate) fn put_memory(&self, memory: MrExtMemory) {
        let freed = match &mut self.state.lock().reserve {
            Some(reserve) if reserve.memory.len() < reserve.promised => {
                reserve.memory.push_reserved(memory);
                None
            }
            _ => Some(memory),
        };
        drop(freed);
    }

    /// Replaces device regions that were deregistered. After a failure, the next caller that needs
    /// one starts another attempt.
    pub(super) fn refill_reserve(&self) {
        loop {
            let missing = self.state.lock().reserve.as_ref().map(|reserve| {
                // `in_use` counts a region that waits, although it may have no device region.
                let waiting = reserve.mrs.is_empty() && reserve.in_use > 0;
                (reserve.size, reserve.missing() > 0 || waiting)
            });
            let Some((size, true)) = missing else {
                return;
            };
            let Ok(mr) = self.make(size) else {
                return;
            };
            let kept = match &mut self.state.lock().reserve {
                Some(reserve) if reserve.takes(size, &mr) => reserve.mrs.push(mr),
                _ => Err(mr),
            };
            if kept.is_err() {
                return;
            }
        }
    }
}
