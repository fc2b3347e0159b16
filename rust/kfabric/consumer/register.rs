// SPDX-License-Identifier: GPL-2.0

//! The registration calls of a domain.

use super::{
    memory::MemoryList,
    *, //
};
use kfi_bindings::{
    kfi_iov_type_KFI_BVEC as BVEC,
    kfi_iov_type_KFI_KVEC as KVEC,
    kfi_iov_type_KFI_SGL as SGL,
    kfi_mr_attr__bindgen_ty_1 as RawList, //
};

/// Options of a region. Converting access rights gives options with these rights.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    access: Access,
    requested_key: u64,
    flags: u64,
    context: usize,
}

impl Options {
    /// Creates options with these rights.
    pub const fn new(access: Access) -> Self {
        Self {
            access,
            requested_key: 0,
            flags: 0,
            context: 0,
        }
    }

    /// Sets the key. Providers that choose keys ([`MrMode::PROV_KEY`]) ignore it.
    pub const fn requested_key(self, requested_key: u64) -> Self {
        Self {
            requested_key,
            ..self
        }
    }

    /// Sets flags of the provider.
    pub const fn flags(self, flags: u64) -> Self {
        Self { flags, ..self }
    }

    /// Sets the [`context`](super::Entry::context) of the region's events, 0 by default. The
    /// consumer can use the number to find the region.
    pub const fn context(self, context: usize) -> Self {
        Self { context, ..self }
    }

    /// Returns the flags.
    pub(super) const fn raw_flags(&self) -> u64 {
        self.flags
    }

    /// Returns the context as a pointer for C, which never dereferences it.
    const fn raw_context(&self) -> *mut c_void {
        ptr::without_provenance_mut(self.context)
    }
}

impl From<Access> for Options {
    fn from(access: Access) -> Self {
        Self::new(access)
    }
}

/// Returns the region that a call registered, or its error.
///
/// # Errors
///
/// - `ENOTRECOVERABLE`: the provider returned success without a region. So a peer may reach the
///   memory, and nobody can close the region.
pub(super) fn registered(ret: c_int, mr: *mut kfid_mr) -> Result<NonNull<kfid_mr>, Errno> {
    handle::result(ret)?;
    NonNull::new(mr).ok_or(Errno::ENOTRECOVERABLE)
}

/// Memory that [`regbv`](Domain::regbv) takes.
pub trait InPages: Backing {}

impl InPages for Pages {}
impl<B: BioVecs> InPages for BioVecList<B> {}

/// Registers memory.
///
/// Each function takes the memory, and its error returns the memory.
///
/// # Context
///
/// Process context. May sleep, but not for I/O.
///
/// # Errors
///
/// - `EINVAL`: the memory is empty, or has a gap between segments that the device doesn't support.
/// - `EBADFLAGS`: the provider doesn't know the flags.
/// - `EFAULT`: the memory can't be registered.
/// - `E2BIG`: the memory has more segments or pages than a region of the device can have.
/// - `ENOSPC`: the device has no more regions.
/// - `EIO`: the provider can't map the memory.
/// - `ENOMEM`.
/// - `ENODEV`: the device is removed.
/// - `ENOTRECOVERABLE`: the device may still access the memory, or the provider returned success
///   without a region. The memory is leaked.
impl Domain {
    /// Registers a buffer: `kfi_mr_reg()`.
    pub fn reg<B: Buffer>(
        self: &Arc<Self>,
        buffer: B,
        options: impl Into<Options>,
    ) -> Result<Mr<B>, RegisterError<B>> {
        self.register(buffer, options.into())
    }

    /// Registers a list of buffers: `kfi_mr_regv()`.
    pub fn regv<B: Buffer>(
        self: &Arc<Self>,
        segments: Segments<B>,
        options: impl Into<Options>,
    ) -> Result<Mr<Segments<B>>, RegisterError<Segments<B>>> {
        self.register(segments, options.into())
    }

    /// Registers pages: `kfi_mr_regbv()`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`, also: the memory isn't for these rights.
    pub fn regbv<B: InPages>(
        self: &Arc<Self>,
        pages: B,
        options: impl Into<Options>,
    ) -> Result<Mr<B>, RegisterError<B>> {
        self.register(pages, options.into())
    }

    /// Registers a mapped scatterlist: `kfi_mr_regsgl()`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`, also: the list was mapped for another domain, or for other rights.
    pub fn regsgl(
        self: &Arc<Self>,
        list: MappedList,
        options: impl Into<Options>,
    ) -> Result<Mr<MappedList>, RegisterError<MappedList>> {
        self.register(list, options.into())
    }

    /// Registers memory by the call for its form: `kfi_mr_reg()`, `regv()`, `regbv()` or
    /// `regsgl()`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`, also: the memory isn't for these rights.
    /// - `EINVAL`, also: a scatterlist was mapped for another domain, or for other rights.
    /// - `EINVAL`, also: a buffer has more than one bio_vec.
    pub fn reg_formed<V: BioVecs>(
        self: &Arc<Self>,
        memory: Formed<V>,
        options: impl Into<Options>,
    ) -> Result<Mr<Formed<V>>, RegisterError<Formed<V>>> {
        self.register(memory, options.into())
    }

    /// Registers memory of any type, with an optional authorization key: `kfi_mr_regattr()`.
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

    /// Registers memory by the call for its list.
    fn register<B: Backing>(
        self: &Arc<Self>,
        memory: B,
        options: Options,
    ) -> Result<Mr<B>, RegisterError<B>> {
        Mr::open(self, memory, options.access, |list| {
            self.call(list, options)
        })
    }

    fn call(&self, list: MemoryList<'_>, options: Options) -> Result<NonNull<kfid_mr>, Errno> {
        let fid = self.fid();
        let mut mr = ptr::null_mut();
        /// Calls one of the four operations.
        macro_rules! call {
            ($op:ident($first:expr, $count:expr)) => {
                op!(
                    (*self.as_raw()).mr,
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
        // SAFETY: The domain is open. The list is valid for the call, and `mr` is a local.
        let ret = unsafe {
            match list {
                MemoryList::Buffer(kvec) => call!(reg(kvec.iov_base, kvec.iov_len)),
                MemoryList::Kvec(list) => call!(regv(list.as_ptr(), list.len())),
                MemoryList::Bvec(list) => call!(regbv(list.as_ptr(), list.len())),
                MemoryList::Sgl(first, count) => call!(regsgl(first.as_ptr(), count)),
            }
        }?;
        registered(ret, mr)
    }

    fn call_regattr(
        &self,
        list: MemoryList<'_>,
        options: Options,
        auth_key: Option<&[u8]>,
    ) -> Result<NonNull<kfid_mr>, Errno> {
        let attr = attributes(&list, &options, auth_key);
        let mut mr = ptr::null_mut();
        // SAFETY: The domain is open. The list and the key, to which `attr` points, are valid for
        // the call, and only read. `mr` is a local.
        let ret = unsafe {
            op!(
                (*self.as_raw()).mr,
                regattr(self.fid(), &attr, options.flags, &mut mr)
            )
        }?;
        registered(ret, mr)
    }
}

/// Returns the attributes of a region. They are valid as long as the list and the key.
pub(super) fn attributes(
    list: &MemoryList<'_>,
    options: &Options,
    auth_key: Option<&[u8]>,
) -> kfi_mr_attr {
    let (type_, list, iov_count) = match list {
        MemoryList::Buffer(kvec) => (KVEC, RawList { mr_iov: kvec }, 1),
        MemoryList::Kvec(list) => (
            KVEC,
            RawList {
                mr_iov: list.as_ptr(),
            },
            list.len(),
        ),
        MemoryList::Bvec(list) => (
            BVEC,
            RawList {
                mr_biov: list.as_ptr(),
            },
            list.len(),
        ),
        MemoryList::Sgl(first, count) => (
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
