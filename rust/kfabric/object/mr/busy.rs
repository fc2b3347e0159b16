// SPDX-License-Identifier: GPL-2.0

//! A region that a task holds while it sleeps in the provider: to refresh the region, to end it, or
//! to write down how peers reach it.
//!
//! Other tasks wait until it is released, except tasks that must not sleep. These enable a region,
//! or handle its event.

use super::prelude::*;

/// A region's provider part and list, held until this is dropped. Any context.
pub(super) struct BusyMr<'a> {
    object: &'a MrObject,
    pub(super) mr: Option<ProviderMr>,
    /// The addresses that it was registered at, if they are several, and it can be refreshed.
    pub(super) list: KVVec<kvec>,
}

impl Inner {
    /// Begins enabling. The caller must end it. Any context.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: it is not disabled.
    /// - `ENODEV`: the device goes away, and just takes it.
    /// - `ENOTCONN`: its endpoint has gone down.
    /// - `EINVAL`: it has yet to be bound.
    pub(super) fn begin(&mut self) -> Result<(), Refusal> {
        if self.state == MrState::Disabled {
            if self.held {
                return Err(Refusal::new(Errno::ENODEV, c"the device goes away"));
            }
            if self.endpoint().is_some_and(|ties| ties.is_down()) {
                let why = c"the region's endpoint has gone down";
                return Err(Refusal::new(Errno::ENOTCONN, why));
            }
        }
        let missing = |rare: &Pin<MrExtBox<MrExt>>| rare.bonds.is_missing();
        self.state.begin(!self.rare.as_ref().is_some_and(missing))
    }

    /// Returns the counter that the region is bound to.
    pub(super) fn counter(&self) -> Option<&Arc<CntrCore>> {
        self.rare.as_ref()?.bonds.counter.get()
    }

    /// Returns the endpoint that the region is bound to.
    fn endpoint(&self) -> Option<&Arc<EndpointMrs>> {
        self.rare.as_ref()?.bonds.endpoint.get()
    }

    /// Moves the provider's part and the list to a guard that holds the region.
    fn hold<'a>(&mut self, object: &'a MrObject) -> BusyMr<'a> {
        self.held = true;
        let list = |rare: &mut Pin<MrExtBox<MrExt>>| mem::take(rare.as_mut().project().list);
        BusyMr {
            object,
            mr: self.mr.take(),
            list: self.rare.as_mut().map(list).unwrap_or_default(),
        }
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
            let unsettled = self.parent().unsettled.clone();
            unsettled.changed.wait(inner);
        }
    }

    /// Takes the region in hand as soon as nobody has it and it isn't `busy`, if it `may` be. Sleeps.
    ///
    /// # Errors
    ///
    /// - The errors of `may`.
    pub(super) fn hold(
        &self,
        busy: impl Fn(&Inner) -> bool,
        may: impl FnOnce(&Inner) -> Result<(), Refusal>,
    ) -> Result<BusyMr<'_>, Refusal> {
        self.inner.with(|inner| {
            self.wait_while(inner, |inner| inner.held || busy(inner));
            may(inner)?;
            Ok(inner.hold(self))
        })
    }

    /// Takes the region in hand, if it can be closed without waiting for anybody but its provider. Any context.
    pub(super) fn hold_now(&self) -> Option<BusyMr<'_>> {
        self.inner.with(|inner| {
            let waits = inner.held
                || inner.state != MrState::Enabled
                || inner.counter().is_some()
                || inner.told
                // Whose memory can't be freed in any context.
                || inner
                    .rare
                    .as_ref()
                    .is_some_and(|rare| rare.list.capacity() > 0 || rare.lease.is_some());
            match waits {
                true => None,
                false => Some(inner.hold(self)),
            }
        })
    }

    /// Takes the region in hand as [`hold`](Self::hold) does, if it is enabled. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: it isn't.
    pub(super) fn hold_enabled(&self) -> Result<BusyMr<'_>, Refusal> {
        self.hold(|_| false, |inner| inner.state.check_enabled())
    }
}

impl BusyMr<'_> {
    /// Ends closing the region, whose provider has nothing any more. Returns whether its parts
    /// return to the domain's reserve. Any context.
    pub(super) fn close(mut self) -> bool {
        self.mr = None;
        self.object.inner.with(|inner| {
            self.object.untie(inner);
            inner.state.end_close();
            inner.reserved
        })
    }
}

impl Drop for BusyMr<'_> {
    fn drop(&mut self) {
        self.object.inner.with(|inner| {
            inner.mr = self.mr.take();
            if let Some(rare) = &mut inner.rare {
                *rare.as_mut().project().list = mem::take(&mut self.list);
            }
            inner.held = false;
            // Under the lock: afterwards, the task that closes the region may drop the domain.
            if inner.awaited {
                self.object.parent().unsettled.changed.notify_all();
            }
        });
    }
}
