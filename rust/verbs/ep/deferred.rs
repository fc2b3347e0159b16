// SPDX-License-Identifier: GPL-2.0

//! Transfers that wait for more to come (`KFI_MORE`), to be given to the device in one go.
//!
//! Lock order: the lock is before those of the driver. No transfer ends under it.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    irqlock::IrqLock,
    new_irq_lock,
    Errno, //
};
use rdma::{
    cm::{
        Chain,
        Endpoint,
        Tail,
        Unposted, //
    },
    request::{
        CompletionHandler,
        NotPosted,
        Request, //
    },
    wr::WorkRequest, //
};

/// Transfers that wait.
#[pin_data]
pub(super) struct DeferredSends {
    #[pin]
    state: IrqLock<State>,
}

enum State {
    /// Requests can be given.
    Open {
        /// The waiting requests, if any.
        waiting: Option<Chain>,
        /// The last posted unsignaled requests, whose completion a later request reports.
        tail: Option<Tail>,
    },
    /// The device didn't take what has waited, which is to be ended where a handler may be called.
    Failed { _unposted: Unposted },
    /// Nothing waits any more.
    Shut,
}

impl State {
    /// Has a chain wait, or gives it to the device; returns whether that didn't take it.
    fn set(&mut self, chain: Chain, waits: bool) -> bool {
        if waits {
            *self = Self::Open {
                waiting: Some(chain),
                tail: None,
            };
            return false;
        }
        match chain.try_post() {
            Ok(tail) => {
                let waiting = None;
                *self = Self::Open { waiting, tail };
                false
            }
            Err(_unposted) => {
                *self = Self::Failed { _unposted };
                true
            }
        }
    }
}

/// A request to the peer.
pub(super) type Send<K, F> = KBox<Request<WorkRequest<K>, F>>;

/// The completion of a request.
pub(super) type Given<K, F> = Result<(), NotPosted<WorkRequest<K>, F>>;

/// How a request is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Giving {
    /// It is told how it ends.
    TransferHandler,
    /// A later request reports it, unless many unsignaled requests precede it.
    Silent,
}

impl DeferredSends {
    /// Creates an empty state.
    pub(super) fn new() -> impl PinInit<Self> {
        let nothing = State::Open {
            waiting: None,
            tail: None,
        };
        pin_init!(Self {
            state <- new_irq_lock!(nothing, c"kfi_verbs_staged"),
        })
    }

    /// Gives a request to the device behind those that wait, or has it wait with them if there is
    /// `more` to come. Returns too whether the device didn't take something that was accepted before:
    /// then the connection has failed. Any context.
    pub(super) fn give<K, F>(
        &self,
        endpoint: &Arc<Endpoint>,
        request: Send<K, F>,
        more: bool,
        how: Giving,
    ) -> (Given<K, F>, bool)
    where
        K: core::marker::Send + 'static,
        F: CompletionHandler<WorkRequest<K>>,
    {
        self.state.with(|state| {
            let State::Open { waiting, tail } = &mut **state else {
                // It would overtake what has ended without being sent.
                let error = Errno::ENOTCONN.into();
                return (Err(NotPosted { error, request }), false);
            };
            let mut chain = match waiting.take() {
                Some(chain) => chain,
                None if !more && tail.is_none() && how == Giving::TransferHandler => {
                    return (endpoint.post(request), false)
                }
                None => match endpoint.begin_chain_behind(tail) {
                    Ok(chain) => chain,
                    Err(error) => return (Err(NotPosted { error, request }), false),
                },
            };
            let given = match how {
                Giving::TransferHandler => chain.push(request),
                Giving::Silent => chain.push_unsignaled(request),
            };
            // Nor do they wait if there is no room for this one: who waits for room waits for them.
            let waits = more && given.is_ok();
            (given, state.set(chain, waits))
        })
    }

    /// Gives several requests for the endpoint to the device like [`give`](Self::give). Refused
    /// requests are returned. Returns whether the device refused earlier requests. Any context.
    pub(super) fn give_all(
        &self,
        endpoint: &Arc<Endpoint>,
        requests: Chain,
        more: bool,
    ) -> Result<bool, (Error, Chain)> {
        self.state.with(|state| {
            let State::Open { waiting, tail } = &mut **state else {
                return Err((Errno::ENOTCONN.into(), requests));
            };
            let mut chain = match waiting.take() {
                Some(chain) => chain,
                None => match endpoint.begin_chain_behind(tail) {
                    Ok(chain) => chain,
                    Err(error) => return Err((error, requests)),
                },
            };
            chain.append(requests);
            Ok(state.set(chain, more))
        })
    }

    /// Gives those that wait to the device; returns whether it didn't take them. Any context.
    pub(super) fn go(&self) -> bool {
        self.state.with(|state| match &mut **state {
            State::Open { waiting, .. } => match waiting.take() {
                Some(chain) => state.set(chain, false),
                None => false,
            },
            _ => false,
        })
    }

    /// Ends what waits, as cancelled, and lets nothing wait any more. May call handlers of completion
    /// queues.
    pub(super) fn shut(&self) {
        let waiting = self
            .state
            .with(|state| core::mem::replace(&mut **state, State::Shut));
        drop(waiting);
    }
}
