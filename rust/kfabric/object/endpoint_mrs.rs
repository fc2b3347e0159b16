// SPDX-License-Identifier: GPL-2.0

//! The regions that are enabled for one endpoint, which are taken down when it goes down.
//!
//! Lock order: `falling`, then the lock of a region, then `state`, which is taken with interrupts off.

use super::prelude::*;
use crate::support::hlist::{
    Head,
    Node, //
};
use core::{
    cell::Cell,
    marker::PhantomPinned, //
};

/// A region's link to its endpoint, as a part of the region.
pub(crate) struct EndpointMrLink {
    node: Node,
    /// The region; null if it isn't tied. Changed under the lock of the endpoint's list.
    region: Atomic<*mut c_void>,
    // Others of the list point to it.
    _pin: PhantomPinned,
}

// SAFETY: `region` is only handed through; the rest may be used by any thread.
unsafe impl Send for EndpointMrLink {}
// SAFETY: As for `Send`; `region` is only exchanged as a whole.
unsafe impl Sync for EndpointMrLink {}

/// The regions of an endpoint.
#[pin_data]
pub(crate) struct EndpointMrs {
    pub(super) endpoint: Arc<EpCore>,
    /// Takes down all that are tied.
    take_down: fn(&Self),
    #[pin]
    state: IrqLock<State>,
    /// Held by who takes them down.
    #[pin]
    falling: Mutex<()>,
    #[pin]
    work: Work<Self>,
}

/// The regions that are tied. Used by shared references only, since ties point to the head.
///
/// # Invariants
///
/// The list consists of the nodes of [`EndpointMrLink`]s that have a `region`.
struct State {
    regions: Head,
    down: Cell<bool>,
}

impl_has_work! {
    impl HasWork<Self> for EndpointMrs { self.work }
}

impl EndpointMrLink {
    /// Makes the tie of a region that isn't tied.
    pub(crate) const fn new() -> Self {
        Self {
            node: Node::new(),
            region: Atomic::new(null_mut()),
            _pin: PhantomPinned,
        }
    }
}

impl EndpointMrs {
    /// Makes an endpoint without regions. Its work item calls `take_down`, and so does closing it.
    /// May sleep.
    pub(crate) fn new(endpoint: &Arc<EpCore>, take_down: fn(&Self)) -> Result<Arc<Self>, Errno> {
        let state = State {
            // INVARIANT: Nothing is tied.
            regions: Head::new(),
            down: Cell::new(false),
        };
        let ties = pin_init!(Self {
            endpoint: endpoint.clone(),
            take_down,
            state <- new_irq_lock!(state, c"kfabric_ties"),
            falling <- new_mutex!((), "kfabric_ties_falling"),
            work <- new_work!("kfabric::Ties::work"),
        });
        Arc::pin_init(ties, GFP_KERNEL).map_err(|_| Errno::ENOMEM)
    }

    /// Checks whether the endpoint is down, for good. Any context.
    pub(crate) fn is_down(&self) -> bool {
        self.state.with(|state| state.down.get())
    }

    /// Ties a region that is enabled; if the endpoint is down already it is taken down soon. Any context.
    ///
    /// # Safety
    ///
    /// It was not tied before, and is [untied](Self::untie) before it, or the region, goes or moves.
    pub(crate) unsafe fn tie(self: &Arc<Self>, tie: &EndpointMrLink, region: NonNull<c_void>) {
        let down = self.state.with(|state| {
            // SAFETY: The tie is in no list, and doesn't move before it is untied, by the requirements of
            // this function. The lock is held. The head doesn't move: it is pinned behind an `Arc`.
            unsafe { tie.node.link(&state.regions) };
            // INVARIANT: Just put in.
            tie.region.store(region.as_ptr(), Relaxed);
            state.down.get()
        });
        if down {
            self.leave();
        }
    }

    /// Unties a region, if it is tied. Any context.
    pub(crate) fn untie(&self, tie: &EndpointMrLink) {
        let _ = self.state.with(|_| Self::unlink(tie));
    }

    /// Unlinks a tie, and returns the region if it was tied. Called under the lock.
    fn unlink(tie: &EndpointMrLink) -> Option<NonNull<c_void>> {
        let region = NonNull::new(tie.region.xchg(null_mut(), Relaxed))?;
        // SAFETY: In the list by its invariant, whose lock is held by the caller.
        unsafe { tie.node.unlink() };
        Some(region)
    }

    /// Unties a region, and hands it to `f` under the lock; `None` if there is none. Any context.
    pub(crate) fn next<R>(&self, f: impl FnOnce(NonNull<c_void>) -> R) -> Option<R> {
        self.state.with(|state| {
            // SAFETY: The lock is held. By the invariant of `State`, the node is that of an `EndpointMrLink`, which is
            // there while it is in the list.
            let tie = unsafe {
                let first = state.regions.first()?;
                &*kernel::container_of!(first.as_ptr(), EndpointMrLink, node)
            };
            Self::unlink(tie).map(f)
        })
    }

    /// Notes that the endpoint is down, and leaves its regions to a work item. Any context.
    pub(crate) fn go_down(self: &Arc<Self>) {
        let any = self.state.with(|state| {
            state.down.set(true);
            // SAFETY: The lock is held.
            unsafe { state.regions.first() }.is_some()
        });
        if any {
            self.leave();
        }
    }

    /// Leaves the regions to the work item. Any context.
    fn leave(self: &Arc<Self>) {
        if let Some(queue) = workqueue::FALLS.get() {
            // Already queued is as good.
            let _ = queue.enqueue(self.clone());
        }
    }

    /// Closes the endpoint. Sleeps until all its regions have been taken down.
    pub(crate) fn close(&self) {
        self.state.with(|state| state.down.set(true));
        self.take_down();
    }

    fn take_down(&self) {
        let _one = self.falling.lock();
        (self.take_down)(self);
    }
}

impl WorkItem for EndpointMrs {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // Storage may wait for its regions on the way of writing memory back.
        let _noio = NoIo::enter();
        this.take_down();
    }
}
