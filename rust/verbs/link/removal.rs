// SPDX-License-Identifier: GPL-2.0

//! The end of a domain's resources: the domain is closed, or the device is removed.
//!
//! Both may happen concurrently. A removal callback may close other domains, of this device or of
//! another one that is being removed. So the removal holds nothing of a domain while it runs
//! callbacks or waits for consumers. It leaves the gate between its steps, and a concurrent close
//! continues in its place. No callback waits for another callback.
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
    /// Number of other users' objects on the protection domain.
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

/// Waits until no own object is being destroyed, then does [`check_unused`]. Sleeps.
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
                // A failure of an object that ends by itself does not keep the domain open.
                Err(Busy::Unsettled) => fsleep(A_MOMENT),
                Err(busy) => return Err(busy.into()),
            }
        }
    }

    /// Shuts the gate for the removal of the device. Sleeps until all users have left.
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
            // A concurrent close returns after this.
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
