// SPDX-License-Identifier: GPL-2.0

//! Memory that somebody has as bio_vecs, as storage has it.

use super::{
    memory::{
        List,
        Memory, //
    },
    Domain,
    Local,
    Pieces,
    Run, //
};
use crate::{
    region::access::Access,
    support::{
        errno::Errno,
        num::index, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    page::PAGE_SIZE,
    sync::Arc, //
};
use kfi_bindings::bio_vec;

/// Whose memory is in bio_vecs: an I/O request, for instance, whose pages are to be read or written by a
/// peer without being copied. A [`BioVecList`] of it can be registered.
///
/// # Examples
///
/// ```
/// use kernel::{bindings::bio_vec, page::Page, prelude::*, sync::Arc};
/// use kfabric::consumer::{Access, BioVecList, BioVecs, Domain, Mr};
///
/// /// A page, and the bytes in it that count.
/// struct Sector {
///     _page: Page,
///     part: [bio_vec; 1],
/// }
///
/// // SAFETY: A pointer to a page may be used by any thread.
/// unsafe impl Send for Sector {}
///
/// // SAFETY: The page belongs to this value, and is there as long as it is. Nobody reads it.
/// unsafe impl BioVecs for Sector {
///     fn bio_vecs(&self) -> &[bio_vec] {
///         &self.part
///     }
///
///     fn is_readable(&self) -> bool {
///         false
///     }
///
///     fn is_writable(&self) -> bool {
///         true
///     }
/// }
///
/// fn receive(domain: &Arc<Domain>, page: Page) -> Result<Mr<BioVecList<Sector>>> {
///     let part = [bio_vec {
///         bv_page: page.as_ptr(),
///         bv_len: 512,
///         bv_offset: 1024,
///     }];
///     let sector = Sector { _page: page, part };
///     Ok(domain.regbv(BioVecList::new(sector), Access::REMOTE_WRITE)?)
/// }
/// ```
///
/// # Safety
///
/// - The bio_vecs name memory of this machine, which stays where it is, and is nobody else's to free,
///   until the value is dropped; forgetting it keeps it for good. Moving the value doesn't matter.
/// - Devices may read it until then if [`is_readable`](Self::is_readable), and write it if
///   [`is_writable`](Self::is_writable). Nobody has a reference to its bytes meanwhile; who else reads or writes
///   them is prepared to find some of before and some of after.
/// - What is readable is initialized.
/// - All functions always give the same until something else is done to the value.
pub unsafe trait BioVecs: Send + 'static {
    /// Where the memory is. Each has at least one byte.
    fn bio_vecs(&self) -> &[bio_vec];

    /// May it be read? Of pages that are only there to be written to, whatever was in them before stays
    /// unknown to everybody.
    fn is_readable(&self) -> bool;

    /// May it be written?
    fn is_writable(&self) -> bool;
}

/// Memory in bio_vecs, to be registered by [`regbv`](super::Domain::regbv), or to be that of a
/// [`Request`](super::Request), which is posted by `kfi_sendmsg()` and the like then.
pub struct BioVecList<B>(B);

impl<B: BioVecs> BioVecList<B> {
    /// Takes the memory of a value.
    pub fn new(value: B) -> Self {
        Self(value)
    }

    /// What the memory is.
    pub(super) fn bio_vecs(&self) -> &[bio_vec] {
        self.0.bio_vecs()
    }

    /// The value.
    pub fn into_inner(self) -> B {
        self.0
    }
}

// SAFETY: By the promises of `BioVecs`. No reference to the bytes is made, and what may not be read or written
// isn't registered for that.
unsafe impl<B: BioVecs> Memory for BioVecList<B> {
    fn len(&self) -> usize {
        let lengths = self.0.bio_vecs().iter().map(|bv| index(bv.bv_len));
        lengths.fold(0, usize::saturating_add)
    }

    fn is_readable(&self) -> bool {
        self.0.is_readable()
    }

    fn is_writable(&self) -> bool {
        self.0.is_writable()
    }

    fn fits(&self, _domain: &Arc<Domain>, access: Access) -> bool {
        (self.0.is_readable() || !access.device_reads())
            && (self.0.is_writable() || !access.device_writes())
    }

    fn with_list<R>(&self, call: impl FnOnce(List<'_>) -> Result<R, Errno>) -> Result<R, Errno> {
        call(List::Bvec(self.0.bio_vecs()))
    }

    fn with_stretch(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        let mut offset = offset;
        for bv in self.0.bio_vecs() {
            let len = index(bv.bv_len);
            if offset >= len {
                offset -= len;
                continue;
            }
            let at = index(bv.bv_offset) + offset;
            let here = (PAGE_SIZE - at % PAGE_SIZE).min(len - offset);
            // SAFETY: Pages of a bio_vec follow each other in the memory map, and this is one of them.
            let mapped = unsafe { bindings::kmap_local_page(bv.bv_page.add(at / PAGE_SIZE)) };
            if let Some(start) = NonNull::new(mapped.cast::<u8>()) {
                // SAFETY: The whole page was mapped.
                touch(unsafe { start.add(at % PAGE_SIZE) }, here);
            }
            // SAFETY: Mapped just now, and what `touch` may have mapped meanwhile it has unmapped.
            unsafe { bindings::kunmap_local(mapped) };
            return;
        }
    }
}

// SAFETY: By the promises of `BioVecs`, as above.
unsafe impl<B: BioVecs> Local for BioVecList<B> {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn run(&self) -> Option<Run> {
        None
    }

    fn add_to(&self, list: &mut Pieces) -> Result<(), Errno> {
        self.0
            .bio_vecs()
            .iter()
            .try_for_each(|bv| list.push_bio_vec(bv))
    }

    fn may_be_read(&self) -> bool {
        self.0.is_readable()
    }

    fn may_be_written(&self) -> bool {
        self.0.is_writable()
    }
}
