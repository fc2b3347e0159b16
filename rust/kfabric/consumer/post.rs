// SPDX-License-Identifier: GPL-2.0

//! Posts requests to connected endpoints and shared receive contexts, and cancels them.
//!
//! Context of all functions here: any.

use super::{
    local::Posting,
    *, //
};
use crate::post::MAX_REMOTE;

/// A place in the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The address: the [base](super::Mr::base) of the peer's region plus an offset.
    pub addr: u64,
    /// The region's [key](super::Mr::key).
    pub key: u64,
}

/// Asks for a completion, which returns the request.
pub(super) const COMPLETION: u64 = widen_u32(kfi_bindings::KFI_COMPLETION);

/// Sends data to the peer.
pub(super) const REMOTE_CQ_DATA: u64 = widen_u32(kfi_bindings::KFI_REMOTE_CQ_DATA);

/// Sends a key for the peer to invalidate.
pub(super) const INVALIDATE: u64 = kfi_bindings::KFI_INVALIDATE;

/// The address argument, which connected endpoints ignore.
pub(super) const PEER: c::kfi_addr_t = 0;

/// The result of posting a request, which the error returns.
pub(super) type Posted<B, C> = Result<(), Refused<Request<B, C>>>;

/// The use of a request's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The transfer reads it.
    Source,
    /// The transfer writes it.
    Target,
}

/// Posts a request by `call`.
pub(super) fn post<B: Local, C: Send + 'static>(
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
        Ok(Some(run)) => post_memory(request, Posting::One(run), call),
        Ok(None) => post_list(request, call),
        Err(errno) => Err(Refused::new(errno, request)),
    }
}

/// Posts a request whose memory isn't contiguous. Not inline, because its list takes much stack.
#[inline(never)]
fn post_list<B: Local, C: Send + 'static>(
    request: Request<B, C>,
    call: impl FnOnce(Posting<'_>, *mut c_void) -> Result<isize, Errno>,
) -> Posted<B, C> {
    // Not moved: it is large.
    let mut pieces = Pieces::of_part(request.part());
    match request.add_to(&mut pieces) {
        Ok(()) => post_memory(request, Posting::List(&pieces), call),
        Err(errno) => Err(Refused::new(errno, request)),
    }
}

/// Posts a request with its memory.
fn post_memory<B: Local, C: Send + 'static>(
    request: Request<B, C>,
    posting: Posting<'_>,
    call: impl FnOnce(Posting<'_>, *mut c_void) -> Result<isize, Errno>,
) -> Posted<B, C> {
    let context = request.into_context();
    let posted = call(posting, context).and_then(handle::count);
    match posted {
        Ok(_) => Ok(()),
        // SAFETY: `context` came from `into_context` here. The call failed, so nobody else has it.
        Err(errno) => match unsafe { Request::from_context(context.addr()) } {
            Some(request) => Err(Refused::new(errno, request)),
            None => Ok(()),
        },
    }
}

/// An access to the peer's memory.
#[derive(Clone, Copy)]
pub(super) struct RmaAccess {
    /// The use of the local memory. A read of the peer's memory writes to it.
    role: Role,
    flags: u64,
    data: u64,
}

impl RmaAccess {
    pub(super) const READ: Self = Self::new(Role::Target);
    pub(super) const WRITE: Self = Self::new(Role::Source);

    const fn new(role: Role) -> Self {
        Self {
            role,
            flags: 0,
            data: 0,
        }
    }

    /// Returns the access with more flags.
    pub(super) const fn with(self, flags: u64) -> Self {
        Self {
            flags: self.flags | flags,
            ..self
        }
    }

    /// Returns the access with data for the peer.
    pub(super) const fn telling(self, data: u64) -> Self {
        Self {
            flags: self.flags | REMOTE_CQ_DATA,
            data,
            ..self
        }
    }
}

/// Converts the pieces for C.
fn to_c(pieces: &[RemotePiece]) -> Result<[c::kfi_rma_iov; MAX_REMOTE], Errno> {
    let mut list = [const {
        c::kfi_rma_iov {
            addr: 0,
            len: 0,
            key: 0,
        }
    }; MAX_REMOTE];
    if pieces.len() > list.len() {
        return Err(Errno::EINVAL);
    }
    for (to, from) in list.iter_mut().zip(pieces) {
        *to = c::kfi_rma_iov {
            addr: from.base,
            len: usize::try_from(from.len).map_err(|_| Errno::EINVAL)?,
            key: from.key,
        };
    }
    Ok(list)
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Connected, B, C> {
    /// Reads several pieces of the peer's memory into the request's, one after the other:
    /// `kfi_readmsg()`.
    ///
    /// # Errors
    ///
    /// The errors of [`read`](Self::read), and:
    ///
    /// - `EINVAL`: the number of pieces is 0, or more than 16 or the offer's `rma_iov_limit`.
    /// - `EINVAL`: the pieces don't have as many bytes as the request.
    /// - `E2BIG`: the pieces need more transfers than the endpoint can have.
    pub fn read_pieces(&self, request: Request<B, C>, from: &[RemotePiece]) -> Posted<B, C> {
        self.access_pieces(request, from, RmaAccess::READ)
    }

    /// Writes the request's memory to several pieces of the peer's, one after the other:
    /// `kfi_writemsg()`.
    ///
    /// # Errors
    ///
    /// The errors of [`read_pieces`](Self::read_pieces).
    pub fn write_pieces(&self, request: Request<B, C>, to: &[RemotePiece]) -> Posted<B, C> {
        self.access_pieces(request, to, RmaAccess::WRITE)
    }

    /// Accesses pieces of the peer's memory: `kfi_readmsg()`, `kfi_writemsg()`.
    pub(super) fn access_pieces(
        &self,
        request: Request<B, C>,
        pieces: &[RemotePiece],
        access: RmaAccess,
    ) -> Posted<B, C> {
        let ep = self.as_raw();
        post(request, access.role, |at, context| {
            let list = to_c(pieces)?;
            at.with_raw(|(kind, first, desc, iov_count)| {
                let msg = c::kfi_msg_rma {
                    type_: kind,
                    __bindgen_anon_1: c::kfi_msg_rma__bindgen_ty_1 { msg_iov: first },
                    desc,
                    iov_count,
                    addr: PEER,
                    rma_iov: list.as_ptr(),
                    rma_iov_count: pieces.len(),
                    context,
                    data: access.data,
                };
                let flags = access.flags | COMPLETION;
                // SAFETY: The endpoint is open. `Local` promises that the memory stays until the
                // transfer has completed, and the request owns it. `msg` and its lists are valid
                // for the call.
                unsafe {
                    match access.role {
                        Role::Target => op!((*ep).rma, readmsg(ep, &msg, flags)),
                        Role::Source => op!((*ep).rma, writemsg(ep, &msg, flags)),
                    }
                }
            })
        })
    }

    /// Accesses as many bytes of the peer's memory as the request has.
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

/// Calls an operation with a request's contiguous memory.
macro_rules! post {
    ($endpoint:expr, $request:expr, $role:ident, $table:ident, $op:ident($($arg:expr),*)) => {
        post($request, Role::$role, |at, context| {
            let (ep, at) = ($endpoint.as_raw(), at.one()?);
            let buf = at.start.as_ptr().cast();
            // SAFETY: The endpoint is open. `Local` promises that the memory stays until the
            // transfer has completed, and the request owns it. The context is opaque.
            unsafe {
                op!((*ep).$table, $op(ep, buf, at.len, at.desc, $($arg,)* context))
            }
        })
    };
}

/// Calls an operation that takes a message, with a request's memory, data and flags.
macro_rules! post_msg {
    ($endpoint:expr, $request:expr, $role:ident, $op:ident($data:expr, $flags:expr)) => {
        post($request, Role::$role, |at, context| {
            let ep = $endpoint.as_raw();
            at.with_raw(|(kind, first, desc, iov_count)| {
                let msg = c::kfi_msg {
                    type_: kind,
                    __bindgen_anon_1: c::kfi_msg__bindgen_ty_1 { msg_iov: first },
                    desc,
                    iov_count,
                    addr: PEER,
                    context,
                    data: $data,
                };
                let flags = $flags | COMPLETION;
                // SAFETY: The endpoint is open. `Local` promises that the memory stays until the
                // transfer has completed, and the request owns it. `msg` and its lists are valid
                // for the call.
                unsafe { op!((*ep).msg, $op(ep, &msg, flags)) }
            })
        })
    };
}

impl<B: Local, C: Send + 'static> SharedReceives<B, C> {
    /// Posts a receive for a message to any endpoint that shares the context: `kfi_recv()`.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: the context or its queue is full.
    /// - `ENODEV`: the device is removed.
    /// - Others: the errors of `kfi_recv()`.
    pub fn recv(&self, request: Request<B, C>) -> Posted<B, C> {
        match request.is_one_run() {
            true => post!(self, request, Target, msg, recv(PEER)),
            false => post_msg!(self, request, Target, recvmsg(0, 0)),
        }
    }
}

impl<S: Receives, B: Local, C: Send + 'static> MsgEndpoint<S, B, C> {
    /// Posts a receive for a message: `kfi_recv()`.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: the endpoint or its queue is full.
    /// - `ENOTCONN`: the connection has ended.
    /// - `EOPNOTSUPP`: the endpoint has [shared](SharedReceives) receives.
    /// - Others: the errors of `kfi_recv()`.
    pub fn recv(&self, request: Request<B, C>) -> Posted<B, C> {
        match request.is_one_run() {
            true => post!(self, request, Target, msg, recv(PEER)),
            false => self.recv_msg(request, 0),
        }
    }

    /// Posts a receive with flags: `kfi_recvmsg()`.
    pub(super) fn recv_msg(&self, request: Request<B, C>, flags: u64) -> Posted<B, C> {
        post_msg!(self, request, Target, recvmsg(0, flags))
    }
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Connected, B, C> {
    /// Sends the request's memory as a message: `kfi_send()`.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: the endpoint or its queue is full.
    /// - `ENOTCONN`: the connection has ended.
    /// - Others: the errors of `kfi_send()`.
    pub fn send(&self, request: Request<B, C>) -> Posted<B, C> {
        match request.is_one_run() {
            true => post!(self, request, Source, msg, send(PEER)),
            false => self.send_msg(request, 0, 0),
        }
    }

    /// Sends a message like [`send`](Self::send), with a number of 4 bytes for the peer:
    /// `kfi_senddata()`.
    ///
    /// # Errors
    ///
    /// The errors of `send`, and:
    ///
    /// - `EINVAL`: `data` has more than 4 bytes.
    pub fn send_data(&self, request: Request<B, C>, data: u64) -> Posted<B, C> {
        match request.is_one_run() {
            true => post!(self, request, Source, msg, senddata(data, PEER)),
            false => self.send_msg(request, data, REMOTE_CQ_DATA),
        }
    }

    /// Sends a message like [`send`](Self::send), and makes the peer's device invalidate a key of
    /// its own: `kfi_sendmsg()` with `KFI_INVALIDATE`.
    ///
    /// # Errors
    ///
    /// The errors of `send`, and:
    ///
    /// - `ENOKEY`: no device can have this key.
    pub fn send_invalidating(&self, request: Request<B, C>, key: u64) -> Posted<B, C> {
        self.send_msg(request, key, INVALIDATE)
    }

    /// Sends a message with data and flags: `kfi_sendmsg()`.
    pub(super) fn send_msg(&self, request: Request<B, C>, data: u64, flags: u64) -> Posted<B, C> {
        post_msg!(self, request, Source, sendmsg(data, flags))
    }

    /// Reads the peer's memory into the request's, as many bytes as that has: `kfi_read()`.
    ///
    /// # Errors
    ///
    /// The errors of [`send`](Self::send). If the peer refuses the access, the transfer fails
    /// later.
    pub fn read(&self, request: Request<B, C>, from: Remote) -> Posted<B, C> {
        match request.is_one_run() {
            true => post!(self, request, Target, rma, read(PEER, from.addr, from.key)),
            false => self.access(request, from, RmaAccess::READ),
        }
    }

    /// Writes the request's memory to the peer's: `kfi_write()`.
    ///
    /// # Errors
    ///
    /// The errors of [`read`](Self::read).
    pub fn write(&self, request: Request<B, C>, to: Remote) -> Posted<B, C> {
        match request.is_one_run() {
            true => post!(self, request, Source, rma, write(PEER, to.addr, to.key)),
            false => self.access(request, to, RmaAccess::WRITE),
        }
    }

    /// Writes like [`write`](Self::write), and completes a receive of the peer with a number of 4
    /// bytes: `kfi_writedata()`.
    ///
    /// # Errors
    ///
    /// The errors of `write`, and:
    ///
    /// - `EINVAL`: `data` has more than 4 bytes.
    pub fn write_data(&self, request: Request<B, C>, to: Remote, data: u64) -> Posted<B, C> {
        match request.is_one_run() {
            true => {
                post!(
                    self,
                    request,
                    Source,
                    rma,
                    writedata(data, PEER, to.addr, to.key)
                )
            }
            false => self.access(request, to, RmaAccess::WRITE.telling(data)),
        }
    }

    /// Sends a copy of bytes as a message: `kfi_inject()`. Has no completion unless it fails.
    ///
    /// # Errors
    ///
    /// - `EMSGSIZE`: the provider doesn't inject that many bytes.
    /// - `EFAULT`: the bytes are neither on the stack nor in memory that can be registered.
    /// - Others: the errors of [`send`](Self::send).
    pub fn inject(&self, bytes: &[u8]) -> Result<(), Errno> {
        let (ep, buf, len) = (self.as_raw(), bytes.as_ptr().cast(), bytes.len());
        // SAFETY: The endpoint is open. The call copies the `len` bytes.
        let posted = unsafe { op!((*ep).msg, inject(ep, buf, len, PEER)) }?;
        handle::count(posted).map(|_| ())
    }

    /// Writes a copy of bytes to the peer's memory: `kfi_inject_write()`. Has no completion unless
    /// it fails.
    ///
    /// # Errors
    ///
    /// The errors of [`inject`](Self::inject).
    pub fn inject_write(&self, bytes: &[u8], to: Remote) -> Result<(), Errno> {
        let (ep, buf, len) = (self.as_raw(), bytes.as_ptr().cast(), bytes.len());
        // SAFETY: The endpoint is open. The call copies the `len` bytes.
        let posted = unsafe { op!((*ep).rma, inject(ep, buf, len, PEER, to.addr, to.key)) }?;
        handle::count(posted).map(|_| ())
    }
}

/// Cancels a request: `kfi_cancel()`. Any context.
///
/// # Safety
///
/// `ep` is an open endpoint, or an open receive context.
unsafe fn cancel(ep: *mut kfid_ep, request: RequestId) -> Result<(), Errno> {
    // SAFETY: `ep` is open by this function's contract. The call doesn't dereference the context.
    let cancelled = unsafe { op!((*ep).ops, cancel(&raw mut (*ep).fid, request.context())) }?;
    handle::count(cancelled).map(|_| ())
}

impl<S: Receives, B: Local, C: Send + 'static> MsgEndpoint<S, B, C> {
    /// Cancels a receive without a message: `kfi_cancel()`. Any context.
    ///
    /// The queue returns the request as failed, with `ECANCELED`. It may call its handler before
    /// this returns.
    ///
    /// # Errors
    ///
    /// - `ENOENT`: the request isn't a posted receive, or has a message.
    /// - `ENOSYS`: the provider can't cancel.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::prelude::*;
    /// use kfabric::consumer::{Connected, Ended, MsgEndpoint, Request, RequestQueue};
    ///
    /// /// Waits a second for a message. Returns the memory in any case.
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
    ///         // A message arrived in the meantime.
    ///         Ok(()) | Err(kfabric::consumer::Errno::ENOENT) => Ok(queue.read()?),
    ///         Err(errno) => Err(errno.into()),
    ///     }
    /// }
    /// ```
    pub fn cancel(&self, request: RequestId) -> Result<(), Errno> {
        // SAFETY: The endpoint is open as long as `self`.
        unsafe { cancel(self.as_raw(), request) }
    }
}

impl<B: Local, C: Send + 'static> SharedReceives<B, C> {
    /// Cancels a receive of this context, like [`MsgEndpoint::cancel`]: `kfi_cancel()`.
    pub fn cancel(&self, request: RequestId) -> Result<(), Errno> {
        // SAFETY: The context is open as long as `self`.
        unsafe { cancel(self.as_raw(), request) }
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_give)]
mod tests {
    use super::*;
    use crate::consumer::Run;

    /// Memory that may only be read, or only be written.
    struct OneWay(KVec<u8>, Role);

    // SAFETY: The value owns its bytes, which the vector keeps until it is dropped.
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

    /// Checks that one role is refused and the other one accepted.
    fn is_only(role: Role, other: Role) -> Result {
        let memory = OneWay(KVec::from_elem(1, 10, GFP_KERNEL)?, role);
        let refused = post(Request::new(memory, ())?, other, |_, _| Ok(0));
        let Err(refused) = refused else {
            return Err(EIO);
        };
        assert_eq!(refused.errno(), Errno::EINVAL);
        let refused = post(refused.into_inner(), role, |posting, _| {
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
