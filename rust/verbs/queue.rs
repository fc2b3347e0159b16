// SPDX-License-Identifier: GPL-2.0

//! The registration queue: a queue pair for work on regions, replaced whenever it fails or its
//! address does.

pub(crate) mod following;
mod probe;
mod self_qp;

use kernel::{
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLock, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue::Work, //
};
use rdma::{
    LocalQp,
    Pd, //
};
use self_qp::SelfQp;

/// Most work requests under way at a time.
const DEPTH: u32 = 128;

/// How often an address is looked for that was let go of to be made anew.
const RESCANS: u32 = 40;

/// How long after one look the next comes.
const RESCAN_AFTER: Delta = Delta::from_millis(50);

/// The registration queue of a domain.
///
/// A work request that fails breaks its queue pair. A task that finds that out asks again and gets
/// a new one. The other tasks, whose requests were flushed, find it when they ask. The old queue
/// pair goes when the last of them has left it. The queue also replaces it, without anybody
/// noticing, when a port or an address changes and a new one would be at another place.
///
/// Lock order: `replacing` is taken before `current`, and before anything of the RDMA core and of
/// the network stack, which a driver asks about its port. `current` is a leaf, and a spinlock, for
/// process context: each registration takes it. So a task with a working queue pair doesn't wait
/// for a task that makes another one, which may be waiting for memory. No reference that may be the
/// last is dropped under it.
#[pin_data]
pub(crate) struct Queue {
    pd: Arc<Pd>,
    #[pin]
    replacing: Mutex<()>,
    #[pin]
    current: SpinLock<State>,
    #[pin]
    look: Work<Self>,
}

enum State {
    /// In use; it may have broken since.
    Up(SelfQp),
    /// Its address is gone, and a new one may come in a moment.
    Moving,
    /// None came. There may be one now.
    Down,
    /// The device goes away: there will be no other.
    Dead,
}

kernel::impl_has_work! {
    impl HasWork<Self> for Queue { self.look }
}

impl Queue {
    /// Makes the queue with its first queue pair. `ENETDOWN` without an active port. May sleep.
    pub(crate) fn new(pd: Arc<Pd>) -> Result<Arc<Self>> {
        let first = make(&pd)?;
        Arc::pin_init(
            pin_init!(Self {
                pd,
                replacing <- new_mutex!(()),
                current <- new_spinlock!(State::Up(first)),
                look <- kernel::new_work!("kfi_verbs::Queue::look"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns a queue pair that was not broken when last seen. `ENODEV` once the device goes away.
    /// May sleep.
    pub(crate) fn get(&self) -> Result<Arc<LocalQp>> {
        match self.usable()? {
            Some(qp) => Ok(qp),
            None => self.replace(),
        }
    }

    /// Returns the queue pair, if there is one that was not broken when last seen. `ENODEV` once
    /// the device goes away. May sleep, but not for long.
    fn usable(&self) -> Result<Option<Arc<LocalQp>>> {
        match &*self.current.lock() {
            State::Up(SelfQp { qp, .. }) if !qp.is_broken() => Ok(Some(qp.clone())),
            State::Dead => Err(ENODEV),
            _ => Ok(None),
        }
    }

    /// Makes a queue pair in the place of one that is broken or gone. Sleeps.
    #[cold]
    fn replace(&self) -> Result<Arc<LocalQp>> {
        // One at a time. The others find what it has made.
        let _replacing = self.replacing.lock();
        let mut looks = 0;
        loop {
            // An address that comes back during the attempt may be too late for it.
            let moving = self.is_moving();
            if let Some(qp) = self.usable()? {
                return Ok(qp);
            }
            match self.again().map_or_else(|| make(&self.pd), Ok) {
                Ok(fresh) => return self.put(fresh),
                // `look_around` ends it, but may be waiting for who waits for us.
                Err(_) if looks < RESCANS && (moving || self.is_moving()) => (),
                Err(error) => return Err(error),
            }
            fsleep(RESCAN_AFTER);
            looks += 1;
        }
    }

    /// Checks whether the address is gone, and the queue waits for a new one.
    fn is_moving(&self) -> bool {
        matches!(*self.current.lock(), State::Moving)
    }

    /// Makes a queue pair where the one is that broke, without asking the driver about its ports: that
    /// may wait for holders of the network stack's locks, who may be waiting for memory. `None` if
    /// there was none, or its port or address is gone. May sleep.
    fn again(&self) -> Option<SelfQp> {
        self.up()?.again(crate::params::wr_timeout()).ok()
    }

    /// Puts a queue pair in the place of one that is broken or gone, unless there is another by
    /// now. Returns the one that is there then. Sleeps.
    fn put(&self, fresh: SelfQp) -> Result<Arc<LocalQp>> {
        let before = {
            let mut current = self.current.lock();
            match &*current {
                State::Up(SelfQp { qp, .. }) if !qp.is_broken() => return Ok(qp.clone()),
                State::Dead => return Err(ENODEV),
                _ => core::mem::replace(&mut *current, State::Up(fresh.clone())),
            }
        };
        // Not under the lock: this may be the last reference.
        match before {
            State::Up(broken) => match broken.qp.broken_by() {
                Some(cause) => self.say_replaced(&cause),
                None => self.say_replaced(&"it was broken"),
            },
            _ => self.say_replaced(&"there was none"),
        }
        Ok(fresh.qp)
    }

    /// Returns the queue pair, if there is one.
    fn up(&self) -> Option<SelfQp> {
        match &*self.current.lock() {
            State::Up(qp) => Some(qp.clone()),
            _ => None,
        }
    }

    /// Ends everything that is under way, and all use. Sleeps until the device has let go of it,
    /// at most as long as a work request may take.
    pub(crate) fn die(&self) {
        let state = core::mem::replace(&mut *self.current.lock(), State::Dead);
        if let State::Up(up) = state {
            up.qp.fail();
        }
    }

    fn say_replaced(&self, cause: &dyn kernel::fmt::Display) {
        pr_warn!(
            "{}: registration queue replaced: {}\n",
            self.pd.device().name(),
            cause
        );
    }
}

fn make(pd: &Arc<Pd>) -> Result<SelfQp> {
    SelfQp::new(pd, DEPTH, crate::params::wr_timeout())
}
