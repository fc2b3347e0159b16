// SPDX-License-Identifier: GPL-2.0

//! How a registration queue follows its port and address.

use super::{
    make,
    self_qp::{
        Outlook,
        PortAddress, //
    },
    Queue,
    State,
    RESCANS,
    RESCAN_AFTER, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::delay::fsleep,
    workqueue::WorkItem, //
};
use kfabric::{
    workqueue::OwnedQueue,
    NoIo, //
};
use rdma::device::{
    EventHandler,
    PathEvents, //
};

/// A queue follows its port and address as long as this is there.
pub(crate) struct Following {
    handler: Option<Pin<KBox<EventHandler<Changes>>>>,
    work: Arc<OwnedQueue>,
}

impl Following {
    /// Has a queue follow its port and address, until this is dropped; then nothing begins any
    /// more, and what is under way ends with the work on `work`. May sleep.
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

    /// Sleeps until what has begun has ended.
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

/// Passes on what the device tells.
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
        let address = old.address;
        let mut current = self.current.lock();
        match &mut *current {
            State::Up(up) if Arc::ptr_eq(&up.qp, &old.qp) => *current = fresh,
            // Somebody was quicker.
            _ => return,
        }
        drop(current);
        // Tasks that are inside end what they have begun.
        drop(old);
        if moved {
            self.say_replaced(&"its port or address has changed");
        }
        if address.is_default() {
            self.call_back(&address);
        }
        let mut current = self.current.lock();
        if matches!(*current, State::Moving) {
            *current = State::Down;
        }
    }

    /// Has a default address made anew that could not be while a queue pair held the one before.
    /// That is let go of behind our back, a moment after the queue pair. Sleeps, but not for long.
    fn call_back(&self, address: &PortAddress) {
        for _ in 0..RESCANS {
            rdma::port::rescan(self.pd.device());
            if address.is_there(self.pd.device()) || matches!(*self.current.lock(), State::Dead) {
                return;
            }
            fsleep(RESCAN_AFTER);
        }
    }
}
