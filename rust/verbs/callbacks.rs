// SPDX-License-Identifier: GPL-2.0

//! Who wants to know when a domain's device goes away.

use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        CondVar,
        Mutex, //
    }, //
};
use kfabric::Errno;

/// One callback: what to call, and an argument by which it is known.
pub(crate) trait Callback: Copy + Send {
    /// Calls it. May sleep.
    fn call(self);
    /// Is it known by the same argument?
    fn is_same(&self, other: &Self) -> bool;
}

/// The removal callbacks of a domain.
///
/// Lock order: its lock is a leaf; callbacks are called without it.
#[pin_data]
pub(crate) struct Callbacks<C> {
    #[pin]
    phase: Mutex<Phase<C>>,
    #[pin]
    changed: CondVar,
}

enum Phase<C> {
    /// The device is there.
    Waiting(KVec<C>),
    /// It goes, and they are being called.
    Running,
    /// All have returned.
    Done,
}

impl<C: Callback> Callbacks<C> {
    /// None yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            phase <- new_mutex!(Phase::Waiting(KVec::new())),
            changed <- new_condvar!(),
        })
    }

    /// Adds one. `EBUSY` if one is known by the same argument, `ENODEV` when it is too late.
    pub(crate) fn add(&self, callback: C) -> Result<(), Errno> {
        match &mut *self.phase.lock() {
            Phase::Waiting(all) if all.iter().any(|other| other.is_same(&callback)) => {
                Err(Errno::EBUSY)
            }
            Phase::Waiting(all) => Ok(all.push(callback, GFP_KERNEL)?),
            _ => Err(Errno::ENODEV),
        }
    }

    /// Takes one back. Afterwards it isn't running, and won't be called.
    pub(crate) fn remove(&self, callback: C) {
        let mut phase = self.phase.lock();
        loop {
            match &mut *phase {
                Phase::Waiting(all) => return all.retain(|other| !other.is_same(&callback)),
                Phase::Running => self.changed.wait(&mut phase),
                Phase::Done => return,
            }
        }
    }

    /// Is there none, though there could be?
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&*self.phase.lock(), Phase::Waiting(all) if all.is_empty())
    }

    /// Calls them all, in the order in which they were added. Sleeps as they do.
    pub(crate) fn run(&self) {
        let phase = core::mem::replace(&mut *self.phase.lock(), Phase::Running);
        if let Phase::Waiting(all) = phase {
            for callback in &all {
                callback.call();
            }
        }
        *self.phase.lock() = Phase::Done;
        self.changed.notify_all();
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_callbacks)]
mod tests {
    use super::*;
    use kernel::sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    };

    static CALLED: Atomic<u32> = Atomic::new(0);

    #[derive(Clone, Copy)]
    struct Adding(u32);

    impl Callback for Adding {
        fn call(self) {
            CALLED.fetch_add(self.0, Relaxed);
        }
        fn is_same(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    #[test]
    fn called_once_unless_taken_back() -> Result {
        let callbacks = Arc::pin_init(Callbacks::new(), GFP_KERNEL)?;
        assert!(callbacks.is_empty());
        assert_eq!(callbacks.add(Adding(1)), Ok(()));
        assert_eq!(callbacks.add(Adding(10)), Ok(()));
        assert_eq!(callbacks.add(Adding(100)), Ok(()));
        assert_eq!(callbacks.add(Adding(100)), Err(Errno::EBUSY));
        callbacks.remove(Adding(10));
        callbacks.run();
        assert_eq!(CALLED.load(Relaxed), 101);
        callbacks.run();
        assert_eq!(CALLED.load(Relaxed), 101);
        assert_eq!(callbacks.add(Adding(5)), Err(Errno::ENODEV));
        callbacks.remove(Adding(100));
        Ok(())
    }
}
