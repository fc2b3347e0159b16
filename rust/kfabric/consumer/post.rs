// SPDX-License-Identifier: GPL-2.0

//! Posts requests to connected endpoints and shared receive contexts, and cancels them.
//!
//! Context of all functions here: any.

use super::{
    call::{
        self,
        op, //
    },
    local::Posting,
    Connected,
    Local,
    MsgEndpoint,
    Receives,
    Refused,
    RemotePiece,
    Request,
    RequestId,
    SharedReceives, //
};
use crate::{
    post::remote::MAX_REMOTE,
    support::{
        errno::Errno,
        num::{
            widen,
            widen_u32, //
        }, //
    }, //
};
use kernel::ffi::c_void;
use kfi_bindings::{
    kfi_addr_t,
    kfi_msg,
    kfi_msg__bindgen_ty_1 as MsgList,
    kfi_msg_rma,
    kfi_msg_rma__bindgen_ty_1 as RmaList,
    kfi_ops_ep,
    kfi_ops_msg,
    kfi_ops_rma,
    kfi_rma_iov,
    kfid_ep, //
};

/// Where to read or write in the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The address: the [base](super::Mr::base) of the peer's region, and an offset.
    pub addr: u64,
    /// The region's [key](super::Mr::key).
    pub key: u64,
}

/// The request comes back.
pub(super) const COMPLETION: u64 = widen_u32(kfi_bindings::KFI_COMPLETION);

/// The peer gets the data.
pub(super) const REMOTE_CQ_DATA: u64 = widen_u32(kfi_bindings::KFI_REMOTE_CQ_DATA);

/// The data of a message are a key of the peer's.
pub(super) const INVALIDATE: u64 = kfi_bindings::KFI_INVALIDATE;

/// Connected endpoints know no other peer, and don't look at it.
pub(super) const PEER: kfi_addr_t = 0;

/// A request that was refused comes back.
pub(super) type Posted<B, C> = Result<(), Refused<Request<B, C>>>;

/// What is done with a request's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It is read.
    Source,
    /// It is written.
    Target,
}

/// Gives a request away by `call`, which posts it.
fn give<B: Local, C: Send + 'static>(
    request: Request<B, C>,
    role: Role,
    call: impl FnOnce(Posting<'_>, *mut c_void) -> Result<isize, Errno>,
) -> Posted<B, C> {
    let allowed = match role {
        Role::Source => request.memory().may_be_read(),
        Role::Target => request.memory().may_be_written(),
    };
    if !allowed {
        return Err(Refused::new(Errno::EINVAL, request));
    }
    match request.run() {
        Ok(Some(run)) => give_as(request, Posting::One(run), call),
        Ok(None) => give_list(request, call),
        Err(errno) => Err(Refused::new(errno, request)),
    }
}

/// The same, of memory in several places. They take room on the stack, which the others needn't have.
#[inline(never)]
fn give_list<B: Local, C: Send + 'static>(
    request: Request<B, C>,
    call: impl FnOnce(Posting<'_>, *mut c_void) -> Result<isize, Errno>,
) -> Posted<B, C> {
    match request.pieces() {
        Ok(pieces) => give_as(request, Posting::List(&pieces), call),
        Err(errno) => Err(Refused::new(errno, request)),
    }
}

/// The same, of memory that is there.
fn give_as<B: Local, C: Send + 'static>(
    request: Request<B, C>,
    posting: Posting<'_>,
    call: impl FnOnce(Posting<'_>, *mut c_void) -> Result<isize, Errno>,
) -> Posted<B, C> {
    let context = request.into_context();
    let posted = call(posting, context).and_then(call::count);
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
        role: Role,
        call: impl FnOnce(*mut kfid_ep, Posting<'_>, *mut c_void) -> Result<isize, Errno>,
    ) -> Posted<B, C> {
        let ep = self.as_raw();
        give(request, role, |posting, context| call(ep, posting, context))
    }
}

impl<B: Local, C: Send + 'static> SharedReceives<B, C> {
    /// Gives a request away by `call`, which posts it on the context.
    pub(super) fn post(
        &self,
        request: Request<B, C>,
        role: Role,
        call: impl FnOnce(*mut kfid_ep, Posting<'_>, *mut c_void) -> Result<isize, Errno>,
    ) -> Posted<B, C> {
        let ep = self.as_raw();
        give(request, role, |posting, context| call(ep, posting, context))
    }
}

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

/// How the peer's memory is reached.
#[derive(Clone, Copy)]
pub(super) struct RmaAccess {
    way: Direction,
    flags: u64,
    data: u64,
}

impl RmaAccess {
    pub(super) const READ: Self = Self::new(Direction::Read);
    pub(super) const WRITE: Self = Self::new(Direction::Write);

    const fn new(way: Direction) -> Self {
        Self {
            way,
            flags: 0,
            data: 0,
        }
    }

    /// What is done with the memory at this side.
    fn role(self) -> Role {
        match self.way {
            Direction::Read => Role::Target,
            Direction::Write => Role::Source,
        }
    }

    /// The same, with these flags.
    pub(super) const fn with(self, flags: u64) -> Self {
        Self {
            flags: self.flags | flags,
            ..self
        }
    }

    /// The same, and the peer is told this.
    pub(super) const fn telling(self, data: u64) -> Self {
        Self {
            flags: self.flags | REMOTE_CQ_DATA,
            data,
            ..self
        }
    }
}

/// The pieces as C has them, the first so many of these.
fn to_c(pieces: &[RemotePiece]) -> Result<[kfi_rma_iov; MAX_REMOTE], Errno> {
    let mut list = [const {
        kfi_rma_iov {
            addr: 0,
            len: 0,
            key: 0,
        }
    }; MAX_REMOTE];
    if pieces.len() > list.len() {
        return Err(Errno::EINVAL);
    }
    for (to, from) in list.iter_mut().zip(pieces) {
        *to = kfi_rma_iov {
            addr: from.base,
            len: usize::try_from(from.len).map_err(|_| Errno::EINVAL)?,
            key: from.key,
        };
    }
    Ok(list)
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Connected, B, C> {
    /// `kfi_readmsg()`: reads several pieces of the peer's memory, one behind the other, into the request's,
    /// which has as many bytes as they all have. It comes back once.
    ///
    /// # Errors
    ///
    /// With the request: as for [`read`](Self::read), and:
    ///
    /// - `EINVAL`: there is no piece, there are more than 16 or the offer's `rma_iov_limit`, or they have not
    ///   as many bytes as the request.
    /// - `E2BIG`: more than the endpoint can have under way.
    pub fn read_pieces(&self, request: Request<B, C>, from: &[RemotePiece]) -> Posted<B, C> {
        self.access_pieces(request, from, RmaAccess::READ)
    }

    /// `kfi_writemsg()`: writes the request's memory to several pieces of the peer's, one behind the other.
    ///
    /// # Errors
    ///
    /// As for [`read_pieces`](Self::read_pieces).
    pub fn write_pieces(&self, request: Request<B, C>, to: &[RemotePiece]) -> Posted<B, C> {
        self.access_pieces(request, to, RmaAccess::WRITE)
    }

    /// `kfi_readmsg()`, `kfi_writemsg()`.
    pub(super) fn access_pieces(
        &self,
        request: Request<B, C>,
        pieces: &[RemotePiece],
        access: RmaAccess,
    ) -> Posted<B, C> {
        self.post(request, access.role(), |ep, at, context| {
            let list = to_c(pieces)?;
            at.with_raw(|(kind, first, desc, iov_count)| {
                let msg = kfi_msg_rma {
                    type_: kind,
                    __bindgen_anon_1: RmaList { msg_iov: first },
                    desc,
                    iov_count,
                    addr: PEER,
                    rma_iov: list.as_ptr(),
                    rma_iov_count: pieces.len(),
                    context,
                    data: access.data,
                };
                let flags = access.flags | COMPLETION;
                // SAFETY: The endpoint is open. The memory is as `Local` promises, and nobody else has it until
                // the transfer has ended; the message and the lists are valid for the call.
                unsafe {
                    match access.way {
                        Direction::Read => op!((*ep).rma, kfi_ops_rma, readmsg(ep, &msg, flags)),
                        Direction::Write => op!((*ep).rma, kfi_ops_rma, writemsg(ep, &msg, flags)),
                    }
                }
            })
        })
    }

    /// The same, as many bytes as the request has.
    pub(super) fn access(
        &self,
        request: Request<B, C>,
        at: Remote,
        access: RmaAccess,
    ) -> Posted<B, C> {
        let piece = RemotePiece {
            key: at.key,
            base: at.addr,
            len: widen(request.bytes()),
        };
        self.access_pieces(request, &[piece], access)
    }
}

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
                    __bindgen_anon_1: MsgList { msg_iov: first },
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
            false => self.access(request, from, RmaAccess::READ),
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
            false => self.access(request, to, RmaAccess::WRITE),
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
            false => self.access(request, to, RmaAccess::WRITE.telling(data)),
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

#[kernel::macros::kunit_tests(kfabric_consumer_give)]
mod tests {
    use super::*;
    use crate::consumer::Run;
    use kernel::prelude::*;

    /// Memory that is there only to be read, or only to be written.
    struct OneWay(KVec<u8>, Role);

    // SAFETY: By the promises of `Buffer`.
    unsafe impl Local for OneWay {
        fn bytes(&self) -> usize {
            self.0.len()
        }

        fn run(&self) -> Option<Run> {
            self.0.run()
        }

        fn may_be_read(&self) -> bool {
            self.1 == Role::Source
        }

        fn may_be_written(&self) -> bool {
            self.1 == Role::Target
        }
    }

    /// Is the one role refused, and the other one taken?
    fn is_only(role: Role, other: Role) -> Result {
        let memory = OneWay(KVec::from_elem(1, 10, GFP_KERNEL)?, role);
        let refused = give(Request::new(memory, ())?, other, |_, _| Ok(0));
        let Err(refused) = refused else {
            return Err(EIO);
        };
        assert_eq!(refused.errno(), Errno::EINVAL);
        let refused = give(refused.into_inner(), role, |posting, _| {
            assert_eq!(posting.one().map(|run| run.len), Ok(10));
            Err(Errno::EAGAIN)
        });
        let Err(refused) = refused else {
            return Err(EIO);
        };
        assert_eq!(refused.errno(), Errno::EAGAIN);
        Ok(())
    }

    #[test]
    fn what_may_not_be_written_is_only_read() -> Result {
        is_only(Role::Source, Role::Target)
    }

    #[test]
    fn what_may_not_be_read_is_only_written() -> Result {
        is_only(Role::Target, Role::Source)
    }
}
