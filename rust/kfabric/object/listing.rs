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
    counters::COUNTERS,
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
    kfi_helper_state,
    KFI_CLASS_UNSPEC, //
};

/// An object of a group, without the values that all objects of the group share. A group can have a million objects, so
/// counters of 0 take no memory.
struct Listed {
    id: u64,
    length: u64,
    access: u64,
    key: u64,
    class: u32,
    state: kfi_helper_state,
    age: u32,
    has_counters: bool,
}

/// A fabric or domain, and the objects in it.
struct Group {
    provider: CString,
    fabric: CString,
    domain: Option<CString>,
    owner: Option<CString>,
    /// The number of the fabric or domain.
    number: u64,
    /// The number of the fabric of a domain, or 0.
    parent: u64,
    objects: KVVec<Listed>,
    /// The counters of the objects with [`has_counters`](Listed::has_counters), in the order of `objects`.
    counters: KVVec<[u64; COUNTERS]>,
    refusals: KVec<kfi_helper_refusals>,
}

/// The objects that were open, and how far a reader has come.
pub(crate) struct Listing {
    groups: KVVec<Group>,
    group: usize,
    object: usize,
    counters: usize,
}

impl Group {
    /// Lists a fabric or domain, and the objects in it that have this class. May sleep.
    fn new<T: Parent>(
        entry: &InstanceEntry,
        object: &Obj<T>,
        [number, parent]: [u64; 2],
        fabric: &FabricObject,
        domain: Option<&CStr>,
        class: u32,
    ) -> Result<Self, AllocError> {
        let mut group = Self {
            provider: CString::try_from(fabric.provider)?,
            fabric: CString::try_from(&*fabric.name)?,
            domain: domain.map(CString::try_from).transpose()?,
            owner: entry.owner().map(CString::try_from).transpose()?,
            number,
            parent,
            objects: KVVec::new(),
            counters: KVVec::new(),
            refusals: KVec::new(),
        };
        let is_wanted = |of: u32| class == KFI_CLASS_UNSPEC || class == of;
        loop {
            if is_wanted(T::CLASS.number()) {
                let mut about = kfi_helper_object {
                    id: number,
                    age: entry.age(),
                    ..pin_init::zeroed()
                };
                closing::describe(object, &mut about);
                group.objects.reserve(1, GFP_KERNEL_ACCOUNT)?;
                group.counters.reserve(1, GFP_KERNEL_ACCOUNT)?;
                group.add(&about);
            }
            let [mut missed, mut counters] = [0_usize; 2];
            object.child_list().describe(|about| {
                // A domain has a group of its own.
                if is_wanted(about.class) && about.class != DomainBody::CLASS.number() {
                    let is_missed = !group.add(&about);
                    missed += usize::from(is_missed);
                    counters += usize::from(is_missed && has_counters(&about));
                }
            });
            if missed == 0 {
                return Ok(group);
            }
            // Others may open more meanwhile.
            let room = |len: usize, missed: usize| len + missed + missed / 8 + 16;
            let rooms = [
                room(group.objects.len(), missed),
                room(group.counters.len(), counters),
            ];
            group.objects.clear();
            group.counters.clear();
            group.objects.reserve(rooms[0], GFP_KERNEL_ACCOUNT)?;
            group.counters.reserve(rooms[1], GFP_KERNEL_ACCOUNT)?;
        }
    }

    /// Adds an object if there is space for it. Returns false if there is none. Any context.
    fn add(&mut self, about: &kfi_helper_object) -> bool {
        let has_counters = has_counters(about);
        let listed = Listed {
            id: about.id,
            length: about.length,
            access: about.access,
            key: about.key,
            class: about.class,
            state: about.state,
            age: about.age,
            has_counters,
        };
        if has_counters && self.counters.len() == self.counters.capacity() {
            return false;
        }
        let is_added = self.objects.push_within_capacity(listed).is_ok();
        if has_counters && is_added {
            let _ = self.counters.push_within_capacity(about.counters);
        }
        is_added
    }
}

/// Returns whether an object has counters that are not 0.
fn has_counters(about: &kfi_helper_object) -> bool {
    about.counters.iter().any(|count| *count > 0)
}

impl Listing {
    /// Lists the open objects of a class, or all if it is `KFI_CLASS_UNSPEC`. May sleep.
    fn new(class: u32) -> Result<Self, AllocError> {
        let mut groups = KVVec::new();
        instances::each(|entry| {
            let group = if let Some(fabric) = entry.object::<FabricBody>() {
                let numbers = [fabric.instance.number(), 0];
                Group::new(entry, fabric, numbers, fabric, None, class)
            } else if let Some(domain) = entry.object::<DomainBody>() {
                let (fabric, name) = (domain.parent(), domain.name.as_deref());
                let numbers = [domain.instance.number(), fabric.instance.number()];
                let mut group = Group::new(entry, domain, numbers, fabric, name, class)?;
                let first = group.objects.first();
                if first.is_some_and(|first| first.class == DomainBody::CLASS.number()) {
                    for refusals in domain.counters.refusals() {
                        group.refusals.push(refusals, GFP_KERNEL_ACCOUNT)?;
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
            counters: 0,
        })
    }

    /// Returns the next object, until [`next`](Self::next) passes it.
    fn get(&mut self) -> Option<kfi_helper_object> {
        while let Some(group) = self.groups.get(self.group) {
            if let Some(object) = group.objects.get(self.object) {
                let string =
                    |of: &Option<CString>| of.as_ref().map_or(ptr::null(), |of| of.as_char_ptr());
                let counters = group.counters.get(self.counters).copied();
                let is_parent = [FabricBody::CLASS, DomainBody::CLASS]
                    .iter()
                    .any(|class| class.number() == object.class);
                return Some(kfi_helper_object {
                    provider: group.provider.as_char_ptr(),
                    fabric: group.fabric.as_char_ptr(),
                    domain: string(&group.domain),
                    owner: string(&group.owner),
                    id: object.id,
                    parent: match is_parent {
                        true => group.parent,
                        false => group.number,
                    },
                    length: object.length,
                    access: object.access,
                    key: object.key,
                    class: object.class,
                    state: object.state,
                    age: object.age,
                    counters: counters.filter(|_| object.has_counters).unwrap_or_default(),
                    refusals: group.refusals.as_ptr(),
                    refusal_count: match is_parent {
                        true => group.refusals.len(),
                        false => 0,
                    },
                });
            }
            self.group += 1;
            self.object = 0;
            self.counters = 0;
        }
        None
    }

    /// Passes an object.
    fn next(&mut self) {
        let group = self.groups.get(self.group);
        if let Some(object) = group.and_then(|group| group.objects.get(self.object)) {
            self.counters += usize::from(object.has_counters);
        }
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
