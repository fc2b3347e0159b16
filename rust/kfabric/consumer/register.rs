// SPDX-License-Identifier: GPL-2.0

//! The registration calls of a domain.

use super::{
    call::{
        self,
        op, //
    },
    memory::List,
    Backing,
    BioVecList,
    BioVecs,
    Buffer,
    Domain,
    Formed,
    MappedList,
    Mr,
    Pages,
    RegisterError,
    Segments, //
};
use crate::{
    region::access::Access,
    support::errno::Errno, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    sync::Arc, //
};
use kfi_bindings::{
    kfi_iov_type_KFI_BVEC as BVEC,
    kfi_iov_type_KFI_KVEC as KVEC,
    kfi_iov_type_KFI_SGL as SGL,
    kfi_mr_attr,
    kfi_mr_attr__bindgen_ty_1 as RawList,
    kfi_ops_mr,
    kfid_mr, //
};

/// What is asked of a region. Access rights alone make such options, too.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    access: Access,
    requested_key: u64,
    flags: u64,
    context: usize,
}

impl Options {
    /// Asks for these rights.
    pub const fn new(access: Access) -> Self {
        Self {
            access,
            requested_key: 0,
            flags: 0,
            context: 0,
        }
    }

    /// Asks for this key; ignored where the provider chooses keys
    /// ([`MrMode::PROV_KEY`](super::MrMode::PROV_KEY)).
    pub const fn requested_key(self, requested_key: u64) -> Self {
        Self {
            requested_key,
            ..self
        }
    }

    /// Sets flags of the provider's.
    pub const fn flags(self, flags: u64) -> Self {
        Self { flags, ..self }
    }

    /// Sets what the region's event, or failure, has as its
    /// [`context`](super::Entry::context): a number of the consumer's, by which it knows what the
    /// event is about. 0 if none is set.
    pub const fn context(self, context: usize) -> Self {
        Self { context, ..self }
    }

    /// The flags.
    pub(super) const fn raw_flags(&self) -> u64 {
        self.flags
    }

    /// The context as C hands it through, which follows it nowhere.
    const fn raw_context(&self) -> *mut c_void {
        ptr::without_provenance_mut(self.context)
    }
}

impl From<Access> for Options {
    fn from(access: Access) -> Self {
        Self::new(access)
    }
}

/// Returns what a call that registers a region returned, and left behind.
///
/// # Errors
///
/// - `ENOTRECOVERABLE`: the provider has succeeded but left no region behind. A peer may reach the memory,
///   and nobody can close a region of it.
pub(super) fn registered(ret: c_int, mr: *mut kfid_mr) -> Result<NonNull<kfid_mr>, Errno> {
    call::result(ret)?;
    NonNull::new(mr).ok_or(Errno::ENOTRECOVERABLE)
}

/// Memory that [`regbv`](Domain::regbv) takes.
pub trait InPages: Backing {}

impl InPages for Pages {}
impl<B: BioVecs> InPages for BioVecList<B> {}

/// Registering memory. All of these may sleep, and are safe on the way of I/O.
///
/// Each takes over the memory, and gives it back with the error if it fails.
///
/// # Errors
///
/// - `EINVAL`: memory of no length, or segments with a gap between them where the device can't have
///   one.
/// - `EBADFLAGS`: flags that the provider doesn't know.
/// - `EFAULT`: memory that can't be registered.
/// - `E2BIG`: more segments or pages than one region of the device can have.
/// - `ENOSPC`: the regions are used up.
/// - `EIO`: the memory can't be mapped.
/// - `ENOMEM`.
/// - `ENODEV`: the device is gone.
/// - `ENOTRECOVERABLE`: the device won't let go of the memory, or the provider has succeeded without a
///   region. The memory is leaked.
impl Domain {
    /// `kfi_mr_reg()`: registers one buffer.
    pub fn reg<B: Buffer>(
        self: &Arc<Self>,
        buffer: B,
        options: impl Into<Options>,
    ) -> Result<Mr<B>, RegisterError<B>> {
        self.register(buffer, options.into())
    }

    /// `kfi_mr_regv()`: registers a list of buffers.
    pub fn regv<B: Buffer>(
        self: &Arc<Self>,
        segments: Segments<B>,
        options: impl Into<Options>,
    ) -> Result<Mr<Segments<B>>, RegisterError<Segments<B>>> {
        self.register(segments, options.into())
    }

    /// `kfi_mr_regbv()`: registers pages.
    ///
    /// # Errors
    ///
    /// - `EINVAL`, besides: it is to be written, and may not be.
    pub fn regbv<B: InPages>(
        self: &Arc<Self>,
        pages: B,
        options: impl Into<Options>,
    ) -> Result<Mr<B>, RegisterError<B>> {
        self.register(pages, options.into())
    }

    /// `kfi_mr_regsgl()`: registers a mapped scatterlist.
    ///
    /// # Errors
    ///
    /// - `EINVAL`, besides: it was mapped for another domain, or for other rights.
    pub fn regsgl(
        self: &Arc<Self>,
        list: MappedList,
        options: impl Into<Options>,
    ) -> Result<Mr<MappedList>, RegisterError<MappedList>> {
        self.register(list, options.into())
    }

    /// `kfi_mr_reg()`, `regv()`, `regbv()` or `regsgl()`: registers memory by the call that its form is for.
    ///
    /// # Errors
    ///
    /// - `EINVAL`, besides: it is to be written, and may not be; a scatterlist that was mapped for another
    ///   domain, or for other rights; a buffer that isn't in one piece.
    pub fn reg_formed<V: BioVecs>(
        self: &Arc<Self>,
        memory: Formed<V>,
        options: impl Into<Options>,
    ) -> Result<Mr<Formed<V>>, RegisterError<Formed<V>>> {
        self.register(memory, options.into())
    }

    /// `kfi_mr_regattr()`: registers memory of any kind, with an authorization key if one is given.
    pub fn regattr<B: Backing>(
        self: &Arc<Self>,
        memory: B,
        options: impl Into<Options>,
        auth_key: Option<&[u8]>,
    ) -> Result<Mr<B>, RegisterError<B>> {
        let options = options.into();
        Mr::open(self, memory, options.access, |list| {
            self.call_regattr(list, options, auth_key)
        })
    }

    /// Registers memory by the call that goes with it.
    fn register<B: Backing>(
        self: &Arc<Self>,
        memory: B,
        options: Options,
    ) -> Result<Mr<B>, RegisterError<B>> {
        Mr::open(self, memory, options.access, |list| {
            self.call(list, options)
        })
    }

    fn call(&self, list: List<'_>, options: Options) -> Result<NonNull<kfid_mr>, Errno> {
        let fid = self.fid();
        let mut mr = ptr::null_mut();
        /// What the four calls have in common.
        macro_rules! call {
            ($op:ident($first:expr, $count:expr)) => {
                op!(
                    (*self.as_raw()).mr,
                    kfi_ops_mr,
                    $op(
                        fid,
                        $first,
                        $count,
                        options.access.bits(),
                        0,
                        options.requested_key,
                        options.flags,
                        &mut mr,
                        options.raw_context(),
                    )
                )
            };
        }
        // SAFETY: The domain is open; the list and `mr` are valid for the call.
        let ret = unsafe {
            match list {
                List::Buffer(kvec) => call!(reg(kvec.iov_base, kvec.iov_len)),
                List::Kvec(list) => call!(regv(list.as_ptr(), list.len())),
                List::Bvec(list) => call!(regbv(list.as_ptr(), list.len())),
                List::Sgl(first, count) => call!(regsgl(first.as_ptr(), count)),
            }
        }?;
        registered(ret, mr)
    }

    fn call_regattr(
        &self,
        list: List<'_>,
        options: Options,
        auth_key: Option<&[u8]>,
    ) -> Result<NonNull<kfid_mr>, Errno> {
        let attr = attributes(&list, &options, auth_key);
        let mut mr = ptr::null_mut();
        // SAFETY: The domain is open; the attributes, the list, the key and `mr` are valid for the
        // call, which changes the last only.
        let ret = unsafe {
            op!(
                (*self.as_raw()).mr,
                kfi_ops_mr,
                regattr(self.fid(), &attr, options.flags, &mut mr)
            )
        }?;
        registered(ret, mr)
    }
}

/// The attributes of a region, which are valid as long as the list and the key.
pub(super) fn attributes(
    list: &List<'_>,
    options: &Options,
    auth_key: Option<&[u8]>,
) -> kfi_mr_attr {
    let (type_, list, iov_count) = match list {
        List::Buffer(kvec) => (KVEC, RawList { mr_iov: kvec }, 1),
        List::Kvec(list) => (
            KVEC,
            RawList {
                mr_iov: list.as_ptr(),
            },
            list.len(),
        ),
        List::Bvec(list) => (
            BVEC,
            RawList {
                mr_biov: list.as_ptr(),
            },
            list.len(),
        ),
        List::Sgl(first, count) => (
            SGL,
            RawList {
                mr_sgl: first.as_ptr(),
            },
            *count,
        ),
    };
    kfi_mr_attr {
        type_,
        __bindgen_anon_1: list,
        iov_count,
        access: options.access.bits(),
        offset: 0,
        requested_key: options.requested_key,
        context: options.raw_context(),
        auth_key_size: auth_key.map_or(0, <[u8]>::len),
        auth_key: auth_key.map_or(ptr::null_mut(), |key| key.as_ptr().cast_mut()),
    }
}
