// SPDX-License-Identifier: GPL-2.0

//! A spinlock for any context.
//!
//! The kernel crate's `SpinLock` leaves interrupts on, so an interrupt handler can't take it. This
//! one turns interrupts off and restores their earlier state.
//!
//! The guard keeps the earlier state. So the guard that was taken last must be dropped first. If
//! the outer one were dropped first, it would turn interrupts on under the inner lock. The inner
//! one would turn them off for good. Therefore [`IrqLock::with`] lends the guard to a closure.

use self::backend::IrqSave;
use kernel::{
    prelude::*,
    sync::{
        lock::{
            Guard,
            Lock, //
        },
        CondVar,
        CondVarTimeoutResult,
        LockClassKey, //
    },
    time::Jiffies, //
};

/// A spinlock; interrupts are off on this CPU while it is held.
///
/// Make one by [`new_irq_lock!`](crate::new_irq_lock).
///
/// # Examples
///
/// ```ignore
/// let waiting = KBox::pin_init(new_irq_lock!(KVec::<u32>::new(), c"waiting"), GFP_KERNEL)?;
/// let first = waiting.with(|waiting| waiting.pop());
/// ```
#[pin_data]
pub struct IrqLock<T> {
    #[pin]
    lock: Lock<T, IrqSave>,
}

/// The guard of an [`IrqLock`]. It works with `CondVar`, whose waiters sleep, and so must have
/// interrupts on when they take the lock.
pub type IrqGuard<'a, T> = Guard<'a, T, IrqSave>;

impl<T> IrqLock<T> {
    /// Returns an initialiser of a lock.
    pub fn new(
        inner: impl PinInit<T>,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            lock <- Lock::new(inner, name, key),
        })
    }

    /// Takes the lock and calls `f`. Any context.
    ///
    /// The guard's lifetime is the closure's own: the closure can't keep it, nor swap it with that
    /// of another lock.
    pub fn with<R>(&self, f: impl for<'g> FnOnce(&mut IrqGuard<'g, T>) -> R) -> R {
        f(&mut self.lock.lock())
    }

    /// Calls `f` with the lock; returns `None` if the lock is taken. Any context.
    pub fn try_with<R>(&self, f: impl for<'g> FnOnce(&mut IrqGuard<'g, T>) -> R) -> Option<R> {
        self.lock.try_lock().map(|mut guard| f(&mut guard))
    }
}

/// Sleeps until a notification, a signal, the end of the timeout, or a spurious wakeup. Returns
/// true if the thread has a signal, and sets `left` to the remaining time. Without a timeout,
/// `left` is `None`.
pub(crate) fn wait<T>(
    condvar: &CondVar,
    guard: &mut IrqGuard<'_, T>,
    left: &mut Option<Jiffies>,
) -> bool {
    let Some(jiffies) = *left else {
        return condvar.wait_interruptible(guard);
    };
    let (signal, rest) = match condvar.wait_interruptible_timeout(guard, jiffies) {
        CondVarTimeoutResult::Timeout => (false, 0),
        CondVarTimeoutResult::Woken { jiffies } => (false, jiffies),
        CondVarTimeoutResult::Signal { jiffies } => (true, jiffies),
    };
    *left = Some(rest);
    signal
}

/// The backend that makes a spinlock of the kernel crate's `Lock`. It is private: only [`IrqLock`]
/// uses it.
mod backend {
    use core::mem::MaybeUninit;
    use kernel::{
        bindings,
        prelude::*,
        sync::lock::Backend, //
    };

    /// The backend of an [`IrqLock`](super::IrqLock).
    pub struct IrqSave;

    // SAFETY: A `spinlock_t` has one owner at a time; `relock` is the default one.
    unsafe impl Backend for IrqSave {
        type State = bindings::spinlock_t;
        /// Whether interrupts were on, as the architecture says it.
        type GuardState = c_ulong;

        #[inline]
        unsafe fn init(
            ptr: *mut Self::State,
            name: *const c_char,
            key: *mut bindings::lock_class_key,
        ) {
            // SAFETY: The caller promises that `ptr` and `key` are valid and `name` is a string,
            // all for the life of the lock.
            unsafe { bindings::__spin_lock_init(ptr, name, key) }
        }

        #[inline]
        unsafe fn lock(ptr: *mut Self::State) -> c_ulong {
            // SAFETY: The caller promises that `ptr` points to an initialised lock.
            unsafe { kfi_bindings::kfi_helper_lock_irqsave(ptr) }
        }

        #[inline]
        unsafe fn try_lock(ptr: *mut Self::State) -> Option<c_ulong> {
            let mut flags = MaybeUninit::uninit();
            // SAFETY: The caller promises that `ptr` points to an initialised lock. `flags` is a
            // local that has space for the result.
            if unsafe { kfi_bindings::kfi_helper_trylock_irqsave(ptr, flags.as_mut_ptr()) } {
                // SAFETY: The helper writes `flags` whether or not it took the lock.
                Some(unsafe { flags.assume_init() })
            } else {
                None
            }
        }

        #[inline]
        unsafe fn unlock(ptr: *mut Self::State, flags: &c_ulong) {
            // SAFETY: The caller promises that it owns the lock at `ptr`, and that `flags` came
            // from taking it.
            unsafe { kfi_bindings::kfi_helper_unlock_irqrestore(ptr, *flags) }
        }

        #[inline]
        unsafe fn assert_is_held(ptr: *mut Self::State) {
            // Without lockdep nothing is asserted, which takes a call all the same.
            if cfg!(CONFIG_LOCKDEP) {
                // SAFETY: The caller promises that `ptr` points to an initialised lock.
                unsafe { bindings::spin_assert_is_held(ptr) }
            }
        }
    }
}

/// An initialiser of an [`IrqLock`] with a lock class of its own.
#[macro_export]
macro_rules! new_irq_lock {
    ($inner:expr, $name:literal) => {
        $crate::irqlock::IrqLock::new($inner, $name, ::kernel::static_lock_class!())
    };
}

#[kernel::macros::kunit_tests(kfabric_irqlock)]
mod tests {
    use kernel::prelude::*;

    #[test]
    fn one_owner_at_a_time() -> Result {
        let lock = KBox::pin_init(new_irq_lock!(1, c"kfabric_irqlock"), GFP_KERNEL)?;
        lock.with(|value| {
            **value += 1;
            assert!(lock.try_with(|_| ()).is_none());
        });
        assert_eq!(lock.try_with(|value| **value), Some(2));
        Ok(())
    }

    #[test]
    fn interrupts_come_back_with_the_last() -> Result {
        let outer = KBox::pin_init(new_irq_lock!((), c"kfabric_irqlock outer"), GFP_KERNEL)?;
        let inner = KBox::pin_init(new_irq_lock!((), c"kfabric_irqlock inner"), GFP_KERNEL)?;
        let off = || {
            // SAFETY: Only asks.
            unsafe { kfi_bindings::kfi_helper_irqs_disabled() }
        };
        assert!(!off());
        // There is no other order: neither closure can keep its guard, or drop the other's.
        outer.with(|_| {
            inner.with(|_| assert!(off()));
            assert!(off());
        });
        assert!(!off());
        Ok(())
    }
}
