// SPDX-License-Identifier: GPL-2.0

//! The registration queue: a queue pair for requests about regions. The provider replaces the queue
//! pair whenever it fails or loses its address.

mod self_qp;

use self::self_qp::{
    Outlook,
    PortAddress, //
};
use crate::prelude::*;
use kernel::{
    new_spinlock,
    sync::SpinLock, //
};
use rdma::device::{
    EventHandler,
    PathEvents, //
};
use self_qp::SelfQp;

/// Most work requests under way at a time.
const DEPTH: u32 = 128;

/// Number of attempts to find an address that was released, so that it can be made anew.
const RESCANS: u32 = 40;

/// Time between two attempts.
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

impl State {
    /// Returns the queue pair, unless it was broken when last seen. Returns `ENODEV` once the
    /// device goes away.
    fn usable(&self) -> Result<Option<Arc<RegQp>>> {
        match self {
            Self::Up(SelfQp { qp, .. }) if !qp.is_broken() => Ok(Some(qp.clone())),
            Self::Dead => Err(ENODEV),
            _ => Ok(None),
        }
    }
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
    pub(crate) fn get(&self) -> Result<Arc<RegQp>> {
        // The lock is not held by the next statement.
        let usable = self.current.lock().usable()?;
        usable.map_or_else(|| self.replace(), Ok)
    }

    /// Makes a queue pair in the place of one that is broken or gone. Sleeps.
    #[cold]
    fn replace(&self) -> Result<Arc<RegQp>> {
        // One task at a time. The others find the queue pair that it has made.
        let _replacing = self.replacing.lock();
        let mut looks = 0;
        loop {
            // An address that comes back during the attempt may be too late for it.
            let moving = self.is_moving();
            let usable = self.current.lock().usable()?;
            if let Some(qp) = usable {
                return Ok(qp);
            }
            // Reconnects at the same address. A query of the driver's ports may wait for holders of
            // the network stack's locks, who may be waiting for memory.
            let limit = crate::params::wr_timeout();
            let again = self.up().and_then(|broken| broken.again(limit).ok());
            match again.map_or_else(|| make(&self.pd), Ok) {
                Ok(fresh) => return self.put(fresh),
                // `look_around` ends this state, but may wait for a task that waits for this one.
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

    /// Puts a queue pair in the place of one that is broken or gone, unless there is another by
    /// now. Returns the one that is there then. Sleeps.
    fn put(&self, fresh: SelfQp) -> Result<Arc<RegQp>> {
        let before = {
            let mut current = self.current.lock();
            if let Some(qp) = current.usable()? {
                return Ok(qp);
            }
            mem::replace(&mut *current, State::Up(fresh.clone()))
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

/// How often a probe is repeated that says nothing about the device: a request was flushed, perhaps not by its own
/// fault, or the invalidation did not complete in time.
const PROBES: u32 = 3;

impl Queue {
    /// Returns whether regions can be invalidated on this device. Returns an error if they can't be
    /// registered, or if no probe has a result. Sleeps until the device is done.
    pub(crate) fn can_invalidate(&self) -> Result<bool> {
        let mut unknown = WrError::Flushed;
        for _ in 0..PROBES {
            match self.get()?.probe() {
                Ok(Ok(())) => return Ok(true),
                Ok(Err(WrError::Post(error))) if error == ENOMEM => return Err(error),
                // rxe, for one, doesn't tell a request that failed from one that was in its way.
                Ok(Err(error @ (WrError::Flushed | WrError::TimedOut))) => unknown = error,
                Ok(Err(error)) => {
                    pr_info!(
                        "{}: can't invalidate regions ({}): deregisters them\n",
                        self.pd.device().name(),
                        error
                    );
                    return Ok(false);
                }
                Err(WrError::Flushed) => unknown = WrError::Flushed,
                // The log has it.
                Err(WrError::TimedOut) => return Err(WrError::TimedOut.into()),
                Err(error) => {
                    pr_warn!(
                        "{}: can't register regions: {}\n",
                        self.pd.device().name(),
                        error
                    );
                    return Err(error.into());
                }
            }
        }
        pr_warn!(
            "{}: {} probes of invalidation: {}\n",
            self.pd.device().name(),
            PROBES,
            unknown
        );
        Err(unknown.into())
    }
}

/// A queue follows its port and address as long as this is there.
pub(crate) struct Following {
    handler: Option<Pin<KBox<EventHandler<Changes>>>>,
    work: Arc<OwnedQueue>,
}

impl Following {
    /// Has a queue follow its port and address, until this is dropped. Then no work begins any
    /// more. The workqueue `work` runs the work that is under way. May sleep.
    pub(crate) fn new(of: &Arc<Queue>, work: Arc<OwnedQueue>) -> Result<Self> {
        let changes = Changes {
            of: of.clone(),
            work: work.clone(),
        };
        Ok(Self {
            handler: Some(EventHandler::new(of.pd.device(), changes)?),
            work,
        })
    }

    /// Waits until the work that has begun has ended. Sleeps.
    pub(crate) fn settle(&self) {
        self.work.flush();
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // Nothing begins any more without it.
        self.handler = None;
        self.settle();
    }
}

/// A handler that queues work for each change that the device reports.
struct Changes {
    of: Arc<Queue>,
    work: Arc<OwnedQueue>,
}

impl PathEvents for Changes {
    fn path_changed(&self) {
        // Not here, where other handlers wait. Already queued is as good.
        let _ = self.work.enqueue(self.of.clone());
    }
}

impl WorkItem for Queue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // Others wait for the locks that this takes, on the way of writing memory back.
        let _noio = NoIo::enter();
        this.look_around();
    }
}

impl Queue {
    /// Replaces the queue pair if a new one would have another port or address. Gives the queue
    /// pair up if its address is gone and there is no other, because a held address can't come
    /// back. Sleeps.
    fn look_around(&self) {
        let Some(old) = self.up() else {
            return;
        };
        let fresh = match old.outlook() {
            Outlook::Same => return,
            // If that fails, the old one is still better than none.
            Outlook::Moved => match make(&self.pd) {
                Ok(fresh) => State::Up(fresh),
                Err(_) => return,
            },
            Outlook::Gone => State::Moving,
        };
        let moved = matches!(fresh, State::Up(_));
        let address = old.address;
        let mut current = self.current.lock();
        match &mut *current {
            State::Up(up) if Arc::ptr_eq(&up.qp, &old.qp) => *current = fresh,
            // Somebody was quicker.
            _ => return,
        }
        drop(current);
        // Tasks that use the old queue pair keep it until they have ended.
        drop(old);
        if moved {
            self.say_replaced(&"its port or address has changed");
        }
        if address.is_default || !moved {
            self.await_address(&address);
        }
        let mut current = self.current.lock();
        if matches!(*current, State::Moving) {
            *current = State::Down;
        }
    }

    /// Waits until an address that is gone is there again, or another one instead. Sleeps, but not for long.
    ///
    /// If a network device gets another MAC address, the RDMA core deletes all of its GIDs before it adds the new
    /// ones. A default GID is added only after the queue pair has let go of it, which happens behind our back, and
    /// only by another look at the network device.
    fn await_address(&self, address: &PortAddress) {
        let device = self.pd.device();
        for _ in 0..RESCANS {
            let is_back = if address.is_default {
                rdma::port::rescan(device);
                address.is_there(device)
            } else {
                self_qp::has_address(device)
            };
            if is_back || matches!(*self.current.lock(), State::Dead) {
                return;
            }
            fsleep(RESCAN_AFTER);
        }
    }
}
