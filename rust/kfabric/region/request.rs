// SPDX-License-Identifier: GPL-2.0

//! A registration, parsed: all five calls and `kfi_mr_regattr` become one [`MrRequest`].
//!
//! What is wrong is found in the order that kfi_mr(3) documents: attributes, list and count;
//! flags; access; offset; segments by index; limits. Memory and device come after, in
//! [`crate::region::memory`] and in the provider.

mod kunit;

use crate::{
    region::{
        access::Access,
        around::Around,
        auth_key::AuthKey,
        judge::Use,
        lease::{
            Lease,
            Tenant, //
        },
        limits::MrLimits,
        list::PlainList,
        memory::{
            MemoryRun,
            Runs, //
        },
        pieces::{
            Piece,
            Pieces, //
        },
        shape::Shape,
        source::Source, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use core::cell::Cell;
use kfi_bindings::kvec;

/// The arguments of a registration that don't say where the memory is, as C gave them.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    pub(crate) access: u64,
    pub(crate) offset: u64,
    pub(crate) requested_key: u64,
    pub(crate) flags: u64,
    pub(crate) auth_key: AuthKey<'a>,
    /// What is found of memory around, if it is one of several that are registered together.
    pub(crate) together: Option<&'a Around>,
}

/// A valid registration request.
///
/// # Invariants
///
/// `shape` was taken from `source` and is within the limits of the domain; but where there are `pages`, that
/// it is the shape of `source` is known only when all of its memory has been found.
pub struct MrRequest<'a> {
    source: Source<'a>,
    shape: Shape,
    access: Access,
    memory: Use,
    requested_key: u64,
    flags: u64,
    auth_key: Option<&'a [u8]>,
    /// The provider keeps memory.
    leases: bool,
    /// What is made of the memory here, if anything, may be used until this is dropped.
    lease: Cell<Option<Lease>>,
    /// What is found of memory around, if it is one of several that are registered together.
    together: Option<&'a Around>,
    /// It is a list of pages, or just taken for one, and found to be none.
    pages: Option<Cell<bool>>,
}

impl<'a> MrRequest<'a> {
    /// Checks everything that can be checked without looking at memory or device.
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
        let shape = source.shape(limits.segments)?;
        limits.check(&shape, source.count())?;
        // INVARIANT: Just taken and checked.
        Ok(Self {
            source,
            shape,
            access,
            memory: Use::new(access, limits.peer_to_peer),
            requested_key: arguments.requested_key,
            flags: arguments.flags,
            auth_key,
            leases: limits.leases,
            lease: Cell::new(None),
            together: arguments.together,
            pages: None,
        })
    }

    /// As [`parse`](Self::parse), of a list that is taken for one in which each segment is a page, without
    /// counting; `None` if it isn't taken for that, or isn't valid then.
    ///
    /// Whether it is one is found out as its memory is, by [`Runs::next_entries`], and nothing else
    /// of its memory is to be had: then it [is no such list](Self::is_mistaken) for good.
    #[inline(always)]
    pub(crate) fn of_pages(
        source: Source<'a>,
        arguments: Arguments<'a>,
        limits: &MrLimits,
    ) -> Option<Self> {
        let shape = match limits.by_entries && limits.pieces <= 1 {
            true => source.shape_of_pages(limits.segments)?,
            false => return None,
        };
        limits.check(&shape, source.count()).ok()?;
        arguments.parse_flags(limits).ok()?;
        let access = Access::parse(arguments.access).ok()?;
        if arguments.offset != 0 {
            return None;
        }
        // INVARIANT: Nothing is registered by it unless the shape is right.
        Some(Self {
            source,
            shape,
            access,
            memory: Use::new(access, limits.peer_to_peer),
            requested_key: arguments.requested_key,
            flags: arguments.flags,
            auth_key: arguments.auth_key.parse(limits).ok()?,
            leases: limits.leases,
            lease: Cell::new(None),
            together: arguments.together,
            pages: Some(Cell::new(false)),
        })
    }

    /// It was taken for a list of pages, and isn't one, or not of pages about which there is nothing to be
    /// said.
    pub(crate) fn is_mistaken(&self) -> bool {
        self.pages.as_ref().is_some_and(Cell::get)
    }

    /// A region of kvecs described anew, for what was registered before.
    pub(crate) fn again(
        list: &'a [kvec],
        access: Access,
        limits: &MrLimits,
    ) -> Result<Self, Refusal> {
        let source = Source::kvecs(list);
        let shape = source.shape(limits.segments)?;
        limits.check(&shape, source.count())?;
        // INVARIANT: Just taken and checked.
        Ok(Self {
            source,
            shape,
            access,
            memory: Use::new(access, limits.peer_to_peer),
            requested_key: 0,
            flags: 0,
            auth_key: None,
            leases: limits.leases,
            lease: Cell::new(None),
            together: None,
            pages: None,
        })
    }

    /// Whether it is one of several that are registered together.
    pub fn is_together(&self) -> bool {
        self.together.is_some()
    }

    /// The right to use the memory by the processor. It ends with the region, or with the request if
    /// that doesn't become one. May sleep.
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

    /// Where the memory is.
    pub fn source(&self) -> &Source<'a> {
        &self.source
    }

    /// The memory in the order of the region, as contiguous as it is; `EFAULT` at the first that may
    /// not be registered with these rights. A scatterlist was mapped by its owner, and has none. May
    /// sleep.
    pub fn runs(&self) -> Runs<'_> {
        let mut runs = self.source.runs(self.memory);
        runs.set_of(self.pages.as_ref(), self.together);
        runs
    }

    /// As [`runs`](Self::runs), for a device that takes addresses of the linear map: also of a
    /// scatterlist, whose addresses must be such (`EINVAL`).
    pub fn linear_runs(&self) -> Runs<'_> {
        let mut runs = self.source.linear_runs(self.memory);
        runs.set_of(self.pages.as_ref(), self.together);
        runs
    }

    /// All of the memory, if it is one run of the linear map about which there is nothing to be said, for
    /// a device that takes such addresses; `None` if it isn't as simple, and then
    /// [`linear_runs`](Self::linear_runs) says what there is to be said. May sleep.
    pub fn plain_run(&self) -> Option<MemoryRun<'a>> {
        match &self.pages {
            None => self.source.plain_run(self.memory, self.together),
            // Nothing but entries is to be had of it.
            Some(_) => None,
        }
    }

    /// The consumer's scatterlist, if it can be handed on as it is to a device that takes addresses of the linear
    /// map: each entry is a page about which there is nothing to be said, and they are not neighbours. `None` if
    /// it isn't as simple, and then [`linear_runs`](Self::linear_runs) says what there is to be said. May sleep.
    ///
    /// It is for who maps it in pages as large as the machine's, and goes the other way if that isn't all of the
    /// list, or isn't as long as the request's [`shape`](Self::shape): there may be entries that are empty, or begin
    /// inside of a page.
    pub fn plain_list(&self) -> Option<PlainList<'a>> {
        match &self.pages {
            Some(_) => self.source.plain_list(self.memory, self.together),
            // It isn't one of pages.
            None => None,
        }
    }

    /// What is going to be done with the pages.
    pub(crate) fn memory(&self) -> Use {
        self.memory
    }

    /// Segments, pages and length.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The region cut into pieces, which have no gaps, of at most this many pages and bytes. Any context.
    ///
    /// Where it is cut depends on the segments' addresses only, so it is the same when other pages
    /// are behind them.
    pub fn pieces(&self, max_pages: u64, max_bytes: u64) -> impl Iterator<Item = Piece> + 'a {
        // The list was found valid to its end.
        let segments = self.source.segments(usize::MAX).map_while(Result::ok);
        Pieces::new(segments, max_pages, max_bytes)
    }

    /// Where its first byte is for the kernel, if it is one range of addresses there.
    pub(crate) fn kernel_start(&self) -> Option<u64> {
        match &self.source {
            Source::Kvec(list) => match list.entries(usize::MAX) {
                [one] => Some(widen(one.iov_base.addr())),
                _ => None,
            },
            _ => None,
        }
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
