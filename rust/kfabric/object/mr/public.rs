// SPDX-License-Identifier: GPL-2.0

//! The fields of a region that C reads without a call.

use super::MrObject;
use crate::{
    object::domain::DomainObject,
    provider::Keys,
    support::num::widen, //
};
use core::ptr;
use kernel::sync::atomic::{
    Atomic,
    Release, //
};
use kfi_bindings::{
    atomic_t,
    kfid,
    kfid_mr,
    KFI_KEY_NOTAVAIL,
    KFI_MR_RAW, //
};

/// The results of `kfi_mr_desc()` and `kfi_mr_key()`, and `iova`.
#[derive(Clone, Copy)]
pub(super) struct Public {
    desc: usize,
    key: u64,
    base: u64,
}

impl Public {
    /// Makes that of a region by how peers reach it, if it is enabled. Any context.
    pub(super) fn new(domain: &DomainObject, keys: Option<&Keys>) -> Self {
        const NO_KEY: u64 = widen(KFI_KEY_NOTAVAIL);
        match keys {
            Some(keys) if domain.has_mode(KFI_MR_RAW) => Self::of(keys, NO_KEY),
            Some(keys) => Self::of(keys, keys.key),
            None => Self {
                desc: 0,
                key: NO_KEY,
                base: 0,
            },
        }
    }

    fn of(keys: &Keys, key: u64) -> Self {
        Self {
            desc: keys.desc,
            key,
            base: keys.base,
        }
    }

    /// Makes the region that C gets, with one reference to it. Any context.
    pub(super) fn to_c(self, fid: kfid) -> kfid_mr {
        kfid_mr {
            fid: kfid {
                ref_cnt: atomic_t { counter: 1 },
                ..fid
            },
            mem_desc: ptr::without_provenance_mut(self.desc),
            key: self.key,
            iova: self.base,
        }
    }
}

impl MrObject {
    /// Shows C what has changed since it got the region. Any context.
    pub(super) fn publish(&self, public: Public) {
        let c = self.as_ptr();
        // SAFETY: `c` is this object's. C only reads these fields, and may do so meanwhile; who
        // sees the key sees them all, by `kfi_mr_key()`.
        unsafe {
            (&raw mut (*c).mem_desc).write_volatile(ptr::without_provenance_mut(public.desc));
            (&raw mut (*c).iova).write_volatile(public.base);
            Atomic::from_ptr(&raw mut (*c).key).store(public.key, Release);
        }
    }
}

/// The values that a transfer finds of an enabled region, besides those that it was registered
/// with.
pub(super) struct Found {
    desc: usize,
    base: u64,
    whole: bool,
}

impl Found {
    /// Returns the values of a region with these keys. Any context.
    pub(super) fn new(keys: &Keys) -> Self {
        Self {
            desc: keys.desc,
            base: keys.base,
            whole: keys.whole,
        }
    }
}

impl MrObject {
    /// Lets the region, which is enabled, be found by its descriptor, if it has one. Called once. Any context.
    pub(super) fn reveal(&self, Found { desc, base, whole }: Found) {
        let descs = &self.parent().descs;
        // SAFETY: Enabled once, so not in the table yet; the object doesn't move, and is hidden
        // before it is dropped.
        unsafe { descs.insert(&self.local, desc, base, whole) };
    }

    /// Lets it not be found any more. Called when it is being closed. Any context.
    pub(super) fn hide(&self) {
        // SAFETY: If it is in a table, it is that of its domain; enabling it has ended.
        unsafe { self.parent().descs.remove(&self.local) };
    }
}
