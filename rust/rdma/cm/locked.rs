// SPDX-License-Identifier: GPL-2.0

//! What may be done with an identifier while its lock is held.
//!
//! The connection manager holds the lock of an identifier while it handles an event of its, so
//! nothing changes beneath whoever has it.

use kernel::{
    error::to_result,
    prelude::*, //
};

use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::{
        null_mut,
        NonNull, //
    }, //
};

use rdma_bindings as b;

use super::{
    data,
    terms::Terms, //
};
use crate::{
    device::Device,
    qp::{
        Init,
        Qp, //
    }, //
};

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
    pub(super) fn set_timers(&self, terms: &Terms) -> Result {
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
    pub(super) fn connect(&self, qp: &Qp<Init>, terms: &Terms, data: &[u8]) -> Result {
        let qp = (qp.number(), qp.shares_receives());
        let mut param = terms.raw(qp, data, data::REQUEST)?;
        // SAFETY: `id` is there by the type invariant, and its lock held; the parameters are read
        // during the call.
        to_result(unsafe { b::rdma_connect_locked(self.as_raw(), &mut param) })
    }

    /// Accepts a request, for this queue pair.
    pub(super) fn accept(&self, qp: &Qp<Init>, terms: &Terms, data: &[u8]) -> Result {
        let qp = (qp.number(), qp.shares_receives());
        let mut param = terms.raw(qp, data, data::ACCEPTANCE)?;
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
        let len = data::checked_len(data, data::REJECTION)?;
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
