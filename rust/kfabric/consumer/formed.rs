// SPDX-License-Identifier: GPL-2.0

//! Memory in bio_vecs, for a registration call that the consumer selects.

use super::{
    error::unfit,
    mapped_list::{
        Mapping,
        SgTable, //
    },
    memory::{
        List,
        Memory, //
    },
    BioVecList,
    BioVecs,
    Domain,
    RegisterError, //
};
use crate::{
    region::access::Access,
    support::{
        errno::Errno,
        num::index,
        task::NoIo, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    bio_vec,
    kvec, //
};

/// What such memory is handed over as.
enum Form {
    BioVecs,
    Buffer,
    Buffers,
    Scatterlist(Mapping),
}

/// Memory in bio_vecs, to be registered by [`reg_formed`](Domain::reg_formed) by the call that its form is
/// for, or by [`regattr`](Domain::regattr) in any.
///
/// For who wants to choose. Storage has its memory as bio_vecs, which
/// [`regbv`](Domain::regbv) takes as they are, as a [`BioVecList`].
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
/// A scatterlist is of just this memory.
pub struct Formed<V> {
    // Dropped in this order: nothing is given back while it is mapped.
    form: Form,
    list: BioVecList<V>,
}

impl<V: BioVecs> Formed<V> {
    /// For `kfi_mr_regbv()`.
    pub fn bio_vecs(value: V) -> Self {
        Self::new(value, Form::BioVecs)
    }

    /// For `kfi_mr_reg()`: memory in one piece, by its address. Registering more pieces is `EINVAL`.
    pub fn buffer(value: V) -> Self {
        Self::new(value, Form::Buffer)
    }

    /// For `kfi_mr_regv()`: the pieces by their addresses.
    pub fn buffers(value: V) -> Self {
        Self::new(value, Form::Buffers)
    }

    /// For `kfi_mr_regsgl()` in this domain: a scatterlist, mapped in the direction that the rights ask for
    /// until the value is given back. May sleep, but not for I/O.
    ///
    /// # Errors
    ///
    /// All give the value back.
    ///
    /// - `EINVAL`: it may not be read or written, and the rights are for that; or there is a gap: each piece
    ///   but the first is to begin, and each but the last to end, where pages do.
    /// - `ENOSYS`: the provider has no DMA extension.
    /// - `EIO`: the memory can't be mapped.
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
            // INVARIANT: Mapped from what is listed, which stays the same.
            Ok(mapping) => Ok(Self {
                form: Form::Scatterlist(mapping),
                list,
            }),
            Err(errno) => Err(RegisterError::new(errno, list.into_inner())),
        }
    }

    fn new(value: V, form: Form) -> Self {
        let list = BioVecList::new(value);
        // INVARIANT: No scatterlist.
        Self { form, list }
    }

    /// The value, whose memory isn't mapped any more. May sleep.
    pub fn into_inner(self) -> V {
        drop(self.form);
        self.list.into_inner()
    }
}

/// The address of a piece.
///
/// # Safety
///
/// It is one of a [`BioVecs`].
unsafe fn address(piece: &bio_vec) -> Result<kvec, Errno> {
    // SAFETY: By the requirements of this function its page is there.
    let start = unsafe { kfi_bindings::kfi_helper_bvec_address(piece) };
    NonNull::new(start).ok_or(Errno::EFAULT).map(|start| kvec {
        iov_base: start.as_ptr(),
        iov_len: index(piece.bv_len),
    })
}

// SAFETY: The bytes are those of the list, whatever they are handed over as: its pieces follow each other in
// the kernel's map of all memory as they do in that of pages; and by the type invariant.
unsafe impl<V: BioVecs> Memory for Formed<V> {
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

    fn with_list<R>(&self, call: impl FnOnce(List<'_>) -> Result<R, Errno>) -> Result<R, Errno> {
        self.list.with_list(|list| match (&self.form, list) {
            (Form::Scatterlist(mapping), _) => call(mapping.list()?),
            (Form::Buffer, List::Bvec([piece])) => {
                // SAFETY: Of such memory.
                call(List::Buffer(unsafe { address(piece) }?))
            }
            (Form::Buffer, _) => Err(unfit(c"memory in more than one piece")),
            (Form::Buffers, List::Bvec(pieces)) => {
                let mut list = KVec::with_capacity(pieces.len(), GFP_KERNEL)?;
                for piece in pieces {
                    // SAFETY: Of such memory.
                    list.push(unsafe { address(piece) }?, GFP_KERNEL)?;
                }
                call(List::Kvec(&list))
            }
            (_, list) => call(list),
        })
    }

    fn with_stretch(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        self.list.with_stretch(offset, touch);
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
