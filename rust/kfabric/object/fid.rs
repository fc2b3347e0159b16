// SPDX-License-Identifier: GPL-2.0

//! The `struct kfid` at the start of every object, and the classes of objects.

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

/// Returns a fid for a new object with this table.
pub(crate) fn new(context: *mut c_void, ops: &'static ClassTable<kfi_ops>) -> kfid {
    kfid {
        fclass: num::index(ops.class.number),
        context,
        ops: ops.as_ptr(),
        ..pin_init::zeroed()
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
