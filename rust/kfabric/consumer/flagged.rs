// SPDX-License-Identifier: GPL-2.0

//! Posts requests with flags.
//!
//! Context of all functions here: any.

use super::{
    post::{
        Posted,
        RmaAccess,
        INVALIDATE,
        REMOTE_CQ_DATA, //
    },
    Connected,
    Local,
    MsgEndpoint,
    Receives,
    Remote,
    RemotePiece,
    Request,
    TransferFlags, //
};

/// An endpoint, whose transfers are posted with flags. Made by [`MsgEndpoint::with`].
pub struct Flagged<'a, S, B: Local, C: Send + 'static = ()> {
    endpoint: &'a MsgEndpoint<S, B, C>,
    flags: u64,
}

impl<S, B: Local, C: Send + 'static> MsgEndpoint<S, B, C> {
    /// The calls that post a request, with these flags.
    ///
    /// With `MORE` the device may be told of a request only with the next that is posted in the same
    /// direction without it; if none comes, it ends with the endpoint.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::prelude::*;
    /// use kfabric::consumer::{Connected, MsgEndpoint, Remote, Request, TransferFlags};
    ///
    /// type Endpoint = MsgEndpoint<Connected, KVec<u8>>;
    ///
    /// /// Writes the data, and tells the peer; the device is told of both at once.
    /// fn deliver(to: &Endpoint, data: Request<KVec<u8>>, at: Remote, note: Request<KVec<u8>>) -> Result {
    ///     to.with(TransferFlags::MORE).write(data, at)?;
    ///     Ok(to.send(note)?)
    /// }
    /// ```
    pub fn with(&self, flags: TransferFlags) -> Flagged<'_, S, B, C> {
        Flagged {
            endpoint: self,
            flags: flags.bits(),
        }
    }
}

impl<S: Receives, B: Local, C: Send + 'static> Flagged<'_, S, B, C> {
    /// `kfi_recvmsg()`: as [`MsgEndpoint::recv`].
    ///
    /// # Errors
    ///
    /// As that, and:
    ///
    /// - `EBADFLAGS`: a flag but `MORE`.
    pub fn recv(&self, request: Request<B, C>) -> Posted<B, C> {
        self.endpoint.recv_msg(request, self.flags)
    }
}

impl<B: Local, C: Send + 'static> Flagged<'_, Connected, B, C> {
    /// `kfi_sendmsg()`: as [`MsgEndpoint::send`].
    ///
    /// # Errors
    ///
    /// As that.
    pub fn send(&self, request: Request<B, C>) -> Posted<B, C> {
        self.endpoint.send_msg(request, 0, self.flags)
    }

    /// `kfi_sendmsg()`: as [`MsgEndpoint::send_data`].
    ///
    /// # Errors
    ///
    /// As that.
    pub fn send_data(&self, request: Request<B, C>, data: u64) -> Posted<B, C> {
        let flags = self.flags | REMOTE_CQ_DATA;
        self.endpoint.send_msg(request, data, flags)
    }

    /// `kfi_sendmsg()`: as [`MsgEndpoint::send_invalidating`].
    ///
    /// # Errors
    ///
    /// As that.
    pub fn send_invalidating(&self, request: Request<B, C>, key: u64) -> Posted<B, C> {
        self.endpoint
            .send_msg(request, key, self.flags | INVALIDATE)
    }

    /// `kfi_readmsg()`: as [`MsgEndpoint::read`].
    ///
    /// # Errors
    ///
    /// As that.
    pub fn read(&self, request: Request<B, C>, from: Remote) -> Posted<B, C> {
        self.access(request, from, RmaAccess::READ)
    }

    /// `kfi_writemsg()`: as [`MsgEndpoint::write`].
    ///
    /// # Errors
    ///
    /// As that.
    pub fn write(&self, request: Request<B, C>, to: Remote) -> Posted<B, C> {
        self.access(request, to, RmaAccess::WRITE)
    }

    /// `kfi_writemsg()`: as [`MsgEndpoint::write_data`].
    ///
    /// # Errors
    ///
    /// As that.
    pub fn write_data(&self, request: Request<B, C>, to: Remote, data: u64) -> Posted<B, C> {
        self.access(request, to, RmaAccess::WRITE.telling(data))
    }

    /// `kfi_readmsg()`: as [`MsgEndpoint::read_pieces`].
    ///
    /// # Errors
    ///
    /// As that.
    pub fn read_pieces(&self, request: Request<B, C>, from: &[RemotePiece]) -> Posted<B, C> {
        self.pieces(request, from, RmaAccess::READ)
    }

    /// `kfi_writemsg()`: as [`MsgEndpoint::write_pieces`].
    ///
    /// # Errors
    ///
    /// As that.
    pub fn write_pieces(&self, request: Request<B, C>, to: &[RemotePiece]) -> Posted<B, C> {
        self.pieces(request, to, RmaAccess::WRITE)
    }

    fn access(&self, request: Request<B, C>, at: Remote, access: RmaAccess) -> Posted<B, C> {
        self.endpoint.access(request, at, access.with(self.flags))
    }

    fn pieces(
        &self,
        request: Request<B, C>,
        pieces: &[RemotePiece],
        access: RmaAccess,
    ) -> Posted<B, C> {
        let access = access.with(self.flags);
        self.endpoint.access_pieces(request, pieces, access)
    }
}
