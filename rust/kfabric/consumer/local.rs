// SPDX-License-Identifier: GPL-2.0

//! Local memory of transfers.

use super::{
    Buffer,
    Mr, //
};
use crate::{
    post::limits::MAX_PIECES,
    support::{
        errno::Errno,
        num::index,
        vec::ArrayVec, //
    }, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    bio_vec,
    kfi_iov_type,
    kfi_iov_type_KFI_BVEC as BVEC,
    kfi_iov_type_KFI_KVEC as KVEC,
    kvec, //
};

/// Bytes that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The first.
    pub start: NonNull<u8>,
    /// How many there are.
    pub len: usize,
    /// `kfi_mr_desc()` of the region that they are in, or null.
    pub desc: *mut c_void,
}

impl Run {
    /// As a list has it.
    fn kvec(&self) -> kvec {
        kvec {
            iov_base: self.start.as_ptr().cast(),
            iov_len: self.len,
        }
    }

    /// Some of them.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there aren't that many.
    pub(super) fn part(self, offset: usize, len: usize) -> Result<Self, Errno> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len);
        end.ok_or(Errno::EINVAL)?;
        Ok(Self {
            // It stays among them, or right behind; the address is only used if `len` isn't 0.
            start: NonNull::new(self.start.as_ptr().wrapping_add(offset)).ok_or(Errno::EINVAL)?,
            len,
            ..self
        })
    }
}

/// Runs, or bio_vecs, up to 16: the part of some memory that is posted. They are copies, so they are good
/// whatever becomes of what they were copied from.
pub struct Pieces {
    runs: ArrayVec<kvec, MAX_PIECES>,
    descs: ArrayVec<*mut c_void, MAX_PIECES>,
    bio_vecs: ArrayVec<bio_vec, MAX_PIECES>,
    /// How many bytes come before the part.
    before: usize,
    /// How many bytes of the part are still to come.
    left: usize,
}

impl Pieces {
    /// Takes up the part of so many bytes from `offset` on.
    pub(super) fn of_part(offset: usize, len: usize) -> Self {
        Self {
            runs: ArrayVec::new(),
            descs: ArrayVec::new(),
            bio_vecs: ArrayVec::new(),
            before: offset,
            left: len,
        }
    }

    /// What of the next `len` bytes is in the part: from where on, and how many.
    fn next(&mut self, len: usize) -> Option<(usize, usize)> {
        let offset = self.before.min(len);
        self.before -= offset;
        let len = self.left.min(len - offset);
        self.left -= len;
        (len > 0).then_some((offset, len))
    }

    /// Adds what comes next. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there are 16 already, or they are bio_vecs.
    pub fn push(&mut self, run: Run) -> Result<(), Errno> {
        let Some((offset, len)) = self.next(run.len) else {
            return Ok(());
        };
        let run = run.part(offset, len)?;
        let added = self.runs.push(run.kvec()).is_ok() && self.descs.push(run.desc).is_ok();
        (added && self.bio_vecs.is_empty())
            .then_some(())
            .ok_or(Errno::EINVAL)
    }

    /// Adds what comes next. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there are 16 already, or they are runs.
    pub fn push_bio_vec(&mut self, bv: &bio_vec) -> Result<(), Errno> {
        let Some((offset, len)) = self.next(index(bv.bv_len)) else {
            return Ok(());
        };
        let narrow = |number: usize| u32::try_from(number).map_err(|_| Errno::EINVAL);
        let part = bio_vec {
            bv_page: bv.bv_page,
            bv_len: narrow(len)?,
            bv_offset: narrow(index(bv.bv_offset).saturating_add(offset))?,
        };
        (self.bio_vecs.push(part).is_ok() && self.runs.is_empty())
            .then_some(())
            .ok_or(Errno::EINVAL)
    }

    /// Is the whole part there?
    pub(super) fn is_whole(&self) -> bool {
        self.before == 0 && self.left == 0
    }
}

/// The memory that a request is posted with.
#[derive(Clone, Copy)]
pub(super) enum Posting<'a> {
    One(Run),
    List(&'a Pieces),
}

/// A list as a message has it: its type, its first entry, its first descriptor, how many there are.
pub(super) type RawPieces = (kfi_iov_type, *const kvec, *mut *mut c_void, usize);

impl Posting<'_> {
    /// The memory, if it is one run.
    pub(super) fn one(&self) -> Result<Run, Errno> {
        match self {
            Self::One(run) => Ok(*run),
            Self::List(_) => Err(Errno::EINVAL),
        }
    }

    /// Calls `call` with the memory as a list, which is good until it returns.
    pub(super) fn with_raw<R>(&self, call: impl FnOnce(RawPieces) -> R) -> R {
        match self {
            Self::One(run) => {
                let (kvec, mut desc) = (run.kvec(), run.desc);
                call((KVEC, &raw const kvec, &raw mut desc, 1))
            }
            Self::List(list) if list.bio_vecs.is_empty() => {
                // Nobody writes to descriptors.
                let descs = list.descs.as_ptr().cast_mut();
                call((KVEC, list.runs.as_ptr(), descs, list.runs.len()))
            }
            Self::List(list) => {
                let (first, count) = (list.bio_vecs.as_ptr(), list.bio_vecs.len());
                call((BVEC, first.cast(), core::ptr::null_mut(), count))
            }
        }
    }
}

/// Memory that a [`Request`](super::Request) can own: a [`Buffer`], an [`MrPart`], a [`LocalList`](super::LocalList)
/// of these, [`Pages`](super::Pages) or a [`BioVecList`](super::BioVecList).
///
/// # Safety
///
/// - The `bytes` bytes that `run` or `add_to` tells of are memory of this machine. The core, a provider and a
///   device may read and write them at any time until the value is dropped; but not read them if `may_be_read`
///   says `false`, nor write them if `may_be_written` does. What may be read is initialized.
/// - They stay allocated, and where they are, until then: moving the value doesn't matter, and forgetting
///   it keeps them for good.
/// - All functions always tell the same until something else is done to the value, and make no reference to the
///   bytes.
/// - A descriptor is null, or that of a region that has all of the run, and is open for as long.
pub unsafe trait Local: Send + 'static {
    /// How many bytes there are.
    fn bytes(&self) -> usize;

    /// Where they are, if they follow each other.
    fn run(&self) -> Option<Run>;

    /// Adds to a list where they are, in their order. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: they can't be in such a list.
    fn add_to(&self, list: &mut Pieces) -> Result<(), Errno> {
        self.run().map_or(Ok(()), |run| list.push(run))
    }

    /// May a transfer read them?
    fn may_be_read(&self) -> bool {
        true
    }

    /// May a transfer write to them?
    fn may_be_written(&self) -> bool {
        true
    }
}

// SAFETY: By the promises of `Buffer`, for memory that belongs to the value alone.
unsafe impl<B: Buffer> Local for B {
    fn bytes(&self) -> usize {
        self.size()
    }

    fn run(&self) -> Option<Run> {
        Some(Run {
            start: self.start(),
            len: self.size(),
            desc: ptr::null_mut(),
        })
    }
}

/// A part of a region, which it keeps open.
///
/// The bytes are read and written through the region, also while a transfer has them: then it may find
/// some of before and some of after, as with a peer.
///
/// # Invariants
///
/// The region has `len` bytes from `offset` on.
pub struct MrPart<B: Buffer + Sync> {
    mr: Arc<Mr<B>>,
    offset: usize,
    len: usize,
}

impl<B: Buffer + Sync> MrPart<B> {
    /// Takes `len` bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there aren't that many.
    pub fn new(mr: Arc<Mr<B>>, offset: usize, len: usize) -> Result<Self, Errno> {
        match offset.checked_add(len) {
            // INVARIANT: Just checked.
            Some(end) if end <= mr.len() => Ok(Self { mr, offset, len }),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The region.
    pub fn mr(&self) -> &Arc<Mr<B>> {
        &self.mr
    }
}

// SAFETY: The bytes are the region's, and that gives out no reference to them. It stays open, and has
// them, as long as there is a reference to it.
unsafe impl<B: Buffer + Sync> Local for MrPart<B> {
    fn bytes(&self) -> usize {
        self.len
    }

    fn run(&self) -> Option<Run> {
        let start = self.mr.memory().start();
        Some(Run {
            // SAFETY: By the invariant, these are some of the memory's bytes.
            start: unsafe { start.add(self.offset) },
            len: self.len,
            desc: self.mr.desc(),
        })
    }
}

/// Several pieces of memory, which are transferred as if they followed each other: a
/// [`Request`](super::Request) that has one is posted by `kfi_sendmsg()`, `kfi_recvmsg()` and the like, with as
/// many kvecs.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Connected, LocalList, Mr, MrPart, MsgEndpoint, Request};
///
/// type Part = MrPart<KVec<u8>>;
///
/// /// Sends what is in two places of a region as one message.
/// fn send(
///     endpoint: &MsgEndpoint<Connected, LocalList<Part>>,
///     region: &Arc<Mr<KVec<u8>>>,
/// ) -> Result {
///     let mut pieces = KVec::new();
///     for offset in [0, 4096] {
///         pieces.push(MrPart::new(region.clone(), offset, 64)?, GFP_KERNEL)?;
///     }
///     Ok(endpoint.send(Request::new(LocalList::new(pieces), ())?)?)
/// }
/// ```
pub struct LocalList<L>(KVec<L>);

impl<L: Local> LocalList<L> {
    /// Takes the pieces in the order in which they are transferred. No more than the offer's `iov_limit`, nor than
    /// 16, can be.
    pub fn new(pieces: KVec<L>) -> Self {
        Self(pieces)
    }

    /// The pieces.
    pub fn pieces(&self) -> &[L] {
        &self.0
    }

    /// The pieces.
    pub fn pieces_mut(&mut self) -> &mut [L] {
        &mut self.0
    }

    /// Gives the pieces back.
    pub fn into_inner(self) -> KVec<L> {
        self.0
    }
}

// SAFETY: By the promises of each piece. A piece that is moved within the list stays where it is, and so do they
// all as long as nobody has the list exclusively.
unsafe impl<L: Local> Local for LocalList<L> {
    fn bytes(&self) -> usize {
        let bytes = self.0.iter().map(Local::bytes);
        // More than there can be is more than anybody transfers.
        bytes.fold(0, usize::saturating_add)
    }

    fn run(&self) -> Option<Run> {
        None
    }

    fn add_to(&self, list: &mut Pieces) -> Result<(), Errno> {
        self.0.iter().try_for_each(|piece| piece.add_to(list))
    }

    fn may_be_read(&self) -> bool {
        self.0.iter().all(Local::may_be_read)
    }

    fn may_be_written(&self) -> bool {
        self.0.iter().all(Local::may_be_written)
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_pieces)]
mod tests {
    use super::*;
    use core::ptr::null_mut;

    fn run(start: usize, len: usize) -> Result<Run, Errno> {
        Ok(Run {
            start: NonNull::new(core::ptr::without_provenance_mut(start)).ok_or(Errno::EINVAL)?,
            len,
            desc: core::ptr::without_provenance_mut(start),
        })
    }

    /// Where the pieces of a part of three runs start, and how long they are.
    fn runs(offset: usize, len: usize) -> Result<ArrayVec<(usize, usize), 3>, Errno> {
        let mut pieces = Pieces::of_part(offset, len);
        for (start, len) in [(1000, 10), (2000, 1), (3000, 20)] {
            pieces.push(run(start, len)?)?;
        }
        let mut found = ArrayVec::new();
        assert!(pieces.is_whole());
        for (kvec, desc) in pieces.runs.iter().zip(pieces.descs.iter()) {
            assert_eq!(kvec.iov_base.addr() / 1000, desc.addr() / 1000);
            let _ = found.push((kvec.iov_base.addr(), kvec.iov_len));
        }
        Ok(found)
    }

    #[test]
    fn parts_are_cut_out_of_runs() -> Result<(), Errno> {
        assert_eq!(&*runs(0, 31)?, &[(1000, 10), (2000, 1), (3000, 20)]);
        assert_eq!(&*runs(3, 2)?, &[(1003, 2)]);
        assert_eq!(&*runs(9, 3)?, &[(1009, 1), (2000, 1), (3000, 1)]);
        assert_eq!(&*runs(10, 1)?, &[(2000, 1)]);
        assert_eq!(&*runs(12, 19)?, &[(3001, 19)]);
        assert_eq!(&*runs(5, 0)?, &[]);
        Ok(())
    }

    #[test]
    fn parts_are_cut_out_of_bio_vecs() -> Result<(), Errno> {
        let mut pieces = Pieces::of_part(100, 700);
        for offset in [50, 500] {
            pieces.push_bio_vec(&bio_vec {
                bv_page: null_mut(),
                bv_len: 512,
                bv_offset: offset,
            })?;
        }
        assert!(pieces.is_whole());
        let places = pieces.bio_vecs.iter().map(|bv| (bv.bv_offset, bv.bv_len));
        assert!(places.eq([(150, 412), (500, 288)]));
        // Not of the part.
        assert_eq!(pieces.push(run(1000, 1)?), Ok(()));
        Ok(())
    }

    #[test]
    fn no_more_than_there_is_room_for_and_no_mixture() -> Result<(), Errno> {
        let mut pieces = Pieces::of_part(0, 100);
        for _ in 0..MAX_PIECES {
            pieces.push(run(1000, 1)?)?;
        }
        // Nothing to add.
        assert_eq!(pieces.push(run(1000, 0)?), Ok(()));
        assert_eq!(pieces.push(run(1000, 1)?), Err(Errno::EINVAL));
        assert!(!pieces.is_whole());

        let page = bio_vec {
            bv_page: null_mut(),
            bv_len: 512,
            bv_offset: 0,
        };
        let mut pieces = Pieces::of_part(0, 1000);
        pieces.push(run(1000, 1)?)?;
        assert_eq!(pieces.push_bio_vec(&page), Err(Errno::EINVAL));
        let mut pieces = Pieces::of_part(0, 1000);
        pieces.push_bio_vec(&page)?;
        assert_eq!(pieces.push(run(1000, 1)?), Err(Errno::EINVAL));
        Ok(())
    }
}
