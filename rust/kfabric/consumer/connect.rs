// SPDX-License-Identifier: GPL-2.0

//! Connecting endpoints, and what can be done with them then.

use super::{
    call::{
        self,
        op, //
    },
    conn::News,
    name,
    Active,
    ConnectError,
    Connected,
    Connecting,
    Enabled,
    Local,
    MsgEndpoint,
    Passive,
    Refused, //
};
use crate::support::errno::Errno;
use core::{
    net::SocketAddr,
    ptr, //
};
use kernel::{
    ffi::c_int,
    prelude::*, //
};
use kfi_bindings::{
    kfi_ops_cm,
    kfid_ep, //
};

/// An endpoint whose attempt to be connected has begun, or the one that was refused to.
type Begun<S, B, C> = Result<MsgEndpoint<Connecting, B, C>, Refused<MsgEndpoint<S, B, C>>>;

impl<B: Local, C: Send + 'static> MsgEndpoint<Enabled<Active>, B, C> {
    /// `kfi_connect()`: asks the peer for a connection, with at most 56 bytes for it to read. May sleep, but
    /// doesn't wait for the peer.
    ///
    /// # Errors
    ///
    /// The endpoint comes back, and may try again.
    ///
    /// - `EINVAL`: no peer was asked for, or these are too many bytes.
    /// - `ENOMEM`.
    pub fn connect(self, data: &[u8]) -> Begun<Enabled<Active>, B, C> {
        self.begin(|ep| {
            let (param, len) = (data.as_ptr().cast(), data.len());
            // SAFETY: The endpoint is open, and the data are valid for the call.
            unsafe {
                let cm = (*ep).cm;
                op!(cm, kfi_ops_cm, connect(ep, ptr::null(), param, len))
            }
        })
    }
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Enabled<Passive>, B, C> {
    /// `kfi_accept()`: accepts the request, with at most 196 bytes for the peer to read. May sleep, but
    /// doesn't wait for the peer.
    ///
    /// # Errors
    ///
    /// The endpoint comes back, and may try again. Dropping it rejects.
    ///
    /// - `EINVAL`: too many bytes.
    /// - `ENOMEM`.
    pub fn accept(self, data: &[u8]) -> Begun<Enabled<Passive>, B, C> {
        self.begin(|ep| {
            let (param, len) = (data.as_ptr().cast(), data.len());
            // SAFETY: The endpoint is open, and the data are valid for the call.
            unsafe { op!((*ep).cm, kfi_ops_cm, accept(ep, param, len)) }
        })
    }
}

impl<R, B: Local, C: Send + 'static> MsgEndpoint<Enabled<R>, B, C> {
    fn begin(
        self,
        call: impl FnOnce(*mut kfid_ep) -> Result<c_int, Errno>,
    ) -> Begun<Enabled<R>, B, C> {
        match call(self.as_raw()).and_then(call::result) {
            Ok(()) => Ok(self.goes_to(Connecting(()))),
            Err(errno) => Err(Refused::new(errno, self)),
        }
    }
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Connecting, B, C> {
    /// Waits for the connection, so many milliseconds or for ever. Sleeps.
    ///
    /// # Errors
    ///
    /// With the endpoint, which may be waited for again, or dropped:
    ///
    /// - `ETIMEDOUT`: it took longer than that.
    /// - `EINTR`: a signal came.
    /// - `ENOSYS`: it has a [handler](MsgEndpoint::handler), which is told.
    ///
    /// Without it:
    ///
    /// - `ECONNREFUSED`: the peer has rejected, perhaps with some bytes; or nobody listens there.
    /// - `ECONNRESET`: the connection has ended before this side knew of it.
    /// - Others of the provider.
    pub fn wait(
        mut self,
        msecs: Option<u32>,
    ) -> Result<MsgEndpoint<Connected, B, C>, ConnectError<Self>> {
        let Some(conn) = &mut self.handle.lent_mut().conn else {
            return Err(ConnectError::pending(Errno::ENOSYS, self));
        };
        match conn.wait(msecs) {
            Ok(Some(News::Connected(data))) => Ok(self.goes_to(Connected { data })),
            Ok(Some(News::Failed)) => {
                let (errno, data) = conn.failure();
                Err(ConnectError::failed(errno, data))
            }
            Ok(Some(_)) => Err(ConnectError::failed(Errno::ECONNRESET, KVec::new())),
            Ok(None) => Err(ConnectError::pending(Errno::ETIMEDOUT, self)),
            Err(errno) => Err(ConnectError::pending(errno, self)),
        }
    }

    /// Takes the step to a connected endpoint, after its [handler](MsgEndpoint::handler) was told so. May
    /// sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: it isn't connected, or not any more; it comes back.
    pub fn established(self) -> Result<MsgEndpoint<Connected, B, C>, Refused<Self>> {
        match peer(self.as_raw()) {
            Ok(_) => Ok(self.goes_to(Connected { data: KVec::new() })),
            Err(errno) => Err(Refused::new(errno, self)),
        }
    }
}

/// `kfi_getpeer()` of an open endpoint.
fn peer(ep: *mut kfid_ep) -> Result<SocketAddr, Errno> {
    name::of(|address, len| {
        // SAFETY: The endpoint is open, and the others are valid for the call.
        unsafe { op!((*ep).cm, kfi_ops_cm, getpeer(ep, address, len)) }
    })
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Connected, B, C> {
    /// Returns what the peer has sent with its acceptance, if this side has [waited](MsgEndpoint::wait) for
    /// it. Any context.
    pub fn data(&self) -> &[u8] {
        &self.state.data
    }

    /// `kfi_getpeer()`: returns the peer's address. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the connection has ended.
    pub fn peer(&self) -> Result<SocketAddr, Errno> {
        peer(self.as_raw())
    }

    /// `kfi_shutdown()`: ends the connection. What is under way fails, and both sides are told. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: it has ended.
    pub fn shutdown(&self) -> Result<(), Errno> {
        let ep = self.as_raw();
        // SAFETY: The endpoint is open.
        call::result(unsafe { op!((*ep).cm, kfi_ops_cm, shutdown(ep, 0)) }?)
    }

    /// Waits until the connection has ended, so many milliseconds or for ever. Sleeps. One who waits is
    /// told.
    ///
    /// # Errors
    ///
    /// - `ETIMEDOUT`: it took longer than that.
    /// - `EINTR`: a signal came.
    /// - `ENOSYS`: the endpoint has a [handler](MsgEndpoint::handler), which is told.
    pub fn wait_shutdown(&self, msecs: Option<u32>) -> Result<(), Errno> {
        let conn = self.handle.lent().conn.as_ref().ok_or(Errno::ENOSYS)?;
        loop {
            match conn.wait(msecs)? {
                Some(News::Shutdown) => return Ok(()),
                // What was established without waiting.
                Some(News::Connected(_)) => (),
                Some(_) => return Err(Errno::EIO),
                None => return Err(Errno::ETIMEDOUT),
            }
        }
    }
}
