// SPDX-License-Identifier: GPL-2.0

//! Posting requests to connected endpoints.
//!
//! All of it may be done in any context.

use super::{
    call::{
        self,
        op, //
    },
    give::{
        Posted,
        Role,
        COMPLETION,
        INVALIDATE,
        PEER,
        REMOTE_CQ_DATA, //
    },
    scattered::Access,
    Connected,
    Local,
    MsgEndpoint,
    Receives,
    Remote,
    Request,
    SharedReceives, //
};
use crate::support::errno::Errno;
use kfi_bindings::{
    kfi_msg,
    kfi_msg__bindgen_ty_1 as RawList,
    kfi_ops_msg,
    kfi_ops_rma, //
};

/// Calls an operation of an endpoint's table with a request's memory, which is in one place, and these.
///
/// SAFETY, of all: the endpoint is open. The memory is as `Local` promises, and nobody else has it until
/// the transfer has ended. The context is opaque.
macro_rules! post {
    ($endpoint:expr, $request:expr, $role:ident, $table:ident: $ops:ty, $op:ident($($arg:expr),*)) => {
        $endpoint.post($request, Role::$role, |ep, at, context| {
            let at = at.one()?;
            let buf = at.start.as_ptr().cast();
            // SAFETY: As said above.
            unsafe {
                op!((*ep).$table, $ops, $op(ep, buf, at.len, at.desc, $($arg,)* context))
            }
        })
    };
}

/// Calls an operation that takes a message with a request's memory, these data and these flags.
///
/// SAFETY, of all: as for `post!`; the message is valid for the call.
macro_rules! post_msg {
    ($endpoint:expr, $request:expr, $role:ident, $op:ident($data:expr, $flags:expr)) => {
        $endpoint.post($request, Role::$role, |ep, at, context| {
            at.with_raw(|(kind, first, desc, iov_count)| {
                let msg = kfi_msg {
                    type_: kind,
                    __bindgen_anon_1: RawList { msg_iov: first },
                    desc,
                    iov_count,
                    addr: PEER,
                    context,
                    data: $data,
                };
                let flags = $flags | COMPLETION;
                // SAFETY: As said above.
                unsafe { op!((*ep).msg, kfi_ops_msg, $op(ep, &msg, flags)) }
            })
        })
    };
}

impl<B: Local, C: Send + 'static> SharedReceives<B, C> {
    /// `kfi_recv()`: waits for a message in the request's memory, from the peer of any endpoint that shares it.
    ///
    /// # Errors
    ///
    /// With the request:
    ///
    /// - `EAGAIN`: as many are waiting as can be, or the queue is full.
    /// - `ENODEV`: the device is gone.
    /// - Others: as `kfi_recv()`.
    pub fn recv(&self, request: Request<B, C>) -> Posted<B, C> {
        match request.is_one_run() {
            true => post!(self, request, Target, msg: kfi_ops_msg, recv(PEER)),
            false => post_msg!(self, request, Target, recvmsg(0, 0)),
        }
    }
}

impl<S: Receives, B: Local, C: Send + 'static> MsgEndpoint<S, B, C> {
    /// `kfi_recv()`: waits for a message in the request's memory.
    ///
    /// # Errors
    ///
    /// With the request:
    ///
    /// - `EAGAIN`: as many are waiting as can be, or the queue is full.
    /// - `ENOTCONN`: the connection has ended.
    /// - `EOPNOTSUPP`: it [shares](SharedReceives) its receives.
    /// - Others: as `kfi_recv()`.
    pub fn recv(&self, request: Request<B, C>) -> Posted<B, C> {
        match request.is_one_run() {
            true => post!(self, request, Target, msg: kfi_ops_msg, recv(PEER)),
            false => self.recv_msg(request, 0),
        }
    }

    /// `kfi_recvmsg()` with these flags.
    pub(super) fn recv_msg(&self, request: Request<B, C>, flags: u64) -> Posted<B, C> {
        post_msg!(self, request, Target, recvmsg(0, flags))
    }
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Connected, B, C> {
    /// `kfi_send()`: sends the request's memory as a message.
    ///
    /// # Errors
    ///
    /// With the request:
    ///
    /// - `EAGAIN`: as many are under way as can be, or the queue is full.
    /// - `ENOTCONN`: the connection has ended.
    /// - Others: as `kfi_send()`.
    pub fn send(&self, request: Request<B, C>) -> Posted<B, C> {
        match request.is_one_run() {
            true => post!(self, request, Source, msg: kfi_ops_msg, send(PEER)),
            false => self.send_msg(request, 0, 0),
        }
    }

    /// `kfi_senddata()`: as [`send`](Self::send), and the peer gets a number of 4 bytes along with it.
    ///
    /// # Errors
    ///
    /// As for `send`, and:
    ///
    /// - `EINVAL`: more than 4 bytes.
    pub fn send_data(&self, request: Request<B, C>, data: u64) -> Posted<B, C> {
        match request.is_one_run() {
            true => post!(self, request, Source, msg: kfi_ops_msg, senddata(data, PEER)),
            false => self.send_msg(request, data, REMOTE_CQ_DATA),
        }
    }

    /// `kfi_sendmsg()` with `KFI_INVALIDATE`: as [`send`](Self::send), and the peer's device lets nobody in any
    /// more by a key of its.
    ///
    /// # Errors
    ///
    /// As for `send`, and:
    ///
    /// - `ENOKEY`: no device has such a key.
    pub fn send_invalidating(&self, request: Request<B, C>, key: u64) -> Posted<B, C> {
        self.send_msg(request, key, INVALIDATE)
    }

    /// `kfi_sendmsg()` with these data and flags.
    pub(super) fn send_msg(&self, request: Request<B, C>, data: u64, flags: u64) -> Posted<B, C> {
        post_msg!(self, request, Source, sendmsg(data, flags))
    }

    /// `kfi_read()`: reads from the peer's memory into the request's, as many bytes as that has.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send). Whether the peer lets it in is seen later.
    pub fn read(&self, request: Request<B, C>, from: Remote) -> Posted<B, C> {
        match request.is_one_run() {
            true => post!(self, request, Target, rma: kfi_ops_rma, read(PEER, from.addr, from.key)),
            false => self.access(request, from, Access::READ),
        }
    }

    /// `kfi_write()`: writes the request's memory to the peer's.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn write(&self, request: Request<B, C>, to: Remote) -> Posted<B, C> {
        match request.is_one_run() {
            true => post!(self, request, Source, rma: kfi_ops_rma, write(PEER, to.addr, to.key)),
            false => self.access(request, to, Access::WRITE),
        }
    }

    /// `kfi_writedata()`: as [`write`](Self::write), and a receive of the peer's tells it so, with a number
    /// of 4 bytes.
    ///
    /// # Errors
    ///
    /// As for `write`, and:
    ///
    /// - `EINVAL`: more than 4 bytes.
    pub fn write_data(&self, request: Request<B, C>, to: Remote, data: u64) -> Posted<B, C> {
        match request.is_one_run() {
            true => {
                post!(self, request, Source, rma: kfi_ops_rma, writedata(data, PEER, to.addr, to.key))
            }
            false => self.access(request, to, Access::WRITE.telling(data)),
        }
    }

    /// `kfi_inject()`: sends a copy of some bytes as a message. Nothing comes back of it, unless it fails.
    ///
    /// # Errors
    ///
    /// - `EMSGSIZE`: more bytes than the provider injects.
    /// - `EFAULT`: they are neither on the stack nor in memory that could be registered: constants.
    /// - Others: as for [`send`](Self::send).
    pub fn inject(&self, bytes: &[u8]) -> Result<(), Errno> {
        let (ep, buf, len) = (self.as_raw(), bytes.as_ptr().cast(), bytes.len());
        // SAFETY: The endpoint is open. The bytes are copied before the call returns.
        let posted = unsafe { op!((*ep).msg, kfi_ops_msg, inject(ep, buf, len, PEER)) }?;
        call::count(posted).map(|_| ())
    }

    /// `kfi_inject_write()`: writes a copy of some bytes to the peer's memory. Nothing comes back of it,
    /// unless it fails.
    ///
    /// # Errors
    ///
    /// As for [`inject`](Self::inject).
    pub fn inject_write(&self, bytes: &[u8], to: Remote) -> Result<(), Errno> {
        let (ep, buf, len) = (self.as_raw(), bytes.as_ptr().cast(), bytes.len());
        // SAFETY: The endpoint is open. The bytes are copied before the call returns.
        let posted = unsafe {
            op!(
                (*ep).rma,
                kfi_ops_rma,
                inject(ep, buf, len, PEER, to.addr, to.key)
            )
        }?;
        call::count(posted).map(|_| ())
    }
}
