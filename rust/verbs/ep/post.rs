// SPDX-License-Identifier: GPL-2.0

//! Posting of transfers as work requests, and the end of transfers with several requests. Any context.
//!
//! A transfer has one work request, or one for each piece of the peer's memory. A read has more if the device
//! registers the memory of reads. The device gets all requests of a transfer or none, and the transfer
//! completes with the last one. A device executes them in order, so the provider reports the first failure.
//!
//! Lock order: the lock of a transfer is a leaf. No transfer ends under it.

use super::{
    conn::{
        Conn,
        Signal, //
    },
    done::{
        self,
        QueueKind,
        TransferHandler, //
    },
    qp_resources::QpResources,
    read_sinks::Read, //
};
use crate::prelude::*;
use kfabric::{
    AtomicOp,
    LocalMemory,
    LocalPiece,
    LocalPieces,
    Op,
    TransferRequest, //
};
use rdma::{
    cm::{
        Chain,
        Endpoint, //
    },
    request::{
        CompletedRequest,
        NotPosted,
        Request,
        RequestMemory, //
    },
    wr::{
        Receive,
        Remote, //
    },
    Buffer,
    Gather, //
};

impl QpResources {
    /// Posts a transfer.
    pub(super) fn post(
        &self,
        endpoint: &Arc<Endpoint>,
        post: Post<'_>,
        conn: &Arc<Conn>,
    ) -> Result<(), PostRefusal> {
        let (transfer, ticket) = post.into_parts();
        let pieces = transfer.remote.pieces();
        if pieces.len() > 1 || self.sinks.is_some() && self.sinks_of(transfer) > 0 {
            return self.split(endpoint, transfer, ticket, conn);
        }
        let handler = TransferHandler {
            ticket,
            conn: conn.clone(),
            spares: self.spares.clone(),
        };
        let begun = match transfer.op {
            Op::Receive => begin(
                || receive(&self.pd, transfer),
                handler,
                || self.spares.receives.take(),
                |request| endpoint.post_receive(request),
            ),
            _ => begin(
                || self.request(transfer, pieces),
                handler,
                || self.spares.sends.take(),
                |request| conn.give(endpoint, request, transfer.flags.more, Signal::Signaled),
            ),
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
        let create = || match transfer.op {
            Op::Send {
                invalidates: Some(key),
                ..
            } => Ok(WorkRequest::send_with_inv(memory(false)?, short(key)?)),
            Op::Send {
                data: Some(data), ..
            } => Ok(WorkRequest::send_with_imm(memory(false)?, immediate(data)?)),
            Op::Send { .. } => Ok(WorkRequest::send(memory(false)?)),
            Op::Write { data: None } => Ok(WorkRequest::write(memory(false)?, to()?)),
            Op::Write { data: Some(data) } => {
                let (memory, data) = (memory(false)?, immediate(data)?);
                Ok(WorkRequest::write_with_imm(memory, to()?, data))
            }
            Op::Read => WorkRequest::read(memory(true)?, to()?).map_err(driver_errors::no_request),
            Op::Atomic { what, fetches } => {
                let memory = match what {
                    AtomicOp::Write(word) => self.copied(&word.to_ne_bytes())?,
                    _ if fetches => memory(true)?,
                    _ => {
                        Gather::discard(&self.pd, GFP_ATOMIC).map_err(driver_errors::not_mapped)?
                    }
                };
                atomic(memory, to()?, what)
            }
            Op::Receive => Err(Errno::EINVAL.into()),
        };
        // The result is not moved: it is large.
        let mut request = create();
        if let (Ok(request), true) = (&mut request, self.fences(transfer)) {
            request.fence();
        }
        request
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
        transfer.flags.fences || writes && rxe::fences_writes(self.pd.device())
    }

    /// Copies bytes that the consumer gets back when the request has been posted.
    fn copied(&self, bytes: &[u8]) -> Result<Gather<Buffer>, Refusal> {
        let mut copy = KVec::new();
        copy.extend_from_slice(bytes, GFP_ATOMIC)?;
        let copied = self.endpoint()?.copied(copy, GFP_ATOMIC);
        copied.map_err(driver_errors::not_mapped)
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
    Receive::new(map(pd, local, true)?).map_err(driver_errors::no_request)
}

/// Maps the local memory of a transfer for the device of `pd`, which writes to it if `written`.
/// Must be dropped before the ticket of the transfer ends. Any context.
pub(super) fn map(pd: &Pd, local: &LocalPieces, written: bool) -> Result<Gather<Buffer>, Refusal> {
    let pieces = local.pieces();
    // The result is not moved: it is large.
    let mut gather = Gather::with_capacity(pd, pieces.len(), written, GFP_ATOMIC)
        .map_err(driver_errors::not_mapped);
    let Ok(memory) = &mut gather else {
        return gather;
    };
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
        if let Err(error) = added {
            gather = Err(driver_errors::not_mapped(error));
            break;
        }
    }
    gather
}

/// Returns new memory for a request, if there is some. Any context.
pub(super) fn new_memory<W, F>() -> Option<RequestMemory<W, F>> {
    KBox::new_uninit(GFP_ATOMIC).ok()
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
    request.map_err(driver_errors::no_request)
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

/// Has `request` create a request, puts it into memory that `memory` returns, and hands it to `give`. On an
/// error, returns the error and the completion handler.
#[inline]
pub(super) fn begin<W: Send + 'static, F: CompletionHandler<W>>(
    request: impl FnOnce() -> Result<W, Refusal>,
    then: F,
    memory: impl FnOnce() -> Option<RequestMemory<W, F>>,
    give: impl FnOnce(KBox<Request<W, F>>) -> Result<(), NotPosted<W, F>>,
) -> Result<(), (Refusal, F)> {
    let Some(memory) = memory() else {
        return Err((Errno::ENOMEM.into(), then));
    };
    let request = Request::new_in(memory, request, then)?;
    give(request).map_err(|refused| {
        let (error, then) = refused.into_then();
        (driver_errors::not_posted(error), then)
    })
}

/// A transfer of several parts.
#[pin_data]
struct Whole {
    #[pin]
    state: IrqLock<State>,
    conn: Arc<Conn>,
}

struct State {
    /// [`None`] before it is accepted, and when it has ended.
    ticket: Option<Ticket>,
    /// How many parts have not ended.
    left: usize,
    failed: Option<Failed>,
    /// The sinks that are registered for it.
    read: Read,
}

/// Ends a transfer when its last part has.
struct Part(Arc<Whole>);

impl Whole {
    /// Creates a transfer without parts, which is not accepted yet. Any context.
    fn new(conn: &Arc<Conn>) -> Result<Arc<Self>, Refusal> {
        let state = State {
            ticket: None,
            left: 0,
            failed: None,
            read: Read::default(),
        };
        let whole = pin_init!(Self {
            state <- new_irq_lock!(state, c"kfi_verbs_whole"),
            conn: conn.clone(),
        });
        Arc::pin_init(whole, GFP_ATOMIC).map_err(|_| Errno::ENOMEM.into())
    }

    /// Adds a part. Any context.
    fn part(self: &Arc<Self>) -> Part {
        self.state.with(|state| state.left += 1);
        Part(self.clone())
    }

    /// Ends the sinks of a transfer that was not accepted. All its parts have ended. Any context.
    fn undo(&self) {
        let read = self.state.with(|state| mem::take(&mut state.read));
        read.end(None);
    }

    /// Handles the end of a part.
    fn ended(&self, how: Result<(), Failed>) {
        let over = self.state.with(|state| {
            state.left = state.left.saturating_sub(1);
            if let Err(failed) = how {
                let keeps = failed.errno == Errno::ENOTRECOVERABLE;
                // That the device keeps the memory matters more than why.
                if keeps || state.failed.is_none() {
                    state.failed = Some(failed);
                }
            }
            // A transfer that is not accepted has no ticket.
            let ticket = (state.left == 0).then(|| state.ticket.take())??;
            Some((ticket, state.failed, mem::take(&mut state.read)))
        });
        if let Some((ticket, failed, read)) = over {
            // Before it is told: its memory is the consumer's again then.
            read.end(Some((ticket, failed)));
        }
    }
}

impl<K: Send + 'static> CompletionHandler<WorkRequest<K>> for Part {
    fn ended(self, ended: CompletedRequest<'_>) {
        let how = ended.result.map(|_| ());
        let how = how.map_err(|error| done::note(&self.0.conn, QueueKind::Sends, error));
        self.0.ended(how);
    }
}

impl QpResources {
    /// Posts a transfer that has several work requests. Any context.
    pub(super) fn split(
        &self,
        endpoint: &Arc<Endpoint>,
        transfer: &TransferRequest,
        ticket: Ticket,
        conn: &Arc<Conn>,
    ) -> Result<(), PostRefusal> {
        let whole = match Whole::new(conn) {
            Ok(whole) => whole,
            Err(why) => return Err(PostRefusal::new(why, ticket)),
        };
        let chain = match self.chain(endpoint, transfer, &whole) {
            Ok(chain) => chain,
            Err(why) => {
                whole.undo();
                // A request that waits for space waits for those that wait for more.
                if why.errno() == Errno::EAGAIN {
                    conn.go();
                }
                return Err(PostRefusal::new(why, ticket));
            }
        };
        whole.state.with(|state| state.ticket = Some(ticket));
        match conn.give_all(endpoint, chain, transfer.flags.more) {
            Ok(()) => Ok(()),
            Err((error, chain)) => {
                // There is none if the transfer has completed.
                let ticket = whole.state.with(|state| state.ticket.take());
                drop(chain);
                whole.undo();
                let why = driver_errors::not_posted(error);
                ticket.map_or(Ok(()), |ticket| Err(PostRefusal::new(why, ticket)))
            }
        }
    }

    /// Creates the requests of a transfer.
    fn chain(
        &self,
        endpoint: &Arc<Endpoint>,
        transfer: &TransferRequest,
        whole: &Arc<Whole>,
    ) -> Result<Chain, Refusal> {
        let parts = transfer.remote.pieces().len();
        if parts > self.sends {
            let why = c"more pieces of the peer's memory than the queue has places";
            return Err(Refusal::new(Errno::E2BIG, why).value(widen(parts)));
        }
        let mut sinks = 0;
        transfer.each(|transfer| {
            sinks += self.sinks_of(transfer);
            Ok::<_, Refusal>(())
        })?;
        let available = self.sinks.as_ref().map_or(0, |it| it.count);
        if parts + 2 * sinks > self.sends || sinks > available {
            let why = c"more pieces of memory to be registered than the queue has places for";
            return Err(Refusal::new(Errno::E2BIG, why).value(widen(sinks)));
        }
        let chain = endpoint.begin_chain();
        let mut chain = chain.map_err(driver_errors::not_posted)?;
        transfer.each(|transfer| match self.sinks_of(transfer) {
            0 => {
                let request = || self.request(transfer, transfer.remote.pieces());
                let begun = begin(request, whole.part(), new_memory, |request| {
                    chain.push(request)
                });
                begun.map_err(|(why, _)| why)
            }
            _ => self.read_registered(transfer, &mut chain, whole),
        })?;
        Ok(chain)
    }

    /// Returns the number of local pieces to register for a request. Any context.
    pub(super) fn sinks_of(&self, transfer: &TransferRequest) -> usize {
        let is_bare = |piece: &&LocalPiece| !matches!(piece, LocalPiece::Region { .. });
        match (&self.sinks, transfer.op, &transfer.local) {
            (Some(_), Op::Read, LocalMemory::Lent(local)) => {
                local.pieces().iter().filter(is_bare).count()
            }
            _ => 0,
        }
    }

    /// Puts a read on a chain, with the requests that register its memory. After an error, some of them may
    /// be on the chain. Any context.
    fn read_registered(
        &self,
        transfer: &TransferRequest,
        chain: &mut Chain,
        whole: &Arc<Whole>,
    ) -> Result<(), Refusal> {
        let (Some(sinks), LocalMemory::Lent(local)) = (&self.sinks, &transfer.local) else {
            return Err(Errno::EINVAL.into());
        };
        let from = remote(transfer.remote.pieces())?;
        whole.state.with(|state| state.read.reserve())?;
        let sink = sinks.sink(&self.pd, map(&self.pd, local, true)?)?;
        let read = sink.read(chain, from, self.fences(transfer), || whole.part());
        whole.state.with(|state| state.read.add(sinks, sink));
        read.map_err(driver_errors::not_posted)
    }
}
