// SPDX-License-Identifier: GPL-2.0

//! What an endpoint has that is connected and transfers something.
//!
//! Lock order: the lock of what is done before there is a connection is outside of all others.
//!
//! What is bound to an endpoint: queues and counters that its transfers report to.
//!
//! What can be set of an endpoint.
//!
//! Where an endpoint is in its life.

use super::srx::BoundSrx;
use crate::{
    object::{
        cq::Reports,
        eq::{
            BoundEq,
            Writer, //
        },
        info::Info,
        ties::Ties, //
    },
    post::op::Op,
    provider::{
        cm::{
            Bounds,
            ConnFailed,
            Events,
            Told, //
        },
        cntr::Counter,
        msg_ep::{
            MsgEp,
            MsgLimits, //
        }, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use core::net::SocketAddr;
use kernel::{
    ffi::c_void,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Mutex,
        MutexGuard,
        SetOnce, //
    }, //
};
use kfi_bindings::{
    kfid,
    KFI_CONNECTED,
    KFI_OPT_CONNECT_TIMEOUT,
    KFI_OPT_RNR_DELAY,
    KFI_OPT_STALL_TIMEOUT,
    KFI_SHUTDOWN, //
};

/// How transfers are done whose call has no flags.
#[derive(Clone, Copy)]
pub(super) struct OpFlags {
    pub(super) transmit: u64,
    pub(super) receive: u64,
}

/// An endpoint that is connected and transfers something.
pub(super) struct Msg {
    imp: KBox<dyn MsgEp>,
    events: Arc<Events>,
    /// Its regions, which go down with it.
    ties: Arc<Ties>,
    phase: Arc<AtomicPhase>,
    preparing: Pin<KBox<Mutex<()>>>,
    limits: MsgLimits,
    bound: Bound,
    options: Options,
    op_flags: OpFlags,
    /// The peer of the info that it was made of.
    peer: Option<SocketAddr>,
    /// It was made to answer a request.
    answers: bool,
    /// Its receives are those of a context that it shares.
    shares: bool,
    /// What events name.
    fid: *mut kfid,
    context: *mut c_void,
}

// SAFETY: The pointers are handed through, and not followed.
unsafe impl Send for Msg {}
// SAFETY: As for sending; all else can be shared.
unsafe impl Sync for Msg {}

/// What is known of an endpoint when it is opened, besides what the provider has.
pub(super) struct Known {
    /// What events name.
    pub(super) fid: *mut kfid,
    /// What events about failures have.
    pub(super) context: *mut c_void,
    /// How transfers are done whose call has no flags.
    pub(super) op_flags: OpFlags,
    /// The peer, if one was asked for.
    pub(super) peer: Option<SocketAddr>,
    /// It is made to answer a request.
    pub(super) answers: bool,
    /// Its receives are to be those of a context that it shares.
    pub(super) shares: bool,
}

impl Msg {
    /// An endpoint that nothing is bound to. May sleep.
    pub(super) fn new(
        imp: KBox<dyn MsgEp>,
        events: Arc<Events>,
        ties: Arc<Ties>,
        limits: MsgLimits,
        known: Known,
    ) -> Result<Self, Refusal> {
        let preparing = KBox::pin_init(new_mutex!((), "kfi_ep"), GFP_KERNEL);
        Ok(Self {
            imp,
            events,
            ties,
            phase: Arc::new(AtomicPhase::new(), GFP_KERNEL)?,
            preparing: preparing.map_err(|_| Errno::ENOMEM)?,
            limits,
            bound: Bound::new(),
            options: Options::new(),
            op_flags: known.op_flags,
            peer: known.peer,
            answers: known.answers,
            shares: known.shares,
            fid: known.fid,
            context: known.context,
        })
    }

    pub(super) fn imp(&self) -> &dyn MsgEp {
        &*self.imp
    }

    pub(super) fn phase(&self) -> &AtomicPhase {
        &self.phase
    }

    /// To be held while something is bound to it, or it is enabled. Sleeps.
    pub(super) fn preparing(&self) -> MutexGuard<'_, ()> {
        self.preparing.lock()
    }

    pub(super) fn limits(&self) -> &MsgLimits {
        &self.limits
    }

    pub(super) fn bound(&self) -> &Bound {
        &self.bound
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    pub(super) fn op_flags(&self) -> OpFlags {
        self.op_flags
    }

    /// Are its receives those of a context that it shares?
    pub(super) fn shares(&self) -> bool {
        self.shares
    }

    /// Itself, once it is enabled.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: it isn't.
    pub(super) fn enabled(&self) -> Result<&Self, Refusal> {
        match self.phase.get() {
            Phase::New => Err(Phase::New.refusal()),
            _ => Ok(self),
        }
    }

    /// Lets receives be posted, and has `open` let peers in, before anybody finds it enabled. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: it was done before.
    /// - `ENOEQ`, `ENOCQ`: there is no event queue, or not a completion queue for both directions.
    /// - `EINVAL`: it is to share a receive context, and none is bound.
    /// - Those of [`SrxBody::agree`](super::srx::SrxBody::agree), of the provider, and of `open`.
    pub(super) fn enable(&self, open: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
        let _alone = self.preparing();
        let eq = self.bound.eq.as_ref().filter(|eq| eq.is_open());
        let eq = eq.ok_or(Refusal::new(Errno::ENOEQ, c"no event queue is bound"))?;
        let (transmit, receive) = (self.bound.transmit.as_ref(), self.bound.receive.as_ref());
        if transmit.is_none() || receive.is_none() && !self.shares {
            let why = c"no completion queue is bound for one of the directions";
            return Err(Refusal::new(Errno::ENOCQ, why));
        }
        if self.shares {
            let none = Refusal::new(Errno::EINVAL, c"no shared receive context is bound");
            self.bound.srx.as_ref().ok_or(none)?.get().agree(receive)?;
        }
        if self.phase.get() != Phase::New {
            return Err(Refusal::new(Errno::EOPBADSTATE, c"the endpoint is enabled"));
        }
        let told = Connection {
            phase: self.phase.clone(),
            ties: self.ties.clone(),
            writer: eq.writer(self.fid, self.context),
        };
        self.events.set(Some(KBox::new(told, GFP_KERNEL)?));
        self.imp.enable()?;
        open()?;
        let _ = self
            .phase
            .change(Phase::Enabled, |phase| phase == Phase::New);
        Ok(())
    }

    /// Begins to get a connection by `begin`. May sleep.
    ///
    /// # Errors
    ///
    /// Then there is none, but it may be tried again.
    ///
    /// - `EISCONN`: there is one.
    /// - `EOPBADSTATE`: one was tried before.
    /// - `EINVAL`: too many bytes for the peer.
    /// - Those of the provider.
    pub(super) fn begin(
        &self,
        data: &[u8],
        most: usize,
        begin: impl FnOnce(&dyn MsgEp) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if data.len() > most {
            let refusal = Refusal::new(Errno::EINVAL, c"more private data than there is room for");
            return Err(refusal.value(widen(data.len())));
        }
        let begun = self
            .phase
            .change(Phase::Connecting, |phase| phase == Phase::Enabled);
        begun.map_err(|phase| match phase {
            Phase::Connected => phase.refusal(),
            _ => Refusal::new(Errno::EOPBADSTATE, c"a connection was tried before"),
        })?;
        begin(self.imp()).inspect_err(|_| {
            let _ = self
                .phase
                .change(Phase::Enabled, |phase| phase == Phase::Connecting);
        })
    }

    /// Was it made to answer a request?
    pub(super) fn answers(&self) -> bool {
        self.answers
    }

    /// The peer that was asked for when the endpoint was made.
    pub(super) fn wanted_peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Takes the connection down. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: there is none.
    pub(super) fn shut_down(&self) -> Result<(), Refusal> {
        match self.phase.get() {
            Phase::Connected => {
                self.imp.shutdown();
                Ok(())
            }
            phase => Err(phase.refusal().with_errno(Errno::ENOTCONN)),
        }
    }

    /// Ends everything, for good. Sleeps until all transfers have ended, and nothing is told any more.
    pub(super) fn end(&self) {
        self.events.set(None);
        let _ = self.phase.change(Phase::Down, |_| true);
        self.imp.end();
    }

    /// As [`end`](Self::end), and what was told and not read is forgotten.
    pub(super) fn close(&self) {
        self.end();
        if let Some(eq) = self.bound.eq.as_ref() {
            eq.forget_all(self.fid);
        }
    }

    /// The device goes: the consumer is told that the connection has ended, or won't be. Sleeps as
    /// [`end`](Self::end) does.
    pub(super) fn device_goes(&self) {
        self.events.shut_down();
        self.end();
    }
}

/// Tells an event queue what becomes of a connection.
struct Connection {
    phase: Arc<AtomicPhase>,
    ties: Arc<Ties>,
    writer: Writer,
}

impl Told for Connection {
    fn connected(&self, data: &[u8]) {
        let was = self
            .phase
            .change(Phase::Connected, |phase| phase == Phase::Connecting);
        if was.is_ok() {
            self.writer.connection(KFI_CONNECTED, Info::none(), data);
        }
    }

    fn shut_down(&self) {
        // Also before anybody has tried to connect, who is refused from here on.
        let was = self.phase.change(Phase::Down, |phase| phase != Phase::Down);
        self.ties.go_down();
        match was {
            Ok(Phase::Connected) => self.writer.connection(KFI_SHUTDOWN, Info::none(), &[]),
            // It has ended before anybody knew of it.
            Ok(Phase::Connecting) => {
                let errno = Errno::ECONNRESET;
                self.writer.fail(errno, -errno.to_c(), &[]);
            }
            _ => (),
        }
    }

    fn failed(&self, how: ConnFailed, data: &[u8]) {
        let was = self
            .phase
            .change(Phase::Down, |phase| phase == Phase::Connecting);
        if was.is_ok() {
            self.ties.go_down();
            self.writer.fail(how.errno, how.prov_errno, data);
        }
    }
}

/// What is bound to an endpoint.
pub(super) struct Bound {
    pub(super) eq: SetOnce<BoundEq>,
    pub(super) transmit: SetOnce<Reports>,
    pub(super) receive: SetOnce<Reports>,
    /// What its receives come from, if it shares that.
    pub(super) srx: SetOnce<BoundSrx>,
    /// Of sends, receives, reads and writes.
    pub(super) counters: [SetOnce<Arc<Counter>>; 4],
}

impl Bound {
    pub(super) fn new() -> Self {
        Self {
            eq: SetOnce::new(),
            transmit: SetOnce::new(),
            receive: SetOnce::new(),
            srx: SetOnce::new(),
            counters: [const { SetOnce::new() }; 4],
        }
    }

    /// The queue that a transfer reports to.
    pub(super) fn reports(&self, op: &Op) -> Option<&Reports> {
        match op {
            Op::Receive => self.receive.as_ref(),
            _ => self.transmit.as_ref(),
        }
    }

    /// The counter that counts a transfer.
    pub(super) fn counter(&self, op: &Op) -> Option<&Arc<Counter>> {
        let index = match op {
            Op::Send { .. } => 0,
            Op::Receive => 1,
            Op::Read | Op::Atomic { fetches: true, .. } => 2,
            Op::Write { .. } | Op::Atomic { .. } => 3,
        };
        self.counters.get(index)?.as_ref()
    }
}

/// What can be set of an endpoint.
pub(super) struct Options {
    connect: Atomic<u32>,
    stall: Atomic<u32>,
    rnr_delay: Atomic<u32>,
}

impl Options {
    /// As they are if nobody sets them.
    pub(super) fn new() -> Self {
        let Bounds {
            connect,
            stall,
            rnr_delay,
        } = Bounds::default();
        Self {
            connect: Atomic::new(connect),
            stall: Atomic::new(stall),
            rnr_delay: Atomic::new(rnr_delay),
        }
    }

    /// What a connection that is begun now goes by.
    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            connect: self.connect.load(Relaxed),
            stall: self.stall.load(Relaxed),
            rnr_delay: self.rnr_delay.load(Relaxed),
        }
    }

    /// That of this name, and the values that it can have.
    pub(super) fn find(&self, name: u32) -> Option<(&Atomic<u32>, core::ops::RangeInclusive<u32>)> {
        // What jiffies can measure, on every machine.
        const MS_MAX: u32 = 1_000_000_000;
        match name {
            KFI_OPT_CONNECT_TIMEOUT => Some((&self.connect, 1..=MS_MAX)),
            KFI_OPT_STALL_TIMEOUT => Some((&self.stall, 0..=MS_MAX)),
            KFI_OPT_RNR_DELAY => Some((&self.rnr_delay, 1..=655_360)),
            _ => None,
        }
    }
}

/// Where an endpoint is in its life. It only goes on, but for [`Phase::Connecting`] if that is refused
/// at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Things may be bound to it.
    New,
    /// Receives may be posted.
    Enabled,
    /// It waits for its peer.
    Connecting,
    /// There is a connection.
    Connected,
    /// There was one, or won't be one.
    Down,
}

impl Phase {
    const ALL: [Self; 5] = [
        Self::New,
        Self::Enabled,
        Self::Connecting,
        Self::Connected,
        Self::Down,
    ];

    /// Why something can't be done in this phase.
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

/// A phase that several threads change and look at. Any context.
pub(crate) struct AtomicPhase(Atomic<usize>);

impl AtomicPhase {
    /// A new endpoint's.
    pub(super) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    fn of(index: usize) -> Phase {
        Phase::ALL.get(index).copied().unwrap_or(Phase::Down)
    }

    fn index(phase: Phase) -> usize {
        Phase::ALL
            .iter()
            .position(|&other| other == phase)
            .unwrap_or(0)
    }

    /// The phase.
    pub(crate) fn get(&self) -> Phase {
        Self::of(self.0.load(Acquire))
    }

    /// Goes to another phase from one that `may` be left for it.
    ///
    /// # Errors
    ///
    /// The phase, if that may not be.
    pub(super) fn change(&self, to: Phase, may: impl Fn(Phase) -> bool) -> Result<Phase, Phase> {
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
        assert_eq!(phase.get(), Phase::New);
        let go = |to, from| phase.change(to, |phase| phase == from);
        assert_eq!(go(Phase::Connecting, Phase::Enabled), Err(Phase::New));
        assert_eq!(go(Phase::Enabled, Phase::New), Ok(Phase::New));
        assert_eq!(go(Phase::Connecting, Phase::Enabled), Ok(Phase::Enabled));
        assert_eq!(phase.get(), Phase::Connecting);
        assert_eq!(phase.change(Phase::Down, |_| true), Ok(Phase::Connecting));
        assert_eq!(phase.get(), Phase::Down);
    }
}
