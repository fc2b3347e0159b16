// SPDX-License-Identifier: GPL-2.0

//! The type of a case, and the macros by which it checks something.

use kernel::prelude::*;

/// The name of a case, and its function.
pub(crate) type Case = (&'static CStr, fn() -> Result);

/// Says in the results what has gone wrong, or may be of use.
#[macro_export]
macro_rules! note {
    ($($arg:tt)*) => {
        kernel::pr_info!("kfi-ktap: # {}\n", kernel::prelude::fmt!($($arg)*))
    };
}

/// Gives the case up unless that is so, and says where.
#[macro_export]
macro_rules! expect {
    ($so:expr) => {
        if !$so {
            $crate::note!("{}:{}: not so: {}", file!(), line!(), stringify!($so));
            return Err(kernel::error::code::EINVAL);
        }
    };
}

/// Gives the case up unless both are the same, and says where.
#[macro_export]
macro_rules! expect_eq {
    ($got:expr, $want:expr) => {
        let (got, want) = (&$got, &$want);
        let same = *got == *want;
        if !same {
            let (what, line) = (stringify!($got), line!());
            $crate::note!(
                "{}:{}: {} is {:?}, not {:?}",
                file!(),
                line,
                what,
                got,
                want
            );
            return Err(kernel::error::code::EINVAL);
        }
    };
}
