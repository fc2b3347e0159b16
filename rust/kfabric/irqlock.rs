// SPDX-License-Identifier: GPL-2.0

//! A spinlock for any context.
//!
//! The kernel crate's `SpinLock` leaves interrupts on, so that it can't be taken by an interrupt
//! handler. This one turns them off, and back to what they were, for what consumers may call from
//! wherever they are.

use core::mem::MaybeUninit;
use kernel::{
    bindings,
    ffi::{
        c_char,
        c_ulong, //
    },
    sync::lock::{
        Backend,
        Guard,
        Lock, //
    }, //
};

/// A spinlock; interrupts are off on this CPU while it is held.
///
/// Make one by [`new_irq_lock!`](crate::new_irq_lock). It works with `CondVar`, whose waiters
/// sleep, and so must have interrupts on when they take the lock.
pub type IrqLock<T> = Lock<T, IrqSave>;

/// The guard of an [`IrqLock`]. Guards that overlap are dropped last taken first.
pub type IrqGuard<'a, T> = Guard<'a, T, IrqSave>;

/// The backend of an [`IrqLock`].
pub struct IrqSave;

// SAFETY: A `spinlock_t` has one owner at a time; `relock` is the default one.
unsafe impl Backend for IrqSave {
    type State = bindings::spinlock_t;
    /// Whether interrupts were on, as the architecture says it.
    type GuardState = c_ulong;

    #[inline]
    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: By the requirements of this function.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> c_ulong {
        // SAFETY: By the requirements of this function, the lock is initialised.
        unsafe { kfi_bindings::kfi_helper_lock_irqsave(ptr) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<c_ulong> {
        let mut flags = MaybeUninit::uninit();
        // SAFETY: As in `lock`; `flags` has room for the result.
        if unsafe { kfi_bindings::kfi_helper_trylock_irqsave(ptr, flags.as_mut_ptr()) } {
            // SAFETY: Set whether or not the lock was taken.
            Some(unsafe { flags.assume_init() })
        } else {
            None
        }
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, flags: &c_ulong) {
        // SAFETY: By the requirements of this function, the caller owns the lock, and `flags` came
        // from taking it.
        unsafe { kfi_bindings::kfi_helper_unlock_irqrestore(ptr, *flags) }
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // SAFETY: As in `lock`.
        unsafe { bindings::spin_assert_is_held(ptr) }
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
        let mut guard = lock.lock();
        *guard += 1;
        assert!(lock.try_lock().is_none());
        drop(guard);
        let guard = lock.try_lock().ok_or(EBUSY)?;
        assert_eq!(*guard, 2);
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
        let first = outer.lock();
        let second = inner.lock();
        assert!(off());
        drop(second);
        assert!(off());
        drop(first);
        assert!(!off());
        Ok(())
    }
}
