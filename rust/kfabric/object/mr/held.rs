// SPDX-License-Identifier: GPL-2.0

//! A region in the hands of one who sleeps with its provider: to refresh it, to end it, or to write down
//! how peers reach it.
//!
//! Others wait for that, but for who may not sleep: who enables a region, or is told of it.

use super::{
    ranges::Ranges,
    Inner,
    MrObject, //
};
use crate::{
    provider::{
        Keys,
        Mr, //
    },
    support::{
        cache::PartBox,
        errno::Errno,
        irqlock::IrqGuard,
        refusal::Refusal, //
    }, //
};

/// What there is of a region, until this is dropped. Any context.
pub(super) struct Held<'a> {
    object: &'a MrObject,
    pub(super) mr: Option<PartBox<dyn Mr>>,
    pub(super) keys: Option<Keys>,
}

impl Inner {
    /// Enabling begins; whoever began it ends it. Any context.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: it is not disabled.
    /// - `ENODEV`: the device goes away, and just takes it.
    /// - `ENOTCONN`: its endpoint has gone down.
    /// - `EINVAL`: it has yet to be bound.
    pub(super) fn begin(&mut self) -> Result<(), Refusal> {
        if self.state.is_disabled() {
            if self.held {
                return Err(Refusal::new(Errno::ENODEV, c"the device goes away"));
            }
            if self.state.endpoint().is_some_and(|ties| ties.is_down()) {
                let why = c"the region's endpoint has gone down";
                return Err(Refusal::new(Errno::ENOTCONN, why));
            }
        }
        self.state.begin()
    }
}

impl MrObject {
    /// Sleeps until a region is not `busy` any more; meanwhile its domain is open.
    pub(super) fn wait_while(
        &self,
        inner: &mut IrqGuard<'_, Inner>,
        busy: impl Fn(&Inner) -> bool,
    ) {
        while busy(inner) {
            inner.awaited = true;
            // The domain may be closed when it isn't busy any more.
            let unsettled = self.parent().unsettled().clone();
            unsettled.changed.wait(inner);
        }
    }

    /// Takes the region in hand as soon as nobody has it and it isn't `busy`, if it `may` be. Sleeps.
    ///
    /// # Errors
    ///
    /// What `may` says.
    pub(super) fn hold(
        &self,
        busy: impl Fn(&Inner) -> bool,
        may: impl FnOnce(&Inner) -> Result<(), Refusal>,
    ) -> Result<Held<'_>, Refusal> {
        self.inner.with(|inner| {
            self.wait_while(inner, |inner| inner.held || busy(inner));
            may(inner)?;
            inner.held = true;
            Ok(Held {
                object: self,
                mr: inner.mr.take(),
                keys: inner.keys.take(),
            })
        })
    }

    /// Takes the region in hand, if it can be closed without waiting for anybody but its provider. Any context.
    pub(super) fn hold_now(&self) -> Option<Held<'_>> {
        self.inner.with(|inner| {
            let waits = inner.held
                || inner.state.check_enabled().is_err()
                || inner.state.counter().is_some()
                || inner.lease.is_some()
                || self.eq().is_some()
                // Whose memory can't be freed in any context.
                || matches!(self.ranges, Ranges::Many(_));
            if waits {
                return None;
            }
            inner.held = true;
            Some(Held {
                object: self,
                mr: inner.mr.take(),
                keys: inner.keys.take(),
            })
        })
    }

    /// As [`hold`](Self::hold), if it is enabled. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: it isn't.
    pub(super) fn hold_enabled(&self) -> Result<Held<'_>, Refusal> {
        self.hold(|_| false, |inner| inner.state.check_enabled())
    }
}

impl Held<'_> {
    /// The region is closed: its provider has nothing any more. Any context.
    pub(super) fn close(mut self) {
        self.mr = None;
        self.keys = None;
        self.object.inner.with(|inner| {
            self.object.untie(inner);
            inner.state.end_close();
        });
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let (mr, keys) = (self.mr.take(), self.keys.take());
        self.object.inner.with(|inner| {
            (inner.mr, inner.keys) = (mr, keys);
            inner.held = false;
            // Under the lock: whoever closes the region may let its domain go then.
            if inner.awaited {
                self.object.parent().unsettled().changed.notify_all();
            }
        });
    }
}
