// SPDX-License-Identifier: GPL-2.0

//! The connected part of an endpoint: bindings, options and state.
//!
//! Lock order: `preparing` is outside of all other locks.

use super::srx::BoundSrx;
use crate::{
    object::{
        counters::TransferCounters,
        cq::CqBinding,
        endpoint_mrs::EndpointMrs,
        eq::EqCore,
        prelude::*, //
    },
    provider::{
        cm::Bounds,
        msg_ep::MsgEpOps, //
    }, //
};
use kernel::sync::atomic::Acquire;

/// The default flags of transfers.
#[derive(Clone, Copy)]
pub(super) struct OpFlags {
    pub(super) transmit: u64,
    pub(super) receive: u64,
}

/// The connected part of an endpoint.
pub(super) struct Msg {
    pub(super) imp: KBox<dyn MsgEpOps>,
    pub(super) events: Arc<ConnEvents>,
    /// The regions that are bound to the endpoint.
    pub(super) ties: Arc<EndpointMrs>,
    pub(super) phase: Arc<AtomicPhase>,
    /// Serializes binds and the enable.
    pub(super) preparing: Pin<KBox<Mutex<()>>>,
    pub(super) limits: MsgLimits,
    pub(super) bound: EpBindings,
    pub(super) options: EpOptions,
    pub(super) init: MsgEpInit,
    pub(super) counters: TransferCounters,
}

/// The values of a new endpoint, which are constant.
pub(super) struct MsgEpInit {
    /// The object that events name.
    pub(super) fid: *mut kfid,
    /// The context of error events.
    pub(super) context: *mut c_void,
    /// The default flags of transfers.
    pub(super) op_flags: OpFlags,
    /// The peer from the info.
    pub(super) peer: Option<SocketAddr>,
    /// True if the endpoint was opened with a connection request.
    pub(super) answers: bool,
    /// True if the endpoint takes its receives from a shared context.
    pub(super) shares: bool,
    /// The code point of packets to the peer.
    pub(super) dscp: Option<u8>,
}

// SAFETY: `fid` is an endpoint, which is `Sync`. `context` is never dereferenced, and all other fields are `Send`.
unsafe impl Send for MsgEpInit {}
// SAFETY: `fid` is an endpoint, which is `Sync`. `context` is never dereferenced, and all other fields are `Sync`.
unsafe impl Sync for MsgEpInit {}

impl Msg {
    /// Creates an endpoint without bindings. May sleep.
    pub(super) fn new(
        imp: KBox<dyn MsgEpOps>,
        events: Arc<ConnEvents>,
        ties: Arc<EndpointMrs>,
        limits: MsgLimits,
        init: MsgEpInit,
    ) -> Result<Self, Refusal> {
        let preparing = KBox::pin_init(new_mutex!((), "kfi_ep"), GFP_KERNEL);
        Ok(Self {
            imp,
            events,
            ties,
            phase: Arc::new(AtomicPhase::new(), GFP_KERNEL)?,
            preparing: preparing.map_err(|_| Errno::ENOMEM)?,
            limits,
            bound: EpBindings::default(),
            options: EpOptions::new(),
            init,
            counters: TransferCounters::new(),
        })
    }

    /// Returns `self` if the endpoint is enabled.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the endpoint is not enabled.
    pub(super) fn enabled(&self) -> Result<&Self, Refusal> {
        match self.phase.get() {
            EpPhase::New => Err(EpPhase::New.refusal()),
            _ => Ok(self),
        }
    }

    /// Starts a connection by `begin`. May sleep.
    ///
    /// # Errors
    ///
    /// After an error of the provider, the caller may try again.
    ///
    /// - `EISCONN`: the endpoint is connected.
    /// - `EOPBADSTATE`: the endpoint is not enabled, or has tried to connect.
    /// - `EINVAL`: `data` is longer than `most`.
    /// - The errors of the provider.
    pub(super) fn begin(
        &self,
        data: &[u8],
        most: usize,
        begin: impl FnOnce(&dyn MsgEpOps) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if data.len() > most {
            let refusal = Refusal::new(Errno::EINVAL, c"more private data than there is room for");
            return Err(refusal.value(widen(data.len())));
        }
        let begun = self
            .phase
            .change(EpPhase::Connecting, |phase| phase == EpPhase::Enabled);
        begun.map_err(|phase| match phase {
            EpPhase::Connected => phase.refusal(),
            _ => Refusal::new(Errno::EOPBADSTATE, c"a connection was tried before"),
        })?;
        begin(&*self.imp).inspect_err(|_| {
            let _ = self
                .phase
                .change(EpPhase::Enabled, |phase| phase == EpPhase::Connecting);
        })
    }

    /// Shuts down the connection. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the endpoint is not connected.
    pub(super) fn shut_down(&self) -> Result<(), Refusal> {
        match self.phase.get() {
            EpPhase::Connected => {
                self.imp.shutdown();
                Ok(())
            }
            phase => Err(phase.refusal().with_errno(Errno::ENOTCONN)),
        }
    }

    /// Posts the requests that wait for more. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the endpoint is not connected.
    pub(super) fn flush(&self) -> Result<(), Refusal> {
        match self.phase.get() {
            EpPhase::Connected => {
                self.imp.flush();
                Ok(())
            }
            phase => Err(phase.refusal().with_errno(Errno::ENOTCONN)),
        }
    }
}

/// The queues, counters and receive context that are bound to an endpoint.
#[derive(Default)]
pub(super) struct EpBindings {
    pub(super) eq: SetOnce<Arc<EqCore>>,
    pub(super) transmit: SetOnce<CqBinding>,
    pub(super) receive: SetOnce<CqBinding>,
    /// The shared receive context.
    pub(super) srx: SetOnce<BoundSrx>,
    /// The counters of sends, receives, reads and writes.
    pub(super) counters: [SetOnce<Arc<CntrCore>>; 4],
}

/// The options of an endpoint.
pub(super) struct EpOptions([Atomic<u32>; 3]);

impl EpOptions {
    /// Creates the options with their default values.
    pub(super) fn new() -> Self {
        let Bounds {
            connect,
            stall,
            rnr_delay,
            ..
        } = Bounds::default();
        Self([connect, stall, rnr_delay].map(Atomic::new))
    }

    /// Returns the options that apply to a connection with this code point.
    pub(super) fn bounds(&self, dscp: Option<u8>) -> Bounds {
        let [connect, stall, rnr_delay] = self.0.each_ref().map(|option| option.load(Relaxed));
        Bounds {
            connect,
            stall,
            rnr_delay,
            dscp,
        }
    }

    /// Returns the option with this name, and its range of values.
    pub(super) fn find(&self, name: u32) -> Option<(&Atomic<u32>, core::ops::RangeInclusive<u32>)> {
        // Milliseconds that fit into jiffies at every HZ.
        const MS_MAX: u32 = 1_000_000_000;
        let [connect, stall, rnr_delay] = &self.0;
        match name {
            c::KFI_OPT_CONNECT_TIMEOUT => Some((connect, 1..=MS_MAX)),
            c::KFI_OPT_STALL_TIMEOUT => Some((stall, 0..=MS_MAX)),
            c::KFI_OPT_RNR_DELAY => Some((rnr_delay, 1..=655_360)),
            _ => None,
        }
    }
}

/// The state of an endpoint. States follow in this order, except that [`EpPhase::Connecting`] returns to
/// [`EpPhase::Enabled`] if the provider refuses at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EpPhase {
    /// The consumer may bind objects.
    New,
    /// The consumer may post receives.
    Enabled,
    /// The endpoint waits for its peer.
    Connecting,
    /// The endpoint is connected.
    Connected,
    /// The connection has ended or failed.
    Down,
}

impl EpPhase {
    const ALL: [Self; 5] = [
        Self::New,
        Self::Enabled,
        Self::Connecting,
        Self::Connected,
        Self::Down,
    ];

    /// Returns the refusal of a call that this state does not permit.
    pub(super) const fn refusal(self) -> Refusal {
        match self {
            Self::New => Refusal::new(Errno::EOPBADSTATE, c"the endpoint is not enabled"),
            Self::Enabled => Refusal::new(Errno::ENOTCONN, c"the endpoint is not connected"),
            Self::Connecting => Refusal::new(Errno::ENOTCONN, c"the endpoint is being connected"),
            Self::Connected => Refusal::new(Errno::EISCONN, c"the endpoint is connected"),
            Self::Down => Refusal::new(Errno::ENOTCONN, c"the connection is gone"),
        }
    }
}

/// An [`EpPhase`] that several threads read and change. Any context.
pub(crate) struct AtomicPhase(Atomic<usize>);

impl AtomicPhase {
    /// Creates the state of a new endpoint.
    pub(super) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    fn of(index: usize) -> EpPhase {
        EpPhase::ALL.get(index).copied().unwrap_or(EpPhase::Down)
    }

    fn index(phase: EpPhase) -> usize {
        EpPhase::ALL
            .iter()
            .position(|&other| other == phase)
            .unwrap_or(0)
    }

    /// Returns the state.
    pub(crate) fn get(&self) -> EpPhase {
        Self::of(self.0.load(Acquire))
    }

    /// Changes the state if `may` returns true for the old one, and returns the old one.
    ///
    /// # Errors
    ///
    /// - The old state: `may` returned false for it.
    pub(super) fn change(
        &self,
        to: EpPhase,
        may: impl Fn(EpPhase) -> bool,
    ) -> Result<EpPhase, EpPhase> {
        let mut index = self.0.load(Acquire);
        loop {
            let from = Self::of(index);
            if !may(from) {
                return Err(from);
            }
            match self.0.cmpxchg(index, Self::index(to), Full) {
                Ok(_) => return Ok(from),
                Err(now) => index = now,
            }
        }
    }
}

#[kernel::macros::kunit_tests(kfabric_phase)]
mod tests {
    use super::*;

    #[test]
    fn goes_where_it_may() {
        let phase = AtomicPhase::new();
        assert_eq!(phase.get(), EpPhase::New);
        let go = |to, from| phase.change(to, |phase| phase == from);
        assert_eq!(go(EpPhase::Connecting, EpPhase::Enabled), Err(EpPhase::New));
        assert_eq!(go(EpPhase::Enabled, EpPhase::New), Ok(EpPhase::New));
        assert_eq!(
            go(EpPhase::Connecting, EpPhase::Enabled),
            Ok(EpPhase::Enabled)
        );
        assert_eq!(phase.get(), EpPhase::Connecting);
        assert_eq!(
            phase.change(EpPhase::Down, |_| true),
            Ok(EpPhase::Connecting)
        );
        assert_eq!(phase.get(), EpPhase::Down);
    }
}
