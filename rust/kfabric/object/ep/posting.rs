// SPDX-License-Identifier: GPL-2.0

//! Posting a transfer: from the arguments of a call to the provider's queue.
//!
//! All of it is for any context.

use super::{
    msg::Msg,
    phase::Phase,
    EndpointObject, //
};
use crate::{
    post::{
        buffers::Buffers,
        described::Described,
        flags::PostFlags,
        limits::LocalRules,
        local::Local,
        op::Op, //
    },
    provider::{
        cq::{
            Completion,
            Context, //
        },
        msg_ep::{
            Post,
            Refused, //
        },
        ticket::Ticket, //
    },
    region::rawkey::{
        RemotePiece,
        MAPPED, //
    },
    support::{
        errno::Errno,
        num::{
            signed_size,
            widen, //
        },
        refusal::Refusal, //
    }, //
};
use kernel::ffi::c_void;
use kfi_bindings::kfid_ep;

/// Which flags a call has.
pub(super) enum CallFlags {
    /// None: those of the endpoint.
    Default,
    /// These.
    These(u64),
    /// None, and the bytes are the caller's again when it returns.
    Inject,
}

/// What a call says of a transfer that all of them say.
pub(super) struct Call<'a> {
    pub(super) buffers: Buffers<'a>,
    pub(super) flags: CallFlags,
    /// What the peer's completion queue gets, where that is asked for.
    pub(super) data: Option<u64>,
    pub(super) context: *mut c_void,
}

/// What kind of transfer it is, and the peer's memory.
pub(super) enum Kind {
    Send,
    Receive,
    Read(Remote),
    Write(Remote),
}

/// The peer's memory.
#[derive(Clone, Copy)]
pub(super) struct Remote {
    pub(super) address: u64,
    pub(super) key: u64,
    /// Its length, where a list says it.
    pub(super) len: Option<u64>,
}

impl Remote {
    /// As one piece, as long as the memory at this side.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it isn't as long, or not within what was mapped.
    /// - `ENOKEY`: nothing was mapped by that key.
    /// - `E2BIG`: it is several regions of the peer's device.
    fn piece(&self, endpoint: &EndpointObject, bytes: u64) -> Result<RemotePiece, Refusal> {
        if let Some(len) = self.len.filter(|&len| len != bytes) {
            let refusal = Refusal::new(Errno::EINVAL, c"not as long as the memory at this side");
            return Err(refusal.value(len));
        }
        if self.address.checked_add(bytes).is_none() {
            let refusal = Refusal::new(Errno::EINVAL, c"the peer's addresses wrap");
            return Err(refusal.value(self.address));
        }
        let plain = RemotePiece {
            key: self.key,
            base: self.address,
            len: bytes,
        };
        match self.key & MAPPED {
            0 => Ok(plain),
            _ => endpoint.parent().keys().one(self.key, self.address, bytes),
        }
    }
}

impl Kind {
    /// The flags that such a call may have.
    const fn known_flags(&self) -> u64 {
        match self {
            Self::Receive => PostFlags::RECEIVE,
            Self::Read(_) => PostFlags::READ,
            _ => PostFlags::TRANSMIT,
        }
    }

    fn needs_peer(&self) -> bool {
        !matches!(self, Self::Receive)
    }

    /// What is done, with this memory.
    fn op(&self, endpoint: &EndpointObject, bytes: u64, data: Option<u64>) -> Result<Op, Refusal> {
        Ok(match self {
            Self::Send => Op::Send { data },
            Self::Receive => Op::Receive,
            Self::Read(from) => Op::Read {
                from: from.piece(endpoint, bytes)?,
            },
            Self::Write(to) => Op::Write {
                to: to.piece(endpoint, bytes)?,
                data,
            },
        })
    }

    /// What it needs of the memory, for which the peer's doesn't matter.
    const fn shape(&self) -> Op {
        const NOWHERE: RemotePiece = RemotePiece {
            key: 0,
            base: 0,
            len: 0,
        };
        match self {
            Self::Send => Op::Send { data: None },
            Self::Receive => Op::Receive,
            Self::Read(_) => Op::Read { from: NOWHERE },
            Self::Write(_) => Op::Write {
                to: NOWHERE,
                data: None,
            },
        }
    }
}

impl CallFlags {
    fn parse(&self, kind: &Kind, msg: &Msg) -> Result<PostFlags, Refusal> {
        let default = match kind {
            Kind::Receive => msg.op_flags().receive,
            _ => msg.op_flags().transmit,
        };
        match self {
            Self::Default => Ok(PostFlags::default(default, kind.known_flags())),
            Self::These(flags) => PostFlags::parse(*flags, kind.known_flags()),
            Self::Inject => Ok(PostFlags::injected()),
        }
    }

    /// Is its end never told, unless it fails?
    fn silent(&self, flags: PostFlags, selective: bool) -> bool {
        matches!(self, Self::Inject) || selective && !flags.completes()
    }
}

/// Looks whether the endpoint takes such a transfer now.
fn check_phase(msg: &Msg, kind: &Kind) -> Result<(), Refusal> {
    match msg.phase().get() {
        Phase::Connected => Ok(()),
        Phase::Enabled | Phase::Connecting if !kind.needs_peer() => Ok(()),
        phase => Err(phase.refusal()),
    }
}

/// What the peer's completion queue is to get, if anything.
fn data_of(call: &Call<'_>, flags: PostFlags, most: usize) -> Result<Option<u64>, Refusal> {
    let by_call = matches!(call.flags, CallFlags::These(_));
    let data = call.data.filter(|_| !by_call || flags.has_data());
    match data {
        Some(data) if most < size_of::<u64>() && data >> (most * 8) != 0 => {
            let refusal = Refusal::new(Errno::EINVAL, c"more data than cq_data_size");
            Err(refusal.value(data))
        }
        data => Ok(data),
    }
}

/// Posts a transfer on an endpoint.
///
/// # Errors
///
/// Nothing was begun, and nothing is reported then:
///
/// - `ENOSYS`: the endpoint transfers nothing.
/// - `EOPBADSTATE`, `ENOTCONN`: it isn't enabled, or not connected.
/// - `EBADFLAGS`
/// - Those of [`Local::find`], and of the peer's memory.
/// - `EAGAIN`: there is no room in the endpoint's queue, or in that for completions.
/// - Those of the provider.
pub(super) fn post(endpoint: &EndpointObject, kind: &Kind, call: &Call<'_>) -> Result<(), Refusal> {
    let msg = endpoint.transferring()?;
    check_phase(msg, kind)?;
    let limits = msg.limits();
    let flags = call.flags.parse(kind, msg)?;
    let data = data_of(call, flags, limits.cq_data_size)?;
    let domain = endpoint.parent();
    let find = |desc| -> Result<Described, Refusal> {
        let none = Refusal::new(Errno::EINVAL, c"no region has this descriptor");
        domain.descs().find(desc).ok_or(none.value(widen(desc)))
    };
    let rules = LocalRules {
        // What is copied at once is found by its addresses here, not by those of the device.
        by_region: limits.local.by_region && !flags.injects(),
        ..limits.local
    };
    let local = Local::find(&call.buffers, &kind.shape(), &rules, find)?;
    if flags.injects() && local.bytes() > widen(limits.inject_size) {
        let refusal = Refusal::new(Errno::EMSGSIZE, c"more bytes than inject_size");
        return Err(refusal.value(local.bytes()));
    }
    let op = kind.op(endpoint, local.bytes(), data)?;
    let reports = msg.bound().reports(&op);
    let silent = reports.is_none_or(|reports| call.flags.silent(flags, reports.selective));
    let full = Refusal::new(Errno::EAGAIN, c"the completion queue has no room");
    let place = match reports {
        Some(reports) => Some(reports.cq.get().queue().reserve().ok_or(full)?),
        None => None,
    };
    let done = Completion {
        context: Context::new(call.context),
        flags: op.flags(),
        len: 0,
        buf: Context::NULL,
        data: 0,
    };
    let ticket = Ticket::new(place, msg.bound().counter(&op).cloned(), done, silent);
    let posted = msg.imp().post(Post {
        op,
        local: &local,
        flags,
        ticket,
    });
    posted.map_err(|Refused { why, ticket }| {
        ticket.refuse();
        why
    })
}

/// Does a call on the endpoint that C gives, and reports a refusal.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core.
pub(super) unsafe fn call(ep: *mut kfid_ep, kind: Kind, call: Result<Call<'_>, Refusal>) -> isize {
    // SAFETY: By the requirements of this function; an endpoint begins with its fid.
    let endpoint = unsafe { EndpointObject::from_fid(ep.cast()) };
    let posted = endpoint.and_then(|endpoint| {
        // Before the arguments: there is no such call at all.
        endpoint.transferring()?;
        post(endpoint, &kind, &call?)
    });
    signed_size(match posted {
        Ok(()) => 0,
        // Who posts until a queue is full has made no mistake.
        Err(refusal) if refusal.errno() == Errno::EAGAIN => refusal.errno().to_c(),
        Err(refusal) => refusal.report(),
    })
}
