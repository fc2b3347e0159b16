// SPDX-License-Identifier: GPL-2.0

//! Local memory of transfers.

use super::*;
use crate::{
    post::local::MAX_PIECES,
    support::vec::ArrayVec, //
};
use kfi_bindings::{
    kfi_iov_type,
    kfi_iov_type_KFI_BVEC as BVEC,
    kfi_iov_type_KFI_KVEC as KVEC, //
};

/// Contiguous bytes.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The address of the first byte.
    pub start: NonNull<u8>,
    /// The number of bytes.
    pub len: usize,
    /// `kfi_mr_desc()` of the region with the bytes, or null.
    pub desc: *mut c_void,
}

impl Run {
    /// Returns the bytes as an entry of a list.
    fn kvec(&self) -> kvec {
        kvec {
            iov_base: self.start.as_ptr().cast(),
            iov_len: self.len,
        }
    }

    /// Returns `len` of the bytes from `offset`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there aren't enough bytes.
    pub(super) fn part(self, offset: usize, len: usize) -> Result<Self, Errno> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len);
        end.ok_or(Errno::EINVAL)?;
        Ok(Self {
            // At most one behind the last byte. The address is only used if `len` isn't 0.
            start: NonNull::new(self.start.as_ptr().wrapping_add(offset)).ok_or(Errno::EINVAL)?,
            len,
            ..self
        })
    }
}

/// A list of up to 16 runs or bio_vecs: the part of some memory that is posted. The entries are
/// copies.
pub struct Pieces {
    runs: ArrayVec<kvec, MAX_PIECES>,
    descs: ArrayVec<*mut c_void, MAX_PIECES>,
    bio_vecs: ArrayVec<bio_vec, MAX_PIECES>,
    /// Number of bytes before the part.
    before: usize,
    /// Number of bytes of the part that are missing in the list.
    left: usize,
}

impl Pieces {
    /// Creates an empty list for the part of `len` bytes from `offset`.
    #[inline]
    pub(super) fn of_part((offset, len): (usize, usize)) -> Self {
        Self {
            runs: ArrayVec::new(),
            descs: ArrayVec::new(),
            bio_vecs: ArrayVec::new(),
            before: offset,
            left: len,
        }
    }

    /// Returns the offset and the length of the part in the next `len` bytes.
    fn next(&mut self, len: usize) -> Option<(usize, usize)> {
        let offset = self.before.min(len);
        self.before -= offset;
        let len = self.left.min(len - offset);
        self.left -= len;
        (len > 0).then_some((offset, len))
    }

    /// Adds the next run. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the list has 16 entries or has bio_vecs.
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

    /// Adds the next bio_vec. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the list has 16 entries or has runs.
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

    /// Checks whether the list has the whole part.
    pub(super) fn is_whole(&self) -> bool {
        self.before == 0 && self.left == 0
    }
}

/// The memory of a posted request.
#[derive(Clone, Copy)]
pub(super) enum Posting<'a> {
    One(Run),
    List(&'a Pieces),
}

/// The type of a list, its first entry, its first descriptor, and the number of entries.
pub(super) type RawPieces = (kfi_iov_type, *const kvec, *mut *mut c_void, usize);

impl Posting<'_> {
    /// Returns the memory if it is one run.
    pub(super) fn one(&self) -> Result<Run, Errno> {
        match self {
            Self::One(run) => Ok(*run),
            Self::List(_) => Err(Errno::EINVAL),
        }
    }

    /// Calls `call` with the memory as a list, which is valid until `call` returns.
    pub(super) fn with_raw<R>(&self, call: impl FnOnce(RawPieces) -> R) -> R {
        match self {
            Self::One(run) => {
                let (kvec, mut desc) = (run.kvec(), run.desc);
                call((KVEC, &raw const kvec, &raw mut desc, 1))
            }
            Self::List(list) if list.bio_vecs.is_empty() => {
                // Descriptors are only read.
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

/// Local memory that a [`Request`] can own.
///
/// That is a [`Buffer`], an [`MrPart`], a [`LocalList`] of these, [`Pages`], a [`BioVecList`] or a [`Framed`].
///
/// # Safety
///
/// - `run` or `add_to` list `bytes` bytes of this machine's memory. The core, a provider and a
///   device may read and write them at any time until the value is dropped. If `may_be_read`
///   returns `false`, they only write them. If `may_be_written` returns `false`, they only read
///   them. Readable bytes are initialized.
/// - The bytes stay allocated, at the same address, until then. Moving the value has no effect on
///   them. Forgetting it leaks them.
/// - All functions return the same until the value is changed. They create no reference to the
///   bytes.
/// - A descriptor is null, or that of a region with the whole run, which stays open until then.
pub unsafe trait Local: Send + 'static {
    /// Returns the number of bytes.
    fn bytes(&self) -> usize;

    /// Returns the bytes, if they are contiguous.
    fn run(&self) -> Option<Run>;

    /// Adds the bytes to a list, in their order. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the list has no space, or has entries of the other type.
    fn add_to(&self, list: &mut Pieces) -> Result<(), Errno> {
        self.run().map_or(Ok(()), |run| list.push(run))
    }

    /// Checks whether a transfer may read the bytes.
    fn may_be_read(&self) -> bool {
        true
    }

    /// Checks whether a transfer may write the bytes.
    fn may_be_written(&self) -> bool {
        true
    }
}

// SAFETY: `Buffer` promises the same of the `size` bytes from `start`, which the value owns.
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
/// The consumer accesses the bytes through the region, even during a transfer. Then the transfer
/// may see a mixture of old and new bytes, like a peer.
///
/// # Invariants
///
/// The region has `len` bytes from `offset`.
pub struct MrPart<B: Buffer + Sync> {
    mr: Arc<Mr<B>>,
    offset: usize,
    len: usize,
}

impl<B: Buffer + Sync> MrPart<B> {
    /// Selects `len` bytes from `offset`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the region is too short.
    pub fn new(mr: Arc<Mr<B>>, offset: usize, len: usize) -> Result<Self, Errno> {
        match offset.checked_add(len) {
            // INVARIANT: The region has these bytes by the check here.
            Some(end) if end <= mr.len() => Ok(Self { mr, offset, len }),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Returns the region.
    pub fn mr(&self) -> &Arc<Mr<B>> {
        &self.mr
    }
}

// SAFETY: The region owns the bytes, and creates no reference to them. It is open as long as `mr`
// refers to it.
unsafe impl<B: Buffer + Sync> Local for MrPart<B> {
    fn bytes(&self) -> usize {
        self.len
    }

    fn run(&self) -> Option<Run> {
        let start = self.mr.memory().start();
        Some(Run {
            // SAFETY: The memory has `offset + len` bytes by the invariant.
            start: unsafe { start.add(self.offset) },
            len: self.len,
            desc: self.mr.desc(),
        })
    }
}

/// Several pieces of memory, which one transfer takes as if they were contiguous.
///
/// A [`Request`] with a list is posted by `kfi_sendmsg()`, `kfi_recvmsg()` or another call for
/// messages, with one kvec for each piece.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Connected, LocalList, Mr, MrPart, MsgEndpoint, Request};
///
/// type Part = MrPart<KVec<u8>>;
///
/// /// Sends two places of a region as one message.
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
    /// Creates a list of pieces, in the order of the transfer. A transfer has at most 16 pieces,
    /// and at most the offer's `iov_limit`.
    pub fn new(pieces: KVec<L>) -> Self {
        Self(pieces)
    }

    /// Returns the pieces.
    pub fn pieces(&self) -> &[L] {
        &self.0
    }

    /// Returns the pieces.
    pub fn pieces_mut(&mut self) -> &mut [L] {
        &mut self.0
    }

    /// Returns the pieces.
    pub fn into_inner(self) -> KVec<L> {
        self.0
    }
}

// SAFETY: Each piece promises the same of its bytes. Moving a piece within the list has no effect
// on its bytes, and changing the list needs exclusive access to it.
unsafe impl<L: Local> Local for LocalList<L> {
    fn bytes(&self) -> usize {
        let bytes = self.0.iter().map(Local::bytes);
        // No transfer is that large.
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

    /// Returns the starts and lengths of the pieces of a part of three runs.
    fn runs(offset: usize, len: usize) -> Result<ArrayVec<(usize, usize), 3>, Errno> {
        let mut pieces = Pieces::of_part((offset, len));
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
        let mut pieces = Pieces::of_part((100, 700));
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
        // Behind the part, so it is ignored.
        assert_eq!(pieces.push(run(1000, 1)?), Ok(()));
        Ok(())
    }

    #[test]
    fn no_more_than_there_is_room_for_and_no_mixture() -> Result<(), Errno> {
        let mut pieces = Pieces::of_part((0, 100));
        for _ in 0..MAX_PIECES {
            pieces.push(run(1000, 1)?)?;
        }
        // An empty run needs no entry.
        assert_eq!(pieces.push(run(1000, 0)?), Ok(()));
        assert_eq!(pieces.push(run(1000, 1)?), Err(Errno::EINVAL));
        assert!(!pieces.is_whole());

        let page = bio_vec {
            bv_page: null_mut(),
            bv_len: 512,
            bv_offset: 0,
        };
        let mut pieces = Pieces::of_part((0, 1000));
        pieces.push(run(1000, 1)?)?;
        assert_eq!(pieces.push_bio_vec(&page), Err(Errno::EINVAL));
        let mut pieces = Pieces::of_part((0, 1000));
        pieces.push_bio_vec(&page)?;
        assert_eq!(pieces.push(run(1000, 1)?), Err(Errno::EINVAL));
        Ok(())
    }
}
