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
/// The type begins with a `struct kfid`. Any thread may call its operations, several at once.
pub(super) unsafe trait Raw {
    /// The name of the type, for the log.
    const NAME: &'static str;
}

macro_rules! raw {
    ($($type:ty = $name:literal;)*) => {
        $(
            // SAFETY: Every object begins with its fid. This API opens only domains whose threading
            // model is thread-safe, and a provider serializes opening domains itself.
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
/// `parent` is dropped once the object is closed. `lent` is the state that the object may access,
/// for example its memory. [`close`](Self::close) returns `lent` on success. If the object can't be
/// closed, the log says so, and this leaks `lent`; also `parent` if the object is still open.
///
/// # Invariants
///
/// While `open`, `raw` is an open object that nobody else closes, and `parent` and `lent` are
/// valid.
pub(super) struct Handle<T: Raw, P = (), L = ()> {
    raw: NonNull<T>,
    open: bool,
    parent: ManuallyDrop<P>,
    lent: ManuallyDrop<L>,
}

// SAFETY: Any thread may call the object's operations, by the contract of `Raw`.
unsafe impl<T: Raw, P: Send, L: Send> Send for Handle<T, P, L> {}
// SAFETY: Several threads may call the object's operations, by the contract of `Raw`.
unsafe impl<T: Raw, P: Sync, L: Sync> Sync for Handle<T, P, L> {}

impl<T: Raw, P, L> Handle<T, P, L> {
    /// Creates the handle of an object that was just opened. Any context.
    pub(super) fn new(raw: NonNull<T>, parent: P, lent: L) -> Self {
        // INVARIANT: The object was just opened.
        Self {
            raw,
            open: true,
            parent: ManuallyDrop::new(parent),
            lent: ManuallyDrop::new(lent),
        }
    }

    /// Returns the C object. Any context.
    pub(super) fn as_ptr(&self) -> *mut T {
        self.raw.as_ptr()
    }

    /// Returns the C object. Any context.
    pub(super) fn raw(&self) -> NonNull<T> {
        self.raw
    }

    /// Returns the fid of the object. Any context.
    pub(super) fn fid(&self) -> *mut kfid {
        self.as_ptr().cast()
    }

    /// Returns the parent of the object. Any context.
    pub(super) fn parent(&self) -> &P {
        &self.parent
    }

    /// Returns the state that the object may access. Any context.
    pub(super) fn lent(&self) -> &L {
        &self.lent
    }

    /// Returns the state that the object may access. Any context.
    pub(super) fn lent_mut(&mut self) -> &mut L {
        &mut self.lent
    }

    /// Closes the object and returns the state that it could access. May sleep.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, `EOPBADSTATE`: the object is still open, and the error has it.
    /// - Others: the object is closed, and the state is leaked.
    pub(super) fn close(self) -> Result<L, CloseError<Self>> {
        let _noio = NoIo::enter();
        // SAFETY: `raw` is open by the invariant. Every user of the object borrows this handle, and
        // `self` is the only reference to it.
        let closed = unsafe { call::close(self.raw.cast()) };
        // SAFETY: `closed` is the result of closing the object, and `self` was its only user.
        unsafe { self.closed(closed) }
    }

    /// Handles the result of an attempt to close the object, like [`close`](Self::close). May
    /// sleep.
    ///
    /// # Safety
    ///
    /// `closed` is the result of closing this object, which nobody else uses.
    pub(super) unsafe fn closed(
        mut self,
        closed: Result<(), Errno>,
    ) -> Result<L, CloseError<Self>> {
        // SAFETY: `closed` is the result of closing the object, by this function's contract. If the
        // object isn't open afterwards, `self` is only dropped.
        unsafe { self.settle(closed) }.map_err(|errno| {
            let open = self.open.then_some(self);
            CloseError::new(errno, open)
        })
    }

    /// Returns the state of a closed object. Any context, if others have references to the parent.
    ///
    /// # Safety
    ///
    /// The object is closed, and nobody uses it.
    pub(super) unsafe fn into_lent(self) -> L {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: Both are valid by the invariant. `this` is never dropped, and not used
        // afterwards.
        unsafe {
            ManuallyDrop::drop(&mut this.parent);
            ManuallyDrop::take(&mut this.lent)
        }
    }

    /// Closes the object. May sleep.
    ///
    /// # Errors
    ///
    /// The errors of [`close`](Self::close).
    ///
    /// # Safety
    ///
    /// The object is open. Unless it is still `open` afterwards, the caller only drops the handle.
    unsafe fn shut(&mut self) -> Result<L, Errno> {
        let _noio = NoIo::enter();
        // SAFETY: `raw` is open by this function's contract. Every user of the object borrows this
        // handle, and `self` is an exclusive reference.
        let closed = unsafe { call::close(self.raw.cast()) };
        // SAFETY: `closed` is the result of closing the object. If it is closed, the caller only
        // drops the handle.
        unsafe { self.settle(closed) }
    }

    /// Handles the result of closing the object. May sleep.
    ///
    /// # Errors
    ///
    /// The errors of [`close`](Self::close).
    ///
    /// # Safety
    ///
    /// `closed` is the result of closing the open object. Unless it is still `open` afterwards, the
    /// caller only drops the handle.
    unsafe fn settle(&mut self, closed: Result<(), Errno>) -> Result<L, Errno> {
        // Busy: it has a counter, a child or a user. Bad state: the call is in a handler that it
        // would wait for.
        self.open = matches!(closed, Err(Errno::EBUSY | Errno::EOPBADSTATE));
        if !self.open {
            // SAFETY: The object was open, so `parent` is valid. It is not used again, since `open`
            // is false.
            unsafe { ManuallyDrop::drop(&mut self.parent) };
        }
        match closed {
            // SAFETY: The object was open, so `lent` is valid. It is not used again, since `open`
            // is false.
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
        // Dropping `lent` may allocate.
        let _noio = NoIo::enter();
        // SAFETY: The object is open, and the handle is being dropped.
        match unsafe { self.shut() } {
            Ok(lent) => drop(lent),
            // The parent stays open, too.
            Err(errno) if self.open => call::leaked(T::NAME, errno),
            Err(_) => (),
        }
    }
}

/// Drops a reference to an object with a handle. Closes the object if the reference was the last
/// one. May sleep.
///
/// # Errors
///
/// - `EBUSY`, without the object: others have references. The last of them closes the object.
/// - Others: those of [`Handle::close`].
pub(super) fn close_last<S: Unpin, T: Raw, P, L>(
    shared: Arc<S>,
    handle: impl Fn(&mut S) -> &mut Handle<T, P, L>,
) -> Result<(), CloseError<Arc<S>>> {
    // Dropping `lent` may allocate.
    let _noio = NoIo::enter();
    let Some(mut last) = Arc::into_unique_or_drop(shared) else {
        return Err(CloseError::new(Errno::EBUSY, None));
    };
    // SAFETY: `last` is the only reference to an open object. It is returned if the object is still
    // open, and else only dropped.
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
