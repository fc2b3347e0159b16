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

/// Parts of two pages.
///
/// # Invariants
///
/// `list` names parts of `pages`, which are zeroed when they are allocated.
pub(crate) struct Sectors {
    _pages: [Page; 2],
    list: [bio_vec; 2],
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

    /// Makes zeroed parts of pages.
    pub(crate) fn new(writable: bool) -> Result<Self> {
        let page = || Page::alloc_page(GFP_KERNEL | __GFP_ZERO);
        let pages = [page()?, page()?];
        let [first, second] = &pages;
        let list = [
            bio_vec {
                bv_page: first.as_ptr(),
                bv_len: u32::try_from(PAGE_SIZE - OFFSET)?,
                bv_offset: u32::try_from(OFFSET)?,
            },
            bio_vec {
                bv_page: second.as_ptr(),
                bv_len: u32::try_from(REST)?,
                bv_offset: 0,
            },
        ];
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
