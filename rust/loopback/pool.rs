// SPDX-License-Identifier: GPL-2.0

//! Receives that several sides share.
//!
//! Lock order: the lock of a pool is a leaf. It is taken with interrupts off; no ticket is ended under it.

use crate::fifo::Fifo;
use core::ptr;
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

/// One who takes receives out of a pool.
struct Sharer<S> {
    side: Arc<S>,
    /// There was none when it wanted one.
    waits: bool,
}

struct State<S> {
    receives: Fifo<Kept>,
    sharers: KVec<Sharer<S>>,
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
            sharers: KVec::new(),
        };
        let pool = pin_init!(Self {
            state <- new_irq_lock!(state, c"kfi_loop_pool"),
        });
        Arc::pin_init(pool, GFP_KERNEL).map_err(|_| Errno::ENOMEM.into())
    }

    /// A side is going to take receives, until it [leaves](Self::leave). Any context.
    pub(crate) fn join(&self, side: Arc<S>) -> Result<(), Refusal> {
        let sharer = Sharer { side, waits: false };
        let joined = self
            .state
            .with(|state| state.sharers.push(sharer, GFP_ATOMIC));
        joined.map_err(|_| Errno::ENOMEM.into())
    }

    /// A side takes no more, which the caller has a reference to. Any context.
    pub(crate) fn leave(&self, side: &S) {
        self.state
            .with(|state| state.sharers.retain(|sharer| !ptr::eq(&*sharer.side, side)));
    }

    /// Takes the oldest receive for a side, or notes that it waits for one. Any context.
    pub(crate) fn take(&self, side: &S) -> Option<Kept> {
        self.state.with(|state| {
            let taken = state.receives.pop();
            let mut sharers = state.sharers.iter_mut();
            if let Some(sharer) = sharers.find(|sharer| ptr::eq(&*sharer.side, side)) {
                sharer.waits = taken.is_none();
            }
            taken
        })
    }

    /// Puts a receive in, which comes back if there is no room; `wake` is called for each side that has
    /// waited for one. Any context.
    pub(crate) fn post(&self, kept: Kept, wake: impl Fn(&S)) -> Result<(), Kept> {
        self.state.with(|state| state.receives.push(kept))?;
        let mut from = 0;
        while let Some((at, side)) = self.waiting(from) {
            wake(&side);
            from = at + 1;
        }
        Ok(())
    }

    /// The first from there on that waits; it doesn't any more.
    fn waiting(&self, from: usize) -> Option<(usize, Arc<S>)> {
        self.state.with(|state| {
            let mut sharers = state.sharers.iter_mut().enumerate().skip(from);
            let (at, sharer) = sharers.find(|(_, sharer)| sharer.waits)?;
            sharer.waits = false;
            Some((at, sharer.side.clone()))
        })
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
