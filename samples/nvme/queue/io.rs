// SPDX-License-Identifier: GPL-2.0

//! The purpose of a command: made of a request before it is sent, and ended when it is over.

use super::IoQueue;
use crate::{
    command::{
        range,
        Blocks,
        Command,
        RANGE, //
    },
    identify::Namespace,
    keys::{
        KeyedBuffer,
        KeyedIo, //
    },
    transport::Capsule, //
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
use kfabric::{
    consumer::{
        Access,
        Errno, //
    },
    num::index, //
};

/// The purpose of a command, with the memory that the target has a key to.
pub(super) enum Io {
    /// Data of the request.
    Data(KeyedIo),
    /// A list of what to discard.
    Range(KeyedBuffer<KVec<u8>>, block::Request),
    /// No data.
    Bare(block::Request),
}

impl Io {
    /// Returns the request, if it can end at once since the target has no key, or none any more;
    /// and the list of its memory. Any context.
    pub(super) fn at_once(self) -> Result<(block::Request, Option<Pieces>), Self> {
        match self {
            Self::Bare(request) => Ok((request, None)),
            Self::Data(keyed) => match keyed.close_now() {
                Ok((request, list)) => Ok((request, Some(list))),
                Err(keyed) => Err(Self::Data(keyed)),
            },
            keyed => Err(keyed),
        }
    }
}

/// A command that is prepared for a request.
pub(super) struct Prepared {
    pub(super) io: Io,
    pub(super) command: Command,
    /// How many bytes of data are behind the command.
    pub(super) data: usize,
    /// The list of pieces, if it wasn't needed.
    pub(super) list: Option<Pieces>,
}

/// With the request, if it should be tried again.
pub(super) type NotPrepared = (Option<RequestRefusal>, Option<Pieces>);

/// A request that the queue doesn't take now, and why.
pub(crate) struct RequestRefusal(pub(crate) block::Request, pub(crate) Errno);

impl IoQueue {
    /// Makes a command of a request, and keys for its data, unless they are in the capsule.
    ///
    /// # Errors
    ///
    /// With the list, and the request if it should be tried again.
    pub(super) fn prepare(
        &self,
        namespace: u32,
        format: &Namespace,
        request: block::Request,
        list: Option<Pieces>,
        capsule: &mut Capsule,
    ) -> Result<Prepared, NotPrepared> {
        let sectors_shift = format.block_shift - 9;
        let blocks = Blocks {
            namespace,
            first: request.sector() >> sectors_shift,
            count: request.bytes() >> format.block_shift,
        };
        let command = match request.op() {
            Op::Read => Command::read(blocks),
            Op::Write => Command::write(blocks, request.is_fua()),
            Op::Flush => return Ok(bare(request, Command::flush(namespace), 0, list)),
            Op::WriteZeroes => {
                let command = Command::write_zeroes(blocks, request.may_unmap());
                return Ok(bare(request, command, 0, list));
            }
            Op::Discard => return self.discard(blocks, request, list, capsule),
            Op::Other => {
                request.end(Status::NotSupported);
                return Err((None, list));
            }
        };
        if request.op() == Op::Write && capsule.has_room() {
            let (bytes, len) = (request.bytes(), index(request.bytes()));
            return match capsule.data(len).map(|to| request.copy_out(to)) {
                Some(Ok(())) => Ok(bare(request, command.with_data(bytes), len, list)),
                _ => Err((refuse(request, Errno::EINVAL), list)),
            };
        }
        match KeyedIo::new(
            &self.transport,
            self.memory.call,
            request,
            list.unwrap_or_default(),
        ) {
            Ok((keyed, key)) => Ok(Prepared {
                io: Io::Data(keyed),
                command: command.with_key(Some(key)),
                data: 0,
                list: None,
            }),
            Err(Some(not)) => Err((refuse(not.request, not.errno), Some(not.list))),
            Err(None) => Err((None, None)),
        }
    }

    fn discard(
        &self,
        blocks: Blocks,
        request: block::Request,
        list: Option<Pieces>,
        capsule: &mut Capsule,
    ) -> Result<Prepared, NotPrepared> {
        let (range, discard) = (range(blocks), Command::discard(blocks.namespace));
        if let Some(to) = capsule.data(range.len()) {
            to.copy_from_slice(&range);
            return Ok(bare(request, discard.with_data(RANGE), range.len(), list));
        }
        let mut data = KVec::new();
        let keyed = data
            .extend_from_slice(&range, GFP_KERNEL)
            .map_err(|_| Errno::ENOMEM)
            .and_then(|()| {
                KeyedBuffer::new(&self.transport, self.memory.call, data, Access::REMOTE_READ)
            });
        match keyed {
            Ok((keyed, key)) => Ok(Prepared {
                io: Io::Range(keyed, request),
                command: discard.with_key(Some(key)),
                data: 0,
                list,
            }),
            Err(errno) => Err((refuse(request, errno), list)),
        }
    }

    /// Ends the keys of a command, which gives back its request. May sleep.
    pub(super) fn close(&self, number: u16, io: Io) -> Option<block::Request> {
        match io {
            Io::Data(keyed) => {
                let (request, list) = keyed.close()?;
                self.places.with(|places| places.list(number, Some(list)));
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

/// Prepares a command for a request that the target gets no key for.
fn bare(request: block::Request, command: Command, data: usize, list: Option<Pieces>) -> Prepared {
    Prepared {
        io: Io::Bare(request),
        command,
        data,
        list,
    }
}

/// Ends a request that could not be registered, unless the next attempt may succeed.
fn refuse(request: block::Request, errno: Errno) -> Option<RequestRefusal> {
    match errno {
        Errno::ENOMEM | Errno::ENOSPC | Errno::EAGAIN => {
            Some(RequestRefusal(request, Errno::EAGAIN))
        }
        Errno::ENODEV | Errno::ENOTCONN => Some(RequestRefusal(request, errno)),
        _ => {
            pr_err_once!("memory that can't be registered: {errno}\n");
            request.end(Status::Io);
            None
        }
    }
}
