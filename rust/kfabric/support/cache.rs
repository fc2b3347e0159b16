// SPDX-License-Identifier: GPL-2.0

//! Slab caches for the objects of the core, the optional parts of regions, and lists of regions.
//!
//! C: [`rust/helpers/cache.c`](srctree/rust/helpers/cache.c)
//!
//! The memory comes from caches of the core's own and is not cleared. A kernel that clears
//! allocated memory takes as long for that as for the rest of a small object.

use crate::prelude::*;
use core::{
    alloc::Layout,
    mem::MaybeUninit, //
};
use kernel::{
    alloc::{
        flags::__GFP_ZERO,
        AllocError,
        Allocator,
        Box,
        Flags,
        NumaNode,
        Vec, //
    },
    error::to_result, //
};
use kfi_bindings::{
    kfi_helper_cache,
    kfi_helper_cache_KFI_CACHE_LIST as LIST,
    kfi_helper_cache_KFI_CACHE_OBJECT as OBJECT,
    kfi_helper_cache_KFI_CACHE_RARE as RARE, //
};

/// The allocator of one of the caches.
pub struct Cached<const WHICH: kfi_helper_cache>;

/// An object of the core, of one type.
pub(crate) type ObjectBox<T> = Box<T, Cached<OBJECT>>;

/// An optional part of a region, of the core or of its provider. It may be larger than
/// [`RARE_SIZE`].
pub type MrExtBox<T> = Box<T, Cached<RARE>>;

/// A list of regions that one call works on. Its capacity is fixed when it is made.
pub type ListVec<T> = Vec<T, Cached<LIST>>;

/// Size in bytes of an optional part of a region that comes from a cache.
pub const RARE_SIZE: usize = index(kfi_bindings::KFI_CACHE_RARE_SIZE);

/// Memory for a [`MrExtBox`], without a value. A provider keeps it for a region that must not fail for lack of memory.
pub struct MrExtMemory(MrExtBox<MaybeUninit<[u64; RARE_SIZE / size_of::<u64>()]>>);

impl MrExtMemory {
    /// Allocates memory. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`
    pub fn new() -> Result<Self, AllocError> {
        Ok(Self(MrExtBox::new_uninit(GFP_KERNEL)?))
    }

    /// Writes a value to the memory. Any context.
    pub fn write<T>(self, value: T) -> MrExtBox<T> {
        const { assert!(fits::<T>()) };
        let memory = MrExtBox::into_raw(self.0).cast::<T>();
        // SAFETY: `memory` came from a box, so it is nobody else's. It has room for a `T`, as was just asserted.
        unsafe { memory.write(value) };
        // SAFETY: `memory` has a value now. It goes back to the same cache, which has one size.
        unsafe { MrExtBox::from_raw(memory) }
    }

    /// Drops a value, and returns its memory. May sleep, if dropping the value may.
    pub fn of<T>(value: MrExtBox<T>) -> Self {
        const { assert!(fits::<T>()) };
        let memory = MrExtBox::into_raw(MrExtBox::drop_contents(value)).cast();
        // SAFETY: `memory` came from a box, so it is nobody else's. It is an object of the cache, which is as large as
        // this.
        Self(unsafe { MrExtBox::from_raw(memory) })
    }
}

/// Checks whether a value of this type lies in an object of the cache for what only some regions have.
const fn fits<T>() -> bool {
    size_of::<T>() > 0 && size_of::<T>() <= RARE_SIZE && align_of::<T>() <= ALIGN
}

/// Creates the caches, for objects of `object_size` bytes. May sleep.
///
/// # Safety
///
/// Called once, before anything is allocated.
pub(crate) unsafe fn init(object_size: usize) -> Result {
    let size = u32::try_from(object_size)?;
    // SAFETY: The caller promises that this is the only call, and that nothing was allocated before
    // it.
    to_result(unsafe { kfi_bindings::kfi_helper_caches_init(size) })
}

/// Destroys the caches. Sleeps.
///
/// # Safety
///
/// Called once, when everything that was allocated has been freed.
pub(crate) unsafe fn exit() {
    // SAFETY: The caller promises that this is the only call, and that no allocation is left.
    unsafe { kfi_bindings::kfi_helper_caches_exit() };
}

/// The alignment of all objects of the caches.
const ALIGN: usize = 8;

// SAFETY: Memory stays valid until it is freed, wherever the value of this type moves: it has no
// size. Memory has the size and the alignment that the caller asked for.
unsafe impl<const WHICH: kfi_helper_cache> Allocator for Cached<WHICH> {
    const MIN_ALIGN: usize = ALIGN;

    fn alloc(layout: Layout, flags: Flags, _nid: NumaNode) -> Result<NonNull<[u8]>, AllocError> {
        // A cache with a constructor has no cleared memory.
        if layout.align() > ALIGN || flags.contains(__GFP_ZERO) {
            return Err(AllocError);
        }
        let memory = match layout.size() {
            0 => NonNull::dangling(),
            size => {
                let wait = flags.contains(GFP_KERNEL);
                // SAFETY: The caches exist: `init` runs before any allocation, and `exit` after the
                // last one is freed.
                let memory = unsafe { kfi_bindings::kfi_helper_cache_alloc(WHICH, size, wait) };
                NonNull::new(memory.cast()).ok_or(AllocError)?
            }
        };
        Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
    }

    unsafe fn realloc(
        ptr: Option<NonNull<u8>>,
        layout: Layout,
        old_layout: Layout,
        flags: Flags,
        nid: NumaNode,
    ) -> Result<NonNull<[u8]>, AllocError> {
        match (ptr, layout.size()) {
            (None, _) => Self::alloc(layout, flags, nid),
            (Some(_), _) if old_layout.size() == 0 => Self::alloc(layout, flags, nid),
            (Some(ptr), 0) => {
                // SAFETY: The caller promises that `ptr` was allocated by this allocator with
                // `old_layout`.
                unsafe { Self::free(ptr, old_layout) };
                let nothing = ptr::slice_from_raw_parts_mut(ptr::dangling_mut(), 0);
                NonNull::new(nothing).ok_or(AllocError)
            }
            // Neither objects nor lists grow.
            _ => Err(AllocError),
        }
    }

    unsafe fn free(ptr: NonNull<u8>, layout: Layout) {
        if layout.size() > 0 {
            // SAFETY: The caller promises that `ptr` was allocated by this allocator with `layout`.
            unsafe {
                kfi_bindings::kfi_helper_cache_free(WHICH, ptr.as_ptr().cast(), layout.size());
            }
        }
    }
}

#[kernel::macros::kunit_tests(kfabric_cache)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_size() -> Result {
        let small = MrExtBox::new([7u8; 3], GFP_KERNEL)?;
        let large = MrExtBox::new([9u64; 100], GFP_KERNEL)?;
        let none = MrExtBox::new((), GFP_KERNEL)?;
        assert_eq!((*small, *large), ([7; 3], [9; 100]));
        drop((small, large, none));
        Ok(())
    }

    #[test]
    fn memory_takes_one_value_after_the_other() -> Result {
        let small = MrExtMemory::new()?.write(7u8);
        assert_eq!(*small, 7);
        let large = MrExtMemory::of(small).write([9u64; RARE_SIZE / 8]);
        assert_eq!(*large, [9; RARE_SIZE / 8]);
        drop(MrExtMemory::of(large));
        Ok(())
    }

    #[test]
    fn lists_have_the_room_that_they_are_made_with() -> Result {
        for count in [1, 64, 600] {
            let mut list = ListVec::with_capacity(count, GFP_KERNEL)?;
            for i in 0..count {
                assert!(list.push_within_capacity(i).is_ok());
            }
            assert!(list.iter().copied().eq(0..count));
            assert!(list.push(count, GFP_KERNEL).is_err());
            assert_eq!(list.into_iter().sum::<usize>(), count * (count - 1) / 2);
        }
        Ok(())
    }

    #[test]
    fn nothing_that_it_can_not_keep() {
        #[repr(align(64))]
        struct Aligned(#[allow(dead_code)] u8);
        assert!(MrExtBox::new(Aligned(1), GFP_KERNEL).is_err());
        assert!(MrExtBox::new(1u8, GFP_KERNEL | __GFP_ZERO).is_err());
    }
}
