// SPDX-License-Identifier: GPL-2.0

//! Posting requests to connected endpoints.
//!
//! All of it may be done in any context.

use super::{
    call::{
        self,
        op, //
    },
    request::Posting,
    Connected,
    Local,
    MsgEndpoint,
    Receives,
    Refused,
    Request,
    SharedReceives, //
};
use crate::support::{
    errno::Errno,
    num::widen_u32, //
};
use kernel::ffi::c_void;
use kfi_bindings::{
    kfi_addr_t,
    kfi_iov_type_KFI_KVEC as KVEC,
    kfi_msg,
    kfi_msg__bindgen_ty_1 as RawList,
    kfi_ops_msg,
    kfi_ops_rma,
    kfid_ep,
    kvec, //
};

/// The request comes back.
pub(super) const COMPLETION: u64 = widen_u32(kfi_bindings::KFI_COMPLETION);

/// The peer gets the data.
pub(super) const REMOTE_CQ_DATA: u64 = widen_u32(kfi_bindings::KFI_REMOTE_CQ_DATA);

/// The data of a message are a key of the peer's.
pub(super) const INVALIDATE: u64 = kfi_bindings::KFI_INVALIDATE;

/// Connected endpoints know no other peer, and don't look at it.
pub(super) const PEER: kfi_addr_t = 0;

/// Where to read or write in the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The address: the [base](super::Mr::base) of the peer's region, and an offset.
    pub addr: u64,
    /// The region's [key](super::Mr::key).
    pub key: u64,
}

/// A request that was refused comes back.
pub(super) type Posted<B, C> = Result<(), Refused<Request<B, C>>>;

/// A message of one segment.
fn to_c(kvec: &kvec, desc: &mut *mut c_void, context: *mut c_void, data: u64) -> kfi_msg {
    kfi_msg {
        type_: KVEC,
        __bindgen_anon_1: RawList { msg_iov: kvec },
        desc,
        iov_count: 1,
        addr: PEER,
        context,
        data,
    }
}

/// Calls an operation of an endpoint's table with a request's memory and these.
///
/// SAFETY, of all: the endpoint is open. The memory is as `Local` promises, and nobody else has it until
/// the transfer has ended. The context is opaque.
macro_rules! post {
    ($endpoint:expr, $request:expr, $table:ident: $ops:ty, $op:ident($($arg:expr),*)) => {
        $endpoint.post($request, |ep, at, context| {
            // SAFETY: As said above.
            unsafe {
                op!((*ep).$table, $ops, $op(ep, at.buf, at.len, at.desc, $($arg,)* context))
            }
        })
    };
}

/// Gives a request away by `call`, which posts it.
fn give<B: Local, C: Send + 'static>(
    request: Request<B, C>,
    call: impl FnOnce(&Posting, *mut c_void) -> Result<isize, Errno>,
) -> Posted<B, C> {
    let posting = match request.posting() {
        Ok(posting) => posting,
        Err(errno) => return Err(Refused::new(errno, request)),
    };
    let context = request.into_context();
    let posted = call(&posting, context).and_then(call::count);
    match posted {
        Ok(_) => Ok(()),
        // SAFETY: It was refused, so nobody else has it.
        Err(errno) => match unsafe { Request::from_context(context.addr()) } {
            Some(request) => Err(Refused::new(errno, request)),
            None => Ok(()),
        },
    }
}

impl<S, B: Local, C: Send + 'static> MsgEndpoint<S, B, C> {
    /// Gives a request away by `call`, which posts it on the endpoint.
    pub(super) fn post(
        &self,
        request: Request<B, C>,
        call: impl FnOnce(*mut kfid_ep, &Posting, *mut c_void) -> Result<isize, Errno>,
    ) -> Posted<B, C> {
        let ep = self.as_raw();
        give(request, |posting, context| call(ep, posting, context))
    }
}

impl<B: Local, C: Send + 'static> SharedReceives<B, C> {
    /// Gives a request away by `call`, which posts it on the context.
    fn post(
        &self,
        request: Request<B, C>,
        call: impl FnOnce(*mut kfid_ep, &Posting, *mut c_void) -> Result<isize, Errno>,
    ) -> Posted<B, C> {
        let ep = self.as_raw();
        give(request, |posting, context| call(ep, posting, context))
    }

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
        post!(self, request, msg: kfi_ops_msg, recv(PEER))
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
        post!(self, request, msg: kfi_ops_msg, recv(PEER))
    }

    /// `kfi_recvmsg()` with these flags.
    pub(super) fn recv_msg(&self, request: Request<B, C>, flags: u64) -> Posted<B, C> {
        self.post(request, |ep, at, context| {
            let (kvec, mut desc) = (at.kvec(), at.desc);
            let msg = to_c(&kvec, &mut desc, context, 0);
            let flags = flags | COMPLETION;
            // SAFETY: The endpoint is open. The memory is as `Local` promises, and nobody else has it until the
            // transfer has ended; the message is valid for the call.
            unsafe { op!((*ep).msg, kfi_ops_msg, recvmsg(ep, &msg, flags)) }
        })
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
        post!(self, request, msg: kfi_ops_msg, send(PEER))
    }

    /// `kfi_senddata()`: as [`send`](Self::send), and the peer gets a number of 4 bytes along with it.
    ///
    /// # Errors
    ///
    /// As for `send`, and:
    ///
    /// - `EINVAL`: more than 4 bytes.
    pub fn send_data(&self, request: Request<B, C>, data: u64) -> Posted<B, C> {
        post!(self, request, msg: kfi_ops_msg, senddata(data, PEER))
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
        self.post(request, |ep, at, context| {
            let (kvec, mut desc) = (at.kvec(), at.desc);
            let msg = to_c(&kvec, &mut desc, context, data);
            let flags = flags | COMPLETION;
            // SAFETY: The endpoint is open. The memory is as `Local` promises, and nobody else has it until the
            // transfer has ended; the message is valid for the call.
            unsafe { op!((*ep).msg, kfi_ops_msg, sendmsg(ep, &msg, flags)) }
        })
    }

    /// `kfi_read()`: reads from the peer's memory into the request's, as many bytes as that has.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send). Whether the peer lets it in is seen later.
    pub fn read(&self, request: Request<B, C>, from: Remote) -> Posted<B, C> {
        post!(self, request, rma: kfi_ops_rma, read(PEER, from.addr, from.key))
    }

    /// `kfi_write()`: writes the request's memory to the peer's.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn write(&self, request: Request<B, C>, to: Remote) -> Posted<B, C> {
        post!(self, request, rma: kfi_ops_rma, write(PEER, to.addr, to.key))
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
        post!(self, request, rma: kfi_ops_rma, writedata(data, PEER, to.addr, to.key))
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
