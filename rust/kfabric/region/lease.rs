// SPDX-License-Identifier: GPL-2.0

//! How long a consumer's memory is there for a provider that reaches it by the processor.
//!
//! A region's memory is the consumer's again when the region has been closed. Providers are trusted
//! to tell their device so, but what they keep of the memory in Rust needs no trust: the core ends
//! the lease on it.

use crate::{
    prelude::*,
    support::gate::{
        self,
        Gate,
        Shared, //
    }, //
};

/// The state that both sides share. The gate guards no object but the consumer's memory.
type Contract = Gate<(), Shared>;

/// The core's side: the memory is there until this is dropped, which sleeps until nobody uses it.
pub(crate) struct Lease(Arc<Contract>);

impl Lease {
    /// Makes a lease. May sleep.
    pub(crate) fn new() -> Result<Self, Errno> {
        let contract = Arc::pin_init(Gate::new(()), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
        Ok(Self(contract))
    }

    /// Returns the other side. Any context.
    pub(crate) fn tenant(&self) -> Tenant {
        Tenant(self.0.clone())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(shut) = self.0.shut() {
            shut.drain().take_away();
        }
    }
}

/// The side of who uses the memory.
pub(crate) struct Tenant(Arc<Contract>);

impl Tenant {
    /// Lets somebody use the memory until what this returns is dropped; `None` when the lease is
    /// over. Any context.
    pub(crate) fn enter(&self) -> Option<gate::GateGuard<'_, (), Shared>> {
        self.0.enter()
    }
}

#[kernel::macros::kunit_tests(kfabric_lease)]
mod tests {
    use super::*;
    use crate::support::workqueue::OwnedQueue;
    use kernel::sync::Completion;

    #[test]
    fn nobody_enters_after_the_end() -> Result {
        let lease = Lease::new()?;
        let tenant = lease.tenant();
        assert!(tenant.enter().is_some());
        drop(lease);
        assert!(tenant.enter().is_none());
        Ok(())
    }

    #[test]
    fn the_end_waits_for_those_inside() -> Result {
        let lease = Lease::new()?;
        let tenant = lease.tenant();
        let entered = Arc::pin_init(Completion::new(), GFP_KERNEL)?;
        let left = Arc::new(Atomic::new(false), GFP_KERNEL)?;
        let (theirs, said) = (entered.clone(), left.clone());
        // Dropped first, since it waits for the other thread.
        let queue = OwnedQueue::new(c"kfabric_kunit", 1)?;
        queue.try_spawn(GFP_KERNEL, move || {
            let inside = tenant.enter();
            theirs.complete_all();
            // Until the one who ends it says so.
            while tenant.enter().is_some() {
                kernel::time::delay::fsleep(kernel::time::Delta::from_millis(1));
            }
            said.store(true, Relaxed);
            drop(inside);
        })?;
        entered.wait_for_completion();
        drop(lease);
        assert!(left.load(Relaxed));
        Ok(())
    }
}
