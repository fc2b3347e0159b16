// SPDX-License-Identifier: GPL-2.0

//! What an endpoint is to the regions that are bound to it: an identity, and a door.
//!
//! Lock order: an endpoint's lock is a leaf. It is taken with interrupts off, in any context in
//! which a spinlock may be taken, which is what "any context" means below.

mod kunit;

use crate::{
    new_irq_lock,
    support::{
        errno::Errno,
        irqlock::IrqLock, //
    }, //
};
use core::any::Any;
use kernel::{
    new_condvar,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        CondVar, //
    }, //
};

/// An endpoint.
///
/// The consumer has it by its `struct kfid_ep`, a region that is bound to it by an `Arc` of its
/// own. So a region may outlive the endpoint; then no peer gets to it any more.
///
/// Nobody tells the regions that their endpoint is closed. Whoever lets a peer get to one of them
/// goes through the endpoint, by [`enter`](Self::enter), for as long as the access takes. That
/// closing waits for those who are on their way is what makes it final.
#[pin_data]
pub struct Endpoint {
    id: u64,
    auth_key: KVec<u8>,
    #[pin]
    state: IrqLock<State>,
    /// Notified when the last of those on their way has come out of a closed endpoint.
    #[pin]
    left: CondVar,
}

struct State {
    phase: Phase,
    /// How many are on their way.
    users: usize,
    /// What the provider has of it, for the regions that are bound to it.
    part: Option<Arc<dyn Any + Send + Sync>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Enabled,
    Closed,
}

static LAST_ID: Atomic<u64> = Atomic::new(0);

impl Endpoint {
    /// An endpoint that is not enabled yet.
    pub(crate) fn new(auth_key: KVec<u8>) -> impl PinInit<Self> {
        pin_init!(Self {
            id: LAST_ID.fetch_add(1, Relaxed).wrapping_add(1),
            auth_key,
            state <- new_irq_lock!(State { phase: Phase::New, users: 0, part: None }, c"kfabric_endpoint"),
            left <- new_condvar!("kfabric_endpoint"),
        })
    }

    /// A number that no other endpoint has, had or will have; not 0.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its authorization key, or that of its domain; empty if it has none.
    pub fn auth_key(&self) -> &[u8] {
        &self.auth_key
    }

    /// Has its consumer not closed it yet? Any context.
    pub fn is_open(&self) -> bool {
        self.state.with(|state| state.phase != Phase::Closed)
    }

    /// Is it open, and enabled? Any context.
    pub fn is_enabled(&self) -> bool {
        self.state.with(|state| state.phase == Phase::Enabled)
    }

    /// Lets an access through, unless the endpoint isn't enabled or is closed. Closing it waits
    /// until what this gives is dropped. Both may be done in any context.
    pub fn enter(&self) -> Option<Inside<'_>> {
        self.state.with(|state| match state.phase {
            Phase::Enabled => {
                state.users += 1;
                Some(Inside(self))
            }
            _ => None,
        })
    }

    /// Attaches what the provider has of it, which is dropped when the endpoint is closed, or before it is
    /// opened. May sleep, but not for long.
    pub fn attach(&self, part: Arc<dyn Any + Send + Sync>) {
        let before = self.state.with(|state| state.part.replace(part));
        drop(before);
    }

    /// Opens the door; `EOPBADSTATE` if it has been opened before. Any context.
    pub(crate) fn enable(&self) -> Result<(), Errno> {
        self.state.with(|state| match state.phase {
            Phase::New => {
                state.phase = Phase::Enabled;
                Ok(())
            }
            _ => Err(Errno::EOPBADSTATE),
        })
    }

    /// Shuts the door, for good. Sleeps until those on their way have come out.
    pub(crate) fn close(&self) {
        let part = self.state.with(|state| {
            state.phase = Phase::Closed;
            while state.users > 0 {
                self.left.wait(state);
            }
            state.part.take()
        });
        drop(part);
    }
}

/// An access that is under way through an endpoint, until this is dropped.
///
/// # Invariants
///
/// Counted among the endpoint's users.
pub struct Inside<'a>(&'a Endpoint);

impl Inside<'_> {
    /// What the provider has [attached](Endpoint::attach); to be dropped before this. Any context.
    pub fn part(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.0.state.with(|state| state.part.clone())
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.state.with(|state| {
            state.users -= 1;
            // Under the lock: whoever closes the endpoint may then let it go.
            if state.users == 0 && state.phase == Phase::Closed {
                self.0.left.notify_all();
            }
        });
    }
}
