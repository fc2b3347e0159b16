// SPDX-License-Identifier: GPL-2.0

//! A listing of the open objects, which user space gets over generic netlink.
//!
//! A listing is a copy. It keeps nothing open, so an object of it may have been closed since. Its memory is charged to
//! the task that asks, because any user may ask.
//!
//! Specification: [`Documentation/netlink/kfi.yaml`](srctree/Documentation/netlink/kfi.yaml)

use super::{
    children::Parent,
    closing,
    domain::DomainBody,
    fabric::{
        FabricBody,
        FabricObject, //
    },
    instances::{
        self,
        InstanceEntry, //
    },
    obj::{
        Obj,
        Object, //
    }, //
};
use crate::{
    prelude::*,
    support::table::declared_in_c, //
};
use kernel::{
    alloc::{
        flags::GFP_KERNEL_ACCOUNT,
        AllocError, //
    },
    str::CString, //
};
use kfi_bindings::{
    kfi_helper_object,
    kfi_helper_refusals,
    KFI_CLASS_UNSPEC, //
};

/// A fabric or domain, and the objects in it.
struct Group {
    provider: CString,
    fabric: CString,
    domain: Option<CString>,
    owner: Option<CString>,
    /// The objects, without strings and refusals, which are in the group.
    objects: KVVec<kfi_helper_object>,
    refusals: KVec<kfi_helper_refusals>,
}

/// The objects that were open, and how far a reader has come.
pub(crate) struct Listing {
    groups: KVVec<Group>,
    group: usize,
    object: usize,
}

impl Group {
    /// Lists a fabric or domain, and the objects in it that have this class. May sleep.
    fn new<T: Parent>(
        entry: &InstanceEntry,
        object: &Obj<T>,
        number: u64,
        fabric: &FabricObject,
        domain: Option<&CStr>,
        class: u32,
    ) -> Result<Self, AllocError> {
        let mut group = Self {
            provider: CString::try_from(fabric.provider)?,
            fabric: CString::try_from(&*fabric.name)?,
            domain: domain.map(CString::try_from).transpose()?,
            owner: entry.owner().map(CString::try_from).transpose()?,
            objects: KVVec::new(),
            refusals: KVec::new(),
        };
        let is_wanted = |of: u32| class == KFI_CLASS_UNSPEC || class == of;
        let mut room = 16;
        loop {
            group.objects.clear();
            group.objects.reserve(room, GFP_KERNEL_ACCOUNT)?;
            if is_wanted(T::CLASS.number()) {
                let mut about = kfi_helper_object {
                    id: number,
                    age: entry.age(),
                    ..pin_init::zeroed()
                };
                closing::describe(object, &mut about);
                group.objects.push(about, GFP_KERNEL_ACCOUNT)?;
            }
            let mut missed = 0_usize;
            object.child_list().describe(|mut about| {
                // A domain has a group of its own.
                if is_wanted(about.class) && about.class != DomainBody::CLASS.number() {
                    about.parent = number;
                    missed += usize::from(group.objects.push_within_capacity(about).is_err());
                }
            });
            if missed == 0 {
                return Ok(group);
            }
            // Others may open more meanwhile.
            room = group.objects.capacity() + missed + missed / 8 + 16;
        }
    }
}

impl Listing {
    /// Lists the open objects of a class, or all if it is `KFI_CLASS_UNSPEC`. May sleep.
    fn new(class: u32) -> Result<Self, AllocError> {
        let mut groups = KVVec::new();
        instances::each(|entry| {
            let group = if let Some(fabric) = entry.object::<FabricBody>() {
                Group::new(entry, fabric, fabric.instance.number(), fabric, None, class)
            } else if let Some(domain) = entry.object::<DomainBody>() {
                let (number, name) = (domain.instance.number(), domain.name.as_deref());
                let mut group = Group::new(entry, domain, number, domain.parent(), name, class)?;
                for refusals in domain.counters.refusals() {
                    group.refusals.push(refusals, GFP_KERNEL_ACCOUNT)?;
                }
                if let Some(first) = group.objects.first_mut() {
                    if first.class == DomainBody::CLASS.number() {
                        first.parent = domain.parent().instance.number();
                    }
                }
                Ok(group)
            } else {
                return Ok(());
            };
            groups.push(group?, GFP_KERNEL_ACCOUNT)
        })?;
        Ok(Self {
            groups,
            group: 0,
            object: 0,
        })
    }

    /// Returns the next object, until [`next`](Self::next) passes it.
    fn get(&mut self) -> Option<kfi_helper_object> {
        while let Some(group) = self.groups.get(self.group) {
            if let Some(object) = group.objects.get(self.object) {
                let string =
                    |of: &Option<CString>| of.as_ref().map_or(ptr::null(), |of| of.as_char_ptr());
                return Some(kfi_helper_object {
                    provider: group.provider.as_char_ptr(),
                    fabric: group.fabric.as_char_ptr(),
                    domain: string(&group.domain),
                    owner: string(&group.owner),
                    refusals: group.refusals.as_ptr(),
                    refusal_count: match object.class == DomainBody::CLASS.number() {
                        true => group.refusals.len(),
                        false => 0,
                    },
                    ..*object
                });
            }
            self.group += 1;
            self.object = 0;
        }
        None
    }

    /// Passes an object.
    fn next(&mut self) {
        self.object += 1;
    }
}

/// Lists the open objects of a class, or of all. Returns an error pointer if there is no memory. May sleep.
///
/// The caller frees the listing by [`kfi_core_listing_free`].
///
/// # Safety
///
/// No requirements. C declares the function, and so it is unsafe.
#[no_mangle]
unsafe extern "C" fn kfi_core_listing(class: u32) -> *mut c_void {
    let _noio = NoIo::enter();
    let listing = Listing::new(class).and_then(|listing| KBox::new(listing, GFP_KERNEL_ACCOUNT));
    listing.map_or_else(
        |no_memory| Error::from(no_memory).to_ptr(),
        |listing| KBox::into_raw(listing).cast(),
    )
}

/// Returns the next object of a listing, if there is one. Its strings are valid until the listing is freed. Any context.
///
/// # Safety
///
/// - `listing` is a listing that nobody else uses.
/// - `object` is valid for writes.
#[no_mangle]
unsafe extern "C" fn kfi_core_listing_get(
    listing: *mut c_void,
    object: *mut kfi_helper_object,
) -> bool {
    // SAFETY: `listing` is a listing, and nobody else uses it.
    let next = unsafe { &mut *listing.cast::<Listing>() }.get();
    // SAFETY: `object` is valid for writes.
    next.map(|next| unsafe { object.write(next) }).is_some()
}

/// Passes the object that [`kfi_core_listing_get`] has returned. Any context.
///
/// # Safety
///
/// `listing` is a listing that nobody else uses.
#[no_mangle]
unsafe extern "C" fn kfi_core_listing_next(listing: *mut c_void) {
    // SAFETY: `listing` is a listing, and nobody else uses it.
    unsafe { &mut *listing.cast::<Listing>() }.next();
}

/// Frees a listing. May sleep.
///
/// # Safety
///
/// `listing` is a listing that nobody uses any more.
#[no_mangle]
unsafe extern "C" fn kfi_core_listing_free(listing: *mut c_void) {
    // SAFETY: `listing` comes from `kfi_core_listing`, and nobody uses it any more.
    drop(unsafe { KBox::from_raw(listing.cast::<Listing>()) });
}

declared_in_c!(
    kfi_core_listing,
    kfi_core_listing_get,
    kfi_core_listing_next,
    kfi_core_listing_free
);

/// The generic netlink family, until dropped.
pub(crate) struct Family(());

impl Family {
    /// Registers the family. May sleep.
    ///
    /// # Errors
    ///
    /// - `EEXIST`: there is a family of that name.
    /// - `ENOMEM`
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: The family is a static of this module, which drops this before it goes.
        kernel::error::to_result(unsafe { kfi_bindings::kfi_helper_netlink_register() })?;
        Ok(Self(()))
    }
}

impl Drop for Family {
    /// Sleeps until nobody is in a call of the family.
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { kfi_bindings::kfi_helper_netlink_unregister() };
    }
}
