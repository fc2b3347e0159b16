// SPDX-License-Identifier: GPL-2.0

//! Messages and RMA: the slots of `struct kfi_ops_msg` and `struct kfi_ops_rma`.
//!
//! A slot is an instance of a generic function for its kind of transfer and its type of list. The caller
//! may be in any context. The slots ignore the peer's address, because an endpoint has one peer.

use super::posting::{
    post_on,
    CallFlags,
    RemoteArg,
    TransferArgs, //
};
use crate::{
    object::prelude::*,
    post::MAX_REMOTE, //
};

/// The slots for messages.
pub(super) static MSG: Table<c::kfi_ops_msg> = Table(c::kfi_ops_msg {
    size: size_of::<c::kfi_ops_msg>(),
    recv: Some(msg::buffer::<ReceiveKind, _>),
    recvv: Some(msg::list::<ReceiveKind, _>),
    recvbv: Some(msg::list::<ReceiveKind, _>),
    recvmsg: Some(by_msg::<ReceiveKind>),
    send: Some(msg::buffer::<SendKind, _>),
    sendv: Some(msg::list::<SendKind, _>),
    sendbv: Some(msg::list::<SendKind, _>),
    sendmsg: Some(by_msg::<SendKind>),
    inject: Some(msg::inject::<SendKind>),
    senddata: Some(msg::data::<SendKind>),
    injectdata: Some(msg::injectdata::<SendKind>),
    recvsgl: Some(msg::list::<ReceiveKind, _>),
    sendsgl: Some(msg::list::<SendKind, _>),
});

/// The slots for RMA.
pub(super) static RMA: Table<c::kfi_ops_rma> = Table(c::kfi_ops_rma {
    size: size_of::<c::kfi_ops_rma>(),
    read: Some(rma::buffer::<ReadKind, _>),
    readv: Some(rma::list::<ReadKind, _>),
    readbv: Some(rma::list::<ReadKind, _>),
    readmsg: Some(by_msg_rma::<ReadKind>),
    write: Some(rma::buffer::<WriteKind, _>),
    writev: Some(rma::list::<WriteKind, _>),
    writebv: Some(rma::list::<WriteKind, _>),
    writemsg: Some(by_msg_rma::<WriteKind>),
    inject: Some(rma::inject::<WriteKind>),
    writedata: Some(rma::data::<WriteKind>),
    injectdata: Some(rma::injectdata::<WriteKind>),
    readsgl: Some(rma::list::<ReadKind, _>),
    writesgl: Some(rma::list::<WriteKind, _>),
});

/// A kind of transfer as a type parameter.
trait TypedKind {
    const OP: Op;
}

/// A pointer to one buffer, as C declares it.
trait BufferPointer {
    fn start(self) -> *mut c_void;
}

/// A type of the entries of a list.
trait ListEntry: Sized {
    const TYPE: c::kfi_iov_type;
}

macro_rules! implement {
    ($($type:ident: $trait:ident, $const:ident: $of:ty = $value:expr;)*) => {
        $(impl $trait for $type {
            const $const: $of = $value;
        })*
    };
}

enum SendKind {}
enum ReceiveKind {}
enum ReadKind {}
enum WriteKind {}

implement! {
    SendKind: TypedKind, OP: Op = Op::Send { data: None, invalidates: None };
    ReceiveKind: TypedKind, OP: Op = Op::Receive;
    ReadKind: TypedKind, OP: Op = Op::Read;
    WriteKind: TypedKind, OP: Op = Op::Write { data: None };
    kvec: ListEntry, TYPE: c::kfi_iov_type = c::kfi_iov_type_KFI_KVEC;
    bio_vec: ListEntry, TYPE: c::kfi_iov_type = c::kfi_iov_type_KFI_BVEC;
    scatterlist: ListEntry, TYPE: c::kfi_iov_type = c::kfi_iov_type_KFI_SGL;
}

impl BufferPointer for *mut c_void {
    fn start(self) -> *mut c_void {
        self
    }
}

impl BufferPointer for *const c_void {
    fn start(self) -> *mut c_void {
        self.cast_mut()
    }
}

/// Posts a transfer of one buffer, given by address, length in bytes, and descriptor.
///
/// # Safety
///
/// `ep` must be an open object.
unsafe fn post_buffer<T: TypedKind>(
    ep: *mut kfid_ep,
    (buf, len, desc): (impl BufferPointer, usize, *mut c_void),
    remote: RemoteArg<'_>,
    flags: CallFlags,
    data: Option<u64>,
    context: *mut c_void,
) -> isize {
    let kvec = kvec {
        iov_base: buf.start(),
        iov_len: len,
    };
    let args = Buffers::one(&kvec, &desc).map(|buffers| TransferArgs {
        buffers,
        remote,
        flags,
        data,
        context,
    });
    // SAFETY: `ep` is an open object.
    unsafe { post_on(ep, T::OP, args) }
}

/// Defines the slots whose arguments differ in the peer's memory only. `$remote` is that memory, made of
/// the arguments `$arg`.
macro_rules! slots {
    ($remote:expr $(, $arg:ident)*) => {
        /// Transfers one buffer: `recv`, `send`, `read`, `write`.
        ///
        /// # Safety
        ///
        /// `ep` is an open object.
        pub(super) unsafe extern "C" fn buffer<T: TypedKind, P: BufferPointer>(
            ep: *mut kfid_ep,
            buf: P,
            len: usize,
            desc: *mut c_void,
            _peer: c::kfi_addr_t,
            $($arg: u64,)*
            context: *mut c_void,
        ) -> isize {
            let buffer = (buf, len, desc);
            // SAFETY: `ep` is an open object.
            unsafe { post_buffer::<T>(ep, buffer, $remote, CallFlags::Default, None, context) }
        }

        /// Transfers a list: `recvv`, `sendbv`, `readsgl` and similar slots.
        ///
        /// # Safety
        ///
        /// - `ep` is an open object.
        /// - `list` and `descs` are null or have `count` entries for the call.
        pub(super) unsafe extern "C" fn list<T: TypedKind, E: ListEntry>(
            ep: *mut kfid_ep,
            list: *const E,
            descs: *mut *mut c_void,
            count: usize,
            _peer: c::kfi_addr_t,
            $($arg: u64,)*
            context: *mut c_void,
        ) -> isize {
            // SAFETY: `list` and `descs` are null or have `count` entries for the call, and `E` is the type
            // of the entries of `list`.
            let buffers = unsafe { Buffers::list(E::TYPE, list.cast(), descs, count) };
            let args = buffers.map(|buffers| TransferArgs {
                buffers,
                remote: $remote,
                flags: CallFlags::Default,
                data: None,
                context,
            });
            // SAFETY: `ep` is an open object.
            unsafe { post_on(ep, T::OP, args) }
        }

        /// Transfers one buffer that the caller may reuse after the return: `inject`.
        ///
        /// # Safety
        ///
        /// `ep` is an open object.
        pub(super) unsafe extern "C" fn inject<T: TypedKind>(
            ep: *mut kfid_ep,
            buf: *const c_void,
            len: usize,
            _peer: c::kfi_addr_t,
            $($arg: u64,)*
        ) -> isize {
            let buffer = (buf, len, null_mut());
            // SAFETY: `ep` is an open object.
            unsafe { post_buffer::<T>(ep, buffer, $remote, CallFlags::Inject, None, null_mut()) }
        }

        /// Transfers one buffer with immediate data: `senddata`, `writedata`.
        ///
        /// # Safety
        ///
        /// `ep` is an open object.
        pub(super) unsafe extern "C" fn data<T: TypedKind>(
            ep: *mut kfid_ep,
            buf: *const c_void,
            len: usize,
            desc: *mut c_void,
            data: u64,
            _peer: c::kfi_addr_t,
            $($arg: u64,)*
            context: *mut c_void,
        ) -> isize {
            let buffer = (buf, len, desc);
            // SAFETY: `ep` is an open object.
            unsafe { post_buffer::<T>(ep, buffer, $remote, CallFlags::Default, Some(data), context) }
        }

        /// Transfers one buffer with immediate data, which the caller may reuse after the return:
        /// `injectdata`.
        ///
        /// # Safety
        ///
        /// `ep` is an open object.
        pub(super) unsafe extern "C" fn injectdata<T: TypedKind>(
            ep: *mut kfid_ep,
            buf: *const c_void,
            len: usize,
            data: u64,
            _peer: c::kfi_addr_t,
            $($arg: u64,)*
        ) -> isize {
            let buffer = (buf, len, null_mut());
            // SAFETY: `ep` is an open object.
            unsafe { post_buffer::<T>(ep, buffer, $remote, CallFlags::Inject, Some(data), null_mut()) }
        }
    };
}

mod msg {
    use super::*;
    slots!(RemoteArg::Absent);
}

mod rma {
    use super::*;
    slots!(RemoteArg::At { address, key }, address, key);
}

/// Reads the arguments of a transfer from a `struct kfi_msg` or `struct kfi_msg_rma`.
macro_rules! args_of {
    ($msg:expr, $remote:expr, $flags:expr) => {
        Buffers::list(
            $msg.type_,
            $msg.__bindgen_anon_1.msg_iov.cast(),
            $msg.desc,
            $msg.iov_count,
        )
        .map(|buffers| TransferArgs {
            buffers,
            remote: $remote,
            flags: CallFlags::Given($flags),
            data: Some($msg.data),
            context: $msg.context,
        })
    };
}

/// Transfers the message that a structure describes: `recvmsg`, `sendmsg`.
///
/// # Safety
///
/// - `ep` is an open object.
/// - `msg` is null, an error pointer, or valid for the call.
/// - Lists in `msg` are null or have as many entries as `msg` says.
unsafe extern "C" fn by_msg<T: TypedKind>(
    ep: *mut kfid_ep,
    msg: *const c::kfi_msg,
    flags: u64,
) -> isize {
    // SAFETY: `msg` is null, an error pointer, or valid for the call.
    let msg = unsafe { c_ref(msg) }.ok_or(Refusal::NULL);
    // SAFETY: The list and the descriptors are null or have `iov_count` entries. All members of the union
    // are pointers.
    let args = msg.and_then(|msg| unsafe { args_of!(msg, RemoteArg::Absent, flags) });
    // SAFETY: `ep` is an open object.
    unsafe { post_on(ep, T::OP, args) }
}

/// Returns the peer's memory of an RMA transfer.
///
/// # Errors
///
/// - `EINVAL`: there is no range, or there are more than any endpoint takes.
///
/// # Safety
///
/// `rma_iov` is null or has `rma_iov_count` entries for the lifetime of `msg`.
unsafe fn remote_of(msg: &c::kfi_msg_rma) -> Result<RemoteArg<'_>, Refusal> {
    if msg.rma_iov_count == 0 || msg.rma_iov_count > MAX_REMOTE {
        let refusal = Refusal::new(Errno::EINVAL, c"no rma_iov, or more than rma_iov_limit");
        return Err(refusal.value(widen(msg.rma_iov_count)));
    }
    if msg.rma_iov.is_null() {
        return Err(Refusal::NULL);
    }
    // SAFETY: `rma_iov` isn't null, so it has `rma_iov_count` entries, which is at most `MAX_REMOTE`.
    let ranges = unsafe { slice::from_raw_parts(msg.rma_iov, msg.rma_iov_count) };
    Ok(RemoteArg::Ranges(ranges))
}

/// Transfers the data that a structure describes: `readmsg`, `writemsg`.
///
/// # Safety
///
/// - `ep` is an open object.
/// - `msg` is null, an error pointer, or valid for the call.
/// - Lists in `msg` are null or have as many entries as `msg` says.
unsafe extern "C" fn by_msg_rma<T: TypedKind>(
    ep: *mut kfid_ep,
    msg: *const c::kfi_msg_rma,
    flags: u64,
) -> isize {
    // SAFETY: `msg` is null, an error pointer, or valid for the call.
    let msg = unsafe { c_ref(msg) }.ok_or(Refusal::NULL);
    // SAFETY: The lists are null or have as many entries as `msg` says. All members of the union are
    // pointers.
    let args = msg.and_then(|msg| unsafe {
        let remote = remote_of(msg)?;
        args_of!(msg, remote, flags)
    });
    // SAFETY: `ep` is an open object.
    unsafe { post_on(ep, T::OP, args) }
}
