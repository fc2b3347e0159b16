// SPDX-License-Identifier: GPL-2.0

//! Identifiers of connections, and what their events lead to.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h), `struct rdma_cm_id`
//!
//! An identifier has one event at a time: the connection manager holds its lock meanwhile. What the
//! event leads to is the identifier's [`Target`], of which it has one after the other in its life.
//!
//! MERGED cm/locked.rs
//! What may be done with an identifier while its lock is held.
//!
//! The connection manager holds the lock of an identifier while it handles an event of its, so
//! nothing changes beneath whoever has it.
//!
//! MERGED cm/noio.rs
//! Keeping the handlers of connections from waiting for I/O.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)
//!
//! Storage waits for these handlers when a connection is made, fails or is given up. Then a write that would free
//! memory can't finish before the handler has, so no allocation in the handler may wait for that write.

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::Arc, //
};

use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    net::SocketAddr,
    ops::Deref,
    ptr::{
        null_mut,
        NonNull, //
    }, //
};

use rdma_bindings as b;

use super::{
    address::Storage,
    conn_param::{
        checked_len,
        ConnParam, //
        MAX_ACCEPT_DATA,
        MAX_REJECT_DATA,
        MAX_REQUEST_DATA,
    }, //
};
use crate::{
    device::Device,
    qp::{
        Init,
        Qp, //
    }, //
};

/// What the events of an identifier lead to.
pub(super) trait Target: Send + Sync + 'static {
    /// An event of `id`, whose lock is held. Process context, where no allocation starts I/O; see
    /// [`Events`](super::Events) for what mustn't be done here.
    ///
    /// The event of a listener may be about a new identifier, which `id` is then: on an error the
    /// connection manager destroys it, and refuses the peer, unless that is `ENOMEM`: then the peer
    /// tries again. All others return [`Ok`].
    fn event(&self, id: &Locked<'_>, event: &b::rdma_cm_event) -> Result;
}

/// An identifier of a connection, or of a listener.
///
/// Dropping it destroys it, which sleeps until a handler of its that is running has returned; none
/// is called afterwards. So that must not be done in a handler.
///
/// # Invariants
///
/// `id` is destroyed only here. Its context is `target`, and its handler that for `T`.
pub(super) struct Id<T: Target> {
    id: NonNull<b::rdma_cm_id>,
    target: Arc<T>,
}

// SAFETY: An identifier is not tied to a task, nor is its target.
unsafe impl<T: Target> Send for Id<T> {}

// SAFETY: The C side does its own locking.
unsafe impl<T: Target> Sync for Id<T> {}

impl<T: Target> Id<T> {
    /// Makes an identifier. May sleep.
    pub(super) fn new(target: Arc<T>) -> Result<Self> {
        let context = Arc::as_ptr(&target).cast_mut().cast();
        // SAFETY: The context goes after the identifier, and the handler is that for it.
        let id = unsafe { b::rdma_helper_create_id(Some(callback::<T>), context) };
        // INVARIANT: Just made, with this context.
        Ok(Self {
            id: NonNull::new(from_err_ptr(id)?).ok_or(ENOMEM)?,
            target,
        })
    }

    /// Takes an identifier that the connection manager has made.
    ///
    /// # Safety
    ///
    /// `id` must be nobody's yet. If [`Target::event`] has it destroyed, what is returned must be
    /// [forgotten](Id::forget).
    pub(super) unsafe fn adopt(id: &Locked<'_>, target: Arc<T>) -> Self {
        // INVARIANT: It is nobody else's. Its context and handler are these from here on.
        let this = Self {
            id: id.as_nonnull(),
            target,
        };
        this.lead(id);
        this
    }

    /// Has the identifier's events lead elsewhere, and does something before the next one can come.
    /// Sleeps. Not to be called in a handler.
    pub(super) fn retarget<U: Target, R>(
        self,
        to: Arc<U>,
        first: impl FnOnce(&Id<U>, &Locked<'_>) -> R,
    ) -> (Id<U>, R) {
        let id = self.id;
        // SAFETY: `id` is there by the type invariant, and `new` destroys it only after this.
        let lock = unsafe { Lock::take(id.as_ptr()) };
        // INVARIANT: Its context and handler are these from here on.
        let new = Id { id, target: to };
        new.lead(&lock);
        self.forget();
        let done = first(&new, &lock);
        drop(lock);
        (new, done)
    }

    /// Lets go of the identifier, which somebody else destroys, or has.
    pub(super) fn forget(self) {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so this is the only copy.
        drop(unsafe { core::ptr::read(&this.target) });
    }

    /// Lets the events lead to the target.
    fn lead(&self, _locked: &Locked<'_>) {
        let id = self.id.as_ptr();
        // SAFETY: `id` is there by the type invariant, and no event is handled elsewhere, as its
        // lock is held.
        unsafe {
            (*id).context = Arc::as_ptr(&self.target).cast_mut().cast();
            (*id).event_handler = Some(callback::<T>);
        }
    }

    /// What events lead to.
    pub(super) fn target(&self) -> &Arc<T> {
        &self.target
    }

    /// Takes the lock: no event is handled meanwhile. Sleeps. Not to be called in a handler.
    pub(super) fn lock(&self) -> Lock<'_> {
        // SAFETY: `id` is there by the type invariant, as long as `self`.
        unsafe { Lock::take(self.id.as_ptr()) }
    }

    /// The raw pointer, valid as long as this.
    pub(super) fn as_raw(&self) -> *mut b::rdma_cm_id {
        self.id.as_ptr()
    }

    /// Binds it to an address. May sleep.
    pub(super) fn bind(&self, address: SocketAddr) -> Result {
        let mut address = Storage::new(address);
        // SAFETY: `id` is there by the type invariant, and the address is read during the call.
        to_result(unsafe { b::rdma_bind_addr(self.as_raw(), address.as_mut_ptr()) })
    }

    /// Begins to listen. May sleep.
    pub(super) fn listen(&self, backlog: u32) -> Result {
        let backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);
        // SAFETY: `id` is there by the type invariant.
        to_result(unsafe { b::rdma_listen(self.as_raw(), backlog) })
    }

    /// Begins to resolve an address, which takes so many milliseconds at most. May sleep.
    pub(super) fn resolve(&self, from: Option<SocketAddr>, to: SocketAddr, limit: u32) -> Result {
        let limit = c_ulong::try_from(limit)?;
        let (mut from, mut to) = (from.map(Storage::new), Storage::new(to));
        let from = from.as_mut().map_or(null_mut(), Storage::as_mut_ptr);
        // SAFETY: `id` is there by the type invariant, and the addresses are read during the call.
        to_result(unsafe { b::rdma_resolve_addr(self.as_raw(), from, to.as_mut_ptr(), limit) })
    }

    /// Its own address, once it has one.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        // SAFETY: `id` is there by the type invariant. An address that is read while it changes may
        // be any, and is plain data.
        let address = unsafe { Storage::read(&raw const (*self.as_raw()).route.addr.src_addr) };
        address.address()
    }

    /// Its peer's address, once it has one.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        // SAFETY: As for its own address.
        let address = unsafe { Storage::read(&raw const (*self.as_raw()).route.addr.dst_addr) };
        address.address()
    }

    /// Its device, once it has one.
    pub(super) fn device(&self) -> Option<&Device> {
        // SAFETY: `id` is there by the type invariant. It has its device for good, once it has it.
        let device = unsafe { (&raw const (*self.as_raw()).device).read_volatile() };
        // SAFETY: The connection manager, a client of the device's, has not let it go before the
        // identifier is destroyed, which is not before `self` is.
        (!device.is_null()).then(|| unsafe { Device::from_raw(device) })
    }

    /// The port of its device, once it has one.
    pub(super) fn port(&self) -> u32 {
        // SAFETY: `id` is there by the type invariant. It has its port for good, once it has it.
        unsafe { (&raw const (*self.as_raw()).port_num).read_volatile() }
    }
}

impl<T: Target> Drop for Id<T> {
    fn drop(&mut self) {
        // SAFETY: `id` is there by the type invariant, and nobody uses it again. No handler runs
        // when this has returned, so that its context can go.
        unsafe { b::rdma_destroy_id(self.id.as_ptr()) };
    }
}

/// The handler of identifiers, called with the identifier's lock. Process context.
///
/// # Safety
///
/// To be called by the connection manager only, for an identifier whose context is a target `T`
/// that is there, with an event.
unsafe extern "C" fn callback<T: Target>(
    id: *mut b::rdma_cm_id,
    event: *mut b::rdma_cm_event,
) -> c_int {
    // SAFETY: The manager passes an identifier whose context is a target that is there: destroying
    // the identifier waits for this.
    let target = unsafe { &*(*id).context.cast::<T>() };
    // SAFETY: The manager passes an event that is there until this returns.
    let event = unsafe { &*event };
    // SAFETY: The identifier is there, and its lock held, until this returns.
    let locked = unsafe { Locked::new(id) };
    match without_io(|| target.event(&locked, event)) {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// An identifier whose lock is held by this task, for `'a`.
///
/// # Invariants
///
/// `id` is there, and its lock is held.
pub(super) struct Locked<'a> {
    id: NonNull<b::rdma_cm_id>,
    // The lock is this task's.
    _held: PhantomData<(&'a (), *mut ())>,
}

impl Locked<'_> {
    /// Takes a raw pointer.
    ///
    /// # Safety
    ///
    /// `id` must be there, and its lock be held by this task, for as long as this is.
    pub(super) unsafe fn new(id: *mut b::rdma_cm_id) -> Self {
        // INVARIANT: As the caller promises.
        Self {
            // SAFETY: What is there is not null.
            id: unsafe { NonNull::new_unchecked(id) },
            _held: PhantomData,
        }
    }

    /// The raw pointer, valid as long as this.
    pub(super) fn as_raw(&self) -> *mut b::rdma_cm_id {
        self.id.as_ptr()
    }

    /// As [`Locked::as_raw`].
    pub(super) fn as_nonnull(&self) -> NonNull<b::rdma_cm_id> {
        self.id
    }

    /// Whether it is one of this device.
    pub(super) fn is_on(&self, device: &Device) -> bool {
        // SAFETY: `id` is there by the type invariant; its device changes under the lock only.
        unsafe { (*self.as_raw()).device == device.as_raw() }
    }

    /// The port of its device, once it has one.
    pub(super) fn port(&self) -> u32 {
        // SAFETY: `id` is there by the type invariant; its port changes under the lock only.
        unsafe { (*self.as_raw()).port_num }
    }

    /// Sets the timers that go with a connection.
    pub(super) fn set_timers(&self, terms: &ConnParam) -> Result {
        if let Some(timeout) = terms.ack_timeout {
            // SAFETY: `id` is there by the type invariant.
            to_result(unsafe { b::rdma_set_ack_timeout(self.as_raw(), timeout) })?;
        }
        // SAFETY: `id` is there by the type invariant.
        to_result(unsafe { b::rdma_set_min_rnr_timer(self.as_raw(), terms.min_rnr_timer) })
    }

    /// Begins to resolve the route, which takes so many milliseconds at most.
    pub(super) fn resolve_route(&self, limit: u32) -> Result {
        let limit = c_ulong::try_from(limit.max(1))?;
        // SAFETY: `id` is there by the type invariant.
        to_result(unsafe { b::rdma_resolve_route(self.as_raw(), limit) })
    }

    /// Sends a request, for this queue pair.
    pub(super) fn connect(&self, qp: &Qp<Init>, terms: &ConnParam, data: &[u8]) -> Result {
        let qp = (qp.number(), qp.shares_receives());
        let mut param = terms.raw(qp, data, MAX_REQUEST_DATA)?;
        // SAFETY: `id` is there by the type invariant, and its lock held; the parameters are read
        // during the call.
        to_result(unsafe { b::rdma_connect_locked(self.as_raw(), &mut param) })
    }

    /// Accepts a request, for this queue pair.
    pub(super) fn accept(&self, qp: &Qp<Init>, terms: &ConnParam, data: &[u8]) -> Result {
        let qp = (qp.number(), qp.shares_receives());
        let mut param = terms.raw(qp, data, MAX_ACCEPT_DATA)?;
        // SAFETY: `id` is there by the type invariant, and its lock held; the parameters are read
        // during the call.
        to_result(unsafe { b::rdma_accept(self.as_raw(), &mut param) })
    }

    /// Says that the acceptance has come: the queue pair is ready.
    pub(super) fn confirm(&self) -> Result {
        // SAFETY: `id` is there by the type invariant, and its lock held.
        to_result(unsafe { b::rdma_accept(self.as_raw(), null_mut()) })
    }

    /// Rejects what the peer has sent.
    pub(super) fn reject(&self, data: &[u8]) -> Result {
        let len = checked_len(data, MAX_REJECT_DATA)?;
        let reason = b::ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED.try_into()?;
        // SAFETY: `id` is there by the type invariant; the data are read during the call.
        to_result(unsafe { b::rdma_reject(self.as_raw(), data.as_ptr().cast(), len, reason) })
    }

    /// Says that the connection is over, or agrees.
    pub(super) fn disconnect(&self) -> Result {
        // SAFETY: `id` is there by the type invariant.
        to_result(unsafe { b::rdma_disconnect(self.as_raw()) })
    }

    /// What a queue pair gets on its way to a state, and which of it.
    pub(super) fn attributes(&self, state: b::ib_qp_state) -> Result<(b::ib_qp_attr, u32)> {
        let mut attr = b::ib_qp_attr {
            qp_state: state,
            ..Default::default()
        };
        let mut mask = 0;
        // SAFETY: `id` is there by the type invariant, and has a device, as each connection; `attr`
        // and `mask` may be changed.
        to_result(unsafe { b::rdma_init_qp_attr(self.as_raw(), &mut attr, &mut mask) })?;
        Ok((attr, mask.try_into()?))
    }
}

/// The lock of an identifier, held until this is dropped.
pub(super) struct Lock<'a>(Locked<'a>);

impl Lock<'_> {
    /// Takes the lock. Sleeps. Not to be called in a handler of the identifier's.
    ///
    /// # Safety
    ///
    /// `id` must be there as long as this.
    pub(super) unsafe fn take(id: *mut b::rdma_cm_id) -> Self {
        // SAFETY: `id` is there.
        unsafe { b::rdma_lock_handler(id) };
        // SAFETY: It stays, and its lock has just been taken, and is held until this is dropped.
        Self(unsafe { Locked::new(id) })
    }
}

impl<'a> Deref for Lock<'a> {
    type Target = Locked<'a>;

    fn deref(&self) -> &Locked<'a> {
        &self.0
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant of `Locked` the identifier is there, and its lock held.
        unsafe { b::rdma_unlock_handler(self.0.as_raw()) };
    }
}

/// Calls `f`. Until `f` returns, no allocation of this task starts I/O, whatever its flags say. Process context.
pub(super) fn without_io<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: This changes flags of the current task only, and the flags are restored below on the same task.
    let flags = unsafe { rdma_bindings::rdma_helper_noio_save() };
    let done = f();
    // SAFETY: `flags` are those that the call above has returned on this task.
    unsafe { rdma_bindings::rdma_helper_noio_restore(flags) };
    done
}
