// SPDX-License-Identifier: GPL-2.0

//! One atomic operation: from the arguments of a call to posting it.

use crate::{
    object::ep::{
        args::buffer,
        posting::{
            self,
            Call,
            CallFlags,
            Kind,
            Remote, //
        },
        target::Target, //
    },
    post::{
        atomic::{
            Asked,
            Form, //
        },
        buffers::Buffers,
        injected::copy_nofault, //
    },
    region::atomic::{
        AtomicOp,
        WORD, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use core::ptr;
use kernel::ffi::c_void;
use kfi_bindings::{
    kfi_datatype,
    kfi_ioc,
    kfi_op,
    kfid_ep, //
};

/// Eight bytes at this side.
///
/// # Invariants
///
/// NULL, or eight bytes that are there until the call returns.
#[derive(Clone, Copy)]
pub(super) struct Word {
    at: *mut c_void,
    desc: *mut c_void,
}

/// Is it one element?
///
/// # Errors
///
/// - `EINVAL`: it is none.
/// - `E2BIG`: more than can be done at once.
pub(super) fn one(count: usize) -> Result<(), Refusal> {
    match count {
        0 => Err(Refusal::new(Errno::EINVAL, c"no element")),
        1 => Ok(()),
        _ => {
            let refusal = Refusal::new(Errno::E2BIG, c"more than one element");
            Err(refusal.value(widen(count)))
        }
    }
}

impl Word {
    /// One that the call doesn't have.
    pub(super) const NONE: Result<Self, Refusal> = Ok(Self {
        at: ptr::null_mut(),
        desc: ptr::null_mut(),
    });

    /// The memory of `count` elements, which must be one.
    ///
    /// # Errors
    ///
    /// Those of [`one`].
    ///
    /// # Safety
    ///
    /// As the C API demands: `at` is null or has so many elements.
    pub(super) unsafe fn new(
        at: *const c_void,
        count: usize,
        desc: *mut c_void,
    ) -> Result<Self, Refusal> {
        one(count)?;
        // INVARIANT: By the requirements of this function.
        Ok(Self {
            at: at.cast_mut(),
            desc,
        })
    }

    /// That of a list.
    ///
    /// # Errors
    ///
    /// Those of [`one`], and `EINVAL` if there is no list.
    ///
    /// # Safety
    ///
    /// As the C API demands: `list` and `descs` are null or have `count` entries, whose memory is null or
    /// has as many elements as they say.
    pub(super) unsafe fn listed(
        list: *const kfi_ioc,
        descs: *mut *mut c_void,
        count: usize,
    ) -> Result<Self, Refusal> {
        one(count)?;
        // SAFETY: By the requirements of this function.
        unsafe {
            let ioc = list.as_ref().ok_or(Refusal::NULL)?;
            let desc = descs.as_ref().copied().unwrap_or(ptr::null_mut());
            Self::new(ioc.addr, ioc.count, desc)
        }
    }

    /// Copies its bytes.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it is NULL.
    /// - `EFAULT`: there is no memory at its address.
    fn read(self) -> Result<u64, Refusal> {
        if self.at.is_null() {
            return Err(Refusal::NULL);
        }
        let mut bytes = [0; WORD];
        copy_nofault(&mut bytes, self.at)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

/// What a call asks for.
pub(super) struct Request {
    pub(super) form: Form,
    pub(super) datatype: kfi_datatype,
    pub(super) op: kfi_op,
    pub(super) operand: Result<Word, Refusal>,
    pub(super) compare: Result<Word, Refusal>,
    pub(super) result: Result<Word, Refusal>,
    pub(super) address: u64,
    pub(super) key: u64,
    pub(super) flags: CallFlags,
    pub(super) context: *mut c_void,
}

/// Posts an atomic operation.
///
/// # Errors
///
/// - `EOPNOTSUPP`: the endpoint doesn't have it.
/// - `EINVAL`: an operand is NULL; the memory for what was there is NULL, or at no multiple of eight.
/// - `EFAULT`: there is no memory at the address of an operand.
/// - Those of [`posting::post`].
fn post(on: Target<'_>, request: Request) -> Result<(), Refusal> {
    let atomics = on.limits().atomics;
    let what = match atomics.find(request.form, request.datatype, request.op)? {
        Asked::Write => AtomicOp::Write(request.operand?.read()?),
        Asked::Add => AtomicOp::Add(request.operand?.read()?),
        Asked::Read => AtomicOp::Add(0),
        Asked::CompareSwap => AtomicOp::CompareSwap {
            expected: request.compare?.read()?,
            new: request.operand?.read()?,
        },
    };
    let fetches = request.form != Form::Plain;
    let result = request.result?;
    if fetches && (result.at.is_null() || result.at.addr() % WORD != 0) {
        let refusal = Refusal::new(Errno::EINVAL, c"no eight bytes for the result");
        return Err(refusal.value(widen(result.at.addr())));
    }
    let bytes = buffer(result.at, if fetches { WORD } else { 0 });
    let call = Call {
        buffers: Buffers::one(&bytes, &result.desc)?,
        remote: Remote::From {
            address: request.address,
            key: request.key,
        },
        flags: request.flags,
        data: None,
        context: request.context,
    };
    posting::post(on, &Kind::Atomic { what, fetches }, &call)
}

/// Does a call on the endpoint that C gives, and reports a refusal.
///
/// # Safety
///
/// As the C API demands: `ep` is an open endpoint of this core.
pub(super) unsafe fn call(ep: *mut kfid_ep, request: Result<Request, Refusal>) -> isize {
    // SAFETY: By the requirements of this function.
    unsafe { posting::on(ep, |target| post(target, request?)) }
}
