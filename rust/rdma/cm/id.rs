// SPDX-License-Identifier: GPL-2.0

//! Identifiers of connections, and what their events lead to.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h), `struct rdma_cm_id`
//!
//! An identifier has one event at a time: the connection manager holds its lock meanwhile. What the
//! event leads to is the identifier's [`Target`], of which it has one after the other in its life.

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::Arc, //
};

use core::{
    mem::ManuallyDrop,
    net::SocketAddr,
    ptr::{
        null_mut,
        NonNull, //
    }, //
};

use rdma_bindings as b;

use super::{
    address::Storage,
    locked::{
        Lock,
        Locked, //
    },
    noio::without_io, //
};
use crate::device::Device;

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
