// SPDX-License-Identifier: GPL-2.0

//! Fast memory regions that are not valid: without memory, and then with memory.

use crate::{
    pd::Counted,
    prelude::*,
    sg::Layout, //
};
use core::ops::Deref;
use kernel::page::PAGE_SIZE;

/// A fast memory region. Its owner knows that it is not valid at the device: no peer can reach
/// anything through it. A `&FastMr` may belong to a [`ValidMr`].
///
/// Dropping it deregisters it, and may sleep.
///
/// # Invariants
///
/// No work request that would make the region valid has been posted, or the region has been
/// fenced since. The one in a [`ValidMr`] is an exception: it is lent by shared reference only.
pub struct FastMr {
    pub(super) raw: RawMr,
    max_pages: u32,
    /// How often it has been registered, failed attempts included.
    uses: u8,
    /// The rights that it has, or had last; none yet if it was never mapped.
    access: AccessFlags,
    /// It must have the same rights again.
    keeps_rights: bool,
    kind: Kind,
}

// There is at least one to each open region.
const _: () = assert!(size_of::<FastMr>() <= 24);

impl FastMr {
    /// How often a region can be registered before its keys would come back.
    ///
    /// Eight bits of the key change from one registration to the next; the rest is the region's
    /// for good.
    pub const MAX_USES: u8 = 255;

    /// Allocates a region for up to `max_pages` pages, of its kind, or entries with [`Kind::Gaps`]. May sleep.
    pub fn alloc(pd: &Arc<Pd>, kind: Kind, max_pages: u32) -> Result<Self> {
        let entries = match kind {
            Kind::Pages => max_pages.checked_mul(pd.device.per_page()).ok_or(EINVAL)?,
            Kind::LargePages | Kind::Gaps => max_pages,
        };
        // INVARIANT: The region is new.
        Ok(Self {
            raw: RawMr::alloc(pd, kind, entries)?,
            max_pages,
            uses: 0,
            access: AccessFlags::default(),
            keeps_rights: false,
            kind,
        })
    }

    /// Returns the protection domain.
    pub fn pd(&self) -> &Arc<Pd> {
        &self.raw.counted.pd
    }

    /// Returns the rights that the region has, or had last.
    pub fn access(&self) -> AccessFlags {
        self.access
    }

    /// Returns the address by which peers reach the first byte.
    ///
    /// Unless it has been set, it is a DMA address, and so, on a software device, a kernel address.
    pub fn iova(&self) -> u64 {
        // SAFETY: `as_raw()` is a valid region as long as `self`, and changes only through an
        // exclusive reference.
        unsafe { (*self.as_raw()).iova }
    }

    /// Returns the key for peers that the region has, or had last.
    pub fn rkey(&self) -> u32 {
        // SAFETY: `as_raw()` is a valid region as long as `self`, and changes only through an
        // exclusive reference.
        unsafe { (*self.as_raw()).rkey }
    }

    /// Returns the key for local work requests that the region has, or had last.
    pub fn lkey(&self) -> u32 {
        // SAFETY: `as_raw()` is a valid region as long as `self`, and changes only through an
        // exclusive reference.
        unsafe { (*self.as_raw()).lkey }
    }

    /// Returns the length in bytes since it was mapped.
    #[inline]
    pub fn length(&self) -> u64 {
        // SAFETY: `as_raw()` is a valid region as long as `self`, and changes only through an
        // exclusive reference.
        unsafe { (*self.as_raw()).length }
    }

    /// Returns the raw region.
    pub(crate) fn as_raw(&self) -> *mut rdma_bindings::ib_mr {
        self.raw.mr.as_ptr()
    }

    /// Returns the kind of memory that the region may have.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the maximum number of pages.
    pub fn max_pages(&self) -> u32 {
        self.max_pages
    }

    /// Checks whether the region may be registered with these rights. An unused region may have
    /// any.
    pub fn may_have(&self, access: AccessFlags) -> bool {
        !self.keeps_rights || self.access == access
    }

    /// Checks whether the region may only have its former rights.
    pub fn keeps_rights(&self) -> bool {
        self.keeps_rights
    }

    /// Checks whether the region may get pages of this size, on a device whose own have `base`. It
    /// may get larger ones only if it was never registered, or always has larger ones. rxe makes a
    /// table for the larger pages and frees the former one. A peer that knows the region's former
    /// key may be reading that.
    pub(super) fn may_have_pages(&self, size: u32, base: u32) -> bool {
        match self.kind {
            Kind::Pages => size == base || self.uses == 0,
            Kind::LargePages => size == Layout::LARGE,
            Kind::Gaps => size == base,
        }
    }

    /// Checks whether the region has been registered so often that it must not be again.
    pub fn is_spent(&self) -> bool {
        self.uses == Self::MAX_USES
    }

    /// Checks whether half of its keys have been used, so that a new region should take its place soon. Any
    /// context.
    pub fn is_worn(&self) -> bool {
        self.uses >= Self::MAX_USES / 2
    }

    /// Restricts the region to the rights that it had last.
    pub(crate) fn keep_rights(&mut self) {
        self.keeps_rights = true;
    }
}

/// The kind of memory that a region may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole pages, except that it may start and end inside one.
    Pages,
    /// The same, of pages of 64 KiB.
    LargePages,
    /// Anything. Needs [`Limits::sg_gaps`](crate::Limits::sg_gaps).
    Gaps,
}

/// A `struct ib_mr` made for fast registration. Dropping it deregisters it, and may sleep.
///
/// # Invariants
///
/// `mr` is a region on the protection domain of `counted`. It is deregistered only here, by who takes
/// that out, which is done once and last.
pub(super) struct RawMr {
    mr: NonNull<rdma_bindings::ib_mr>,
    counted: ManuallyDrop<Counted>,
}

// SAFETY: A region is not tied to a task.
unsafe impl Send for RawMr {}

// SAFETY: A shared reference only reads fields. They change only through an exclusive reference, or
// unsafely.
unsafe impl Sync for RawMr {}

impl RawMr {
    /// Allocates a region. May sleep.
    pub(super) fn alloc(pd: &Arc<Pd>, kind: Kind, max_pages: u32) -> Result<Self> {
        let kind = match kind {
            Kind::Pages | Kind::LargePages => rdma_bindings::ib_mr_type_IB_MR_TYPE_MEM_REG,
            Kind::Gaps => rdma_bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS,
        };
        // SAFETY: The domain is there.
        let mr = unsafe { rdma_bindings::ib_alloc_mr(pd.as_raw(), kind, max_pages) };
        // INVARIANT: Just allocated on the domain.
        Ok(Self {
            mr: NonNull::new(from_err_ptr(mr)?).ok_or(ENOMEM)?,
            counted: ManuallyDrop::new(Counted::new(pd)),
        })
    }

    /// Deregisters the region: after that the device doesn't touch its memory. May sleep.
    ///
    /// On an error the region has been leaked, and the device may still use it.
    #[inline]
    pub(super) fn deregister(self) -> Result {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again.
        unsafe { this.end() }
    }

    /// Leaves the region to the device for good, which may still come to use it.
    pub(super) fn leak(self) {
        let mut this = ManuallyDrop::new(self);
        let (mr, device) = (this.mr.as_ptr(), this.counted.pd.device.as_raw());
        // SAFETY: `mr` is a region of `device` by the type invariant, and nothing frees it from here on.
        unsafe { rdma_bindings::rdma_helper_disown(device, &raw mut (*mr).res) };
        // SAFETY: `this` is never dropped nor used again.
        let counted = unsafe { ManuallyDrop::take(&mut this.counted) };
        // The domain is not held any more, so that the device can go.
        let _ = counted.end("memory region", || Err(EIO));
    }

    /// Deregisters the region.
    ///
    /// # Safety
    ///
    /// To be the last that is done with `self`.
    unsafe fn end(&mut self) -> Result {
        // SAFETY: The caller promises that this is the last use of `self`, so `counted` is taken
        // once.
        let counted = unsafe { ManuallyDrop::take(&mut self.counted) };
        let mr = self.mr.as_ptr();
        // SAFETY: `mr` is there by the type invariant, and isn't used again.
        let deregister = || to_result(unsafe { rdma_bindings::ib_dereg_mr_user(mr, null_mut()) });
        counted.end("memory region", deregister)
    }
}

impl Drop for RawMr {
    fn drop(&mut self) {
        // An error has been reported; who needs to know whether the device is done with the region
        // has called `deregister()`.
        //
        // SAFETY: `self` is being dropped, so this is its last use.
        let _ = unsafe { self.end() };
    }
}

/// A region that has its memory and rights, ready to be registered. No peer can reach it yet.
///
/// Dropping it deregisters the region and drops the list, and may sleep.
pub struct PreparedMr<L> {
    pub(super) mr: FastMr,
    pub(super) list: L,
}

/// [`PAGE_SIZE`] less one, the bits that are the offset in a page.
// CAST: No page is that big.
const OFFSET_MASK: u64 = PAGE_SIZE as u64 - 1;

impl<L> Deref for PreparedMr<L> {
    type Target = FastMr;

    fn deref(&self) -> &FastMr {
        &self.mr
    }
}

impl<L: DmaList> PreparedMr<L> {
    /// Sets the address by which peers will reach the first byte to `base`, plus the memory's
    /// offset in its page. That is the device's page or the machine's, whichever is larger: devices
    /// take the offset from the address' low bits. With a [`Layout`] it is less than the machine's
    /// page.
    ///
    /// [`EINVAL`] if `base` is 0 or not at the start of a page, or if the region would wrap.
    pub fn set_base(&mut self, base: u64) -> Result {
        let mask = self.offset_mask();
        if base == 0 || base & mask != 0 {
            return Err(EINVAL);
        }
        let iova = base + (self.iova() & mask);
        iova.checked_add(self.length()).ok_or(EINVAL)?;
        // SAFETY: The region is there and ours alone, and the device doesn't use it yet.
        unsafe { (*self.as_raw()).iova = iova };
        Ok(())
    }

    /// Takes region and list apart again.
    pub fn unmap(self) -> (FastMr, L) {
        (self.mr, self.list)
    }

    /// Gives the region the next key. Must be called before each registration.
    #[inline]
    pub(crate) fn next_key(&mut self) {
        self.mr.uses = self.mr.uses.saturating_add(1);
        // SAFETY: `as_raw()` is a valid region as long as `self`, and the device does not use it
        // yet.
        unsafe { rdma_bindings::rdma_helper_next_key(self.as_raw()) };
    }

    /// Leaves region and mapping to the device for good. The device may register the region at any
    /// time.
    pub(crate) fn leak(self) {
        self.mr.raw.leak();
        self.list.into_mapping().leak();
    }

    /// Deregisters the region, and returns the list. The device may have registered the region or
    /// not.
    ///
    /// If that fails the list is leaked.
    pub(crate) fn abandon(self) -> Option<L> {
        match self.mr.raw.deregister() {
            Ok(()) => Some(self.list),
            Err(_) => {
                self.list.into_mapping().leak();
                None
            }
        }
    }
}

impl FastMr {
    /// Gives the region its memory and its rights.
    ///
    /// All of the list must fit, or nothing is done. May sleep.
    ///
    /// # Errors
    ///
    /// - [`EINVAL`]: a gap, too many pages, a region of large pages, or a list of another device.
    /// - [`EINVAL`]: rights that don't go together, or [that it may not have](Self::may_have).
    /// - [`EOVERFLOW`]: the region is spent.
    /// - The errors of the driver.
    pub fn map<L: DmaList>(
        self,
        list: L,
        access: AccessFlags,
    ) -> Result<PreparedMr<L>, MapError<L>> {
        if self.is_spent() {
            return Err(MapError {
                error: EOVERFLOW,
                mapped: 0,
                mr: self,
                list,
            });
        }
        self.map_again(list, access, None)
    }

    /// Maps a list as [`FastMr::map`] does, but of larger pages, if the region needs no more of
    /// them. Only a region that was never registered may have them. A region of [large
    /// pages](super::Kind::LargePages) may always have pages of its size.
    ///
    /// After an error the state of the region is unknown: it must be dropped, which deregisters it.
    /// rxe, for one, has allocated a table for the larger pages by then, or has none any more.
    pub fn map_larger<L: DmaList>(
        mut self,
        list: L,
        access: AccessFlags,
        layout: Layout,
    ) -> Result<PreparedMr<L>, L> {
        match self.map_list(&list, access, Some(layout.page_size())) {
            Ok(()) if !self.is_spent() => Ok(PreparedMr { mr: self, list }),
            _ => Err(list),
        }
    }

    /// Maps a list as [`FastMr::map`] does, but for the key that the region has, and of pages of
    /// this size if one is given.
    pub(super) fn map_again<L: DmaList>(
        mut self,
        list: L,
        access: AccessFlags,
        page_size: Option<u32>,
    ) -> Result<PreparedMr<L>, MapError<L>> {
        match self.map_list(&list, access, page_size) {
            Ok(()) => Ok(PreparedMr { mr: self, list }),
            Err((error, mapped)) => Err(MapError {
                error,
                mapped,
                mr: self,
                list,
            }),
        }
    }

    /// Returns the size of the region's pages, a power of two since it was mapped.
    pub(super) fn page_size(&self) -> u32 {
        // SAFETY: The region is there, and changes by way of an exclusive reference only.
        unsafe { (*self.as_raw()).page_size }
    }

    /// Returns the bits of an address that are the offset in a page, its own or the machine's,
    /// whichever is larger.
    pub(super) fn offset_mask(&self) -> u64 {
        OFFSET_MASK | u64::from(self.page_size().wrapping_sub(1))
    }

    /// Maps the list and takes the rights, or returns an error and how many entries could be mapped.
    fn map_list<L: DmaList>(
        &mut self,
        list: &L,
        access: AccessFlags,
        page_size: Option<u32>,
    ) -> Result<(), (Error, u32)> {
        if !list.is_for(&self.pd().device) {
            return Err((EINVAL, 0));
        }
        access.check().map_err(|err| (err, 0))?;
        if !self.may_have(access) {
            return Err((EINVAL, 0));
        }

        let count = c_int::try_from(list.count()).map_err(|err| (err.into(), 0))?;
        let base = self.pd().device.page_size().ok_or((EINVAL, 0))?;
        let page_size = page_size.unwrap_or(base);
        if !self.may_have_pages(page_size, base) {
            return Err((EINVAL, 0));
        }
        // SAFETY: The region is there and not in use by the device, by the type invariant; the
        // list has that many mapped entries, as `DmaList` demands.
        let mapped = list.with_raw(|first| unsafe {
            rdma_bindings::ib_map_mr_sg(self.as_raw(), first, count, null_mut(), page_size)
        });
        match u32::try_from(mapped) {
            Ok(mapped) if mapped == list.count() && list.is_all(self.length()) => {
                self.access = access;
                Ok(())
            }
            Ok(mapped) => Err((EINVAL, mapped)),
            Err(_) => Err((Error::from_errno(mapped), 0)),
        }
    }
}

/// A region that could not be mapped, with all that went in.
pub struct MapError<L> {
    /// Why.
    pub error: Error,
    /// How many of the list's entries could be mapped, so the index of the one that couldn't.
    pub mapped: u32,
    /// The region.
    pub mr: FastMr,
    /// The list.
    pub list: L,
}
