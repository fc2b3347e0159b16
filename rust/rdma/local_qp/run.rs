// SPDX-License-Identifier: GPL-2.0

//! Having requests carried out.

use super::LocalQp;
use crate::{
    credits::Credit,
    waiter::Waiter,
    wc::{
        WcStatus,
        WrError, //
    }, //
    wr_batch::{
        PostError,
        RegionWr,
        WrBatch, //
    },
};
use kernel::{
    prelude::*,
    sync::atomic::{
        Full,
        Relaxed, //
    }, //
};
use pin_init::stack_pin_init;

impl LocalQp {
    /// Takes a credit. [`WrError::Flushed`] if the queue pair breaks meanwhile. Sleeps,
    /// uninterruptibly: as long as those who have one wait.
    #[inline]
    fn credit(&self) -> Result<Credit<'_>, WrError> {
        match self.sends.credits().try_take() {
            Some(credit) => Ok(credit),
            None => self.await_credit(),
        }
    }

    /// Takes a credit as [`credit`](Self::credit) does, if there was none.
    #[cold]
    fn await_credit(&self) -> Result<Credit<'_>, WrError> {
        // All tasks that have a credit may be posting, and so wait for one, too.
        let _listening = self.cq.listen();
        loop {
            if self.is_broken() {
                return Err(WrError::Flushed);
            }
            if let Some(credit) = self.sends.credits().take() {
                return Ok(credit);
            }
        }
    }

    /// Does something with the queue pair, which is there meanwhile; [`None`] if it isn't up any more.
    fn while_up<T>(&self, post: impl FnOnce(*mut rdma_bindings::ib_qp) -> T) -> Option<T> {
        // Counted before it looks: whoever says that it isn't up any more looks for who is counted.
        self.posting.fetch_add(1, Full);
        // By the type invariant `raw` is there while somebody is counted who saw it up.
        let posted = self.up.load(Relaxed).then(|| post(self.raw.as_ptr()));
        self.posting.fetch_sub(1, Full);
        posted
    }

    /// Posts a request, as [`Waiter::post`]. Sleeps, uninterruptibly, until there is a credit.
    ///
    /// # Safety
    ///
    /// The requirements of [`Waiter::post`], except those for the queue pair.
    #[inline]
    unsafe fn post(
        &self,
        waiter: Pin<&Waiter<'_>>,
        post: impl FnOnce(*mut rdma_bindings::ib_qp, *mut rdma_bindings::ib_cqe) -> Result,
    ) -> Result<(), WrError> {
        let credit = self.credit()?;
        // SAFETY: The queue pair is valid in `while_up`, and its completion queue keeps `sends` as
        // long as requests may complete. The caller promises the rest.
        self.while_up(|qp| unsafe { waiter.post(&credit, |cqe| post(qp, cqe)) })
            .unwrap_or(Err(WrError::Flushed))?;
        credit.keep();
        Ok(())
    }

    /// Posts a request by `post`, which gets the queue pair and the `cqe`, and waits for its completion. After an error nothing carries it out any more, except with
    /// [`WrError::Lost`]. Sleeps, uninterruptibly, a few time limits at most once there is a credit.
    ///
    /// # Safety
    ///
    /// The memory of the request must stay until this has returned; and for good, if that is
    /// [`WrError::Lost`].
    #[inline]
    pub(super) unsafe fn run_one(
        &self,
        post: impl FnOnce(*mut rdma_bindings::ib_qp, *mut rdma_bindings::ib_cqe) -> Result,
    ) -> Result<(), WrError> {
        stack_pin_init!(let waiter = Waiter::new(&self.sends));
        let waiter = waiter.into_ref();

        // SAFETY: The caller promises that the memory of the request outlives this call. The call
        // returns only when the request has completed, or the queue pair is gone. The waiter waits.
        unsafe { self.post(waiter, post) }?;
        self.wait(waiter)?;
        waiter.result()
    }

    /// Posts requests of one kind, each about a region, and waits for their completions. It posts
    /// some at a time; the last of them is signaled. If one fails, the error is that they were
    /// flushed. Sleeps, uninterruptibly, for a few time limits at most once there are credits.
    ///
    /// After an error the device may have carried out some of them. Nothing carries out another one any more, except
    /// with [`WrError::Lost`].
    pub(super) fn run_together<'a>(
        &self,
        mut requests: impl Iterator<Item = RegionWr<'a>>,
    ) -> Result<(), WrError> {
        stack_pin_init!(let waiter = Waiter::new(&self.sends));
        let waiter = waiter.into_ref();

        let mut posted = Ok(());
        while posted.is_ok() && waiter.status() == WcStatus::SUCCESS {
            let Some(first) = requests.next() else {
                break;
            };
            // SAFETY: The regions are borrowed for longer than this function, which returns only when all
            // requests have completed or the queue pair is gone; if it could not be destroyed, the callers leak
            // the regions, as `WrError::Lost` says. The waiter waits.
            posted = unsafe { self.post_together(waiter, first, &mut requests) };
        }
        match self.wait(waiter) {
            // The queue pair may have been destroyed because of what the driver has refused.
            Ok(()) => posted.and(waiter.result()),
            lost => lost,
        }
    }

    /// Posts a request and as many of those that follow as there are credits for, but not too many.
    /// Sleeps, uninterruptibly, until there is one.
    ///
    /// # Safety
    ///
    /// The requirements of [`Waiter::post`] for each request, except those for the queue pair.
    unsafe fn post_together<'a>(
        &self,
        waiter: Pin<&Waiter<'_>>,
        first: RegionWr<'a>,
        others: &mut impl Iterator<Item = RegionWr<'a>>,
    ) -> Result<(), WrError> {
        let credits = self.sends.credits();
        let credit = self.credit()?;
        let mut together = WrBatch::new(first);
        let more = credits.take_some(WrBatch::MORE);
        while together.count() <= more {
            let Some(other) = others.next() else {
                break;
            };
            together.push(other);
        }
        credits.give_back((more + 1).saturating_sub(together.count()));
        // SAFETY: The queue pair is valid in `while_up`, and its completion queue keeps `sends` as
        // long as requests may complete. The caller promises the rest.
        let posted = self.while_up(|qp| unsafe { waiter.post_together(qp, &credit, &together) });
        let error = match posted {
            Some(Ok(())) => {
                credit.keep();
                return Ok(());
            }
            // The completion of the posted requests gives the credits of all back.
            Some(Err(PostError::Rest(error))) => {
                credit.keep();
                return Err(WrError::Post(error));
            }
            Some(Err(PostError::RestUntold(error))) => {
                credit.keep();
                // Nothing tells how those end that were posted, but that there is no queue pair.
                self.fail();
                self.destroy();
                return Err(WrError::Post(error));
            }
            Some(Err(PostError::All(error))) => WrError::Post(error),
            None => WrError::Flushed,
        };
        credits.give_back(together.count() - 1);
        Err(error)
    }
}
