// SPDX-License-Identifier: GPL-2.0

//! Posts requests with flags. The errors are those of the functions without flags.
//!
//! Context of all functions here: any.

use super::{
    post::{
        Posted,
        RmaAccess,
        INVALIDATE,
        REMOTE_CQ_DATA, //
    },
    *, //
};

/// An endpoint that posts transfers with flags ([`MsgEndpoint::with`]).
pub struct Flagged<'a, S, B: Local, C: Send + 'static = ()> {
    endpoint: &'a MsgEndpoint<S, B, C>,
    flags: u64,
}

impl<S, B: Local, C: Send + 'static> MsgEndpoint<S, B, C> {
    /// Returns the functions that post a request with these flags.
    ///
    /// With `MORE` the provider may delay a request until the next one without `MORE` in the same
    /// direction. If none follows, the request completes when the endpoint is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::prelude::*;
    /// use kfabric::consumer::{Connected, MsgEndpoint, Remote, Request, TransferFlags};
    ///
    /// type Endpoint = MsgEndpoint<Connected, KVec<u8>>;
    ///
    /// /// Writes the data and tells the peer, with one notice to the device.
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
    /// Posts a receive like [`MsgEndpoint::recv`]: `kfi_recvmsg()`.
    ///
    /// # Errors
    ///
    /// - `EBADFLAGS`, also: a flag other than `MORE`.
    pub fn recv(&self, request: Request<B, C>) -> Posted<B, C> {
        self.endpoint.recv_msg(request, self.flags)
    }
}

impl<B: Local, C: Send + 'static> Flagged<'_, Connected, B, C> {
    /// Sends like [`MsgEndpoint::send`]: `kfi_sendmsg()`.
    pub fn send(&self, request: Request<B, C>) -> Posted<B, C> {
        self.endpoint.send_msg(request, 0, self.flags)
    }

    /// Sends like [`MsgEndpoint::send_data`]: `kfi_sendmsg()`.
    pub fn send_data(&self, request: Request<B, C>, data: u64) -> Posted<B, C> {
        let flags = self.flags | REMOTE_CQ_DATA;
        self.endpoint.send_msg(request, data, flags)
    }

    /// Sends like [`MsgEndpoint::send_invalidating`]: `kfi_sendmsg()`.
    pub fn send_invalidating(&self, request: Request<B, C>, key: u64) -> Posted<B, C> {
        self.endpoint
            .send_msg(request, key, self.flags | INVALIDATE)
    }

    /// Reads like [`MsgEndpoint::read`]: `kfi_readmsg()`.
    pub fn read(&self, request: Request<B, C>, from: Remote) -> Posted<B, C> {
        self.access(request, from, RmaAccess::READ)
    }

    /// Writes like [`MsgEndpoint::write`]: `kfi_writemsg()`.
    pub fn write(&self, request: Request<B, C>, to: Remote) -> Posted<B, C> {
        self.access(request, to, RmaAccess::WRITE)
    }

    /// Writes like [`MsgEndpoint::write_data`]: `kfi_writemsg()`.
    pub fn write_data(&self, request: Request<B, C>, to: Remote, data: u64) -> Posted<B, C> {
        self.access(request, to, RmaAccess::WRITE.telling(data))
    }

    /// Reads like [`MsgEndpoint::read_pieces`]: `kfi_readmsg()`.
    pub fn read_pieces(&self, request: Request<B, C>, from: &[RemotePiece]) -> Posted<B, C> {
        self.pieces(request, from, RmaAccess::READ)
    }

    /// Writes like [`MsgEndpoint::write_pieces`]: `kfi_writemsg()`.
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
