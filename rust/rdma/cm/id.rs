// SPDX-License-Identifier: GPL-2.0

//! Identifiers of the connection manager, their locks, events and event handlers.
//!
//! C headers: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h), `struct rdma_cm_id`,
//! [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)
//!
//! The connection manager holds the lock of an identifier while it handles an event, so an
//! identifier has one event at a time. The events go to its [`Target`], which can be replaced.
//!
//! Storage waits for the handlers when a connection is made, fails or is given up. A write that
//! would free memory may wait for a handler, so allocations in the handler must not wait for I/O.

use super::*;
use kernel::sync::atomic::AtomicType;

/// A receiver of the events of an identifier.
pub(super) trait Target: Send + Sync + 'static {
    /// Handles an event of `id`, whose lock is held.
    ///
    /// The event of a listener may come with a new identifier `id`. On an error the connection
    /// manager destroys that and rejects the request. After `ENOMEM` the peer tries again. Other
    /// targets return [`Ok`].
    ///
    /// # Context
    ///
    /// Process context, allocations do not start I/O. See [`Events`] for the
    /// restrictions.
    fn event(&self, id: &Locked<'_>, event: &b::rdma_cm_event) -> Result;
}

/// An identifier of a connection or of a listener.
///
/// Dropping it destroys the identifier. The drop sleeps until a running handler has returned, so it
/// must not be called in a handler. No handler runs afterwards.
///
/// # Invariants
///
/// - `id` is valid: only `drop` destroys it.
/// - The context of `id` is `target`, and its handler is `callback::<T>`.
pub(super) struct Id<T: Target> {
    id: NonNull<b::rdma_cm_id>,
    target: Arc<T>,
}

// SAFETY: Any task may use an identifier, and `T` is `Send` and `Sync`.
unsafe impl<T: Target> Send for Id<T> {}

// SAFETY: The connection manager locks the identifier where needed.
unsafe impl<T: Target> Sync for Id<T> {}

impl<T: Target> Id<T> {
    /// Creates an identifier. May sleep.
    pub(super) fn new(target: Arc<T>) -> Result<Self> {
        let context = Arc::as_ptr(&target).cast_mut().cast();
        // SAFETY: The context is a valid `T` until the identifier is destroyed, because the
        // returned `Id` owns `target`. `callback::<T>` takes this context.
        let id = unsafe { b::rdma_helper_create_id(Some(callback::<T>), context) };
        // INVARIANT: The identifier was created with this context and handler.
        Ok(Self {
            id: NonNull::new(from_err_ptr(id)?).ok_or(ENOMEM)?,
            target,
        })
    }

    /// Takes an identifier that the connection manager has created.
    ///
    /// # Safety
    ///
    /// Nobody else may own `id`. If [`Target::event`] has the connection manager destroy it, the
    /// caller must [forget](Id::forget) the returned value.
    pub(super) unsafe fn adopt(id: &Locked<'_>, target: Arc<T>) -> Self {
        // INVARIANT: `id` has no other owner by the function's contract. `lead()` sets its context
        // and handler.
        let this = Self { id: id.id, target };
        this.lead(id);
        this
    }

    /// Replaces the target, and calls `first` before the next event. Sleeps. Must not be called in
    /// a handler.
    pub(super) fn retarget<U: Target, R>(
        self,
        to: Arc<U>,
        first: impl FnOnce(&Id<U>, &Locked<'_>) -> R,
    ) -> (Id<U>, R) {
        let id = self.id;
        // SAFETY: `id` is valid by the type invariant. `new`, which destroys it, outlives the lock.
        let lock = unsafe { Locked::lock(id.as_ptr()) };
        // INVARIANT: `lead()` sets the context and the handler of `id`.
        let new = Id { id, target: to };
        new.lead(&lock);
        self.forget();
        let done = first(&new, &lock);
        drop(lock);
        (new, done)
    }

    /// Gives up the identifier, which another owner destroys or has destroyed.
    pub(super) fn forget(self) {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so this is the only copy of `target`.
        drop(unsafe { core::ptr::read(&this.target) });
    }

    /// Directs the events to the target.
    fn lead(&self, _locked: &Locked<'_>) {
        let id = self.id.as_ptr();
        // SAFETY: `id` is valid by the type invariant. No other task accesses the fields, because
        // the lock is held.
        unsafe {
            (*id).context = Arc::as_ptr(&self.target).cast_mut().cast();
            (*id).event_handler = Some(callback::<T>);
        }
    }

    /// Returns the target of the events.
    pub(super) fn target(&self) -> &Arc<T> {
        &self.target
    }

    /// Locks the identifier: no handler runs until the lock is dropped. Sleeps. Must not be called
    /// in a handler.
    pub(super) fn lock(&self) -> Locked<'_> {
        // SAFETY: `id` is valid by the type invariant, and `self` outlives the lock.
        unsafe { Locked::lock(self.id.as_ptr()) }
    }

    /// Returns the raw pointer, which is valid as long as `self`.
    pub(super) fn as_raw(&self) -> *mut b::rdma_cm_id {
        self.id.as_ptr()
    }

    /// Binds the identifier to an address. May sleep.
    pub(super) fn bind(&self, address: SocketAddr) -> Result {
        let mut address = Storage::new(address);
        // SAFETY: `id` is valid by the type invariant. `address` is a `sockaddr_storage` that the
        // call only reads.
        to_result(unsafe { b::rdma_bind_addr(self.as_raw(), address.as_mut_ptr()) })
    }

    /// Starts to listen. May sleep.
    pub(super) fn listen(&self, backlog: u32) -> Result {
        let backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);
        // SAFETY: `id` is valid by the type invariant.
        to_result(unsafe { b::rdma_listen(self.as_raw(), backlog) })
    }

    /// Starts to resolve an address, for at most `limit` milliseconds. May sleep.
    pub(super) fn resolve(&self, from: Option<SocketAddr>, to: SocketAddr, limit: u32) -> Result {
        let limit = c_ulong::try_from(limit)?;
        let (mut from, mut to) = (from.map(Storage::new), Storage::new(to));
        let from = from.as_mut().map_or(null_mut(), Storage::as_mut_ptr);
        // SAFETY: `id` is valid by the type invariant. `from` is null or, like `to`, a
        // `sockaddr_storage` that the call only reads.
        to_result(unsafe { b::rdma_resolve_addr(self.as_raw(), from, to.as_mut_ptr(), limit) })
    }

    /// Sets the type of service, before the address is resolved.
    pub(super) fn set_tos(&self, tos: u8) {
        // SAFETY: `id` is valid by the type invariant.
        unsafe { b::rdma_set_service_type(self.as_raw(), tos.into()) };
    }

    /// Returns the local address, if it is known.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        // SAFETY: `id` is valid by the type invariant. A concurrent change yields arbitrary bytes,
        // which `Storage` permits.
        let address = unsafe { Storage::read(&raw const (*self.as_raw()).route.addr.src_addr) };
        address.address()
    }

    /// Returns the peer's address, if it is known.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        // SAFETY: `id` is valid by the type invariant. A concurrent change yields arbitrary bytes,
        // which `Storage` permits.
        let address = unsafe { Storage::read(&raw const (*self.as_raw()).route.addr.dst_addr) };
        address.address()
    }

    /// Returns the device, if it is known.
    pub(super) fn device(&self) -> Option<&Device> {
        // SAFETY: `id` is valid by the type invariant. Its device does not change once it is set.
        let device = unsafe { (&raw const (*self.as_raw()).device).read_volatile() };
        // SAFETY: The connection manager holds a reference to the device until the identifier is
        // destroyed, and `self` owns the identifier.
        (!device.is_null()).then(|| unsafe { Device::from_raw(device) })
    }

    /// Returns the port of the device, or 0 if it is not known yet.
    pub(super) fn port(&self) -> u32 {
        // SAFETY: `id` is valid by the type invariant. Its port does not change once it is set.
        unsafe { (&raw const (*self.as_raw()).port_num).read_volatile() }
    }
}

impl<T: Target> Drop for Id<T> {
    fn drop(&mut self) {
        // SAFETY: `id` is valid by the type invariant, and is not used again. No handler runs after
        // this, so `target` may be freed.
        unsafe { b::rdma_destroy_id(self.id.as_ptr()) };
    }
}

/// Handles an event of an identifier, with its lock held. Process context.
///
/// # Safety
///
/// Only the connection manager may call this. The context of `id` must be a valid `T`, and `event`
/// must be valid for the call.
unsafe extern "C" fn callback<T: Target>(
    id: *mut b::rdma_cm_id,
    event: *mut b::rdma_cm_event,
) -> c_int {
    // SAFETY: The context of `id` is a valid `T` by the function's contract. Destruction of `id`
    // waits for this function.
    let target = unsafe { &*(*id).context.cast::<T>() };
    // SAFETY: `event` is valid for the call by the function's contract.
    let event = unsafe { &*event };
    // SAFETY: The connection manager keeps `id` valid and locked for the call.
    let locked = unsafe { Locked::new(id) };
    match without_io(|| target.event(&locked, event)) {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// An identifier whose lock this task holds for `'a`. Dropping it releases a lock that it took.
///
/// # Invariants
///
/// `id` is valid, and this task holds its lock.
pub(super) struct Locked<'a> {
    id: NonNull<b::rdma_cm_id>,
    /// True if this took the lock, false if the connection manager did.
    is_own: bool,
    // Only this task may unlock.
    _held: PhantomData<(&'a (), *mut ())>,
}

impl Locked<'_> {
    /// Locks an identifier. Sleeps. Must not be called in a handler of the identifier.
    ///
    /// # Safety
    ///
    /// `id` must be valid for `'_`.
    pub(super) unsafe fn lock(id: *mut b::rdma_cm_id) -> Self {
        // SAFETY: `id` is valid by the function's contract.
        unsafe { b::rdma_lock_handler(id) };
        // SAFETY: `id` is valid for `'_` by the function's contract. This task has just locked it,
        // and unlocks it when the returned value is dropped.
        let mut this = unsafe { Self::new(id) };
        this.is_own = true;
        this
    }

    /// Wraps an identifier that the connection manager has locked.
    ///
    /// # Safety
    ///
    /// For `'_`, `id` must be valid, and this task must hold its lock.
    pub(super) unsafe fn new(id: *mut b::rdma_cm_id) -> Self {
        // INVARIANT: `id` is valid and locked by the function's contract.
        Self {
            // SAFETY: `id` is a valid pointer, so it is not null.
            id: unsafe { NonNull::new_unchecked(id) },
            is_own: false,
            _held: PhantomData,
        }
    }

    /// Returns the raw pointer, which is valid as long as `self`.
    pub(super) fn as_raw(&self) -> *mut b::rdma_cm_id {
        self.id.as_ptr()
    }

    /// Checks whether the identifier has this device.
    pub(super) fn is_on(&self, device: &Device) -> bool {
        // SAFETY: `id` is valid by the type invariant. Its device changes only under the lock.
        unsafe { (*self.as_raw()).device == device.as_raw() }
    }

    /// Returns the port of the device, or 0 if it is not known yet.
    pub(super) fn port(&self) -> u32 {
        // SAFETY: `id` is valid by the type invariant. Its port changes only under the lock.
        unsafe { (*self.as_raw()).port_num }
    }

    /// Sets the timers of the queue pair.
    pub(super) fn set_timers(&self, terms: &ConnParam) -> Result {
        if let Some(timeout) = terms.ack_timeout {
            // SAFETY: `id` is valid by the type invariant.
            to_result(unsafe { b::rdma_set_ack_timeout(self.as_raw(), timeout) })?;
        }
        // SAFETY: `id` is valid by the type invariant.
        to_result(unsafe { b::rdma_set_min_rnr_timer(self.as_raw(), terms.min_rnr_timer) })
    }

    /// Starts to resolve the route, for at most `limit` milliseconds.
    pub(super) fn resolve_route(&self, limit: u32) -> Result {
        let limit = c_ulong::try_from(limit.max(1))?;
        // SAFETY: `id` is valid by the type invariant.
        to_result(unsafe { b::rdma_resolve_route(self.as_raw(), limit) })
    }

    /// Sends a connection request for this queue pair.
    pub(super) fn connect(&self, qp: &Qp<Init>, terms: &ConnParam, data: &[u8]) -> Result {
        let qp = (qp.number(), qp.shares_receives());
        let mut param = terms.raw(qp, data, MAX_REQUEST_DATA)?;
        // SAFETY: `id` is valid and locked by the type invariant. `param` and its private data are
        // valid for the call.
        to_result(unsafe { b::rdma_connect_locked(self.as_raw(), &mut param) })
    }

    /// Accepts a connection request with this queue pair.
    pub(super) fn accept(&self, qp: &Qp<Init>, terms: &ConnParam, data: &[u8]) -> Result {
        let qp = (qp.number(), qp.shares_receives());
        let mut param = terms.raw(qp, data, MAX_ACCEPT_DATA)?;
        // SAFETY: `id` is valid and locked by the type invariant. `param` and its private data are
        // valid for the call.
        to_result(unsafe { b::rdma_accept(self.as_raw(), &mut param) })
    }

    /// Confirms the acceptance: the queue pair is ready.
    pub(super) fn confirm(&self) -> Result {
        // SAFETY: `id` is valid and locked by the type invariant.
        to_result(unsafe { b::rdma_accept(self.as_raw(), null_mut()) })
    }

    /// Rejects the request or the acceptance of the peer.
    pub(super) fn reject(&self, data: &[u8]) -> Result {
        let len = checked_len(data, MAX_REJECT_DATA)?;
        let reason = b::ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED.try_into()?;
        // SAFETY: `id` is valid by the type invariant. `data` has `len` bytes, which the call only
        // reads.
        to_result(unsafe { b::rdma_reject(self.as_raw(), data.as_ptr().cast(), len, reason) })
    }

    /// Disconnects, or confirms that the peer has disconnected.
    pub(super) fn disconnect(&self) -> Result {
        // SAFETY: `id` is valid by the type invariant.
        to_result(unsafe { b::rdma_disconnect(self.as_raw()) })
    }

    /// Returns the attributes for the change of a queue pair to `state`, and their mask.
    pub(super) fn attributes(&self, state: b::ib_qp_state) -> Result<(b::ib_qp_attr, u32)> {
        let mut attr = b::ib_qp_attr {
            qp_state: state,
            ..Default::default()
        };
        let mut mask = 0;
        // SAFETY: `id` is valid by the type invariant, and has a device because its address is
        // resolved. `attr` and `mask` are valid for writes.
        to_result(unsafe { b::rdma_init_qp_attr(self.as_raw(), &mut attr, &mut mask) })?;
        Ok((attr, mask.try_into()?))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if self.is_own {
            // SAFETY: `id` is valid and locked by the type invariant.
            unsafe { b::rdma_unlock_handler(self.as_raw()) };
        }
    }
}

/// Calls `f`. Until `f` returns, allocations of this task do not start I/O, whatever their flags.
/// Process context.
pub(super) fn without_io<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: The call changes flags of the current task only. They are restored below on the same
    // task.
    let flags = unsafe { rdma_bindings::rdma_helper_noio_save() };
    let done = f();
    // SAFETY: `flags` come from `rdma_helper_noio_save()` on this task.
    unsafe { rdma_bindings::rdma_helper_noio_restore(flags) };
    done
}

/// A handler for the events of a connection.
pub trait Events: Send + Sync + 'static {
    /// Handles an event.
    ///
    /// # Context
    ///
    /// Process context, one event at a time, with the lock of the connection. The connection
    /// manager waits for the handler, for some events on behalf of the whole machine. The handler
    /// may sleep for a lock or for memory. It must not
    ///
    /// - wait for a peer, for a user or for another event;
    /// - drop a connection, a [`Listener`], an [`Incoming`] or a [`Resolved`], nor disconnect: they
    ///   wait for the handler. Use a workqueue for that.
    fn event(&self, event: Event<'_>);
}

/// An event of a connection.
///
/// A connection has at most one [`Event::Established`], and at most one event that ends it. No
/// event follows the end. After the end the endpoint is in error, and its requests are flushed.
#[derive(Debug)]
pub enum Event<'a> {
    /// The connection is established. On the accepting side a message of the peer may arrive
    /// earlier.
    Established(Established<'a>),
    /// The path to the peer may have changed. The connection goes on. If the peer is unreachable,
    /// requests fail.
    PathChanged,
    /// End: the peer rejected the request.
    Rejected(Rejected<'a>),
    /// End: the connection could not be established.
    Failed {
        /// The step that failed.
        step: Step,
        /// The cause. `ETIMEDOUT` if the time limit ended, `EXDEV` if another device reaches the
        /// peer.
        error: Error,
    },
    /// End: requests were in flight, and none completed within the limit.
    Stalled,
    /// End: the peer or this side disconnected.
    Disconnected,
    /// End: the device is being removed. The owner must drop the connection soon, because the
    /// removal waits.
    DeviceRemoval,
}

/// Parameters of the peer's answer.
#[derive(Debug)]
pub struct Established<'a> {
    /// Private data, padded. Empty on the accepting side.
    pub private_data: &'a [u8],
    /// Number of the peer's reads and atomic operations that this side serves at once. On the
    /// accepting side it was settled before.
    pub responder_resources: u8,
    /// Number of reads and atomic operations that the peer serves at once.
    pub initiator_depth: u8,
}

impl<'a> Established<'a> {
    /// Returns the parameters of an event. They are zero in events without connection parameters.
    pub(super) fn of(event: &'a b::rdma_cm_event) -> Self {
        // SAFETY: `conn` is the member of connection events, and all of its bytes are zero in other
        // events.
        let conn = unsafe { event.param.conn.as_ref() };
        Self {
            // SAFETY: `private_data` is null or points to `private_data_len` bytes that are valid
            // as long as `event`.
            private_data: unsafe { private_data(conn.private_data, conn.private_data_len) },
            responder_resources: conn.responder_resources,
            initiator_depth: conn.initiator_depth,
        }
    }
}

/// Parameters of the peer's rejection.
#[derive(Debug)]
pub struct Rejected<'a> {
    /// The reason in the encoding of the wire: 28 if the peer's consumer rejected, 8 without a
    /// listener.
    pub reason: i32,
    /// Private data, padded.
    pub private_data: &'a [u8],
}

/// The states of a connection, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Step {
    /// Resolves the peer's address, and the device that leads there.
    Address,
    /// Resolves the route.
    Route,
    /// Requests the connection, or accepts it.
    Request,
    /// The connection is established.
    Established,
    /// The connection has ended.
    Ended,
}

// SAFETY: The enum has the size and alignment of `i32`, and each of its values is one of `i32`.
unsafe impl AtomicType for Step {
    type Repr = i32;
}

/// Reason of a rejection by the peer's consumer.
pub const REJECTED_BY_CONSUMER: i32 = 28;
/// Reason of a rejection without a listener.
pub const REJECTED_NO_LISTENER: i32 = 8;

/// Returns the text for the reason of a rejection. Over iWARP the reason is an errno, which has no
/// text here. Any context.
pub fn rejection(reason: i32) -> &'static CStr {
    // SAFETY: `ibcm_reject_msg` accepts every value, and returns a static string.
    unsafe { CStr::from_char_ptr(b::ibcm_reject_msg(reason)) }
}
