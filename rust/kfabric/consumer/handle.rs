// SPDX-License-Identifier: GPL-2.0

//! Handles of open C objects, which close them once.
//!
//! The macro [`op`] calls operations of an object's table, like the inline functions of the C headers.

use super::{
    error::{
        self,
        CloseError, //
    },
    *, //
};
use crate::support::{
    num::signed,
    sockaddr,
    table::NO_SUCH_CALL, //
};
use core::mem::ManuallyDrop;
use kfi_bindings::{
    __kernel_sockaddr_storage as sockaddr_storage,
    kfid_pep, //
};

/// Calls an operation of a table and returns its result: `op_if_any!(table, type,
/// operation(arguments))`.
///
/// `None` if the table is null or does not have the operation. A provider that was built with an
/// older header has a shorter table. If a table has the size 0, its provider doesn't set the size.
///
/// # Safety
///
/// The table is null or valid. The arguments are valid for the operation.
macro_rules! op_if_any {
    ($table:expr, $op:ident($($arg:expr),* $(,)?)) => {{
        let table: *const _ = $table;
        match table.is_null() {
            true => None,
            false => $crate::consumer::handle::slot_if_any!(table, $op)
                .map(|op| op($($arg),*)),
        }
    }};
}
pub(super) use op_if_any;

/// Returns an operation of a table that isn't null, or `None`.
///
/// # Safety
///
/// The table is valid for the size in it.
macro_rules! slot_if_any {
    ($table:expr, $op:ident) => {{
        let table: *const _ = $table;
        let offset = (&raw const (*table).$op).addr() - table.addr();
        let end = offset + size_of::<*const ()>();
        match (*table).size {
            size if size == 0 || size >= end => (*table).$op,
            _ => None,
        }
    }};
}
pub(super) use slot_if_any;

/// Calls an operation of a table and returns its result, or `ENOSYS` if the table does not have the
/// operation.
///
/// # Safety
///
/// The table is null or valid. The arguments are valid for the operation.
macro_rules! op {
    ($table:expr, $op:ident($($arg:expr),* $(,)?)) => {
        $crate::consumer::handle::op_if_any!($table, $op($($arg),*))
            .ok_or_else(|| $crate::consumer::handle::missing(::kernel::c_str!(stringify!($op))))
    };
}
pub(super) use op;

/// Calls an operation that opens another object, and returns the new object: `open_by!(object,
/// operation(arguments before the new object; arguments after it))`.
///
/// Returns `EIO` if the operation succeeds without an object.
///
/// # Safety
///
/// The object must be open. The arguments must be valid for the operation.
macro_rules! open_by {
    ($object:expr, $op:ident($($before:expr),*; $($after:expr),*)) => {{
        let (raw, mut new) = ($object, ptr::null_mut());
        $crate::consumer::handle::op!((*raw).ops, $op(raw, $($before,)* &mut new, $($after),*))
            .and_then(|ret| $crate::consumer::handle::opened(ret, new))
    }};
}
pub(super) use open_by;

/// Defines `as_raw` of a type that has the handle of this C object.
macro_rules! as_raw {
    ($type:ident: $raw:ty) => {
        impl $type {
            /// Returns the C object, for calls that Rust doesn't have. It is open as long as `self`
            /// lives. The caller must not close it. Any context.
            pub fn as_raw(&self) -> *mut $raw {
                self.0.as_ptr()
            }
        }
    };
}
pub(super) use as_raw;

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
    pub(super) fn close(mut self) -> Result<L, CloseError<Self>> {
        // SAFETY: The object is open by the invariant. If it isn't open afterwards, `self` is only
        // dropped.
        unsafe { self.shut() }.map_err(|errno| self.not_closed(errno))
    }

    fn not_closed(self, errno: Errno) -> CloseError<Self> {
        CloseError::new(errno, self.open.then_some(self))
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
        unsafe { self.settle(closed) }.map_err(|errno| self.not_closed(errno))
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
        let closed = unsafe { close(self.raw.cast()) };
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
                    error::leaked(T::NAME, errno);
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
            Err(errno) if self.open => error::leaked(T::NAME, errno),
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

/// Reports the refusal of a call that the provider doesn't have, and returns its errno.
pub(super) fn missing(call: &CStr) -> Errno {
    NO_SUCH_CALL.report(call);
    NO_SUCH_CALL.errno()
}

/// Returns the result of a call that returns 0 on success.
pub(super) fn result(ret: c_int) -> Result<(), Errno> {
    match ret {
        0 => Ok(()),
        _ => Err(Errno::from_c(ret)),
    }
}

/// Returns the result of a call that returns a count on success.
pub(super) fn count(ret: isize) -> Result<usize, Errno> {
    usize::try_from(ret).map_err(|_| Errno::from_c(c_int::try_from(ret).unwrap_or(0)))
}

/// Returns the object that a call opened, or its error.
///
/// If the provider returned success without an object, the error is `EIO`.
pub(super) fn opened<T>(ret: c_int, object: *mut T) -> Result<NonNull<T>, Errno> {
    result(ret)?;
    NonNull::new(object).ok_or(Errno::EIO)
}

/// Returns a time limit for C, in milliseconds. `None` is no limit.
pub(super) fn timeout(msecs: Option<u32>) -> c_int {
    msecs.map_or(-1, |msecs| c_int::try_from(msecs).unwrap_or(c_int::MAX))
}

/// Closes an object: `kfi_close()`. May sleep.
///
/// # Safety
///
/// `fid` is an open object. If the call succeeds, the caller never uses the object again.
pub(super) unsafe fn close(fid: NonNull<kfid>) -> Result<(), Errno> {
    let fid = fid.as_ptr();
    // SAFETY: `fid` is open by this function's contract, so its table is valid.
    result(unsafe { op!((*fid).ops, close(fid)) }?)
}

/// Calls `kfi_control()`.
///
/// # Safety
///
/// `fid` is an open object. `arg` is valid for the command.
pub(super) unsafe fn control(fid: *mut kfid, command: u32, arg: *mut c_void) -> Result<(), Errno> {
    // SAFETY: `fid` is open and `arg` valid for the command, by this function's contract.
    result(unsafe { op!((*fid).ops, control(fid, signed(command), arg)) }?)
}

/// Calls `kfi_bind()`.
///
/// # Safety
///
/// `fid` and `to` are open objects. `to` stays open as long as `fid` needs it.
pub(super) unsafe fn bind(fid: *mut kfid, to: *mut kfid, flags: u64) -> Result<(), Errno> {
    // SAFETY: `fid` and `to` are open by this function's contract.
    result(unsafe { op!((*fid).ops, bind(fid, to, flags)) }?)
}

/// Returns the address that `call` stores. `call` gets a buffer for any address, and its size.
pub(super) fn address(
    call: impl FnOnce(*mut c_void, *mut usize) -> Result<c_int, Errno>,
) -> Result<SocketAddr, Errno> {
    let mut raw: sockaddr_storage = pin_init::zeroed();
    let mut len = size_of_val(&raw);
    let address: *mut c_void = (&raw mut raw).cast();
    result(call(address, &mut len)?)?;
    // SAFETY: `call` succeeded, so it stored an address at `address`, which points to the local
    // `raw`.
    unsafe { sockaddr::read(address, None) }.map_err(|refusal| refusal.errno())
}
