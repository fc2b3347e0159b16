// SPDX-License-Identifier: GPL-2.0

//! Posting a transfer: from the arguments of a call to the provider's queue.
//!
//! All of it is for any context.

use super::target::Target;
use crate::{
    post::{
        buffers::Buffers,
        described::Described,
        flags::PostFlags,
        injected::Injected,
        limits::LocalRules,
        local::Local,
        op::Op,
        remote::RemoteMemory, //
    },
    provider::{
        cq::{
            Completion,
            Context, //
        },
        msg_ep::{
            LocalMemory,
            Post,
            Task, //
        },
        ticket::Ticket, //
    },
    region::{
        atomic::{
            AtomicOp,
            WORD, //
        },
        rawkey::{
            map::KeyMap,
            RemotePiece, //
        },
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
use kfi_bindings::{
    kfi_rma_iov,
    kfid_ep, //
};

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
    pub(super) remote: Remote<'a>,
    pub(super) flags: CallFlags,
    /// What the peer's completion queue gets, where that is asked for.
    pub(super) data: Option<u64>,
    pub(super) context: *mut c_void,
}

/// What kind of transfer it is.
pub(super) enum Kind {
    Send,
    Receive,
    Read,
    Write,
    Atomic { what: AtomicOp, fetches: bool },
}

/// The peer's memory, as the consumer gave it.
pub(super) enum Remote<'a> {
    /// None, for messages.
    Nowhere,
    /// As long as the memory at this side, or as what is done there.
    From { address: u64, key: u64 },
    /// Several ranges, which say their lengths.
    Pieces(&'a [kfi_rma_iov]),
}

impl Remote<'_> {
    /// Finds what the device is to be told of it, for a transfer of so many bytes, which has none yet.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it isn't as long, or there are too many ranges.
    /// - Those of [`RemoteMemory::add`].
    fn find(
        &self,
        memory: &mut RemoteMemory,
        keys: &KeyMap,
        bytes: u64,
        most: usize,
    ) -> Result<(), Refusal> {
        match *self {
            Self::Nowhere => (),
            Self::From { address, key } => {
                let all = RemotePiece {
                    key,
                    base: address,
                    len: bytes,
                };
                memory.add(keys, all, most)?;
            }
            Self::Pieces(pieces) => {
                let sum = pieces
                    .iter()
                    .try_fold(0_u64, |sum, piece| sum.checked_add(widen(piece.len)));
                if sum != Some(bytes) {
                    let why = c"not as long as the memory at this side";
                    return Err(Refusal::new(Errno::EINVAL, why).value(sum.unwrap_or(u64::MAX)));
                }
                if pieces.len() > most {
                    let refusal = Refusal::new(Errno::EINVAL, c"more rma_iov than rma_iov_limit");
                    return Err(refusal.value(widen(pieces.len())));
                }
                for (index, piece) in pieces.iter().enumerate() {
                    let range = RemotePiece {
                        key: piece.key,
                        base: piece.addr,
                        len: widen(piece.len),
                    };
                    memory.add(keys, range, most).map_err(|no| no.at(index))?;
                }
            }
        }
        Ok(())
    }
}

impl Kind {
    /// The flags that such a call may have.
    const fn known_flags(&self) -> u64 {
        match self {
            Self::Receive => PostFlags::RECEIVE,
            Self::Read => PostFlags::READ,
            Self::Send => PostFlags::SEND,
            Self::Write => PostFlags::TRANSMIT,
            Self::Atomic { .. } => PostFlags::ATOMIC,
        }
    }

    fn receives(&self) -> bool {
        matches!(self, Self::Receive)
    }

    /// What is done, with these data for the peer's completion queue, or to end this key of the peer's.
    const fn op(&self, data: Option<u64>, invalidates: Option<u64>) -> Op {
        match *self {
            Self::Send => Op::Send { data, invalidates },
            Self::Receive => Op::Receive,
            Self::Read => Op::Read,
            Self::Write => Op::Write { data },
            Self::Atomic { what, fetches } => Op::Atomic { what, fetches },
        }
    }

    /// How much of the peer's memory it is about, with so many bytes at this side.
    fn remote_bytes(&self, local: u64) -> u64 {
        match self {
            Self::Atomic { .. } => widen(WORD),
            _ => local,
        }
    }

    /// The flags by which the provider does it.
    fn flags(&self, flags: PostFlags) -> PostFlags {
        match self {
            // Its operands are copied already.
            Self::Atomic { .. } => flags.without_inject(),
            _ => flags,
        }
    }
}

/// Looks whether atomic operations may be done there.
fn check_words(memory: &RemoteMemory) -> Result<(), Refusal> {
    let word = widen(WORD);
    match memory.pieces() {
        [piece] if piece.base % word == 0 => Ok(()),
        _ => Err(Refusal::new(
            Errno::EINVAL,
            c"not eight bytes at a multiple of eight",
        )),
    }
}

impl CallFlags {
    fn parse(&self, kind: &Kind, on: Target<'_>) -> Result<PostFlags, Refusal> {
        let default = match kind {
            Kind::Receive => on.op_flags().receive,
            _ => on.op_flags().transmit,
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

/// Posts a transfer.
///
/// # Errors
///
/// Nothing was begun, and nothing is reported then:
///
/// - `ENOSYS`: there is no such transfer there.
/// - `EOPBADSTATE`, `ENOTCONN`: the endpoint isn't enabled, or not connected; or `EOPNOTSUPP`, as
///   [`Target::check`] says.
/// - `EBADFLAGS`
/// - Those of [`Local::find`] or [`Injected::copy`], and of the peer's memory.
/// - `EAGAIN`: there is no room in the endpoint's queue, or in that for completions.
/// - Those of the provider.
pub(super) fn post(on: Target<'_>, kind: &Kind, call: &Call<'_>) -> Result<(), Refusal> {
    on.check(kind.receives())?;
    let limits = on.limits();
    let flags = kind.flags(call.flags.parse(kind, on)?);
    let data = data_of(call, flags, limits.cq_data_size)?;
    let domain = on.domain();
    let find = |desc| -> Result<Described, Refusal> {
        let none = Refusal::new(Errno::EINVAL, c"no region has this descriptor");
        domain.descs().find(desc).ok_or(none.value(widen(desc)))
    };
    let rules = LocalRules {
        // Injected bytes are copied from kernel addresses, not from those of the device.
        by_region: limits.local.by_region && !flags.injects(),
        ..limits.local
    };
    let invalidates = call.data.filter(|_| flags.invalidates());
    let op = kind.op(data, invalidates);
    let mut lent = Local::none();
    let injected;
    let local = match flags.injects() {
        true => {
            injected = Injected::copy(&call.buffers, &op, &rules, limits.inject_size, find)?;
            LocalMemory::Injected(injected.bytes())
        }
        false => {
            lent.find(&call.buffers, &op, &rules, find)?;
            LocalMemory::Lent(&lent)
        }
    };
    let bytes = kind.remote_bytes(local.bytes());
    let mut remote = RemoteMemory::none();
    call.remote
        .find(&mut remote, domain.keys(), bytes, limits.remote_pieces)?;
    if matches!(op, Op::Atomic { .. }) {
        check_words(&remote)?;
    }
    let reports = on.reports(&op);
    let silent = reports.is_none_or(|reports| call.flags.silent(flags, reports.selective));
    let full = Refusal::new(Errno::EAGAIN, c"the completion queue has no room");
    let place = match reports {
        Some(reports) => Some(reports.cq.reserve().ok_or(full)?),
        None => None,
    };
    let done = Completion {
        context: Context::new(call.context),
        flags: op.flags(),
        len: 0,
        buf: Context::NULL,
        data: 0,
    };
    let ticket = Ticket::new(place, on.counter(&op).cloned(), done, silent);
    let context = ticket.context();
    let task = Task::new(op, local, &remote, flags);
    let posted = on.post(Post::new(task, ticket));
    posted.or_else(|refused| refused.settle(context))
}

/// Does something on what C gives, if that transfers anything, and reports a refusal.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core, or a receive context.
pub(super) unsafe fn on(
    ep: *mut kfid_ep,
    f: impl FnOnce(Target<'_>) -> Result<(), Refusal>,
) -> isize {
    // Before the arguments: there may be no such call at all.
    // SAFETY: By the requirements of this function; both begin with their fid.
    let target = unsafe { Target::find(ep.cast()) };
    signed_size(match target.and_then(f) {
        Ok(()) => 0,
        // Who posts until a queue is full has made no mistake.
        Err(refusal) if refusal.errno() == Errno::EAGAIN => refusal.errno().to_c(),
        Err(refusal) => refusal.report(),
    })
}

/// Posts a transfer on what C gives, and reports a refusal.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core, or a receive context.
pub(super) unsafe fn call(ep: *mut kfid_ep, kind: Kind, call: Result<Call<'_>, Refusal>) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe { on(ep, |target| post(target, &kind, &call?)) }
}
