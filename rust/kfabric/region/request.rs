// SPDX-License-Identifier: GPL-2.0

//! A registration, parsed: all five calls and `kfi_mr_regattr` become one [`MrRequest`].
//!
//! What is wrong is found in the order that kfi_mr(3) documents: attributes, list and count;
//! flags; access; offset; segments by index; limits. Memory and device come after, in
//! [`crate::region::memory`] and in the provider.

use crate::{
    region::{
        access::Access,
        judge::Use,
        lease::{
            Lease,
            Tenant, //
        },
        memory::{self, Pieces},
        runs::{
            Run,
            Runs, //
        },
        shape::{Shape, Span},
        source::Source, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use core::{
    cell::Cell,
    slice, //
};
use kfi_bindings::kvec;

/// What one region of a domain can be.
#[derive(Clone, Copy, Debug)]
pub struct MrLimits {
    /// Most regions of a domain (`mr_cnt`).
    pub regions: usize,
    /// Most segments (`mr_iov_limit`).
    pub segments: usize,
    /// Most pages.
    pub pages: u64,
    /// Most bytes.
    pub bytes: u64,
    /// May segments have holes between them?
    pub holes: bool,
    /// Flags that a registration may carry.
    pub flags: u64,
    /// Does the provider know authorization keys?
    pub auth_keys: bool,
    /// Can regions be refreshed when other pages are behind them? If not: what is said then.
    pub refresh: Result<(), Refusal>,
    /// Can the device reach memory of other PCI devices (P2PDMA)? Which of it is for the DMA
    /// mapping to tell.
    pub peer_to_peer: bool,
    /// Most device regions that one region can consist of. Where that is more than 1, holes and
    /// long regions are no matter: [`pages`](Self::pages) and [`bytes`](Self::bytes) are those of
    /// a piece.
    pub pieces: usize,
}

impl MrLimits {
    /// Nothing at all; what others start from.
    pub const NONE: Self = Self {
        regions: 0,
        segments: 0,
        pages: 0,
        bytes: 0,
        holes: false,
        flags: 0,
        auth_keys: false,
        refresh: Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider can't refresh regions",
        )),
        peer_to_peer: false,
        pieces: 1,
    };
}

/// The arguments of a registration that don't say where the memory is, as C gave them.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    pub(crate) access: u64,
    pub(crate) offset: u64,
    pub(crate) requested_key: u64,
    pub(crate) flags: u64,
    pub(crate) auth_key: AuthKey<'a>,
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

/// A valid registration request.
///
/// # Invariants
///
/// `shape` was taken from `source` and is within the limits of the domain.
pub struct MrRequest<'a> {
    source: Source<'a>,
    shape: Shape,
    access: Access,
    memory: Use,
    requested_key: u64,
    flags: u64,
    auth_key: Option<&'a [u8]>,
    /// What is made of the memory here, if anything, may be used until this is dropped.
    lease: Cell<Option<Lease>>,
}

impl<'a> MrRequest<'a> {
    /// Checks everything that can be checked without looking at memory or device.
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
        let shape = source.shape(limits.segments)?;
        check_shape(&shape, source.count(), limits)?;
        // INVARIANT: Just taken and checked.
        Ok(Self {
            source,
            shape,
            access,
            memory: Use::new(access, limits.peer_to_peer),
            requested_key: arguments.requested_key,
            flags: arguments.flags,
            auth_key,
            lease: Cell::new(None),
        })
    }

    /// A region of kvecs described anew, for what was registered before.
    pub(crate) fn again(
        list: &'a [kvec],
        access: Access,
        limits: &MrLimits,
    ) -> Result<Self, Refusal> {
        let source = Source::kvecs(list);
        let shape = source.shape(limits.segments)?;
        check_shape(&shape, source.count(), limits)?;
        // INVARIANT: Just taken and checked.
        Ok(Self {
            source,
            shape,
            access,
            memory: Use::new(access, limits.peer_to_peer),
            requested_key: 0,
            flags: 0,
            auth_key: None,
            lease: Cell::new(None),
        })
    }

    /// The right to use the memory by the processor. It ends with the region, or with the request if
    /// that doesn't become one. May sleep.
    pub(crate) fn tenant(&self) -> Result<Tenant, Errno> {
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

    /// Where the memory is.
    pub fn source(&self) -> &Source<'a> {
        &self.source
    }

    /// The pages, in the order of the region; `EFAULT` at the first memory that may not be
    /// registered with these rights. A scatterlist was mapped by its owner, and has none. Any
    /// context.
    pub fn pieces(&self) -> Pieces<'_> {
        self.source.pieces(self.memory)
    }

    /// Checks that the memory of a scatterlist's entry with this index may be registered, on a
    /// device whose addresses are those of the linear map; `EFAULT` if not. May sleep.
    pub fn check_linear(&self, index: usize, span: Span) -> Result<(), Refusal> {
        memory::check_linear(self.memory, index, span)
    }

    /// What is going to be done with the pages.
    pub(crate) fn memory(&self) -> Use {
        self.memory
    }

    /// Segments, pages and length.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The region cut into runs without holes, of at most this many pages and bytes. Any context.
    ///
    /// Where it is cut depends on the segments' addresses only, so it is the same when other pages
    /// are behind them.
    pub fn runs(&self, most_pages: u64, most_bytes: u64) -> impl Iterator<Item = Run> + 'a {
        // The list was found valid to its end.
        let segments = self.source.segments(usize::MAX).map_while(Result::ok);
        Runs::new(segments, most_pages, most_bytes)
    }

    /// The rights asked for.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The key asked for; meaningless under `KFI_MR_PROV_KEY`.
    pub fn requested_key(&self) -> u64 {
        self.requested_key
    }

    /// Flags, all of which the provider supports.
    pub fn flags(&self) -> u64 {
        self.flags
    }

    /// The authorization key, where the provider supports them and the region or its domain was
    /// given one.
    pub fn auth_key(&self) -> Option<&'a [u8]> {
        self.auth_key
    }
}

impl<'a> AuthKey<'a> {
    /// Most bytes of a key.
    pub(crate) const MOST: usize = 256;

    /// Takes a key from C.
    ///
    /// # Safety
    ///
    /// `key` is null, or valid for `len` bytes and `'a`.
    pub(crate) unsafe fn from_raw(key: *const u8, len: usize) -> Self {
        match (len, key.is_null()) {
            (0, _) => Self::None,
            (_, true) => Self::Missing,
            (len, false) if len > Self::MOST => Self::TooLong(len),
            // SAFETY: By the requirements of this function; the length is one that there can be.
            (len, false) => Self::Some(unsafe { slice::from_raw_parts(key, len) }),
        }
    }

    /// The same, but with the domain's key where there is none; that may be empty.
    pub(crate) fn or(self, domain: &'a [u8]) -> Self {
        match self {
            Self::None if !domain.is_empty() => Self::Some(domain),
            _ => self,
        }
    }

    /// The key, if there is one; `EINVAL` if it is missing or too long.
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

    /// As [`checked`](Self::checked), and `EOPNOTSUPP` for a key where keys are not known.
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

impl<'a> Arguments<'a> {
    /// The same, but with the domain's key where the region was given none.
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

fn check_shape(shape: &Shape, count: usize, limits: &MrLimits) -> Result<(), Refusal> {
    let one_piece = limits.pieces <= 1;
    if let Some(index) = shape.hole() {
        if one_piece && !limits.holes {
            return Err(Refusal::new(Errno::EINVAL, c"hole before this segment").at(index));
        }
    }
    // A longer list was read no further than to the limit.
    if count > limits.segments {
        return Err(Refusal::new(Errno::E2BIG, c"too many segments").value(widen(count)));
    }
    if one_piece && shape.pages() > limits.pages {
        return Err(Refusal::new(Errno::E2BIG, c"too many pages").value(shape.pages()));
    }
    if one_piece && shape.bytes() > limits.bytes {
        return Err(Refusal::new(Errno::E2BIG, c"too many bytes").value(shape.bytes()));
    }
    Ok(())
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
            access: 0,
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
    fn pieces_have_no_holes() {
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
    fn pages_and_holes_are_limited() {
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
