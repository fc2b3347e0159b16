// SPDX-License-Identifier: GPL-2.0

//! Receives that several sides share.
//!
//! Lock order: the lock of a pool is a leaf. It is taken with interrupts off; no ticket is ended under it.

use crate::{
    fifo::Fifo,
    sharers::Sharers, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    irqlock::IrqLock,
    new_irq_lock,
    provider::{
        cq::Context,
        kept::Kept, //
    },
    Errno,
    Refusal, //
};

struct State<S> {
    receives: Fifo<Kept>,
    sharers: Sharers<S>,
}

impl<S> State<S> {
    /// Who is to be told that there are receives.
    fn waiting(&mut self) -> Option<Arc<S>> {
        self.receives.first()?;
        self.sharers.longest()
    }
}

/// Receives that sides of type `S` share.
#[pin_data]
pub(crate) struct Pool<S> {
    #[pin]
    state: IrqLock<State<S>>,
}

impl<S: Send + Sync> Pool<S> {
    /// One with room for so many. May sleep.
    pub(crate) fn new(size: usize) -> Result<Arc<Self>, Refusal> {
        let state = State {
            receives: Fifo::new(size)?,
            sharers: Sharers::new(),
        };
        let pool = pin_init!(Self {
            state <- new_irq_lock!(state, c"kfi_loop_pool"),
        });
        Arc::pin_init(pool, GFP_KERNEL).map_err(|_| Errno::ENOMEM.into())
    }

    /// A side is going to take receives, until it [leaves](Self::leave). Any context.
    pub(crate) fn join(&self, side: Arc<S>) -> Result<(), Refusal> {
        Ok(self.state.with(|state| state.sharers.join(side))?)
    }

    /// A side takes no more, which the caller has a reference to. Any context.
    pub(crate) fn leave(&self, side: &S) {
        self.state.with(|state| state.sharers.leave(side));
    }

    /// Takes the oldest receive for a side, or notes that it waits for one. Any context.
    pub(crate) fn take(&self, side: &S) -> Option<Kept> {
        self.state.with(|state| {
            let taken = state.receives.pop();
            state.sharers.set(side, taken.is_none());
            taken
        })
    }

    /// Puts a receive in, which comes back if there is no room. `wake` is called for sides that wait, one
    /// after the other, as long as there are receives: who has waited longest may have no use for one any
    /// more. Any context.
    pub(crate) fn post(&self, kept: Kept, wake: impl Fn(&S)) -> Result<(), Kept> {
        self.state.with(|state| state.receives.push(kept))?;
        while let Some(side) = self.state.with(|state| state.waiting()) {
            wake(&side);
        }
        Ok(())
    }

    /// For how many more there is room. Any context.
    pub(crate) fn room(&self) -> usize {
        self.state.with(|state| state.receives.room())
    }

    /// Ends a receive of this context. Any context.
    pub(crate) fn cancel(&self, context: Context) -> bool {
        let is = |kept: &Kept| kept.ticket().context() == context;
        let taken = self.state.with(|state| state.receives.take_if(is));
        // Ended by being dropped.
        taken.is_some()
    }

    /// Ends all that there are, and takes no more. May call handlers of completion queues.
    pub(crate) fn end(&self) {
        let ended = self.state.with(|state| state.receives.take());
        drop(ended);
    }
}
