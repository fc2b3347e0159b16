// SPDX-License-Identifier: GPL-2.0

//! Memory in bio_vecs, for a registration call that the consumer selects.

use super::{
    error::unfit,
    mapped_list::{
        Mapping,
        SgTable, //
    },
    memory::{
        MemoryList,
        OwnedMemory, //
    },
    BioVecList,
    BioVecs,
    Domain,
    RegisterError, //
};
use crate::{
    prelude::*,
    region::access::Access, //
};
use kfi_bindings::{
    bio_vec,
    kvec, //
};

/// The form in which the memory is passed to C.
enum Form {
    BioVecs,
    Buffer,
    Buffers,
    Scatterlist(Mapping),
}

/// Memory in bio_vecs for the registration call of a selected form.
///
/// [`reg_formed`](Domain::reg_formed) calls the one for the form. [`regattr`](Domain::regattr)
/// takes any form. A consumer without a preference uses [`regbv`](Domain::regbv) with a
/// [`BioVecList`].
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Access, BioVecs, Domain, Formed, Mr};
///
/// fn lend<V: BioVecs>(domain: &Arc<Domain>, pages: V) -> Result<Mr<Formed<V>>> {
///     let pages = Formed::scatterlist(domain, pages, Access::REMOTE_READ)?;
///     Ok(domain.reg_formed(pages, Access::REMOTE_READ)?)
/// }
/// ```
///
/// # Invariants
///
/// A scatterlist in `form` is a mapping of the memory in `list`.
pub struct Formed<V> {
    // Dropped in this order: the memory is returned after the mapping is undone.
    form: Form,
    list: BioVecList<V>,
}

impl<V: BioVecs> Formed<V> {
    /// Selects `kfi_mr_regbv()`.
    pub fn bio_vecs(value: V) -> Self {
        Self::new(value, Form::BioVecs)
    }

    /// Selects `kfi_mr_reg()`, for one bio_vec. Registering more of them fails with `EINVAL`.
    pub fn buffer(value: V) -> Self {
        Self::new(value, Form::Buffer)
    }

    /// Selects `kfi_mr_regv()`.
    pub fn buffers(value: V) -> Self {
        Self::new(value, Form::Buffers)
    }

    /// Selects `kfi_mr_regsgl()` in this domain. Maps a scatterlist in the direction for these
    /// rights, until the value is returned. May sleep, but not for I/O.
    ///
    /// # Errors
    ///
    /// All errors have the value.
    ///
    /// - `EINVAL`: the memory isn't for these rights.
    /// - `EINVAL`: there is a gap: a bio_vec but the first begins, or one but the last ends, within
    ///   a page.
    /// - `ENOSYS`: the provider has no DMA extension.
    /// - `EIO`: the provider can't map the memory.
    /// - `ENODEV`: the device is gone.
    /// - `ENOMEM`.
    pub fn scatterlist(
        domain: &Arc<Domain>,
        value: V,
        access: Access,
    ) -> Result<Self, RegisterError<V>> {
        let _noio = NoIo::enter();
        let list = BioVecList::new(value);
        let mapping = match list.fits(domain, access) {
            true => SgTable::of_bio_vecs(list.bio_vecs())
                .and_then(|table| Mapping::new(domain, table, access.direction())),
            false => Err(unfit(c"memory that is not for these rights")),
        };
        match mapping {
            // INVARIANT: The mapping is that of the memory in `list`, which doesn't change.
            Ok(mapping) => Ok(Self {
                form: Form::Scatterlist(mapping),
                list,
            }),
            Err(errno) => Err(RegisterError::new(errno, list.into_inner())),
        }
    }

    fn new(value: V, form: Form) -> Self {
        let list = BioVecList::new(value);
        // INVARIANT: `form` is no scatterlist.
        Self { form, list }
    }

    /// Unmaps the memory and returns the value. May sleep.
    pub fn into_inner(self) -> V {
        drop(self.form);
        self.list.into_inner()
    }
}

/// Returns the memory of a bio_vec by its kernel address.
///
/// # Safety
///
/// `piece` is one of a [`BioVecs`].
unsafe fn address(piece: &bio_vec) -> Result<kvec, Errno> {
    // SAFETY: The page of `piece` is valid by the contract of `BioVecs`.
    let start = unsafe { kfi_bindings::kfi_helper_bvec_address(piece) };
    NonNull::new(start).ok_or(Errno::EFAULT).map(|start| kvec {
        iov_base: start.as_ptr(),
        iov_len: index(piece.bv_len),
    })
}

// SAFETY: `BioVecList` promises the same of the bytes. All forms list the same bytes: the pages of
// a bio_vec are contiguous in the kernel's map of all memory, and the mapping is that of `list`.
unsafe impl<V: BioVecs> OwnedMemory for Formed<V> {
    fn len(&self) -> usize {
        self.list.len()
    }

    fn is_readable(&self) -> bool {
        self.list.is_readable()
    }

    fn is_writable(&self) -> bool {
        self.list.is_writable()
    }

    fn fits(&self, domain: &Arc<Domain>, access: Access) -> bool {
        let mapped_so = match &self.form {
            Form::Scatterlist(mapping) => mapping.fits(domain, access),
            _ => true,
        };
        mapped_so && self.list.fits(domain, access)
    }

    fn with_list<R>(
        &self,
        call: impl FnOnce(MemoryList<'_>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        self.list.with_list(|list| match (&self.form, list) {
            (Form::Scatterlist(mapping), _) => call(mapping.list()?),
            (Form::Buffer, MemoryList::Bvec([piece])) => {
                // SAFETY: `piece` is one of a `BioVecs`.
                call(MemoryList::Buffer(unsafe { address(piece) }?))
            }
            (Form::Buffer, _) => Err(unfit(c"memory in more than one piece")),
            (Form::Buffers, MemoryList::Bvec(pieces)) => {
                let mut list = KVec::with_capacity(pieces.len(), GFP_KERNEL)?;
                for piece in pieces {
                    // SAFETY: `piece` is one of a `BioVecs`.
                    list.push(unsafe { address(piece) }?, GFP_KERNEL)?;
                }
                call(MemoryList::Kvec(&list))
            }
            (_, list) => call(list),
        })
    }

    fn with_extent(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        self.list.with_extent(offset, touch);
    }

    fn to_cpu(&self) {
        if let Form::Scatterlist(mapping) = &self.form {
            mapping.sync_sg_for_cpu();
        }
    }

    fn to_device(&self) {
        if let Form::Scatterlist(mapping) = &self.form {
            mapping.sync_sg_for_device();
        }
    }
}
