// SPDX-License-Identifier: GPL-2.0

//! The states of a region, which are the core's alone: providers can't get them wrong.
//!
//! ```text
//!               begin()            end(true)
//!   Disabled ------------> Pending ----------> Enabled
//!    |    ^ ^                 |
//!    +----+ +----end_again()--+--------------> Failed
//!   bind_*()                       end(false)
//! ```
//!
//! What is enabled for an endpoint is `Fallen` when that has gone down.
//!
//! A region is closed in any state but `Pending`, which ends by itself: it is `Closing` then, and last
//! `Closed`.

mod kunit;

use crate::{
    object::ties::Ties,
    provider::{
        cntr::Counter,
        Bindings, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use kernel::{
    str::CStr,
    sync::Arc, //
};

/// Where a region is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No peer can reach it. It can be bound.
    Disabled,
    /// It is being enabled.
    Pending,
    /// Peers can reach it.
    Enabled,
    /// It could not be enabled, and is only there to be closed.
    Failed,
    /// Its endpoint has gone down: no peer can reach it any more, and it is only there to be closed.
    Fallen,
    /// It is being closed.
    Closing,
    /// It is closed.
    Closed,
}

/// Something that a region may have to be bound to before it is enabled.
#[derive(Debug)]
enum Binding<T> {
    /// It doesn't have to, and can't.
    No,
    /// It is not yet.
    Wanted,
    /// It is.
    To(T),
}

impl<T> Binding<T> {
    fn wanted(wanted: bool) -> Self {
        if wanted {
            Self::Wanted
        } else {
            Self::No
        }
    }

    fn is_missing(&self) -> bool {
        matches!(self, Self::Wanted)
    }

    fn get(&self) -> Option<&T> {
        match self {
            Self::To(bound) => Some(bound),
            _ => None,
        }
    }

    fn bind(&mut self, to: T) -> Result<(), Refusal> {
        match self {
            Self::No => Err(Refusal::new(
                Errno::EINVAL,
                c"the region was not registered to be bound to such an object",
            )),
            Self::To(_) => Err(Refusal::new(Errno::EINVAL, c"already bound")),
            Self::Wanted => {
                *self = Self::To(to);
                Ok(())
            }
        }
    }
}

/// The state of a region that may be bound to a counter `C` and an endpoint `E`.
#[derive(Debug)]
pub(super) struct State<C, E> {
    phase: Phase,
    counter: Binding<C>,
    endpoint: Binding<E>,
}

impl<C, E> State<C, E> {
    /// A new region; `counter` and `endpoint` tell what it has to be bound to.
    pub(super) fn new(counter: bool, endpoint: bool) -> Self {
        Self {
            phase: Phase::Disabled,
            counter: Binding::wanted(counter),
            endpoint: Binding::wanted(endpoint),
        }
    }

    /// A region that was enabled before anybody knew of it, and needn't be bound.
    pub(super) fn enabled() -> Self {
        Self {
            phase: Phase::Enabled,
            ..Self::new(false, false)
        }
    }

    /// Is there something that it has yet to be bound to?
    pub(super) fn is_unbound(&self) -> bool {
        self.counter.is_missing() || self.endpoint.is_missing()
    }

    /// Binds a counter; only before enabling.
    pub(super) fn bind_counter(&mut self, counter: C) -> Result<(), Refusal> {
        self.check(
            Phase::Disabled,
            c"regions are bound before they are enabled",
        )?;
        self.counter.bind(counter)
    }

    /// Binds an endpoint; only before enabling.
    pub(super) fn bind_endpoint(&mut self, endpoint: E) -> Result<(), Refusal> {
        self.check(
            Phase::Disabled,
            c"regions are bound before they are enabled",
        )?;
        self.endpoint.bind(endpoint)
    }

    /// The counter that it is bound to.
    pub(super) fn counter(&self) -> Option<&C> {
        self.counter.get()
    }

    /// The endpoint that it is bound to.
    pub(super) fn endpoint(&self) -> Option<&E> {
        self.endpoint.get()
    }

    /// Enabling begins; whoever began it ends it.
    pub(super) fn begin(&mut self) -> Result<(), Refusal> {
        self.check(Phase::Disabled, c"not disabled any more")?;
        if self.is_unbound() {
            return Err(Refusal::new(Errno::EINVAL, c"not bound yet"));
        }
        self.phase = Phase::Pending;
        Ok(())
    }

    /// Enabling has ended, well or not.
    pub(super) fn end(&mut self, well: bool) {
        self.phase = if well { Phase::Enabled } else { Phase::Failed };
    }

    /// It is as it was before enabling began.
    pub(super) fn end_again(&mut self) {
        self.phase = Phase::Disabled;
    }

    /// What was enabled is out of reach.
    pub(super) fn fall(&mut self) {
        self.phase = Phase::Fallen;
    }

    /// Has it fallen?
    pub(super) fn is_fallen(&self) -> bool {
        self.phase == Phase::Fallen
    }

    /// Closing begins, of what isn't pending.
    pub(super) fn begin_close(&mut self) {
        self.phase = Phase::Closing;
    }

    /// Closing has ended.
    pub(super) fn end_close(&mut self) {
        self.phase = Phase::Closed;
    }

    /// Is it disabled?
    pub(super) fn is_disabled(&self) -> bool {
        self.phase == Phase::Disabled
    }

    /// Is it being closed?
    pub(super) fn is_closing(&self) -> bool {
        self.phase == Phase::Closing
    }

    /// Is it being enabled?
    pub(super) fn is_pending(&self) -> bool {
        self.phase == Phase::Pending
    }

    /// `EOPBADSTATE` unless peers can reach it.
    pub(super) fn check_enabled(&self) -> Result<(), Refusal> {
        self.check(
            Phase::Enabled,
            match self.is_fallen() {
                true => c"the region's endpoint has gone down",
                false => c"the region is not enabled",
            },
        )
    }

    fn check(&self, phase: Phase, why: &'static CStr) -> Result<(), Refusal> {
        if self.phase == phase {
            Ok(())
        } else {
            Err(Refusal::new(Errno::EOPBADSTATE, why))
        }
    }
}

impl State<Arc<Counter>, Arc<Ties>> {
    /// What it is bound to, for its provider.
    pub(super) fn bindings(&self, more: bool) -> Bindings {
        Bindings {
            counter: self.counter.get().cloned(),
            endpoint: self.endpoint.get().map(|ties| ties.endpoint().clone()),
            more,
        }
    }
}
