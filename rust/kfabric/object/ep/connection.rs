// SPDX-License-Identifier: GPL-2.0

//! The connection of an endpoint: enabling the endpoint, connection events, and the end of the connection.

use super::{
    msg_ep::{
        AtomicPhase,
        EpPhase,
        Msg, //
    },
    EndpointObject, //
};
use crate::{
    object::{
        cq::CqBinding,
        endpoint_mrs::EndpointMrs,
        eq::Writer,
        info::InfoChain,
        prelude::*,
        trace, //
    },
    provider::{
        cm::{
            ConnFailed,
            ConnHandler, //
        },
        cq::Delivery, //
    }, //
};

impl Msg {
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
            phase: self.phase.clone(),
            ties: self.ties.clone(),
            writer: eq.writer(self.init.fid, self.init.context),
        };
        self.events.set(Some(KBox::new(told, GFP_KERNEL)?));
        let (transmit, receive) = (&self.bound.transmit, &self.bound.receive);
        self.imp.enable(
            self.delivery(transmit, receive)?,
            self.delivery(receive, transmit)?,
        )?;
        open()?;
        for bound in [transmit, receive] {
            bound.as_ref().inspect(|bound| bound.cq.arm());
        }
        let _ = self
            .phase
            .change(EpPhase::Enabled, |phase| phase == EpPhase::New);
        Ok(())
    }

    /// Returns how the provider should find completions of a direction, beside those of the `other` one. If the
    /// provider finds them only when the consumer reads, adds the endpoint to the sources of the completion queue. May
    /// sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    fn delivery(
        &self,
        bound: &SetOnce<CqBinding>,
        other: &SetOnce<CqBinding>,
    ) -> Result<Delivery, Errno> {
        let Some(CqBinding { cq, .. }) = bound.as_ref() else {
            return Ok(Delivery::default());
        };
        // The queues of both directions may be one at the device. Then a read of the other queue would take the
        // interrupt away that a handler waits for.
        let is_other =
            |other: &CqBinding| !Arc::ptr_eq(&other.cq, cq) && other.cq.delivery().polled;
        let is_disturbed = cq.has_handler() && other.as_ref().is_some_and(is_other);
        // Counters and shared receives progress without a read.
        let polled = !is_disturbed
            && !self.init.shares
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

    /// Ends the connection permanently. Sleeps until all transfers have ended. No event follows.
    pub(super) fn end(&self) {
        self.events.set(None);
        let was = self.phase.change(EpPhase::Down, |_| true);
        self.imp.end();
        if was == Ok(EpPhase::Connected) {
            // SAFETY: `fid` is the open endpoint that `self` is a part of.
            trace::disconnected(unsafe { endpoint(self.init.fid) }, 0);
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

/// Returns the endpoint behind a fid.
///
/// # Safety
///
/// `fid` is an endpoint that stays open for `'a`.
unsafe fn endpoint<'a>(fid: *mut kfid) -> &'a EndpointObject {
    // SAFETY: `fid` is an open endpoint, and a `kfid_ep` begins with its fid.
    unsafe { EndpointObject::from_c(fid.cast()) }
}

/// Writes the events of a connection to an event queue.
struct Connection {
    phase: Arc<AtomicPhase>,
    ties: Arc<EndpointMrs>,
    writer: Writer,
}

impl Connection {
    /// Returns the endpoint.
    fn endpoint(&self) -> &EndpointObject {
        // SAFETY: The fid of `writer` is an endpoint, because `Msg::enable` creates `writer` with it. The endpoint is
        // open: `Msg::end` removes this handler before the close of the endpoint returns.
        unsafe { endpoint(self.writer.fid()) }
    }
}

impl ConnHandler for Connection {
    fn connected(&self, data: &[u8]) {
        let was = self
            .phase
            .change(EpPhase::Connected, |phase| phase == EpPhase::Connecting);
        if was.is_ok() {
            trace::connected(self.endpoint());
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
                trace::disconnected(self.endpoint(), 0);
                self.writer
                    .connection(c::KFI_SHUTDOWN, InfoChain::none(), &[])
            }
            // The connection has ended before the consumer got KFI_CONNECTED.
            Ok(EpPhase::Connecting) => {
                let errno = Errno::ECONNRESET;
                trace::disconnected(self.endpoint(), errno.to_c());
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
            trace::disconnected(self.endpoint(), how.errno.to_c());
            self.writer.fail(how.errno, how.prov_errno, data);
        }
    }
}
