// SPDX-License-Identifier: GPL-2.0

//! References to regions.

use super::{
    mr_ext::MrExt,
    MrObject, //
};
use crate::object::prelude::*;
use core::{
    mem::MaybeUninit,
    ops::Deref, //
};
use kernel::sync::Refcount;

/// How large a region's object is.
pub(crate) const OBJECT_SIZE: usize = size_of::<MrObject>();

// A page has 16 objects of 248 bytes each, with the provider's part. That holds if a lock is a
// word, which it isn't with lock debugging or PREEMPT_RT.
const _: () = {
    let lock = size_of::<IrqLock<u64>>() - size_of::<u64>();
    assert!(OBJECT_SIZE - size_of::<kfid_mr>() <= 152 + lock);
};

/// The memory of a region's object, with nothing in it.
pub(super) type Memory = ObjectBox<MaybeUninit<MrObject>>;

/// A reference to a region. The last one frees it.
///
/// This is not an [`Arc`], because the core chooses the memory of the object ([`ObjectBox`]).
///
/// # Invariants
///
/// - The object is pinned in an [`ObjectBox`].
/// - [`references`](MrObject::references) counts this one.
pub(super) struct MrRef(NonNull<MrObject>);

// SAFETY: The object may be used, and dropped, by any thread.
unsafe impl Send for MrRef {}
// SAFETY: Any thread may use the object through a shared reference.
unsafe impl Sync for MrRef {}

impl MrObject {
    /// Returns the count of references to the object.
    fn references(&self) -> &Refcount {
        const { assert!(size_of::<Refcount>() == size_of::<c::atomic_t>()) };
        // SAFETY: The count is the core's, and C writes to others of its fields only. A `Refcount` is an `atomic_t`.
        unsafe { &*(&raw const (*self.as_ptr()).fid.ref_cnt).cast() }
    }
}

impl MrRef {
    /// Makes an object, to which this is the only reference, as its fid [says](super::Public::to_c). Any context.
    pub(super) fn new(memory: Memory, object: impl PinInit<MrObject>) -> Self {
        match memory.write_pin_init(object) {
            Ok(object) => {
                // SAFETY: It isn't moved before it is dropped.
                let object = unsafe { Pin::into_inner_unchecked(object) };
                // INVARIANT: The object counts this reference.
                Self(NonNull::from(ObjectBox::leak(object)))
            }
            Err(never) => match never {},
        }
    }

    /// Makes it C's.
    pub(super) fn into_raw(self) -> *mut MrObject {
        let object = self.0.as_ptr();
        mem::forget(self);
        object
    }

    /// Takes it back.
    ///
    /// # Safety
    ///
    /// `object` comes from [`into_raw`](Self::into_raw), and is taken back once.
    pub(super) unsafe fn from_raw(object: NonNull<MrObject>) -> Self {
        // INVARIANT: The reference is still counted.
        Self(object)
    }

    /// Makes another one of that of somebody else.
    ///
    /// # Safety
    ///
    /// There is a reference to the object, meanwhile.
    pub(super) unsafe fn another(object: NonNull<MrObject>) -> Self {
        // SAFETY: Somebody has a reference to the object meanwhile, as the caller promises. So the
        // object is valid.
        unsafe { object.as_ref() }.references().inc();
        // INVARIANT: Just counted.
        Self(object)
    }

    /// Drops the reference. If it was the last one, returns the memory and the optional part of the
    /// object.
    pub(super) fn take_apart(self) -> Option<(Memory, Option<Pin<MrExtBox<MrExt>>>)> {
        let object = self.last()?;
        let rare = object.inner.with(|inner| inner.rare.take());
        Some((ObjectBox::drop_contents(object), rare))
    }

    /// Drops it, and takes the object, which is to be dropped where it is, if it was the last one.
    fn last(self) -> Option<ObjectBox<MrObject>> {
        let object = self.into_raw();
        // SAFETY: The object is there as long as this reference, which is still counted.
        let last = unsafe { &*object }.references().dec_and_test();
        // SAFETY: By the invariant, the object is in an `ObjectBox`. Nobody else has a reference
        // any more.
        last.then(|| unsafe { ObjectBox::from_raw(object) })
    }
}

impl Clone for MrRef {
    fn clone(&self) -> Self {
        // SAFETY: `self` is a reference to the object for the length of the call.
        unsafe { Self::another(self.0) }
    }
}

impl Deref for MrRef {
    type Target = MrObject;

    fn deref(&self) -> &MrObject {
        // SAFETY: `self` is a reference, so the object is valid as long as `self`.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for MrRef {
    fn drop(&mut self) {
        // SAFETY: The reference is gone after this.
        drop(unsafe { Self::from_raw(self.0) }.last());
    }
}
