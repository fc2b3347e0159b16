// SPDX-License-Identifier: GPL-2.0

//! Posting a transfer: from the arguments of a call to the provider's queue.
//!
//! All functions may be called in any context.

use super::{
    msg_ep::{
        EpPhase,
        Msg, //
    },
    srx::SrxObject,
    EndpointObject, //
};
use crate::{
    object::{
        counters::TransferCounters,
        cq::CqBinding,
        domain::DomainObject,
        prelude::*,
        trace, //
    },
    post::{
        injected::InjectCopy,
        local::LocalRules,
        LocalMemory,
        RemoteMemory,
        TransferRequest, //
    },
    provider::{
        msg_ep::Post,
        ticket::Ticket, //
    }, //
};

/// The object that a consumer posts a transfer on.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    domain: &'a DomainObject,
    pub(super) limits: &'a MsgLimits,
    queue: Queue<'a>,
}

/// The queue of a [`Target`].
#[derive(Clone, Copy)]
enum Queue<'a> {
    /// The queues of a connected endpoint.
    Endpoint(&'a Msg),
    /// The queue of a shared receive context.
    Shared(&'a SrxObject),
}

/// The settings of a [`Target`] for one kind of transfer.
struct Settings<'a> {
    /// The flags of a call without flags.
    default_flags: u64,
    /// The completion queue.
    cq: Option<&'a CqBinding>,
    counter: Option<&'a Arc<CntrCore>>,
}

/// Returns the endpoint that `msg` is a part of.
fn endpoint_of(msg: &Msg) -> &EndpointObject {
    // SAFETY: `fid` is the endpoint that `msg` is a part of.
    unsafe { EndpointObject::from_c(msg.init.fid.cast()) }
}

impl<'a> Target<'a> {
    /// Returns the target behind a fid. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the object is neither an endpoint nor a shared receive context.
    /// - `ENOSYS`: the endpoint transfers no data.
    ///
    /// # Safety
    ///
    /// `fid` is null or an object, of this core or of another provider, that stays open for `'a`.
    pub(super) unsafe fn find(fid: *mut kfid) -> Result<Self, Refusal> {
        // SAFETY: `fid` is null or an object that stays open for `'a`.
        let endpoint = match unsafe { EndpointObject::from_fid(fid) } {
            Ok(endpoint) => endpoint,
            Err(other) => {
                // SAFETY: `fid` is null or an object that stays open for `'a`.
                let srx = unsafe { SrxObject::from_fid(fid) }.map_err(|_| other)?;
                return Ok(Self {
                    domain: srx.parent(),
                    limits: &srx.limits,
                    queue: Queue::Shared(srx),
                });
            }
        };
        let msg = endpoint.msg.as_ref().ok_or(NO_SUCH_CALL)?;
        Ok(Self {
            domain: endpoint.parent(),
            limits: &msg.limits,
            queue: Queue::Endpoint(msg),
        })
    }

    /// Returns the settings for a kind of transfer, if the state permits to post one.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the target is a shared receive context, and the transfer no receive.
    /// - `ENOCQ`: the shared receive context has no completion queue.
    /// - `EOPNOTSUPP`: a receive on an endpoint that shares a receive context.
    /// - `EOPBADSTATE`, `ENOTCONN`: the endpoint is not enabled, or not connected.
    fn settings(&self, op: &Op) -> Result<Settings<'a>, Refusal> {
        let receives = matches!(op, Op::Receive);
        let msg = match self.queue {
            Queue::Shared(_) if !receives => return Err(NO_SUCH_CALL),
            Queue::Shared(srx) => {
                let why = c"no completion queue is bound for receives";
                let cq = srx
                    .reports
                    .as_ref()
                    .ok_or(Refusal::new(Errno::ENOCQ, why))?;
                return Ok(Settings {
                    default_flags: srx.op_flags,
                    cq: Some(cq),
                    counter: srx.counter.as_ref(),
                });
            }
            Queue::Endpoint(msg) => msg,
        };
        if receives && msg.init.shares {
            let why = c"receives are posted on the context that the endpoint shares";
            return Err(Refusal::new(Errno::EOPNOTSUPP, why));
        }
        match msg.phase.get() {
            EpPhase::Connected => (),
            EpPhase::Enabled | EpPhase::Connecting if receives => (),
            phase => return Err(phase.refusal()),
        }
        let [send, receive, read, write] = &msg.bound.counters;
        let counter = match op {
            Op::Send { .. } => send,
            Op::Receive => receive,
            Op::Read | Op::Atomic { fetches: true, .. } => read,
            Op::Write { .. } | Op::Atomic { .. } => write,
        };
        let (default_flags, cq) = match receives {
            true => (msg.init.op_flags.receive, &msg.bound.receive),
            false => (msg.init.op_flags.transmit, &msg.bound.transmit),
        };
        Ok(Settings {
            default_flags,
            cq: cq.as_ref(),
            counter: counter.as_ref(),
        })
    }

    /// Returns the number of receives, or of other transfers, that the consumer can post. Any context.
    pub(super) fn left(&self, receives: bool) -> Result<usize, Refusal> {
        let (own, cq) = match self.queue {
            Queue::Endpoint(msg) => {
                let (space, bound) = (msg.enabled()?.imp.room(), &msg.bound);
                match receives {
                    true => (space.receives, bound.receive.as_ref()),
                    false => (space.sends, bound.transmit.as_ref()),
                }
            }
            Queue::Shared(srx) if receives => (srx.imp.room(), srx.reports.as_ref()),
            Queue::Shared(_) => return Err(NO_SUCH_CALL),
        };
        Ok(cq.map_or(own, |to| own.min(to.cq.left())))
    }

    fn counters(&self) -> &'a TransferCounters {
        match self.queue {
            Queue::Endpoint(msg) => &msg.counters,
            Queue::Shared(srx) => &srx.counters,
        }
    }

    /// Counts and reports a refusal of the call of this name. Any context.
    #[cold]
    fn refuse(&self, call: &CStr, refusal: Refusal) -> c_int {
        if refusal.errno() == Errno::EAGAIN {
            self.counters().count_retry();
        }
        match self.queue {
            Queue::Endpoint(msg) => endpoint_of(msg).refuse(call, refusal),
            Queue::Shared(srx) => srx.refuse(call, refusal),
        }
    }

    /// Cancels a receive that no message has arrived for. Any context.
    pub(super) fn cancel(&self, context: Context) -> Result<(), Refusal> {
        match self.queue {
            Queue::Endpoint(msg) => msg.imp.cancel(context),
            Queue::Shared(srx) => srx.imp.cancel(context),
        }
    }
}

/// The flags of a call.
#[derive(Clone, Copy)]
pub(super) enum CallFlags {
    /// The call has no argument for flags: the defaults of the endpoint apply.
    Default,
    /// The flags that the caller passed.
    Given(u64),
    /// An inject call: no flags, and the caller may reuse the buffer after the return.
    Inject,
}

/// The arguments that all transfers have.
pub(super) struct TransferArgs<'a> {
    pub(super) buffers: Buffers<'a>,
    pub(super) remote: RemoteArg<'a>,
    pub(super) flags: CallFlags,
    /// Immediate data for the peer's completion queue, or the key to invalidate.
    pub(super) data: Option<u64>,
    pub(super) context: *mut c_void,
}

/// The peer's memory, as the consumer gave it.
pub(super) enum RemoteArg<'a> {
    /// No memory: the transfer is a message.
    Absent,
    /// A range as long as the local buffers, or as the operand of an atomic operation.
    At { address: u64, key: u64 },
    /// Ranges with lengths.
    Ranges(&'a [c::kfi_rma_iov]),
}

impl RemoteArg<'_> {
    /// Adds the pieces of the peer's memory to `memory`, which is empty, for a transfer of `bytes` bytes.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the ranges are not `bytes` bytes long, or there are more than `most`.
    /// - The errors of [`RemoteMemory::add`].
    fn find(
        &self,
        memory: &mut RemoteMemory,
        keys: &KeyMap,
        bytes: u64,
        most: usize,
    ) -> Result<(), Refusal> {
        match *self {
            Self::Absent => (),
            Self::At { address, key } => {
                let all = RemotePiece {
                    key,
                    base: address,
                    len: bytes,
                };
                memory.add(keys, all, most)?;
            }
            Self::Ranges(ranges) => {
                let sum = ranges
                    .iter()
                    .try_fold(0_u64, |sum, range| sum.checked_add(widen(range.len)));
                if sum != Some(bytes) {
                    let why = c"not as long as the memory at this side";
                    return Err(Refusal::new(Errno::EINVAL, why).value(sum.unwrap_or(u64::MAX)));
                }
                if ranges.len() > most {
                    let refusal = Refusal::new(Errno::EINVAL, c"more rma_iov than rma_iov_limit");
                    return Err(refusal.value(widen(ranges.len())));
                }
                for (index, range) in ranges.iter().enumerate() {
                    let piece = RemotePiece {
                        key: range.key,
                        base: range.addr,
                        len: widen(range.len),
                    };
                    memory
                        .add(keys, piece, most)
                        .map_err(|refusal| refusal.at(index))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the flags that a caller may pass.
const fn known_flags(op: &Op) -> u64 {
    match op {
        Op::Receive => PostFlags::RECEIVE,
        Op::Read => PostFlags::READ,
        Op::Send { .. } => PostFlags::SEND,
        Op::Write { .. } => PostFlags::TRANSMIT,
        Op::Atomic { .. } => PostFlags::ATOMIC,
    }
}

/// Returns the flags of a completion queue entry.
const fn entry_flags(op: &Op) -> u64 {
    widen_u32(match op {
        Op::Send { .. } => c::KFI_MSG | c::KFI_SEND,
        Op::Receive => c::KFI_MSG | c::KFI_RECV,
        Op::Read => c::KFI_RMA | c::KFI_READ,
        Op::Write { .. } => c::KFI_RMA | c::KFI_WRITE,
        Op::Atomic { fetches: true, .. } => c::KFI_ATOMIC | c::KFI_READ,
        Op::Atomic { .. } => c::KFI_ATOMIC | c::KFI_WRITE,
    })
}

/// Checks whether an atomic operation can access the peer's memory.
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
    fn parse(self, op: &Op, default: u64) -> Result<PostFlags, Refusal> {
        match self {
            Self::Default => Ok(PostFlags::masked(default, known_flags(op))),
            Self::Given(flags) => PostFlags::parse(flags, known_flags(op)),
            Self::Inject => Ok(PostFlags {
                injects: true,
                ..PostFlags::default()
            }),
        }
    }

    /// Returns whether the completion queue gets an entry only if the transfer fails.
    fn is_silent(self, flags: PostFlags, selective: bool) -> bool {
        matches!(self, Self::Inject) || selective && !flags.completes
    }
}

/// Returns the immediate data for the peer's completion queue, of at most `most` bytes.
fn data_of(args: &TransferArgs<'_>, flags: PostFlags, most: usize) -> Result<Option<u64>, Refusal> {
    let given = matches!(args.flags, CallFlags::Given(_));
    let data = args.data.filter(|_| !given || flags.has_data);
    match data {
        Some(data) if most < size_of::<u64>() && data >> (most * 8) != 0 => {
            let refusal = Refusal::new(Errno::EINVAL, c"more data than cq_data_size");
            Err(refusal.value(data))
        }
        data => Ok(data),
    }
}

/// Posts a transfer. The immediate data and the key to invalidate are in `args`, not in `op`.
///
/// # Errors
///
/// After an error the transfer was not posted, and there is no completion.
///
/// - The errors of [`Target::settings`].
/// - `EBADFLAGS`: the kind of transfer doesn't have these flags.
/// - `EINVAL`: more immediate data than `cq_data_size`, or memory that is refused.
/// - The errors of [`LocalPieces::find`](crate::post::local::LocalPieces::find), [`InjectCopy::copy`] and [`RemoteMemory::add`].
/// - `EAGAIN`: the endpoint's queue or the completion queue is full.
/// - The errors of the provider.
pub(super) fn post(on: Target<'_>, mut op: Op, args: &TransferArgs<'_>) -> Result<(), Refusal> {
    let settings = on.settings(&op)?;
    let (domain, limits) = (on.domain, on.limits);
    let mut flags = args.flags.parse(&op, settings.default_flags)?;
    // The operands of an atomic operation are already copied.
    flags.injects &= !matches!(op, Op::Atomic { .. });
    let data = data_of(args, flags, limits.cq_data_size)?;
    let find = |desc| -> Result<DescMr, Refusal> {
        let none = Refusal::new(Errno::EINVAL, c"no region has this descriptor");
        domain.descs.find(desc).ok_or(none.value(widen(desc)))
    };
    let rules = LocalRules {
        // Injected bytes are copied from kernel addresses, not from those of the device.
        by_region: limits.local.by_region && !flags.injects,
        ..limits.local
    };
    match &mut op {
        Op::Send {
            data: of_send,
            invalidates,
        } => (*of_send, *invalidates) = (data, args.data.filter(|_| flags.invalidates)),
        Op::Write { data: of_write } => *of_write = data,
        _ => (),
    }
    let mut transfer = TransferRequest::new(op, flags);
    let bytes = match &mut transfer.local {
        LocalMemory::Lent(local) if !flags.injects => {
            local.find(&args.buffers, &op, &rules, find)?
        }
        local => {
            let copy = InjectCopy::copy(&args.buffers, &op, &rules, limits.inject_size, find)?;
            *local = LocalMemory::Injected(copy);
            local.bytes()
        }
    };
    let bytes = match op {
        Op::Atomic { .. } => widen(WORD),
        _ => bytes,
    };
    let (remote, most) = (&mut transfer.remote, limits.remote_pieces);
    args.remote.find(remote, &domain.keys, bytes, most)?;
    if matches!(op, Op::Atomic { .. }) {
        check_words(remote)?;
    }
    let cq = settings.cq;
    let silent = cq.is_none_or(|bound| args.flags.is_silent(flags, bound.selective));
    let full = Refusal::new(Errno::EAGAIN, c"the completion queue has no room");
    let place = match cq {
        Some(bound) => Some(bound.cq.reserve().ok_or(full)?),
        None => None,
    };
    let context = Context(args.context);
    let done = CqEntry {
        context,
        flags: entry_flags(&op),
        len: 0,
        buf: Context::NULL,
        data: 0,
    };
    let ticket = Ticket::new(place, settings.counter.cloned(), done, silent);
    let transfer = &transfer;
    // INVARIANT: The ticket is that of the transfer.
    let post = Post { transfer, ticket };
    let posted = match on.queue {
        Queue::Endpoint(msg) => msg.imp.post(post),
        Queue::Shared(srx) => srx.imp.post(post),
    };
    let posted = posted.or_else(|refused| refused.settle(context));
    match on.queue {
        Queue::Endpoint(msg) => {
            trace::posted(endpoint_of(msg), &transfer.op, bytes, context, &posted);
        }
        Queue::Shared(srx) => trace::posted(srx, &transfer.op, bytes, context, &posted),
    }
    if posted.is_ok() {
        on.counters().count(&transfer.op, bytes);
    }
    posted
}

/// Calls `f` with the endpoint or shared receive context behind `ep`, and reports a refusal. `call` returns the name of
/// the call.
///
/// # Safety
///
/// `ep` is null or an open object for the call, of this core or of another provider.
pub(super) unsafe fn with_target(
    ep: *mut kfid_ep,
    call: impl Fn() -> &'static CStr,
    f: impl FnOnce(Target<'_>) -> Result<isize, Refusal>,
) -> isize {
    // The target comes before the arguments: a bare endpoint refuses every call with ENOSYS.
    // SAFETY: `ep` is null or open for the call, and a `kfid_ep` begins with its fid.
    let target = match unsafe { Target::find(ep.cast()) } {
        Ok(target) => target,
        // SAFETY: `ep` is null or open for the call.
        Err(refusal) => return unsafe { EndpointObject::answer(ep.cast(), call(), Err(refusal)) },
    };
    f(target).unwrap_or_else(|refusal| signed_size(target.refuse(call(), refusal)))
}

/// Posts a transfer on the endpoint or shared receive context behind `ep`, and reports a refusal to C.
///
/// # Safety
///
/// `ep` is null or an open object for the call, of this core or of another provider.
pub(super) unsafe fn post_on(
    ep: *mut kfid_ep,
    op: Op,
    args: Result<TransferArgs<'_>, Refusal>,
) -> isize {
    // SAFETY: `ep` is null or open for the call.
    unsafe {
        with_target(
            ep,
            || op.name(),
            |target| post(target, op, &args?).map(|()| 0),
        )
    }
}
