// SPDX-License-Identifier: GPL-2.0

//! The connected part of an endpoint: bindings, options, state and connection events.
//!
//! Lock order: `preparing` is outside of all other locks.

use super::srx::BoundSrx;
use crate::{
    object::{
        counters::TransferCounters,
        cq::CqBinding,
        endpoint_mrs::EndpointMrs,
        eq::{
            EqCore,
            Writer, //
        },
        info::InfoChain,
        prelude::*, //
    },
    provider::{
        cm::{
            Bounds,
            ConnFailed,
            ConnHandler, //
        },
        cq::Delivery,
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
    events: Arc<ConnEvents>,
    /// The regions that are bound to the endpoint.
    ties: Arc<EndpointMrs>,
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
    pub(super) trace: TraceConnection,
}

/// A function that fires the event of an established or ended connection of an endpoint. The last argument is the errno
/// of the end. Any context.
///
/// # Safety
///
/// The first argument is an open endpoint.
pub(super) type TraceConnection = unsafe fn(*mut kfid, bool, c_int);

// SAFETY: `fid` and `context` are never dereferenced here, and all other fields are `Send`.
unsafe impl Send for MsgEpInit {}
// SAFETY: `fid` and `context` are never dereferenced here, and all other fields are `Sync`.
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

    /// Enables the endpoint. `open` lets peers access the bound regions, and runs before the state changes. May
    /// sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the endpoint is already enabled.
    /// - `ENOEQ`: no event queue is bound.
    /// - `ENOCQ`: a direction has no completion queue.
    /// - `EINVAL`: the endpoint shares a receive context, and none is bound.
    /// - The errors of [`SrxBody::agree`](super::srx::SrxBody::agree), of the provider, and of `open`.
    pub(super) fn enable(&self, open: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
        let _alone = self.preparing.lock();
        let eq = self.bound.eq.as_ref().filter(|eq| eq.is_open());
        let eq = eq.ok_or(Refusal::new(Errno::ENOEQ, c"no event queue is bound"))?;
        let (transmit, receive) = (self.bound.transmit.as_ref(), self.bound.receive.as_ref());
        if transmit.is_none() || receive.is_none() && !self.init.shares {
            let why = c"no completion queue is bound for one of the directions";
            return Err(Refusal::new(Errno::ENOCQ, why));
        }
        if self.init.shares {
            let none = Refusal::new(Errno::EINVAL, c"no shared receive context is bound");
            self.bound.srx.as_ref().ok_or(none)?.get().agree(receive)?;
        }
        if self.phase.get() != EpPhase::New {
            return Err(Refusal::new(Errno::EOPBADSTATE, c"the endpoint is enabled"));
        }
        let told = Connection {
            trace: self.init.trace,
            phase: self.phase.clone(),
            ties: self.ties.clone(),
            writer: eq.writer(self.init.fid, self.init.context),
        };
        self.events.set(Some(KBox::new(told, GFP_KERNEL)?));
        let transmit = self.delivery(&self.bound.transmit)?;
        self.imp
            .enable(transmit, self.delivery(&self.bound.receive)?)?;
        open()?;
        let _ = self
            .phase
            .change(EpPhase::Enabled, |phase| phase == EpPhase::New);
        Ok(())
    }

    /// Returns how the provider should find completions of a direction. If it is only when the consumer reads, has the
    /// completion queue look at the endpoint. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    fn delivery(&self, bound: &SetOnce<CqBinding>) -> Result<Delivery, Errno> {
        let Some(CqBinding { cq, .. }) = bound.as_ref() else {
            return Ok(Delivery::default());
        };
        // Counters and shared receives progress without a read.
        let polled = !self.init.shares
            && self.bound.counters.iter().all(|it| it.as_ref().is_none())
            && cq.delivery().polled;
        if polled {
            cq.add_source(&self.ties.endpoint)?;
        }
        Ok(Delivery {
            polled,
            ..cq.delivery()
        })
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

    /// Ends the connection permanently. Sleeps until all transfers have ended. No event follows.
    pub(super) fn end(&self) {
        self.events.set(None);
        let was = self.phase.change(EpPhase::Down, |_| true);
        self.imp.end();
        if was == Ok(EpPhase::Connected) {
            // SAFETY: `fid` is the endpoint that `self` is a part of.
            unsafe { (self.init.trace)(self.init.fid, false, 0) };
        }
    }

    /// Calls [`end`](Self::end), and removes unread events of the endpoint. Sleeps.
    pub(super) fn close(&self) {
        self.end();
        for cq in [&self.bound.transmit, &self.bound.receive] {
            cq.as_ref()
                .inspect(|bound| bound.cq.remove_source(&self.ties.endpoint));
        }
        if let Some(eq) = self.bound.eq.as_ref() {
            eq.forget_all(self.init.fid);
        }
    }

    /// Reports that the connection has ended or failed, because the device is removed, and calls
    /// [`end`](Self::end). Sleeps.
    pub(super) fn device_goes(&self) {
        self.events.shut_down();
        self.end();
    }
}

/// Writes the events of a connection to an event queue.
struct Connection {
    trace: TraceConnection,
    phase: Arc<AtomicPhase>,
    ties: Arc<EndpointMrs>,
    writer: Writer,
}

impl Connection {
    /// Fires the event of an established connection, or of one that has ended.
    fn trace(&self, connected: bool, err: c_int) {
        // SAFETY: The endpoint is open: `Msg::end` removes the handler before the close of the endpoint returns.
        unsafe { (self.trace)(self.writer.fid(), connected, err) };
    }
}

impl ConnHandler for Connection {
    fn connected(&self, data: &[u8]) {
        let was = self
            .phase
            .change(EpPhase::Connected, |phase| phase == EpPhase::Connecting);
        if was.is_ok() {
            self.trace(true, 0);
            self.writer
                .connection(c::KFI_CONNECTED, InfoChain::none(), data);
        }
    }

    fn shut_down(&self) {
        // An endpoint that has not tried to connect also becomes `Down`, so that connecting is refused.
        let was = self
            .phase
            .change(EpPhase::Down, |phase| phase != EpPhase::Down);
        self.ties.go_down();
        match was {
            Ok(EpPhase::Connected) => {
                self.trace(false, 0);
                self.writer
                    .connection(c::KFI_SHUTDOWN, InfoChain::none(), &[])
            }
            // The connection has ended before the consumer got KFI_CONNECTED.
            Ok(EpPhase::Connecting) => {
                let errno = Errno::ECONNRESET;
                self.trace(false, errno.to_c());
                self.writer.fail(errno, -errno.to_c(), &[]);
            }
            _ => (),
        }
    }

    fn failed(&self, how: ConnFailed, data: &[u8]) {
        let was = self
            .phase
            .change(EpPhase::Down, |phase| phase == EpPhase::Connecting);
        if was.is_ok() {
            self.ties.go_down();
            self.trace(false, how.errno.to_c());
            self.writer.fail(how.errno, how.prov_errno, data);
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
