// SPDX-License-Identifier: GPL-2.0

//! The registration queue: a queue pair for work on regions, replaced whenever it fails or its
//! address does.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};
use kfabric::{
    workqueue::OwnedQueue,
    NoIo, //
};
use rdma::{
    events::{
        EventHandler,
        PathEvents, //
    },
    local_qp::{
        Outlook,
        Place, //
    },
    Device,
    LocalQp,
    Pd,
    WrError, //
};

/// Most work requests under way at a time.
const DEPTH: u32 = 128;

/// How often a probe is repeated whose request was flushed, perhaps not by its own fault.
const PROBES: u32 = 3;

/// How often an address is looked for that was let go of to be made anew.
const RESCANS: u32 = 40;

/// How long after one look the next comes.
const RESCAN_AFTER: Delta = Delta::from_millis(50);

/// The registration queue of a domain.
///
/// A work request that fails breaks its queue pair. Whoever finds that out asks again and gets a
/// new one; the others, whose requests were flushed, find it when they ask. The old queue pair
/// goes when the last of them has left it. It is also replaced, without anybody noticing, when
/// a port or an address changes so that a new one would not be where it is.
///
/// Lock order: `replacing` is taken before `current`, and before anything of the RDMA core and of the
/// network stack, which a driver asks about its port. `current` is a leaf: who has a queue pair that
/// works doesn't wait for the one who makes another, who may be waiting for memory.
#[pin_data]
pub(crate) struct Queue {
    pd: Arc<Pd>,
    #[pin]
    replacing: Mutex<()>,
    #[pin]
    current: Mutex<State>,
    #[pin]
    look: Work<Self>,
}

enum State {
    /// In use; it may have broken since.
    Up(Arc<LocalQp>),
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

impl WorkItem for Queue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // Others wait for the locks that this takes, on the way of writing memory back.
        let _noio = NoIo::enter();
        this.look_around();
    }
}

impl Queue {
    /// Makes the queue with its first queue pair. `ENETDOWN` without an active port. May sleep.
    pub(crate) fn new(pd: Arc<Pd>) -> Result<Arc<Self>> {
        let first = make(&pd)?;
        Arc::pin_init(
            pin_init!(Self {
                pd,
                replacing <- new_mutex!(()),
                current <- new_mutex!(State::Up(first)),
                look <- kernel::new_work!("kfi_verbs::Queue::look"),
            }),
            GFP_KERNEL,
        )
    }

    /// Has the queue follow its port and address, until what this returns is dropped; then nothing
    /// begins any more, and what is under way ends with the work on `queue`. May sleep.
    pub(crate) fn follow(self: &Arc<Self>, queue: Arc<OwnedQueue>) -> Result<Following> {
        let device: ARef<Device> = self.pd.device().clone();
        let changes = Changes {
            of: self.clone(),
            queue,
        };
        let queue = changes.queue.clone();
        Ok(Following {
            handler: Some(EventHandler::new(&device, changes)?),
            queue,
        })
    }

    /// A queue pair that was not broken when last seen. `ENODEV` once the device goes away. May
    /// sleep.
    pub(crate) fn get(&self) -> Result<Arc<LocalQp>> {
        match self.usable()? {
            Some(qp) => Ok(qp),
            None => self.replace(),
        }
    }

    /// The queue pair, if there is one that was not broken when last seen. `ENODEV` once the device
    /// goes away. May sleep, but not for long.
    fn usable(&self) -> Result<Option<Arc<LocalQp>>> {
        match &*self.current.lock() {
            State::Up(qp) if !qp.is_broken() => Ok(Some(qp.clone())),
            State::Dead => Err(ENODEV),
            _ => Ok(None),
        }
    }

    /// Makes a queue pair in the place of one that is broken or gone. Sleeps.
    fn replace(&self) -> Result<Arc<LocalQp>> {
        // One at a time. The others find what it has made.
        let _replacing = self.replacing.lock();
        let mut looks = 0;
        loop {
            if let Some(qp) = self.usable()? {
                return Ok(qp);
            }
            match make(&self.pd) {
                Ok(fresh) => return self.put(fresh),
                // `look_around` ends it, but may be waiting for who waits for us.
                Err(_) if looks < RESCANS && matches!(*self.current.lock(), State::Moving) => (),
                Err(error) => return Err(error),
            }
            fsleep(RESCAN_AFTER);
            looks += 1;
        }
    }

    /// Puts a queue pair in the place of one that is broken or gone, unless there is another by
    /// now. Returns the one that is there then. Sleeps.
    fn put(&self, fresh: Arc<LocalQp>) -> Result<Arc<LocalQp>> {
        let before = {
            let mut current = self.current.lock();
            match &*current {
                State::Up(qp) if !qp.is_broken() => return Ok(qp.clone()),
                State::Dead => return Err(ENODEV),
                _ => core::mem::replace(&mut *current, State::Up(fresh.clone())),
            }
        };
        // Not under the lock: this may be the last reference.
        match before {
            State::Up(broken) => match broken.broken_by() {
                Some(cause) => self.say_replaced(&cause),
                None => self.say_replaced(&"it was broken"),
            },
            _ => self.say_replaced(&"there was none"),
        }
        Ok(fresh)
    }

    /// Replaces the queue pair if a new one would be elsewhere, and gives it up if its address is
    /// gone and there is no other: who holds an address keeps it from coming back. Sleeps.
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
        let place = old.place();
        let mut current = self.current.lock();
        match &mut *current {
            State::Up(qp) if Arc::ptr_eq(qp, &old) => *current = fresh,
            // Somebody was quicker.
            _ => return,
        }
        drop(current);
        // Those who are inside end what they have begun.
        drop(old);
        if moved {
            self.say_replaced(&"its port or address has changed");
        }
        if place.is_default() {
            self.call_back(&place);
        }
        let mut current = self.current.lock();
        if matches!(*current, State::Moving) {
            *current = State::Down;
        }
    }

    /// Has a default address made anew that could not be while a queue pair held the one before.
    /// That is let go of behind our back, a moment after the queue pair. Sleeps, but not for long.
    fn call_back(&self, place: &Place) {
        for _ in 0..RESCANS {
            rdma::port::rescan(self.pd.device());
            if place.is_there(self.pd.device()) || matches!(*self.current.lock(), State::Dead) {
                return;
            }
            fsleep(RESCAN_AFTER);
        }
    }

    /// The queue pair, if there is one.
    fn up(&self) -> Option<Arc<LocalQp>> {
        match &*self.current.lock() {
            State::Up(qp) => Some(qp.clone()),
            _ => None,
        }
    }

    /// Whether regions can be invalidated on this device; an error if they can't be registered.
    /// Sleeps until the device is done.
    pub(crate) fn can_invalidate(&self) -> Result<bool> {
        let mut flushed = WrError::Flushed;
        for _ in 0..PROBES {
            match self.get()?.probe() {
                Ok(Ok(())) => return Ok(true),
                Ok(Err(WrError::Post(error))) if error == ENOMEM => return Err(error),
                // rxe, for one, doesn't tell a request that failed from one that was in its way.
                Ok(Err(WrError::Flushed)) => flushed = WrError::Flushed,
                Ok(Err(error)) => {
                    pr_info!(
                        "{}: can't invalidate regions ({}): deregisters them\n",
                        self.pd.device().name(),
                        error
                    );
                    return Ok(false);
                }
                Err(WrError::Flushed) => (),
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
        Err(flushed.into())
    }

    /// Ends everything that is under way, and all use. Sleeps until the device has let go of it,
    /// at most as long as a work request may take.
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

    fn say_replaced(&self, cause: &dyn kernel::fmt::Display) {
        pr_warn!(
            "{}: registration queue replaced: {}\n",
            self.pd.device().name(),
            cause
        );
    }
}

fn make(pd: &Arc<Pd>) -> Result<Arc<LocalQp>> {
    LocalQp::new(pd.clone(), DEPTH, crate::params::wr_timeout())
}

/// A queue follows its port and address as long as this is there.
pub(crate) struct Following {
    handler: Option<Pin<KBox<EventHandler<Changes>>>>,
    queue: Arc<OwnedQueue>,
}

impl Following {
    /// Sleeps until what has begun has ended.
    pub(crate) fn settle(&self) {
        self.queue.flush();
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // Nothing begins any more without it.
        self.handler = None;
        self.settle();
    }
}

/// Passes on what the device tells.
struct Changes {
    of: Arc<Queue>,
    queue: Arc<OwnedQueue>,
}

impl PathEvents for Changes {
    fn path_changed(&self) {
        // Not here, where other handlers wait. Already queued is as good.
        let _ = self.queue.enqueue(self.of.clone());
    }
}
