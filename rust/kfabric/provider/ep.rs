// SPDX-License-Identifier: GPL-2.0

//! The part of an endpoint that bound regions use: its identity, and the gate for accesses of peers.
//!
//! Lock order: an endpoint's lock is a leaf, and is taken with interrupts off. "Any context" below means any context that
//! can take a spinlock.

use crate::prelude::*;
use core::any::Any;

/// The provider's part of an endpoint.
pub trait EpPart: Any + Send + Sync {
    /// Looks for completed transfers, if the endpoint was enabled with [`Delivery::polled`]. The caller reads a completion
    /// queue of the endpoint. Any context.
    ///
    /// [`Delivery::polled`]: super::cq::Delivery::polled
    fn progress(&self);

    /// Reports the next completion, also an earlier one that nobody has looked for, although only readers look for
    /// completions. A later [`progress`](Self::progress) ends that. Any context.
    fn arm(&self);

    /// Returns `self` as [`Any`], for extensions of the provider. Any context.
    fn as_any(&self) -> &dyn Any;
}

/// An endpoint.
///
/// The consumer's object and each bound region keep a reference. A region may outlive the endpoint, but no peer can
/// access it after the close.
///
/// A provider calls [`enter`](Self::enter) for each access of a peer to a bound region. The close prevents new accesses
/// and waits for current ones.
#[pin_data]
pub struct EpCore {
    id: u64,
    auth_key: KVec<u8>,
    #[pin]
    state: IrqLock<State>,
    /// Notified when the last access to a closed endpoint ends.
    #[pin]
    left: CondVar,
}

struct State {
    phase: EndpointPhase,
    /// The number of current accesses.
    users: usize,
    /// The provider's part, for bound regions.
    part: Option<Arc<dyn EpPart>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EndpointPhase {
    New,
    Enabled,
    Closed,
}

static LAST_ID: Atomic<u64> = Atomic::new(0);

impl EpCore {
    /// Creates an endpoint that is not enabled.
    pub(crate) fn new(auth_key: KVec<u8>) -> impl PinInit<Self> {
        pin_init!(Self {
            id: LAST_ID.fetch_add(1, Relaxed).wrapping_add(1),
            auth_key,
            state <- new_irq_lock!(State { phase: EndpointPhase::New, users: 0, part: None }, c"kfabric_endpoint"),
            left <- new_condvar!("kfabric_endpoint"),
        })
    }

    /// Returns the unique number of the endpoint, which is not 0.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the authorization key of the endpoint or of its domain. It may be empty.
    pub fn auth_key(&self) -> &[u8] {
        &self.auth_key
    }

    /// Returns whether the consumer has the endpoint open. Any context.
    pub fn is_open(&self) -> bool {
        self.state
            .with(|state| state.phase != EndpointPhase::Closed)
    }

    /// Returns whether the endpoint is open and enabled. Any context.
    pub fn is_enabled(&self) -> bool {
        self.state
            .with(|state| state.phase == EndpointPhase::Enabled)
    }

    /// Starts an access, if the endpoint is open and enabled. The close waits until the caller drops the result. Any
    /// context, also for the drop.
    pub fn enter(&self) -> Option<EndpointAccess<'_>> {
        self.state.with(|state| match state.phase {
            EndpointPhase::Enabled => {
                state.users += 1;
                Some(EndpointAccess(self))
            }
            _ => None,
        })
    }

    /// Starts an access like [`enter`](Self::enter), and returns the provider's [attached](Self::attach) part, too. The
    /// caller must drop the part first. Any context.
    pub(crate) fn enter_part(&self) -> Option<(EndpointAccess<'_>, Arc<dyn EpPart>)> {
        self.state.with(|state| {
            if state.phase != EndpointPhase::Enabled {
                return None;
            }
            let part = state.part.clone()?;
            state.users += 1;
            Some((EndpointAccess(self), part))
        })
    }

    /// Attaches the provider's part. The close drops it. May sleep for a short time.
    pub fn attach(&self, part: Arc<dyn EpPart>) {
        let before = self.state.with(|state| state.part.replace(part));
        drop(before);
    }

    /// Enables accesses. Any context.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the endpoint is enabled or closed.
    pub(crate) fn enable(&self) -> Result<(), Errno> {
        self.state.with(|state| match state.phase {
            EndpointPhase::New => {
                state.phase = EndpointPhase::Enabled;
                Ok(())
            }
            _ => Err(Errno::EOPBADSTATE),
        })
    }

    /// Prevents accesses permanently. Sleeps until current accesses have ended.
    pub(crate) fn close(&self) {
        let part = self.state.with(|state| {
            state.phase = EndpointPhase::Closed;
            while state.users > 0 {
                self.left.wait(state);
            }
            state.part.take()
        });
        drop(part);
    }
}

/// A current access through an endpoint. Dropping it ends the access.
///
/// # Invariants
///
/// The endpoint's `users` counts it.
pub struct EndpointAccess<'a>(&'a EpCore);

impl EndpointAccess<'_> {
    /// Returns the provider's [attached](EpCore::attach) part. The caller must drop it before `self`. Any context.
    pub fn part(&self) -> Option<Arc<dyn EpPart>> {
        self.0.state.with(|state| state.part.clone())
    }
}

impl Drop for EndpointAccess<'_> {
    fn drop(&mut self) {
        self.0.state.with(|state| {
            state.users -= 1;
            // Notify under the lock, because the closing task may free the endpoint afterwards.
            if state.users == 0 && state.phase == EndpointPhase::Closed {
                self.0.left.notify_all();
            }
        });
    }
}

#[kernel::macros::kunit_tests(kfabric_endpoint)]
mod tests {
    use super::EpCore;
    use crate::{
        prelude::*,
        support::workqueue::OwnedQueue, //
    };
    use kernel::{
        sync::atomic::{
            Acquire,
            Release, //
        },
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    fn endpoint() -> Result<Arc<EpCore>> {
        Arc::pin_init(EpCore::new(KVec::new()), GFP_KERNEL)
    }

    #[test]
    fn only_enabled_ones_let_through() -> Result {
        let endpoint = endpoint()?;
        assert!(endpoint.is_open() && !endpoint.is_enabled());
        assert!(endpoint.enter().is_none());
        assert_eq!(endpoint.enable(), Ok(()));
        assert!(endpoint.is_open() && endpoint.is_enabled());
        assert_eq!(endpoint.enable(), Err(Errno::EOPBADSTATE));
        assert!(endpoint.enter().is_some());
        endpoint.close();
        assert!(!endpoint.is_open() && !endpoint.is_enabled());
        assert!(endpoint.enter().is_none());
        assert_eq!(endpoint.enable(), Err(Errno::EOPBADSTATE));
        Ok(())
    }

    #[test]
    fn ids_differ() -> Result {
        let (first, second) = (endpoint()?, endpoint()?);
        assert!(first.id() != 0 && first.id() != second.id());
        Ok(())
    }

    #[test]
    fn close_waits_for_accesses() -> Result {
        let endpoint = endpoint()?;
        let done = Arc::new(Atomic::new(false), GFP_KERNEL)?;
        // Dropped after those inside, since it waits for the close.
        let queue = OwnedQueue::new(c"kfabric_kunit", 1)?;
        assert_eq!(endpoint.enable(), Ok(()));
        let first = endpoint.enter().ok_or(EINVAL)?;
        let second = endpoint.enter().ok_or(EINVAL)?;
        let (closed, told) = (endpoint.clone(), done.clone());
        queue.try_spawn(GFP_KERNEL, move || {
            closed.close();
            told.store(true, Release);
        })?;
        for _ in 0..1000 {
            if !endpoint.is_open() {
                break;
            }
            fsleep(Delta::from_millis(1));
        }
        assert!(endpoint.enter().is_none());
        drop(first);
        fsleep(Delta::from_millis(10));
        assert!(!done.load(Acquire));
        drop(second);
        drop(queue);
        assert!(done.load(Acquire));
        Ok(())
    }
}
