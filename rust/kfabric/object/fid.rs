// SPDX-License-Identifier: GPL-2.0

//! The `struct kfid` at the start of every object, and how ours are told from others'.

use crate::support::{
    errno::Errno,
    num,
    refusal::Refusal, //
};
use core::ptr;
use kernel::{
    ffi::c_void,
    str::CStr, //
};
use kfi_bindings::{
    kfi_ops,
    kfid, //
};

/// A class of objects of this core. Its address tells it from every other.
pub(crate) struct Class {
    number: u32,
    /// What is said of an object that is of another.
    other: &'static CStr,
    /// What is said of one that can't be closed, since one of this class is open in it.
    open: &'static CStr,
}

impl Class {
    /// The class that C knows by this number; `other` is said of an object that isn't of it, `open`
    /// of one that can't be closed since one of this class is open in it.
    pub(crate) const fn new(number: u32, other: &'static CStr, open: &'static CStr) -> Self {
        Self {
            number,
            other,
            open,
        }
    }

    /// Says that one of this class is open.
    pub(crate) const fn open(&self) -> &'static CStr {
        self.open
    }

    /// The refusal of an object that is of another class.
    pub(crate) const fn refusal(&self) -> Refusal {
        Refusal::new(Errno::EINVAL, self.other)
    }
}

/// A table of operations by which an object is known to be of a class of ours.
///
/// It is longer than C declares it, as a table of a later version may be, and says so: the class is
/// behind what C knows. So an object can be recognized by code that doesn't know what the table
/// names; that would be all code that opens its children.
///
/// # Invariants
///
/// `ops` begins with the table's size, which is [`SIZE`](Self::SIZE). The table is never written, and
/// the functions that it names live as long as this module.
#[repr(C)]
pub(crate) struct ClassTable<T> {
    ops: T,
    class: &'static Class,
    /// Objects have this table while they are being closed.
    of_closing: bool,
}

// SAFETY: By the invariant, the table is constant, and functions may be called from any thread.
unsafe impl<T> Sync for ClassTable<T> {}

impl<T> ClassTable<T> {
    /// The size that such a table states.
    pub(crate) const SIZE: usize = size_of::<Self>();

    /// The table of a class; `ops` begins with its size.
    pub(crate) const fn new(class: &'static Class, ops: T) -> Self {
        // INVARIANT: Every table of operations begins so; a false size would not be recognized.
        Self {
            ops,
            class,
            of_closing: false,
        }
    }

    /// The table of objects of a class that are being closed; `ops` begins with its size.
    pub(crate) const fn of_closing(class: &'static Class, ops: T) -> Self {
        // INVARIANT: As for `new`.
        Self {
            ops,
            class,
            of_closing: true,
        }
    }

    /// The table as C objects point to it. C never writes to it, const or not.
    pub(crate) const fn as_ptr(&'static self) -> *mut T {
        ptr::from_ref(&self.ops).cast_mut()
    }

    /// Returns whether the object that has this table is being closed. Any context.
    ///
    /// # Safety
    ///
    /// `ops` is a table [of a class](Self::is_of).
    pub(crate) unsafe fn is_of_closing(ops: *const T) -> bool {
        let table = ops.cast::<Self>();
        // SAFETY: The table is as long as ours, by the requirements of this function.
        unsafe { (*table).of_closing }
    }

    /// Is it the table of an object of this class? Any context.
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
        // SAFETY: The table is as long as ours. If it is another's, there may be anything in the
        // place of the class, which is only compared.
        let found = unsafe { (&raw const (*table).class).cast::<*const Class>().read() };
        ptr::eq(found, class)
    }
}

/// A fid for a new object with this table.
pub(crate) fn new(context: *mut c_void, ops: &'static ClassTable<kfi_ops>) -> kfid {
    kfid {
        fclass: num::index(ops.class.number),
        context,
        ops: ops.as_ptr(),
        ..pin_init::zeroed()
    }
}

/// Returns whether it is an object of this class. C may be writing to other fields. Any context.
///
/// # Safety
///
/// `fid` is null, an error pointer, or an open object, ours or another's.
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
        // SAFETY: Both are tables of a class.
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
