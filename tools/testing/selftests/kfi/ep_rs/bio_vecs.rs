// SPDX-License-Identifier: GPL-2.0

//! A region of memory that its owner has as bio_vecs.

use crate::pair::{
    check,
    done,
    empty,
    filled,
    pattern,
    Pair,
    Place,
    Tag, //
};
use kernel::{
    alloc::flags::__GFP_ZERO,
    bindings::bio_vec,
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*, //
};
use kfabric::consumer::{
    Access,
    BioVecList,
    BioVecs,
    Errno,
    Kind,
    Remote, //
};

/// Where the memory begins in the first page. It goes on to the end of that, and in the second one.
const OFFSET: usize = 1024;
/// How many bytes there are in the second page.
const REST: usize = 512;
pub(crate) const LEN: usize = PAGE_SIZE - OFFSET + REST;

/// Parts of pages.
///
/// # Invariants
///
/// `list` names parts of `pages`, which are zeroed when they are allocated.
pub(crate) struct Sectors {
    _pages: KVec<Page>,
    list: KVec<bio_vec>,
    writable: bool,
    _counted: Tag,
}

#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
// SAFETY: A pointer to a page may be used by any thread.
unsafe impl Send for Sectors {}

#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
// SAFETY: By the type invariant the pages are there as long as the value. Nobody has a reference to their bytes.
unsafe impl BioVecs for Sectors {
    fn bio_vecs(&self) -> &[bio_vec] {
        &self.list
    }

    fn is_readable(&self) -> bool {
        true
    }

    fn is_writable(&self) -> bool {
        self.writable
    }
}

impl Sectors {
    fn zeroed(writable: bool) -> Result<BioVecList<Self>> {
        Ok(BioVecList::new(Self::new(writable)?))
    }

    /// Makes zeroed parts of two pages.
    pub(crate) fn new(writable: bool) -> Result<Self> {
        let parts = [(0, OFFSET, PAGE_SIZE - OFFSET), (1, 0, REST)];
        Self::of(2, parts.into_iter(), writable)
    }

    /// Makes zeroed parts of `count` pages. A part has the index of a page, and its offset and length in bytes.
    pub(crate) fn of(
        count: usize,
        parts: impl Iterator<Item = (usize, usize, usize)>,
        writable: bool,
    ) -> Result<Self> {
        let mut pages = KVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            pages.push(Page::alloc_page(GFP_KERNEL | __GFP_ZERO)?, GFP_KERNEL)?;
        }
        let mut list = KVec::new();
        for (index, offset, len) in parts {
            let part = bio_vec {
                bv_page: pages.get(index).ok_or(EINVAL)?.as_ptr(),
                bv_len: len.try_into()?,
                bv_offset: offset.try_into()?,
            };
            list.push(part, GFP_KERNEL)?;
        }
        // INVARIANT: Just made so.
        Ok(Self {
            _pages: pages,
            list,
            writable,
            _counted: Tag::new(0),
        })
    }
}

/// Checks that a peer writes to the pages themselves, and reads from them. It can't write if they
/// may not be written.
pub(crate) fn regions(place: &Place) -> Result {
    let pair = Pair::open(place)?;
    let domain = &pair.passive_side.domain;
    let refused = domain
        .regbv(Sectors::zeroed(false)?, Access::REMOTE_WRITE)
        .err()
        .ok_or(EIO)?;
    check(
        "pages that may not be written",
        refused.errno() == Errno::EINVAL,
    )?;

    let access = Access::REMOTE_READ | Access::REMOTE_WRITE;
    let mr = domain.regbv(Sectors::zeroed(true)?, access)?;
    check("its length", mr.len() == LEN)?;
    let at = |offset: u64| Remote {
        addr: mr.base() + offset,
        key: mr.key(),
    };
    pair.active.write(filled(4, LEN - 7, 1)?, at(7))?;
    done(&pair.active_side.tx, 1, Kind::Write)?;
    check("written", mr.compare(7, &pattern(4, LEN - 7)?)?.is_none())?;
    check("before it", mr.compare(0, &[0; 7])?.is_none())?;
    pair.active.read(empty(LEN - 7, 2)?, at(7))?;
    let (read, _) = done(&pair.active_side.tx, 2, Kind::Read)?;
    check("read", read.memory()[..] == pattern(4, LEN - 7)?[..])?;
    mr.close()?;
    Ok(())
}
