// SPDX-License-Identifier: GPL-2.0

//! Which atomic operations consumers may ask for.
//!
//! Which there are is what devices have: adding, fetching what was there, and swapping if that is as
//! expected. What consumers ask for by other names, as reading, is one of these.

use crate::support::{
    errno::Errno,
    refusal::Refusal, //
};
use kfi_bindings::{
    kfi_datatype,
    kfi_datatype_KFI_INT64 as INT64,
    kfi_datatype_KFI_UINT64 as UINT64,
    kfi_op,
    kfi_op_KFI_ATOMIC_READ as READ,
    kfi_op_KFI_ATOMIC_WRITE as WRITE,
    kfi_op_KFI_CSWAP as CSWAP,
    kfi_op_KFI_SUM as SUM, //
};

/// Which atomic operations endpoints have. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Atomics {
    /// [`AtomicOp::Write`](crate::AtomicOp::Write).
    pub write: bool,
    /// [`AtomicOp::Add`](crate::AtomicOp::Add).
    pub add: bool,
    /// [`AtomicOp::CompareSwap`](crate::AtomicOp::CompareSwap).
    pub compare_swap: bool,
}

/// Which family of calls something is asked for by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicForm {
    /// `kfi_atomic()`: nothing comes back.
    Plain,
    /// `kfi_fetch_atomic()`.
    Fetch,
    /// `kfi_compare_atomic()`.
    Compare,
}

/// What is asked for, without operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicKind {
    Write,
    Add,
    /// Adding nothing.
    Read,
    CompareSwap,
}

impl Atomics {
    /// Is there any?
    pub const fn any(self) -> bool {
        self.write || self.add || self.compare_swap
    }

    /// Finds an operation, of one element.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: there is none for that.
    pub(crate) fn find(
        self,
        form: AtomicForm,
        datatype: kfi_datatype,
        op: kfi_op,
    ) -> Result<AtomicKind, Refusal> {
        // Sums of both types are the same bits.
        if !matches!(datatype, INT64 | UINT64) {
            let refusal = Refusal::new(Errno::EOPNOTSUPP, c"atomic operation on this type");
            return Err(refusal.value(datatype.into()));
        }
        let (there, asked) = match (form, op) {
            (AtomicForm::Plain, WRITE) => (self.write, AtomicKind::Write),
            (AtomicForm::Plain | AtomicForm::Fetch, SUM) => (self.add, AtomicKind::Add),
            (AtomicForm::Fetch, READ) => (self.add, AtomicKind::Read),
            (AtomicForm::Compare, CSWAP) => (self.compare_swap, AtomicKind::CompareSwap),
            _ => (false, AtomicKind::Read),
        };
        let none = Refusal::new(Errno::EOPNOTSUPP, c"no such atomic operation here");
        there.then_some(asked).ok_or(none.value(op.into()))
    }
}

#[kernel::macros::kunit_tests(kfabric_post_atomic)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is() {
        let hardware = Atomics {
            add: true,
            compare_swap: true,
            ..Atomics::default()
        };
        let find = |form, op| hardware.find(form, UINT64, op).map_err(|no| no.errno());
        assert_eq!(find(AtomicForm::Plain, SUM), Ok(AtomicKind::Add));
        assert_eq!(find(AtomicForm::Fetch, READ), Ok(AtomicKind::Read));
        assert_eq!(
            find(AtomicForm::Compare, CSWAP),
            Ok(AtomicKind::CompareSwap)
        );
        assert_eq!(find(AtomicForm::Plain, WRITE), Err(Errno::EOPNOTSUPP));
        assert_eq!(find(AtomicForm::Plain, READ), Err(Errno::EOPNOTSUPP));
        assert_eq!(find(AtomicForm::Compare, SUM), Err(Errno::EOPNOTSUPP));
        assert!(hardware.find(AtomicForm::Fetch, INT64, SUM).is_ok());
        assert!(hardware.find(AtomicForm::Fetch, UINT64 + 1, SUM).is_err());
        assert!(!Atomics::default().any() && hardware.any());
    }
}
