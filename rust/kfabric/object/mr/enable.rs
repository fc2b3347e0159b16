// SPDX-License-Identifier: GPL-2.0

//! Enabling regions: in the call, or behind it where an event queue reports it.
//!
//! All are created disabled. A task that enables one takes the provider's part out, enables that
//! without any lock, and puts it back. It does that under the region's lock, or before anybody else
//! could know of the region.

use super::{
    mr_ext::Said,
    public::{
        Found,
        Public, //
    },
    reference::MrRef,
    Inner,
    MrObject, //
};
use crate::{
    object::eq::Unread,
    provider::{
        BatchEntry,
        Bindings,
        Keys,
        ProviderMr, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::{
    mem,
    ptr::NonNull, //
};
use kernel::prelude::*;
use kfi_bindings::{
    kfid,
    KFI_MR_COMPLETE, //
};

/// Enables a pending region, with `more` to come on its endpoint or not, tells the event queue, and lets
/// those go on who wait. Returns 0, or the number of an error that has been reported. As the provider's [`MrOps::enable`](crate::provider::MrOps::enable), it may sleep.
///
/// One of those may be closing the region, and give up C's reference before this has returned: so this
/// has one of its own.
pub(super) fn finish(object: MrRef, more: bool) -> c_int {
    let pending = object.inner.with(|inner| inner.take_pending(more));
    conclude(object, pending.enable())
}

/// Ends enabling a region, as the second half of [`finish`]. Any context.
pub(super) fn conclude(object: MrRef, ended: EnableOutcome) -> c_int {
    object.inner.with(|inner| {
        let done = object.settle(inner, ended);
        // Under the same lock: whoever closes the region finds the event, and takes it out again.
        let event = object.report(inner, &done);
        inner.say(event);
        match &done {
            Ok(()) => 0,
            // Reported while the region can't be closed, and the provider not be unloaded, whose words
            // they are.
            Err(refusal) if !inner.told => refusal.report(),
            Err(refusal) => refusal.errno().to_c(),
        }
    })
}

/// A region that is being enabled, in the hands of who does it.
pub(super) struct Pending {
    mr: Option<ProviderMr>,
    bindings: Bindings,
    /// The result, once enabling has been tried.
    done: Option<Result<Keys, Refusal>>,
}

/// How that has ended.
pub(super) struct EnableOutcome {
    mr: Option<ProviderMr>,
    enabled: Result<Keys, Refusal>,
}

impl Pending {
    /// Returns the entry for a provider that enables several regions together.
    pub(super) fn entry(&mut self) -> Option<BatchEntry<'_, Keys>> {
        Some(BatchEntry {
            mr: &mut **self.mr.as_mut()?,
            bindings: &self.bindings,
            done: &mut self.done,
        })
    }

    /// Ends the attempt, and returns its result.
    pub(super) fn ended(self) -> EnableOutcome {
        let not_there = Refusal::new(Errno::EIO, c"the region is not there");
        EnableOutcome {
            mr: self.mr,
            enabled: self.done.unwrap_or(Err(not_there)),
        }
    }

    /// Enables the device's part. May sleep as [`MrOps::enable`](crate::provider::MrOps::enable) does.
    pub(super) fn enable(mut self) -> EnableOutcome {
        self.done = self.mr.as_mut().map(|mr| mr.enable(&self.bindings));
        self.ended()
    }
}

impl Inner {
    /// Takes out what is needed to enable a region that is pending.
    pub(super) fn take_pending(&mut self, more: bool) -> Pending {
        Pending {
            mr: self.mr.take(),
            bindings: self
                .rare
                .as_ref()
                .map_or(Bindings::NONE, |rare| rare.bonds.bindings(more)),
            done: None,
        }
    }

    /// Puts that back: the region is enabled, or failed.
    fn end(&mut self, ended: EnableOutcome) -> Result<Keys, Refusal> {
        self.mr = ended.mr;
        match &ended.enabled {
            // Nothing was begun.
            Err(refusal) if refusal.errno() == Errno::EAGAIN => self.state.end_again(),
            enabled => self.state.end(enabled.is_ok()),
        }
        ended.enabled
    }

    fn say(&mut self, event: Option<Unread>) {
        if let Some(rare) = &mut self.rare {
            rare.as_mut().project().said.say(event);
        }
    }

    /// Takes the events that have reported how enabling ended. They are reported no more.
    pub(super) fn take_said(&mut self) -> Said {
        match &mut self.rare {
            Some(rare) => mem::take(rare.as_mut().project().said),
            None => Said::Nothing,
        }
    }
}

impl MrObject {
    /// Ends enabling it, shows what came of it, and lets those go on who wait for that: once the
    /// lock is given up. Any context.
    pub(super) fn settle(&self, inner: &mut Inner, ended: EnableOutcome) -> Result<(), Refusal> {
        let done = inner.end(ended).map(|keys| {
            self.publish(Public::new(self.parent(), Some(&keys)));
            self.reveal(Found::new(&keys));
            self.tie(inner);
        });
        if inner.awaited {
            self.parent().unsettled.changed.notify_all();
        }
        done
    }

    /// Has it taken down with its endpoint, if it is bound to one. Called once, when it is enabled.
    fn tie(&self, inner: &Inner) {
        let Some(rare) = &inner.rare else {
            return;
        };
        if let Some(ties) = rare.bonds.endpoint() {
            // SAFETY: Enabled once, so not tied yet; neither the object moves, nor what is rare of it, which is
            // pinned and stays with it; and whoever closes it unties it.
            unsafe { ties.tie(&rare.tie, NonNull::from(self).cast()) };
        }
    }

    /// Puts the event in the queue, if there is one. Any context.
    pub(super) fn report(&self, inner: &Inner, done: &Result<(), Refusal>) -> Option<Unread> {
        let eq = self.eq(inner)?;
        let fid = self.as_ptr().cast::<kfid>();
        // SAFETY: `fid` is this open object's, and its context is C's to write, but not now.
        let context = unsafe { (&raw const (*fid).context).read() };
        match done {
            Ok(()) => eq.complete(KFI_MR_COMPLETE, fid, context, 0),
            Err(refusal) => eq.fail(fid, context, *refusal),
        }
    }
}
