// SPDX-License-Identifier: GPL-2.0

//! Conversion of transfers to work requests. Any context.

use super::{
    conn::{
        Conn,
        Signal, //
    },
    done::TransferHandler,
    QpResources, //
};
use crate::{
    refused,
    rxe, //
};
use kfabric::{
    prelude::*,
    provider::msg_ep::{
        Post,
        PostRefusal, //
    },
    AtomicOp,
    LocalMemory,
    LocalPiece,
    LocalPieces,
    Op,
    RemotePiece,
    TransferRequest, //
};
use rdma::{
    cm::Endpoint,
    request::{
        CompletionHandler,
        NotPosted,
        Request, //
    },
    wr::{
        Receive,
        Remote,
        WorkRequest, //
    },
    Buffer,
    Gather,
    Pd, //
};

impl QpResources {
    /// Posts a transfer.
    pub(super) fn post(
        &self,
        endpoint: &Arc<Endpoint>,
        post: Post<'_>,
        conn: &Arc<Conn>,
    ) -> Result<(), PostRefusal> {
        let Post {
            transfer, ticket, ..
        } = post;
        let pieces = transfer.remote.pieces();
        if pieces.len() > 1 || self.sinks.is_some() && self.sinks_of(transfer) > 0 {
            return self.split(endpoint, transfer, ticket, conn);
        }
        let handler = TransferHandler {
            ticket,
            conn: conn.clone(),
        };
        let begun = match transfer.op {
            Op::Receive => begin(receive(&self.pd, transfer), handler, |request| {
                endpoint.post_receive(request)
            }),
            _ => begin(self.request(transfer, pieces), handler, |request| {
                conn.give(endpoint, request, transfer.flags.more, Signal::Signaled)
            }),
        };
        begun.map_err(|(why, handler)| PostRefusal::new(why, handler.ticket))
    }

    /// Creates the request for a transfer whose memory of the peer is at most one piece.
    pub(super) fn request(
        &self,
        transfer: &TransferRequest,
        pieces: &[RemotePiece],
    ) -> Result<WorkRequest<Buffer>, Refusal> {
        let to = || remote(pieces);
        let memory = |written| match &transfer.local {
            LocalMemory::Injected(copy) => self.copied(copy.bytes()),
            LocalMemory::Lent(local) => map(&self.pd, local, written),
        };
        let request = match transfer.op {
            Op::Send {
                invalidates: Some(key),
                ..
            } => WorkRequest::send_with_inv(memory(false)?, short(key)?),
            Op::Send {
                data: Some(data), ..
            } => WorkRequest::send_with_imm(memory(false)?, immediate(data)?),
            Op::Send { .. } => WorkRequest::send(memory(false)?),
            Op::Write { data: None } => WorkRequest::write(memory(false)?, to()?),
            Op::Write { data: Some(data) } => {
                WorkRequest::write_with_imm(memory(false)?, to()?, immediate(data)?)
            }
            Op::Read => WorkRequest::read(memory(true)?, to()?).map_err(refused::no_request)?,
            Op::Atomic { what, fetches } => {
                let memory = match what {
                    AtomicOp::Write(word) => self.copied(&word.to_ne_bytes())?,
                    _ if fetches => memory(true)?,
                    _ => Gather::discard(&self.pd, GFP_ATOMIC).map_err(refused::not_mapped)?,
                };
                atomic(memory, to()?, what)?
            }
            Op::Receive => return Err(Errno::EINVAL.into()),
        };
        Ok(match self.fences(transfer) {
            true => request.fenced(),
            false => request,
        })
    }

    /// Returns whether a request waits for the reads and atomic operations that were posted before it.
    pub(super) fn fences(&self, transfer: &TransferRequest) -> bool {
        let writes = matches!(
            transfer.op,
            Op::Atomic {
                what: AtomicOp::Write(_),
                ..
            }
        );
        transfer.flags.fences || writes && rxe::fences_writes(&self.pd.device)
    }

    /// Copies bytes that the consumer gets back when the request has been posted.
    fn copied(&self, bytes: &[u8]) -> Result<Gather<Buffer>, Refusal> {
        let mut copy = KVec::new();
        copy.extend_from_slice(bytes, GFP_ATOMIC)?;
        let copied = self.endpoint()?.copied(copy, GFP_ATOMIC);
        copied.map_err(refused::not_mapped)
    }
}

/// Creates the request for a receive.
pub(super) fn receive(
    pd: &Arc<Pd>,
    transfer: &TransferRequest,
) -> Result<Receive<Buffer>, Refusal> {
    let LocalMemory::Lent(local) = &transfer.local else {
        return Err(Refusal::new(Errno::EINVAL, c"a receive of injected bytes"));
    };
    Receive::new(map(pd, local, true)?).map_err(refused::no_request)
}

/// Maps the local memory of a transfer for the device of `pd`, which writes to it if `written`.
/// Must be dropped before the ticket of the transfer ends. Any context.
pub(super) fn map(pd: &Pd, local: &LocalPieces, written: bool) -> Result<Gather<Buffer>, Refusal> {
    let pieces = local.pieces();
    let memory = Gather::with_capacity(pd, pieces.len(), written, GFP_ATOMIC);
    let mut memory = memory.map_err(refused::not_mapped)?;
    for piece in pieces {
        // SAFETY: By the contracts of kfi_msg(3) and kfi_rma(3) the consumer keeps the memory, and its
        // mapping for the device, until the transfer completes. The ticket ends at that time. The core
        // has checked that the device may write to the memory.
        let added = unsafe {
            match *piece {
                LocalPiece::Region { desc, address, len } => {
                    // A descriptor is a region's local key, which no other length would be found by.
                    memory.push(u32::try_from(desc).unwrap_or(0), address, len)
                }
                LocalPiece::Memory { phys, len } => memory.map(pd, phys, len),
                LocalPiece::Mapped { address, len } => memory.push(pd.local_key(), address, len),
            }
        };
        added.map_err(refused::not_mapped)?;
    }
    Ok(memory)
}

/// Creates the request for an atomic operation. `memory` gets the previous value, or has the value
/// to write.
fn atomic(
    memory: Gather<Buffer>,
    at: Remote,
    what: AtomicOp,
) -> Result<WorkRequest<Buffer>, Refusal> {
    let request = match what {
        AtomicOp::Add(by) => WorkRequest::fetch_and_add(memory, at, by),
        AtomicOp::CompareSwap { expected, new } => {
            WorkRequest::compare_and_swap(memory, at, expected, new)
        }
        AtomicOp::Write(_) => return Ok(WorkRequest::write(memory, at)),
    };
    request.map_err(refused::no_request)
}

/// Converts the data for the peer's completion queue.
fn immediate(data: u64) -> Result<u32, Refusal> {
    let why = c"more data than cq_data_size";
    u32::try_from(data).map_err(|_| Refusal::new(Errno::EINVAL, why).value(data))
}

/// Returns the peer's memory, which is one piece.
pub(super) fn remote(pieces: &[RemotePiece]) -> Result<Remote, Refusal> {
    let piece = pieces.first().ok_or(Errno::EINVAL)?;
    Ok(Remote {
        address: piece.base,
        key: short(piece.key)?,
    })
}

/// Converts a key to the size of devices.
fn short(key: u64) -> Result<u32, Refusal> {
    let why = c"no device has keys of that length";
    u32::try_from(key).map_err(|_| Refusal::new(Errno::ENOKEY, why).value(key))
}

/// Creates a request and hands it to `give`. On an error, returns the error and the completion
/// handler.
pub(super) fn begin<W: Send + 'static, F: CompletionHandler<W>>(
    request: Result<W, Refusal>,
    then: F,
    give: impl FnOnce(KBox<Request<W, F>>) -> Result<(), NotPosted<W, F>>,
) -> Result<(), (Refusal, F)> {
    let request = match request {
        Ok(request) => request,
        Err(why) => return Err((why, then)),
    };
    let request = Request::try_new(request, then, GFP_ATOMIC);
    give(request.map_err(|then| (Errno::ENOMEM.into(), then))?).map_err(|refused| {
        let (error, then) = refused.into_then();
        (refused::not_posted(error), then)
    })
}
