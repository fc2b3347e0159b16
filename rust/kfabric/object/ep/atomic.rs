// SPDX-License-Identifier: GPL-2.0

//! Atomic operations on the peer's memory: the slots of `struct kfi_ops_atomic`.
//!
//! The caller may be in any context. The slots copy the operands when they post, so operands may be in any
//! memory, and the slots ignore their descriptors. They ignore the peer's address, because an endpoint has
//! one peer.

use super::{
    posting::{
        post,
        with_target,
        CallFlags,
        RemoteArg,
        Target,
        TransferArgs, //
    },
    EndpointObject, //
};
use crate::{
    object::prelude::*,
    post::{
        injected::copy_nofault,
        AtomicKind, //
    }, //
};

/// The slots for atomic operations.
pub(super) static ATOMIC: Table<c::kfi_ops_atomic> = Table(c::kfi_ops_atomic {
    size: size_of::<c::kfi_ops_atomic>(),
    write: Some(write),
    writev: Some(writev),
    writemsg: Some(writemsg),
    inject: Some(inject),
    readwrite: Some(readwrite),
    readwritev: Some(readwritev),
    readwritemsg: Some(readwritemsg),
    compwrite: Some(compwrite),
    compwritev: Some(compwritev),
    compwritemsg: Some(compwritemsg),
    writevalid: Some(writevalid),
    readwritevalid: Some(readwritevalid),
    compwritevalid: Some(compwritevalid),
});

/// Checks that `count` is one.
///
/// # Errors
///
/// - `EINVAL`: it is 0.
/// - `E2BIG`: it is more than 1.
fn one(count: usize) -> Result<(), Refusal> {
    match count {
        0 => Err(Refusal::new(Errno::EINVAL, c"no element")),
        1 => Ok(()),
        _ => {
            let refusal = Refusal::new(Errno::E2BIG, c"more than one element");
            Err(refusal.value(widen(count)))
        }
    }
}

/// Eight bytes of local memory: an operand or the result.
#[derive(Clone, Copy)]
struct Word {
    at: *mut c_void,
    desc: *mut c_void,
}

impl Word {
    /// The word of a call that lacks the argument.
    const NONE: Result<Self, Refusal> = Ok(Self {
        at: ptr::null_mut(),
        desc: ptr::null_mut(),
    });

    /// Returns the memory of `count` elements, which must be one.
    ///
    /// # Errors
    ///
    /// The errors of [`one`].
    fn new(at: *const c_void, count: usize, desc: *mut c_void) -> Result<Self, Refusal> {
        one(count)?;
        let at = at.cast_mut();
        Ok(Self { at, desc })
    }

    /// Returns the memory of the only entry of a list.
    ///
    /// # Errors
    ///
    /// - The errors of [`one`].
    /// - `EINVAL`: `list` is NULL.
    ///
    /// # Safety
    ///
    /// `list` and `descs` are null or have `count` entries.
    unsafe fn listed(
        list: *const c::kfi_ioc,
        descs: *mut *mut c_void,
        count: usize,
    ) -> Result<Self, Refusal> {
        one(count)?;
        // SAFETY: `list` is null or has one entry.
        let ioc = unsafe { list.as_ref() }.ok_or(Refusal::NULL)?;
        // SAFETY: `descs` is null or has one entry.
        let desc = unsafe { descs.as_ref() }.copied();
        Self::new(ioc.addr, ioc.count, desc.unwrap_or(ptr::null_mut()))
    }

    /// Copies the bytes.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the address is NULL.
    /// - `EFAULT`: there is no memory at the address.
    fn read(self) -> Result<u64, Refusal> {
        if self.at.is_null() {
            return Err(Refusal::NULL);
        }
        let mut bytes = [0; WORD];
        copy_nofault(&mut bytes, self.at)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

/// The arguments of an atomic operation.
struct AtomicArgs {
    form: AtomicForm,
    datatype: c::kfi_datatype,
    op: c::kfi_op,
    operand: Result<Word, Refusal>,
    compare: Result<Word, Refusal>,
    result: Result<Word, Refusal>,
    address: u64,
    key: u64,
    flags: CallFlags,
    context: *mut c_void,
}

impl AtomicArgs {
    /// Posts the operation.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: the endpoint doesn't support the operation.
    /// - `EINVAL`: an operand is NULL; the result is NULL or not at a multiple of eight.
    /// - `EFAULT`: there is no memory at the address of an operand.
    /// - The errors of [`post`].
    fn post(self, on: Target<'_>) -> Result<(), Refusal> {
        let atomics = on.limits.atomics;
        let what = match atomics.find(self.form, self.datatype, self.op)? {
            AtomicKind::Write => AtomicOp::Write(self.operand?.read()?),
            AtomicKind::Add => AtomicOp::Add(self.operand?.read()?),
            AtomicKind::Read => AtomicOp::Add(0),
            AtomicKind::CompareSwap => AtomicOp::CompareSwap {
                expected: self.compare?.read()?,
                new: self.operand?.read()?,
            },
        };
        let fetches = self.form != AtomicForm::Plain;
        let result = self.result?;
        if fetches && (result.at.is_null() || result.at.addr() % WORD != 0) {
            let refusal = Refusal::new(Errno::EINVAL, c"no eight bytes for the result");
            return Err(refusal.value(widen(result.at.addr())));
        }
        let bytes = kvec {
            iov_base: result.at,
            iov_len: if fetches { WORD } else { 0 },
        };
        let args = TransferArgs {
            buffers: Buffers::one(&bytes, &result.desc)?,
            remote: RemoteArg::At {
                address: self.address,
                key: self.key,
            },
            flags: self.flags,
            data: None,
            context: self.context,
        };
        post(on, Op::Atomic { what, fetches }, &args)
    }
}

/// Defines slots by the arguments that only one slot has. The expressions are the form of the operation, its
/// operand, the value to compare with, and the memory for the result.
macro_rules! slots {
    ($($name:ident($($arg:ident: $type:ty),*) = $form:expr, $operand:expr, $compare:expr, $result:expr;)*) => {
        $(
            /// Posts an atomic operation.
            ///
            /// # Safety
            ///
            /// - `ep` is an open object.
            /// - Lists are null or have as many entries as their counts say.
            unsafe extern "C" fn $name(
                ep: *mut kfid_ep,
                $($arg: $type,)*
                _peer: c::kfi_addr_t,
                address: u64,
                key: u64,
                datatype: c::kfi_datatype,
                op: c::kfi_op,
                context: *mut c_void,
            ) -> isize {
                // SAFETY: `ep` is an open object, and each list has as many entries as its count says.
                unsafe {
                    let args = AtomicArgs {
                        form: $form,
                        datatype,
                        op,
                        operand: $operand,
                        compare: $compare,
                        result: $result,
                        address,
                        key,
                        flags: CallFlags::Default,
                        context,
                    };
                    with_target(ep, || c"atomic", |target| args.post(target).map(|()| 0))
                }
            }
        )*
    };
}

slots! {
    write(buf: *const c_void, count: usize, desc: *mut c_void) =
        AtomicForm::Plain, Word::new(buf, count, desc), Word::NONE, Word::NONE;
    writev(iov: *const c::kfi_ioc, desc: *mut *mut c_void, count: usize) =
        AtomicForm::Plain, Word::listed(iov, desc, count), Word::NONE, Word::NONE;
    readwrite(
        buf: *const c_void, count: usize, desc: *mut c_void,
        result: *mut c_void, result_desc: *mut c_void
    ) =
        AtomicForm::Fetch,
        Word::new(buf, count, desc), Word::NONE, Word::new(result, count, result_desc);
    readwritev(
        iov: *const c::kfi_ioc, desc: *mut *mut c_void, count: usize,
        resultv: *mut c::kfi_ioc, result_desc: *mut *mut c_void, result_count: usize
    ) =
        AtomicForm::Fetch,
        Word::listed(iov, desc, count),
        Word::NONE,
        Word::listed(resultv, result_desc, result_count);
    compwrite(
        buf: *const c_void, count: usize, desc: *mut c_void,
        compare: *const c_void, compare_desc: *mut c_void,
        result: *mut c_void, result_desc: *mut c_void
    ) =
        AtomicForm::Compare,
        Word::new(buf, count, desc),
        Word::new(compare, count, compare_desc),
        Word::new(result, count, result_desc);
    compwritev(
        iov: *const c::kfi_ioc, desc: *mut *mut c_void, count: usize,
        comparev: *const c::kfi_ioc, compare_desc: *mut *mut c_void, compare_count: usize,
        resultv: *mut c::kfi_ioc, result_desc: *mut *mut c_void, result_count: usize
    ) =
        AtomicForm::Compare,
        Word::listed(iov, desc, count),
        Word::listed(comparev, compare_desc, compare_count),
        Word::listed(resultv, result_desc, result_count);
}

/// Posts an atomic operation without a completion.
///
/// # Safety
///
/// `ep` is an open object.
unsafe extern "C" fn inject(
    ep: *mut kfid_ep,
    buf: *const c_void,
    count: usize,
    _peer: c::kfi_addr_t,
    address: u64,
    key: u64,
    datatype: c::kfi_datatype,
    op: c::kfi_op,
) -> isize {
    let args = AtomicArgs {
        form: AtomicForm::Plain,
        datatype,
        op,
        operand: Word::new(buf, count, ptr::null_mut()),
        compare: Word::NONE,
        result: Word::NONE,
        address,
        key,
        flags: CallFlags::Inject,
        context: ptr::null_mut(),
    };
    // SAFETY: `ep` is an open object.
    unsafe { with_target(ep, || c"atomic", |target| args.post(target).map(|()| 0)) }
}

/// Posts the atomic operation that a structure describes.
///
/// # Safety
///
/// - `ep` is an open object.
/// - `msg` is null or valid for the call.
/// - Lists in `msg` are null or have as many entries as `msg` says.
unsafe fn post_msg(
    ep: *mut kfid_ep,
    msg: *const c::kfi_msg_atomic,
    flags: u64,
    form: AtomicForm,
    compare: Result<Word, Refusal>,
    result: Result<Word, Refusal>,
) -> isize {
    let args = || -> Result<AtomicArgs, Refusal> {
        // SAFETY: `msg` is null or valid for the call, and its lists have as many entries as it
        // says.
        unsafe {
            let msg = msg.as_ref().ok_or(Refusal::NULL)?;
            one(msg.rma_iov_count)?;
            let at = msg.rma_iov.as_ref().ok_or(Refusal::NULL)?;
            one(at.count)?;
            Ok(AtomicArgs {
                form,
                datatype: msg.datatype,
                op: msg.op,
                operand: Word::listed(msg.msg_iov, msg.desc, msg.iov_count),
                compare,
                result,
                address: at.addr,
                key: at.key,
                flags: CallFlags::Given(flags),
                context: msg.context,
            })
        }
    };
    // SAFETY: `ep` is an open object.
    unsafe { with_target(ep, || c"atomic", |target| args()?.post(target).map(|()| 0)) }
}

/// Posts an operation that returns nothing.
///
/// # Safety
///
/// - `ep` is an open object.
/// - `msg` is null or valid for the call, and its lists have as many entries as it says.
unsafe extern "C" fn writemsg(
    ep: *mut kfid_ep,
    msg: *const c::kfi_msg_atomic,
    flags: u64,
) -> isize {
    // SAFETY: `ep` is an open object; `msg` is null or valid for the call with its lists.
    unsafe { post_msg(ep, msg, flags, AtomicForm::Plain, Word::NONE, Word::NONE) }
}

/// Posts an operation that returns the old value.
///
/// # Safety
///
/// - `ep` is an open object.
/// - `msg` is null or valid for the call, and its lists have as many entries as it says.
/// - `resultv` and `result_desc` are null or have `result_count` entries.
unsafe extern "C" fn readwritemsg(
    ep: *mut kfid_ep,
    msg: *const c::kfi_msg_atomic,
    resultv: *mut c::kfi_ioc,
    result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: `resultv` and `result_desc` are null or have `result_count` entries.
    let result = unsafe { Word::listed(resultv, result_desc, result_count) };
    // SAFETY: `ep` is an open object; `msg` is null or valid for the call with its lists.
    unsafe { post_msg(ep, msg, flags, AtomicForm::Fetch, Word::NONE, result) }
}

/// Posts an operation that compares first and returns the old value.
///
/// # Safety
///
/// - `ep` is an open object.
/// - `msg` is null or valid for the call, and its lists have as many entries as it says.
/// - `comparev` and `compare_desc` are null or have `compare_count` entries.
/// - `resultv` and `result_desc` are null or have `result_count` entries.
unsafe extern "C" fn compwritemsg(
    ep: *mut kfid_ep,
    msg: *const c::kfi_msg_atomic,
    comparev: *const c::kfi_ioc,
    compare_desc: *mut *mut c_void,
    compare_count: usize,
    resultv: *mut c::kfi_ioc,
    result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: `comparev` and `compare_desc` are null or have `compare_count` entries.
    let compare = unsafe { Word::listed(comparev, compare_desc, compare_count) };
    // SAFETY: `resultv` and `result_desc` are null or have `result_count` entries.
    let result = unsafe { Word::listed(resultv, result_desc, result_count) };
    // SAFETY: `ep` is an open object; `msg` is null or valid for the call with its lists.
    unsafe { post_msg(ep, msg, flags, AtomicForm::Compare, compare, result) }
}

/// Defines the slots that query whether an operation is supported.
macro_rules! valid_slots {
    ($($name:ident = $form:expr;)*) => {
        $(
            /// Checks whether an operation is supported, and writes the number of elements that it takes.
            ///
            /// # Safety
            ///
            /// - `ep` is an open object.
            /// - `count` is null or valid for writes.
            unsafe extern "C" fn $name(
                ep: *mut kfid_ep,
                datatype: c::kfi_datatype,
                op: c::kfi_op,
                count: *mut usize,
            ) -> c_int {
                // SAFETY: `ep` is open for the call, and a `kfid_ep` begins with its fid.
                let endpoint = unsafe { EndpointObject::from_fid(ep.cast()) };
                let found = endpoint.and_then(|endpoint| {
                    let atomics = endpoint.transferring()?.limits.atomics;
                    atomics.find($form, datatype, op)?;
                    // SAFETY: `count` is null or valid for writes.
                    *unsafe { count.as_mut() }.ok_or(Refusal::NULL)? = 1;
                    Ok(())
                });
                // SAFETY: `ep` is open for the call, and a `kfid_ep` begins with its fid.
                unsafe { EndpointObject::answer(ep.cast(), c"atomic_valid", found.map(|()| 0)) }
            }
        )*
    };
}

valid_slots! {
    writevalid = AtomicForm::Plain;
    readwritevalid = AtomicForm::Fetch;
    compwritevalid = AtomicForm::Compare;
}
