// SPDX-License-Identifier: GPL-2.0

//! The registration queue: a queue pair for work on regions, replaced whenever it fails.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};
use rdma::{
    LocalQp,
    Pd, //
};

/// Most work requests under way at a time.
const DEPTH: u32 = 128;

/// The registration queue of a domain.
///
/// A work request that fails breaks its queue pair. Whoever finds that out asks again and gets a
/// new one; the others, whose requests were flushed, find it when they ask. The old queue pair
/// goes when the last of them has left it.
///
/// Lock order: `current` is taken before anything of the RDMA core.
#[pin_data]
pub(crate) struct Queue {
    pd: Arc<Pd>,
    #[pin]
    current: Mutex<State>,
}

enum State {
    /// In use; it may have broken since.
    Up(Arc<LocalQp>),
    /// The device goes away: there will be no other.
    Dead,
}

impl Queue {
    /// Makes the queue with its first queue pair. `ENETDOWN` without an active port. May sleep.
    pub(crate) fn new(pd: Arc<Pd>) -> Result<impl PinInit<Self>> {
        let first = LocalQp::new(pd.clone(), DEPTH)?;
        Ok(pin_init!(Self {
            pd,
            current <- new_mutex!(State::Up(first)),
        }))
    }

    /// A queue pair that was not broken when last seen. `ENODEV` once the device goes away. May
    /// sleep.
    pub(crate) fn get(&self) -> Result<Arc<LocalQp>> {
        let mut current = self.current.lock();
        let broken = match &*current {
            State::Up(qp) if !qp.is_broken() => return Ok(qp.clone()),
            State::Up(qp) => qp.clone(),
            State::Dead => return Err(ENODEV),
        };
        let fresh = LocalQp::new(self.pd.clone(), DEPTH)?;
        *current = State::Up(fresh.clone());
        drop(current);
        // Not under the lock: this may be the last reference.
        drop(broken);
        pr_warn!("{}: registration queue replaced\n", self.pd.device().name());
        Ok(fresh)
    }

    /// Ends everything that is under way, and all use. May sleep.
    pub(crate) fn die(&self) {
        let state = core::mem::replace(&mut *self.current.lock(), State::Dead);
        if let State::Up(qp) = state {
            if let Err(error) = qp.fail() {
                let errno = error.to_errno();
                pr_warn!(
                    "{}: failing a queue pair: {}\n",
                    self.pd.device().name(),
                    errno
                );
            }
        }
    }
}
