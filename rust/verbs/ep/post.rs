// SPDX-License-Identifier: GPL-2.0

//! From a transfer to a work request. All of it is for any context.

use super::{
    conn::Conn,
    done::Told,
    staged::Giving,
    wires::Wires, //
};
use crate::{
    lent,
    refused, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    provider::msg_ep::{
        Post,
        Refused, //
    },
    AtomicOp,
    Errno,
    Op,
    Refusal,
    RemotePiece, //
};
use rdma::{
    request::{
        NotPosted,
        Request, //
    },
    wr::{
        Receive,
        Remote,
        WorkRequest, //
    },
    Gather, //
};

impl Wires {
    /// Posts a transfer.
    pub(super) fn post(&self, post: Post<'_>, conn: &Arc<Conn>) -> Result<(), Refused> {
        match post.op {
            Op::Receive => self.receive(post, conn),
            Op::Atomic { fetches: false, .. } => {
                let memory = Gather::scrap(self.pd(), GFP_ATOMIC);
                self.transmit(post, memory.map_err(refused::not_mapped), conn)
            }
            _ if post.flags.injects() => {
                let bytes = post.injected();
                let memory = bytes
                    .and_then(|bytes| Gather::inline(bytes).map_err(|_| Errno::EMSGSIZE.into()));
                self.transmit(post, memory, conn)
            }
            _ => {
                let memory = lent::memory(self.pd(), &post);
                self.transmit(post, memory, conn)
            }
        }
    }

    fn receive(&self, post: Post<'_>, conn: &Arc<Conn>) -> Result<(), Refused> {
        let memory = lent::memory(self.pd(), &post);
        let request = memory.and_then(|memory| Receive::new(memory).map_err(refused::not_posted));
        match request {
            Ok(request) => begin(request, post, conn, |request| {
                self.endpoint().post_receive(request)
            }),
            Err(why) => Err(post.refuse(why)),
        }
    }

    fn transmit<K: Send + 'static>(
        &self,
        post: Post<'_>,
        memory: Result<Gather<K>, Refusal>,
        conn: &Arc<Conn>,
    ) -> Result<(), Refused> {
        let request = memory.and_then(|memory| request(memory, &post));
        match request {
            Ok(request) => {
                let more = post.flags.more();
                begin(request, post, conn, |request| {
                    conn.give(self.endpoint(), request, more, Giving::Told)
                })
            }
            Err(why) => Err(post.refuse(why)),
        }
    }
}

/// A request that does this, with this memory.
fn request<K>(memory: Gather<K>, post: &Post<'_>) -> Result<WorkRequest<K>, Refusal> {
    let to = || remote(post.remote.pieces());
    let request = match post.op {
        Op::Send {
            invalidates: Some(key),
            ..
        } => WorkRequest::send_with_inv(memory, short(key)?),
        Op::Send {
            data: Some(data), ..
        } => WorkRequest::send_with_imm(memory, immediate(data)?),
        Op::Send { .. } => WorkRequest::send(memory),
        Op::Write { data: None } => WorkRequest::write(memory, to()?),
        Op::Write { data: Some(data) } => {
            WorkRequest::write_with_imm(memory, to()?, immediate(data)?)
        }
        Op::Read => WorkRequest::read(memory, to()?).map_err(refused::not_posted)?,
        Op::Atomic { what, .. } => atomic(memory, to()?, what)?,
        Op::Receive => return Err(Errno::EINVAL.into()),
    };
    Ok(match post.flags.fences() {
        true => request.fenced(),
        false => request,
    })
}

/// A request for an atomic operation, whose memory gets what was there before.
fn atomic<K>(memory: Gather<K>, at: Remote, what: AtomicOp) -> Result<WorkRequest<K>, Refusal> {
    let request = match what {
        AtomicOp::Add(by) => WorkRequest::fetch_and_add(memory, at, by),
        AtomicOp::CompareSwap { expected, new } => {
            WorkRequest::compare_and_swap(memory, at, expected, new)
        }
        // The limits say that there is none.
        AtomicOp::Write(_) => return Err(Errno::EOPNOTSUPP.into()),
    };
    request.map_err(refused::not_posted)
}

/// What goes to the peer's completion queue.
fn immediate(data: u64) -> Result<u32, Refusal> {
    let why = c"more data than cq_data_size";
    u32::try_from(data).map_err(|_| Refusal::new(Errno::EINVAL, why).value(data))
}

/// The peer's memory, which is one piece.
fn remote(pieces: &[RemotePiece]) -> Result<Remote, Refusal> {
    let piece = pieces.first().ok_or(Errno::EINVAL)?;
    Ok(Remote {
        address: piece.base,
        key: short(piece.key)?,
    })
}

/// A key as devices have them.
fn short(key: u64) -> Result<u32, Refusal> {
    let why = c"no device has keys of that length";
    u32::try_from(key).map_err(|_| Refusal::new(Errno::ENOKEY, why).value(key))
}

/// Begins a transfer by posting a request.
fn begin<W: Send + 'static>(
    request: W,
    post: Post<'_>,
    conn: &Arc<Conn>,
    give: impl FnOnce(KBox<Request<W, Told>>) -> Result<(), NotPosted<W, Told>>,
) -> Result<(), Refused>
where
    Told: rdma::request::Then<W>,
{
    let told = Told::new(post.ticket, conn);
    let request = match Request::try_new(request, told, GFP_ATOMIC) {
        Ok(request) => request,
        Err(told) => {
            return Err(Refused {
                why: Errno::ENOMEM.into(),
                ticket: told.into_ticket(),
            });
        }
    };
    give(request).map_err(|refused| {
        let (error, told) = refused.into_then();
        Refused {
            why: refused::not_posted(error),
            ticket: told.into_ticket(),
        }
    })
}
