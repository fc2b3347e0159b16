// SPDX-License-Identifier: GPL-2.0

//! Reading and writing several pieces of the peer's memory by one request.
//!
//! All of it may be done in any context.

use super::{
    call::op,
    give::{
        Posted,
        Role,
        COMPLETION,
        PEER,
        REMOTE_CQ_DATA, //
    },
    Connected,
    Local,
    MsgEndpoint,
    Remote,
    RemotePiece,
    Request, //
};
use crate::{
    post::remote::MAX_REMOTE,
    support::{
        errno::Errno,
        num::widen, //
    }, //
};
use kfi_bindings::{
    kfi_msg_rma,
    kfi_msg_rma__bindgen_ty_1 as RawList,
    kfi_ops_rma,
    kfi_rma_iov, //
};

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

/// How the peer's memory is reached.
#[derive(Clone, Copy)]
pub(super) struct Access {
    way: Way,
    flags: u64,
    data: u64,
}

impl Access {
    pub(super) const READ: Self = Self::new(Way::Read);
    pub(super) const WRITE: Self = Self::new(Way::Write);

    const fn new(way: Way) -> Self {
        Self {
            way,
            flags: 0,
            data: 0,
        }
    }

    /// What is done with the memory at this side.
    fn role(self) -> Role {
        match self.way {
            Way::Read => Role::Target,
            Way::Write => Role::Source,
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
        self.access_pieces(request, from, Access::READ)
    }

    /// `kfi_writemsg()`: writes the request's memory to several pieces of the peer's, one behind the other.
    ///
    /// # Errors
    ///
    /// As for [`read_pieces`](Self::read_pieces).
    pub fn write_pieces(&self, request: Request<B, C>, to: &[RemotePiece]) -> Posted<B, C> {
        self.access_pieces(request, to, Access::WRITE)
    }

    /// `kfi_readmsg()`, `kfi_writemsg()`.
    pub(super) fn access_pieces(
        &self,
        request: Request<B, C>,
        pieces: &[RemotePiece],
        access: Access,
    ) -> Posted<B, C> {
        self.post(request, access.role(), |ep, at, context| {
            let list = to_c(pieces)?;
            at.with_raw(|(kind, first, desc, iov_count)| {
                let msg = kfi_msg_rma {
                    type_: kind,
                    __bindgen_anon_1: RawList { msg_iov: first },
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
                        Way::Read => op!((*ep).rma, kfi_ops_rma, readmsg(ep, &msg, flags)),
                        Way::Write => op!((*ep).rma, kfi_ops_rma, writemsg(ep, &msg, flags)),
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
        access: Access,
    ) -> Posted<B, C> {
        let piece = RemotePiece {
            key: at.key,
            base: at.addr,
            len: widen(request.bytes()),
        };
        self.access_pieces(request, &[piece], access)
    }
}
