// SPDX-License-Identifier: GPL-2.0

//! How what a domain has on its device ends: the domain is closed, or the device goes away.
//!
//! Both may come at once, and a removal callback may close other domains of the same device, or
//! of one that goes away at the same time. So removal holds nothing of any domain while it calls
//! callbacks or waits for consumers: between its steps it leaves the gate, and a close that meets
//! that goes on in its place. And nobody waits for a callback in a callback.
//!
//! Lock order: the gate's lock, then that of the callbacks.

use super::Link;
use crate::resources::Resources;
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};
use kfabric::{
    num,
    Errno,
    Refusal, //
};
use rdma::Others;

/// Why a domain can't be closed now.
enum Busy {
    /// So many objects of others are on its protection domain.
    Foreign(usize),
    /// Objects of its own are being destroyed on its protection domain, which may be others' for all that is known.
    Unsettled,
    /// Its removal callbacks are being called.
    CallingBack,
}

impl From<Busy> for Refusal {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::Foreign(users) => Self::new(Errno::EBUSY, c"others use the protection domain")
                .value(num::widen(users)),
            Busy::Unsettled => Self::new(
                Errno::EBUSY,
                c"objects of the domain are just being destroyed",
            ),
            Busy::CallingBack => Self::new(
                Errno::EBUSY,
                c"closed in a removal callback, while those of the domain are called",
            ),
        }
    }
}

/// Fails if others have objects on the protection domain. Doesn't sleep.
fn check_unused(resources: &Resources) -> Result<(), Busy> {
    match resources.pd().others() {
        Others::None => Ok(()),
        Others::Some(users) => Err(Busy::Foreign(users)),
        Others::Unsettled => Err(Busy::Unsettled),
    }
}

/// As [`check_unused`], when nothing is on its way out. Sleeps until then.
fn wait_unused(resources: &Resources) -> Result<(), Busy> {
    loop {
        match check_unused(resources) {
            Err(Busy::Unsettled) => fsleep(A_MOMENT),
            checked => return checked,
        }
    }
}

impl Link {
    /// Closes the domain, which has no regions. Sleeps; if removal callbacks of the domain are
    /// being called, until they have returned.
    ///
    /// # Errors
    ///
    /// `EBUSY` if others have objects on the protection domain, or if this would wait for
    /// callbacks while it is `in_callback`; nothing has happened then.
    pub(crate) fn close(&self, in_callback: bool) -> Result<(), Refusal> {
        if let Some(inside) = self.gate.enter() {
            let resources = inside.get();
            resources.settle();
            // An event may have had our queue pair replaced since: one that is just being made
            // counts as others' until it is there.
            wait_unused(resources).or_else(|_| {
                resources.settle();
                wait_unused(resources)
            })?;
        }
        if let Some(shut) = self.gate.shut() {
            *self.device.lock() = None;
            shut.drain().take_away();
            return Ok(());
        }
        loop {
            let taken = self.gate.take_over(|resources| {
                check_unused(resources)?;
                // They begin and end in turns with this, by the gate.
                if self.callbacks.are_running() {
                    Err(Busy::CallingBack)
                } else {
                    Ok(())
                }
            });
            match taken {
                Ok(Some(shut)) => {
                    *self.device.lock() = None;
                    shut.get().pool().close();
                    shut.drain().take_away();
                    return Ok(());
                }
                Ok(None) => return Ok(()),
                Err(Busy::CallingBack) if !in_callback => self.callbacks.wait_returned(),
                // What ends by itself is no reason to leave a domain open.
                Err(Busy::Unsettled) => fsleep(A_MOMENT),
                Err(busy) => return Err(busy.into()),
            }
        }
    }

    /// The device goes away: nobody begins to use it any more, and what is under way ends. Sleeps
    /// until that is so.
    fn shut(&self) {
        if let Some(shut) = self.gate.shut() {
            shut.get().die();
            let drained = shut.drain();
            // From here on all objects that aren't counted as ours are others'.
            drained.get().settle();
            drained.leave();
        }
    }

    /// Tells who wanted to be told. Sleeps as they do.
    fn call_back(&self) {
        let Some(shut) = self.gate.resume() else {
            // The domain is being closed.
            return;
        };
        self.callbacks.begin();
        shut.leave();
        self.callbacks.run();
        *self.device.lock() = None;
    }

    /// Ends all that is open in the domain. Sleeps until no peer can reach anything.
    fn end_objects(&self) {
        if let Some(shut) = self.gate.resume() {
            self.children.end();
            shut.get().pool().close();
            shut.leave();
        }
    }

    /// Takes away what the domain has on the device. Sleeps as long as others use the protection
    /// domain, or until the domain's own end is done, if that came before.
    fn take_away(&self) {
        let mut waits = 0;
        while let Some(shut) = self.gate.resume() {
            if shut.get().pd().foreign_users() == 0 {
                return shut.drain().take_away();
            }
            // The first one may just be on its way out.
            if waits % WAITS_PER_MESSAGE == 1 {
                self.warn_of_users(shut.get());
            }
            // Whoever closes the domain meanwhile is told.
            shut.leave();
            fsleep(WAIT);
            waits += 1;
        }
        self.gate.wait_gone();
    }

    fn warn_of_users(&self, resources: &Resources) {
        let device = resources.device();
        let users = resources.pd().foreign_users();
        pr_warn!(
            "{}: removal waits for {users} objects that others have on a protection domain\n",
            device.name()
        );
        if let Some(holder) = &*self.holder.lock() {
            holder.warn(device, "the protection domain was last taken by");
        }
    }
}

/// How long to sleep while objects are being destroyed.
const A_MOMENT: Delta = Delta::from_millis(1);

/// How long to sleep between looks at a protection domain that others use.
const WAIT: Delta = Delta::from_millis(50);

/// After how many of these to say so in the log again.
const WAITS_PER_MESSAGE: u32 = 200;

/// Ends what domains have on a device that goes away. Sleeps until that is done.
///
/// Step by step for all of them: a callback may close another domain, or free what another's
/// waits for; and who doesn't give back what is theirs on one domain keeps nobody from hearing of
/// the removal, and no region of another open.
pub(crate) fn remove(domains: &[Arc<Link>], calling_back: impl FnOnce(&dyn Fn())) {
    domains.iter().for_each(|domain| domain.shut());
    calling_back(&|| domains.iter().for_each(|domain| domain.call_back()));
    domains.iter().for_each(|domain| domain.end_objects());
    domains.iter().for_each(|domain| domain.take_away());
}
