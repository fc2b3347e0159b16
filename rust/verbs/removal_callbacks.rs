// SPDX-License-Identifier: GPL-2.0

//! Removal callbacks of a domain, for C consumers.

use crate::prelude::*;

/// The removal callbacks of a domain.
///
/// Lock order: its lock is a leaf; callbacks are called without it.
#[pin_data]
pub(crate) struct Callbacks {
    #[pin]
    state: Mutex<State>,
    #[pin]
    changed: CondVar,
}

struct State {
    phase: Phase,
    /// The callbacks that have not been called, in the order of registration.
    left: KVec<OnRemoval>,
}

#[derive(Clone, Copy)]
enum Phase {
    /// The device is there.
    Waiting,
    /// It goes, and they are being called: this one now, if any.
    Running(Option<OnRemoval>),
    /// All have returned.
    Done,
}

impl Callbacks {
    /// Creates an empty list.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_mutex!(State {
                phase: Phase::Waiting,
                left: KVec::new(),
            }),
            changed <- new_condvar!(),
        })
    }

    /// Adds one. May sleep.
    ///
    /// # Errors
    ///
    /// `EBUSY` if one is known by the same argument, `ENODEV` when it is too late.
    pub(crate) fn add(&self, callback: OnRemoval) -> Result<(), Errno> {
        // Removal waits for the lock, and closing asks for it with that of a gate, which is also taken on
        // the way of freeing memory.
        let _noio = NoIo::enter();
        let mut state = self.state.lock();
        match state.phase {
            Phase::Waiting if state.left.iter().any(|other| other.arg == callback.arg) => {
                Err(Errno::EBUSY)
            }
            Phase::Waiting => Ok(state.left.push(callback, GFP_KERNEL)?),
            _ => Err(Errno::ENODEV),
        }
    }

    /// Removes the callback with this argument. Afterwards it does not run, and is never called. If
    /// it is running, sleeps until it has returned.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: the callback is running, and the caller `must_not_wait`.
    pub(crate) fn remove(&self, arg: *mut c_void, must_not_wait: bool) -> Result<(), Errno> {
        let mut state = self.state.lock();
        state.left.retain(|other| other.arg != arg);
        while matches!(&state.phase, Phase::Running(Some(now)) if now.arg == arg) {
            if must_not_wait {
                return Err(Errno::EBUSY);
            }
            self.changed.wait(&mut state);
        }
        Ok(())
    }

    /// Checks whether no callback is registered while the device is present. May sleep, but not for
    /// long.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        matches!(state.phase, Phase::Waiting) && state.left.is_empty()
    }

    /// Checks whether the callbacks are running. May sleep, but not for long.
    pub(crate) fn are_running(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Running(_))
    }

    /// Sleeps while they are being called.
    pub(crate) fn wait_returned(&self) {
        let mut state = self.state.lock();
        while matches!(state.phase, Phase::Running(_)) {
            self.changed.wait(&mut state);
        }
    }

    /// Marks the callbacks as running. The caller must call [`Callbacks::run`] next. May sleep, but
    /// not for long.
    pub(crate) fn begin(&self) {
        self.state.lock().phase = Phase::Running(None);
    }

    /// Calls them one after the other, in the order in which they were added. Sleeps as they do.
    pub(crate) fn run(&self) {
        while let Some(callback) = self.next() {
            // SAFETY: `cb` may be called with `arg` by the contract of `OnRemoval::new`.
            unsafe { (callback.cb)(callback.arg) };
        }
    }

    /// Returns the next callback. The previous one has returned.
    fn next(&self) -> Option<OnRemoval> {
        let mut state = self.state.lock();
        let next = state.left.remove(0).ok();
        state.phase = match next {
            Some(_) => Phase::Running(next),
            None => Phase::Done,
        };
        drop(state);
        self.changed.notify_all();
        next
    }
}

/// A C consumer's callback.
#[derive(Clone, Copy)]
pub(crate) struct OnRemoval {
    cb: unsafe extern "C" fn(*mut c_void),
    arg: *mut c_void,
}

impl OnRemoval {
    /// Creates a callback with its argument.
    ///
    /// # Safety
    ///
    /// As `on_removal` of the C API demands: `cb` may be called with `arg` in any process context,
    /// until the callback was taken back or has been called.
    pub(crate) unsafe fn new(cb: unsafe extern "C" fn(*mut c_void), arg: *mut c_void) -> Self {
        Self { cb, arg }
    }
}

// SAFETY: `new` demands that `cb` may be called with `arg` in any process context.
unsafe impl Send for OnRemoval {}

#[kernel::macros::kunit_tests(kfi_verbs_callbacks)]
mod tests {
    use super::*;

    /// The digits of those that were called, in their order.
    static CALLED: Atomic<u32> = Atomic::new(0);

    /// Notes that the callback with this argument was called.
    ///
    /// # Safety
    ///
    /// The function accepts any pointer.
    unsafe extern "C" fn called(arg: *mut c_void) {
        let digit = u32::try_from(arg.addr()).unwrap_or(0);
        CALLED.store(CALLED.load(Relaxed) * 10 + digit, Relaxed);
    }

    /// Returns a callback that is known by a digit.
    fn digit(digit: usize) -> OnRemoval {
        // SAFETY: `called` accepts any pointer.
        unsafe { OnRemoval::new(called, ptr::without_provenance_mut(digit)) }
    }

    #[test]
    fn called_once_in_order_unless_taken_back() -> Result {
        let callbacks = Arc::pin_init(Callbacks::new(), GFP_KERNEL)?;
        assert!(callbacks.is_empty());
        for known_by in [3, 1, 2, 4] {
            assert_eq!(callbacks.add(digit(known_by)), Ok(()));
        }
        assert_eq!(callbacks.add(digit(4)), Err(Errno::EBUSY));
        assert_eq!(callbacks.remove(digit(1).arg, true), Ok(()));
        callbacks.begin();
        assert_eq!(callbacks.add(digit(5)), Err(Errno::ENODEV));
        // Not its turn yet.
        assert_eq!(callbacks.remove(digit(4).arg, true), Ok(()));
        callbacks.run();
        assert_eq!(CALLED.load(Relaxed), 32);
        callbacks.run();
        assert_eq!(CALLED.load(Relaxed), 32);
        assert_eq!(callbacks.add(digit(5)), Err(Errno::ENODEV));
        assert_eq!(callbacks.remove(digit(3).arg, true), Ok(()));
        Ok(())
    }

    #[test]
    fn running_from_begin_to_the_last_return() -> Result {
        let callbacks = Arc::pin_init(Callbacks::new(), GFP_KERNEL)?;
        assert!(!callbacks.are_running());
        assert_eq!(callbacks.add(digit(7)), Ok(()));
        callbacks.begin();
        assert!(callbacks.are_running() && !callbacks.is_empty());
        let now = callbacks.next();
        assert!(now.is_some() && callbacks.are_running());
        assert_eq!(callbacks.remove(digit(7).arg, true), Err(Errno::EBUSY));
        assert!(callbacks.next().is_none() && !callbacks.are_running());
        callbacks.wait_returned();
        assert_eq!(callbacks.remove(digit(7).arg, true), Ok(()));
        Ok(())
    }
}
