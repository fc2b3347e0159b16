// SPDX-License-Identifier: GPL-2.0

//! `kfi_cq_open()`.

use super::{
    ops,
    out::Format,
    CqBody,
    CqObject,
    Waits, //
};
use crate::{
    object::{
        children::Children,
        opening,
        queues::can_wait, //
    },
    provider::cq::{
        CompletionQueue,
        Notify, //
    },
    support::{
        c_ref::parse_attr,
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*, //
};
use kfi_bindings::{
    kfi_comp_handler,
    kfi_cq_attr,
    kfi_cq_wait_cond_KFI_CQ_COND_NONE as COND_NONE,
    kfi_cq_wait_cond_KFI_CQ_COND_THRESHOLD as COND_THRESHOLD,
    kfid_cq,
    kfid_domain,
    KFI_AFFINITY, //
};

/// How many places a queue has whose consumer leaves it to us.
const SIZE_DEFAULT: usize = 1 << 10;

/// How many a queue can have: they take some MiB.
const SIZE_MAX: usize = 1 << 16;

/// A valid `struct kfi_cq_attr`.
struct Wanted {
    size: usize,
    format: Format,
    cpu: Option<u32>,
    waits: Option<Waits>,
}

fn cpu(attr: &kfi_cq_attr) -> Result<Option<u32>, Refusal> {
    const AFFINITY: u64 = KFI_AFFINITY as u64;
    match attr.flags {
        0 => Ok(None),
        AFFINITY => match u32::try_from(attr.signaling_vector) {
            Ok(cpu) => Ok(Some(cpu)),
            Err(_) => Err(Refusal::new(Errno::EINVAL, c"negative signaling_vector")),
        },
        flags => Err(Refusal::new(Errno::EBADFLAGS, c"flags of a completion queue").value(flags)),
    }
}

fn waits(attr: &kfi_cq_attr) -> Result<Option<Waits>, Refusal> {
    if !can_wait(attr.wait_obj)? {
        return Ok(None);
    }
    match attr.wait_cond {
        COND_NONE => Ok(Some(Waits::Any)),
        COND_THRESHOLD => Ok(Some(Waits::Threshold)),
        other => {
            let refusal = Refusal::new(Errno::EINVAL, c"unknown condition of waiting");
            Err(refusal.value(u64::from(other)))
        }
    }
}

fn parse(attr: &kfi_cq_attr) -> Result<Wanted, Refusal> {
    let size = match attr.size {
        0 => SIZE_DEFAULT,
        size if size <= SIZE_MAX => size,
        size => {
            let refusal = Refusal::new(Errno::EINVAL, c"a completion queue can't hold that many");
            return Err(refusal.value(widen(size)));
        }
    };
    Ok(Wanted {
        size,
        cpu: cpu(attr)?,
        format: Format::parse(attr.format)?,
        waits: waits(attr)?,
    })
}

/// A consumer's handler and what it is called with.
struct Handler {
    call: unsafe extern "C" fn(*mut kfid_cq, *mut c_void),
    cq: *mut kfid_cq,
    context: *mut c_void,
}

// SAFETY: C consumers let any thread call their handlers; the pointers are only handed through.
unsafe impl Send for Handler {}
// SAFETY: C consumers let several threads call their handlers at once.
unsafe impl Sync for Handler {}

impl Notify for Handler {
    fn notify(&self) {
        // SAFETY: The consumer gave it to be called with these while the queue is open, and closing
        // it waits for this call.
        unsafe { (self.call)(self.cq, self.context) };
    }
}

/// The `cq_open` slot of a domain. May sleep.
///
/// # Safety
///
/// As the C API demands: each pointer is null or valid, and the handler may be called until the
/// queue is closed, in any context.
pub(crate) unsafe extern "C" fn open(
    domain: *mut kfid_domain,
    attr: *mut kfi_cq_attr,
    cq: *mut *mut kfid_cq,
    comp_handler: kfi_comp_handler,
    context: *mut c_void,
) -> c_int {
    // SAFETY: Each is null or valid as the C API demands; a domain begins with its fid.
    unsafe {
        opening::open(domain.cast(), cq, |_, cq| {
            let wanted = parse_attr(attr, parse)?;
            let handler: Option<KBox<dyn Notify>> = match comp_handler {
                Some(call) => Some(KBox::new(Handler { call, cq, context }, GFP_KERNEL)?),
                None => None,
            };
            let c = kfid_cq {
                fid: CqObject::fid(context),
                ops: ops::OPS.as_ptr(),
                comp_handler,
            };
            let body = CqBody {
                queue: CompletionQueue::new(wanted.size, wanted.cpu, handler)?,
                waiters: Children::new(),
                format: wanted.format,
                waits: wanted.waits,
            };
            Ok((c, body))
        })
    }
}
