// SPDX-License-Identifier: GPL-2.0

//! Handles of open C objects, which close them once.

use super::{
    call,
    CloseError, //
};
use crate::support::{
    errno::Errno,
    task::NoIo, //
};
use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::sync::Arc;
use kfi_bindings::{
    kfid,
    kfid_cntr,
    kfid_cq,
    kfid_domain,
    kfid_ep,
    kfid_eq,
    kfid_fabric,
    kfid_mr,
    kfid_pep, //
};

/// A C object.
///
/// # Safety
///
/// The type begins with a `struct kfid`. The calls on such an object may be made by any thread, and
/// by several at once.
pub(super) unsafe trait Raw {
    /// What it is, for the log.
    const NAME: &'static str;
}

macro_rules! raw {
    ($($type:ty = $name:literal;)*) => {
        $(
            // SAFETY: Every object begins with its fid. This API opens domains only whose calls
            // need not be serialized, and opening a domain is under the provider's own locks.
            unsafe impl Raw for $type {
                const NAME: &'static str = $name;
            }
        )*
    };
}

raw! {
    kfid_fabric = "fabric";
    kfid_domain = "domain";
    kfid_mr = "memory region";
    kfid_eq = "event queue";
    kfid_cntr = "counter";
    kfid_cq = "completion queue";
    kfid_ep = "endpoint";
    kfid_pep = "passive endpoint";
}

/// An open object, which dropping closes.
///
/// `parent` is let go as soon as the object is gone. `lent` is what the object may use, its memory
/// for instance: that comes back when closing it has succeeded. What an object has that can't be
/// closed is leaked, and the log says so: both, if it is still open, else `lent`.
///
/// # Invariants
///
/// While `open`, `raw` is an open object that nobody else closes; `parent` and `lent` are there.
pub(super) struct Handle<T: Raw, P = (), L = ()> {
    raw: NonNull<T>,
    open: bool,
    parent: ManuallyDrop<P>,
    lent: ManuallyDrop<L>,
}

// SAFETY: The calls on the object may be made by any thread, by the requirements of `Raw`.
unsafe impl<T: Raw, P: Send, L: Send> Send for Handle<T, P, L> {}
// SAFETY: They may be made by several threads at once, by the requirements of `Raw`.
unsafe impl<T: Raw, P: Sync, L: Sync> Sync for Handle<T, P, L> {}

impl<T: Raw, P, L> Handle<T, P, L> {
    /// Takes over an object that was just opened. Any context.
    pub(super) fn new(raw: NonNull<T>, parent: P, lent: L) -> Self {
        // INVARIANT: Just opened.
        Self {
            raw,
            open: true,
            parent: ManuallyDrop::new(parent),
            lent: ManuallyDrop::new(lent),
        }
    }

    /// Returns the object as C has it. Any context.
    pub(super) fn as_ptr(&self) -> *mut T {
        self.raw.as_ptr()
    }

    /// Returns the object as C has it. Any context.
    pub(super) fn raw(&self) -> NonNull<T> {
        self.raw
    }

    /// Returns what the object begins with. Any context.
    pub(super) fn fid(&self) -> *mut kfid {
        self.as_ptr().cast()
    }

    /// Returns what it was opened in. Any context.
    pub(super) fn parent(&self) -> &P {
        &self.parent
    }

    /// Returns what it may use. Any context.
    pub(super) fn lent(&self) -> &L {
        &self.lent
    }

    /// Returns what it may use. Any context.
    pub(super) fn lent_mut(&mut self) -> &mut L {
        &mut self.lent
    }

    /// Closes the object and gives back what it could use. May sleep.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, `EOPBADSTATE`: it is still open, and comes back.
    /// - Others: it is gone, and what it could use is leaked.
    pub(super) fn close(self) -> Result<L, CloseError<Self>> {
        let _noio = NoIo::enter();
        // SAFETY: `raw` is open by the invariant of this type; whoever uses it has a reference to
        // this handle, to which there is no other now.
        let closed = unsafe { call::close(self.raw.cast()) };
        // SAFETY: That was just done.
        unsafe { self.closed(closed) }
    }

    /// As [`close`](Self::close), after that was tried, and has ended so. May sleep.
    ///
    /// # Safety
    ///
    /// It was; nobody else uses the object.
    pub(super) unsafe fn closed(
        mut self,
        closed: Result<(), Errno>,
    ) -> Result<L, CloseError<Self>> {
        // SAFETY: By the requirements of this function. `self` is given back if it is still open, and
        // else only dropped.
        unsafe { self.settle(closed) }.map_err(|errno| {
            let open = self.open.then_some(self);
            CloseError::new(errno, open)
        })
    }

    /// What the object could use, after it was closed. Any context, as long as others have what it was opened in.
    ///
    /// # Safety
    ///
    /// It was; nobody else uses the object.
    pub(super) unsafe fn into_lent(self) -> L {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: Both were there by the invariant of this type; `this` is never dropped nor used again.
        unsafe {
            ManuallyDrop::drop(&mut this.parent);
            ManuallyDrop::take(&mut this.lent)
        }
    }

    /// Closes the object, unless it is closed. May sleep.
    ///
    /// # Errors
    ///
    /// As [`close`](Self::close).
    ///
    /// # Safety
    ///
    /// Unless the object is `open` afterwards, the handle is only dropped.
    unsafe fn shut(&mut self) -> Result<L, Errno> {
        let _noio = NoIo::enter();
        // SAFETY: `raw` is open by the invariant of this type; whoever uses it has a reference to
        // this handle, to which there is no other now.
        let closed = unsafe { call::close(self.raw.cast()) };
        // SAFETY: That was just done; the rest is the caller's promise.
        unsafe { self.settle(closed) }
    }

    /// The object was closed, or not. May sleep.
    ///
    /// # Errors
    ///
    /// As [`close`](Self::close).
    ///
    /// # Safety
    ///
    /// That was tried, and has ended so. Unless the object is `open` afterwards, the handle is only
    /// dropped.
    unsafe fn settle(&mut self, closed: Result<(), Errno>) -> Result<L, Errno> {
        // It has a counter, a child or a user; or is closed in a handler that it would wait for.
        self.open = matches!(closed, Err(Errno::EBUSY | Errno::EOPBADSTATE));
        if !self.open {
            // SAFETY: `parent` was there by the invariant of this type, and is not used any more by
            // the requirements of this function.
            unsafe { ManuallyDrop::drop(&mut self.parent) };
        }
        match closed {
            // SAFETY: `lent` was there by the invariant of this type, and is not used any more by
            // the requirements of this function.
            Ok(()) => Ok(unsafe { ManuallyDrop::take(&mut self.lent) }),
            Err(errno) => {
                if !self.open {
                    call::leaked(T::NAME, errno);
                }
                Err(errno)
            }
        }
    }
}

impl<T: Raw, P, L> Drop for Handle<T, P, L> {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        // For what the owner of `lent` may do when it is dropped.
        let _noio = NoIo::enter();
        // SAFETY: The handle is being dropped.
        match unsafe { self.shut() } {
            Ok(lent) => drop(lent),
            // What it was opened in stays open with it.
            Err(errno) if self.open => call::leaked(T::NAME, errno),
            Err(_) => (),
        }
    }
}

/// Gives up a reference to what has a handle and, if it was the last, closes that and tells whether
/// it worked. May sleep.
///
/// # Errors
///
/// - `EBUSY`, with nothing given back: others have references, and the object is closed with the
///   last of them.
/// - Others: as [`Handle::close`].
pub(super) fn close_last<S: Unpin, T: Raw, P, L>(
    shared: Arc<S>,
    handle: impl Fn(&mut S) -> &mut Handle<T, P, L>,
) -> Result<(), CloseError<Arc<S>>> {
    // For what the owner of `lent` may do when it is dropped.
    let _noio = NoIo::enter();
    let Some(mut last) = Arc::into_unique_or_drop(shared) else {
        return Err(CloseError::new(Errno::EBUSY, None));
    };
    // SAFETY: `last` is given back if it is still open, and else only dropped.
    match unsafe { handle(&mut last).shut() } {
        Ok(lent) => {
            drop((last, lent));
            Ok(())
        }
        Err(errno) => {
            let open = handle(&mut last).open.then(|| last.into());
            Err(CloseError::new(errno, open))
        }
    }
}
