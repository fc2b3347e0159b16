// SPDX-License-Identifier: GPL-2.0

//! Taking receives back.

use super::{
    call::{
        self,
        op, //
    },
    Local,
    MsgEndpoint,
    Receives,
    RequestId,
    SharedReceives, //
};
use crate::support::errno::Errno;
use kfi_bindings::{
    kfi_ops_ep,
    kfid_ep, //
};

/// `kfi_cancel()`. Any context.
///
/// # Safety
///
/// `ep` is an open endpoint, or an open receive context.
unsafe fn cancel(ep: *mut kfid_ep, request: RequestId) -> Result<(), Errno> {
    // SAFETY: By the requirements of this function; the context is opaque.
    let cancelled = unsafe {
        op!(
            (*ep).ops,
            kfi_ops_ep,
            cancel(&raw mut (*ep).fid, request.context())
        )
    }?;
    call::count(cancelled).map(|_| ())
}

impl<S: Receives, B: Local, C: Send + 'static> MsgEndpoint<S, B, C> {
    /// `kfi_cancel()`: takes a receive back for which no message has come yet. It comes by the queue, as one
    /// that has failed with `ECANCELED`. Any context, but its queue's handler may be called before this returns.
    ///
    /// # Errors
    ///
    /// - `ENOENT`: the request isn't posted here as a receive, or a message has come for it.
    /// - `ENOSYS`: the provider takes nothing back.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::prelude::*;
    /// use kfabric::consumer::{Connected, Ended, MsgEndpoint, Request, RequestQueue};
    ///
    /// /// Waits a second for a message; its memory comes back in any case.
    /// fn message(
    ///     from: &MsgEndpoint<Connected, KVec<u8>>,
    ///     queue: &RequestQueue<KVec<u8>>,
    ///     room: Request<KVec<u8>>,
    /// ) -> Result<Option<Ended<KVec<u8>>>> {
    ///     let id = room.id();
    ///     from.recv(room)?;
    ///     if let Some(ended) = queue.wait(Some(1000))? {
    ///         return Ok(Some(ended));
    ///     }
    ///     match from.cancel(id) {
    ///         // A message came in the meantime.
    ///         Ok(()) | Err(kfabric::consumer::Errno::ENOENT) => Ok(queue.read()?),
    ///         Err(errno) => Err(errno.into()),
    ///     }
    /// }
    /// ```
    pub fn cancel(&self, request: RequestId) -> Result<(), Errno> {
        // SAFETY: The endpoint is open as long as `self` is there.
        unsafe { cancel(self.as_raw(), request) }
    }
}

impl<B: Local, C: Send + 'static> SharedReceives<B, C> {
    /// `kfi_cancel()`: as [`MsgEndpoint::cancel`], of a receive that was posted here.
    ///
    /// # Errors
    ///
    /// As that.
    pub fn cancel(&self, request: RequestId) -> Result<(), Errno> {
        // SAFETY: The context is open as long as `self` is there.
        unsafe { cancel(self.as_raw(), request) }
    }
}
