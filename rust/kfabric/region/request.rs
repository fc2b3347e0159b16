// SPDX-License-Identifier: GPL-2.0

//! A registration, parsed: all five calls and `kfi_mr_regattr` become one [`MrRequest`].
//!
//! Faults are found in the order that kfi_mr(3) documents: attributes, list and count; flags;
//! access; offset; segments by index; limits. Memory and device come after, in
//! [`crate::region::extents`] and in the provider.

use super::{
    access::Access,
    extents::{
        Extent,
        Extents,
        MappedAs,
        PageUse, //
    },
    lease::{
        Lease,
        Tenant, //
    },
    limits::MrLimits,
    segment_list::{
        PlainList,
        Source, //
    },
    shape::{
        Piece,
        PieceIter,
        Shape, //
    }, //
};
use crate::prelude::*;
use core::cell::Cell;

/// The arguments of a registration that don't say where the memory is, as C gave them.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    pub(crate) access: u64,
    pub(crate) offset: u64,
    pub(crate) requested_key: u64,
    pub(crate) flags: u64,
    pub(crate) auth_key: AuthKey<'a>,
    /// Whether it is one of several that are registered together.
    pub(crate) together: bool,
}

/// A valid registration request.
///
/// # Invariants
///
/// `shape` was taken from `source` and is within the limits of the domain; but where there are `pages`, that
/// it is the shape of `source` is known only when all of its memory has been found.
pub struct MrRequest<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) shape: Shape,
    pub(crate) access: Access,
    memory: PageUse,
    requested_key: u64,
    pub(crate) flags: u64,
    auth_key: Option<&'a [u8]>,
    /// The provider keeps memory.
    leases: bool,
    /// Ends the processor's use of the memory when it is dropped. `None` if nobody has asked for
    /// that use.
    lease: Cell<Option<Lease>>,
    /// Whether it is one of several that are registered together.
    together: bool,
    /// Whether the provider takes its parts from the domain's reserve.
    pub(crate) reserved: Cell<bool>,
    /// `None` if the list was counted. Otherwise it was taken for one of pages; set if the walk has found that it is none,
    /// or that a page may not be registered.
    pages: Option<Cell<bool>>,
}

impl<'a> MrRequest<'a> {
    /// Checks everything that can be checked without looking at memory or device.
    ///
    /// The segments of a list are not counted here if each of them may be a page. The walk through the memory finds
    /// out whether each is one. After a refusal of such a request the caller must [recount](Self::recount) the list.
    #[inline(always)]
    pub(crate) fn parse(
        source: Source<'a>,
        arguments: Arguments<'a>,
        limits: &MrLimits,
    ) -> Result<Self, Refusal> {
        let auth_key = arguments.auth_key.parse(limits)?;
        arguments.parse_flags(limits)?;
        let access = Access::parse(arguments.access)?;
        if arguments.offset != 0 {
            return Err(Refusal::new(Errno::EINVAL, c"offset is reserved").value(arguments.offset));
        }
        let count = source.count();
        let (shape, pages) = match count > 1 {
            true => list_shape(&source, count, limits)?,
            false => (counted(&source, count, limits)?, None),
        };
        // INVARIANT: The shape is that of `source` and within the limits. Or it is if each segment is a page, as `pages`
        // says.
        Ok(Self {
            source,
            shape,
            access,
            memory: PageUse {
                writes: access.device_writes(),
                peer_to_peer: limits.peer_to_peer,
            },
            requested_key: arguments.requested_key,
            flags: arguments.flags,
            auth_key,
            leases: limits.leases,
            lease: Cell::new(None),
            together: arguments.together,
            reserved: Cell::new(false),
            pages,
        })
    }

    /// Counts the segments of a list that was taken for one of pages, after a refusal. Returns the request to try
    /// instead, if the walk has found a segment that is no page, or a page that may not be registered.
    ///
    /// # Errors
    ///
    /// The list is not valid, or is beyond the limits.
    #[cold]
    pub(crate) fn recount(self, limits: &MrLimits) -> Result<Option<Self>, Refusal> {
        let Some(is_mistaken) = self.is_mistaken() else {
            return Ok(None);
        };
        let shape = counted(&self.source, self.source.count(), limits)?;
        // INVARIANT: The shape is that of `source` and within the limits.
        Ok(is_mistaken.then_some(Self {
            shape,
            lease: Cell::new(None),
            pages: None,
            ..self
        }))
    }

    /// Returns whether the walk has found a segment that is no page, or a page that may not be registered. Returns `None`
    /// if the list was counted.
    pub(crate) fn is_mistaken(&self) -> Option<bool> {
        self.pages.as_ref().map(Cell::get)
    }

    /// Notes that an entry of a [plain list](Self::plain_list) may be no page, because the device refused the list. The
    /// core then registers the counted list.
    pub fn set_mistaken(&self) {
        if let Some(mistaken) = &self.pages {
            mistaken.set(true);
        }
    }

    /// Returns the request for the new pages of a region of kvecs.
    pub(crate) fn again(
        list: &'a [kvec],
        access: Access,
        limits: &MrLimits,
    ) -> Result<Self, Refusal> {
        let arguments = Arguments {
            access: access.bits(),
            offset: 0,
            requested_key: 0,
            flags: 0,
            auth_key: AuthKey::None,
            together: false,
        };
        Self::parse(Source::kvecs(list), arguments, limits)
    }

    /// Checks whether it is one of several that are registered together.
    pub fn is_together(&self) -> bool {
        self.together
    }

    /// Returns whether the provider takes its parts of the region from what it has reserved
    /// ([`DomainOps::reserve`](crate::provider::DomainOps::reserve)).
    pub fn is_reserved(&self) -> bool {
        self.reserved.get()
    }

    /// Returns the right to use the memory by the processor. It ends with the region, or with the
    /// request if that becomes no region. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the provider doesn't [say](MrLimits::leases) that it keeps memory.
    /// - `ENOMEM`
    pub(crate) fn tenant(&self) -> Result<Tenant, Errno> {
        if !self.leases {
            return Err(Errno::EINVAL);
        }
        let lease = match self.lease.take() {
            Some(lease) => lease,
            None => Lease::new()?,
        };
        let tenant = lease.tenant();
        self.lease.set(Some(lease));
        Ok(tenant)
    }

    /// Takes over when that right ends; `None` if nobody has asked for it.
    pub(crate) fn take_lease(&self) -> Option<Lease> {
        self.lease.take()
    }

    /// Returns the consumer's list of segments.
    pub fn source(&self) -> &Source<'a> {
        &self.source
    }

    /// Returns the memory in the order of the region, with contiguous memory joined. A scatterlist was mapped by its
    /// owner, and has none.
    pub fn extents(&self) -> Extents<'_> {
        self.extents_at(MappedAs::Device)
    }

    /// Returns the memory as [`extents`](Self::extents) does, for a device that takes addresses of
    /// the linear map. A scatterlist must have addresses of that kind; the walk refuses others with
    /// `EINVAL`.
    pub fn linear_extents(&self) -> Extents<'_> {
        self.extents_at(MappedAs::Linear)
    }

    /// Returns the memory as [`extents`](Self::extents) does, also that of a scatterlist that was
    /// mapped to these addresses.
    #[inline]
    pub(crate) fn extents_at(&self, mapped: MappedAs) -> Extents<'_> {
        let mut runs = self.source.extents(self.memory, mapped);
        if let Some(mistaken) = &self.pages {
            runs.of_pages(mistaken);
        }
        runs
    }

    /// Returns all of the memory for a device that takes addresses of the linear map, if it is one
    /// segment that is contiguous there. Returns [`None`] if it isn't. May sleep.
    ///
    /// # Errors
    ///
    /// The errors of [`Extents::next_extents`].
    pub fn one_extent(&self) -> Result<Option<Extent<'a>>, Refusal> {
        match self.pages {
            None => self.source.one_extent(self.memory),
            // It is a list.
            Some(_) => Ok(None),
        }
    }

    /// Returns the consumer's scatterlist, if it may be handed on as it is to a device that takes addresses of the
    /// linear map: each entry is a page that may be registered, and the last one is marked as the last.
    /// [`None`] if it may not: then [`linear_extents`](Self::linear_extents) gives its memory. May sleep.
    pub fn plain_list(&self) -> Option<PlainList<'a>> {
        match &self.pages {
            Some(_) => self.source.plain_list(),
            // It isn't one of pages.
            None => None,
        }
    }

    /// Returns the number of segments and pages, and the length.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the pieces of the region, which have no gaps, of at most this many pages and bytes.
    /// Any context.
    ///
    /// The segments' addresses alone determine the cuts. So the pieces are the same when other
    /// pages are behind the addresses.
    pub fn pieces(&self, max_pages: u64, max_bytes: u64) -> impl Iterator<Item = Piece> + 'a {
        // The list was found valid to its end.
        let segments = self
            .source
            .segments(usize::MAX)
            .into_iter()
            .flatten()
            .map_while(Result::ok);
        PieceIter::new(segments, max_pages, max_bytes)
    }

    /// Returns the kernel address of the first byte, if the memory is one range of kernel
    /// addresses.
    pub(crate) fn kernel_start(&self) -> Option<u64> {
        match &self.source {
            Source::Kvec(list) => match list.entries(usize::MAX) {
                [one] => Some(widen(one.iov_base.addr())),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the requested rights.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns the requested key; meaningless under `KFI_MR_PROV_KEY`.
    pub fn requested_key(&self) -> u64 {
        self.requested_key
    }

    /// Returns the flags. The provider supports all of them.
    pub fn flags(&self) -> u64 {
        self.flags
    }

    /// Returns the authorization key, if the provider supports them and the region or its domain
    /// was given one.
    pub fn auth_key(&self) -> Option<&'a [u8]> {
        self.auth_key
    }
}

/// Returns the shape of a list within the limits.
#[inline(always)]
fn counted(source: &Source<'_>, count: usize, limits: &MrLimits) -> Result<Shape, Refusal> {
    let shape = source.shape(limits.segments)?;
    limits.check(&shape, count)?;
    Ok(shape)
}

/// Returns the shape of a list of several segments, and for [`MrRequest::pages`] whether it was not counted.
#[inline(never)]
fn list_shape(
    source: &Source<'_>,
    count: usize,
    limits: &MrLimits,
) -> Result<(Shape, Option<Cell<bool>>), Refusal> {
    let of_pages = match limits.by_entries && limits.pieces <= 1 {
        true => source.shape_of_pages(limits.segments),
        false => None,
    };
    match of_pages {
        Some(shape) if limits.check(&shape, count).is_ok() => Ok((shape, Some(Cell::new(false)))),
        _ => Ok((counted(source, count, limits)?, None)),
    }
}

impl<'a> Arguments<'a> {
    /// Returns the arguments with the domain's key, if the region was given none.
    pub(crate) fn or_auth_key(self, domain: &'a [u8]) -> Self {
        Self {
            auth_key: self.auth_key.or(domain),
            ..self
        }
    }

    fn parse_flags(&self, limits: &MrLimits) -> Result<(), Refusal> {
        match self.flags & !limits.flags {
            0 => Ok(()),
            unsupported => {
                let refusal = Refusal::new(Errno::EBADFLAGS, c"flag not supported");
                Err(refusal.value(unsupported))
            }
        }
    }
}

/// An authorization key, as attributes of C have it.
#[derive(Clone, Copy)]
pub(crate) enum AuthKey<'a> {
    /// `auth_key_size` is 0.
    None,
    /// A size, but no key.
    Missing,
    /// More bytes than any provider takes.
    TooLong(usize),
    /// A key.
    Some(&'a [u8]),
}

impl<'a> AuthKey<'a> {
    /// Most bytes of a key.
    pub(crate) const MAX: usize = 256;

    /// Takes a key from C.
    ///
    /// # Safety
    ///
    /// `key` is null, or valid for `len` bytes and `'a`.
    pub(crate) unsafe fn from_raw(key: *const u8, len: usize) -> Self {
        match (len, key.is_null()) {
            (0, _) => Self::None,
            (_, true) => Self::Missing,
            (len, false) if len > Self::MAX => Self::TooLong(len),
            // SAFETY: `key` is not null, so it is valid for `len` bytes and `'a`, as the caller
            // promises. `len` is at most `MAX`.
            (len, false) => Self::Some(unsafe { slice::from_raw_parts(key, len) }),
        }
    }

    /// Returns the domain's key if there is none, unless the domain's is empty.
    pub(crate) fn or(self, domain: &'a [u8]) -> Self {
        match self {
            Self::None if !domain.is_empty() => Self::Some(domain),
            _ => self,
        }
    }

    /// Returns the key, if there is one.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the key is missing or too long.
    pub(crate) fn checked(self) -> Result<Option<&'a [u8]>, Refusal> {
        match self {
            Self::None => Ok(None),
            Self::Some(key) => Ok(Some(key)),
            Self::Missing => Err(Refusal::new(Errno::EINVAL, c"auth_key_size without a key")),
            Self::TooLong(len) => {
                Err(Refusal::new(Errno::EINVAL, c"auth_key too long").value(widen(len)))
            }
        }
    }

    /// Checks a key as [`checked`](Self::checked) does.
    ///
    /// # Errors
    ///
    /// - The errors of [`checked`](Self::checked).
    /// - `EOPNOTSUPP`: there is a key, and the provider doesn't know keys.
    pub(crate) fn parse(self, limits: &MrLimits) -> Result<Option<&'a [u8]>, Refusal> {
        let len = match self {
            Self::Some(key) => key.len(),
            Self::TooLong(len) => len,
            Self::None | Self::Missing => 0,
        };
        if len > 0 && !limits.auth_keys {
            let refusal = Refusal::new(Errno::EOPNOTSUPP, c"provider knows no auth_key");
            return Err(refusal.value(widen(len)));
        }
        self.checked()
    }
}

#[kernel::macros::kunit_tests(kfabric_request)]
mod tests {
    use super::*;

    const LIMITS: MrLimits = MrLimits {
        regions: 10,
        segments: 4,
        pages: 8,
        bytes: 1 << 20,
        ..MrLimits::NONE
    };
    const ARGUMENTS: Arguments<'static> = Arguments {
        access: Access::REMOTE_READ.bits(),
        offset: 0,
        requested_key: 7,
        flags: 0,
        auth_key: AuthKey::None,
        together: false,
    };

    fn kvec(base: usize, len: usize) -> kfi_bindings::kvec {
        kfi_bindings::kvec {
            iov_base: core::ptr::without_provenance_mut(base),
            iov_len: len,
        }
    }

    fn parse(list: &[kfi_bindings::kvec], arguments: Arguments<'_>) -> Result<(), Errno> {
        MrRequest::parse(Source::kvecs(list), arguments, &LIMITS)
            .map(|_| ())
            .map_err(|e| e.errno())
    }

    #[test]
    fn arguments_are_checked_in_order() {
        let good = [kvec(0x10000, 10)];
        let bad = Arguments {
            access: 1,
            offset: 1,
            flags: 1,
            auth_key: AuthKey::Some(&[1]),
            ..ARGUMENTS
        };
        assert_eq!(parse(&good, ARGUMENTS), Ok(()));
        assert_eq!(parse(&good, bad), Err(Errno::EOPNOTSUPP));
        let bad = Arguments {
            auth_key: AuthKey::Missing,
            ..bad
        };
        assert_eq!(parse(&good, bad), Err(Errno::EINVAL));
        let bad = Arguments {
            auth_key: AuthKey::None,
            ..bad
        };
        assert_eq!(parse(&good, bad), Err(Errno::EBADFLAGS));
        let bad = Arguments { flags: 0, ..bad };
        assert_eq!(parse(&good, bad), Err(Errno::EINVAL));
        let unknown = Arguments {
            access: 1 | Access::READ.bits(),
            ..ARGUMENTS
        };
        assert_eq!(parse(&good, unknown), Err(Errno::EINVAL));
        assert_eq!(
            parse(
                &good,
                Arguments {
                    offset: 1,
                    ..ARGUMENTS
                }
            ),
            Err(Errno::EINVAL)
        );
    }

    #[test]
    fn long_lists_are_read_to_the_limit_only() {
        let page = kernel::page::PAGE_SIZE;
        let ok = kvec(page, page);
        let zero = kvec(page, 0);
        assert_eq!(parse(&[ok, ok, ok, ok], ARGUMENTS), Ok(()));
        assert_eq!(parse(&[ok, ok, ok, ok, ok], ARGUMENTS), Err(Errno::E2BIG));
        assert_eq!(
            parse(&[ok, ok, ok, zero, ok], ARGUMENTS),
            Err(Errno::EINVAL)
        );
        assert_eq!(parse(&[ok, ok, ok, ok, zero], ARGUMENTS), Err(Errno::E2BIG));
    }

    #[test]
    fn pieces_have_no_gaps() {
        let page = kernel::page::PAGE_SIZE;
        let limits = MrLimits {
            pieces: 4,
            ..LIMITS
        };
        let list = [kvec(page, 10), kvec(3 * page, 10), kvec(9 * page, 9 * page)];
        assert!(MrRequest::parse(Source::kvecs(&list), ARGUMENTS, &limits).is_ok());
        assert_eq!(parse(&list, ARGUMENTS), Err(Errno::EINVAL));
    }

    #[test]
    fn pages_and_gaps_are_limited() {
        let page = kernel::page::PAGE_SIZE;
        assert_eq!(parse(&[kvec(page, 8 * page)], ARGUMENTS), Ok(()));
        assert_eq!(
            parse(&[kvec(page, 8 * page + 1)], ARGUMENTS),
            Err(Errno::E2BIG)
        );
        assert_eq!(
            parse(&[kvec(page + 1, 8 * page)], ARGUMENTS),
            Err(Errno::E2BIG)
        );
        assert_eq!(
            parse(&[kvec(page, 10), kvec(3 * page, 10)], ARGUMENTS),
            Err(Errno::EINVAL)
        );
    }
}
