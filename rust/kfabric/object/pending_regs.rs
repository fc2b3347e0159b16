// SPDX-License-Identifier: GPL-2.0

//! The objects of a domain that are left to the core's workqueue: a list, and the work item that
//! settles them.

use super::prelude::*;

/// The unsettled objects of a domain. This has the end of the list; its owner has the links. Tasks
/// wait here for a change.
#[pin_data]
pub(crate) struct PendingRegs {
    last: Atomic<*mut c_void>,
    /// Called by the work, to settle what has been put in.
    settle: fn(&Self),
    #[pin]
    work: Work<Self>,
    /// The task that runs it just now.
    #[pin]
    running: IrqLock<usize>,
    /// Notified when it isn't running any more.
    #[pin]
    idle: CondVar,
    /// Something that somebody waits for is settled, or closed.
    #[pin]
    pub(crate) changed: CondVar,
}

// SAFETY: `last` is handed through to its owner, and not followed.
unsafe impl Send for PendingRegs {}
// SAFETY: As for `Send`; it is only exchanged as a whole.
unsafe impl Sync for PendingRegs {}

impl_has_work! {
    impl HasWork<Self> for PendingRegs { self.work }
}

impl PendingRegs {
    /// Makes an empty list. May sleep.
    pub(crate) fn new(settle: fn(&Self)) -> Result<Arc<Self>, Errno> {
        let none = pin_init!(Self {
            last: Atomic::new(null_mut()),
            settle,
            work <- new_work!("kfabric::Unsettled::work"),
            running <- new_irq_lock!(NOBODY, c"kfabric_unsettled"),
            idle <- new_condvar!("kfabric::Unsettled::idle"),
            changed <- new_condvar!("kfabric::Unsettled::changed"),
        });
        Arc::pin_init(none, GFP_KERNEL).map_err(|_| Errno::ENOMEM)
    }

    /// Puts something behind all that is there; `link` leads from it to what was last. Any context.
    pub(crate) fn put(&self, one: *mut c_void, link: impl Fn(*mut c_void)) {
        let mut last = self.last.load(Relaxed);
        loop {
            link(last);
            match self.last.cmpxchg(last, one, Full) {
                Ok(_) => return,
                Err(now) => last = now,
            }
        }
    }

    /// Sleeps until the work is not running; returns at once to who is called by it.
    pub(crate) fn finish(&self) {
        let own = task::current();
        self.running.with(|running| {
            while **running != NOBODY && **running != own {
                self.idle.wait(running);
            }
        });
    }

    /// Takes all that has been put in, by what was last; null if there is nothing. Any context.
    pub(crate) fn take(&self) -> *mut c_void {
        self.last.xchg(null_mut(), Full)
    }
}

/// No task.
const NOBODY: usize = 0;

impl WorkItem for PendingRegs {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // Storage may wait for the event on the way of writing memory back.
        let _noio = NoIo::enter();
        this.running.with(|running| **running = task::current());
        (this.settle)(&this);
        this.running.with(|running| {
            **running = NOBODY;
            this.idle.notify_all();
        });
    }
}
