// SPDX-License-Identifier: GPL-2.0

//! What a command is for: made of a request before it is sent, and ended when it is over.

use super::IoQueue;
use crate::{
    command::{
        range,
        Blocks,
        Command, //
    },
    identify::Namespace,
    keys::{
        KeyedBuffer,
        KeyedIo, //
    }, //
};
use block::{
    Op,
    Pieces,
    Status, //
};
use kernel::{
    pr_err_once,
    prelude::*, //
};
use kfabric::consumer::{
    Access,
    Errno, //
};

/// What a command is for, with what the target has a key to.
pub(super) enum Io {
    /// Data of the request.
    Data(KeyedIo),
    /// A list of what to discard.
    Range(KeyedBuffer<KVec<u8>>, block::Request),
    /// No data.
    Bare(block::Request),
}

/// A request that the queue doesn't take now, and why.
pub(crate) struct NotTaken(pub(crate) block::Request, pub(crate) Errno);

impl IoQueue {
    /// Makes a command of a request, and keys for its data.
    ///
    /// # Errors
    ///
    /// With the list, and the request if it should be tried again.
    #[allow(clippy::type_complexity)]
    pub(super) fn prepare(
        &self,
        namespace: u32,
        format: &Namespace,
        request: block::Request,
        list: Option<Pieces>,
    ) -> Result<(Io, Command, Option<Pieces>), (Option<NotTaken>, Option<Pieces>)> {
        let sectors_shift = format.block_shift - 9;
        let blocks = Blocks {
            namespace,
            first: request.sector() >> sectors_shift,
            count: request.bytes() >> format.block_shift,
        };
        let command = match request.op() {
            Op::Read => Command::read(blocks),
            Op::Write => Command::write(blocks, request.is_fua()),
            Op::Flush => {
                return Ok((Io::Bare(request), Command::flush(namespace), list));
            }
            Op::WriteZeroes => {
                let command = Command::write_zeroes(blocks, request.may_unmap());
                return Ok((Io::Bare(request), command, list));
            }
            Op::Discard => return self.discard(blocks, request, list),
            Op::Other => {
                request.end(Status::NotSupported);
                return Err((None, list));
            }
        };
        match KeyedIo::new(
            &self.transport,
            self.call,
            request,
            list.unwrap_or_default(),
        ) {
            Ok((keyed, key)) => Ok((Io::Data(keyed), command.with_key(Some(key)), None)),
            Err(Some(not)) => Err((refuse(not.request, not.errno), Some(not.list))),
            Err(None) => Err((None, None)),
        }
    }

    #[allow(clippy::type_complexity)]
    fn discard(
        &self,
        blocks: Blocks,
        request: block::Request,
        list: Option<Pieces>,
    ) -> Result<(Io, Command, Option<Pieces>), (Option<NotTaken>, Option<Pieces>)> {
        let mut data = KVec::new();
        let keyed = data
            .extend_from_slice(&range(blocks), GFP_KERNEL)
            .map_err(|_| Errno::ENOMEM)
            .and_then(|()| KeyedBuffer::new(&self.transport, data, Access::REMOTE_READ));
        match keyed {
            Ok((keyed, key)) => {
                let command = Command::discard(blocks.namespace).with_key(Some(key));
                Ok((Io::Range(keyed, request), command, list))
            }
            Err(errno) => Err((refuse(request, errno), list)),
        }
    }

    /// Ends the keys of a command, which gives back its request. May sleep.
    pub(super) fn close(&self, number: u16, io: Io) -> Option<block::Request> {
        match io {
            Io::Data(keyed) => {
                let (request, list) = keyed.close()?;
                self.with_place(number, |place| place.list = Some(list));
                Some(request)
            }
            Io::Range(keyed, request) => {
                drop(keyed);
                Some(request)
            }
            Io::Bare(request) => Some(request),
        }
    }
}

/// A request that could not be registered: what may work the next time is tried again.
fn refuse(request: block::Request, errno: Errno) -> Option<NotTaken> {
    match errno {
        Errno::ENOMEM | Errno::ENOSPC | Errno::EAGAIN => Some(NotTaken(request, Errno::EAGAIN)),
        Errno::ENODEV | Errno::ENOTCONN => Some(NotTaken(request, errno)),
        _ => {
            pr_err_once!("memory that can't be registered: {errno}\n");
            request.end(Status::Io);
            None
        }
    }
}
