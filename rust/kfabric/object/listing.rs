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
use core::ops::Range;
use kernel::alloc::{
    flags::GFP_KERNEL_ACCOUNT,
    AllocError, //
};
use kfi_bindings::{
    kfi_helper_object,
    kfi_helper_refusals,
    kfi_helper_state,
    KFI_CLASS_UNSPEC, //
};

/// The rows of a table that is filled without allocation. It counts the rows that it has no space for.
struct Table<T> {
    rows: KVVec<T>,
    missed: usize,
}

impl<T> Table<T> {
    fn new() -> Self {
        Self {
            rows: KVVec::new(),
            missed: 0,
        }
    }

    /// Adds a row, or counts it if there is no space. Any context.
    fn push(&mut self, row: T) {
        let is_added = self.rows.push_within_capacity(row).is_ok();
        self.missed += usize::from(!is_added);
    }

    /// Empties the table, and makes space for the rows that it had and missed. May sleep.
    fn make_space(&mut self) -> Result<(), AllocError> {
        let missed = mem::take(&mut self.missed);
        // Others may open more meanwhile.
        let space = self.rows.len() + missed + missed / 8 + 16;
        self.rows.clear();
        self.rows.reserve(space, GFP_KERNEL_ACCOUNT)
    }
}

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

/// A fabric or domain. The strings are indexes of [`text`](Listing::text).
struct Group {
    provider: usize,
    fabric: usize,
    domain: Option<usize>,
    owner: Option<usize>,
    /// The number of the fabric or domain.
    number: u64,
    /// The number of the fabric of a domain, or 0.
    parent: u64,
    /// The number of objects in this group and those before it.
    objects_end: usize,
    refusals: Range<usize>,
}

/// The objects that were open, and how far a reader has come.
pub(crate) struct Listing {
    groups: Table<Group>,
    /// The objects of the first group, and then those of the next.
    objects: Table<Listed>,
    /// The counters of the objects with [`has_counters`](Listed::has_counters), in the order of `objects`.
    counters: Table<[u64; COUNTERS]>,
    refusals: Table<kfi_helper_refusals>,
    /// Strings that end with a NUL.
    text: Table<u8>,
    group: usize,
    object: usize,
    counter: usize,
}

impl Listing {
    /// Lists the open objects of a class, or all if it is `KFI_CLASS_UNSPEC`. May sleep.
    fn new(class: u32) -> Result<Self, AllocError> {
        let mut listing = Self {
            groups: Table::new(),
            objects: Table::new(),
            counters: Table::new(),
            refusals: Table::new(),
            text: Table::new(),
            group: 0,
            object: 0,
            counter: 0,
        };
        // Not with the lock of the instances: an allocation can take long in a task whose memory is limited.
        while !listing.fill(class) {
            listing.groups.make_space()?;
            listing.objects.make_space()?;
            listing.counters.make_space()?;
            listing.refusals.make_space()?;
            listing.text.make_space()?;
        }
        Ok(listing)
    }

    /// Lists the open objects of a class, or all, in empty tables. Returns whether the tables have space for all. May
    /// sleep.
    fn fill(&mut self, class: u32) -> bool {
        instances::each(|entry| {
            if let Some(fabric) = entry.object::<FabricBody>() {
                let numbers = [fabric.instance.number(), 0];
                self.add_group(entry, fabric, numbers, fabric, None, class);
            } else if let Some(domain) = entry.object::<DomainBody>() {
                let (fabric, name) = (domain.parent(), domain.name());
                let numbers = [domain.instance.number(), fabric.instance.number()];
                if is_wanted(class, DomainBody::CLASS.number()) {
                    for refusals in domain.counters.refusals() {
                        self.refusals.push(refusals);
                    }
                }
                self.add_group(entry, domain, numbers, fabric, name, class);
            }
        });
        [
            self.groups.missed,
            self.objects.missed,
            self.counters.missed,
            self.refusals.missed,
            self.text.missed,
        ] == [0; _]
    }

    /// Adds a fabric or domain, and the objects in it that have this class. The caller has added its refusals.
    fn add_group<T: Parent>(
        &mut self,
        entry: &InstanceEntry,
        object: &Obj<T>,
        [number, parent]: [u64; 2],
        fabric: &FabricObject,
        domain: Option<&CStr>,
        class: u32,
    ) {
        if is_wanted(class, T::CLASS.number()) {
            let mut about = kfi_helper_object {
                id: number,
                age: entry.age(),
                ..pin_init::zeroed()
            };
            closing::describe(object, &mut about);
            self.add(&about);
        }
        object.child_list().describe(|about| {
            // A domain has a group of its own.
            if is_wanted(class, about.class) && about.class != DomainBody::CLASS.number() {
                self.add(&about);
            }
        });
        let before = self.groups.rows.last();
        let refusals = before.map_or(0, |group| group.refusals.end);
        let group = Group {
            provider: self.add_text(fabric.provider),
            fabric: self.add_text(&fabric.name),
            domain: domain.map(|name| self.add_text(name)),
            owner: entry.owner().map(|name| self.add_text(name)),
            number,
            parent,
            objects_end: self.objects.rows.len(),
            refusals: refusals..self.refusals.rows.len(),
        };
        self.groups.push(group);
    }

    /// Adds a string, and returns its index.
    fn add_text(&mut self, text: &CStr) -> usize {
        let index = self.text.rows.len();
        for byte in text.to_bytes_with_nul() {
            self.text.push(*byte);
        }
        index
    }

    /// Adds an object. Any context.
    fn add(&mut self, about: &kfi_helper_object) {
        let has_counters = about.counters.iter().any(|count| *count > 0);
        self.objects.push(Listed {
            id: about.id,
            length: about.length,
            access: about.access,
            key: about.key,
            class: about.class,
            state: about.state,
            age: about.age,
            has_counters,
        });
        if has_counters {
            self.counters.push(about.counters);
        }
    }

    /// Returns the next object, until [`next`](Self::next) passes it.
    fn get(&mut self) -> Option<kfi_helper_object> {
        let object = self.objects.rows.get(self.object)?;
        let group = loop {
            let group = self.groups.rows.get(self.group)?;
            if self.object < group.objects_end {
                break group;
            }
            self.group += 1;
        };
        let string = |at: usize| self.text.rows.get(at..).map_or(ptr::null(), <[u8]>::as_ptr);
        let counters = self.counters.rows.get(self.counter).copied();
        let is_parent = [FabricBody::CLASS, DomainBody::CLASS]
            .iter()
            .any(|class| class.number() == object.class);
        let refusals = self.refusals.rows.get(group.refusals.clone());
        let refusals = refusals.filter(|_| is_parent).unwrap_or_default();
        Some(kfi_helper_object {
            provider: string(group.provider),
            fabric: string(group.fabric),
            domain: group.domain.map_or(ptr::null(), string),
            owner: group.owner.map_or(ptr::null(), string),
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
            refusals: refusals.as_ptr(),
            refusal_count: refusals.len(),
        })
    }

    /// Passes an object.
    fn next(&mut self) {
        if let Some(object) = self.objects.rows.get(self.object) {
            self.counter += usize::from(object.has_counters);
        }
        self.object += 1;
    }
}

/// Returns whether a listing of `class` has objects of the class `of`.
fn is_wanted(class: u32, of: u32) -> bool {
    class == KFI_CLASS_UNSPEC || class == of
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
