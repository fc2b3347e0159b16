// SPDX-License-Identifier: GPL-2.0

//! Objects, their classes, and the lookup of an object by its `struct kfid`.

use super::counters::DomainCounters;
use crate::{
    prelude::*,
    support::{
        num,
        table::SlotReturn, //
    }, //
};
use core::ops::Deref;
use kernel::types::Opaque;
use kfi_bindings::kfi_helper_object;

/// A C structure of an object.
pub(crate) trait Fid {
    /// The offset of the `struct kfid`.
    const AT: usize;
}

macro_rules! fids {
    ($($name:ident),* $(,)?) => {
        $(
            impl Fid for kfi_bindings::$name {
                const AT: usize = core::mem::offset_of!(kfi_bindings::$name, fid);
            }
        )*
    };
}

fids!(
    kfid_av,
    kfid_cntr,
    kfid_cq,
    kfid_domain,
    kfid_ep,
    kfid_eq,
    kfid_fabric,
    kfid_mr,
    kfid_pep,
);

/// The core's part of an object of one class. [`Obj`] has the common parts.
pub(crate) trait Object: Sized + 'static {
    /// The C structure.
    type C: Fid;
    /// The entry in the parent: [`Place<Self>`](super::children::Place), or `()` without a parent.
    type Place: Leave;
    /// The class.
    const CLASS: &'static Class;
    /// The table of the fid. [`slots`](super::closing::slots) returns one with `close` only.
    const OPS: kfi_ops;

    /// Adds to a listing what only objects of this class have. Any context; the lock of the parent's list of children
    /// may be held.
    fn describe(_object: &Obj<Self>, _about: &mut kfi_helper_object) {}

    /// Returns the number of the object, as a listing shows it. Any context.
    fn number(object: &Obj<Self>) -> u64 {
        object.place.number()
    }

    /// Adds the names of provider and domain and the number of the domain to the description of an object. Returns the
    /// counters of the domain, if the object is in one or is one. Any context.
    fn locate<'a>(
        object: &'a Obj<Self>,
        about: &mut kfi_helper_object,
    ) -> Option<&'a DomainCounters> {
        object.place.locate(about)
    }

    /// Returns whether `fid` is an object of this class. Any context.
    ///
    /// # Safety
    ///
    /// `fid` is null, an error pointer, or an open object, ours or another's.
    unsafe fn is_of(fid: *const kfid) -> bool {
        // SAFETY: `fid` is null, an error pointer, or an open object.
        unsafe { is_of(fid, Self::CLASS) }
    }
}

/// The entry of an object in its parent.
pub(crate) trait Leave {
    /// A guard that keeps the parent open.
    type Left;

    /// Returns the [number](Object::number) of the object. Any context.
    fn number(&self) -> u64 {
        0
    }

    /// Adds the parent's [location](Object::locate) to the description of the object. Any context.
    fn locate(&self, _about: &mut kfi_helper_object) -> Option<&DomainCounters> {
        None
    }

    /// Leaves the parent's list, so that no task ends the object after the return. Sleeps while a task ends it. Without
    /// an `END` function: any context.
    ///
    /// # Safety
    ///
    /// The caller calls this once, and doesn't use the parent after dropping the result.
    unsafe fn leave(&self) -> Self::Left;
}

impl Leave for () {
    type Left = ();

    unsafe fn leave(&self) {}
}

/// An object: its C structure, the core's part, and its entry in the parent.
///
/// # Invariants
///
/// `c` begins with a `struct kfid` whose table is of the class of `T`.
#[repr(C)]
#[pin_data]
pub(crate) struct Obj<T: Object> {
    // C may write to it: the context belongs to the consumer.
    c: Opaque<T::C>,
    #[pin]
    pub(super) body: T,
    /// Initialized last, because other tasks can find the object by it.
    #[pin]
    pub(super) place: T::Place,
}

// SAFETY: The C API permits to use `c` in any thread.
unsafe impl<T: Object + Send> Send for Obj<T> where T::Place: Send {}
// SAFETY: Only constant fields of `c` are read.
unsafe impl<T: Object + Sync> Sync for Obj<T> where T::Place: Sync {}

impl<T: Object> Obj<T> {
    pub(super) const TABLE: &'static ClassTable<kfi_ops> = &ClassTable::new(T::CLASS, T::OPS);

    /// Returns a fid for a new object of this class.
    pub(crate) fn fid(context: *mut c_void) -> kfid {
        // INVARIANT: `T::C` begins with its fid.
        const { assert!(T::C::AT == 0) };
        kfid {
            fclass: num::index(T::CLASS.number),
            context,
            ops: Self::TABLE.as_ptr(),
            ..pin_init::zeroed()
        }
    }

    /// Returns an initializer of an object. `c` begins with a fid of [`fid`](Self::fid).
    pub(crate) fn new(
        c: T::C,
        body: impl PinInit<T>,
        place: impl PinInit<T::Place>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            c: Opaque::new(c),
            body <- body,
            place <- place,
        })
    }

    /// Returns the C structure.
    pub(crate) fn as_ptr(&self) -> *mut T::C {
        self.c.get()
    }

    /// Returns the object behind a fid. Any context.
    ///
    /// # Safety
    ///
    /// `fid` is null, an error pointer, or an object that stays open for `'a`, of this core or of another provider.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the object is of another class.
    pub(crate) unsafe fn from_fid<'a>(fid: *mut kfid) -> Result<&'a Self, Refusal> {
        // SAFETY: `fid` is null, an error pointer, or an object that stays open for `'a`.
        if unsafe { T::is_of(fid) } {
            // SAFETY: An object of this class begins with its fid, and stays open for `'a`.
            Ok(unsafe { &*fid.cast::<Self>() })
        } else {
            Err(T::CLASS.refusal())
        }
    }

    /// Returns the object that C knows by `c`. Any context.
    ///
    /// # Safety
    ///
    /// `c` is what [`as_ptr`](Self::as_ptr) of an object of this kind returned, and the object stays open for
    /// `'a`.
    pub(crate) unsafe fn from_c<'a>(c: *mut T::C) -> &'a Self {
        // SAFETY: `c` is the first field of an object that stays open for `'a`.
        unsafe { &*c.cast::<Self>() }
    }

    /// Calls `f` with the object behind a fid, for the call with this name. [Counts and reports](Self::answer) a
    /// refusal. Process context.
    ///
    /// # Safety
    ///
    /// `fid` is null, an error pointer, or an open object for the call, of this core or of another provider.
    pub(crate) unsafe fn call(
        fid: *mut kfid,
        call: &CStr,
        f: impl FnOnce(&Self) -> Result<(), Refusal>,
    ) -> c_int {
        let _noio = NoIo::enter();
        // SAFETY: `fid` is null, an error pointer, or an open object for the call.
        unsafe { Self::answer(fid, call, Self::from_fid(fid).and_then(f).map(|()| 0)) }
    }

    /// Returns the C result of the call with this name on the object behind a fid. [Counts and reports](Self::refuse) a
    /// refusal. Any context.
    ///
    /// # Safety
    ///
    /// `fid` is null, an error pointer, or an open object for the call, of this core or of another provider.
    pub(crate) unsafe fn answer<R: SlotReturn>(
        fid: *mut kfid,
        call: &CStr,
        done: Result<R, Refusal>,
    ) -> R {
        done.unwrap_or_else(|refusal| {
            // SAFETY: `fid` is null, an error pointer, or an open object for the call.
            R::of(match unsafe { Self::from_fid(fid) } {
                Ok(object) => object.refuse(call, refusal),
                Err(_) => refusal.report(call),
            })
        })
    }

    /// Counts a refusal of the call of this name in the object's domain, if it has one, and
    /// [reports](Refusal::report) it. `EAGAIN` is counted as a retry, and not reported. Any context.
    #[cold]
    pub(super) fn refuse(&self, call: &CStr, refusal: Refusal) -> c_int {
        let mut about = kfi_helper_object {
            provider: c"".as_char_ptr(),
            domain: c"".as_char_ptr(),
            class: T::CLASS.number(),
            id: T::number(self),
            ..pin_init::zeroed()
        };
        if let Some(counters) = T::locate(self, &mut about) {
            counters.count_refusal(refusal.errno());
        }
        match refusal.errno() {
            // A full queue, or a close that would have to wait, is no mistake of the caller. So there is no event.
            Errno::EAGAIN => Errno::EAGAIN.to_c(),
            _ => refusal.report_on(call, &about),
        }
    }
}

impl<T: Object> Deref for Obj<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.body
    }
}

/// A class of objects of this core, identified by its address.
pub(crate) struct Class {
    number: u32,
    /// The reason to refuse an object of another class.
    other: &'static CStr,
    /// The reason to refuse the close of a parent that has a child of this class.
    open: &'static CStr,
}

impl Class {
    /// Returns a class with the number `KFI_CLASS_*`, and its reasons for refusals.
    pub(crate) const fn new(number: u32, other: &'static CStr, open: &'static CStr) -> Self {
        Self {
            number,
            other,
            open,
        }
    }

    /// Returns the number `KFI_CLASS_*`.
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the reason to refuse the close of a parent.
    pub(crate) const fn open(&self) -> &'static CStr {
        self.open
    }

    /// Returns the refusal of an object of another class.
    pub(crate) const fn refusal(&self) -> Refusal {
        Refusal::new(Errno::EINVAL, self.other)
    }
}

/// A table of slots with the class of its object.
///
/// The class follows the slots that C declares. The stated size includes it, as the size of a later version of the
/// table would. So the core finds the class of an object without a reference to the functions in its table.
///
/// # Invariants
///
/// - `ops` begins with the size of the table, which is [`SIZE`](Self::SIZE).
/// - The table is constant, and its functions live as long as this module.
#[repr(C)]
pub(crate) struct ClassTable<T> {
    ops: T,
    class: &'static Class,
    /// Objects have this table while a task closes them.
    of_closing: bool,
}

// SAFETY: The table is constant, and any thread may call its functions.
unsafe impl<T> Sync for ClassTable<T> {}

impl<T> ClassTable<T> {
    /// The size that the table states.
    pub(crate) const SIZE: usize = size_of::<Self>();

    /// Returns the table of a class. `ops` begins with [`SIZE`](Self::SIZE).
    pub(crate) const fn new(class: &'static Class, ops: T) -> Self {
        // INVARIANT: `ops` begins with the size. `is_of` ignores a table with another size.
        Self {
            ops,
            class,
            of_closing: false,
        }
    }

    /// Returns the table of objects that a task closes. `ops` begins with [`SIZE`](Self::SIZE).
    pub(crate) const fn of_closing(class: &'static Class, ops: T) -> Self {
        // INVARIANT: `ops` begins with the size. `is_of` ignores a table with another size.
        Self {
            ops,
            class,
            of_closing: true,
        }
    }

    /// Returns the table for C, which never writes to it.
    pub(crate) const fn as_ptr(&'static self) -> *mut T {
        ptr::from_ref(&self.ops).cast_mut()
    }

    /// Returns whether a task closes the object with this table. Any context.
    ///
    /// # Safety
    ///
    /// `ops` is a table [of a class](Self::is_of).
    pub(crate) unsafe fn is_of_closing(ops: *const T) -> bool {
        let table = ops.cast::<Self>();
        // SAFETY: `ops` is a `ClassTable`.
        unsafe { (*table).of_closing }
    }

    /// Returns whether the table is that of an object of this class. Any context.
    ///
    /// # Safety
    ///
    /// `ops` is null, or a table of operations that begins with its size and is as long as that.
    pub(crate) unsafe fn is_of(ops: *const T, class: &'static Class) -> bool {
        // SAFETY: If it isn't null, `ops` points to a table that begins with its size.
        if ops.is_null() || unsafe { ops.cast::<usize>().read() } != Self::SIZE {
            return false;
        }
        let table = ops.cast::<Self>();
        // SAFETY: The table has the size of a `ClassTable`. In a table of another provider, these bytes may be
        // anything, and are only compared.
        let found = unsafe { (&raw const (*table).class).cast::<*const Class>().read() };
        ptr::eq(found, class)
    }
}

/// Returns whether `fid` is an object of this class. C may write to other fields at the same time. Any context.
///
/// # Safety
///
/// `fid` is null, an error pointer, or an open object, of this core or of another provider.
pub(crate) unsafe fn is_of(fid: *const kfid, class: &'static Class) -> bool {
    if fid.is_null() || Errno::is_in(fid) {
        return false;
    }
    // SAFETY: `fid` is neither null nor an error pointer, so an open object, which points to a table.
    unsafe { ClassTable::is_of((*fid).ops, class) }
}

#[kernel::macros::kunit_tests(kfabric_fid)]
mod tests {
    use super::*;

    static ONE: Class = Class::new(1, c"not a one", c"a one is open");
    static TWO: Class = Class::new(2, c"not a two", c"a two is open");

    /// A table that states a size.
    #[repr(C)]
    struct Plain(usize);

    /// One of another provider, with something of its own in the place of the class.
    #[repr(C)]
    struct Foreign {
        size: usize,
        own: usize,
    }

    fn is_of<T>(table: *const T, class: &'static Class) -> bool {
        // SAFETY: Null, or one of the tables below, which are as long as they say.
        unsafe { ClassTable::<Plain>::is_of(table.cast(), class) }
    }

    #[test]
    fn a_class_is_told_by_its_address() {
        static TABLE: ClassTable<Plain> = ClassTable::new(&ONE, Plain(ClassTable::<Plain>::SIZE));
        assert!(is_of(TABLE.as_ptr(), &ONE));
        assert!(!is_of(TABLE.as_ptr(), &TWO));
    }

    #[test]
    fn pointers_to_nothing_are_of_no_class() {
        for fid in [0, usize::MAX, usize::MAX - 4094] {
            // SAFETY: Null or an error pointer.
            assert!(!unsafe { super::is_of(ptr::without_provenance(fid), &ONE) });
        }
    }

    #[test]
    fn objects_that_are_being_closed_are_of_their_class() {
        const SIZE: usize = ClassTable::<Plain>::SIZE;
        static OPEN: ClassTable<Plain> = ClassTable::new(&ONE, Plain(SIZE));
        static CLOSING: ClassTable<Plain> = ClassTable::of_closing(&ONE, Plain(SIZE));
        assert!(is_of(OPEN.as_ptr(), &ONE) && is_of(CLOSING.as_ptr(), &ONE));
        // SAFETY: `OPEN` and `CLOSING` are valid tables of a class.
        let closing = [&OPEN, &CLOSING]
            .map(|table| unsafe { ClassTable::<Plain>::is_of_closing(table.as_ptr()) });
        assert_eq!(closing, [false, true]);
    }

    #[test]
    fn others_are_none_of_ours() {
        let ours = ClassTable::<Plain>::SIZE;
        assert!(!is_of(ptr::null::<Plain>(), &ONE));
        // Nothing is behind this one.
        assert!(!is_of(&Plain(size_of::<Plain>()), &ONE));
        assert!(!is_of(&Plain(0), &ONE));
        for own in [0, 1, usize::MAX] {
            assert!(!is_of(&Foreign { size: ours, own }, &ONE));
        }
        // Longer than ours, but what is in the place of the class is what it would be.
        let own = (&raw const ONE).addr();
        assert!(!is_of(
            &Foreign {
                size: ours + 8,
                own
            },
            &ONE
        ));
    }
}
